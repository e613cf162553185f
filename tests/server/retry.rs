//! `retry_after_ms` is exact, whatever the rate: denied before, allowed at it.
//!
//! No clock here can be stopped, so both are compared as ranges: the server read its clock somewhere between the moment
//! before the call and the moment after its answer. The bucket is put into the state in which the wait is short.

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Client, Reply, Server, Timed, held, now_us};

/// Rate, capacity, cost; tens of milliseconds short of the cost.
const BUCKETS: [(&str, u64, u64); 22] = [
    ("1/d", 1, 1),
    ("1/d", 10, 7),
    ("5/86400", 5, 5),
    ("5.787037037037037e-05", 5, 1),
    ("10/d", 100, 1),
    ("1/h", 3, 2),
    ("5/15m", 5, 1),
    ("1/m", 1, 1),
    ("100/m", 100, 1),
    ("0.5", 1, 1),
    ("1", 1, 1),
    ("1.6666666666666667", 5, 1),
    ("5", 10, 3),
    ("1000000/d", 1_000_000, 1),
    ("7/13s", 20, 20),
    ("60", 60, 2),
    ("997", 1_000, 50),
    ("1000", 1_000, 50),
    ("65536", 1_000_000, 3_000),
    ("300000", 300_000, 20_000),
    ("700000", 700_000, 50_000),
    ("1000000", 1_000_000, 60_000),
];

/// Puts the bucket into `key` as it was at a moment ago, `wait_us` before it has `cost`; returns when it will have it.
fn put_short(client: &mut Client, key: &str, (rate, capacity, cost): (&str, u64, u64), wait_us: u64) -> u64 {
    let last_change_us = now_us();
    client.put(key, held(capacity, rate, (cost, wait_us), last_change_us));
    last_change_us + wait_us
}

#[test]
fn a_client_that_waits_as_told_and_is_alone_always_passes() {
    let server = Server::start();
    let mut client = server.connect();
    for bucket @ (rate, capacity, cost) in BUCKETS {
        let line = format!("RL.TAKE key {capacity} {rate} {cost}");
        put_short(&mut client, "key", bucket, 20_000);
        let first = client.reply(&line);
        if first.allowed == 0 {
            assert!((1..=20).contains(&first.retry_after_ms), "{bucket:?} {first:?}");
            sleep(wait_of(first));
            assert_eq!(client.reply(&line).allowed, 1, "{bucket:?} {first:?}");
        }
    }
}

#[test]
fn a_denied_client_is_told_the_millisecond_and_passes_in_the_microsecond() {
    let server = Server::start();
    let mut client = server.connect();
    for bucket @ (rate, capacity, cost) in BUCKETS {
        let line = format!("RL.TAKE key {capacity} {rate} {cost}");
        let due_us = put_short(&mut client, "key", bucket, 12_345);
        loop {
            let answer = client.timed(&line);
            check(&answer, due_us, &line);
            if answer.reply.allowed == 1 {
                break;
            }
        }
    }
}

/// Holds an answer against the time at which the bucket had what was asked for.
fn check(Timed { reply, from_us, to_us }: &Timed, due_us: u64, line: &str) {
    let waits = (due_us.saturating_sub(*to_us).div_ceil(1_000)..=due_us.saturating_sub(*from_us).div_ceil(1_000))
        .map(|wait| i64::try_from(wait).unwrap());
    match reply.allowed {
        1 => assert!(*to_us >= due_us, "{line}: allowed {} us early at least: {reply:?}", due_us - to_us),
        _ => assert!(*from_us < due_us, "{line}: denied {} us late at least: {reply:?}", from_us - due_us),
    }
    if reply.allowed == 0 {
        assert!(waits.clone().any(|wait| wait == reply.retry_after_ms), "{line}: not in {waits:?}: {reply:?}");
        assert!(reply.retry_after_ms >= 1, "{line}: {reply:?}");
    } else {
        assert_eq!(reply.retry_after_ms, 0, "{line}");
    }
}

#[test]
fn a_client_that_lives_by_its_waits_gets_what_it_was_promised() {
    let server = Server::start();
    let mut client = server.connect();
    // Nothing injected: fast rates, emptied by asking.
    for (rate, cost) in [("50", 1), ("333", 10), ("100000", 2_000), ("1000000", 20_000)] {
        let line = format!("RL.TAKE {rate} {cost} {rate} {cost}");
        assert_eq!(client.reply(&line).allowed, 1, "{line}");
        for _ in 0..5 {
            let reply = client.reply(&line);
            sleep(wait_of(reply));
            if reply.allowed == 0 {
                assert_eq!(client.reply(&line).allowed, 1, "{line}");
            }
        }
    }
}

#[test]
fn a_wait_for_a_large_cost_is_exact_over_months() {
    let server = Server::start();
    let mut client = server.connect();
    // Ninety days less a quarter of an hour ago the bucket of ninety was emptied; all of it is due in that quarter.
    let last_change_us = now_us() - (90 * 24 * 4 - 1) * 900_000_000;
    client.put("key", held(90, "1/d", (0, 0), last_change_us));
    check(&client.timed("RL.TAKE key 90 1/d 90"), last_change_us + 90 * 86_400_000_000, "ninety days");
    let last_change_us = now_us() - 90 * 86_400_000_000;
    client.put("key", held(90, "1/d", (0, 0), last_change_us));
    assert_eq!(client.reply("RL.TAKE key 90 1/d 90").allowed, 1);
}

fn wait_of(reply: Reply) -> Duration {
    Duration::from_millis(u64::try_from(reply.retry_after_ms).unwrap())
}
