//! What a decimal means: itself, or what a client has divided, against an independent search.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::{MAX_INTEGER, ParseError, Rate};
use support::generate::integer;
use support::model::{fraction, whole};
use support::oracle::{Written, closest_below};

fn parse(text: &str) -> Result<Rate, ParseError> {
    Rate::parse(text.as_bytes())
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
        // Half way on the last step: once refused, though this one is within 2^-40.
        ("0.00004716846192581947147/m", 6_996, 148_319_443 * 60_000_000),
    ];
    for (text, tokens, period_us) in table {
        assert_eq!(parse(text).ok(), Rate::new(tokens, period_us), "{text}");
    }
}

/// Once, a number with more than 37 digits and an exponent lost what was cut off of it, and its last zeros with that: it passed
/// for one of few decimals, and was replaced by a fraction as far off as those allow. Found by the fuzz target `rate`.
#[test]
fn a_number_of_too_many_digits_keeps_its_precision_whatever_its_exponent() {
    let zeros = |count: usize| "0".repeat(count);
    for (text, value) in [
        (format!("1.66602{}5e-6", zeros(31)), 1.66602e-6),
        (format!("1.66602{}5e-7", zeros(33)), 1.66602e-7),
        (format!("1234.5{}1e-9", zeros(33)), 1.2345e-6),
        (format!("7.0001{}3e-08", zeros(33)), 7.0001e-8),
        (format!("0.{}16660200005{}5", zeros(5), zeros(28)), 1.6660200005e-6),
        (format!("2.5{}9E+3", zeros(37)), 2_500.0),
    ] {
        let rate = parse(&text).unwrap();
        let per_second = rate.tokens() as f64 * 1e6 / rate.period_us().get() as f64;
        assert!((per_second / value - 1.0).abs() < 1e-12, "{text}: {rate:?} is {per_second}");
    }
}

/// Once, 0.333333333/d became 1/3d: a number of up to nine decimals is itself, or else it is out of range.
#[test]
fn a_number_of_nine_decimals_is_not_taken_for_a_simpler_one_when_its_period_makes_it_too_fine() {
    for text in ["0.333333333/d", "0.666666667/d", "0.142857143/d", "1.666666667/30d"] {
        assert_eq!(parse(text), Err(ParseError::Range), "{text}");
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
