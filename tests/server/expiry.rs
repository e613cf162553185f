//! When a key goes: once its bucket is full, and never before.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Client, Reply, Server, Timed, eventually, held, now_us};

/// What somebody else does to a key's expiry is seen by the takes that come later than this.
const UNTIL_SEEN: Duration = Duration::from_millis(3);

/// Holds `expiry_ms` against the bounds: when the bucket is full, rounded up; a second and an eighth of the refill time
/// later. The reply says how long until then, rounded up by less than a millisecond.
fn check(Timed { reply, from_us, to_us }: Timed, expiry_ms: i64, refill_ms: i64, line: &str) {
    let reset_us = reply.reset_after_ms * 1_000;
    let (from_us, to_us) = (i64::try_from(from_us).unwrap(), i64::try_from(to_us).unwrap());
    let earliest = (from_us + reset_us - 1_000) / 1_000;
    let latest = (to_us + reset_us) / 1_000 + 1 + 1_000 + refill_ms / 8;
    assert!((earliest..=latest).contains(&expiry_ms), "{line}: {expiry_ms} not in {earliest}..={latest}: {reply:?}");
}

fn take_and_check(client: &mut Client, line: &str, refill_ms: i64) -> Reply {
    let answer = client.timed(line);
    let expiry = client.expiry(line.split(' ').nth(1).unwrap());
    assert_eq!(answer.reply.allowed, 1, "{line}");
    check(answer, expiry, refill_ms, line);
    answer.reply
}

#[test]
fn lies_within_its_bounds_whatever_the_limit() {
    const LIMITS: [(&str, i64); 8] = [
        ("10 5", 2_000),
        ("2 1/h", 7_200_000),
        ("1 1/d", 86_400_000),
        ("1000000 1000000/d", 86_400_000),
        ("5 5/15m", 900_000),
        ("1000 7/13s", 1_857_142),
        ("100000000 1000000", 100_000),
        ("9007199254740 1000000000", 9_007_199),
    ];
    let server = Server::start();
    let mut client = server.connect();
    for (row, (limit, refill_ms)) in LIMITS.into_iter().enumerate() {
        let capacity: i64 = limit.split(' ').next().unwrap().parse().unwrap();
        for cost in [1, 1, (capacity / 2).max(1)] {
            if client.reply(&format!("RL.PEEK key:{row} {limit} {cost}")).allowed == 1 {
                take_and_check(&mut client, &format!("RL.TAKE key:{row} {limit} {cost}"), refill_ms);
            }
        }
        assert!(client.expiry(&format!("key:{row}")) > 0, "{limit}");
    }
}

#[test]
fn the_key_is_gone_once_the_bucket_is_full_and_there_until_then() {
    let server = Server::start();
    let mut client = server.connect();
    let taken = client.timed("RL.TAKE key 2 10 2");
    assert_eq!(taken.reply.reset_after_ms, 200);
    while now_us() < taken.from_us + 180_000 {
        let there = client.exists("key");
        assert!(there || now_us() >= taken.from_us + 200_000, "gone before it was full");
        sleep(Duration::from_millis(5));
    }
    eventually("the key is gone", || !client.exists("key"));
    assert!(now_us() >= taken.from_us + 200_000);
    assert_eq!(client.five("RL.TAKE key 2 10"), [1, 1, 0, 100, 2]);
}

#[test]
fn a_key_whose_bucket_was_long_full_goes_by_the_next_take_too() {
    let server = Server::start();
    let mut client = server.connect();
    // No expiry was restored: as if a replica had been cut off for a day.
    client.put("key", held(10, "5", (0, 0), now_us() - 86_400_000_000));
    assert_eq!(client.expiry("key"), -1);
    take_and_check(&mut client, "RL.TAKE key 10 5", 2_000);
    assert!(client.line::<i64>("PTTL key") > 0);
}

#[test]
fn an_expiry_that_somebody_else_has_set_is_put_right_by_the_next_take() {
    let server = Server::start();
    let mut client = server.connect();
    for meddle in ["PERSIST key", "EXPIRE key 1", "EXPIRE key 1000000000", "PEXPIRE key 5000"] {
        take_and_check(&mut client, "RL.TAKE key 1000 10/h", 360_000_000);
        assert_eq!(client.line::<i64>(meddle), 1, "{meddle}");
        sleep(UNTIL_SEEN);
        take_and_check(&mut client, "RL.TAKE key 1000 10/h", 360_000_000);
    }
}

#[test]
fn an_expiry_that_somebody_else_has_set_between_two_takes_is_put_right_by_a_later_one() {
    let server = Server::start();
    let mut client = server.connect();
    let take = "RL.TAKE key 1000 10/h";
    for meddle in ["PERSIST key", "EXPIRE key 1", "EXPIRE key 1000000000", "PEXPIRE key 5000"] {
        client.transaction::<Vec<redis::Value>>(&[take, meddle, take]);
        sleep(UNTIL_SEEN);
        take_and_check(&mut client, take, 360_000_000);
    }
}

#[test]
fn belongs_to_the_key_and_not_to_the_place_where_another_was() {
    let server = Server::start();
    let mut client = server.connect();
    // Each in one go, so that no time passes where the server's clock stands still meanwhile.
    for [made, gone, taken] in [
        ["RL.TAKE other 1000 1/d 900", "DEL other", "RL.TAKE key 10 1/h"],
        ["RL.TAKE other 10 1/h", "RENAME other key", "RL.TAKE key 10 1/h"],
        ["RL.TAKE other 10 0", "COPY other key", "RL.TAKE key 10 1/h"],
        ["RL.TAKE other 10 1/h", "COPY other key", "RL.TAKE key 10 1/h"],
        ["RL.TAKE key 10 1/d", "PERSIST key", "DEL key"],
    ] {
        client.line::<i64>("DEL key other");
        client.transaction::<Vec<redis::Value>>(&[made, made, gone, taken]);
        take_and_check(&mut client, "RL.TAKE key 10 1/h 2", 36_000_000);
    }
}

#[test]
fn a_denial_leaves_the_expiry_alone() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 1/h 2");
    let expiry = client.expiry("key");
    for _ in 0..3 {
        assert_eq!(client.reply("RL.TAKE key 2 1/h").allowed, 0);
        assert_eq!(client.expiry("key"), expiry);
        sleep(UNTIL_SEEN);
    }
    assert_eq!(client.line::<i64>("PEXPIREAT key 9000000000000"), 1);
    sleep(UNTIL_SEEN);
    assert_eq!(client.reply("RL.TAKE key 2 1/h").allowed, 0);
    assert_eq!(client.expiry("key"), 9_000_000_000_000);
}

#[test]
fn a_bucket_of_rate_zero_has_none_and_leaves_one_alone() {
    let server = Server::start();
    let mut client = server.connect();
    for left in [9, 8] {
        assert_eq!(client.five("RL.TAKE key 10 0"), [1, left, 0, -1, 10]);
        assert_eq!(client.expiry("key"), -1);
        sleep(UNTIL_SEEN);
    }
    assert_eq!(client.line::<i64>("PEXPIREAT key 9000000000000"), 1);
    for left in [7, 6] {
        sleep(UNTIL_SEEN);
        assert_eq!(client.five("RL.TAKE key 10 0"), [1, left, 0, -1, 10]);
        assert_eq!(client.expiry("key"), 9_000_000_000_000);
    }
    // A larger bucket that does not refill either is no reason to touch it.
    assert_eq!(client.five("RL.TAKE key 20 0"), [1, 5, 0, -1, 20]);
    assert_eq!(client.expiry("key"), 9_000_000_000_000);
}

#[test]
fn goes_when_the_rate_becomes_zero_and_comes_back_with_a_rate() {
    let server = Server::start();
    let mut client = server.connect();
    take_and_check(&mut client, "RL.TAKE key 10 1/h", 36_000_000);
    assert_eq!(client.reply("RL.TAKE key 10 0").remaining, 8);
    assert_eq!(client.expiry("key"), -1);
    take_and_check(&mut client, "RL.TAKE key 10 1/h", 36_000_000);
    // A denial brings the new limit into force, and so its expiry.
    assert_eq!(client.reply("RL.TAKE key 10 0 8").allowed, 0);
    assert_eq!(client.expiry("key"), -1);
    let denied = client.timed("RL.TAKE key 10 1/h 8");
    assert_eq!((denied.reply.allowed, denied.reply.remaining), (0, 7));
    check(denied, client.expiry("key"), 36_000_000, "a denial under a new limit");
}

#[test]
fn a_key_at_a_fast_rate_is_not_lost_in_the_millisecond_of_its_take() {
    for take in ["RL.TAKE key 1000 1000000 1000", "RL.TAKE key 1 1000000", "RL.TAKE key 7 700000 3"] {
        let server = Server::start();
        let mut client = server.connect();
        // The expiry outlasts the bucket by a second and then has to move: each time it lies close for a while.
        let mut expiries = HashSet::new();
        eventually("the expiry has moved", || {
            for _ in 0..50 {
                let from_us = i64::try_from(now_us()).unwrap();
                // In one go: a bucket that fills in a microsecond may well be gone when it is asked for later.
                let (reply, expiry): ([i64; 5], i64) = client.transaction(&[take, "PEXPIRETIME key"]);
                assert!(expiry * 1_000 > from_us, "{take}: {reply:?}, asked at {from_us} us, expires at {expiry}");
                expiries.insert(expiry);
            }
            expiries.len() > 1
        });
    }
}

#[test]
fn a_busy_key_moves_its_expiry_seldom() {
    let server = Server::start();
    let mut client = server.connect();
    let expiries: HashSet<i64> = (0..100)
        .map(|_| {
            client.reply("RL.TAKE key 1000 1000/h");
            client.expiry("key")
        })
        .collect();
    // A hundred takes of 3.6 s each are 360 s of refill; an eighth of the refill time of an hour is 450 s.
    assert_eq!(expiries.len(), 1, "{expiries:?}");
}
