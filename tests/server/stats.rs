//! `INFO rl`: what has come of the commands, and how much there is.

use std::thread::sleep;
use std::time::Duration;

use redis::Value;

use crate::support::kinds::KINDS;
use crate::support::{Server, eventually};

#[test]
fn tells_what_has_come_of_each_command_and_of_all() {
    let server = Server::start();
    let mut client = server.connect();
    for line in ["RL.TAKE a 1 0", "RL.TAKE a 1 0", "RL.TAKE a 1 0", "RL.PEEK a", "RL.GIVE b 1", "RL.TAKE c 0 1"] {
        client.line::<Value>(line);
    }
    client.error(&["RL.TAKE", "a", "x", "0"]);
    let of = |command: &str| server.info("rl", &format!("rl_{command}")).unwrap();
    assert_eq!(of("take"), "calls=5,allowed=1,denied=3,errors=1");
    assert_eq!(of("peek"), "calls=1,allowed=0,denied=0,errors=0");
    assert_eq!(of("give"), "calls=1,allowed=0,denied=0,errors=0");
    assert_eq!(["allowed", "denied", "errors"].map(of), ["1", "3", "1"]);
}

#[test]
fn an_all_or_nothing_take_counts_each_of_its_buckets() {
    let server = Server::start();
    let mut client = server.connect();
    client.line::<Value>("RL.MTAKE 2 {u}a {u}b 1 0 1 5 0 1");
    client.line::<Value>("RL.MTAKE 2 {u}a {u}b 1 0 1 5 0 1");
    assert_eq!(server.info("rl", "rl_mtake").unwrap(), "calls=2,allowed=3,denied=1,errors=0");
}

/// A gift of nothing, to nothing or to what is full already gives nothing back.
#[test]
fn counts_the_gifts_that_gave_something_back() {
    let server = Server::start();
    let mut client = server.connect();
    let refunds = || server.info("rl", "rl_refunds").unwrap();
    for (kind, expected) in KINDS.iter().zip(1..) {
        client.five(&kind.take("key", 10, 5));
        client.five("RL.GIVE key 0");
        client.line::<Value>("RL.GIVE missing 1");
        client.error(&["RL.GIVE", "key", "x"]);
        assert_eq!(refunds(), (2 * expected - 2).to_string(), "{kind:?}");
        client.five("RL.GIVE key 1");
        client.five("RL.GIVE key 9");
        assert_eq!(refunds(), (2 * expected).to_string(), "{kind:?}");
    }
    // Full again since, and still there: a key lives a little longer than it must.
    client.five("RL.TAKE key 10 1000");
    sleep(Duration::from_millis(5));
    client.five("RL.GIVE key 1");
    assert_eq!(refunds(), (2 * KINDS.len()).to_string());
    assert_eq!(server.info("rl", "rl_give").unwrap(), "calls=21,allowed=0,denied=0,errors=4");
}

#[test]
fn tells_how_many_buckets_and_limits_there_are() {
    let server = Server::start();
    let mut client = server.connect();
    let counts = || ["rl_buckets", "rl_limits"].map(|field| server.info("rl", field).unwrap());
    assert_eq!(counts(), ["0", "0"]);
    for line in ["RL.TAKE a 5 0", "RL.TAKE b 5 0", "RL.TAKE c 5 1/h", "COPY a d"] {
        client.line::<Value>(line);
    }
    assert_eq!(counts(), ["4", "2"]);
    client.line::<Value>("DEBUG RELOAD");
    // What was there before is freed in the background where the server is configured so, as Valkey 8 is by default.
    eventually("the old values are freed", || counts() == ["4", "2"]);
    client.line::<Value>("DEL a b");
    assert_eq!(counts()[0], "2");
    // So is a plain one.
    client.line::<Value>("FLUSHALL SYNC");
    assert_eq!(counts()[0], "0");
}
