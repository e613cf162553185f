//! What may be written for a capacity, a rate and a cost, and what it means.

use std::collections::HashMap;

use crate::support::{Client, Server};

/// A rate, how `RL.INFO` writes it, and how long a token takes, in milliseconds rounded up.
const RATES: [(&str, &str, i64); 45] = [
    ("5", "5", 200),
    ("5.0", "5", 200),
    ("5.000000000000000000", "5", 200),
    ("5/1", "5", 200),
    ("5/s", "5", 200),
    ("5/1s", "5", 200),
    ("5/1.0s", "5", 200),
    ("5/1000ms", "5", 200),
    ("300/m", "5", 200),
    ("18000/h", "5", 200),
    ("432000/d", "5", 200),
    ("0.005/ms", "5", 200),
    ("2.5/0.5", "5", 200),
    ("5e0", "5", 200),
    ("50e-1", "5", 200),
    ("0.5e1", "5", 200),
    ("0.5E+1", "5", 200),
    ("0.5", "1/2s", 2_000),
    ("1/2", "1/2s", 2_000),
    ("0.25", "1/4s", 4_000),
    ("0.1", "1/10s", 10_000),
    ("0.000000001", "1/1000000000s", 1_000_000_000_000),
    ("100/60", "1/600ms", 600),
    ("100/60s", "1/600ms", 600),
    ("100/m", "1/600ms", 600),
    ("1.6666666666666667", "1/600ms", 600),
    ("1.6666666666667", "1/600ms", 600),
    ("16.666666666666668", "1/60ms", 60),
    ("0.3333333333333333", "1/3s", 3_000),
    ("5/15m", "1/3m", 180_000),
    ("1/m", "1/m", 60_000),
    ("1/h", "1/h", 3_600_000),
    ("1/d", "1/d", 86_400_000),
    ("1/7d", "1/7d", 604_800_000),
    ("10/d", "1/144m", 8_640_000),
    ("5/86400", "1/288m", 17_280_000),
    ("5.787037037037037e-05", "1/288m", 17_280_000),
    ("1/ms", "1000", 1),
    ("3/ms", "3000", 1),
    ("1000000", "1000000", 1),
    ("1000000/d", "1/86.400ms", 87),
    ("1/1.5ms", "1/1.500ms", 2),
    ("7/13h", "7/13h", 6_685_715),
    ("9007199254740991", "9007199254740991", 1),
    ("9007199254740991/ms", "9007199254740991/ms", 1),
];

/// Takes one of ten, and looks at what the key holds then. In one go: a fast bucket is full, and its key gone, when a
/// slow machine comes to ask.
fn take(client: &mut Client, rate: &str) -> ([i64; 5], HashMap<String, String>) {
    client.line::<i64>("DEL key");
    client.transaction(&[&format!("RL.TAKE key 10 {rate}"), "RL.INFO key"])
}

#[test]
fn a_rate_in_each_of_its_spellings() {
    let server = Server::start();
    let mut client = server.connect();
    for (spelling, shown, token_ms) in RATES {
        let (reply, info) = take(&mut client, spelling);
        assert_eq!(reply, [1, 9, 0, token_ms, 10], "{spelling}");
        assert_eq!((info["limit"].as_str(), info["rate"].as_str()), ("10", shown), "{spelling}");
        // And what is shown can be asked for.
        let (again, info) = take(&mut client, shown);
        assert_eq!((again, info["rate"].as_str()), (reply, shown));
    }
}

#[test]
fn spellings_of_one_rate_are_one_limit() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/d 10");
    let digest = client.digest("key");
    for spelling in ["1/86400", "0.000011574074074074073", "1.1574074074074073e-05", "1/24h", "0.5/0.5d", "10/14400m"] {
        // A denial under another limit would bring it into force.
        assert_eq!(client.reply(&format!("RL.TAKE key 10 {spelling}")).allowed, 0, "{spelling}");
        assert_eq!(client.digest("key"), digest, "{spelling}");
    }
    assert_eq!(client.reply("RL.TAKE key 10 1/23h").allowed, 0);
    assert_ne!(client.digest("key"), digest);
}

#[test]
fn spellings_that_begin_and_end_alike_are_told_apart() {
    let server = Server::start();
    let mut client = server.connect();
    let rates = ["1.000000000000000012345678", "1.000000200000000012345678", "1.000000x00000000012345678"];
    for _ in 0..2 {
        let reset = |client: &mut Client, rate| {
            client.line::<i64>("DEL key");
            let reply = client.try_ask::<[i64; 5]>(&["RL.TAKE", "key", "10000000", rate, "10000000"]);
            reply.ok().map(|reply| reply[3])
        };
        assert_eq!(reset(&mut client, rates[0]), Some(10_000_000_000));
        assert_eq!(reset(&mut client, rates[1]), Some(9_999_998_001));
        assert_eq!(reset(&mut client, rates[2]), None);
    }
}

#[test]
fn an_integer_in_each_of_its_spellings() {
    let server = Server::start();
    let mut client = server.connect();
    for (text, number) in [("0", 0), ("1", 1), ("10", 10), ("9007199254740991", (1 << 53) - 1)] {
        let full = [i64::from(number > 0), number, if number > 0 { 0 } else { -1 }, 0, number];
        assert_eq!(client.five(&format!("RL.PEEK key {text} 5")), full, "{text}");
        let cost = client.five(&format!("RL.PEEK key {text} 5 {text}"));
        assert_eq!(cost, [1, number, 0, 0, number], "{text}");
    }
}

#[test]
fn a_command_in_any_case() {
    let server = Server::start();
    let mut client = server.connect();
    for (line, left) in [("rl.take key 3 0", 2), ("Rl.TaKe key 3 0", 1), ("RL.TAKE key 3 0", 0), ("rl.peek key", 0)] {
        assert_eq!(client.reply(line).remaining, left, "{line}");
    }
}
