//! What a decision says, before anyone puts it into a reply.

use crate::quantity::Tokens;

/// A time to wait. Exact: the integer microsecond at which what is waited for first holds, rounded up. Never is the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// This many microseconds; 0 when there is nothing to wait for.
    Micros(u128),
    /// Waiting does not help.
    Never,
}

impl Wait {
    /// Nothing to wait for.
    pub const NONE: Self = Self::Micros(0);
}

/// Whether the call may go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It may.
    Allowed,
    /// That many tokens were granted, perhaps fewer than asked for.
    Granted(Tokens),
    /// It may, once `act_after` has passed.
    Booked {
        /// How long the caller has to wait before it acts.
        act_after: Wait,
    },
    /// It may not.
    Denied {
        /// Alone on the key, the same call is denied until this has passed and allowed then.
        retry_after: Wait,
    },
}

/// Where a client stands after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether the call may go ahead.
    pub outcome: Outcome,
    /// Whole tokens left. Rounds down.
    pub remaining: u64,
    /// How long until the bucket is full.
    pub reset_after: Wait,
}

impl Decision {
    /// Whether the call may go ahead.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !matches!(self.outcome, Outcome::Denied { .. })
    }
}
