//! The sliding window counter beside the same in exact fractions.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::expiry::Expiry;
use rl_core::{Counter, MAX_INTEGER, Micros, Tokens, UnixMicros, UnixMillis, Usage, WindowLimit};
use support::usage::{Model, agrees, histories};

fn limit(most: u64, window_us: u64) -> WindowLimit {
    WindowLimit::new(Tokens::new(most).unwrap(), Micros::new(window_us).unwrap()).unwrap()
}

fn tokens(count: u64) -> Tokens {
    Tokens::new(count).unwrap()
}

fn at(us: u64) -> UnixMicros {
    UnixMicros::saturating(us)
}

fn whole(number: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(number.into())
}

/// What was used in two windows, and the share of the current one that has passed.
#[derive(Debug, Clone)]
struct Windows {
    limit: WindowLimit,
    previous: u64,
    current: u64,
    position_us: i64,
    last_change: i64,
}

impl Windows {
    fn window(&self) -> i64 {
        self.limit.window_us().get().try_into().unwrap()
    }

    fn used(&self) -> BigRational {
        let passed = whole(self.position_us) / whole(self.window());
        whole(self.previous) * (whole(1) - passed) + whole(self.current)
    }
}

impl Model for Windows {
    type Real = Counter;

    fn begin(limit: WindowLimit, now: i64) -> Self {
        Self { limit, previous: 0, current: 0, position_us: 0, last_change: now }
    }

    fn limit(&self) -> WindowLimit {
        self.limit
    }

    fn last_change(&self) -> i64 {
        self.last_change
    }

    fn move_on(&mut self, limit: WindowLimit, now: i64) {
        self.position_us += (now - self.last_change).max(0);
        self.last_change = now;
        // More than two turns change nothing.
        for _ in 0..2 {
            if self.position_us >= self.window() {
                self.position_us -= self.window();
                (self.previous, self.current) = (self.current, 0);
            }
        }
        self.position_us %= self.window();
        if self.is_unused() {
            self.position_us = 0;
        }
        let passed = whole(self.position_us) / whole(self.window());
        self.limit = limit;
        self.position_us = (passed * whole(self.window())).floor().to_integer().to_i64().unwrap();
    }

    fn left(&self) -> u64 {
        let left = whole(self.limit.limit().get()) - self.used();
        if left.is_negative() { 0 } else { left.floor().to_integer().to_u64().unwrap() }
    }

    fn is_unused(&self) -> bool {
        self.previous == 0 && self.current == 0
    }

    fn charge(&mut self, cost: u64) {
        self.current += cost;
    }

    fn give(&mut self, tokens: u64) {
        let from_current = tokens.min(self.current);
        self.current -= from_current;
        self.previous -= (tokens - from_current).min(self.previous);
    }

    fn most(limit: WindowLimit) -> u64 {
        limit.limit().get()
    }

    fn horizon(&self) -> i64 {
        2 * self.window()
    }

    fn assert_is(&self, counter: &Counter) {
        let expected = Counter {
            limit: self.limit,
            previous: tokens(self.previous),
            current: tokens(self.current),
            position_us: self.position_us.try_into().unwrap(),
            last_change: at(self.last_change.try_into().unwrap()),
        };
        assert_eq!(*counter, expected);
    }
}

fn limits() -> impl Strategy<Value = WindowLimit> + Clone {
    let most = prop_oneof![4 => 0..=9_u64, 1 => select(vec![100, 1_000_000, MAX_INTEGER - 1, MAX_INTEGER])];
    let window = prop_oneof![4 => 1..=20_u64, 1 => select(vec![60_000_000, 86_400_000_000, MAX_INTEGER / 4])];
    (most, window).prop_map(|(most, window)| limit(most, window))
}

fn waits() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![6 => 0..=25_u64, 1 => select(vec![59_999_999, 60_000_000, 120_000_000, 43_200_000_000, MAX_INTEGER / 4])]
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn agrees_with_exact_fractions(start in prop_oneof![Just(0), Just(1_750_000_000_000_000)], steps in histories(limits(), waits())) {
        agrees::<Windows>(start, &steps)?;
    }

    /// The bound of the documentation, for whatever comes.
    #[test]
    fn admits_at_most_the_limit_and_the_overlap_of_the_previous_window(
        limit in (1..=9_u64, 1..=20_u64).prop_map(|(most, window)| limit(most, window)),
        calls in vec((0..=30_u64, 1..=3_u64), 1..200),
    ) {
        let (mut now, mut held) = (0, None);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (wait, cost) in calls {
            now += wait;
            if let Some(change) = Counter::take(held.as_ref(), &limit, at(now), tokens(cost)).change {
                admitted.push((now, cost));
                held = Some(change);
            }
            let Some(counter) = held else { continue };
            let (most, window) = (limit.limit().get(), limit.window_us().get());
            let since = |first: u64| admitted.iter().filter(|(time, _)| *time >= first).map(|(_, cost)| cost).sum::<u64>();
            let in_window = admitted.iter().filter(|(time, _)| now < time + window).map(|(_, cost)| cost).sum::<u64>();
            let seen = Counter::see(Some(&counter), &limit, at(now));
            let over = in_window.saturating_sub(most);
            prop_assert!(over * window <= seen.previous.get() * seen.position_us, "{over} over: {seen:?}");
            prop_assert!(in_window < 2 * most);
            prop_assert!(since(now - seen.position_us) <= most, "in the current window of the key's own");
        }
    }

    /// However fast callers with different windows alternate, nothing is forgiven, and what was used is forgotten in time.
    #[test]
    fn windows_that_flap_neither_forgive_nor_lock_out(
        one in 1_000..=5_000_u64, other in 1_000..=5_000_u64, pause in 10..=400_u64, used in 1..=50_u64,
    ) {
        let windows = [one, other];
        let longest = one.max(other);
        let mut held = Counter::take(None, &limit(50, one), at(0), tokens(used)).change.unwrap();
        let mut before = used;
        let turns = (1..).take_while(|turn| turn * pause < 3 * longest);
        for turn in turns {
            let limit = limit(50, windows[turn as usize % 2]);
            let seen = Counter::see(Some(&held), &limit, at(turn * pause));
            let used_now = 50 - rl_core::usage::Standing::remaining(&seen);
            prop_assert!(used_now <= before, "nothing is charged, so nothing more is used");
            before = used_now;
            held = seen;
        }
        prop_assert_eq!(before, 0, "after three of the longer windows");
    }
}

#[test]
fn what_is_used_stays_the_same_when_the_window_changes() {
    let mut held = Counter::take(None, &limit(100, 60_000_000), at(0), tokens(80)).change.unwrap();
    held = Counter::take(Some(&held), &limit(100, 60_000_000), at(75_000_000), tokens(15)).change.unwrap();
    assert_eq!(held.micro_tokens(), 25_000_000);
    for window_us in [1, 7, 59_999_999, 60_000_001, 3_600_000_000, MAX_INTEGER] {
        let seen = Counter::see(Some(&held), &limit(100, window_us), at(75_000_000));
        let used = 100_000_000 - seen.micro_tokens();
        // Rounded by less than the share of a microsecond, and never down; the level rounds down in turn.
        let rounding = i128::from(80_000_000_u64.div_ceil(window_us));
        assert!((75_000_000..=75_000_000 + rounding).contains(&used), "{used} at {window_us}");
    }
}

#[test]
fn the_key_may_go_when_nothing_counts_any_more() {
    let counter = Counter::take(None, &limit(5, 8_000_000), at(1_000_001), Tokens::ONE).change.unwrap();
    let earliest = 17_001;
    let expected =
        Expiry::Within { earliest: UnixMillis::saturating(earliest), latest: UnixMillis::saturating(earliest + 2_000) };
    assert_eq!(counter.expiry(), expected);
}
