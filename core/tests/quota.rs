//! Quotas beside a walk along the boundaries, and periods beside a calendar that counts days.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use proptest::sample::select;
use rl_core::expiry::Expiry;
use rl_core::{MAX_INTEGER, ParseError, Period, Quota, QuotaLimit, Tokens, UnixMicros, UnixMillis, Usage};
use support::usage::{Model, agrees, histories};

const DAY_US: i64 = 86_400_000_000;

fn limit(most: u64, period: &str) -> QuotaLimit {
    QuotaLimit { limit: Tokens::new(most).unwrap(), period: period_of(period) }
}

fn period_of(text: &str) -> Period {
    Period::parse(text.as_bytes()).unwrap()
}

/// The first day after `day` on which a week, a month or a year begins, by counting days from 1970-01-01, a Thursday.
fn next_beginning(day: i64, begins: impl Fn(&Date) -> bool) -> i64 {
    let (mut number, mut date) = (-31, Date { year: 1969, month: 12, day: 1, weekday: 0 });
    while number <= day || !begins(&date) {
        number += 1;
        date.step();
    }
    number
}

struct Date {
    year: i64,
    month: usize,
    day: i64,
    /// From Monday on.
    weekday: i64,
}

impl Date {
    fn step(&mut self) {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        self.weekday = (self.weekday + 1) % 7;
        self.day += 1;
        if self.day > lengths[self.month - 1] {
            (self.month, self.day) = (self.month + 1, 1);
        }
        if self.month > 12 {
            (self.year, self.month) = (self.year + 1, 1);
        }
    }
}

/// The boundary after `now`, the slow way.
fn boundary(period: &str, now: i64) -> i64 {
    let (span, offset) = period.split_at(period.find(['+', '-']).unwrap_or(period.len()));
    let offset_us = match offset {
        "" => 0,
        _ => {
            let minutes = offset[1..3].parse::<i64>().unwrap() * 60 + offset[4..].parse::<i64>().unwrap();
            minutes * 60_000_000 * if offset.starts_with('-') { -1 } else { 1 }
        }
    };
    let local = now + offset_us;
    let day = local.div_euclid(DAY_US);
    let end = match span {
        "week" => next_beginning(day, |date| date.weekday == 0) * DAY_US,
        "month" => next_beginning(day, |date| date.day == 1) * DAY_US,
        "year" => next_beginning(day, |date| (date.month, date.day) == (1, 1)) * DAY_US,
        "7us" => local + 7 - local.rem_euclid(7),
        "1h" => local + 3_600_000_000 - local.rem_euclid(3_600_000_000),
        "1d" => (day + 1) * DAY_US,
        _ => panic!("{span}"),
    };
    end - offset_us
}

const PERIODS: [&str; 9] =
    ["1h", "1d", "1d+05:30", "week", "week-08:00", "month", "month+14:00", "month-23:59", "year+00:01"];

#[derive(Debug, Clone)]
struct Used {
    limit: QuotaLimit,
    text: &'static str,
    used: u64,
    last_change: i64,
}

impl Model for Used {
    type Real = Quota;

    fn begin(limit: QuotaLimit, now: i64) -> Self {
        Self { limit, text: text_of(limit), used: 0, last_change: now }
    }

    fn limit(&self) -> QuotaLimit {
        self.limit
    }

    fn last_change(&self) -> i64 {
        self.last_change
    }

    fn move_on(&mut self, limit: QuotaLimit, now: i64) {
        if now >= boundary(self.text, self.last_change) {
            self.used = 0;
        }
        (self.limit, self.text, self.last_change) = (limit, text_of(limit), now);
    }

    fn left(&self) -> u64 {
        self.limit.limit.get().saturating_sub(self.used)
    }

    fn is_unused(&self) -> bool {
        self.used == 0
    }

    fn charge(&mut self, cost: u64) {
        self.used += cost;
    }

    fn give(&mut self, tokens: u64) {
        self.used = self.used.saturating_sub(tokens);
    }

    fn most(limit: QuotaLimit) -> u64 {
        limit.limit.get()
    }

    fn horizon(&self) -> i64 {
        367 * DAY_US
    }

    fn assert_is(&self, quota: &Quota) {
        let last_change = UnixMicros::saturating(self.last_change.try_into().unwrap());
        assert_eq!(*quota, Quota { limit: self.limit, used: Tokens::new(self.used).unwrap(), last_change });
    }
}

fn text_of(limit: QuotaLimit) -> &'static str {
    PERIODS.into_iter().find(|text| period_of(text) == limit.period).unwrap()
}

fn limits() -> impl Strategy<Value = QuotaLimit> + Clone {
    let most = prop_oneof![4 => 0..=6_u64, 1 => select(vec![100, MAX_INTEGER - 1, MAX_INTEGER])];
    (most, select(&PERIODS[..])).prop_map(|(most, period)| limit(most, period))
}

fn waits() -> impl Strategy<Value = u64> + Clone {
    let days = (0..=400_u64).prop_map(|days| days * 86_400_000_000);
    prop_oneof![2 => 0..=2_u64, 1 => select(vec![3_599_999_999, 3_600_000_000]), 2 => days]
}

/// A search goes through the calendar many times, so this has fewer cases than others.
fn few() -> proptest::test_runner::Config {
    let config = support::config();
    proptest::test_runner::Config { cases: config.cases / 8, ..config }
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn agrees_with_a_walk_along_the_boundaries(start in prop_oneof![Just(0), 0..=1_700_000_000_000_000_i64], steps in histories(limits(), waits())) {
        agrees::<Used>(start / 100, &steps)?;
    }

    #[test]
    fn a_boundary_is_the_first_after_now(period in select(&PERIODS[..]), now in 0..=8_900_000_000_000_000_i64, off in -1..=1_i64) {
        let end = boundary(period, now);
        for now in [now, end + off] {
            let told = period_of(period).end_after(UnixMicros::saturating(now.try_into().unwrap()));
            prop_assert_eq!(i64::try_from(told).unwrap(), boundary(period, now), "{} after {}", period, now);
        }
    }

    #[test]
    fn no_bytes_panic_and_what_is_read_is_written_so_that_it_reads_the_same(text in "[0-9]{0,3}(d|h|m|s|ms|day|week|month|year)?([+-][0-9]{1,2}:?[0-9]{1,2})?") {
        if let Ok(period) = Period::parse(text.as_bytes()) {
            prop_assert_eq!(Period::parse(period.to_string().as_bytes()), Ok(period));
            prop_assert!(period.end_after(UnixMicros::saturating(0)) > 0);
        }
    }
}

#[test]
fn every_first_of_a_month_from_1970_to_2255_is_a_boundary() {
    let (month, year, week) = (period_of("month"), period_of("year"), period_of("week"));
    let mut date = Date { year: 1970, month: 1, day: 1, weekday: 3 };
    let mut day = 0;
    let mut last = [0_u64; 3];
    while date.year < 2255 {
        date.step();
        day += 1;
        let before = UnixMicros::saturating(day * 86_400_000_000 - 1);
        let begins = [date.day == 1, (date.month, date.day) == (1, 1), date.weekday == 0];
        for (place, (period, begins)) in [month, year, week].into_iter().zip(begins).enumerate() {
            assert_eq!(period.end_after(before) == day * 86_400_000_000, begins, "{period} on day {day}");
            assert!(period.end_after(before) >= last[place]);
            last[place] = period.end_after(before);
        }
    }
}

#[test]
fn the_key_may_go_at_the_boundary() {
    let now = UnixMicros::saturating(1_000_001);
    let quota = Quota::take(None, &limit(5, "1500ms"), now, Tokens::ONE).change.unwrap();
    let boundary = UnixMillis::saturating(1_500);
    assert_eq!(quota.expiry(), Expiry::Within { earliest: boundary, latest: boundary });
}

#[test]
fn periods_are_read_as_people_write_them() {
    for (text, written) in [
        ("day", "1d"),
        ("1d", "1d"),
        ("24h", "1d"),
        ("86400", "1d"),
        ("day+02:00", "1d+02:00"),
        ("week", "week"),
        ("7d", "7d"),
        ("month-11:30", "month-11:30"),
        ("year+14:00", "year+14:00"),
        ("month+00:00", "month"),
        ("month-00:00", "month"),
        ("day+23:59", "1d+23:59"),
        ("90", "90s"),
        ("1.5", "1500ms"),
        ("0.000001", "0.001ms"),
        ("1500ms+01:00", "1500ms+01:00"),
    ] {
        assert_eq!(period_of(text).to_string(), written, "{text}");
        assert_eq!(period_of(written), period_of(text), "{text}");
    }
    assert_ne!(period_of("week"), period_of("7d"), "a week begins on Monday, seven days on a Thursday");
}

#[test]
fn what_is_no_period_is_refused() {
    use ParseError::{Range, Syntax};
    for (text, error) in [
        ("", Syntax),
        ("+02:00", Syntax),
        ("d", Syntax),
        ("Day", Syntax),
        ("month1", Syntax),
        ("1month", Syntax),
        ("months", Syntax),
        ("month ", Syntax),
        (" month", Syntax),
        ("month+2:00", Syntax),
        ("month+0200", Syntax),
        ("month+02:0", Syntax),
        ("month+02:00:00", Syntax),
        ("month+-2:00", Syntax),
        ("month+02:00+02:00", Syntax),
        ("month+", Syntax),
        ("month-", Syntax),
        ("month+aa:bb", Syntax),
        ("-1d", Syntax),
        ("1e3", Syntax),
        ("month+24:00", Range),
        ("month-23:60", Range),
        ("0", Range),
        ("0d", Range),
        ("0.0000001", Range),
        ("104250d", Range),
        ("9007199255", Range),
    ] {
        assert_eq!(Period::parse(text.as_bytes()), Err(error), "{text:?}");
    }
    assert_eq!(Period::parse(&[b'1'; 1_000]), Err(Syntax));
}
