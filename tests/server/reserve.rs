//! `RL.RESERVE`: slots are booked first come, first served, and a debt is a state like any other.

use std::sync::Barrier;
use std::thread::scope;

use redis::Value;

use crate::support::dump::Dump;
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::{Sight, info};
use crate::support::stream::{Stream, in_aof, names, records};
use crate::support::{Client, Server, eventually};

const HOUR_MS: i64 = 3_600_000;
/// As long as a test may take.
const SLOW_MS: i64 = 60_000;
const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Whether `ms` is `expected_ms`, less what has passed meanwhile.
fn about(ms: i64, expected_ms: i64) -> bool {
    (expected_ms - SLOW_MS..=expected_ms).contains(&ms)
}

/// Empties `key`, two tokens at one an hour, and books four tokens more than it holds.
fn owe(client: &mut Client, key: &str) {
    assert_eq!(client.five(&format!("RL.RESERVE {key} 2 1/h 2 0")), [1, 0, 0, 2 * HOUR_MS, 2]);
    for wait_ms in [2 * HOUR_MS, 4 * HOUR_MS] {
        let booked = client.reply(&format!("RL.RESERVE {key} 2 1/h 2 1d"));
        assert_eq!((booked.allowed, booked.remaining), (1, 0));
        assert!(about(booked.retry_after_ms, wait_ms), "{booked:?}");
    }
}

fn assert_owing(client: &mut Client, key: &str) {
    let next = client.reply(&format!("RL.RESERVE {key} 2 1/h 2 1d"));
    assert_eq!(next.allowed, 1);
    assert!(about(next.retry_after_ms, 6 * HOUR_MS), "{next:?}");
}

#[test]
fn thirty_callers_at_once_get_thirty_slots_one_after_the_other() {
    let server = Server::start();
    let mut clients: Vec<Client> = (0..30).map(|_| server.connect()).collect();
    let barrier = Barrier::new(clients.len());
    let mut waits: Vec<i64> = scope(|scope| {
        let callers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    barrier.wait();
                    let reply = client.reply("RL.RESERVE key 1 1/h 1 2d");
                    assert_eq!((reply.allowed, reply.remaining), (1, 0), "{reply:?}");
                    reply.retry_after_ms
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    waits.sort_unstable();
    assert_eq!(waits[0], 0);
    for (place, wait) in waits.into_iter().enumerate().skip(1) {
        assert!(about(wait, HOUR_MS * place as i64), "the wait of place {place} is {wait} ms");
    }
}

#[test]
fn slots_are_exactly_the_cost_apart_where_time_stands_still() {
    let server = Server::start();
    if !server.has("a clock that stands still in MULTI", (7, 2)) {
        return;
    }
    let mut client = server.connect();
    let replies: Vec<[i64; 5]> = client.transaction(&["RL.RESERVE key 2 3 1 1.34"; 7]);
    let expected = [
        [1, 1, 0, 334, 2],
        [1, 0, 0, 667, 2],
        [1, 0, 334, 1_000, 2],
        [1, 0, 667, 1_334, 2],
        [1, 0, 1_000, 1_667, 2],
        [1, 0, 1_334, 2_000, 2],
        // Would have to wait 1,667 ms (1,666.67): 326.67 more than it is willing to.
        [0, 0, 327, 2_000, 2],
    ];
    assert_eq!(replies, expected);
}

#[test]
fn max_wait_is_in_seconds_or_in_its_unit() {
    let server = Server::start();
    let mut client = server.connect();
    let enough = ["3600", "3600s", "3600.5", "3600000ms", "60m", "1h", "1.0h", "0.042d", "1d", "9007199254.740991"];
    let too_short = ["0", "0.0", "0d", "3500", "3500s", "3500000ms", "59m", "0.98h", "0.04d", "3600ms", "0.000001"];
    for (max_wait, allowed) in enough.map(|wait| (wait, 1)).into_iter().chain(too_short.map(|wait| (wait, 0))) {
        let _: i64 = client.line("DEL key");
        client.reply("RL.TAKE key 1 1/h");
        assert_eq!(client.reply(&format!("RL.RESERVE key 1 1/h 1 {max_wait}")).allowed, allowed, "{max_wait}");
    }
}

#[test]
fn who_would_wait_too_long_is_refused_and_charged_nothing() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    owe(&mut client, "key");
    let (digest, expiry, offset) = (client.digest("key"), client.expiry("key"), sent(&primary));
    for (cost, max_wait, retry_ms) in
        [(1, "0", 5 * HOUR_MS), (1, "1h", 4 * HOUR_MS), (2, "5h", HOUR_MS), (2, "0", 6 * HOUR_MS)]
    {
        let refused = client.reply(&format!("RL.RESERVE key 2 1/h {cost} {max_wait}"));
        assert_eq!((refused.allowed, refused.remaining, refused.limit), (0, 0, 2), "{cost} {max_wait}");
        assert!(about(refused.retry_after_ms, retry_ms), "{cost} {max_wait}: {refused:?}");
        assert!(about(refused.reset_after_ms, 6 * HOUR_MS), "{refused:?}");
    }
    // Whatever the wait: more than the bucket ever holds. And nothing asked for is neither refused nor charged.
    assert_eq!(client.five("RL.RESERVE key 2 1/h 3 1d")[..3], [0, 0, -1]);
    assert_eq!(client.five("RL.RESERVE key 2 1/h 0 0")[..3], [1, 0, 0]);
    assert_eq!((client.digest("key"), client.expiry("key"), sent(&primary)), (digest, expiry, offset));
    assert_eq!(info(&mut client, "key", "denials"), "5");
}

#[test]
fn a_bucket_that_never_fills_lends_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.RESERVE key 3 0 2 1d"), [1, 1, 0, -1, 3]);
    assert_eq!(client.five("RL.RESERVE key 3 0 2 9007199254"), [0, 1, -1, -1, 3]);
    assert_eq!(client.five("RL.RESERVE key 3 0 1 0"), [1, 0, 0, -1, 3]);
    assert_eq!(client.five("RL.RESERVE missing 3 0 4 1d"), [0, 3, -1, 0, 3]);
    assert_eq!(client.five("RL.RESERVE missing 3 0 0 1d"), [1, 3, 0, 0, 3]);
    assert!(!client.exists("missing"));
}

#[test]
fn a_debt_is_seen_as_nothing_left_and_repaid_first() {
    let server = Server::start();
    let mut client = server.connect();
    owe(&mut client, "key");
    for (line, wait_ms) in [
        ("RL.PEEK key", 5 * HOUR_MS),
        ("RL.PEEK key 2 1/h 2", 6 * HOUR_MS),
        ("RL.TAKE key 2 1/h", 5 * HOUR_MS),
        ("RL.TAKE key 2 1/h 2", 6 * HOUR_MS),
        ("RL.LEASE key 2 1/h 2", 5 * HOUR_MS),
    ] {
        let reply = client.reply(line);
        assert_eq!((reply.allowed, reply.remaining, reply.limit), (0, 0, 2), "{line}");
        assert!(about(reply.retry_after_ms, wait_ms) && about(reply.reset_after_ms, 6 * HOUR_MS), "{line}: {reply:?}");
    }
    let level: f64 = info(&mut client, "key", "level").parse().unwrap();
    assert!((-4.0..=-3.9).contains(&level), "{level}");

    let given = client.reply("RL.GIVE key 2");
    assert_eq!((given.allowed, given.remaining), (1, 0));
    let next = client.reply("RL.RESERVE key 2 1/h 1 1d");
    assert!(next.allowed == 1 && about(next.retry_after_ms, 3 * HOUR_MS), "a slot was cancelled: {next:?}");
}

#[test]
fn a_key_lives_until_its_debt_is_repaid_and_the_bucket_full() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 1/h 2");
    for debt in 1..=10 {
        let booked = client.timed("RL.RESERVE key 2 1/h 1 1d");
        let full_ms = i64::try_from(booked.from_us / 1_000).unwrap() + booked.reply.reset_after_ms;
        let expiry = client.expiry("key");
        assert!(about(booked.reply.reset_after_ms, (2 + debt) * HOUR_MS), "{booked:?}");
        assert!((full_ms - 1..=full_ms + 21_000 + 2 * HOUR_MS / 8).contains(&expiry), "{expiry}: {booked:?}");
    }
}

#[test]
fn a_debt_survives_a_save_and_a_restart() {
    let mut server = Server::start();
    owe(&mut server.connect(), "key");
    let before = Sight::of(&mut server.connect(), "key");
    assert_eq!(server.connect().line::<String>("SAVE"), "OK");
    server.crash_and_restart();
    let mut client = server.connect();
    before.assert_seen_in(&Sight::of(&mut client, "key"), "after a restart");
    assert_owing(&mut client, "key");
}

#[test]
fn a_debt_survives_the_append_only_file_and_its_rewrite() {
    for preamble in ["yes", "no"] {
        let options = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", preamble];
        let mut server = Server::with(&options);
        owe(&mut server.connect(), "key");
        assert!(names(&in_aof(&server, ".incr.aof")).iter().all(|name| name == "RL.RESTORE"));
        let before = Sight::of(&mut server.connect(), "key");
        server.crash_and_restart();
        before.assert_seen_in(&Sight::of(&mut server.connect(), "key"), "after a replay");

        let _: String = server.connect().line("BGREWRITEAOF");
        eventually("the file is rewritten", || {
            let field = |name| server.info("persistence", name);
            field("aof_rewrite_in_progress").as_deref() == Some("0")
                && field("aof_rewrite_scheduled").as_deref() == Some("0")
        });
        server.crash_and_restart();
        let mut client = server.connect();
        before.assert_seen_in(&Sight::of(&mut client, "key"), "after a rewrite");
        assert_owing(&mut client, "key");
    }
}

#[test]
fn a_debt_is_carried_by_dump_restore_copy_and_rename() {
    let server = Server::start();
    let mut client = server.connect();
    owe(&mut client, "key");
    let (before, dump) = (Sight::of(&mut client, "key"), Dump::of(&mut client, "key"));
    let expiry = client.expiry("key").to_string();
    let _: () = client.ask(&[b"RESTORE".as_slice(), b"restored", expiry.as_bytes(), dump.bytes(), b"ABSTTL"]);
    assert_eq!(client.line::<i64>("COPY key copied"), 1);
    let _: () = client.line("RENAME key renamed");
    for key in ["restored", "copied", "renamed"] {
        before.assert_seen_in(&Sight::of(&mut client, key), key);
        assert_owing(&mut client, key);
    }
}

#[test]
fn a_debt_is_the_same_on_a_replica() {
    let primary = primary();
    let mut client = primary.connect();
    owe(&mut client, "early");
    let replica = primary.replica();
    let mut stream = Stream::of(&primary);
    owe(&mut client, "late");
    let commands = stream.since(&primary);
    assert_eq!(names(&commands), ["RL.RESTORE"; 3]);
    assert_eq!(records(&commands)[2].1.state, Dump::of(&mut client, "late").state());
    caught_up(&primary, &replica);
    let mut other = replica.connect();
    assert_eq!(other.dataset_digest(), client.dataset_digest());
    for key in ["early", "late"] {
        Sight::of(&mut client, key).assert_seen_in(&Sight::of(&mut other, key), key);
    }
    let _: () = other.line("REPLICAOF NO ONE");
    assert_owing(&mut other, "late");
}

#[test]
fn a_booking_that_would_create_a_key_is_out_of_memory_and_one_that_would_not_is_answered() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    client.reply("RL.TAKE key 1 1/h");
    assert_eq!(client.line::<String>("CONFIG SET maxmemory 1"), "OK");
    assert_eq!(client.error(&["RL.RESERVE", "new", "1", "1/h", "1", "1d"]), OOM);
    assert!(!client.exists("new"));
    assert_eq!(client.reply("RL.RESERVE key 1 1/h 1 1d").allowed, 1);
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    const ARITY: &str = "ERR wrong number of arguments for 'RL.RESERVE' command";
    const CAPACITY: &str = "ERR capacity must be an integer from 0 to 9007199254740991 tokens";
    const COST: &str = "ERR cost must be an integer from 0 to 9007199254740991 tokens";
    const MAX_WAIT: &str = "ERR max_wait must be a number of seconds, or a number with a unit (ms, s, m, h, d), up to \
        9007199254740991 microseconds";
    let server = Server::start();
    let mut client = server.connect();
    let _: Value = client.line("SET string 5");
    for line in ["RL.RESERVE", "RL.RESERVE key 10 5 1", "RL.RESERVE key 10 5 1 1 1", "RL.RESERVE key 10 5"] {
        assert_eq!(client.error(&line.split(' ').collect::<Vec<_>>()), ARITY, "{line}");
    }
    assert_eq!(client.error(&["RL.RESERVE", "key", "x", "x", "x", "x"]), CAPACITY);
    assert!(client.error(&["RL.RESERVE", "key", "10", "x", "x", "x"]).starts_with("ERR rate must be "));
    for cost in ["x", "", "-1", "1.0", "9007199254740992"] {
        assert_eq!(client.error(&["RL.RESERVE", "key", "10", "5", cost, "x"]), COST, "{cost}");
    }
    for wait in
        ["", "x", "s", "-1", "+1", "1e3", "1 s", "1S", "1us", "01", "1.", ".5", "inf", "9007199254.740992", "104250d"]
    {
        assert_eq!(client.error(&["RL.RESERVE", "key", "10", "5", "1", wait]), MAX_WAIT, "{wait}");
    }
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(client.error(&["RL.RESERVE", "string", "10", "5", "1", "1"]), wrong_type);
    assert_eq!(client.line::<i64>("DBSIZE"), 1);
}
