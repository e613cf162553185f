//! A history of calls on one key, and what happened at each.

use rl_core::{Answer, Decision, Held, Limit, MAX_INTEGER, Outcome, Tokens, UnixMicros, Wait};

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

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Take(Limit, Cost),
    Peek(Limit, Cost),
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
}

/// One call, with what the key held before and after.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub kind: Kind,
    pub now: UnixMicros,
    /// The time that has passed since the start, counting only the clock's steps forward.
    pub passed_us: u128,
    pub limit: Limit,
    pub cost: Tokens,
    pub before: Option<Held>,
    pub decision: Decision,
    pub after: Option<Held>,
}

impl Event {
    /// The cost that a take was allowed.
    pub fn admitted(&self) -> u64 {
        if self.kind == Kind::Take && self.decision.is_allowed() { self.cost.get() } else { 0 }
    }

    pub fn denied_take(&self) -> Option<Wait> {
        match (self.kind, self.decision.outcome) {
            (Kind::Take, Outcome::Denied { retry_after }) => Some(retry_after),
            _ => None,
        }
    }
}

/// A take on a key, and what the key holds after it: as a server does it.
pub fn take(held: Option<Held>, limit: &Limit, now: UnixMicros, cost: Tokens) -> (Answer, Option<Held>) {
    let take = limit.take(held.as_ref(), now, cost);
    (take, take.change.map(|bucket| Held { bucket, limit: *limit }).or(held))
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
            match *step {
                Step::Wait(us) => forward(us),
                Step::WaitForRetryPlus(off) => forward(u64::saturating_add_signed(retry_us, off)),
                Step::SetBack(us) => now = UnixMicros::saturating(now.get().saturating_sub(us)),
                Step::Take(limit, cost) => {
                    let (cost, before) = (cost.of(&limit), held);
                    let (taken, after) = take(held, &limit, now, cost);
                    let (kind, decision) = (Kind::Take, taken.decision);
                    events.push(Event { kind, now, passed_us, limit, cost, before, decision, after });
                    held = after;
                    if let Outcome::Denied { retry_after: Wait::Micros(us) } = decision.outcome {
                        retry_us = u64::try_from(us).unwrap_or(MAX_INTEGER);
                    }
                }
                Step::Peek(limit, cost) => {
                    let cost = cost.of(&limit);
                    let (kind, decision) = (Kind::Peek, limit.peek(held.as_ref(), now, cost));
                    events.push(Event { kind, now, passed_us, limit, cost, before: held, decision, after: held });
                }
            }
        }
        events
    }
}
