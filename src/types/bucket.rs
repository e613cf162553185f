//! The data type `rl-bucket`: a token bucket in 32 bytes.

use rl_core::codec::{self, Encoded, Record, RecordedExpiry};
use rl_core::expiry::Expiry;
use rl_core::{Answer, Bucket, Decision, Held, Limit, Tokens, UnixMicros};

use super::denials::Denials;
use super::limits::{self, Asked, LimitId};
use super::value::{Type, Value, cannot_keep};
use crate::error::Error;

const LEVEL_HIGH_SHIFT: u32 = 20;
const TIME_SHIFT: u32 = 11;
const ID_LOW_MASK: u64 = (1 << LEVEL_HIGH_SHIFT) - 1;
const ID_HIGH_MASK: u64 = (1 << TIME_SHIFT) - 1;

/// A bucket as a key holds it. The level needs 108 bits, the time 53 and the number of the limit 31, which leaves
/// 64 bits for what this node has seen of denials.
#[repr(C)]
pub struct StoredBucket {
    level_low: u64,
    /// The level's higher 44 bits, the number's lower 20.
    level_high_and_id: u64,
    /// The time's 53 bits, the number's higher 11.
    time_and_id: u64,
    denials: Denials,
}

const _: () = assert!(size_of::<StoredBucket>() == 32);
const _: () = assert!(LEVEL_HIGH_SHIFT + TIME_SHIFT == LimitId::BITS);

impl StoredBucket {
    /// `bucket` under the limit of that number, on which it keeps its hand.
    pub fn new(bucket: Bucket, id: LimitId) -> Self {
        limits::hold(id);
        let mut stored = Self { level_low: 0, level_high_and_id: 0, time_and_id: 0, denials: Denials::default() };
        stored.write(bucket, id);
        stored
    }

    /// What it holds.
    pub fn held(&self) -> Held {
        Held { bucket: self.bucket(), limit: self.limit() }
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        limits::limit(self.limit_id())
    }

    /// What it holds, in shares of the limit in force.
    pub fn bucket(&self) -> Bucket {
        let high = (self.level_high_and_id as i64 >> LEVEL_HIGH_SHIFT) as i128;
        let level = (high << 64) | i128::from(self.level_low);
        Bucket { level, last_change: self.last_change() }
    }

    /// The number of the limit that is in force.
    pub fn limit_id(&self) -> LimitId {
        let number = (self.time_and_id & ID_HIGH_MASK) << LEVEL_HIGH_SHIFT | (self.level_high_and_id & ID_LOW_MASK);
        // SAFETY: `write` put it there, out of a number.
        unsafe { LimitId::from_number(number as u32) }
    }

    /// Replaces what it holds. What was seen of denials stays.
    pub fn set(&mut self, bucket: Bucket, id: LimitId) {
        let old = self.limit_id();
        if old != id {
            limits::hold(id);
            limits::release(old);
        }
        self.write(bucket, id);
    }

    fn write(&mut self, bucket: Bucket, id: LimitId) {
        let number = u64::from(id.get());
        self.level_low = bucket.level as u64;
        self.level_high_and_id = ((bucket.level >> 64) as u64) << LEVEL_HIGH_SHIFT | (number & ID_LOW_MASK);
        self.time_and_id = bucket.last_change.get() << TIME_SHIFT | number >> LEVEL_HIGH_SHIFT;
    }

    /// What it holds, with the limit that a call asks for if that is the one in force: then it need not be looked up again.
    pub fn held_by(&self, asked: &Asked) -> Held {
        let limit = if self.limit_id() == asked.id() { *asked.limit() } else { self.limit() };
        Held { bucket: self.bucket(), limit }
    }

    /// The value of a key that is to hold `held`.
    ///
    /// Errors: as [`limits::intern`].
    pub fn of(held: &Held) -> Result<Self, Error> {
        Ok(Self::new(held.bucket, limits::intern(&held.limit)?))
    }
}

impl Drop for StoredBucket {
    fn drop(&mut self) {
        limits::release(self.limit_id());
    }
}

/// What a call leaves, and the limit that it brings into force.
pub struct Change {
    bucket: Bucket,
    id: LimitId,
}

impl Asked {
    /// Has `decide` look at what a key holds, under this limit.
    pub fn decide(
        &self,
        stored: Option<&StoredBucket>,
        decide: impl FnOnce(Option<&Held>) -> Answer,
    ) -> Answer<Change> {
        let held = stored.map(|stored| stored.held_by(self));
        applied(self.id(), decide(held.as_ref()))
    }
}

/// As a change of the key, what was decided under the limit of that number.
fn applied(id: LimitId, answer: Answer) -> Answer<Change> {
    Answer { decision: answer.decision, change: answer.change.map(|bucket| Change { bucket, id }) }
}

static TYPE: Type = Type::new(c"rl-bucket");

impl Value for StoredBucket {
    type Change = Change;
    type Bytes = Encoded;
    const NOUN: &'static str = "a bucket";

    fn value_type() -> &'static Type {
        &TYPE
    }

    fn begin(change: &Change) -> Self {
        Self::new(change.bucket, change.id)
    }

    fn change(&mut self, Change { bucket, id }: &Change) -> Option<Expiry> {
        let limit = limits::limit(*id);
        if bucket.level == limit.full() {
            return None;
        }
        let before = if self.limit_id() == *id { limit } else { self.limit() };
        self.set(*bucket, *id);
        Some(bucket.expiry(&limit, Some(&before)))
    }

    fn first_expiry(&self) -> Expiry {
        self.bucket().expiry(&self.limit(), None)
    }

    fn record(Change { bucket, id }: &Change, expiry: RecordedExpiry) -> Encoded {
        codec::encode_record(&Record { expiry, state: Held { bucket: *bucket, limit: limits::limit(*id) } })
    }

    fn replace(&mut self, other: Self) {
        self.set(other.bucket(), other.limit_id());
    }

    fn peek(&self, now: UnixMicros, cost: Tokens) -> Decision {
        self.limit().peek(Some(&self.held()), now, cost)
    }

    fn give(&self, now: UnixMicros, tokens: Tokens) -> Answer<Change> {
        let held = self.held();
        applied(self.limit_id(), held.give(now, tokens))
    }

    fn capacity(&self) -> Tokens {
        self.limit().capacity()
    }

    fn last_change(&self) -> UnixMicros {
        UnixMicros::saturating(self.time_and_id >> TIME_SHIFT)
    }

    fn denials(&self) -> &Denials {
        &self.denials
    }

    fn denials_mut(&mut self) -> &mut Denials {
        &mut self.denials
    }

    fn encode(&self) -> Encoded {
        codec::encode(&self.held())
    }

    fn encode_record(&self) -> Encoded {
        codec::encode_record(&Record { expiry: RecordedExpiry::Unstated, state: self.held() })
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let held = codec::decode(bytes).map_err(|error| error.to_string())?;
        Self::of(&held).map_err(cannot_keep)
    }

    fn duplicate(&self) -> Self {
        Self::new(self.bucket(), self.limit_id())
    }
}
