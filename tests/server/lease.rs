//! `RL.LEASE`: as many tokens as are there, and not one more, however many ask.

use std::thread::sleep;
use std::time::Duration;

use redis::Value;

use crate::support::dump::Dump;
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::info;
use crate::support::stream::{Stream, names, records};
use crate::support::{Client, Server, held, now_us, race};

const HOUR_MS: i64 = 3_600_000;
const HOUR_US: u64 = 3_600_000_000;
const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn grants_as_many_as_are_there_and_none_after_that() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.LEASE key 10 0 4"), [4, 6, 0, -1, 10]);
    assert_eq!(client.five("RL.LEASE key 10 0 9"), [6, 0, 0, -1, 10]);
    assert_eq!(client.five("RL.LEASE key 10 0 9"), [0, 0, -1, -1, 10]);
    assert_eq!(client.five("RL.TAKE key 10 0"), [0, 0, -1, -1, 10]);
    // More than there ever are.
    assert_eq!(client.five("RL.LEASE fresh 10 1/h 9007199254740991"), [10, 0, 0, 10 * HOUR_MS, 10]);
    assert_eq!(client.five("RL.LEASE none 0 1/h 5"), [0, 0, -1, 0, 0]);
    assert!(!client.exists("none"));
}

#[test]
fn grants_whole_tokens_and_keeps_the_fraction() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(10, "1/h", (0, 0), now_us() - HOUR_US * 5 / 2));
    let granted = client.reply("RL.LEASE key 10 1/h 10");
    assert_eq!((granted.allowed, granted.remaining, granted.retry_after_ms), (2, 0, 0));
    let denied = client.reply("RL.LEASE key 10 1/h 10");
    assert_eq!((denied.allowed, denied.remaining), (0, 0));
    // For one token, not for ten.
    assert!((HOUR_MS * 5 / 12..=HOUR_MS / 2).contains(&denied.retry_after_ms), "{denied:?}");
}

#[test]
fn who_waits_as_told_is_granted_one() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.LEASE key 5 20 5");
    let denied = client.reply("RL.LEASE key 5 20 5");
    assert_eq!(denied.allowed, 0);
    assert!((1..=50).contains(&denied.retry_after_ms), "{denied:?}");
    sleep(Duration::from_millis(denied.retry_after_ms.unsigned_abs()));
    assert!(client.reply("RL.LEASE key 5 20 5").allowed >= 1);
}

#[test]
fn a_lease_of_nothing_tells_where_the_client_stands_and_writes_nothing() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    assert_eq!(client.five("RL.LEASE missing 10 0 0"), [0, 10, 0, 0, 10]);
    assert!(!client.exists("missing"));
    client.reply("RL.LEASE key 10 0 4");
    let (digest, offset) = (client.digest("key"), sent(&primary));
    assert_eq!(client.five("RL.LEASE key 10 0 0"), [0, 6, 0, -1, 10]);
    assert_eq!(client.five("RL.LEASE key 20 5/h 0")[..3], [0, 6, 0]);
    assert_eq!((client.digest("key"), sent(&primary)), (digest, offset));
    assert_eq!(info(&mut client, "key", "denials"), "0");
}

#[test]
fn a_denial_writes_nothing_and_is_counted() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    client.reply("RL.LEASE key 10 1/h 10");
    let (digest, expiry, offset) = (client.digest("key"), client.expiry("key"), sent(&primary));
    for wanted in [1, 10, 11, 9_007_199_254_740_991_i64] {
        assert_eq!(client.reply(&format!("RL.LEASE key 10 1/h {wanted}")).allowed, 0);
        assert_eq!((client.digest("key"), client.expiry("key"), sent(&primary)), (digest.clone(), expiry, offset));
    }
    assert_eq!(info(&mut client, "key", "denials"), "4");
}

#[test]
fn fifty_at_once_are_granted_what_is_in_the_bucket_between_them() {
    let server = Server::start();
    let mut clients: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    for (round, (capacity, wanted)) in [(100, 7), (49, 1), (1_000, 7), (10, 100)].into_iter().enumerate() {
        let granted = race(&mut clients, &format!("RL.LEASE round:{round} {capacity} 0 {wanted}"));
        assert_eq!(granted.iter().sum::<i64>(), capacity.min(50 * wanted), "{granted:?}");
        assert!(granted.iter().all(|granted| (0..=wanted).contains(granted)), "{granted:?}");
    }
}

#[test]
fn a_lease_is_sent_as_the_state_it_led_to() {
    let primary = primary();
    let replica = primary.replica();
    let mut client = primary.connect();
    let mut stream = Stream::of(&primary);
    client.reply("RL.LEASE key 10 1/h 4");
    let commands = stream.since(&primary);
    assert_eq!(names(&commands), ["RL.RESTORE"]);
    assert_eq!(records(&commands)[0].1.state, Dump::of(&mut client, "key").state());
    caught_up(&primary, &replica);
    assert_eq!(replica.connect().dataset_digest(), client.dataset_digest());
    assert_eq!(replica.connect().expiry("key"), client.expiry("key"));
    let refused = "READONLY You can't write against a read only replica.";
    assert_eq!(replica.connect().error(&["RL.LEASE", "key", "10", "1/h", "0"]), refused);
}

#[test]
fn a_lease_that_would_create_a_key_is_out_of_memory_and_one_that_would_not_is_answered() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.LEASE key 10 0 4");
    assert_eq!(client.line::<String>("CONFIG SET maxmemory 1"), "OK");
    assert_eq!(client.error(&["RL.LEASE", "new", "10", "0", "4"]), OOM);
    assert_eq!(client.five("RL.LEASE new 10 0 0"), [0, 10, 0, 0, 10]);
    assert_eq!(client.five("RL.LEASE key 10 0 4"), [4, 2, 0, -1, 10]);
    assert!(!client.exists("new"));
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    const ARITY: &str = "ERR wrong number of arguments for 'RL.LEASE' command";
    const CAPACITY: &str = "ERR capacity must be an integer from 0 to 9007199254740991 tokens";
    const TOKENS: &str = "ERR tokens must be an integer from 0 to 9007199254740991";
    const LINES: [(&str, &str); 14] = [
        ("RL.LEASE", ARITY),
        ("RL.LEASE key 10 5", ARITY),
        ("RL.LEASE key 10 5 1 1", ARITY),
        ("RL.LEASE key x x x", CAPACITY),
        ("RL.LEASE key -1 5 1", CAPACITY),
        ("RL.LEASE key 9007199254740992 5 1", CAPACITY),
        ("RL.LEASE key 10 5 x", TOKENS),
        ("RL.LEASE key 10 5 -1", TOKENS),
        ("RL.LEASE key 10 5 1.0", TOKENS),
        ("RL.LEASE key 10 5 1e3", TOKENS),
        ("RL.LEASE key 10 5 01", TOKENS),
        ("RL.LEASE key 10 5 9007199254740992", TOKENS),
        ("RL.LEASE string 10 5 1", WRONG_TYPE),
        ("RL.LEASE string 10 5 0", WRONG_TYPE),
    ];
    let server = Server::start();
    let mut client = server.connect();
    let _: Value = client.line("SET string 5");
    for (line, error) in LINES {
        assert_eq!(client.error(&line.split(' ').collect::<Vec<_>>()), error, "{line}");
    }
    assert!(client.error(&["RL.LEASE", "key", "10", "-5", "1"]).starts_with("ERR rate must be "));
    assert_eq!(client.error(&["RL.LEASE", "key", "10", "5", ""]), TOKENS);
    assert_eq!(client.line::<i64>("DBSIZE"), 1);
}
