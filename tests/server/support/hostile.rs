//! Bytes that may be a state or not, and what must hold of those that are.

use redis::{ConnectionLike, Pipeline, Value};

use super::Client;
use super::dump::Dump;

/// The answers to many commands, errors among them.
pub fn answers(client: &mut Client, pipeline: &Pipeline) -> Vec<Value> {
    client.0.req_packed_commands(&pipeline.get_packed_pipeline(), 0, pipeline.len()).unwrap()
}

/// Whether the command was carried out; panics if it was refused with anything but `refusals`.
pub fn accepted(answer: &Value, refusals: &[&str]) -> bool {
    match answer {
        Value::Okay => true,
        Value::ServerError(error) => {
            let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
            assert!(refusals.contains(&text.as_str()), "{text}");
            false
        }
        other => panic!("{other:?}"),
    }
}

/// Asks all that can be asked of a key, whose value must be one that the server takes back.
pub fn use_key(client: &mut Client, key: &str) -> Vec<u8> {
    let dump = Dump::of(client, key);
    let _: () = client.ask(&[b"RESTORE".as_slice(), b"again", b"0", dump.bytes(), b"REPLACE"]);
    assert_eq!(Dump::of(client, "again").bytes(), dump.bytes());
    let peek: [i64; 5] = client.ask(&["RL.PEEK", key]);
    assert!((0..=peek[4]).contains(&peek[1]), "{peek:?} {dump:02x?}");
    let info: Vec<(String, String)> = client.ask(&["RL.INFO", key]);
    let take: [i64; 5] = match client.ask::<String>(&["TYPE", key]).as_str() {
        "rl-bucket" => client.ask(&["RL.TAKE", key, "10", "5/h", "3"]),
        "rl-window" => client.ask(&["RL.WINDOW", key, "10", "1h", "3"]),
        "rl-counts" => client.ask(&["RL.COUNTER", key, "10", "1h", "3"]),
        "rl-quotas" => client.ask(&["RL.QUOTA", key, "10", "1h", "3"]),
        other => panic!("{other}"),
    };
    assert_eq!(info.len(), if info[0].1 == "sliding-window-log" { 9 } else { 8 });
    assert!((0..=10).contains(&take[1]), "{take:?} {dump:02x?}");
    dump.value().to_vec()
}
