//! What a call does with a bucket: take, look, lease, reserve, give back.
//!
//! Each is a pure function of what the key holds, the limit that is asked for, the time and an amount. It says what to tell
//! the caller, and what the key is to hold from now on if that is something else than before. A key that does not exist is
//! a full bucket.

use crate::bucket::{Bucket, Held};
use crate::decision::{Decision, Outcome, Wait};
use crate::limit::Limit;
use crate::quantity::{Micros, Tokens, UnixMicros};
use crate::wide::product;

/// What to tell the caller, and what to write: `C` is what the key is to hold, or how it is to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<C = Bucket> {
    /// What the caller is told.
    pub decision: Decision,
    /// What to write; `None` writes nothing.
    pub change: Option<C>,
}

/// A bucket as a call finds it.
struct Found {
    bucket: Bucket,
    /// The key exists, and its limit or its clock is another than the call's.
    moved: bool,
}

impl Limit {
    fn find(&self, held: Option<&Held>, now: UnixMicros) -> Found {
        match held {
            None => Found { bucket: Bucket::full(self, now), moved: false },
            Some(held) => {
                Found { bucket: held.under(self, now), moved: held.limit != *self || now < held.bucket.last_change }
            }
        }
    }

    /// Decides on `cost` tokens at `now`, and charges them if they are there.
    ///
    /// A denial writes nothing, with two exceptions, each at most once until a take is allowed or it happens again. If
    /// this is not the limit in force, it comes into force: otherwise the bucket would go on filling at the old rate, so
    /// the retry time would be wrong and an emptied bucket of rate 0 would deny a raised limit for ever. If the clock was
    /// set back, the bucket moves to the new clock: otherwise an empty one would stay empty until the clock is where it
    /// was. Neither touches the tokens held, but for capping them and rounding them down by less than a share. A cost of
    /// 0 never writes, nor does a cost above the capacity, which is denied whatever the key holds.
    #[must_use]
    pub fn take(&self, held: Option<&Held>, now: UnixMicros, cost: Tokens) -> Answer {
        let found = self.find(held, now);
        match self.short(found.bucket, cost) {
            None => self.charged(found.bucket, cost, Outcome::Allowed),
            Some(short) => self.denied(&found, cost, short),
        }
    }

    /// What a take of `cost` at `now` would be told, but for what it would leave.
    #[must_use]
    pub fn peek(&self, held: Option<&Held>, now: UnixMicros, cost: Tokens) -> Decision {
        let found = self.find(held, now);
        match self.short(found.bucket, cost) {
            None => found.bucket.decision(self, Outcome::Allowed),
            Some(short) => self.denied(&found, cost, short).decision,
        }
    }

    /// Grants as many of `wanted` tokens as are there, and charges those. None at all is a denial, until there is one.
    #[must_use]
    pub fn lease(&self, held: Option<&Held>, now: UnixMicros, wanted: Tokens) -> Answer {
        let found = self.find(held, now);
        let there = Tokens::new(found.bucket.remaining(self)).unwrap_or(wanted);
        let granted = wanted.min(there);
        match self.short(found.bucket, wanted.min(Tokens::ONE)) {
            None => self.charged(found.bucket, granted, Outcome::Granted(granted)),
            Some(short) => self.denied(&found, Tokens::ONE, short),
        }
    }

    /// Books a slot: charges `cost` now, going into debt if need be, if it will have come in within `max_wait`; the caller
    /// acts when it has. Whoever comes later waits behind that debt, so slots are given out first come, first served.
    ///
    /// Refused, the caller is told when asking again could succeed.
    #[must_use]
    pub fn reserve(&self, held: Option<&Held>, now: UnixMicros, cost: Tokens, max_wait: Micros) -> Answer {
        let found = self.find(held, now);
        let Some(short) = self.short(found.bucket, cost) else {
            return self.charged(found.bucket, cost, Outcome::Booked { act_after: Wait::NONE });
        };
        // What may be owed is bounded by the wait, and by what the stored form can hold.
        let patience = short.wrapping_sub(product(max_wait.get(), self.rate().tokens()));
        let depth = self.most_owed().wrapping_sub(found.bucket.level).wrapping_add(self.shares(cost));
        let excess = patience.max(depth);
        if cost > self.capacity() || excess > 0 {
            return self.denied(&found, cost, excess);
        }
        self.charged(found.bucket, cost, Outcome::Booked { act_after: self.rate().wait_for(short) })
    }

    /// How many shares are missing for `cost`, if any are. Nothing is missing for a cost of 0, whatever is owed.
    fn short(&self, bucket: Bucket, cost: Tokens) -> Option<i128> {
        let short = self.shares(cost).wrapping_sub(bucket.level);
        (short > 0 && cost != Tokens::ZERO).then_some(short)
    }

    fn charged(&self, bucket: Bucket, cost: Tokens, outcome: Outcome) -> Answer {
        let left = Bucket { level: bucket.level.wrapping_sub(self.shares(cost)), ..bucket };
        Answer { decision: left.decision(self, outcome), change: (cost != Tokens::ZERO).then_some(left) }
    }

    /// A denial for as long as `missing` shares have not come in.
    fn denied(&self, found: &Found, cost: Tokens, missing: i128) -> Answer {
        let hopeless = cost > self.capacity();
        let retry_after = if hopeless { Wait::Never } else { self.rate().wait_for(missing) };
        let decision = found.bucket.decision(self, Outcome::Denied { retry_after });
        Answer { decision, change: (found.moved && !hopeless).then_some(found.bucket) }
    }
}

impl Held {
    /// Gives `tokens` back, at most to what is full. Nothing given, nothing written.
    #[must_use]
    pub fn give(&self, now: UnixMicros, tokens: Tokens) -> Answer {
        let bucket = self.under(&self.limit, now);
        let level = bucket.level.wrapping_add(self.limit.shares(tokens)).min(self.limit.full());
        let given = Bucket { level, ..bucket };
        let decision = given.decision(&self.limit, Outcome::Allowed);
        Answer { decision, change: (tokens != Tokens::ZERO).then_some(given) }
    }
}
