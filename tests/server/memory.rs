//! Memory: what happens when there is none, and that none is lost.

use std::collections::HashMap;

use crate::support::{Client, Server, eventually, integers};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const MIB: i64 = 1 << 20;

fn use_up_memory(client: &mut Client) {
    assert_eq!(client.line::<String>("CONFIG SET maxmemory 1"), "OK");
    assert_eq!(client.error(&["SET", "other", "value"]), OOM);
}

#[test]
fn a_key_that_exists_goes_on_being_decided_when_memory_is_used_up() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 4 0");
    client.reply("RL.TAKE slow 10 1/h");
    use_up_memory(&mut client);
    assert_eq!(client.five("RL.TAKE key 4 0"), [1, 2, 0, -1, 4]);
    assert_eq!(client.five("RL.TAKE key 4 0 3"), [0, 2, -1, -1, 4]);
    assert_eq!(client.five("RL.TAKE key 4 0 2"), [1, 0, 0, -1, 4]);
    assert_eq!(client.five("RL.PEEK key"), [0, 0, -1, -1, 4]);
    // Under a limit that nobody has asked for before, too.
    let raised = client.reply("RL.TAKE slow 12 7/13h");
    assert_eq!((raised.allowed, raised.remaining, raised.limit), (1, 8, 12));
}

#[test]
fn a_take_that_would_create_a_key_is_out_of_memory_and_one_that_would_not_is_answered() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    use_up_memory(&mut client);
    assert_eq!(client.error(&["RL.TAKE", "key", "10", "5"]), OOM);
    assert_eq!(client.error(&["RL.TAKE", "key", "10", "0", "10"]), OOM);
    assert_eq!(client.five("RL.TAKE key 10 5 0"), [1, 10, 0, 0, 10]);
    assert_eq!(client.five("RL.TAKE key 10 5 11"), [0, 10, -1, 0, 10]);
    assert_eq!(client.five("RL.TAKE key 0 5"), [0, 0, -1, 0, 0]);
    assert_eq!(client.five("RL.PEEK key 10 5"), [1, 10, 0, 0, 10]);
    assert!(!client.exists("key"));
    assert_eq!(client.line::<String>("CONFIG SET maxmemory 0"), "OK");
    assert_eq!(client.five("RL.TAKE key 10 5"), [1, 9, 0, 200, 10]);
}

#[test]
fn it_is_the_same_in_a_transaction() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 4 0");
    client.queue(&["RL.TAKE key 4 0", "RL.TAKE new 4 0", "RL.TAKE new 4 0 5"]);
    use_up_memory(&mut server.connect());
    assert_eq!(client.exec(), [Ok(integers([1, 2, 0, -1, 4])), Err(OOM.to_owned()), Ok(integers([0, 4, -1, 0, 4]))]);
}

#[test]
fn it_is_the_same_in_a_script() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 4 0");
    use_up_memory(&mut client);
    let mut take = |key: &str| -> Vec<String> {
        let script = "local reply = redis.pcall('RL.TAKE', KEYS[1], 4, 0) return reply.err and {reply.err} or reply";
        client.ask(&["EVAL", script, "1", key])
    };
    assert_eq!(take("key"), ["1", "2", "0", "-1", "4"]);
    assert_eq!(take("new"), [OOM]);
}

#[test]
fn where_the_server_evicts_a_new_key_finds_room_as_other_commands_do() {
    for policy in ["allkeys-lru", "allkeys-random", "volatile-ttl", "volatile-lru"] {
        let server = Server::with(&["--maxmemory-policy", policy]);
        let mut client = server.connect();
        let limit = used_memory(&server) + 2 * MIB;
        assert_eq!(client.line::<String>(&format!("CONFIG SET maxmemory {limit}")), "OK");
        client.feed((0..30_000).map(|number| format!("SET other:{number} value EX 3600")));
        let refused: usize = (0..30).map(|thousand| refused_takes(&mut client, thousand)).sum();
        // Redis 8.6 says so of itself once in a million takes or so, with thousands of keys to evict.
        assert!(refused < 10, "{policy}: {refused} of 30,000 refused");
        let evicted: i64 = server.info("stats", "evicted_keys").unwrap().parse().unwrap();
        assert!(evicted > 10_000, "{policy}: {evicted}");
    }
}

/// How many of a thousand takes on new keys are refused for want of memory.
fn refused_takes(client: &mut Client, thousand: u32) -> usize {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors();
    for number in 0..1_000 {
        pipeline.cmd("RL.TAKE").arg(format!("key:{thousand}:{number}")).arg("10").arg("1/h");
    }
    let answers: Vec<redis::RedisResult<[i64; 5]>> = pipeline.query(&mut client.0).unwrap();
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(refused.iter().all(|error| error.code() == Some("OOM")), "{refused:?}");
    refused.len()
}

#[test]
fn where_there_is_nothing_to_evict_a_new_key_is_out_of_memory() {
    let server = Server::with(&["--maxmemory-policy", "volatile-lru"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 4 0");
    use_up_memory(&mut client);
    assert_eq!(client.error(&["RL.TAKE", "new", "4", "0"]), OOM);
    assert_eq!(client.five("RL.TAKE key 4 0"), [1, 2, 0, -1, 4]);
}

fn used_memory(server: &Server) -> i64 {
    server.info("memory", "used_memory").unwrap().parse().unwrap()
}

/// How much more memory is in use after `work` than before.
fn growth(server: &Server, work: impl FnOnce(&mut Client)) -> i64 {
    let before = used_memory(server);
    work(&mut server.connect());
    // The connection's buffers go with it.
    let mut after = i64::MAX;
    for _ in 0..5 {
        after = after.min(used_memory(server));
    }
    after - before
}

/// The limits of 100,000 callers, no two alike, and unlike those of another `series`. So slow that no key goes meanwhile.
fn limits(series: usize) -> impl Iterator<Item = String> {
    (1..=100_000).map(move |number| format!("{} {number}.5/30d", 10 + series))
}

#[test]
fn a_caller_that_sends_a_new_rate_with_every_call_does_not_grow_it() {
    let server = Server::start();
    for (series, command) in ["RL.TAKE key", "RL.PEEK key", "RL.TAKE other"].into_iter().enumerate() {
        let growth = growth(&server, |client| client.feed(limits(series).map(|limit| format!("{command} {limit}"))));
        assert!(growth < MIB, "{command}: {growth} bytes for 100,000 rates");
    }
}

#[test]
fn what_100_000_limits_took_is_given_back_when_their_keys_are_gone() {
    for flush in ["FLUSHALL SYNC", "FLUSHALL ASYNC"] {
        let server = Server::start();
        let all = |client: &mut Client| {
            client.feed(limits(0).enumerate().map(|(key, limit)| format!("RL.TAKE key:{key} {limit}")));
        };
        let held = growth(&server, all);
        assert!(held > 10 * MIB, "{held} bytes for 100,000 keys with a limit each");
        let mut client = server.connect();
        assert_eq!(client.line::<String>(flush), "OK");
        eventually("all is freed", || server.info("memory", "lazyfree_pending_objects").as_deref() == Some("0"));
        // Limits that nothing uses are swept when there are as many of them as were in use, and some more.
        let rest = growth(&server, |client| client.feed(limits(1).map(|limit| format!("RL.PEEK key {limit}"))));
        let left = used_memory(&server);
        let empty = used_memory(&Server::start());
        assert!(left < empty + 2 * MIB, "{flush}: {left} bytes in use, {empty} in an empty server, {rest} since");
    }
}

#[test]
fn a_limit_whose_key_is_gone_is_forgotten_and_its_number_used_again() {
    let server = Server::start();
    let keys = |client: &mut Client| {
        for round in 0..4 {
            client.feed(limits(round).take(20_000).enumerate().map(|(key, limit)| format!("RL.TAKE {key} {limit}")));
            assert_eq!(client.line::<String>("FLUSHALL SYNC"), "OK");
        }
    };
    growth(&server, keys);
    let again = growth(&server, keys);
    assert!(again < MIB, "{again} bytes more for the same once more");
}

#[test]
fn a_bucket_keeps_its_own_limit_while_others_come_and_go() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE kept 77 7/13h");
    client.feed(limits(0).take(10_000).map(|limit| format!("RL.TAKE key {limit}")));
    client.feed(limits(1).take(10_000).enumerate().map(|(key, limit)| format!("RL.TAKE {key} {limit}")));
    client.feed(limits(2).take(10_000).enumerate().map(|(key, limit)| format!("RL.TAKE other:{key} {limit}")));
    assert_eq!(client.reply("RL.PEEK kept").limit, 77);
    for (key, limit, rate) in [("kept", "77", "7/13h"), ("0", "11", "1/20d"), ("4999", "11", "10001/60d")] {
        let info: HashMap<String, String> = client.ask(&["RL.INFO", key]);
        assert_eq!((info["limit"].as_str(), info["rate"].as_str()), (limit, rate), "{key}");
    }
}

#[test]
fn a_bucket_costs_as_much_as_a_short_string_or_so() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 0");
    let plain: i64 = client.line("MEMORY USAGE key");
    client.reply("RL.TAKE timed 9007199254740991 7/13h 9007199254740991");
    let timed: i64 = client.line("MEMORY USAGE timed");
    assert!((32..=128).contains(&plain), "{plain}");
    assert!((plain..=160).contains(&timed), "{timed}");

    let all = |client: &mut Client| client.feed((0..50_000).map(|key| format!("RL.TAKE key:{key} 10 1/h")));
    let each = growth(&server, all) / 50_000;
    assert!((60..=250).contains(&each), "{each} bytes for a key with its expiry");
}
