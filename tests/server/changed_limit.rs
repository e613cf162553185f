//! Callers who ask for another limit than the one that a key is under.

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Server, held, now_us};

const HOUR_MS: i64 = 3_600_000;
const HOUR_US: u64 = 3_600_000_000;

#[test]
fn a_raised_capacity_mints_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 10 1/h").remaining, 9);
    let raised = client.reply("RL.TAKE key 1000 1/h");
    assert_eq!((raised.allowed, raised.remaining, raised.limit), (1, 8, 1000));
    assert!((991 * HOUR_MS..=992 * HOUR_MS).contains(&raised.reset_after_ms), "{raised:?}");
}

#[test]
fn two_callers_who_disagree_share_what_is_there_however_often_they_flap() {
    let server = Server::start();
    let mut client = server.connect();
    let limits = ["10 1/h", "1000 1/h", "10 2/h", "50 1/d", "10 0", "12 5/7h"];
    let allowed: i64 = (0..60).map(|turn| client.reply(&format!("RL.TAKE key {}", limits[turn % 6])).allowed).sum();
    assert_eq!(allowed, 10);
}

#[test]
fn a_cut_capacity_caps_for_good() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 100 1/h").remaining, 99);
    assert_eq!(client.five("RL.TAKE key 10 1/h"), [1, 9, 0, HOUR_MS, 10]);
    assert_eq!(client.reply("RL.TAKE key 100 1/h").remaining, 8);
}

#[test]
fn a_capacity_of_zero_on_a_live_key_takes_nothing_from_it() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 10 0 4").remaining, 6);
    assert_eq!(client.five("RL.TAKE key 0 0"), [0, 0, -1, 0, 0]);
    assert_eq!(client.five("RL.TAKE key 10 0"), [1, 5, 0, -1, 10]);
}

#[test]
fn looking_and_asking_for_too_much_do_not_bring_a_limit_into_force() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 100 1/h");
    let digest = client.digest("key");
    for line in ["RL.PEEK key 10 1/h", "RL.TAKE key 10 1/h 0", "RL.TAKE key 10 1/h 11", "RL.PEEK key 10 1/h 11"] {
        assert_eq!(client.reply(line).remaining, 10, "{line}");
        assert_eq!(client.digest("key"), digest, "{line}");
    }
}

#[test]
fn a_changed_rate_keeps_the_tokens() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 10 1/h 3").remaining, 7);
    for (rate, remaining) in [("1/d", 6), ("7/13h", 5), ("0.000001", 4), ("1/9007199254740.991ms", 3), ("0", 2)] {
        let reply = client.reply(&format!("RL.TAKE key 10 {rate}"));
        assert_eq!((reply.allowed, reply.remaining), (1, remaining), "{rate}");
    }
}

#[test]
fn time_up_to_a_change_counts_at_the_rate_in_force_until_then() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(100, "1/h", (0, 0), now_us() - 5 * HOUR_US - HOUR_US / 2));
    // Five hours at one an hour, not at a thousand.
    assert_eq!(client.reply("RL.TAKE key 100 1000/h 0").remaining, 5);
    client.put("key", held(100, "2/h", (0, 0), now_us() - 5 * HOUR_US - HOUR_US / 4));
    assert_eq!(client.reply("RL.TAKE key 100 0").remaining, 9);
}

#[test]
fn an_emptied_bucket_of_rate_zero_comes_back_under_a_raised_rate() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 1 0"), [1, 0, 0, -1, 1]);
    assert_eq!(client.five("RL.TAKE key 1 10"), [0, 0, 100, 100, 1]);
    sleep(Duration::from_millis(100));
    assert_eq!(client.reply("RL.TAKE key 1 10").allowed, 1);
}

#[test]
fn a_denial_under_a_raised_limit_tells_the_true_wait() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 5 1/h 5").remaining, 0);
    // Until this call the bucket filled at one an hour, from it on at twenty a second.
    let denied = client.reply("RL.TAKE key 5 20");
    assert_eq!((denied.allowed, denied.remaining), (0, 0));
    assert!((40..=50).contains(&denied.retry_after_ms), "{denied:?}");
    sleep(Duration::from_millis(denied.retry_after_ms as u64));
    assert_eq!(client.reply("RL.TAKE key 5 20").allowed, 1);
}

#[test]
fn a_denial_under_another_limit_takes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 10 1/h 7").remaining, 3);
    for limit in ["20 1/h", "10 1/d", "20 0", "10 1/h"] {
        let denied = client.reply(&format!("RL.TAKE key {limit} 4"));
        assert_eq!((denied.allowed, denied.remaining), (0, 3), "{limit}");
    }
}
