//! The bytes of logs, steps, counters and quotas: every truncation, every flipped bit, every error, and what version 1 wrote.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::codec::{
    DecodeError, Record, RecordedExpiry, State, decode, decode_record, encode_long, encode_long_record,
};
use rl_core::log::{Charge, Step};
use rl_core::{Counter, Log, Micros, Period, Quota, QuotaLimit, Tokens, UnixMicros, UnixMillis, Usage, WindowLimit};
use support::generate::{integer, moment, tokens};

fn window_limit(most: u64, longest: u64) -> impl Strategy<Value = WindowLimit> {
    (integer(), integer()).prop_map(move |(limit, window)| {
        let window = Micros::new(window.clamp(1, longest)).unwrap();
        WindowLimit::new(Tokens::new(limit.min(most)).unwrap(), window).unwrap()
    })
}

fn for_log() -> impl Strategy<Value = WindowLimit> {
    window_limit(Log::LARGEST_LIMIT, Log::LONGEST_WINDOW.get())
}

fn log() -> impl Strategy<Value = State> {
    (for_log(), moment(), vec((integer(), 1..=50_000_u64), 0..12)).prop_map(|(limit, last_change, charges)| {
        let mut log = Log::new(limit, last_change);
        let mut charges: Vec<_> = charges.into_iter().map(|(age, cost)| (age % limit.window_us(), cost)).collect();
        charges.sort_unstable_by(|a, b| b.cmp(a));
        charges.dedup_by_key(|charge| charge.0);
        for (age_us, cost) in charges {
            log.remember(Charge { age_us, cost: Tokens::new(cost).unwrap() }).unwrap();
        }
        State::Log(log)
    })
}

fn step() -> impl Strategy<Value = State> {
    (for_log(), moment(), tokens(), tokens()).prop_map(|(limit, at, given, charged)| {
        State::Step(Step { limit, at, given, charged: charged.min(limit.limit()) })
    })
}

fn counter() -> impl Strategy<Value = State> {
    let limit = window_limit(u64::MAX, u64::MAX >> 11);
    (limit, tokens(), tokens(), integer(), moment()).prop_map(|(limit, previous, current, position, last_change)| {
        State::Counter(Counter { limit, previous, current, position_us: position % limit.window_us(), last_change })
    })
}

fn quota() -> impl Strategy<Value = State> {
    const PERIODS: [&str; 6] = ["1d", "week", "month-23:59", "year+14:00", "0.001ms", "9007199254.740991+00:01"];
    (tokens(), select(&PERIODS[..]), tokens(), moment()).prop_map(|(limit, period, used, last_change)| {
        let limit = QuotaLimit { limit, period: Period::parse(period.as_bytes()).unwrap() };
        State::Quota(Quota { limit, used, last_change })
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![2 => log(), 1 => step(), 1 => counter(), 1 => quota()]
}

fn expiry() -> impl Strategy<Value = RecordedExpiry> {
    prop_oneof![
        Just(RecordedExpiry::Unstated),
        Just(RecordedExpiry::None),
        integer().prop_map(|ms| RecordedExpiry::At(UnixMillis::saturating(u128::from(ms)))),
    ]
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn what_is_written_is_read_and_nothing_less_or_more(expiry in expiry(), state in state(), extra in any::<u8>()) {
        let bytes = encode_long(&state);
        prop_assert_eq!(decode::<State>(&bytes), Ok(state.clone()));
        for len in 0..bytes.len() {
            prop_assert_eq!(decode::<State>(&bytes[..len]), Err(DecodeError::Truncated), "the first {}", len);
        }
        prop_assert_eq!(decode::<State>(&[&bytes[..], &[extra]].concat()), Err(DecodeError::NotCanonical));
        let record = encode_long_record(expiry, &state);
        prop_assert_eq!(decode_record::<State>(&record), Ok(Record { expiry, state }));
    }

    #[test]
    fn a_flipped_bit_is_refused_or_is_the_one_form_of_another_state(state in state()) {
        let bytes = encode_long(&state);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = decode::<State>(&damaged) {
                prop_assert_ne!(&other, &state);
                prop_assert_eq!(encode_long(&other), damaged);
                if let State::Log(log) = other {
                    prop_assert!(log.used() <= Log::LARGEST_LIMIT);
                }
            }
        }
    }

    #[test]
    fn a_kind_is_read_as_itself_only(state in state()) {
        let bytes = encode_long(&state);
        prop_assert_eq!(decode::<Log>(&bytes).is_ok(), matches!(state, State::Log(_)));
        prop_assert_eq!(decode::<Step>(&bytes).is_ok(), matches!(state, State::Step(_)));
        prop_assert_eq!(decode::<Counter>(&bytes).is_ok(), matches!(state, State::Counter(_)));
        prop_assert_eq!(decode::<Quota>(&bytes).is_ok(), matches!(state, State::Quota(_)));
    }
}

#[test]
fn every_error_has_its_cause() {
    use DecodeError::{Kind, NotCanonical, Range};
    // log: limit 10, window 100 us, last change 7, and two charges: 3 of age 50, then 1, 20 us younger
    let good: &[u8] = &[1, 2, 1, 10, 1, 100, 1, 7, 1, 2, 1, 50, 1, 3, 1, 20, 1, 1];
    assert!(decode::<Log>(good).is_ok());
    let with = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        bytes
    };
    let table: Vec<(&str, Vec<u8>, DecodeError)> = vec![
        ("an unknown kind", with(1, 6), Kind(6)),
        ("no charge of those that are counted", good[..10].to_vec(), DecodeError::Truncated),
        ("a charge more than is counted", [good, &[1, 1, 1, 1]].concat(), NotCanonical),
        ("a charge as old as the window", with(11, 100), Range),
        ("a charge of 0", vec![1, 2, 1, 10, 1, 100, 1, 7, 1, 1, 1, 50, 0], Range),
        ("two charges of one age", vec![1, 2, 1, 10, 1, 100, 1, 7, 1, 2, 1, 50, 1, 3, 0, 1, 1], Range),
        ("a charge after the last change", with(15, 51), Range),
        ("a window of 0", vec![1, 2, 1, 10, 0, 1, 7, 0], Range),
        ("a window of 2^44", vec![1, 2, 1, 10, 6, 0, 0, 0, 0, 0, 16, 1, 7, 0], Range),
        ("a limit of 1000001", vec![1, 2, 3, 0x41, 0x42, 0x0f, 1, 100, 1, 7, 0], Range),
        ("charges of 1000001", vec![1, 2, 1, 10, 1, 100, 1, 7, 1, 1, 1, 50, 3, 0x41, 0x42, 0x0f], Range),
        ("2^53 charges", vec![1, 2, 1, 10, 1, 100, 1, 7, 7, 0, 0, 0, 0, 0, 0, 32], Range),
        (
            "many charges that are not there",
            vec![1, 2, 1, 10, 1, 100, 1, 7, 6, 0, 0, 0, 0, 0, 31],
            DecodeError::Truncated,
        ),
        ("a step that charges more than its limit", vec![1, 3, 1, 10, 1, 100, 1, 7, 0, 1, 11], Range),
        ("a counter at the end of its window", vec![1, 4, 1, 10, 1, 100, 1, 1, 1, 1, 1, 100, 1, 7], Range),
        ("a quota of an unknown span", vec![1, 5, 1, 10, 4, 0, 1, 3, 1, 7], Range),
        ("a quota of no time", vec![1, 5, 1, 10, 0, 0, 0, 1, 3, 1, 7], Range),
        ("a quota a day off", vec![1, 5, 1, 10, 1, 2, 0x40, 0x0b, 1, 3, 1, 7], Range),
    ];
    for (cause, bytes, error) in table {
        assert_eq!(decode::<State>(&bytes).map(|_| ()), Err(error), "{cause}");
    }
}

/// Worked out by hand from the description of the format. Never edit a line that was released.
#[test]
fn version_1_is_written_as_it_is_described() {
    let at = UnixMicros::saturating(7);
    let limit = WindowLimit::new(Tokens::new(10).unwrap(), Micros::new(100).unwrap()).unwrap();
    let count = |count| Tokens::new(count).unwrap();
    let mut log = Log::new(limit, at);
    log.remember(Charge { age_us: 50, cost: count(3) }).unwrap();
    log.remember(Charge { age_us: 30, cost: count(1) }).unwrap();
    let month = Period::parse(b"month+02:00").unwrap();
    let fixed = Period::parse(b"0.3ms-00:01").unwrap();
    let golden: [(State, &[u8]); 5] = [
        (State::Log(log), &[1, 2, 1, 10, 1, 100, 1, 7, 1, 2, 1, 50, 1, 3, 1, 20, 1, 1]),
        (State::Step(Step { limit, at, given: count(0), charged: count(2) }), &[1, 3, 1, 10, 1, 100, 1, 7, 0, 1, 2]),
        (
            State::Counter(Counter {
                limit,
                previous: count(300),
                current: count(5),
                position_us: 99,
                last_change: at,
            }),
            &[1, 4, 1, 10, 1, 100, 2, 44, 1, 1, 5, 1, 99, 1, 7],
        ),
        (
            State::Quota(Quota {
                limit: QuotaLimit { limit: count(10), period: month },
                used: count(3),
                last_change: at,
            }),
            &[1, 5, 1, 10, 2, 1, 240, 1, 3, 1, 7],
        ),
        (
            State::Quota(Quota {
                limit: QuotaLimit { limit: count(10), period: fixed },
                used: count(3),
                last_change: at,
            }),
            &[1, 5, 1, 10, 0, 2, 44, 1, 1, 1, 1, 3, 1, 7],
        ),
    ];
    for (state, bytes) in golden {
        assert_eq!(encode_long(&state), bytes, "{state:?}");
        assert_eq!(decode::<State>(bytes), Ok(state));
    }
}

#[test]
fn a_log_is_read_whose_limit_was_lowered() {
    let limit = |most| WindowLimit::new(Tokens::new(most).unwrap(), Micros::new(100).unwrap()).unwrap();
    let at = UnixMicros::saturating(7);
    let mut log = Log::begin(&Step { limit: limit(10), at, given: Tokens::ZERO, charged: Tokens::new(9).unwrap() });
    log.apply(&Step { limit: limit(2), at, given: Tokens::ZERO, charged: Tokens::ZERO });
    assert_eq!((decode(&encode_long(&log)), log.used()), (Ok(log.clone()), 9));
}
