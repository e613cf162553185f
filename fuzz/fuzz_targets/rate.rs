//! Rates as callers write them: within bounds, near the number that stands there, and the same when written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rl_core::{MAX_INTEGER, Rate};

/// How far a rate may be off the number that stands there, beside half a unit of its last digit: 2^-40, and what floats add.
const RELATIVE: f64 = 1e-12;
/// Numbers of up to so many decimals mean exactly themselves.
const EXACT_DECIMALS: i32 = 9;

fuzz_target!(|text: &[u8]| {
    let Ok(rate) = Rate::parse(text) else { return };
    let (tokens, period_us) = (rate.tokens(), rate.period_us().get());
    assert!(tokens <= MAX_INTEGER && period_us <= MAX_INTEGER);
    assert_eq!(Rate::new(tokens.into(), period_us.into()), Some(rate), "reduced");
    let written = rate.to_string();
    assert_eq!(Rate::parse(written.as_bytes()), Ok(rate), "{written}");

    let (amount, off_by, period) = meaning(std::str::from_utf8(text).expect("a rate is ASCII"));
    let (per_us, meant) = (tokens as f64 / period_us as f64, amount / period);
    let slack = meant * RELATIVE + off_by / period;
    assert!((per_us - meant).abs() <= slack, "{rate:?} for {meant} +- {slack}");
});

/// The amount, half a unit of its last digit if it has more than the exact decimals, and the period in microseconds; as
/// the standard library reads numbers.
fn meaning(text: &str) -> (f64, f64, f64) {
    let (amount, period) = text.split_once('/').unwrap_or((text, "s"));
    let decimals = decimals(amount);
    let off_by = if decimals > EXACT_DECIMALS { 0.5 * 10_f64.powi(-decimals) } else { 0.0 };
    (amount.parse().expect("a number"), off_by, micros(period))
}

/// How many decimals a number has, without the zeros that say nothing.
fn decimals(amount: &str) -> i32 {
    let (mantissa, exponent) = amount.split_once(['e', 'E']).unwrap_or((amount, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    fraction.len() as i32 - zeros as i32 - exponent.parse::<i32>().expect("an exponent")
}

fn micros(period: &str) -> f64 {
    let unit = period.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let number = &period[..period.len() - unit.len()];
    let unit_us = match unit {
        "ms" => 1e3,
        "" | "s" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        "d" => 86_400e6,
        _ => panic!("the unit {unit}"),
    };
    if number.is_empty() { unit_us } else { number.parse::<f64>().expect("a number") * unit_us }
}
