//! What clients divide and print: every fraction n/d with n and d up to 1,000, and every n up to 1,000 per day, hour
//! and minute, as a double in each language's way of printing one, means exactly that fraction.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use rl_core::Rate;
use support::floats::{c_17g, fixed_17, javascript, php, python};

const MOST: u32 = 1_000;

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Every fraction once: the double of 2/6 is that of 1/3.
fn quotients() -> impl Iterator<Item = (u32, u32)> {
    let all = (1..=MOST).flat_map(|d| (1..=MOST).map(move |n| (n, d)));
    let slow = [86_400, 3_600, 60].into_iter().flat_map(|d| (1..=MOST).map(move |n| (n, d)));
    all.filter(|(n, d)| greatest_common_divisor(*n, *d) == 1).chain(slow)
}

fn sweep(print: impl Fn(f64) -> String) {
    for (n, d) in quotients() {
        let text = print(f64::from(n) / f64::from(d));
        let expected = Rate::new(u128::from(n), u128::from(d) * 1_000_000).unwrap();
        assert_eq!(Rate::parse(text.as_bytes()), Ok(expected), "{n}/{d}, printed {text}");
    }
}

#[test]
fn printed_shortest_mean_what_was_divided() {
    sweep(|value| format!("{value}"));
}

#[test]
fn printed_shortest_with_an_exponent_mean_what_was_divided() {
    sweep(|value| format!("{value:e}"));
}

#[test]
fn printed_by_python_mean_what_was_divided() {
    sweep(python);
}

#[test]
fn printed_by_javascript_mean_what_was_divided() {
    sweep(javascript);
}

/// The double of 680/83 lies just above where 14 digits round up, the fraction just below: printed, it is half a unit
/// and a little off. 508 fractions are like that, and the closest with a denominator that can be kept is still theirs.
#[test]
fn printed_by_php_with_14_digits_mean_what_was_divided() {
    sweep(|value| php(value, 14));
}

#[test]
fn printed_by_php_with_17_digits_mean_what_was_divided() {
    sweep(|value| php(value, 17));
}

#[test]
fn printed_by_c_with_17_digits_mean_what_was_divided() {
    sweep(c_17g);
}

#[test]
fn printed_with_17_significant_digits_mean_what_was_divided() {
    sweep(fixed_17);
}

#[test]
fn printed_with_17_significant_digits_and_an_exponent_mean_what_was_divided() {
    sweep(|value| format!("{value:.16e}"));
}

#[test]
fn printed_with_25_decimals_mean_what_was_divided() {
    sweep(|value| format!("{value:.25}"));
}

/// The printers themselves: one that prints something else than its language would make the sweep prove nothing.
#[test]
fn are_printed_as_their_languages_do() {
    let table = [
        (5.0 / 3.0, ["1.6666666666666667", "1.6666666666666667", "1.6666666666667", "1.6666666666666667"]),
        (
            5.0 / 86_400.0,
            ["5.787037037037037e-05", "0.00005787037037037037", "5.787037037037E-5", "5.7870370370370373e-05"],
        ),
        (50.0 / 3.0, ["16.666666666666668", "16.666666666666668", "16.666666666667", "16.666666666666668"]),
        (0.1, ["0.1", "0.1", "0.1", "0.10000000000000001"]),
        (5.0, ["5.0", "5", "5", "5"]),
        (1e-7, ["1e-07", "1e-7", "1.0E-7", "9.9999999999999995e-08"]),
        (1e15, ["1000000000000000.0", "1000000000000000", "1.0E+15", "1000000000000000"]),
    ];
    for (value, printed) in table {
        assert_eq!([python(value), javascript(value), php(value, 14), c_17g(value)], printed, "{value:e}");
    }
}
