//! Durations as they are spelled, and the microseconds that each spelling means.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::{MAX_INTEGER, Micros, ParseError, duration};
use support::generate::integer;
use support::model::{fraction, whole};

fn parse(text: &str) -> Result<u64, ParseError> {
    duration::parse(text.as_bytes()).map(Micros::get)
}

#[test]
fn a_spelling_means_so_many_microseconds() {
    let table = [
        ("0", 0),
        ("0.0", 0),
        ("0ms", 0),
        ("0d", 0),
        ("0.000000000000", 0),
        // Bare seconds.
        ("1", 1_000_000),
        ("30", 30_000_000),
        ("1.5", 1_500_000),
        ("0.5", 500_000),
        ("0.000001", 1),
        ("1.000000", 1_000_000),
        ("1.000000000000", 1_000_000),
        ("9007199254", 9_007_199_254_000_000),
        ("9007199254.740991", MAX_INTEGER),
        // With a unit.
        ("1ms", 1_000),
        ("250ms", 250_000),
        ("0.001ms", 1),
        ("1.5ms", 1_500),
        ("1s", 1_000_000),
        ("1m", 60_000_000),
        ("1.5m", 90_000_000),
        ("15m", 900_000_000),
        ("2h", 7_200_000_000),
        ("0.25h", 900_000_000),
        ("1d", 86_400_000_000),
        ("30d", 2_592_000_000_000),
        ("104249d", 9_007_113_600_000_000),
        ("9007199254740.991ms", MAX_INTEGER),
        // Rounded down.
        ("0.0000001", 0),
        ("0.000000999", 0),
        ("0.000001999", 1),
        ("0.0009ms", 0),
        ("0.333333333m", 19_999_999),
        ("0.000000001d", 86),
        ("9007199254.740991999", MAX_INTEGER),
    ];
    for (text, micros) in table {
        assert_eq!(parse(text), Ok(micros), "{text}");
    }
}

#[test]
fn what_is_not_a_number_with_or_without_a_unit_is_refused() {
    let table = [
        "",
        " ",
        "s",
        "ms",
        "d",
        ".",
        ".5",
        "5.",
        "1.s",
        ".5s",
        "1..5",
        "1.5.5",
        "-1",
        "+1",
        "-0",
        "1e3",
        "1E3",
        "1e-3s",
        "0x10",
        "nan",
        "inf",
        "infinity",
        "NaN",
        "01",
        "00",
        "01s",
        "00.5",
        "1 s",
        " 1",
        "1 ",
        "1s ",
        "1\n",
        "1\0",
        "1S",
        "1M",
        "1H",
        "1D",
        "1MS",
        "1Ms",
        "1us",
        "1ns",
        "1w",
        "1y",
        "1sec",
        "1min",
        "1hour",
        "1ss",
        "1sm",
        "1s1",
        "1h30m",
        "1/2",
        "1/s",
        "1,5",
        "1_000",
        "1'000",
        "1:30",
        "1%",
        "٣",
        "1µs",
        "one",
        // More decimals than a duration has.
        "0.0000000001",
        "1.0000000001",
        "1.1234567891s",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Syntax), "{text:?}");
    }
    assert_eq!(duration::parse(b"1\xff"), Err(ParseError::Syntax));
}

#[test]
fn a_duration_of_more_than_2_to_the_53_less_one_microseconds_is_out_of_range() {
    let table = [
        "9007199254.740992",
        "9007199255",
        "9007199254740.992ms",
        "9007199254741ms",
        "104250d",
        "2501999.8d",
        "18446744073709551615",
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211456d",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Range), "{text}");
    }
    assert_eq!(parse(&"9".repeat(48)), Err(ParseError::Range));
    assert_eq!(parse(&"9".repeat(49)), Err(ParseError::Syntax), "longer than anything that is read");
}

/// Digits are cut off behind the 37th, and what was cut was not looked at.
#[test]
fn more_decimals_than_nine_are_refused_however_far_behind_the_point_they_stand() {
    for zeros in [9, 20, 34, 35, 36, 37, 40, 44] {
        let text = format!("1.{}1", "0".repeat(zeros));
        assert_eq!(parse(&text), Err(ParseError::Syntax), "{text}");
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_decimal_and_a_unit_are_their_product_rounded_down(
        digits in integer(), decimals in 0..=9_u32, unit in proptest::sample::select(vec![
            ("", 1_000_000_u64), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000), ("d", 86_400_000_000),
        ]),
    ) {
        let power = 10_u64.pow(decimals);
        let number = match decimals {
            0 => digits.to_string(),
            _ => format!("{}.{:0width$}", digits / power, digits % power, width = decimals as usize),
        };
        let micros = (fraction(digits, power) * whole(unit.1)).floor();
        let expected = if micros > whole(MAX_INTEGER) { Err(ParseError::Range) } else { Ok(micros) };
        prop_assert_eq!(parse(&(number.clone() + unit.0)).map(whole), expected, "{}{}", number, unit.0);
    }

    #[test]
    fn no_bytes_panic(text in "[0-9.]{0,50}[a-z]{0,3}|\\PC{0,60}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let bound = |read: Result<Micros, ParseError>| read.map_or(0, Micros::get) <= MAX_INTEGER;
        prop_assert!(bound(duration::parse(text.as_bytes())) && bound(duration::parse(&bytes)));
    }
}
