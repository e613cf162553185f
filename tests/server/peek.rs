//! `RL.PEEK`: tells what a take would be told, and leaves no trace.

use crate::support::{Server, held, now_us};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_missing_key_is_nil_without_a_limit_and_full_with_one() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.line::<Option<[i64; 5]>>("RL.PEEK key"), None);
    assert_eq!(client.five("RL.PEEK key 10 5"), [1, 10, 0, 0, 10]);
    assert_eq!(client.five("RL.PEEK key 10 5 10"), [1, 10, 0, 0, 10]);
    assert_eq!(client.five("RL.PEEK key 10 5 11"), [0, 10, -1, 0, 10]);
    assert_eq!(client.five("RL.PEEK key 10 5 0"), [1, 10, 0, 0, 10]);
    assert_eq!(client.five("RL.PEEK key 0 5"), [0, 0, -1, 0, 0]);
    assert_eq!(client.five("RL.PEEK key 10 0"), [1, 10, 0, 0, 10]);
    assert_eq!(client.line::<i64>("DBSIZE"), 0);
}

#[test]
fn the_key_alone_answers_under_the_limit_it_holds() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 4");
    let peek = client.reply("RL.PEEK key");
    assert_eq!((peek.allowed, peek.remaining, peek.retry_after_ms, peek.limit), (1, 6, 0, 10));
    assert!((3 * HOUR_MS..=4 * HOUR_MS).contains(&peek.reset_after_ms), "{peek:?}");
    client.reply("RL.TAKE key 10 1/h 6");
    let peek = client.reply("RL.PEEK key");
    assert_eq!((peek.allowed, peek.remaining, peek.limit), (0, 0, 10));
    assert!((1..=HOUR_MS).contains(&peek.retry_after_ms), "{peek:?}");
}

#[test]
fn tells_what_the_next_take_will_be_told() {
    let server = Server::start();
    let mut client = server.connect();
    for cost in [3, 0, 7, 1, 10, 11] {
        let peek = client.reply(&format!("RL.PEEK key 10 1/d {cost}"));
        let take = client.reply(&format!("RL.TAKE key 10 1/d {cost}"));
        let charged = if take.allowed == 1 { cost } else { 0 };
        assert_eq!((peek.allowed, peek.limit), (take.allowed, take.limit), "{cost}");
        assert_eq!(peek.remaining, take.remaining + charged, "{cost}");
        // A moment lies between the two, and a stalled machine may make a long one of it.
        assert!((0..HOUR_MS).contains(&(peek.retry_after_ms - take.retry_after_ms)), "{cost}: {peek:?} {take:?}");
    }
}

#[test]
fn another_limit_is_weighed_and_not_brought_into_force() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 4");
    for (limit, remaining) in [("3 1/h", 3), ("1000 1/d", 6), ("6 0", 6), ("0 5", 0)] {
        assert_eq!(client.reply(&format!("RL.PEEK key {limit}")).remaining, remaining, "{limit}");
    }
    assert_eq!(client.reply("RL.PEEK key").limit, 10);
    assert_eq!(client.reply("RL.PEEK key").remaining, 6);
}

#[test]
fn changes_neither_state_nor_expiry_nor_denials() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 10");
    let before = (client.digest("key"), client.expiry("key"), client.line::<Vec<u8>>("DUMP key"));
    for line in
        ["RL.PEEK key", "RL.PEEK key 10 1/h", "RL.PEEK key 10 1/h 10", "RL.PEEK key 99 7 1", "RL.PEEK key 3 0 4"]
    {
        client.reply(line);
        assert_eq!((client.digest("key"), client.expiry("key"), client.line::<Vec<u8>>("DUMP key")), before, "{line}");
    }
    let info: std::collections::HashMap<String, String> = client.line("RL.INFO key");
    assert_eq!(info["denials"], "0");
}

#[test]
fn does_not_make_a_key_look_used_to_eviction() {
    let options = ["--maxmemory-policy", "allkeys-lfu", "--lfu-log-factor", "0", "--lfu-decay-time", "0"];
    let server = Server::with(&options);
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h");
    let uses: i64 = client.line("OBJECT FREQ key");
    for _ in 0..50 {
        client.reply("RL.PEEK key");
        client.line::<redis::Value>("RL.INFO key");
    }
    assert_eq!(client.line::<i64>("OBJECT FREQ key"), uses);
    for _ in 0..5 {
        client.reply("RL.TAKE key 10 1/h");
    }
    assert_eq!(client.line::<i64>("OBJECT FREQ key"), uses + 5);
}

#[test]
fn is_neither_a_hit_nor_a_miss_where_a_module_may_say_so() {
    let server = Server::start();
    if !server.has("a module's look at a key without counting it", (7, 2)) {
        return;
    }
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h");
    let counted = || (server.info("stats", "keyspace_hits"), server.info("stats", "keyspace_misses"));
    let before = counted();
    for line in ["RL.PEEK key", "RL.PEEK nothing", "RL.PEEK nothing 10 5", "RL.INFO key"] {
        client.line::<redis::Value>(line);
    }
    assert_eq!(counted(), before);
}

#[test]
fn leaves_a_bucket_of_a_clock_that_was_set_back_as_it_is() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(5, "1/h", (2, 0), now_us() + 86_400_000_000));
    let digest = client.digest("key");
    assert_eq!(client.five("RL.PEEK key"), [1, 2, 0, 3 * HOUR_MS, 5]);
    assert_eq!(client.five("RL.PEEK key 5 1/h 3"), [0, 2, HOUR_MS, 3 * HOUR_MS, 5]);
    assert_eq!(client.digest("key"), digest);
}
