//! `RL.RESTORE` with records that are valid, or were: each is refused, or is a state like any other.

use rl_core::codec::{Record, RecordedExpiry, State, decode_record, encode_record};
use rl_core::{Bucket, Held, Limit, Rate, Tokens, UnixMicros, UnixMillis};

use crate::support::Server;
use crate::support::dump::{Dump, assert_no_crash};
use crate::support::hostile::{accepted, answers, use_key};
use crate::support::random::Random;

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
        assert_eq!(taken, decode_record::<State>(payload).is_ok(), "{payload:02x?}");
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
