//! How durations are written: a number of seconds, or a number with a unit.

use std::fmt;

use crate::fraction::{Decimal, Fraction};
use crate::quantity::{MAX_INTEGER, Micros, ParseError, Tokens};

pub(crate) const SECOND_US: u64 = 1_000_000;
pub(crate) const DAY_US: u64 = 86_400 * SECOND_US;

/// The units, the largest first, in microseconds.
pub(crate) const UNITS: [(&str, u64); 5] =
    [("d", DAY_US), ("h", 3_600 * SECOND_US), ("m", 60 * SECOND_US), ("s", SECOND_US), ("ms", 1_000)];
/// The longest duration that is read.
const MAX_LEN: usize = 48;

/// Reads a duration: a number of up to nine decimals, with a unit (`ms`, `s`, `m`, `h`, `d`) or without, which means
/// seconds.
///
/// Rounding: down to a microsecond.
///
/// Errors: [`ParseError::Syntax`] for anything else, [`ParseError::Range`] above [`MAX_INTEGER`] microseconds.
///
/// ```
/// use rl_core::{Micros, duration};
/// assert_eq!(duration::parse(b"1.5"), duration::parse(b"1500ms"));
/// assert_eq!(duration::parse(b"2h").map(Micros::get), Ok(7_200_000_000));
/// ```
pub fn parse(text: &[u8]) -> Result<Micros, ParseError> {
    let (number, unit_us) = split_unit(text)?;
    // Most durations are whole numbers, and commands bring one with every call.
    if let Ok(count) = Tokens::parse(number) {
        return count.get().checked_mul(unit_us).and_then(Micros::new).ok_or(ParseError::Range);
    }
    let micros = in_micros(number, unit_us)?;
    let whole = micros.numerator.checked_div(micros.denominator).ok_or(ParseError::Range)?;
    u64::try_from(whole).ok().and_then(Micros::new).ok_or(ParseError::Range)
}

/// Writes `micros` as they can be typed: in the largest unit in which they are a whole number, else in milliseconds with
/// decimals.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let whole = UNITS.iter().find(|(_, unit_us)| micros.checked_rem(*unit_us) == Some(0));
    match whole.and_then(|(unit, unit_us)| Some((unit, micros.checked_div(*unit_us)?))) {
        Some((unit, count)) => write!(f, "{count}{unit}"),
        None => write!(f, "{}.{:03}ms", micros / 1_000, micros % 1_000),
    }
}

/// As it can be typed.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.get())
    }
}

/// Reads the period of a rate: a duration above 0, or a unit alone, which means one of it. Not rounded.
pub(crate) fn parse_period(text: &[u8]) -> Result<Fraction, ParseError> {
    let period = match split_unit(text)? {
        (b"", unit_us) if !text.is_empty() => Fraction { numerator: unit_us.into(), denominator: 1 },
        (number, unit_us) => in_micros(number, unit_us)?,
    };
    if period.numerator > 0 { Ok(period) } else { Err(ParseError::Range) }
}

/// The number, and the unit behind it in microseconds.
fn split_unit(text: &[u8]) -> Result<(&[u8], u64), ParseError> {
    if text.len() > MAX_LEN {
        return Err(ParseError::Syntax);
    }
    let unit_len = text.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(unit_len)).ok_or(ParseError::Syntax)?;
    let unit_us = match unit {
        b"" => Some(SECOND_US),
        _ => UNITS.iter().find(|(name, _)| name.as_bytes() == unit).map(|(_, unit_us)| *unit_us),
    };
    Ok((number, unit_us.ok_or(ParseError::Syntax)?))
}

fn in_micros(number: &[u8], unit_us: u64) -> Result<Fraction, ParseError> {
    let number = Decimal::parse(number)?.exact().ok_or(ParseError::Syntax)?;
    let micros = number.numerator.checked_mul(unit_us.into()).ok_or(ParseError::Range)?;
    Ok(Fraction { numerator: micros, ..number }.reduced())
}

const _: () = assert!(DAY_US <= MAX_INTEGER);
