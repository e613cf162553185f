//! The data types `rl-window`, `rl-counts` and `rl-quotas`: what was used of a limit of so much in a window.

use rl_core::codec::{self, Encoded, Record, RecordedExpiry, Short, Stored};
use rl_core::expiry::Expiry;
use rl_core::log::Step;
use rl_core::{Answer, Counter, Decision, Log, Quota, Tokens, UnixMicros, Usage};

use super::denials::Denials;
use super::value::{Type, Value};

/// A usage that a key can hold.
pub trait Kept: Usage<Change: Short> + Stored + Clone {
    /// What it is called when it cannot be loaded.
    const NOUN: &'static str;
    /// Its type.
    fn value_type() -> &'static Type;
    /// The most that `limit` allows in a window.
    fn capacity(limit: &Self::Limit) -> Tokens;
    /// The memory that it holds besides its own.
    fn storage(&self) -> Option<&[u64]> {
        None
    }
    /// The same, for it to be moved.
    fn storage_mut(&mut self) -> Option<&mut Box<[u64]>> {
        None
    }
}

static WINDOW: Type = Type::new(c"rl-window");
static COUNTS: Type = Type::new(c"rl-counts");
static QUOTAS: Type = Type::new(c"rl-quotas");

impl Kept for Log {
    const NOUN: &'static str = "a window";

    fn value_type() -> &'static Type {
        &WINDOW
    }

    fn capacity(limit: &Self::Limit) -> Tokens {
        limit.limit()
    }

    fn storage(&self) -> Option<&[u64]> {
        Some(self.storage())
    }

    fn storage_mut(&mut self) -> Option<&mut Box<[u64]>> {
        Some(self.storage_mut())
    }
}

impl Kept for Counter {
    const NOUN: &'static str = "a counter";

    fn value_type() -> &'static Type {
        &COUNTS
    }

    fn capacity(limit: &Self::Limit) -> Tokens {
        limit.limit()
    }
}

impl Kept for Quota {
    const NOUN: &'static str = "a quota";

    fn value_type() -> &'static Type {
        &QUOTAS
    }

    fn capacity(limit: &Self::Limit) -> Tokens {
        limit.limit
    }
}

/// A usage as a key holds it.
pub struct StoredUsage<U> {
    usage: U,
    denials: Denials,
}

/// A sliding window log.
pub type StoredLog = StoredUsage<Log>;
/// A sliding window counter.
pub type StoredCounter = StoredUsage<Counter>;
/// A quota.
pub type StoredQuota = StoredUsage<Quota>;

impl<U> StoredUsage<U> {
    /// `usage`, of which nothing was denied yet.
    pub fn new(usage: U) -> Self {
        Self { usage, denials: Denials::default() }
    }

    /// What it holds.
    pub fn usage(&self) -> &U {
        &self.usage
    }
}

impl StoredLog {
    /// Carries out a step that was recorded elsewhere.
    pub fn follow(&mut self, step: &Step) {
        self.usage.apply(step);
    }
}

impl<U: Kept> Value for StoredUsage<U> {
    type Change = U::Change;
    type Bytes = Vec<u8>;
    const NOUN: &'static str = U::NOUN;

    fn value_type() -> &'static Type {
        U::value_type()
    }

    fn begin(change: &U::Change) -> Self {
        Self::new(U::begin(change))
    }

    fn change(&mut self, change: &U::Change) -> Option<Expiry> {
        self.usage.apply(change);
        (!self.usage.is_unused()).then(|| self.usage.expiry())
    }

    fn first_expiry(&self) -> Expiry {
        self.usage.expiry()
    }

    fn record(change: &U::Change, expiry: RecordedExpiry) -> Encoded {
        codec::encode_record(&Record { expiry, state: *change })
    }

    fn replace(&mut self, other: Self) {
        self.usage = other.usage;
    }

    fn peek(&self, now: UnixMicros, cost: Tokens) -> Decision {
        U::peek(Some(&self.usage), &self.usage.limit(), now, cost)
    }

    fn give(&self, now: UnixMicros, tokens: Tokens) -> Answer<U::Change> {
        self.usage.give(now, tokens)
    }

    fn capacity(&self) -> Tokens {
        U::capacity(&self.usage.limit())
    }

    fn last_change(&self) -> UnixMicros {
        self.usage.last_change()
    }

    fn denials(&self) -> &Denials {
        &self.denials
    }

    fn denials_mut(&mut self) -> &mut Denials {
        &mut self.denials
    }

    fn encode(&self) -> Vec<u8> {
        codec::encode_long(&self.usage)
    }

    fn encode_record(&self) -> Vec<u8> {
        codec::encode_long_record(RecordedExpiry::Unstated, &self.usage)
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        codec::decode(bytes).map(Self::new).map_err(|error| error.to_string())
    }

    fn duplicate(&self) -> Self {
        Self::new(self.usage.clone())
    }

    fn storage(&self) -> Option<&[u64]> {
        self.usage.storage()
    }

    fn storage_mut(&mut self) -> Option<&mut Box<[u64]>> {
        self.usage.storage_mut()
    }
}
