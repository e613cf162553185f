//! `RL.RESTORE`: whatever the bytes, a state within bounds or an error.

use rl_core::codec::{Record, RecordedExpiry, encode_record};
use rl_core::{Held, UnixMillis};

use crate::support::{Client, Server, held, now_us};

const TRUNCATED: &str = "ERR payload must be a whole record of RL.RESTORE: it ends too early";
const VERSION: &str = "ERR payload must be of a version that this module knows: it was written by a newer one";
const KIND: &str = "ERR payload must be of a kind that this module knows";
const MALFORMED: &str = "ERR payload must be a record of RL.RESTORE: it is malformed";
const RANGE: &str = "ERR payload must hold numbers within their ranges";

fn record(expiry: RecordedExpiry, state: Held) -> Vec<u8> {
    encode_record(&Record { expiry, state }).as_bytes().to_vec()
}

fn restore(client: &mut Client, payload: &[u8]) {
    assert_eq!(client.ask::<String>(&[b"RL.RESTORE", b"key".as_slice(), payload]), "OK");
}

fn refuses(client: &mut Client, payload: &[u8], error: &str) {
    let held = client.digest("held");
    for key in ["fresh", "held"] {
        assert_eq!(client.error(&[b"RL.RESTORE", key.as_bytes(), payload]), error, "{payload:?}");
        assert_eq!((client.line::<i64>("DBSIZE"), client.digest("held")), (1, held.clone()), "{payload:?}");
    }
}

#[test]
fn a_bad_payload_gets_its_exact_error() {
    // Expiry, version, kind, level, last change, capacity, tokens, period: see the codec.
    const PAYLOADS: [(&[u8], &str); 30] = [
        (b"", TRUNCATED),
        (b"\x00", TRUNCATED),
        (b"\x01\x01", TRUNCATED),
        (b"\x01\x01\x01", TRUNCATED),
        (b"\x01\x01\x01\x01", TRUNCATED),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01", TRUNCATED),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01", TRUNCATED),
        (b"\x02\x08\x01", TRUNCATED),
        (b"\x01\x02\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01", VERSION),
        (b"\x01\x00\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01", VERSION),
        (b"\x01\xff\xff", VERSION),
        (b"\x01\x01\x00\x01\x02\x00\x01\x0a\x01\x01\x01\x01", KIND),
        (b"\x01\x01\x06\x01\x02\x00\x01\x0a\x01\x01\x01\x01", KIND),
        (b"\x03\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01", MALFORMED),
        (b"not a payload", MALFORMED),
        // Something behind.
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01\x00", MALFORMED),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01junk", MALFORMED),
        // A zero in front of a number; a fraction that is not reduced.
        (b"\x01\x01\x01\x02\x02\x00\x00\x01\x0a\x01\x01\x01\x01", MALFORMED),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x02\x01\x02", MALFORMED),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x00\x01\x02", MALFORMED),
        // A period of 0.
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x00", RANGE),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x00\x00", RANGE),
        // More than full: 11 of 10.
        (b"\x01\x01\x01\x01\x16\x00\x01\x0a\x01\x01\x01\x01", RANGE),
        // Capacity, tokens, period, last change and expiry of 2^53.
        (b"\x01\x01\x01\x01\x02\x00\x07\x00\x00\x00\x00\x00\x00\x20\x01\x01\x01\x01", RANGE),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x07\x00\x00\x00\x00\x00\x00\x20\x01\x01", RANGE),
        (b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x07\x00\x00\x00\x00\x00\x00\x20", RANGE),
        (b"\x01\x01\x01\x01\x02\x07\x00\x00\x00\x00\x00\x00\x20\x01\x0a\x01\x01\x01\x01", RANGE),
        (b"\x02\x07\x00\x00\x00\x00\x00\x00\x20\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01", RANGE),
        // A number of 17 bytes, and one of 255.
        (b"\x01\x01\x01\x11\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02", RANGE),
        (b"\x01\x01\x01\xff", RANGE),
    ];
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE held 10 1/h");
    restore_is_right(&mut client, b"\x01\x01\x01\x01\x02\x00\x01\x0a\x01\x01\x01\x01");
    for (payload, error) in PAYLOADS {
        refuses(&mut client, payload, error);
    }
}

/// The payload from which those above differ.
fn restore_is_right(client: &mut Client, payload: &[u8]) {
    restore(client, payload);
    assert_eq!(client.reply("RL.PEEK key").limit, 10);
    assert_eq!(client.line::<i64>("DEL key"), 1);
}

#[test]
fn every_shorter_payload_is_refused() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE held 10 1/h");
    let expiry = RecordedExpiry::At(UnixMillis::saturating(9_000_000_000_000));
    let payload = record(expiry, held(9_007_199_254_740_991, "7/13h", (5, 1), now_us()));
    for len in 0..payload.len() {
        refuses(&mut client, &payload[..len], TRUNCATED);
    }
}

#[test]
fn a_changed_bit_is_refused_or_gives_a_bucket_that_works() {
    let server = Server::start();
    let mut client = server.connect();
    let payload = record(RecordedExpiry::None, held(1_000, "7/13h", (5, 1), now_us()));
    for bit in 0..payload.len() * 8 {
        let mut changed = payload.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        match client.try_ask::<String>(&[b"RL.RESTORE", b"key".as_slice(), &changed]) {
            Ok(done) => assert_eq!(done, "OK", "bit {bit}"),
            Err(error) => assert!(error.detail().unwrap().starts_with("payload must "), "bit {bit}: {error}"),
        }
        if client.exists("key") {
            let peek = client.reply("RL.PEEK key");
            assert!((0..=peek.limit).contains(&peek.remaining), "bit {bit}: {peek:?}");
            client.reply("RL.TAKE key 10 5");
            client.line::<i64>("DEL key");
        }
    }
}

#[test]
fn the_expiry_is_as_the_record_says() {
    let server = Server::start();
    let mut client = server.connect();
    let state = held(10, "1/h", (3, 0), now_us());
    let later = |ms| RecordedExpiry::At(UnixMillis::saturating(ms));
    for (expiry, becomes) in [
        (later(9_000_000_000_000), 9_000_000_000_000),
        (RecordedExpiry::Unstated, 9_000_000_000_000),
        (later(9_000_000_000_001), 9_000_000_000_001),
        (RecordedExpiry::None, -1),
        (RecordedExpiry::Unstated, -1),
    ] {
        restore(&mut client, &record(expiry, state));
        assert_eq!(client.expiry("key"), becomes, "{expiry:?}");
        assert_eq!(client.reply("RL.PEEK key").remaining, 3, "{expiry:?}");
    }
    restore(&mut client, &record(later(1), state));
    assert!(!client.exists("key"), "it expired long ago");
}

#[test]
fn restores_the_state_that_was_dumped() {
    let server = Server::start();
    let mut client = server.connect();
    let state = held(10, "7/13h", (3, 12_345), now_us());
    client.put("key", state);
    client.put("copy", held(1, "0", (0, 0), 0));
    client.put("copy", state);
    assert_eq!(client.digest("key"), client.digest("copy"));
    assert_eq!(client.line::<Vec<u8>>("DUMP key"), client.line::<Vec<u8>>("DUMP copy"));
}

/// Redis 8.6 deletes an expired key when it is signalled as modified. Once, the key was still open then, and closing it read
/// memory that had been freed: under load the server crashed. Found by the fuzzer of commands.
#[test]
fn a_state_whose_expiry_has_passed_leaves_the_server_as_it_was() {
    let mut server = Server::start();
    let mut client = server.connect();
    let state = held(10, "5", (2, 0), now_us());
    let payload = record(RecordedExpiry::At(UnixMillis::saturating(1)), state);
    for round in 0..20_000 {
        let key = format!("key:{}", round % 50);
        assert_eq!(client.ask::<String>(&[b"RL.RESTORE".as_slice(), key.as_bytes(), payload.as_slice()]), "OK");
    }
    assert_eq!(client.line::<Option<[i64; 5]>>("RL.PEEK key:1"), None);
    assert!(server.is_alive());
}
