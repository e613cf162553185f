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
//! changes that would make the retry time a lie if they were not kept: see [`Held::take`].
//!
//! Nothing here can overflow, so the sums are plain ones: a level is between -2^106 and 2^106 (the types and the decoder
//! see to it), and so is every product of two bounded numbers.
//!
//! Not here: the clock, the key, its expiry (see [`crate::expiry`]) and the bytes (see [`crate::codec`]).

use crate::decision::{Decision, Outcome, Wait};
use crate::limit::Limit;
use crate::quantity::{Tokens, UnixMicros};
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
        Self { level: whole.saturating_mul(to_period).saturating_add(rest).min(to.full()), ..self }
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

    fn remaining(self, limit: &Limit) -> u64 {
        let shares = u128::try_from(self.level).unwrap_or(0);
        u64::try_from(quotient(shares, limit.rate().period_us())).unwrap_or(u64::MAX)
    }

    fn decision(self, limit: &Limit, outcome: Outcome) -> Decision {
        Decision { outcome, remaining: self.remaining(limit), reset_after: self.reset_after(limit) }
    }

    /// How the bucket stands to a call of `cost` at its last change, and what the call leaves in it.
    fn charge(self, limit: &Limit, cost: Tokens) -> (Decision, Self) {
        let charge = limit.shares(cost);
        let short = charge.wrapping_sub(self.level);
        if short <= 0 || cost == Tokens::ZERO {
            let left = Self { level: self.level.wrapping_sub(charge), ..self };
            return (left.decision(limit, Outcome::Allowed), left);
        }
        let retry_after = if cost > limit.capacity() { Wait::Never } else { limit.rate().wait_for(short) };
        (self.decision(limit, Outcome::Denied { retry_after }), self)
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

/// The answer to a take, and what the key is to hold from now on, if that is something else than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Take {
    /// What the caller is told.
    pub decision: Decision,
    /// What to write; `None` writes nothing.
    pub change: Option<Bucket>,
}

impl Held {
    /// The bucket at `now` under `asked`. Time up to now counts at the rate in force until now; then the tokens held
    /// are kept, at most the new capacity: a raise mints nothing, however often two callers disagree.
    #[must_use]
    pub fn under(&self, asked: &Limit, now: UnixMicros) -> Bucket {
        let bucket = self.bucket.refilled(&self.limit, now);
        if self.limit == *asked { bucket } else { bucket.converted(&self.limit, asked) }
    }

    /// Decides on `cost` tokens at `now` under `asked`, and charges them if they are there.
    ///
    /// A denial writes nothing, with two exceptions, each at most once until a take is allowed or it happens again.
    /// If `asked` is not the limit in force, it comes into force: otherwise the bucket would go on filling at the old
    /// rate, so the retry time would be wrong and an emptied bucket of rate 0 would deny a raised limit for ever. If
    /// the clock was set back, the bucket moves to the new clock: otherwise an empty one would stay empty until the
    /// clock is where it was. Neither touches the tokens held, but for capping them and rounding them
    /// down by less than a share. A cost of 0 never writes, nor does
    /// a cost above the capacity, which is denied whatever the key holds.
    #[must_use]
    pub fn take(&self, asked: &Limit, now: UnixMicros, cost: Tokens) -> Take {
        let (decision, left) = self.under(asked, now).charge(asked, cost);
        let moved = self.limit != *asked || now < self.bucket.last_change;
        let writes = cost != Tokens::ZERO && cost <= asked.capacity() && (decision.is_allowed() || moved);
        Take { decision, change: writes.then_some(left) }
    }
}

impl Limit {
    /// [`Held::take`] on a key that does not exist: a full bucket. A denial creates nothing.
    #[must_use]
    pub fn take_from_full(&self, now: UnixMicros, cost: Tokens) -> Take {
        let (decision, left) = Bucket::full(self, now).charge(self, cost);
        let writes = cost != Tokens::ZERO && decision.is_allowed();
        Take { decision, change: writes.then_some(left) }
    }

    /// What a take of `cost` at `now` would be told, `held` being what the key holds.
    #[must_use]
    pub fn peek(&self, held: Option<&Held>, now: UnixMicros, cost: Tokens) -> Decision {
        let bucket = held.map_or_else(|| Bucket::full(self, now), |held| held.under(self, now));
        let (decision, _) = bucket.charge(self, cost);
        if decision.is_allowed() { bucket.decision(self, Outcome::Allowed) } else { decision }
    }
}
