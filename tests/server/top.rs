//! `RL.TOP`: who is denied most, on this node.

use redis::Value;

use crate::support::{Client, Server};

type Offender = (String, i64, i64, i64);

fn top(client: &mut Client, words: &str) -> Vec<Offender> {
    client.line(format!("RL.TOP {words}").trim_end())
}

fn counts(client: &mut Client, words: &str) -> Vec<(String, i64)> {
    top(client, words).into_iter().map(|(key, denials, _, _)| (key, denials)).collect()
}

/// Takes from buckets of one token that never refills: all but the first are denied.
fn deny(client: &mut Client, key: &str, times: usize) {
    for _ in 0..=times {
        client.reply(&format!("RL.TAKE {key} 1 0"));
    }
}

#[test]
fn lists_the_most_denied_keys_with_the_time_of_the_last_denial() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(top(&mut client, ""), []);
    deny(&mut client, "a", 1);
    deny(&mut client, "b", 3);
    deny(&mut client, "c", 2);
    client.reply("RL.TAKE allowed 1 0");
    assert_eq!(counts(&mut client, ""), [("b".into(), 3), ("c".into(), 2), ("a".into(), 1)]);
    assert_eq!(counts(&mut client, "COUNT 2"), [("b".into(), 3), ("c".into(), 2)]);
    assert_eq!(counts(&mut client, "count 0"), []);
    let [seconds, _]: [i64; 2] = client.line("TIME");
    for (key, _, error, last_ms) in top(&mut client, "") {
        assert_eq!(error, 0, "{key}");
        assert!((seconds - 60..=seconds + 1).contains(&(last_ms / 1_000)), "{key}: {last_ms}");
    }
}

#[test]
fn counts_what_any_command_denies_and_what_has_no_key() {
    let server = Server::start();
    let mut client = server.connect();
    deny(&mut client, "{u}a", 1);
    for line in
        ["RL.LEASE {u}a 1 0 5", "RL.RESERVE {u}a 1 0 1 1s", "RL.MTAKE 2 {u}a {u}b 1 0 1 1 0 1", "RL.TAKE {u}c 0 5"]
    {
        client.line::<Value>(line);
    }
    assert_eq!(counts(&mut client, ""), [("{u}a".into(), 4), ("{u}c".into(), 1)]);
    client.line::<Value>("RL.PEEK {u}a");
    assert_eq!(counts(&mut client, "COUNT 1"), [("{u}a".into(), 4)]);
}

#[test]
fn forgets_on_request_and_with_the_process() {
    let mut server = Server::with(&["--appendonly", "yes"]);
    let mut client = server.connect();
    deny(&mut client, "a", 2);
    assert_eq!(counts(&mut client, "RESET COUNT 5"), [("a".into(), 2)]);
    assert_eq!(top(&mut client, ""), []);
    deny(&mut client, "a", 1);
    server.restart();
    assert_eq!(top(&mut server.connect(), ""), []);
}

#[test]
fn is_bounded_and_finds_who_is_denied_most_all_the_same() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.line::<String>("CONFIG SET rl.top-keys 10"), "OK");
    for round in 0..200 {
        client.reply(&format!("RL.TAKE seldom:{round} 0 1"));
        client.reply("RL.TAKE often 0 1");
    }
    let all = top(&mut client, "COUNT 1000");
    assert_eq!(all.len(), 10);
    assert_eq!((all[0].0.as_str(), all[0].1, all[0].2), ("often", 200, 0));
    assert_eq!(all.iter().map(|(_, denials, _, _)| denials).sum::<i64>(), 400);
}

#[test]
fn can_be_switched_off() {
    let server = Server::start();
    let mut client = server.connect();
    deny(&mut client, "a", 1);
    assert_eq!(client.config("rl.top-keys"), "1000");
    assert_eq!(client.line::<String>("CONFIG SET rl.top-keys 0"), "OK");
    deny(&mut client, "a", 1);
    assert_eq!(top(&mut client, ""), []);
    for refused in ["-1", "100001", "x"] {
        assert!(client.error(&["CONFIG", "SET", "rl.top-keys", refused]).starts_with("ERR "), "{refused}");
    }
    assert_eq!(client.config("rl.top-keys"), "0");
}

#[test]
fn refuses_what_it_does_not_know() {
    let server = Server::start();
    let mut client = server.connect();
    for (line, error) in [
        ("RL.TOP COUNT", "ERR syntax error"),
        ("RL.TOP 5", "ERR syntax error"),
        ("RL.TOP COUNT x", "ERR count must be an integer from 0 to 9007199254740991"),
        ("RL.TOP COUNT -1", "ERR count must be an integer from 0 to 9007199254740991"),
    ] {
        assert_eq!(client.error(&line.split(' ').collect::<Vec<_>>()), error, "{line}");
    }
}
