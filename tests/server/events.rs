//! Keyspace events: for what changes a key, and for what is denied.

use std::time::Duration;

use redis::Value;

use crate::support::replicas::{caught_up, primary};
use crate::support::{Client, Server};

/// The events on `listening` that `act` brings about, in their order, as `key event`.
fn heard(listening: &Server, acting: &Server, act: impl FnOnce(&mut Client)) -> Vec<String> {
    let (mut listener, mut client) = (listening.connect(), acting.connect());
    listener.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut events = listener.0.as_pubsub();
    events.psubscribe(&["__keyspace@0__:*", "end"]).unwrap();
    act(&mut client);
    let _: Value = client.line("PUBLISH end end");
    let mut told = Vec::new();
    loop {
        let event = events.get_message().unwrap();
        match event.get_channel_name().strip_prefix("__keyspace@0__:") {
            Some(key) => told.push(format!("{key} {}", event.get_payload::<String>().unwrap())),
            None => return told,
        }
    }
}

fn events(server: &Server, lines: &[&str]) -> Vec<String> {
    heard(server, server, |client| {
        for line in lines {
            // Errors are among what is tried.
            let _ = client.try_ask::<Value>(&line.split(' ').collect::<Vec<_>>());
        }
    })
}

#[test]
fn a_change_is_the_event_of_its_command_and_a_denial_is_one_of_its_own() {
    let server = Server::loaded_with(&["cl-throttle", "yes"], &["--notify-keyspace-events", "KAd"]);
    let told = events(
        &server,
        &[
            "RL.TAKE a 2 0",
            "RL.TAKE a 2 0 2",
            "RL.LEASE a 2 0 5",
            "RL.GIVE a 1",
            "RL.GIVE a 5",
            "RL.RESERVE b 1 1/h 1 9h",
            "RL.RESERVE b 1 1/h 1 9h",
            "RL.MTAKE 2 c d 1 0 1 1 0 1",
            "RL.MTAKE 2 c d 1 0 1 9 0 1",
            "RL.WINDOW w 1 1h",
            "RL.WINDOW w 1 1h",
            "RL.COUNTER x 1 1h",
            "RL.QUOTA y 1 year",
            "CL.THROTTLE z 0 1 60",
            "RL.WINDOW w 1 2h",
        ],
    );
    assert_eq!(
        told,
        [
            "a rl.take",
            "a rl.denied",
            "a rl.lease",
            "a rl.give",
            "a del",
            "b rl.reserve",
            "b rl.reserve",
            "c rl.mtake",
            "d rl.mtake",
            "c rl.denied",
            "d rl.mtake",
            "d rl.denied",
            "w rl.window",
            "w rl.denied",
            "x rl.counter",
            "y rl.quota",
            "z rl.throttle",
            "w rl.window",
            "w rl.denied",
        ]
    );
}

#[test]
fn what_changes_nothing_and_denies_nothing_is_silent() {
    let server = Server::with(&["--notify-keyspace-events", "KAd"]);
    server.connect().five("RL.TAKE a 2 0");
    let told = events(
        &server,
        &[
            "RL.TAKE a 2 0 0",
            "RL.PEEK a",
            "RL.PEEK a 2 0 9",
            "RL.INFO a",
            "RL.GIVE a 0",
            "RL.GIVE missing 1",
            "RL.TAKE a x 0",
            "RL.TOP",
        ],
    );
    assert_eq!(told, [""; 0]);
}

#[test]
fn nothing_is_sent_unless_it_is_switched_on() {
    for setting in ["", "KEA"] {
        let server = Server::with(&["--notify-keyspace-events", setting]);
        server.connect().line::<Value>("CONFIG SET notify-keyspace-events Kg");
        // Of these, the setting has only what every type has.
        assert_eq!(events(&server, &["RL.TAKE a 2 0 2", "RL.TAKE a 2 0", "RL.GIVE a 2"]), ["a del"], "{setting:?}");
    }
}

#[test]
fn a_replica_tells_of_what_it_is_sent() {
    let primary = primary();
    let replica = primary.replica_with(&["--notify-keyspace-events", "KAd"]);
    let told = heard(&replica, &primary, |client| {
        for line in ["RL.TAKE key 2 0", "RL.TAKE key 2 0 2", "RL.WINDOW other 2 1h", "RL.GIVE key 1"] {
            client.five(line);
        }
        caught_up(&primary, &replica);
    });
    assert_eq!(told, ["key rl.restore", "other rl.restore", "key del"], "a denial is not sent");
}
