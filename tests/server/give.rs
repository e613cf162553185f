//! `RL.GIVE`: tokens come back to a bucket that is there, and to no other.

use std::thread::sleep;
use std::time::Duration;

use redis::Value;

use crate::support::dump::Dump;
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::info;
use crate::support::stream::{Stream, names, records};
use crate::support::{Server, held, integers, now_us};

const HOUR_MS: i64 = 3_600_000;
const TOKENS: &str = "ERR tokens must be an integer from 0 to 9007199254740991";
const ARITY: &str = "ERR wrong number of arguments for 'RL.GIVE' command";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn gives_back_what_was_taken_under_the_limit_in_force() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE once 10 0 8"), [1, 2, 0, -1, 10]);
    assert_eq!(client.five("RL.GIVE once 3"), [1, 5, 0, -1, 10]);
    assert_eq!(client.five("RL.TAKE once 10 0 5"), [1, 0, 0, -1, 10]);
    assert_eq!(client.five("RL.TAKE once 10 0"), [0, 0, -1, -1, 10]);

    client.reply("RL.TAKE slow 10 1/h 8");
    let given = client.reply("RL.GIVE slow 3");
    assert_eq!((given.allowed, given.remaining, given.retry_after_ms, given.limit), (1, 5, 0, 10));
    assert!((5 * HOUR_MS - 60_000..=5 * HOUR_MS).contains(&given.reset_after_ms), "{given:?}");
    assert_eq!((info(&mut client, "slow", "limit"), info(&mut client, "slow", "rate")), ("10".into(), "1/h".into()));
}

#[test]
fn gives_no_more_than_to_what_is_full_and_deletes_the_key_then() {
    let server = Server::start();
    let mut client = server.connect();
    for (take, gift) in [("10 0 8", "8"), ("10 0 8", "9"), ("10 1/h 8", "9007199254740991"), ("7 7/13h", "1")] {
        assert_eq!(client.reply(&format!("RL.TAKE key {take}")).allowed, 1);
        let capacity: i64 = take.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(client.five(&format!("RL.GIVE key {gift}")), [1, capacity, 0, 0, capacity], "{take}, {gift}");
        assert!(!client.exists("key"), "{take}, {gift}");
    }
    assert_eq!(client.five("RL.TAKE key 3 0"), [1, 2, 0, -1, 3]);
}

#[test]
fn a_key_that_is_deleted_is_deleted_on_replicas_too() {
    let primary = primary();
    let replica = primary.replica();
    let mut client = primary.connect();
    client.reply("RL.TAKE key 10 0 8");
    caught_up(&primary, &replica);
    assert!(replica.connect().exists("key"));
    let mut stream = Stream::of(&primary);
    client.reply("RL.GIVE key 8");
    let deletion = stream.since(&primary);
    assert_eq!(names(&deletion), ["DEL"]);
    assert_eq!(deletion.last().unwrap()[1], b"key");
    caught_up(&primary, &replica);
    assert!(!replica.connect().exists("key"));
}

#[test]
fn a_gift_is_sent_as_the_state_it_led_to() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 8");
    let mut stream = Stream::of(&server);
    sleep(Duration::from_millis(2));
    client.reply("RL.GIVE key 3");
    let commands = stream.since(&server);
    assert_eq!(names(&commands), ["RL.RESTORE"]);
    let [(key, record)] = &records(&commands)[..] else { panic!("{commands:?}") };
    assert_eq!((key.as_str(), record.state), ("key", Dump::of(&mut client, "key").state()));
}

#[test]
fn a_key_that_is_not_there_is_nil_and_is_not_made() {
    let primary = primary();
    let _replica = primary.replica();
    let (mut client, mut resp3) = (primary.connect(), primary.connect_resp3());
    let offset = sent(&primary);
    for gift in ["0", "1", "9007199254740991"] {
        assert_eq!(client.line::<Value>(&format!("RL.GIVE missing {gift}")), Value::Nil);
        assert_eq!(resp3.line::<Value>(&format!("RL.GIVE missing {gift}")), Value::Nil);
    }
    assert!(!client.exists("missing"));
    assert_eq!(sent(&primary), offset);
}

#[test]
fn an_expired_key_is_not_revived() {
    let server = Server::start();
    let mut client = server.connect();
    let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    client.reply("RL.TAKE key 10 1/h 8");
    assert_eq!(client.line::<i64>("PEXPIRE key 1"), 1);
    sleep(Duration::from_millis(5));
    assert_eq!(client.line::<Value>("RL.GIVE key 3"), Value::Nil);
    assert!(!client.exists("key"));
    assert_eq!(client.line::<i64>("DBSIZE"), 0);
}

#[test]
fn a_gift_of_nothing_writes_nothing() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    client.reply("RL.TAKE key 10 1/h 8");
    let (digest, expiry, offset) = (client.digest("key"), client.expiry("key"), sent(&primary));
    let reply = client.reply("RL.GIVE key 0");
    assert_eq!((reply.allowed, reply.remaining, reply.retry_after_ms, reply.limit), (1, 2, 0, 10));
    assert_eq!((client.digest("key"), client.expiry("key"), sent(&primary)), (digest, expiry, offset));
}

#[test]
fn a_key_expires_when_the_bucket_is_full_after_the_gift() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 100 1/h 90");
    for gift in [1, 40, 20] {
        let given = client.timed(&format!("RL.GIVE key {gift}"));
        let full_ms = given.reply.reset_after_ms + i64::try_from(given.from_us / 1_000).unwrap();
        let expiry = client.expiry("key");
        // Rounded by up to a millisecond on either side; and a second and an eighth of the refill time at most.
        assert!((full_ms - 1..=full_ms + 21_000 + 100 * HOUR_MS / 8).contains(&expiry), "{expiry}: {given:?}");
    }
}

#[test]
fn a_gift_after_the_clock_stepped_back_is_on_the_new_clock() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(10, "1/h", (2, 0), now_us() + 3_600_000_000));
    assert_eq!(client.five("RL.GIVE key 3"), [1, 5, 0, 5 * HOUR_MS, 10]);
    let last_change_ms: u64 = info(&mut client, "key", "last_change_ms").parse().unwrap();
    assert!(last_change_ms <= now_us() / 1_000, "{last_change_ms}");
}

#[test]
fn a_gift_breaks_a_watch_and_a_gift_of_nothing_does_not() {
    let server = Server::start();
    let (mut watcher, mut other) = (server.connect(), server.connect());
    other.reply("RL.TAKE key 10 0 8");
    for (line, survives) in
        [("RL.GIVE key 0", true), ("RL.GIVE missing 1", true), ("RL.GIVE key 1", false), ("RL.GIVE key 9", false)]
    {
        let _: () = watcher.line("WATCH key missing");
        let _: Value = other.line(line);
        assert_eq!(watcher.transaction::<Option<Vec<String>>>(&["PING"]).is_some(), survives, "{line}");
    }
}

#[test]
fn is_carried_out_when_memory_is_used_up_and_in_transactions() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 4 0 3");
    client.queue(&["RL.GIVE key 1", "RL.GIVE key x", "RL.GIVE key 2", "RL.GIVE key 2"]);
    assert_eq!(server.connect().line::<String>("CONFIG SET maxmemory 1"), "OK");
    let expected =
        [Ok(integers([1, 2, 0, -1, 4])), Err(TOKENS.to_owned()), Ok(integers([1, 4, 0, 0, 4])), Ok(Value::Nil)];
    assert_eq!(client.exec(), expected);
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 0 8");
    let digest = client.digest("key");
    for words in
        [&["RL.GIVE"][..], &["RL.GIVE", "key"], &["RL.GIVE", "key", "1", "1"], &["RL.GIVE", "key", "10", "5", "1"]]
    {
        assert_eq!(client.error(words), ARITY, "{words:?}");
    }
    for tokens in
        ["", " ", "x", "-1", "+1", "1.0", "1e3", "01", "1 ", "0x1", "inf", "9007199254740992", "18446744073709551617"]
    {
        assert_eq!(client.error(&["RL.GIVE", "key", tokens]), TOKENS, "{tokens}");
        assert_eq!(client.error(&["RL.GIVE", "missing", tokens]), TOKENS, "{tokens}");
    }
    for make in ["SET string 5", "RPUSH list 5", "HSET hash 5 5", "SADD set 5", "ZADD zset 5 5", "XADD stream * 5 5"] {
        let key = make.split(' ').nth(1).unwrap();
        let _: Value = client.line(make);
        assert_eq!(client.error(&["RL.GIVE", key, "1"]), WRONG_TYPE, "{make}");
        assert_eq!(client.error(&["RL.GIVE", key, "0"]), WRONG_TYPE, "{make}");
    }
    assert_eq!(client.digest("key"), digest);
}
