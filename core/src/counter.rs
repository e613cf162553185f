//! The sliding window counter: nearly at most so much in any window, in two sums.
//!
//! Time is cut into windows of equal length, the first of which begins with the first call on the key. What was used in the
//! previous one counts by the share of it that the window which ends now still covers:
//!
//! ```text
//! used    = previous * (window - position) / window + current
//! allowed = used + cost <= limit                                   both sides times `window`, so nothing is rounded
//! ```
//!
//! Example: 100 in 60 s. In the previous window 80 were used, in this one 15, and 15 s of it have passed. Three quarters of the
//! previous one count: 60 + 15 = 75 are used, 25 are left.
//!
//! **How far off.** The previous window is taken to have been used evenly. If all of it was used at its very end, then more
//! than `limit` can pass in a window: at most `previous * position / window` more, hence always less than twice the limit;
//! if all of it at its beginning, that much less passes than could. In each of the windows themselves never more than `limit`
//! passes. Arrivals that are even give the exact answer. `core/tests/counter_error.rs` measures it. For none of this,
//! use a [log](crate::log).
//!
//! A changed window keeps the two sums and the share of the current window that has passed (rounded down by less than a
//! microsecond), so what is used at that moment stays the same. A clock that was set back has not moved on. Tokens that are
//! given back are taken from the current window first: those of the previous one count for less.
//!
//! Source: the approximation in Cloudflare's "How we built rate limiting capable of scaling to millions of domains" (2017),
//! with integers and without alignment to the clock.

use std::num::NonZeroU64;

use crate::decision::Wait;
use crate::expiry::{Expiry, slack_ms};
use crate::quantity::{Tokens, UnixMicros};
use crate::usage::{Standing, Usage, WindowLimit};
use crate::wide::{product, quotient};

/// What was used in two windows in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// The limit in force.
    pub limit: WindowLimit,
    /// The tokens used in the previous window.
    pub previous: Tokens,
    /// The tokens used in the current window.
    pub current: Tokens,
    /// How much of the current window had passed at the last change, in microseconds: less than the window.
    pub position_us: u64,
    /// When it was last changed.
    pub last_change: UnixMicros,
}

impl Counter {
    fn unused(limit: WindowLimit, now: UnixMicros) -> Self {
        Self { limit, previous: Tokens::ZERO, current: Tokens::ZERO, position_us: 0, last_change: now }
    }

    /// The counter at `now`, with the windows that have passed since.
    fn turned(self, now: UnixMicros) -> Self {
        let window = self.limit.window_us();
        let position = self.position_us.saturating_add(now.since(self.last_change));
        let (previous, current) = match position / window {
            0 => (self.previous, self.current),
            1 => (self.current, Tokens::ZERO),
            _ => (Tokens::ZERO, Tokens::ZERO),
        };
        Self { previous, current, position_us: position % window, last_change: now, ..self }
    }

    fn under(self, asked: &WindowLimit) -> Self {
        let (from, to) = (self.limit.window_us(), asked.window_us());
        if from == to {
            return Self { limit: *asked, ..self };
        }
        let position = quotient(product(self.position_us, to.get()).unsigned_abs(), from);
        Self { limit: *asked, position_us: u64::try_from(position).unwrap_or(0), ..self }
    }

    /// What is left of the current window, in microseconds.
    fn rest_us(&self) -> u64 {
        self.limit.window_us().get().saturating_sub(self.position_us)
    }

    /// What is left of the limit, times the window.
    fn left(&self) -> i128 {
        let window = self.limit.window_us().get();
        product(self.limit.limit().get(), window)
            .wrapping_sub(product(self.current.get(), window))
            .wrapping_sub(product(self.previous.get(), self.rest_us()))
    }

    /// What is left of the limit, in millionths of a token. Rounds down.
    #[must_use]
    pub fn micro_tokens(&self) -> i128 {
        let left = self.left().max(0).saturating_mul(1_000_000);
        left.checked_div(i128::from(self.limit.window_us().get())).unwrap_or(0)
    }

    /// How long after the beginning of a window `used` of the one before counts for at most `room`.
    fn position_for(&self, used: Tokens, room: u64) -> u64 {
        let window = self.limit.window_us().get();
        let Some(used) = NonZeroU64::new(used.get()) else { return 0 };
        let counting = quotient(product(room, window).unsigned_abs(), used);
        window.saturating_sub(u64::try_from(counting).unwrap_or(u64::MAX))
    }
}

impl Usage for Counter {
    type Limit = WindowLimit;
    type Change = Self;
    type Seen<'a> = Self;

    fn see(held: Option<&Self>, asked: &WindowLimit, now: UnixMicros) -> Self {
        let turned = held.map(|held| held.turned(now)).filter(|turned| !turned.is_unused());
        turned.map_or(Self::unused(*asked, now), |turned| turned.under(asked))
    }

    fn begin(change: &Self) -> Self {
        *change
    }

    fn apply(&mut self, change: &Self) {
        *self = *change;
    }

    fn limit(&self) -> WindowLimit {
        self.limit
    }

    fn last_change(&self) -> UnixMicros {
        self.last_change
    }

    fn is_unused(&self) -> bool {
        self.previous == Tokens::ZERO && self.current == Tokens::ZERO
    }

    fn expiry(&self) -> Expiry {
        let Wait::Micros(reset_us) = self.reset_after() else { return Expiry::Theirs };
        let unused_us = u128::from(self.last_change.get()).saturating_add(reset_us);
        Expiry::within(unused_us, slack_ms(self.limit.window_us().get().into()))
    }
}

impl Standing for Counter {
    type Change = Self;

    fn limit(&self) -> Tokens {
        self.limit.limit()
    }

    fn remaining(&self) -> u64 {
        let left = u128::try_from(self.left()).unwrap_or(0);
        u64::try_from(quotient(left, self.limit.window_us())).unwrap_or(u64::MAX)
    }

    fn reset_after(&self) -> Wait {
        let counting = match (self.previous, self.current) {
            (Tokens::ZERO, Tokens::ZERO) => return Wait::NONE,
            (_, Tokens::ZERO) => 0,
            _ => self.limit.window_us().get(),
        };
        Wait::Micros(u128::from(counting).saturating_add(self.rest_us().into()))
    }

    fn wait_for(&self, cost: Tokens) -> Wait {
        let room = self.limit.limit().get().saturating_sub(cost.get());
        let wait = match room.checked_sub(self.current.get()) {
            // In this window, when enough of the previous one has left.
            Some(room) => u128::from(self.position_for(self.previous, room).saturating_sub(self.position_us)),
            // In the next one, when enough of this one has.
            None => u128::from(self.rest_us()).saturating_add(self.position_for(self.current, room).into()),
        };
        Wait::Micros(wait)
    }

    fn charged(self, cost: Tokens) -> Self {
        Self { current: self.current.plus(cost), ..self }
    }

    fn given(self, tokens: Tokens) -> Self {
        let rest = tokens.minus(self.current);
        Self { current: self.current.minus(tokens), previous: self.previous.minus(rest), ..self }
    }

    fn change(&self) -> Self {
        *self
    }
}
