//! A limit: how much a bucket holds and how fast it fills, with what a decision needs worked out once.

use crate::decision::Wait;
use crate::expiry::slack_ms;
use crate::quantity::{MAX_INTEGER, Tokens};
use crate::rate::Rate;
use crate::wide::product;

/// Capacity and rate of a token bucket.
///
/// Levels are counted in *shares*: a share is 1/`period_us` of a token, so that one microsecond adds exactly `tokens`
/// shares whatever the rate.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    capacity: Tokens,
    rate: Rate,
    full: i128,
    expiry_slack_ms: u64,
}

impl Limit {
    /// A bucket of `capacity` tokens that fills at `rate`. Total: both are bounded by their types, so every product
    /// that a decision forms (at most 2^106 for each term) fits 128 bits.
    #[must_use]
    pub fn new(capacity: Tokens, rate: Rate) -> Self {
        let full = product(capacity.get(), rate.period_us().get());
        let refill_us = match rate.wait_for(full) {
            Wait::Micros(us) => us,
            Wait::Never => 0,
        };
        Self { capacity, rate, full, expiry_slack_ms: slack_ms(refill_us) }
    }

    /// The most the bucket holds: the real maximum of a burst.
    #[must_use]
    pub const fn capacity(&self) -> Tokens {
        self.capacity
    }

    /// How fast it fills.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The level of a full bucket, in shares.
    #[must_use]
    pub const fn full(&self) -> i128 {
        self.full
    }

    /// The lowest level there is, in shares: as many tokens owed as a bucket could ever hold.
    #[must_use]
    pub fn most_owed(&self) -> i128 {
        Tokens::new(MAX_INTEGER).map_or(0, |most| self.shares(most).saturating_neg())
    }

    /// `tokens` in shares of this limit's rate.
    #[must_use]
    pub fn shares(&self, tokens: Tokens) -> i128 {
        product(tokens.get(), self.rate.period_us().get())
    }

    /// How much longer than needed a key may live, in milliseconds: a second and an eighth of the refill time.
    #[must_use]
    pub const fn expiry_slack_ms(&self) -> u64 {
        self.expiry_slack_ms
    }
}

/// Capacity and rate say it all; the rest is worked out from them.
impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        self.capacity == other.capacity && self.rate == other.rate
    }
}

impl Eq for Limit {}
