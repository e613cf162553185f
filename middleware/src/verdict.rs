//! What the limiter says of a request. A denial and an outage are different types: one is the client's doing, the other is
//! ours, and whoever confuses them tells clients to slow down because Redis is gone.

use std::fmt;
use std::sync::Arc;

use rl_core::{Limit, Tokens, Wait};

use crate::client::Client;
use crate::policy::{Policy, PolicyName};
use crate::receipt::Receipt;

/// Who has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Redis.
    Redis,
    /// Tokens that this instance had leased from Redis.
    Lease,
    /// A denial that this instance remembers.
    Memory,
    /// A bucket of this instance.
    Local,
    /// Nobody: the request went through without a limit, or was refused without one.
    Nobody,
}

impl Source {
    /// The source as it stands in metrics and in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Lease => "lease",
            Self::Memory => "memory",
            Self::Local => "local",
            Self::Nobody => "none",
        }
    }
}

/// A policy that a request falls under, and what the request costs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Tokens.
    pub cost: Tokens,
}

impl Charge {
    /// What `policy` costs a request that does not say.
    #[must_use]
    pub fn of(policy: Arc<Policy>) -> Self {
        let cost = policy.cost;
        Self { policy, cost }
    }
}

/// Where a client stands with a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The policy's name.
    pub policy: PolicyName,
    /// The limit that was applied: the policy's, or the client's own.
    pub limit: Limit,
    /// What the request costs there.
    pub cost: Tokens,
    /// Whole tokens left. Rounds down.
    pub remaining: u64,
    /// How long until the bucket is full.
    pub reset_after: Wait,
    /// `Some` if this policy denies: how long until it would not.
    pub retry_after: Option<Wait>,
    /// Who says so.
    pub source: Source,
}

/// Why Redis did not decide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// It did not answer in time.
    Slow,
    /// It cannot be reached, or the connection broke.
    Unreachable,
    /// It was not asked: it has not answered of late, and the breaker is open.
    Open,
    /// It answered with an error of its own (`LOADING`, `READONLY`, `OOM`, `NOPERM` ...).
    Refused(Arc<str>),
    /// It answered, and cannot do what is asked: librl is not loaded. No outage; somebody has to load it.
    NotLoaded,
}

impl Trouble {
    /// The trouble in a word, for metrics and header fields.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Slow => "timeout",
            Self::Unreachable => "unreachable",
            Self::Open => "breaker-open",
            Self::Refused(_) => "refused",
            Self::NotLoaded => "not-loaded",
        }
    }

    /// Whether the breaker takes it for a sign that Redis is gone. An error reply is none: whoever sends one is there.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Slow | Self::Unreachable)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow => f.write_str("Redis did not answer in time"),
            Self::Unreachable => f.write_str("Redis cannot be reached"),
            Self::Open => f.write_str("Redis has not answered of late and is not asked for now"),
            Self::Refused(error) => write!(f, "Redis answered with an error: {error}"),
            Self::NotLoaded => f.write_str("the Redis server does not know RL.TAKE: load librl.so into it"),
        }
    }
}

impl std::error::Error for Trouble {}

/// A request that may go ahead.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// Where the client stands, policy by policy. Empty where no policy decided.
    pub standings: Vec<Standing>,
    /// `Some` if it went ahead without Redis, and why.
    pub degraded: Option<Trouble>,
    /// What it was charged.
    pub receipt: Receipt,
}

/// A request that a policy denies. The client's doing: 429.
#[derive(Debug, Clone)]
pub struct Denied {
    /// Where the client stands; at least one of them denies.
    pub standings: Vec<Standing>,
    /// How long until the same request would pass, were the client alone: the longest wait of those that deny.
    pub retry_after: Wait,
    /// `Some` if buckets of this instance have denied, in the place of Redis.
    pub degraded: Option<Trouble>,
}

impl Denied {
    /// The denial that `standings` come to.
    #[must_use]
    pub fn of(standings: Vec<Standing>, degraded: Option<Trouble>) -> Self {
        let retry_after = standings.iter().filter_map(|standing| standing.retry_after).max().unwrap_or(Wait::NONE);
        Self { standings, retry_after, degraded }
    }

    /// The policies that deny.
    pub fn violated(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().filter(|standing| standing.retry_after.is_some())
    }
}

/// A request that is refused because nobody could decide. Our doing: 503.
#[derive(Debug, Clone)]
pub struct Unavailable {
    /// The policies that refuse a request on which Redis has not decided.
    pub policies: Vec<PolicyName>,
    /// What the matter is.
    pub trouble: Trouble,
}

/// What the limiter says of a request.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It may go ahead.
    Allowed(Allowed),
    /// A policy denies it.
    Denied(Denied),
    /// Nobody could decide, and a policy says that it must not go ahead then.
    Unavailable(Unavailable),
}

/// A request that does not go ahead, and why.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// A policy denies it.
    Denied(Denied),
    /// Nobody could decide.
    Unavailable(Unavailable),
}

/// A denial as people are shown it.
#[derive(Debug, Clone)]
pub struct Incident {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Who.
    pub client: Client,
    /// The policy.
    pub policy: PolicyName,
    /// The request's class of route, as far as it is known; of a long one the first 256 bytes.
    pub route: Arc<str>,
    /// What it would have cost.
    pub cost: u64,
    /// Tokens that were left.
    pub remaining: u64,
    /// How long to wait, in seconds; `None` if waiting does not help.
    pub retry_after_s: Option<u64>,
    /// Who has denied it.
    pub source: Source,
}
