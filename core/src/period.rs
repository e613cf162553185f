//! Periods of the calendar, at whose boundaries a quota starts anew, and how they are written.
//!
//! A period is a fixed length of time counted from the Unix epoch, or a calendar's week (from Monday), month or year; each in
//! UTC, or at a fixed offset from it. There are no time zones: their rules change several times a year, so that a server would
//! need a database that ages. Whoever counts in local time sends the offset in force; when it changes, the boundary moves and
//! what was used stays used.

use std::fmt;
use std::num::NonZeroU64;

use crate::duration::{self, DAY_US, SECOND_US};
use crate::quantity::{Micros, ParseError, UnixMicros};

/// 1970-01-01 was a Thursday: the first Monday came four days later.
const FIRST_MONDAY_DAYS: i64 = 4;
const MINUTE_US: i64 = 60 * SECOND_US as i64;
const DAY: i64 = DAY_US as i64;

/// A period and its offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    span: Span,
    offset_minutes: i16,
}

/// How long a period is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// That many microseconds, counted from the Unix epoch.
    Fixed(NonZeroU64),
    /// From Monday to Monday.
    Week,
    /// From the first of a month to the first of the next.
    Month,
    /// From the first of January to the next.
    Year,
}

impl Period {
    /// The most that a period can be off UTC: a minute less than a day.
    pub const MOST_OFFSET_MINUTES: i16 = 24 * 60 - 1;

    /// `span`, at `offset_minutes` from UTC; east is positive. `None` if that is a day or more.
    #[must_use]
    pub const fn new(span: Span, offset_minutes: i16) -> Option<Self> {
        if offset_minutes.unsigned_abs() > Self::MOST_OFFSET_MINUTES.unsigned_abs() {
            return None;
        }
        if let Span::Fixed(span_us) = span
            && Micros::new(span_us.get()).is_none()
        {
            return None;
        }
        Some(Self { span, offset_minutes })
    }

    /// How long it is.
    #[must_use]
    pub const fn span(self) -> Span {
        self.span
    }

    /// How far local time is ahead of UTC.
    #[must_use]
    pub const fn offset_minutes(self) -> i16 {
        self.offset_minutes
    }

    /// Reads a period: a duration above 0 (`3600`, `1d`), `day`, `week`, `month` or `year`; and behind it, if it is not in UTC,
    /// the offset as `+hh:mm` or `-hh:mm`.
    ///
    /// Rounding: a duration is rounded down to a microsecond.
    ///
    /// Errors: [`ParseError::Syntax`] for anything else, [`ParseError::Range`] for a duration of 0 or above
    /// [`MAX_INTEGER`](crate::MAX_INTEGER) microseconds, and for an offset of a day or more.
    ///
    /// ```
    /// use rl_core::{Period, UnixMicros};
    /// let start_of_2024 = UnixMicros::saturating(1_704_067_200_000_000);
    /// assert_eq!(Period::parse(b"month").unwrap().end_after(start_of_2024), 1_706_745_600_000_000);
    /// assert_eq!(Period::parse(b"day+02:00").unwrap().to_string(), "1d+02:00");
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let sign = text.iter().position(|byte| matches!(byte, b'+' | b'-')).unwrap_or(text.len());
        let (span, offset) = text.split_at_checked(sign).ok_or(ParseError::Syntax)?;
        Self::new(parse_span(span)?, parse_offset(offset)?).ok_or(ParseError::Range)
    }

    /// The end of the period that `now` lies in, in microseconds since the Unix epoch: the first boundary after `now`.
    #[must_use]
    pub fn end_after(self, now: UnixMicros) -> u64 {
        let offset = i64::from(self.offset_minutes).wrapping_mul(MINUTE_US);
        let local = now.get().cast_signed().wrapping_add(offset);
        let end = match self.span {
            Span::Fixed(span_us) => next_multiple(local, span_us.get().cast_signed()),
            Span::Week => {
                let monday = FIRST_MONDAY_DAYS.wrapping_mul(DAY);
                next_multiple(local.wrapping_sub(monday), DAY.wrapping_mul(7)).wrapping_add(monday)
            }
            Span::Month => months_later(local.div_euclid(DAY), 1).wrapping_mul(DAY),
            Span::Year => {
                let day = local.div_euclid(DAY);
                months_later(day, 13_i64.wrapping_sub(month_of(day).1)).wrapping_mul(DAY)
            }
        };
        end.wrapping_sub(offset).max(0).cast_unsigned()
    }
}

fn parse_span(text: &[u8]) -> Result<Span, ParseError> {
    match text {
        b"week" => Ok(Span::Week),
        b"month" => Ok(Span::Month),
        b"year" => Ok(Span::Year),
        b"day" => NonZeroU64::new(DAY_US).map(Span::Fixed).ok_or(ParseError::Range),
        _ => NonZeroU64::new(duration::parse(text)?.get()).map(Span::Fixed).ok_or(ParseError::Range),
    }
}

/// `+hh:mm`, `-hh:mm` or nothing, in minutes.
fn parse_offset(text: &[u8]) -> Result<i16, ParseError> {
    let (sign, hours, minutes) = match text {
        [] => return Ok(0),
        [sign @ (b'+' | b'-'), h, hh, b':', m, mm] => (*sign, two_digits(*h, *hh)?, two_digits(*m, *mm)?),
        _ => return Err(ParseError::Syntax),
    };
    if hours > 23 || minutes > 59 {
        return Err(ParseError::Range);
    }
    let minutes = hours.wrapping_mul(60).wrapping_add(minutes);
    Ok(if sign == b'-' { minutes.wrapping_neg() } else { minutes })
}

fn two_digits(tens: u8, ones: u8) -> Result<i16, ParseError> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens > 9 || ones > 9 {
        return Err(ParseError::Syntax);
    }
    Ok(i16::from(tens).wrapping_mul(10).wrapping_add(i16::from(ones)))
}

/// The first multiple of `step` after `at`.
fn next_multiple(at: i64, step: i64) -> i64 {
    at.wrapping_sub(at.checked_rem_euclid(step).unwrap_or(0)).wrapping_add(step)
}

// Days since the epoch and the Gregorian calendar. Years are counted from March, so that the odd day comes last, and in eras of
// 400, which all have 146,097 days. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013).

const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// The year and the month (1 to 12) of a day.
fn month_of(day: i64) -> (i64, i64) {
    let day = day.wrapping_add(EPOCH_DAYS);
    let (era, day_of_era) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
    // A year for each 365 days, but for the leap days up to then: one in 4 years, not in 100, again in 400.
    let leap_days = (day_of_era / 1_460).wrapping_sub(day_of_era / 36_524).wrapping_add(day_of_era / 146_096);
    let year_of_era = day_of_era.wrapping_sub(leap_days) / 365;
    let day_of_year = day_of_era.wrapping_sub(days_of_years(year_of_era));
    let month_from_march = day_of_year.wrapping_mul(5).wrapping_add(2) / 153;
    let (year_begins, month) = match month_from_march {
        0..=9 => (0, month_from_march.wrapping_add(3)),
        _ => (1, month_from_march.wrapping_sub(9)),
    };
    (era.wrapping_mul(400).wrapping_add(year_of_era).wrapping_add(year_begins), month)
}

/// The first day of the month that is `months` later than that of `day`.
fn months_later(day: i64, months: i64) -> i64 {
    let (year, month) = month_of(day);
    // Counted from March of the year 0.
    let month = year.wrapping_mul(12).wrapping_add(month).wrapping_sub(3).wrapping_add(months);
    let (year, month_from_march) = (month.div_euclid(12), month.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = month_from_march.wrapping_mul(153).wrapping_add(2) / 5;
    let day = era.wrapping_mul(ERA_DAYS).wrapping_add(days_of_years(year_of_era)).wrapping_add(day_of_year);
    day.wrapping_sub(EPOCH_DAYS)
}

/// The days of the first `years` of an era.
fn days_of_years(years: i64) -> i64 {
    years.wrapping_mul(365).wrapping_add(years / 4).wrapping_sub(years / 100)
}

/// The period as it can be typed.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span {
            Span::Fixed(span_us) => duration::write(f, span_us.get())?,
            Span::Week => f.write_str("week")?,
            Span::Month => f.write_str("month")?,
            Span::Year => f.write_str("year")?,
        }
        match self.offset_minutes {
            0 => Ok(()),
            offset => {
                let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
                write!(f, "{sign}{:02}:{:02}", offset / 60, offset % 60)
            }
        }
    }
}
