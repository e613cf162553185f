//! `RL.INFO`: what a key holds, for people and dashboards.

use std::collections::HashMap;

use redis::Value;

use crate::support::{Client, Server, held, now_us};

const FIELDS: [&str; 8] =
    ["algorithm", "limit", "rate", "level", "last_change_ms", "denials", "last_denial_s", "ttl_ms"];

fn info(client: &mut Client, key: &str) -> HashMap<String, String> {
    client.ask(&["RL.INFO", key])
}

#[test]
fn no_key_is_nil() {
    let server = Server::start();
    assert_eq!(server.connect().line::<Value>("RL.INFO key"), Value::Nil);
}

#[test]
fn is_a_map_of_strings_and_integers() {
    let server = Server::start();
    server.connect().reply("RL.TAKE key 10 0");
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let Value::Map(pairs) = server.connect_resp3().line::<Value>("RL.INFO key") else { panic!("no map") };
    let names: Vec<_> = pairs.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, FIELDS.map(text));
    let expected = [text("token-bucket"), Value::Int(10), text("0"), text("9")];
    assert_eq!(pairs[..4].iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(pairs[5..].iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), [0, -1, -1].map(Value::Int));

    let Value::Array(flat) = server.connect().line::<Value>("RL.INFO key") else { panic!("no array") };
    let mapped: Vec<_> = pairs.into_iter().flat_map(|(name, value)| [name, value]).collect();
    assert_eq!(flat, mapped);
}

#[test]
fn tells_of_the_last_change() {
    let server = Server::start();
    let mut client = server.connect();
    let taken = client.timed("RL.TAKE key 10 1/h 4");
    let info = info(&mut client, "key");
    assert_eq!(
        (info["algorithm"].as_str(), info["limit"].as_str(), info["rate"].as_str()),
        ("token-bucket", "10", "1/h")
    );
    let last_change_ms: u64 = info["last_change_ms"].parse().unwrap();
    assert!((taken.from_us / 1_000..=taken.to_us / 1_000).contains(&last_change_ms), "{info:?} {taken:?}");
    let level: f64 = info["level"].parse().unwrap();
    assert!((6.0..7.0).contains(&level), "{info:?}");
    let ttl_ms: i64 = info["ttl_ms"].parse().unwrap();
    let pttl: i64 = client.line("PTTL key");
    assert!((pttl..pttl + 60_000).contains(&ttl_ms), "{info:?} {pttl}");
}

#[test]
fn counts_denials_and_only_those() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 0 2");
    assert_eq!(
        (info(&mut client, "key")["denials"].as_str(), info(&mut client, "key")["last_denial_s"].as_str()),
        ("0", "-1")
    );
    for line in ["RL.TAKE key 2 0 0", "RL.PEEK key 2 0 1", "RL.PEEK key 2 0 3"] {
        client.reply(line);
        assert_eq!(info(&mut client, "key")["denials"], "0", "{line}");
    }
    let before_s = now_us() / 1_000_000;
    for (count, line) in ["RL.TAKE key 2 0", "RL.TAKE key 2 0 2", "RL.TAKE key 2 0 3"].into_iter().enumerate() {
        assert_eq!(client.reply(line).allowed, 0);
        assert_eq!(info(&mut client, "key")["denials"], (count + 1).to_string(), "{line}");
    }
    let last_denial_s: u64 = info(&mut client, "key")["last_denial_s"].parse().unwrap();
    assert!((before_s..=now_us() / 1_000_000).contains(&last_denial_s));
}

#[test]
fn denials_outlive_takes_and_changed_limits_and_end_with_the_key() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 5 0 3");
    client.reply("RL.TAKE key 5 0 3");
    client.reply("RL.TAKE key 5 0 1");
    client.reply("RL.TAKE key 50 1/h 1");
    assert_eq!(info(&mut client, "key")["denials"], "1");
    assert_eq!(client.line::<i64>("DEL key"), 1);
    client.reply("RL.TAKE key 5 0 3");
    assert_eq!(info(&mut client, "key")["denials"], "0");
}

#[test]
fn a_refusal_of_arguments_is_no_denial() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 0");
    client.error(&["RL.TAKE", "key", "2", "0", "-1"]);
    client.error(&["RL.TAKE", "key", "2", "x"]);
    assert_eq!(info(&mut client, "key")["denials"], "0");
}

#[test]
fn the_level_is_that_of_now_in_millionths() {
    // Far ahead of the clock, so that nothing comes in.
    const FAR_AHEAD_US: u64 = 7_258_118_400_000_000;
    let levels =
        [((3, 0), "3"), ((3, 500_000), "2.5"), ((3, 1), "2.999999"), ((1, 1_000_000), "0"), ((1, 1_500_000), "-0.5")];
    let server = Server::start();
    let mut client = server.connect();
    for (level, shown) in levels {
        client.put("key", held(10, "1", level, FAR_AHEAD_US));
        assert_eq!(info(&mut client, "key")["level"], shown);
    }
    client.put("key", held(10, "1/3s", (3, 1_000_000), FAR_AHEAD_US));
    assert_eq!(info(&mut client, "key")["level"], "2.666666");
    client.put("key", held(10, "1/h", (0, 0), now_us() - 7_200_000_000));
    let level: f64 = info(&mut client, "key")["level"].parse().unwrap();
    assert!((2.0..3.0).contains(&level), "{level}");
    client.put("key", held(10, "1", (0, 0), now_us() - 7_200_000_000));
    assert_eq!(info(&mut client, "key")["level"], "10");
}

#[test]
fn writes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h");
    let before = (client.digest("key"), client.expiry("key"));
    info(&mut client, "key");
    assert_eq!((client.digest("key"), client.expiry("key")), before);
}
