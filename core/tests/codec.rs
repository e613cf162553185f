//! The bytes: invariant 5, every truncation, every flipped bit, every error, and what each version wrote.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use rl_core::codec::{DecodeError, Record, RecordedExpiry, decode, decode_record, encode, encode_record};
use rl_core::{Bucket, Held, Limit, MAX_INTEGER, Rate, Tokens, UnixMicros, UnixMillis};
use support::generate::{held, integer, longest};

fn record() -> impl Strategy<Value = Record> {
    let expiry = prop_oneof![
        Just(RecordedExpiry::Unstated),
        Just(RecordedExpiry::None),
        integer().prop_map(|ms| RecordedExpiry::At(UnixMillis::saturating(u128::from(ms)))),
    ];
    let state = prop_oneof![4 => held(), 1 => longest()];
    (expiry, state).prop_map(|(expiry, state)| Record { expiry, state })
}

fn state_bytes(state: &Held) -> Vec<u8> {
    encode(state).as_bytes().to_vec()
}

fn record_bytes(record: &Record) -> Vec<u8> {
    encode_record(record).as_bytes().to_vec()
}

/// `bytes` with each of its bits flipped in turn.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    })
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_state_decodes_to_itself(state in held()) {
        prop_assert_eq!(decode(&state_bytes(&state)), Ok(state));
    }

    #[test]
    fn a_record_decodes_to_itself(record in record()) {
        prop_assert_eq!(decode_record(&record_bytes(&record)), Ok(record));
    }

    #[test]
    fn no_truncation_decodes(record in record()) {
        let bytes = record_bytes(&record);
        for len in 0..bytes.len() {
            prop_assert_eq!(decode_record::<Held>(&bytes[..len]), Err(DecodeError::Truncated), "the first {}", len);
        }
        let bytes = state_bytes(&record.state);
        for len in 0..bytes.len() {
            prop_assert_eq!(decode::<Held>(&bytes[..len]), Err(DecodeError::Truncated), "the first {}", len);
        }
    }

    #[test]
    fn nothing_may_follow(record in record(), extra in any::<u8>()) {
        let [mut one, mut other] = [record_bytes(&record), state_bytes(&record.state)];
        one.push(extra);
        other.push(extra);
        prop_assert_eq!(decode_record::<Held>(&one), Err(DecodeError::NotCanonical));
        prop_assert_eq!(decode::<Held>(&other), Err(DecodeError::NotCanonical));
    }

    #[test]
    fn a_flipped_bit_is_refused_or_is_the_one_form_of_another_state(record in record()) {
        for damaged in flipped(&state_bytes(&record.state)) {
            if let Ok(other) = decode(&damaged) {
                prop_assert_ne!(other, record.state);
                prop_assert_eq!(state_bytes(&other), damaged);
            }
        }
        for damaged in flipped(&record_bytes(&record)) {
            if let Ok(other) = decode_record(&damaged) {
                prop_assert_ne!(other, record);
                prop_assert_eq!(record_bytes(&other), damaged);
            }
        }
    }
}

#[test]
fn every_error_has_its_cause() {
    // version kind | level 0 | last change 1 | capacity 10 | 1 token | per 2 us
    let table: [(&str, &[u8], DecodeError); 20] = [
        ("nothing", &[], DecodeError::Truncated),
        ("no kind", &[1], DecodeError::Truncated),
        ("no number", &[1, 1], DecodeError::Truncated),
        ("no period", &[1, 1, 0, 1, 1, 1, 10, 1, 1], DecodeError::Truncated),
        ("half a number", &[1, 1, 0, 1, 1, 1, 10, 1, 1, 2, 2], DecodeError::Truncated),
        ("a version to come", &[2, 1, 0, 1, 1, 1, 10, 1, 1, 1, 2], DecodeError::Version(2)),
        ("a version that never was", &[0, 1, 0, 1, 1, 1, 10, 1, 1, 1, 2], DecodeError::Version(0)),
        ("an unknown kind", &[1, 2, 0, 1, 1, 1, 10, 1, 1, 1, 2], DecodeError::Kind(2)),
        ("a zero on top of a number", &[1, 1, 0, 2, 1, 0, 1, 10, 1, 1, 1, 2], DecodeError::NotCanonical),
        ("a zero with a length", &[1, 1, 1, 0, 1, 1, 1, 10, 1, 1, 1, 2], DecodeError::NotCanonical),
        ("one byte more", &[1, 1, 0, 1, 1, 1, 10, 1, 1, 1, 2, 0], DecodeError::NotCanonical),
        ("a rate of 2 per 4", &[1, 1, 0, 1, 1, 1, 10, 1, 2, 1, 4], DecodeError::NotCanonical),
        ("a rate of 0 per 2", &[1, 1, 0, 1, 1, 1, 10, 0, 1, 2], DecodeError::NotCanonical),
        ("a rate of 1 per 0", &[1, 1, 0, 1, 1, 1, 10, 1, 1, 0], DecodeError::Range),
        ("a rate of 0 per 0", &[1, 1, 0, 1, 1, 1, 10, 0, 0], DecodeError::Range),
        ("a level of 20.5 tokens of 10", &[1, 1, 1, 42, 1, 1, 1, 10, 1, 1, 1, 2], DecodeError::Range),
        ("a number of 17 bytes", &[1, 1, 17, 1], DecodeError::Range),
        ("a clock of 2^53", &[1, 1, 0, 7, 0, 0, 0, 0, 0, 0, 32, 1, 10, 1, 1, 1, 2], DecodeError::Range),
        ("a capacity of 2^53", &[1, 1, 0, 1, 1, 7, 0, 0, 0, 0, 0, 0, 32, 1, 1, 1, 2], DecodeError::Range),
        ("a clock of 2^64", &[1, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 10, 1, 1, 1, 2], DecodeError::Range),
    ];
    for (cause, bytes, error) in table {
        assert_eq!(decode::<Held>(bytes), Err(error), "{cause}");
        assert_eq!(decode_record::<Held>(&[&[0], bytes].concat()), Err(error), "{cause}, in a record");
    }
    let whole = [1, 1, 0, 1, 1, 1, 10, 1, 1, 1, 2];
    assert_eq!(
        decode_record::<Held>(&[&[3], &whole[..]].concat()),
        Err(DecodeError::NotCanonical),
        "an unknown expiry"
    );
    let late = [&[2, 7, 0, 0, 0, 0, 0, 0, 32], &whole[..]].concat();
    assert_eq!(decode_record::<Held>(&late), Err(DecodeError::Range), "an expiry of 2^53 ms");
    assert_eq!(decode::<Held>(&whole).map(|state| state.limit.capacity().get()), Ok(10), "the table's base");
}

#[test]
fn a_level_is_held_from_the_deepest_debt_to_the_full_bucket() {
    let limit = Limit::new(Tokens::new(10).unwrap(), Rate::new(1, 3).unwrap());
    let at = |level| Held { bucket: Bucket { level, last_change: UnixMicros::saturating(1) }, limit };
    let deepest = -3 * i128::from(MAX_INTEGER);
    let table = [(30, true), (31, false), (0, true), (-1, true), (deepest, true), (deepest - 1, false)];
    for (level, within) in [(i128::MAX, false), (i128::MIN, false)].into_iter().chain(table) {
        let expected = if within { Ok(at(level)) } else { Err(DecodeError::Range) };
        assert_eq!(decode::<Held>(&state_bytes(&at(level))), expected, "{level}");
    }
}

#[test]
fn an_error_says_what_is_wrong() {
    let table = [
        (DecodeError::Truncated, "ends too early"),
        (DecodeError::Version(2), "has version 2, and 1 is the newest known"),
        (DecodeError::Kind(9), "is of the unknown kind 9"),
        (DecodeError::NotCanonical, "is not in its one proper form"),
        (DecodeError::Range, "holds a number out of range"),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
    }
}

/// A golden line's words: `level=0 capacity=10 ...`.
struct Words<'a>(HashMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split(' ').filter_map(|word| word.split_once('=')).collect())
    }

    fn number<N: std::str::FromStr<Err: std::fmt::Debug>>(&self, name: &str) -> N {
        self.0[name].parse().unwrap()
    }

    fn state(&self) -> Held {
        let rate = Rate::new(self.number("tokens"), self.number("period_us")).unwrap();
        let last_change = UnixMicros::saturating(self.number("last_change_us"));
        let limit = Limit::new(Tokens::new(self.number("capacity")).unwrap(), rate);
        Held { bucket: Bucket { level: self.number("level"), last_change }, limit }
    }

    fn record(&self) -> Record {
        let expiry = match self.0["expiry"] {
            "unstated" => RecordedExpiry::Unstated,
            "none" => RecordedExpiry::None,
            _ => RecordedExpiry::At(UnixMillis::saturating(self.number("expiry"))),
        };
        Record { expiry, state: self.state() }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The golden file was not written by this crate.
#[test]
fn version_1_is_written_and_read_as_it_was_released() {
    let mut lines = include_str!("golden/v1.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    while let (Some(words), Some(golden)) = (lines.next(), lines.next()) {
        let (kind, words_of) = (words.split(' ').next().unwrap(), Words::of(words));
        match kind {
            "state" => {
                assert_eq!(hex(&state_bytes(&words_of.state())), golden, "{words}");
                assert_eq!(decode::<Held>(&bytes(golden)), Ok(words_of.state()), "{words}");
            }
            "record" => {
                assert_eq!(hex(&record_bytes(&words_of.record())), golden, "{words}");
                assert_eq!(decode_record(&bytes(golden)), Ok(words_of.record()), "{words}");
            }
            _ => panic!("{words}"),
        }
        count += 1;
    }
    assert_eq!(count, 14, "entries of the golden file");
}
