//! What exactly a primary sends: one absolute state for each take that changed something, and never a request.

use std::thread::sleep;
use std::time::Duration;

use redis::Value;
use rl_core::UnixMillis;
use rl_core::codec::{Record, RecordedExpiry};

use crate::support::dump::Dump;
use crate::support::replicas::{caught_up, primary};
use crate::support::specimens::{STATES, restore, write_all};
use crate::support::stream::{Stream, names, records};
use crate::support::{Client, Server, held, now_us, quiet};

/// What a record of `key` must say now.
fn record(client: &mut Client, key: &str) -> Record {
    let millis = u128::try_from(client.expiry(key)).ok();
    let expiry = millis.map_or(RecordedExpiry::None, |millis| RecordedExpiry::At(UnixMillis::saturating(millis)));
    Record { expiry, state: Dump::of(client, key).state() }
}

/// Lets go by the millisecond for which the module remembers an expiry; a take within it leaves the expiry unstated.
fn not_at_once() {
    sleep(Duration::from_millis(2));
}

#[test]
fn an_allowed_take_is_sent_as_one_record_of_the_state_it_led_to() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    for line in ["RL.TAKE key 10 5/h 4", "RL.TAKE key 10 5/h", "RL.TAKE key 20 0", "RL.TAKE key 3 100/60 3"] {
        not_at_once();
        assert_eq!(client.reply(line).allowed, 1, "{line}");
        let sent = stream.since(&server);
        assert_eq!(names(&sent), ["RL.RESTORE"], "{line}");
        assert_eq!(records(&sent), [("key".to_owned(), record(&mut client, "key"))], "{line}");
    }
}

#[test]
fn every_state_is_sent_as_it_is() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    for state in STATES {
        state.write(&mut client);
        let sent = records(&stream.since(&server));
        let (key, last) = sent.last().unwrap();
        assert_eq!((key.as_str(), last.state), (state.key, Dump::of(&mut client, state.key).state()));
    }
}

#[test]
fn a_denial_sends_nothing() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    quiet::prepare(&mut client);
    let _ = stream.since(&server);
    quiet::run(&mut client);
    assert_eq!(names(&stream.since(&server)), Vec::<String>::new());
}

#[test]
fn a_denial_under_a_changed_limit_is_sent_once() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    let _: [i64; 5] = client.line("RL.TAKE key 10 0 10");
    let _ = stream.since(&server);
    not_at_once();
    for _ in 0..3 {
        assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    }
    assert_eq!(records(&stream.since(&server)), [("key".to_owned(), record(&mut client, "key"))]);
}

#[test]
fn a_denial_after_the_clock_stepped_back_is_sent_once() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    let ahead = held(10, "5/h", (0, 0), now_us() + 3_600_000_000);
    restore(&mut client, "key", RecordedExpiry::None, &ahead);
    assert_eq!(records(&stream.since(&server)).len(), 1);
    not_at_once();
    for _ in 0..3 {
        assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    }
    assert_eq!(records(&stream.since(&server)), [("key".to_owned(), record(&mut client, "key"))]);
}

#[test]
fn a_transaction_is_wrapped_once_and_a_denial_in_it_is_left_out() {
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    let script = "for i = 1, 3 do redis.call('RL.TAKE', KEYS[1], 10, '5/h', 4) end";
    let wholes: [&[&[&str]]; 2] = [
        &[
            &["MULTI"],
            &["RL.TAKE", "a", "10", "5/h", "4"],
            &["RL.TAKE", "a", "10", "5/h", "4"],
            &["RL.TAKE", "a", "10", "5/h", "4"],
            &["EXEC"],
        ],
        &[&["EVAL", script, "1", "b"]],
    ];
    for whole in wholes {
        for words in whole {
            let _: Value = client.ask(words);
        }
        assert_eq!(names(&stream.since(&server)), ["MULTI", "RL.RESTORE", "RL.RESTORE", "EXEC"], "{whole:?}");
        // The bucket holds two now, so all three are denied.
        for words in whole {
            let _: Value = client.ask(words);
        }
        assert_eq!(names(&stream.since(&server)), Vec::<String>::new(), "{whole:?}");
    }
}

#[test]
fn an_expired_key_is_deleted_and_begun_anew() {
    let server = Server::start();
    let mut client = server.connect();
    let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    let mut stream = Stream::of(&server);
    let _: [i64; 5] = client.line("RL.TAKE key 10 5/h 10");
    let _: i64 = client.line("PEXPIRE key 100");
    sleep(Duration::from_millis(150));
    let _ = stream.since(&server);
    assert_eq!(client.reply("RL.TAKE key 10 5/h").remaining, 9);
    let sent = stream.since(&server);
    let mut sent_names = names(&sent);
    sent_names.retain(|name| name != "MULTI" && name != "EXEC");
    assert!(matches!(sent_names[0].as_str(), "DEL" | "UNLINK"), "{sent_names:?}");
    assert_eq!(sent_names[1..], ["RL.RESTORE"]);
    assert_eq!(records(&sent), [("key".to_owned(), record(&mut client, "key"))]);
}

/// The server changes a key's expiry without the module; whatever happens between two takes, what they send must be what
/// the key has.
#[test]
fn what_others_do_to_the_expiry_between_two_takes_leaves_both_sides_equal() {
    let primary = primary();
    let replica = primary.replica();
    let (mut client, mut other) = (primary.connect(), replica.connect());
    let takes = ["RL.TAKE @ 10 5/h", "RL.TAKE @ 10 0"];
    let changes = ["PERSIST @", "PEXPIREAT @ 4102444800123", "RENAME @ @2", "COPY @ @2", "PEXPIREAT @ 1"];
    for (at, (take, change)) in takes.iter().flat_map(|take| changes.map(|change| (take, change))).enumerate() {
        let key = format!("key:{at}");
        // In one transaction: that is the least time there can be between them.
        let _: () = client.line("MULTI");
        for line in [take, take, change, take] {
            let _: Value = client.line(&line.replace('@', &key));
        }
        let _: Value = client.line("EXEC");
        caught_up(&primary, &replica);
        for key in [key.clone(), format!("{key}2")] {
            assert_eq!(other.expiry(&key), client.expiry(&key), "{key}: {take} twice, {change}, {take}");
        }
        assert_eq!(other.dataset_digest(), client.dataset_digest(), "{take} twice, {change}, {take}");
    }
}

#[test]
fn a_record_is_passed_on_as_it_came() {
    let server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    let mut stream = Stream::of(&server);
    let state = held(10, "5/h", (1, 7), 1_700_000_000_000_000);
    let expiries =
        [RecordedExpiry::None, RecordedExpiry::Unstated, RecordedExpiry::At(UnixMillis::saturating(1 << 50))];
    for expiry in expiries {
        restore(&mut client, "fresh", expiry, &state);
        assert_eq!(records(&stream.since(&server)), [("fresh".to_owned(), Record { expiry, state })]);
    }
}
