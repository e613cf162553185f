//! Bytes that are not a state: whatever `RESTORE` and `RL.RESTORE` are given, it is refused or it is a state, and the
//! server goes on.

use rl_core::Held;
use rl_core::codec::{Record, RecordedExpiry, decode, encode_record};

use crate::support::dump::{Dump, assert_no_crash, damaged};
use crate::support::hostile::{accepted, answers, use_key};
use crate::support::specimens::{keys, write_all};
use crate::support::{Server, held};

#[test]
fn a_damaged_value_is_refused_or_a_state() {
    let mut server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    let mut accepted_ones = 0;
    for key in keys() {
        let dump = Dump::of(&mut client, key);
        let values: Vec<_> = damaged(dump.value()).collect();
        let mut pipeline = redis::pipe();
        for (at, value) in values.iter().enumerate() {
            let damaged = dump.with_value(value);
            pipeline.cmd("RESTORE").arg(format!("damaged:{at}")).arg(0).arg(damaged.bytes()).arg("REPLACE");
        }
        for (at, answer) in answers(&mut client, &pipeline).iter().enumerate() {
            let value = &values[at];
            let taken = accepted(answer, &["ERR Bad data format"]);
            assert_eq!(taken, decode::<Held>(value).is_ok(), "{value:02x?}");
            if taken {
                assert_eq!(use_key(&mut client, &format!("damaged:{at}")), *value);
                accepted_ones += 1;
            }
        }
    }
    assert!(accepted_ones > 100, "only {accepted_ones} damaged values are states");
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}

#[test]
fn a_damaged_frame_is_refused_or_a_state() {
    let mut server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    for key in ["fresh", "huge:emptied", "once"] {
        let dump = Dump::of(&mut client, key);
        // Not the first byte: another type is another type's decoder.
        for bit in 8..dump.bits() {
            let damaged = dump.with_flipped_bit(bit);
            let answer =
                client.try_ask::<String>(&[b"RESTORE".as_slice(), b"damaged", b"0", damaged.bytes(), b"REPLACE"]);
            if answer.is_ok() {
                use_key(&mut client, "damaged");
            }
        }
    }
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}

#[test]
fn a_payload_of_a_newer_version_is_refused_and_the_log_says_why() {
    let server = Server::start();
    let mut client = server.connect();
    let _: [i64; 5] = client.line("RL.TAKE key 10 5/h");
    let dump = Dump::of(&mut client, "key");
    let with = |at: usize, byte: u8| {
        let mut value = dump.value().to_vec();
        value[at] = byte;
        dump.with_value(&value)
    };
    for (newer, why) in [
        (with(0, 2), "a bucket's state has version 2, and 1 is the newest known"),
        (with(1, 9), "a bucket's state is of the unknown kind 9"),
        (dump.with_encoding_version(2), "it was written by a newer version of librl"),
    ] {
        let answer = client.error(&[b"RESTORE".as_slice(), b"newer", b"0", newer.bytes()]);
        assert_eq!(answer, "ERR Bad data format", "{why}");
        assert!(server.log().contains(&format!("cannot load: {why}")), "{why}\n{}", server.log());
    }
    assert_eq!(client.line::<i64>("EXISTS newer"), 0);
}

#[test]
fn a_record_that_is_none_is_refused_with_what_is_wrong_with_it() {
    let server = Server::start();
    let mut client = server.connect();
    let state = held(10, "5", (2, 100_000), 1_700_000_000_000_000);
    let record = encode_record(&Record { expiry: RecordedExpiry::None, state });
    let good = record.as_bytes();
    let with = |at: usize, byte: u8| {
        let mut record = good.to_vec();
        record[at] = byte;
        record
    };
    let malformed = "ERR payload must be a record of RL.RESTORE: it is malformed";
    let truncated = "ERR payload must be a whole record of RL.RESTORE: it ends too early";
    for (payload, error) in [
        (Vec::new(), truncated),
        (good[..good.len() - 1].to_vec(), truncated),
        ([good, b"\0"].concat(), malformed),
        (with(0, 7), malformed),
        (with(1, 2), "ERR payload must be of a version that this module knows: it was written by a newer one"),
        (with(2, 9), "ERR payload must be of a kind that this module knows"),
        (with(good.len() - 4, 0), "ERR payload must hold numbers within their ranges"),
        (with(3, 17), "ERR payload must hold numbers within their ranges"),
        (vec![b'x'; 1 << 20], malformed),
    ] {
        let answer = client.error(&[b"RL.RESTORE".as_slice(), b"key", &payload]);
        assert_eq!(answer, error, "{:02x?}", &payload[..payload.len().min(64)]);
    }
    assert_eq!(client.line::<i64>("EXISTS key"), 0);
}
