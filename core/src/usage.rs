//! Limits of so much in a window: what the three ways of counting it have in common.
//!
//! | | counts | remembers |
//! |---|---|---|
//! | [`Log`](crate::log::Log) | what was charged in the window that ends now | each charge, 8 bytes |
//! | [`Counter`](crate::counter::Counter) | nearly that | two sums |
//! | [`Quota`](crate::quota::Quota) | what was charged since the last boundary of the calendar | one sum |
//!
//! All of them start with nothing used, and a key that does not exist has used nothing. A call is allowed if its cost is at
//! most what is left, and then charged.
//!
//! As with a bucket, a denial writes nothing, but for bringing a new limit or a clock that was set back into force; a cost
//! above the limit never writes. The reasons are those of [`Limit::take`](crate::Limit::take).

use std::num::NonZeroU64;

use crate::call::Answer;
use crate::decision::{Decision, Outcome, Wait};
use crate::expiry::Expiry;
use crate::quantity::{Micros, Tokens, UnixMicros};

/// At most `limit` tokens in any `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    limit: Tokens,
    window_us: NonZeroU64,
}

impl WindowLimit {
    /// `limit` in any `window`. `None` for a window of 0, in which nothing could happen.
    #[must_use]
    pub const fn new(limit: Tokens, window: Micros) -> Option<Self> {
        match NonZeroU64::new(window.get()) {
            Some(window_us) => Some(Self { limit, window_us }),
            None => None,
        }
    }

    /// The most that is admitted in a window.
    #[must_use]
    pub const fn limit(&self) -> Tokens {
        self.limit
    }

    /// How long a window is.
    #[must_use]
    pub const fn window(&self) -> Micros {
        match Micros::new(self.window_us.get()) {
            Some(window) => window,
            None => Micros::MAX,
        }
    }

    /// The same in microseconds: at most [`MAX_INTEGER`](crate::MAX_INTEGER).
    #[must_use]
    pub const fn window_us(&self) -> NonZeroU64 {
        self.window_us
    }
}

/// What a key holds that counts what was used of a limit.
pub trait Usage: Sized {
    /// The limit that a call asks for.
    type Limit: Copy + PartialEq;
    /// What a call changes, so that every copy of the state which carries it out comes to hold the same.
    type Change: Copy;
    /// The state, seen at some time under some limit.
    type Seen<'a>: Standing<Change = Self::Change>
    where
        Self: 'a;

    /// The state at `now` under `asked`. Time up to now counts under the limit that was in force until now, then what is
    /// left of the usage is kept: another limit forgives nothing. If the clock was set back, no time has passed.
    fn see<'a>(held: Option<&'a Self>, asked: &Self::Limit, now: UnixMicros) -> Self::Seen<'a>;
    /// What a key holds after `change` that held nothing before.
    fn begin(change: &Self::Change) -> Self;
    /// Carries out a change.
    fn apply(&mut self, change: &Self::Change);
    /// The limit in force, which is that of the last change.
    fn limit(&self) -> Self::Limit;
    /// When that was.
    fn last_change(&self) -> UnixMicros;
    /// Whether nothing is used, as of a key that does not exist.
    fn is_unused(&self) -> bool;
    /// When the key may be forgotten.
    fn expiry(&self) -> Expiry;

    /// Decides on `cost` tokens at `now`, and charges them if they are left.
    #[must_use]
    fn take(held: Option<&Self>, asked: &Self::Limit, now: UnixMicros, cost: Tokens) -> Answer<Self::Change> {
        let seen = Self::see(held, asked, now);
        if cost.get() > seen.remaining() {
            let moved = held.is_some_and(|held| held.limit() != *asked || now < held.last_change());
            let change = (moved && cost <= seen.limit()).then(|| seen.change());
            return Answer { decision: seen.denied(cost), change };
        }
        let charged = seen.charged(cost);
        let change = (cost != Tokens::ZERO).then(|| charged.change());
        Answer { decision: charged.decision(Outcome::Allowed), change }
    }

    /// What a take of `cost` at `now` would be told, but for what it would leave.
    #[must_use]
    fn peek(held: Option<&Self>, asked: &Self::Limit, now: UnixMicros, cost: Tokens) -> Decision {
        let seen = Self::see(held, asked, now);
        if cost.get() > seen.remaining() { seen.denied(cost) } else { seen.decision(Outcome::Allowed) }
    }

    /// Gives `tokens` back, at most what is used. Nothing given, nothing written.
    #[must_use]
    fn give(&self, now: UnixMicros, tokens: Tokens) -> Answer<Self::Change> {
        let given = Self::see(Some(self), &self.limit(), now).given(tokens);
        let change = (tokens != Tokens::ZERO).then(|| given.change());
        Answer { decision: given.decision(Outcome::Allowed), change }
    }
}

/// Where a client stands at some time.
pub trait Standing: Sized {
    /// What a call changes.
    type Change;

    /// The most that may be used.
    fn limit(&self) -> Tokens;
    /// How much of it is left, in whole tokens. Rounds down.
    fn remaining(&self) -> u64;
    /// How long until all of it is left, if nothing more is charged.
    fn reset_after(&self) -> Wait;
    /// How long until `cost` is left, if nothing more is charged. More than what is left now, and at most the limit.
    fn wait_for(&self, cost: Tokens) -> Wait;
    /// With `cost` charged, which is at most what is left.
    #[must_use]
    fn charged(self, cost: Tokens) -> Self;
    /// With `tokens` given back, at most what is used.
    #[must_use]
    fn given(self, tokens: Tokens) -> Self;
    /// What has changed since the state was seen.
    fn change(&self) -> Self::Change;

    /// What a caller is told who leaves it like this.
    fn decision(&self, outcome: Outcome) -> Decision {
        Decision { outcome, remaining: self.remaining(), reset_after: self.reset_after() }
    }

    /// What a caller is told for whose `cost` there is not enough left.
    fn denied(&self, cost: Tokens) -> Decision {
        let retry_after = if cost > self.limit() { Wait::Never } else { self.wait_for(cost) };
        self.decision(Outcome::Denied { retry_after })
    }
}
