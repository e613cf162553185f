//! Bytes that are not a state: whatever `RESTORE` and `RL.RESTORE` are given, it is refused or it is a state, and the
//! server goes on.

use redis::{ConnectionLike, Pipeline, Value};
use rl_core::codec::{Record, RecordedExpiry, decode, decode_record, encode_record};
use rl_core::{Bucket, Held, Limit, Rate, Tokens, UnixMicros, UnixMillis};

use crate::support::dump::{Dump, assert_no_crash, damaged};
use crate::support::random::Random;
use crate::support::specimens::{keys, write_all};
use crate::support::{Client, Server, held};

/// The answers to many commands, errors among them.
fn answers(client: &mut Client, pipeline: &Pipeline) -> Vec<Value> {
    client.0.req_packed_commands(&pipeline.get_packed_pipeline(), 0, pipeline.len()).unwrap()
}

/// Whether the command was carried out; panics if it was refused with anything but `refusals`.
fn accepted(answer: &Value, refusals: &[&str]) -> bool {
    match answer {
        Value::Okay => true,
        Value::ServerError(error) => {
            let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
            assert!(refusals.contains(&text.as_str()), "{text}");
            false
        }
        other => panic!("{other:?}"),
    }
}

/// Asks all that can be asked of a key, whose value must be one that the server takes back.
fn use_key(client: &mut Client, key: &str) -> Vec<u8> {
    let dump = Dump::of(client, key);
    let _: () = client.ask(&[b"RESTORE".as_slice(), b"again", b"0", dump.bytes(), b"REPLACE"]);
    assert_eq!(Dump::of(client, "again").bytes(), dump.bytes());
    let peek: [i64; 5] = client.ask(&["RL.PEEK", key]);
    assert!((0..=peek[4]).contains(&peek[1]), "{peek:?} {dump:02x?}");
    let info: Vec<(String, String)> = client.ask(&["RL.INFO", key]);
    assert_eq!(info.len(), 8);
    let take: [i64; 5] = client.ask(&["RL.TAKE", key, "10", "5/h", "3"]);
    assert!((0..=10).contains(&take[1]), "{take:?} {dump:02x?}");
    dump.value().to_vec()
}

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
            assert_eq!(taken, decode(value).is_ok(), "{value:02x?}");
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
            let answer = client.try_ask::<String>(&[b"RESTORE".as_slice(), b"damaged", b"0", damaged.bytes(), b"REPLACE"]);
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
        (with(2, 2), "ERR payload must be of a kind that this module knows"),
        (with(good.len() - 4, 0), "ERR payload must hold numbers within their ranges"),
        (with(3, 17), "ERR payload must hold numbers within their ranges"),
        (vec![b'x'; 1 << 20], malformed),
    ] {
        let answer = client.error(&[b"RL.RESTORE".as_slice(), b"key", &payload]);
        assert_eq!(answer, error, "{:02x?}", &payload[..payload.len().min(64)]);
    }
    assert_eq!(client.line::<i64>("EXISTS key"), 0);
}

/// A valid record, or what is left of one.
fn some_record(random: &mut Random) -> Vec<u8> {
    const MAX: u64 = (1 << 53) - 1;
    let rate = Rate::new(random.biased(MAX).into(), random.biased(MAX).max(1).into()).unwrap();
    let limit = Limit::new(Tokens::new(random.biased(MAX)).unwrap(), rate);
    let tokens = Tokens::new(random.biased(limit.capacity().get())).unwrap();
    let level = limit.shares(tokens) - i128::from(random.biased(rate.period_us().get()));
    let state = Held { bucket: Bucket { level, last_change: UnixMicros::saturating(random.biased(MAX)) }, limit };
    let expiry = match random.below(3) {
        0 => RecordedExpiry::None,
        1 => RecordedExpiry::Unstated,
        _ => RecordedExpiry::At(UnixMillis::saturating(random.biased(MAX).into())),
    };
    let mut record = encode_record(&Record { expiry, state }).as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = random.index(record.len());
        match random.below(4) {
            0 => record[at] ^= 1 << random.below(8),
            1 => record[at] = random.below(256) as u8,
            2 => record.insert(at, random.below(256) as u8),
            _ => record.truncate(at + 1),
        }
    }
    record
}

#[test]
fn random_records_are_refused_or_states_that_survive_a_reload() {
    let mut server = Server::start();
    let mut client = server.connect();
    let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    let mut random = Random::seeded();
    let payloads: Vec<_> = (0..10_000).map(|_| some_record(&mut random)).collect();
    let mut pipeline = redis::pipe();
    for (at, payload) in payloads.iter().enumerate() {
        pipeline.cmd("RL.RESTORE").arg(at % 500).arg(payload);
    }
    let refusals = [
        "ERR payload must be a record of RL.RESTORE: it is malformed",
        "ERR payload must be a whole record of RL.RESTORE: it ends too early",
        "ERR payload must be of a version that this module knows: it was written by a newer one",
        "ERR payload must be of a kind that this module knows",
        "ERR payload must hold numbers within their ranges",
    ];
    let mut states = 0;
    for (payload, answer) in payloads.iter().zip(answers(&mut client, &pipeline)) {
        let taken = accepted(&answer, &refusals);
        assert_eq!(taken, decode_record(payload).is_ok(), "{payload:02x?}");
        states += u32::from(taken);
    }
    assert!((1_000..9_000).contains(&states), "{states} of 10000 are states");

    // Those that have not expired are used, and put back as they were.
    let mut kept: Vec<(String, Dump)> = Vec::new();
    for key in (0..500).map(|key| key.to_string()) {
        if client.ask::<i64>(&["EXISTS", &key]) == 1 {
            kept.push((key.clone(), Dump::of(&mut client, &key)));
            use_key(&mut client, &key);
        }
    }
    let _: () = client.line("FLUSHALL");
    for (key, dump) in &kept {
        let _: () = client.ask(&[b"RESTORE".as_slice(), key.as_bytes(), b"0", dump.bytes()]);
    }
    let digest = client.dataset_digest();
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(client.dataset_digest(), digest);
    assert_eq!(client.line::<usize>("DBSIZE"), kept.len());
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}
