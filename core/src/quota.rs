//! The quota: so much in each period of the calendar, all of it back at the boundary.
//!
//! It holds what was used, and when that last changed; which period that is, and when it ends, the calendar says.
//!
//! Example: 1000 per `day+02:00`. At 23:59 local time 1000 have been used, and a call is told to come back in a minute. At
//! midnight all 1000 are there again: within two minutes a client can use 2000, which is the nature of a fixed window. Where
//! that matters, use a [log](crate::log) or a [counter](crate::counter).
//!
//! If the clock is set back beyond a boundary, what was used counts in the earlier period: nothing extra is admitted, until
//! the boundary is passed once more.

use crate::decision::Wait;
use crate::expiry::Expiry;
use crate::period::Period;
use crate::quantity::{Tokens, UnixMicros};
use crate::usage::{Standing, Usage};

/// At most `limit` tokens in each `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimit {
    /// The most that is admitted in a period.
    pub limit: Tokens,
    /// The period.
    pub period: Period,
}

/// What was used of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The limit in force.
    pub limit: QuotaLimit,
    /// The tokens used in the period of the last change. More than the limit if that was lowered since.
    pub used: Tokens,
    /// When it was last changed.
    pub last_change: UnixMicros,
}

impl Usage for Quota {
    type Limit = QuotaLimit;
    type Change = Self;
    type Seen<'a> = Self;

    fn see(held: Option<&Self>, asked: &QuotaLimit, now: UnixMicros) -> Self {
        let used = held
            .filter(|held| now.get() < held.limit.period.end_after(held.last_change))
            .map_or(Tokens::ZERO, |held| held.used);
        Self { limit: *asked, used, last_change: now }
    }

    fn begin(change: &Self) -> Self {
        *change
    }

    fn apply(&mut self, change: &Self) {
        *self = *change;
    }

    fn limit(&self) -> QuotaLimit {
        self.limit
    }

    fn last_change(&self) -> UnixMicros {
        self.last_change
    }

    fn is_unused(&self) -> bool {
        self.used == Tokens::ZERO
    }

    fn expiry(&self) -> Expiry {
        // The boundary does not move with each take, so nothing is saved by letting the key live on for longer.
        Expiry::within(u128::from(self.limit.period.end_after(self.last_change)), 0)
    }
}

impl Quota {
    fn until_boundary(&self) -> Wait {
        Wait::Micros(self.limit.period.end_after(self.last_change).saturating_sub(self.last_change.get()).into())
    }
}

impl Standing for Quota {
    type Change = Self;

    fn limit(&self) -> Tokens {
        self.limit.limit
    }

    fn remaining(&self) -> u64 {
        self.limit.limit.get().saturating_sub(self.used.get())
    }

    fn reset_after(&self) -> Wait {
        if self.is_unused() { Wait::NONE } else { self.until_boundary() }
    }

    fn wait_for(&self, _cost: Tokens) -> Wait {
        self.until_boundary()
    }

    fn charged(self, cost: Tokens) -> Self {
        Self { used: self.used.plus(cost), ..self }
    }

    fn given(self, tokens: Tokens) -> Self {
        Self { used: self.used.minus(tokens), ..self }
    }

    fn change(&self) -> Self {
        *self
    }
}
