//! `RL.TAKE`: what people meet daily. A limit of one token an hour makes time stand still.

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Server, held, now_us};

const HOUR_MS: i64 = 3_600_000;
const HOUR_US: u64 = 3_600_000_000;

#[test]
fn two_clients_share_one_bucket() {
    let server = Server::start();
    let mut clients = [server.connect(), server.connect()];
    let mut replies = Vec::new();
    for turn in 0..12 {
        replies.push(clients[turn % 2].reply("RL.TAKE shared 10 5"));
    }
    let denied: Vec<_> = replies.iter().filter(|reply| reply.allowed == 0).collect();
    assert_eq!(denied.len(), 2, "{replies:?}");
    assert_eq!(denied[0].remaining, 0);
    assert!((1..=200).contains(&denied[0].retry_after_ms), "{denied:?}");
    assert_eq!(clients[0].reply("RL.TAKE other 10 5").remaining, 9);

    sleep(Duration::from_secs(1));
    let again: i64 = (0..8).map(|turn| clients[turn % 2].reply("RL.TAKE shared 10 5").allowed).sum();
    assert!((5..=6).contains(&again), "{again} of 8 after a second at 5/s");
}

#[test]
fn takes_the_cost() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 9 1/h 5"), [1, 4, 0, 5 * HOUR_MS, 9]);
}

#[test]
fn denies_when_cost_exceeds_remaining_and_takes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 9 1/h 5").remaining, 4);
    for _ in 0..3 {
        let denied = client.reply("RL.TAKE key 9 1/h 5");
        assert_eq!((denied.allowed, denied.remaining, denied.limit), (0, 4, 9));
        assert!((1..=HOUR_MS).contains(&denied.retry_after_ms), "{denied:?}");
        assert!((4 * HOUR_MS..=5 * HOUR_MS).contains(&denied.reset_after_ms), "{denied:?}");
    }
    let allowed = client.reply("RL.TAKE key 9 1/h 4");
    assert_eq!((allowed.allowed, allowed.remaining), (1, 0));
}

#[test]
fn a_cost_of_the_whole_capacity_passes_once() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 10 1/h 10"), [1, 0, 0, 10 * HOUR_MS, 10]);
    let denied = client.reply("RL.TAKE key 10 1/h 10");
    assert_eq!((denied.allowed, denied.remaining), (0, 0));
    assert!((9 * HOUR_MS..=10 * HOUR_MS).contains(&denied.retry_after_ms), "{denied:?}");
}

#[test]
fn a_cost_above_the_capacity_never_passes_and_creates_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 10 1/h 11"), [0, 10, -1, 0, 10]);
    assert!(!client.exists("key"));

    assert_eq!(client.five("RL.TAKE key 10 0"), [1, 9, 0, -1, 10]);
    assert_eq!(client.five("RL.TAKE key 10 0 11"), [0, 9, -1, -1, 10]);
    assert_eq!(client.five("RL.TAKE key 10 0 9007199254740991"), [0, 9, -1, -1, 10]);
    assert_eq!(client.five("RL.TAKE key 10 0 9"), [1, 0, 0, -1, 10]);
}

#[test]
fn a_capacity_of_zero_denies_everything() {
    let server = Server::start();
    let mut client = server.connect();
    for rate in ["0", "5", "1000000", "1/d"] {
        assert_eq!(client.five(&format!("RL.TAKE key 0 {rate}")), [0, 0, -1, 0, 0], "{rate}");
        assert_eq!(client.five(&format!("RL.TAKE key 0 {rate} 7")), [0, 0, -1, 0, 0], "{rate}");
        assert!(!client.exists("key"));
    }
}

#[test]
fn a_rate_of_zero_grants_the_capacity_once() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 3 0"), [1, 2, 0, -1, 3]);
    assert_eq!(client.five("RL.TAKE key 3 0"), [1, 1, 0, -1, 3]);
    assert_eq!(client.five("RL.TAKE key 3 0 2"), [0, 1, -1, -1, 3]);
    assert_eq!(client.five("RL.TAKE key 3 0"), [1, 0, 0, -1, 3]);
    assert_eq!(client.five("RL.TAKE key 3 0"), [0, 0, -1, -1, 3]);
    assert_eq!(client.line::<i64>("DEL key"), 1);
    assert_eq!(client.five("RL.TAKE key 3 0"), [1, 2, 0, -1, 3]);
}

#[test]
fn a_cost_of_zero_tells_where_the_client_stands_and_writes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.TAKE key 10 1/h 0"), [1, 10, 0, 0, 10]);
    assert!(!client.exists("key"));

    client.reply("RL.TAKE key 10 1/h 10");
    let (digest, expiry) = (client.digest("key"), client.expiry("key"));
    let reply = client.reply("RL.TAKE key 10 1/h 0");
    assert_eq!((reply.allowed, reply.remaining, reply.retry_after_ms, reply.limit), (1, 0, 0, 10));
    assert!((9 * HOUR_MS..=10 * HOUR_MS).contains(&reply.reset_after_ms), "{reply:?}");
    assert_eq!((client.digest("key"), client.expiry("key")), (digest, expiry));
}

#[test]
fn a_denial_changes_no_bit() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 8");
    let (digest, expiry, dump) = (client.digest("key"), client.expiry("key"), client.line::<Vec<u8>>("DUMP key"));
    for cost in [3, 10, 11] {
        assert_eq!(client.reply(&format!("RL.TAKE key 10 1/h {cost}")).allowed, 0);
        assert_eq!((client.digest("key"), client.expiry("key")), (digest.clone(), expiry));
        assert_eq!(client.line::<Vec<u8>>("DUMP key"), dump);
    }
}

#[test]
fn refills_at_the_rate_and_keeps_fractions() {
    let server = Server::start();
    let mut client = server.connect();
    // Two and a half hours after it was emptied there are two tokens, and half an hour to go for the third.
    client.put("key", held(10, "1/h", (0, 0), now_us() - HOUR_US * 5 / 2));
    let allowed = client.reply("RL.TAKE key 10 1/h 2");
    assert_eq!((allowed.allowed, allowed.remaining), (1, 0));
    let denied = client.reply("RL.TAKE key 10 1/h");
    assert_eq!(denied.allowed, 0);
    assert!((HOUR_MS * 5 / 12..=HOUR_MS / 2).contains(&denied.retry_after_ms), "{denied:?}");
}

#[test]
fn never_holds_more_than_the_capacity() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(10, "1/h", (3, 0), now_us() - 1_000 * HOUR_US));
    assert_eq!(client.five("RL.TAKE key 10 1/h"), [1, 9, 0, HOUR_MS, 10]);
}

#[test]
fn a_clock_that_was_set_back_locks_nobody_out_and_admits_nothing_extra() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(2, "1/h", (1, 0), now_us() + 48 * HOUR_US));
    let allowed = client.reply("RL.TAKE key 2 1/h");
    assert_eq!((allowed.allowed, allowed.remaining), (1, 0));

    client.put("key", held(2, "20", (0, 0), now_us() + 48 * HOUR_US));
    let denied = client.reply("RL.TAKE key 2 20");
    assert_eq!((denied.allowed, denied.remaining, denied.retry_after_ms), (0, 0, 50));
    sleep(Duration::from_millis(50));
    assert_eq!(client.reply("RL.TAKE key 2 20").allowed, 1);
}

#[test]
fn any_bytes_are_a_key() {
    let server = Server::start();
    let mut client = server.connect();
    let long = vec![b'k'; 1 << 20];
    let keys: [&[u8]; 8] = [b"", b" ", b"\0", b"a\0b", b"a\0c", b"\xff\xfe", b"\r\n$5\r\nhello", &long];
    for key in keys {
        let first: [i64; 5] = client.ask(&[b"RL.TAKE", key, b"2", b"0"]);
        assert_eq!(first, [1, 1, 0, -1, 2], "{key:.20?}");
    }
    for key in keys {
        let second: [i64; 5] = client.ask(&[b"RL.TAKE", key, b"2", b"0"]);
        assert_eq!(second, [1, 0, 0, -1, 2], "{key:.20?}");
    }
    assert_eq!(client.line::<usize>("DBSIZE"), keys.len());
}
