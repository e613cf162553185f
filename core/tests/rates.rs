//! Rates as they are spelled, and the exact rate that each spelling means.
//!
//! The sweep over everything a client divides is in `quotients.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::{MAX_INTEGER, ParseError, Rate};
use support::generate::{integer, rate};
use support::model::{fraction, whole};
use support::oracle::{Written, closest_below};

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
    let table = [
        "",
        " ",
        " 5",
        "5 ",
        "5\n",
        "5\0",
        "+5",
        "-5",
        "-0",
        "--5",
        "five",
        "0x10",
        "1_000",
        "1,5",
        "5%",
        "NaN",
        "nan",
        "inf",
        "Infinity",
        "-inf",
        "1e999x",
        "e5",
        "1e",
        "1e+",
        "1e-",
        "1e--5",
        "1e5e5",
        "1e5.0",
        "1e0005",
        ".e5",
        "5.",
        ".5",
        ".",
        "1.2.3",
        "05",
        "00",
        "00.5",
        "01e5",
        "/",
        "5/",
        "/m",
        "5//m",
        "5/m/s",
        "5/5/5",
        "5/-1",
        "5/+1",
        "5/ m",
        "5 /m",
        "5/m ",
        "5/M",
        "5/S",
        "5/D",
        "5/us",
        "5/min",
        "5/day",
        "5/mm",
        "5/w",
        "5/1.5.5m",
        "5/.5m",
        "5/1.m",
        "5/05m",
        "5/1e3",
        "5/1e3s",
        "5/1e-3s",
        "5/s1",
        "5m",
        "5/1 m",
        "5s/1",
        "5/0x1",
        "5/nan",
        "5/inf",
        "\u{0665}",
        "5/\u{b5}s",
        "00000000000000000000000000000000000000000000000000",
        "1.00000000000000000000000000000000000000000000000",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Syntax), "{text:?}");
    }
}

#[test]
fn what_is_out_of_range_is_refused_for_its_size() {
    let table = [
        "9007199254740992",
        "9007199254740991.5",
        "9007199254740992/d",
        "9007199254740992e0",
        "1e16",
        "1e400",
        "1e999",
        "99999999999999999999999999999999999999999999999",
        "5/0",
        "5/0s",
        "5/0.0ms",
        "5/0.000000000m",
        "0/0",
        "1/9007199254.740992",
        "1/9007199254740.992ms",
        "1/104250d",
        "1/99999999999999999999999999999999999999999d",
        "9007199254740991/0.0000001",
        "1e-11",
        "1e-300",
        "1e-999",
        "4.9e-324",
        "0.00000000000000000000000000000000000000000001",
    ];
    for text in table {
        assert_eq!(parse(text), Err(ParseError::Range), "{text:?}");
    }
}

/// Sums of floats are a few units of their last place off. Once, 5.0000000000001 was refused as out of range and
/// 1000.0000000000003 became 1000.00000000011: the fraction looked at was the last one on the way, not the closest.
#[test]
fn a_number_too_fine_to_keep_gives_way_to_the_closest_that_can_be_kept() {
    let table = [
        ("5.0000000000001", 5, 1_000_000),
        ("5.000000000000003", 5, 1_000_000),
        ("100.00000000000003", 100, 1_000_000),
        ("1000.0000000000003", 1_000, 1_000_000),
        ("8.1927710843374", 680, 83_000_000),
        ("0.9995601847225/d", 49_999, 50_021 * 86_400_000_000),
    ];
    for (text, tokens, period_us) in table {
        assert_eq!(parse(text).ok(), Rate::new(tokens, period_us), "{text}");
    }
}

/// Once, 0.333333333/d became 1/3d: a number of up to nine decimals is itself, or else it is out of range.
#[test]
fn a_number_of_nine_decimals_is_not_taken_for_a_simpler_one_when_its_period_makes_it_too_fine() {
    for text in ["0.333333333/d", "0.666666667/d", "0.142857143/d", "1.666666667/30d"] {
        assert_eq!(parse(text), Err(ParseError::Range), "{text}");
    }
}

/// Once refused: the amount's denominator alone times the period is too large, reduced it is not.
#[test]
fn a_fraction_is_too_fine_only_if_the_reduced_rate_is() {
    assert_eq!(parse("189.0000000013/m").ok(), Rate::new(2_800_000_001, 888_888_889_200_000));
    assert_eq!(parse("431.9935200971985/d").ok(), Rate::new(1, 200_003_000));
}

#[test]
fn a_rate_is_reduced_and_both_its_parts_are_bounded() {
    let max = u128::from(MAX_INTEGER);
    let table = [
        (5, 1_000_000, Some((1, 200_000))),
        (0, 7, Some((0, 1))),
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

/// Decimals of up to 19 digits: doubles, and what lies beside them.
fn written() -> impl Strategy<Value = Written> {
    let random = (0..10_u128.pow(19), 0..=30_u32).prop_map(|(digits, decimals)| Written { digits, decimals });
    let bounded = (integer(), 0..=18_u32).prop_map(|(digits, decimals)| Written { digits: digits.into(), decimals });
    let near_quotient =
        (1..=2_000_u128, 1..=2_000_u128, 10..=16_u32, -30..=30_i128).prop_map(|(n, d, decimals, off)| {
            let digits = (n * 10_u128.pow(decimals) / d).saturating_add_signed(off);
            Written { digits, decimals }
        });
    prop_oneof![random, bounded, near_quotient]
}

fn per_us(rate: Rate) -> BigRational {
    fraction(rate.tokens(), rate.period_us().get())
}

/// The rate of `amount` per `period_us`, if both its parts are within bounds.
fn within_bounds(amount: &BigRational, period_us: u64) -> Option<Rate> {
    let per_us = amount / whole(period_us);
    Rate::new(per_us.numer().to_u128()?, per_us.denom().to_u128()?)
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_rate_shown_is_the_rate_read(rate in rate()) {
        prop_assert_eq!(parse(&rate.to_string()), Ok(rate), "{}", rate);
    }

    /// The rule, by an independent search. Where what it finds has too large a denominator for the period, the closest
    /// that has not, if it is close; half way between two, which are then equally near but for a factor of two, either.
    #[test]
    fn a_decimal_means_itself_or_the_simplest_fraction_within_its_tolerance(
        written in written(),
        (unit, period_us) in select(vec![
            ("", 1_000_000), ("/m", 60_000_000), ("/d", 86_400_000_000), ("/15m", 900_000_000), ("/0.001ms", 1_u64),
        ]),
    ) {
        let (text, written) = (written.plain() + unit, written.shortest());
        let (found, value) = (parse(&text), written.value());
        if value > whole(MAX_INTEGER) {
            prop_assert_eq!(found, Err(ParseError::Range), "{}", text);
            return Ok(());
        }
        let meant = if written.decimals <= 9 { value.clone() } else { written.meant() };
        let meant_rate = within_bounds(&meant, period_us);
        let bound = BigInt::from(MAX_INTEGER / period_us).max(BigInt::from(1));
        if let Some(rate) = meant_rate.filter(|_| *meant.denom() <= bound || written.decimals <= 9) {
            prop_assert_eq!(found, Ok(rate), "{} is {}", text, meant);
            return Ok(());
        }
        let stand_in = closest_below(&value, &bound);
        let stand_in_fits = within_bounds(&stand_in, period_us).is_some();
        let off = |amount: &BigRational| if *amount > value { amount - &value } else { &value - amount };
        let close = &value / whole(1_u64 << 40);
        match found {
            // Too large a denominator, but the period cancels enough of it.
            Ok(rate) if Some(rate) == meant_rate => {}
            Ok(rate) => {
                let amount = per_us(rate) * whole(period_us);
                prop_assert!(off(&amount) <= close, "{} became {}, further off than 2^-40", text, amount);
                let closest = !stand_in_fits || off(&amount) <= off(&stand_in) * whole(2);
                prop_assert!(closest, "{} became {}, {} is closer", text, amount, stand_in);
            }
            Err(error) => {
                prop_assert_eq!(error, ParseError::Range, "{}", text);
                let refused_well = written.decimals == 0 || !stand_in_fits || off(&stand_in) > close;
                prop_assert!(refused_well, "{} could be {}", text, stand_in);
            }
        }
    }

    /// More digits than a double has, as `%.25f` prints: cut where they no longer matter.
    #[test]
    fn more_than_19_digits_mean_a_fraction_within_a_hundredth_of_the_tolerance(
        digits in 10_u128.pow(19)..10_u128.pow(37), decimals in 12..=30_u32,
    ) {
        let written = Written { digits, decimals };
        let found = parse(&format!("{}/0.001ms", written.plain()));
        if written.value() > whole(MAX_INTEGER) {
            prop_assert_eq!(found, Err(ParseError::Range));
        } else if let Ok(rate) = found {
            let off = (per_us(rate) - written.value()) / written.tolerance();
            prop_assert!(off <= fraction(101, 100) && off >= fraction(-101, 100), "{} is {}", written.plain(), rate);
        } else {
            prop_assert_eq!(within_bounds(&written.meant(), 1), None);
        }
    }
}
