//! Commands that must leave no trace: no change to save, nothing in the AOF or for the replicas.

use redis::Value;

use super::Client;

/// Commands that make what [`LINES`] needs.
const MADE: [&str; 4] = ["RL.TAKE empty 10 5/h 10", "RL.TAKE spent 3 0 3", "RL.TAKE some 10 5/h 4", "SET string value"];

/// What is asked, and how the answer begins: `0` and `1` are the first of the five integers.
const LINES: [(&str, &str); 26] = [
    ("RL.TAKE empty 10 5/h", "0"),
    ("RL.TAKE empty 10 5/h 10", "0"),
    ("RL.TAKE empty 10 5/h 11", "0"),
    ("RL.TAKE some 10 5/h 7", "0"),
    ("RL.TAKE some 20 5/h 21", "0"),
    ("RL.TAKE spent 3 0", "0"),
    ("RL.TAKE missing 0 5/h", "0"),
    ("RL.TAKE missing 10 5/h 11", "0"),
    ("RL.TAKE missing 0 0 9007199254740991", "0"),
    ("RL.TAKE empty 10 5/h 0", "1"),
    ("RL.TAKE some 20 7/h 0", "1"),
    ("RL.TAKE missing 10 5/h 0", "1"),
    ("RL.PEEK empty", "0"),
    ("RL.PEEK empty 20 50/h", "0"),
    ("RL.PEEK some 10 5/h 6", "1"),
    ("RL.PEEK missing 10 5/h", "1"),
    ("RL.PEEK missing", "nil"),
    ("RL.INFO some", "algorithm"),
    ("RL.INFO missing", "nil"),
    ("RL.TAKE some", "ERR wrong number of arguments"),
    ("RL.TAKE some ten 5/h", "ERR capacity"),
    ("RL.TAKE some 10 -5", "ERR rate"),
    ("RL.TAKE some 10 5/h -1", "ERR cost"),
    ("RL.TAKE some 10 5/h 1 1", "ERR wrong number of arguments"),
    ("RL.TAKE string 10 5/h", "WRONGTYPE"),
    ("RL.RESTORE some payload", "ERR payload"),
];

/// Makes the keys that the quiet commands are about.
pub fn prepare(client: &mut Client) {
    for line in MADE {
        let _: Value = client.line(line);
    }
}

/// Runs every quiet command, and sees that each is answered as it should be.
pub fn run(client: &mut Client) {
    for (line, begins) in LINES {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match client.try_ask::<Value>(&words) {
            Ok(Value::Array(fields)) => match fields.first() {
                Some(Value::Int(allowed)) => allowed.to_string(),
                Some(Value::BulkString(name)) => String::from_utf8(name.clone()).unwrap(),
                other => panic!("{line}: {other:?}"),
            },
            Ok(Value::Nil) => "nil".to_owned(),
            Ok(other) => panic!("{line}: {other:?}"),
            Err(_) => client.error(&words),
        };
        assert!(answer.starts_with(begins), "{line}: {answer}");
    }
}

/// The keys that [`prepare`] makes, each with its expiry and its value.
pub fn seen(client: &mut Client) -> Vec<(&'static str, i64, Vec<u8>)> {
    ["empty", "spent", "some", "string"]
        .into_iter()
        .map(|key| (key, client.expiry(key), client.ask(&["DUMP", key])))
        .collect()
}
