//! What a key holds: the four kinds under one name, as far as a target needs it.

use std::fmt::Debug;

use rl_core::codec::{self, Record, RecordedExpiry, State};
use rl_core::expiry::Expiry;
use rl_core::{Counter, Decision, Held, Limit, Log, Quota, QuotaLimit, Tokens, UnixMicros, Usage, WindowLimit};

/// What the caller is told, and what the key holds from then on if that is something else.
pub type Told<C> = (Decision, Option<C>);

/// What a key holds.
pub trait Content: Clone + PartialEq + Debug {
    /// What a call asks for.
    type Limit: Copy + PartialEq + Debug;

    /// The limit in force.
    fn limit(&self) -> Self::Limit;
    /// The most that a limit allows at once.
    fn most(limit: &Self::Limit) -> Tokens;
    /// Whether what is charged comes back some time.
    fn comes_back(limit: &Self::Limit) -> bool;
    /// When it was last changed.
    fn last_change(&self) -> UnixMicros;
    /// When its key may go.
    fn expiry(&self) -> Expiry;
    /// A take.
    fn take(held: Option<&Self>, asked: &Self::Limit, now: UnixMicros, cost: Tokens) -> Told<Self>;
    /// A look.
    fn peek(held: Option<&Self>, asked: &Self::Limit, now: UnixMicros, cost: Tokens) -> Decision;
    /// A gift.
    fn give(&self, now: UnixMicros, tokens: Tokens) -> Told<Self>;
    /// The same by way of its stored form; panics if that is another.
    fn stored(&self) -> Self;
}

impl Content for Held {
    type Limit = Limit;

    fn limit(&self) -> Limit {
        self.limit
    }

    fn most(limit: &Limit) -> Tokens {
        limit.capacity()
    }

    fn comes_back(limit: &Limit) -> bool {
        !limit.rate().is_zero()
    }

    fn last_change(&self) -> UnixMicros {
        self.bucket.last_change
    }

    fn expiry(&self) -> Expiry {
        self.bucket.expiry(&self.limit, None)
    }

    fn take(held: Option<&Self>, asked: &Limit, now: UnixMicros, cost: Tokens) -> Told<Self> {
        let answer = asked.take(held, now, cost);
        (answer.decision, answer.change.map(|bucket| Self { bucket, limit: *asked }))
    }

    fn peek(held: Option<&Self>, asked: &Limit, now: UnixMicros, cost: Tokens) -> Decision {
        asked.peek(held, now, cost)
    }

    fn give(&self, now: UnixMicros, tokens: Tokens) -> Told<Self> {
        let answer = self.give(now, tokens);
        (answer.decision, answer.change.map(|bucket| Self { bucket, ..*self }))
    }

    fn stored(&self) -> Self {
        codec::decode(codec::encode(self).as_bytes()).unwrap()
    }
}

/// What `held` becomes with a change that went through its stored form, as on a replica.
fn followed<U>(held: Option<&U>, change: &U::Change) -> U
where
    U: Usage + Clone,
    U::Change: codec::Short,
{
    let bytes = codec::encode_record(&Record { expiry: RecordedExpiry::None, state: *change });
    let change = codec::decode_record::<U::Change>(bytes.as_bytes()).unwrap().state;
    match held {
        None => U::begin(&change),
        Some(held) => {
            let mut next = held.clone();
            next.apply(&change);
            next
        }
    }
}

macro_rules! content_is_usage {
    ($usage:ty, $limit:ty, $most:expr) => {
        impl Content for $usage {
            type Limit = $limit;

            fn limit(&self) -> $limit {
                Usage::limit(self)
            }

            fn most(limit: &$limit) -> Tokens {
                $most(limit)
            }

            fn comes_back(_limit: &$limit) -> bool {
                true
            }

            fn last_change(&self) -> UnixMicros {
                Usage::last_change(self)
            }

            fn expiry(&self) -> Expiry {
                Usage::expiry(self)
            }

            fn take(held: Option<&Self>, asked: &$limit, now: UnixMicros, cost: Tokens) -> Told<Self> {
                let answer = Usage::take(held, asked, now, cost);
                (answer.decision, answer.change.map(|change| followed(held, &change)))
            }

            fn peek(held: Option<&Self>, asked: &$limit, now: UnixMicros, cost: Tokens) -> Decision {
                Usage::peek(held, asked, now, cost)
            }

            fn give(&self, now: UnixMicros, tokens: Tokens) -> Told<Self> {
                let answer = Usage::give(self, now, tokens);
                (answer.decision, answer.change.map(|change| followed(Some(self), &change)))
            }

            fn stored(&self) -> Self {
                codec::decode(&codec::encode_long(self)).unwrap()
            }
        }
    };
}

content_is_usage!(Log, WindowLimit, |limit: &WindowLimit| limit.limit());
content_is_usage!(Counter, WindowLimit, |limit: &WindowLimit| limit.limit());
content_is_usage!(Quota, QuotaLimit, |limit: &QuotaLimit| limit.limit);

/// What a key holds after a record on `before`; `None` if the key holds another kind.
pub fn after_record(before: Option<&State>, record: State) -> Option<State> {
    match (before, record) {
        (None, State::Step(step)) => Some(State::Log(Log::begin(&step))),
        (Some(State::Log(log)), State::Step(step)) => {
            let mut next = log.clone();
            next.apply(&step);
            Some(State::Log(next))
        }
        (None, state)
        | (Some(State::Bucket(_)), state @ State::Bucket(_))
        | (Some(State::Log(_)), state @ State::Log(_))
        | (Some(State::Counter(_)), state @ State::Counter(_))
        | (Some(State::Quota(_)), state @ State::Quota(_)) => Some(state),
        _ => None,
    }
}
