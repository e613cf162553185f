//! A history of calls on one key, and what happened at each.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_core::{Answer, Decision, Held, Limit, MAX_INTEGER, Micros, Outcome, Tokens, UnixMicros, Wait};

use super::model::{self, Model, State, Terms};

#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Tokens(u64),
    CapacityPlus(i64),
}

impl Cost {
    fn of(self, limit: &Limit) -> Tokens {
        let count = match self {
            Self::Tokens(count) => count,
            Self::CapacityPlus(off) => limit.capacity().get().saturating_add_signed(off),
        };
        Tokens::new(count.min(MAX_INTEGER)).unwrap()
    }
}

/// How long a booking may have to wait.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    Us(u64),
    /// As long as it takes, give or take a microsecond.
    NeededPlus(i64),
}

impl Patience {
    fn of(self, limit: &Limit, held: Option<&Held>, now: UnixMicros, cost: Tokens) -> Micros {
        let us = match (self, limit.peek(held, now, cost).outcome) {
            (Self::Us(us), _) => us,
            (Self::NeededPlus(off), Outcome::Denied { retry_after: Wait::Micros(us) }) => {
                u64::try_from(us).unwrap_or(MAX_INTEGER).saturating_add_signed(off)
            }
            (Self::NeededPlus(off), _) => 0_u64.saturating_add_signed(off),
        };
        Micros::new(us.min(MAX_INTEGER)).unwrap()
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Take(Limit, Cost),
    Peek(Limit, Cost),
    Lease(Limit, Cost),
    Reserve(Limit, Cost, Patience),
    /// Under the limit in force; nothing if there is no key.
    Give(Cost),
    Wait(u64),
    /// Waits as long as the last denial said, give or take a microsecond: where an inexact bucket shows.
    WaitForRetryPlus(i64),
    SetBack(u64),
}

#[derive(Debug, Clone)]
pub struct History {
    pub start: UnixMicros,
    pub held: Option<Held>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Take,
    Peek,
    Lease,
    Reserve { max_wait: Micros },
    Give,
}

/// One call, with what the key held before and after.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub kind: Kind,
    pub now: UnixMicros,
    /// The time that has passed since the start, counting only the clock's steps forward.
    pub passed_us: u128,
    pub limit: Limit,
    /// What was asked for, or given.
    pub cost: Tokens,
    pub before: Option<Held>,
    pub decision: Decision,
    pub after: Option<Held>,
}

impl Event {
    /// The tokens that were charged.
    pub fn admitted(&self) -> u64 {
        match (self.kind, self.decision.outcome) {
            (Kind::Peek | Kind::Give, _) | (_, Outcome::Denied { .. }) => 0,
            (_, Outcome::Granted(tokens)) => tokens.get(),
            (_, Outcome::Allowed | Outcome::Booked { .. }) => self.cost.get(),
        }
    }

    /// The wait that a refused call was told, if it was one that could have changed the key.
    pub fn refused(&self) -> Option<Wait> {
        match (self.kind, self.decision.outcome) {
            (Kind::Take | Kind::Lease | Kind::Reserve { .. }, Outcome::Denied { retry_after }) => Some(retry_after),
            _ => None,
        }
    }

    pub fn denied_take(&self) -> Option<Wait> {
        self.refused().filter(|_| self.kind == Kind::Take)
    }

    /// The same call on what the key holds after it, at another time.
    pub fn again(&self, now: UnixMicros) -> (Decision, Option<Held>) {
        call(self.kind, self.after, &self.limit, now, self.cost)
    }
}

/// A take on a key, and what the key holds after it: as a server does it.
pub fn take(held: Option<Held>, limit: &Limit, now: UnixMicros, cost: Tokens) -> (Answer, Option<Held>) {
    let take = limit.take(held.as_ref(), now, cost);
    (take, take.change.map(|bucket| Held { bucket, limit: *limit }).or(held))
}

/// A call on a key, and what the key holds after it: as a server does it, which forgets a bucket that was given full.
pub fn call(kind: Kind, held: Option<Held>, limit: &Limit, now: UnixMicros, cost: Tokens) -> (Decision, Option<Held>) {
    let answer = match (kind, held) {
        (Kind::Take, _) => limit.take(held.as_ref(), now, cost),
        (Kind::Peek, _) => Answer { decision: limit.peek(held.as_ref(), now, cost), change: None },
        (Kind::Lease, _) => limit.lease(held.as_ref(), now, cost),
        (Kind::Reserve { max_wait }, _) => limit.reserve(held.as_ref(), now, cost, max_wait),
        (Kind::Give, Some(held)) => held.give(now, cost),
        (Kind::Give, None) => panic!("nothing is given to a key that is not there"),
    };
    let after = match answer.change {
        Some(bucket) if kind == Kind::Give && bucket.level == limit.full() => None,
        Some(bucket) => Some(Held { bucket, limit: *limit }),
        None => held,
    };
    (answer.decision, after)
}

/// `now` and a wait later, unless the clock does not go that far.
pub fn later(now: UnixMicros, wait_us: u128) -> Option<UnixMicros> {
    let micros = u64::try_from(u128::from(now.get()) + wait_us).ok()?;
    (micros <= MAX_INTEGER).then(|| UnixMicros::saturating(micros))
}

impl History {
    pub fn events(&self) -> Vec<Event> {
        let (mut now, mut passed_us, mut retry_us) = (self.start, 0, 0);
        let mut held = self.held;
        let mut events = Vec::new();
        for step in &self.steps {
            let mut forward = |us: u64| {
                let then = UnixMicros::saturating(now.get().saturating_add(us));
                passed_us += u128::from(then.since(now));
                now = then;
            };
            let mut asked = None;
            match *step {
                Step::Wait(us) => forward(us),
                Step::WaitForRetryPlus(off) => forward(u64::saturating_add_signed(retry_us, off)),
                Step::SetBack(us) => now = UnixMicros::saturating(now.get().saturating_sub(us)),
                Step::Take(limit, cost) => asked = Some((Kind::Take, limit, cost)),
                Step::Peek(limit, cost) => asked = Some((Kind::Peek, limit, cost)),
                Step::Lease(limit, cost) => asked = Some((Kind::Lease, limit, cost)),
                Step::Reserve(limit, cost, patience) => {
                    let max_wait = patience.of(&limit, held.as_ref(), now, cost.of(&limit));
                    asked = Some((Kind::Reserve { max_wait }, limit, cost));
                }
                Step::Give(tokens) => asked = held.map(|held| (Kind::Give, held.limit, tokens)),
            }
            let Some((kind, limit, cost)) = asked else { continue };
            let (cost, before) = (cost.of(&limit), held);
            let (decision, after) = call(kind, held, &limit, now, cost);
            let event = Event { kind, now, passed_us, limit, cost, before, decision, after };
            events.push(event);
            held = after;
            if let Some(Wait::Micros(us)) = event.refused() {
                retry_us = u64::try_from(us).unwrap_or(MAX_INTEGER);
            }
        }
        events
    }
}

/// Holds each decision of `history`, and what the key holds after it, against the model.
pub fn agrees_with_the_model(history: &History) -> Result<(), TestCaseError> {
    let mut model = Model::of(history.held.as_ref());
    for event in history.events() {
        let (terms, now_us, cost) = (Terms::from(&event.limit), event.now.get(), event.cost.get());
        let expected = match event.kind {
            Kind::Take => model.take(&terms, now_us, cost),
            Kind::Peek => model.peek(&terms, now_us, cost),
            Kind::Lease => model.lease(&terms, now_us, cost),
            Kind::Reserve { max_wait } => model.reserve(&terms, now_us, cost, max_wait.get()),
            Kind::Give => model.give(now_us, cost),
        };
        prop_assert_eq!(model::Answer::from(event.decision), expected, "{:?}", event);
        prop_assert_eq!(event.after.as_ref().map(State::from), model.key.clone(), "{:?}", event);
    }
    Ok(())
}
