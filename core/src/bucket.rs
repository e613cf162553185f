//! The token bucket.
//!
//! A bucket holds a level and the time at which that level was true. A level is counted in shares, 1/`period_us` of a
//! token, so that one microsecond adds exactly `tokens` shares and nothing is lost between two calls:
//!
//! ```text
//! level   = min(capacity * period_us, level + elapsed_us * tokens)
//! allowed = level >= cost * period_us                 then level -= cost * period_us
//! retry   = ceil((cost * period_us - level) / tokens) microseconds
//! reset   = ceil((capacity * period_us - level) / tokens)
//! ```
//!
//! Example: capacity 10 at 5 per second is 1 token per 200,000 us, so a token is 200,000 shares and a full bucket
//! 2,000,000. Ten calls at once leave 0. 150,000 us later the level is 150,000 shares: three quarters of a token, too
//! little for one; the call is denied and told to come back in 50,000 us. It does, finds 200,000, and is allowed.
//!
//! It keeps these promises. Over any time W the admitted cost is at most capacity + rate * W. The retry time is exact.
//! A clock that steps back adds nothing and locks nobody out. A denial leaves every bit as it is, but for the two
//! changes that would make the retry time a lie if they were not kept: see [`Limit::take`].
//!
//! Nothing here can overflow, so the sums are plain ones: a level is between -2^106 and 2^106 (the types and the decoder
//! see to it), and so is every product of two bounded numbers.
//!
//! Not here: what a call does with a bucket (see [`crate::call`]), the clock, the key and the bytes (see [`crate::codec`]).

use crate::decision::{Decision, Outcome, Wait};
use crate::expiry::Expiry;
use crate::limit::Limit;
use crate::quantity::UnixMicros;
use crate::wide::{product, quotient};

/// A level in shares of some limit, and when it was that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Shares of a token: from the limit's [`most_owed`](Limit::most_owed) to its [`full`](Limit::full); negative when
    /// tokens are owed.
    pub level: i128,
    /// When the level was last set.
    pub last_change: UnixMicros,
}

impl Bucket {
    /// A bucket nobody has taken from.
    #[must_use]
    pub fn full(limit: &Limit, now: UnixMicros) -> Self {
        Self { level: limit.full(), last_change: now }
    }

    /// The bucket at `now`, with what has come in since its last change. If the clock was set back, nothing has.
    #[must_use]
    pub fn refilled(self, limit: &Limit, now: UnixMicros) -> Self {
        let refill = product(now.since(self.last_change), limit.rate().tokens());
        Self { level: self.level.wrapping_add(refill).min(limit.full()), last_change: now }
    }

    /// The same tokens counted in the shares of another limit, at most its capacity. Rounds down, by less than a share.
    #[must_use]
    fn converted(self, from: &Limit, to: &Limit) -> Self {
        let (from_period, to_period) =
            (i128::from(from.rate().period_us().get()), i128::from(to.rate().period_us().get()));
        let whole = self.level.checked_div_euclid(from_period).unwrap_or(0);
        let rest = self.level.checked_rem_euclid(from_period).unwrap_or(0);
        // Whole tokens and the rest apart: level * to_period could have 160 bits.
        let rest = rest.saturating_mul(to_period).checked_div_euclid(from_period).unwrap_or(0);
        Self { level: whole.saturating_mul(to_period).saturating_add(rest).clamp(to.most_owed(), to.full()), ..self }
    }

    /// The tokens held, in millionths of one. Rounds down.
    #[must_use]
    pub fn micro_tokens(self, limit: &Limit) -> i128 {
        let shares = i128::from(limit.rate().period_us().get());
        self.level.saturating_mul(1_000_000).checked_div_euclid(shares).unwrap_or(0)
    }

    /// How long until the bucket is full, if nothing more is taken.
    #[must_use]
    pub fn reset_after(self, limit: &Limit) -> Wait {
        limit.rate().wait_for(limit.full().wrapping_sub(self.level))
    }

    /// The expiry that the key needs when this is its last change, `before` being the limit that was in force on it.
    #[must_use]
    pub fn expiry(self, limit: &Limit, before: Option<&Limit>) -> Expiry {
        if limit.rate().is_zero() {
            let filled = before.is_some_and(|before| !before.rate().is_zero());
            return if filled { Expiry::Never } else { Expiry::Theirs };
        }
        let Wait::Micros(reset_us) = self.reset_after(limit) else { return Expiry::Theirs };
        let full_us = u128::from(self.last_change.get()).saturating_add(reset_us);
        Expiry::within(full_us, limit.expiry_slack_ms())
    }

    /// Whole tokens held; none if tokens are owed.
    #[must_use]
    pub fn remaining(self, limit: &Limit) -> u64 {
        let shares = u128::try_from(self.level).unwrap_or(0);
        u64::try_from(quotient(shares, limit.rate().period_us())).unwrap_or(u64::MAX)
    }

    /// What a caller is told who leaves the bucket like this.
    pub(crate) fn decision(self, limit: &Limit, outcome: Outcome) -> Decision {
        Decision { outcome, remaining: self.remaining(limit), reset_after: self.reset_after(limit) }
    }
}

/// What a key holds: a bucket, and the limit that is in force on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The bucket.
    pub bucket: Bucket,
    /// The limit of the last change: it says what a share is, and how fast the bucket has been filling since.
    pub limit: Limit,
}

impl Held {
    /// The bucket at `now` under `asked`. Time up to now counts at the rate in force until now; then the tokens held
    /// are kept, at most the new capacity: a raise mints nothing, however often two callers disagree.
    #[must_use]
    pub fn under(&self, asked: &Limit, now: UnixMicros) -> Bucket {
        let bucket = self.bucket.refilled(&self.limit, now);
        if self.limit == *asked { bucket } else { bucket.converted(&self.limit, asked) }
    }
}
