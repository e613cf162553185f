//! Invariant 8: no bytes panic, whichever reader gets them. What they mean is in `rates.rs` and `codec.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::codec::{Record, State, decode, decode_record, encode_long, encode_long_record};
use rl_core::rate::MAX_RATE_LEN;
use rl_core::{Held, MAX_INTEGER, ParseError, Rate, Tokens};

/// Bytes that get further into a reader of numbers than any.
fn nearly_numbers() -> impl Strategy<Value = Vec<u8>> {
    vec(select(b"0123456789999000./eE+-msdh \0x".to_vec()), 0..=MAX_RATE_LEN)
}

/// Bytes that get further into the decoder than any: a known head, short lengths.
fn nearly_states() -> impl Strategy<Value = Vec<u8>> {
    let number = (0..=17_u8, vec(any::<u8>(), 0..=17)).prop_map(|(len, bytes)| [vec![len], bytes].concat());
    let honest = vec(any::<u8>(), 0..=8).prop_map(|bytes| [vec![bytes.len().try_into().unwrap()], bytes].concat());
    let numbers = vec(prop_oneof![1 => number, 9 => honest], 4..=6).prop_map(|numbers| numbers.concat());
    (select(vec![vec![1, 1], vec![0, 1, 1], vec![2, 1, 9, 1, 1], vec![]]), numbers)
        .prop_map(|(head, n)| [head, n].concat())
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![nearly_numbers(), nearly_states(), vec(any::<u8>(), 0..80)]
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_number_of_tokens_is_read_only_from_its_own_digits(bytes in any_bytes()) {
        match Tokens::parse(&bytes) {
            Ok(tokens) => prop_assert_eq!(tokens.get().to_string().into_bytes(), bytes),
            Err(ParseError::Range) => prop_assert!(bytes.iter().all(u8::is_ascii_digit) && bytes.len() >= 16),
            Err(ParseError::Syntax) => prop_assert!(
                bytes.is_empty() || bytes.first() == Some(&b'0') || !bytes.iter().all(u8::is_ascii_digit)
            ),
        }
    }

    #[test]
    fn a_rate_is_read_within_bounds_or_not_at_all(bytes in any_bytes()) {
        if let Ok(rate) = Rate::parse(&bytes) {
            prop_assert!(rate.tokens() <= MAX_INTEGER && rate.period_us().get() <= MAX_INTEGER);
            prop_assert_eq!(Rate::new(rate.tokens().into(), rate.period_us().get().into()), Some(rate));
        }
    }

    #[test]
    fn what_decodes_is_what_encodes_to_those_bytes(bytes in any_bytes()) {
        if let Ok(state) = decode::<State>(&bytes) {
            prop_assert_eq!(encode_long(&state), &bytes[..]);
        }
        if let Ok(state) = decode::<Held>(&bytes) {
            prop_assert!(state.bucket.level <= state.limit.full() && state.bucket.level >= state.limit.most_owed());
        }
        if let Ok(Record { expiry, state }) = decode_record::<State>(&bytes) {
            prop_assert_eq!(encode_long_record(expiry, &state), &bytes[..]);
        }
    }
}
