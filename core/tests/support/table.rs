//! Times as they stand in the tables of scenarios.

use rl_core::Wait;

/// Microseconds of `"3us"`, `"1_850ms"`, `"2s"`, `"15m"`, `"1h"`, `"1d"` and `"0"`.
pub fn micros(text: &str) -> i64 {
    let text = text.replace('_', "");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_us = match unit {
        "us" | "" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => panic!("{text}"),
    };
    number.parse::<i64>().unwrap() * unit_us
}

pub fn wait(text: &str) -> Wait {
    if text == "never" { Wait::Never } else { Wait::Micros(u128::try_from(micros(text)).unwrap()) }
}
