//! Rates as they are spelled, and the exact rate that each spelling means.
//!
//! What a decimal means in general is in `decimals.rs`; the sweep over everything a client divides in `quotients.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::{MAX_INTEGER, ParseError, Rate};
use support::generate::rate;

fn parse(text: &str) -> Result<Rate, ParseError> {
    Rate::parse(text.as_bytes())
}

#[test]
fn a_spelling_means_one_exact_rate() {
    const SECOND: u64 = 1_000_000;
    let table = [
        // Tokens per second.
        ("5", 5, SECOND),
        ("0.5", 1, 2 * SECOND),
        ("5.0", 5, SECOND),
        ("300000", 3, 10),
        ("0", 0, 1),
        ("0.0", 0, 1),
        ("0.000000000000", 0, 1),
        // With a period: bare seconds, a number with a unit, a unit alone.
        ("100/60", 100, 60 * SECOND),
        ("100/60s", 100, 60 * SECOND),
        ("100/m", 100, 60 * SECOND),
        ("100/1m", 100, 60 * SECOND),
        ("100/1.0m", 100, 60 * SECOND),
        ("100/0.5m", 100, 30 * SECOND),
        ("5/15m", 5, 900 * SECOND),
        ("5/0.25h", 5, 900 * SECOND),
        ("1000000/d", 1, 86_400),
        ("1/30d", 1, 2_592_000 * SECOND),
        ("7/ms", 7, 1_000),
        ("7/250ms", 7, 250_000),
        ("1/0.001ms", 1, 1),
        ("1/0.000001", 1, 1),
        ("3/0.0000005", 6, 1),
        ("0.5/m", 1, 120 * SECOND),
        ("0/15m", 0, 1),
        // Up to nine decimals a number is itself, however close to something simpler.
        ("0.3", 3, 10 * SECOND),
        ("0.333333333", 333_333_333, 1_000_000_000 * SECOND),
        ("1.666666667", 1_666_666_667, 1_000_000_000 * SECOND),
        ("0.000000001", 1, 1_000_000_000 * SECOND),
        ("0.1000000000000", 1, 10 * SECOND),
        // With more it is what was divided.
        ("1.6666666666666667", 5, 3 * SECOND),
        ("1.6666666666667", 5, 3 * SECOND),
        ("1.6666666667", 5, 3 * SECOND),
        ("0.3333333333333333", 1, 3 * SECOND),
        ("16.666666666666668", 50, 3 * SECOND),
        ("0.30000000000000004", 3, 10 * SECOND),
        ("0.1428571428571428492127", 1, 7 * SECOND),
        ("0.33333333333333331482961625624739", 1, 3 * SECOND),
        ("1.6666666666666667/m", 1, 36 * SECOND),
        ("11574.074074074075/d", 15_625, 116_640 * SECOND),
        // An exponent, as clients print small and large floats.
        ("5.787037037037037e-05", 5, 86_400 * SECOND),
        ("5.787037037037037e-5", 5, 86_400 * SECOND),
        ("5.7870370370370373e-05", 5, 86_400 * SECOND),
        ("5.787037037037E-5", 5, 86_400 * SECOND),
        ("1e-05", 1, 100_000 * SECOND),
        ("1.0E-5", 1, 100_000 * SECOND),
        ("5e0", 5, SECOND),
        ("5e+00", 5, SECOND),
        ("1e3", 1_000, SECOND),
        ("2.5E+2/m", 250, 60 * SECOND),
        ("1.0E+15", 1_000_000_000, 1),
        ("0e999", 0, 1),
        ("0.0e-999", 0, 1),
        // The bounds.
        ("9007199254740991/s", MAX_INTEGER, SECOND),
        ("9007199254740991/0.001ms", MAX_INTEGER, 1),
        ("1/9007199254.740991", 1, MAX_INTEGER),
        ("1/9007199254740.991ms", 1, MAX_INTEGER),
        ("9007199254740990/9007199254740.991ms", MAX_INTEGER - 1, MAX_INTEGER),
    ];
    for (text, tokens, period_us) in table {
        let expected = Rate::new(u128::from(tokens), u128::from(period_us));
        assert_eq!(parse(text).ok(), expected, "{text}");
    }
}

#[test]
fn anything_else_is_refused_for_its_form() {
    #[rustfmt::skip]
    let table = [
        "", " ", " 5", "5 ", "5\n", "5\0", "+5", "-5", "-0", "--5", "five", "0x10", "1_000", "1,5", "5%", "NaN",
        "nan", "inf", "Infinity", "-inf", "1e999x", "e5", "1e", "1e+", "1e-", "1e--5", "1e5e5", "1e5.0", "1e0005",
        ".e5", "5.", ".5", ".", "1.2.3", "05", "00", "00.5", "01e5", "/", "5/", "/m", "5//m", "5/m/s", "5/5/5",
        "5/-1", "5/+1", "5/ m", "5 /m", "5/m ", "5/M", "5/S", "5/D", "5/us", "5/min", "5/day", "5/mm", "5/w",
        "5/1.5.5m", "5/.5m", "5/1.m", "5/05m", "5/1e3", "5/1e3s", "5/1e-3s", "5/s1", "5m", "5/1 m", "5s/1", "5/0x1",
        "5/nan", "5/inf", "\u{0665}", "5/\u{b5}s", "00000000000000000000000000000000000000000000000000",
        "1.00000000000000000000000000000000000000000000000",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Syntax), "{text:?}");
    }
}

#[test]
fn what_is_out_of_range_is_refused_for_its_size() {
    #[rustfmt::skip]
    let table = [
        "9007199254740992", "9007199254740991.5", "9007199254740992/d", "9007199254740992e0", "1e16", "1e400",
        "1e999", "99999999999999999999999999999999999999999999999", "5/0", "5/0s", "5/0.0ms", "5/0.000000000m", "0/0",
        "1/9007199254.740992", "1/9007199254740.992ms", "1/104250d", "1/99999999999999999999999999999999999999999d",
        "9007199254740991/0.0000001", "1e-11", "1e-300", "1e-999", "4.9e-324",
        "0.00000000000000000000000000000000000000000001",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Range), "{text:?}");
    }
}

#[test]
fn a_rate_is_reduced_and_both_its_parts_are_bounded() {
    let max = u128::from(MAX_INTEGER);
    let table = [
        (5, 1_000_000, Some((1, 200_000))),
        (0, 7, Some((0, 86_400_000_000))),
        (0, 0, None),
        (1, 0, None),
        (max, 1, Some((MAX_INTEGER, 1))),
        (max + 1, 1, None),
        (1, max, Some((1, MAX_INTEGER))),
        (1, max + 1, None),
        (max + 1, max + 1, Some((1, 1))),
        (u128::MAX, u128::MAX, Some((1, 1))),
        (2 * max, 2, Some((MAX_INTEGER, 1))),
    ];
    for (tokens, period_us, parts) in table {
        let found = Rate::new(tokens, period_us).map(|rate| (rate.tokens(), rate.period_us().get()));
        assert_eq!(found, parts, "{tokens} per {period_us}");
    }
}

#[test]
fn a_rate_is_shown_as_people_write_it() {
    let table = [
        ("5", "5"),
        ("0", "0"),
        ("300000", "300000"),
        ("100/60", "1/600ms"),
        ("5/15m", "1/3m"),
        ("5/900000ms", "1/3m"),
        ("1/3600", "1/h"),
        ("0.5", "1/2s"),
        ("1000000/d", "1/86.400ms"),
        ("7/250ms", "28"),
        ("1/86400", "1/d"),
    ];
    for (text, shown) in table {
        assert_eq!(parse(text).unwrap().to_string(), shown, "{text}");
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_rate_shown_is_the_rate_read(rate in rate()) {
        prop_assert_eq!(parse(&rate.to_string()), Ok(rate), "{}", rate);
    }
}
