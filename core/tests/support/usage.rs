//! Histories of a key that counts what was used, run beside a naive model of it.
//!
//! A model says what is left at some time and no more: how long to wait is searched for, not computed.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use rl_core::codec::{Stored, decode, encode_long};
use rl_core::{Answer, Decision, MAX_INTEGER, Outcome, Tokens, UnixMicros, Usage, Wait};

/// What a key holds, written to be understood.
pub trait Model: Clone + Debug {
    type Real: Usage<Limit: Debug, Change: Debug + PartialEq> + Stored + Clone + PartialEq + Debug;

    fn begin(limit: Limit<Self>, now: i64) -> Self;
    fn limit(&self) -> Limit<Self>;
    fn last_change(&self) -> i64;
    /// Time moves on to `now`, and then `limit` comes into force.
    fn move_on(&mut self, limit: Limit<Self>, now: i64);
    /// How much is left in whole tokens; nothing if more than all of it is used.
    fn left(&self) -> u64;
    fn is_unused(&self) -> bool;
    fn charge(&mut self, cost: u64);
    fn give(&mut self, tokens: u64);
    fn most(limit: Limit<Self>) -> u64;
    /// In so many microseconds nothing is used any more.
    fn horizon(&self) -> i64;
    /// Panics unless `real` says the same.
    fn assert_is(&self, real: &Self::Real);
}

pub type Limit<M> = <<M as Model>::Real as Usage>::Limit;

#[derive(Debug, Clone, Copy)]
pub enum Step<L> {
    Take(L, Cost),
    Peek(L, Cost),
    Give(u64),
    Wait(u64),
    /// As long as the last denial said, and so much more or less.
    WaitForRetryPlus(i64),
    /// As long as the last answer said until all is left again, and so much more or less.
    WaitForResetPlus(i64),
    SetBack(u64),
}

#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Tokens(u64),
    LimitPlus(i64),
}

/// Histories of a few limits that flap, and a clock that goes either way.
pub fn histories<L: Clone + Debug + 'static>(
    limits: impl Strategy<Value = L> + Clone + 'static,
    waits: impl Strategy<Value = u64> + Clone + 'static,
) -> impl Strategy<Value = Vec<Step<L>>> {
    vec(limits, 1..=3).prop_flat_map(move |limits| {
        let limit = prop_oneof![4 => Just(limits[0].clone()), 1 => proptest::sample::select(limits)].boxed();
        let cost = prop_oneof![
            6 => (0..=3_u64).prop_map(Cost::Tokens),
            2 => (-1..=1_i64).prop_map(Cost::LimitPlus),
            1 => (0..=MAX_INTEGER).prop_map(Cost::Tokens),
        ];
        let near = || -1..=1_i64;
        let step = prop_oneof![
            10 => (limit.clone(), cost.clone()).prop_map(|(limit, cost)| Step::Take(limit, cost)),
            1 => (limit, cost).prop_map(|(limit, cost)| Step::Peek(limit, cost)),
            1 => (0..=4_u64).prop_map(Step::Give),
            5 => waits.clone().prop_map(Step::Wait),
            2 => near().prop_map(Step::WaitForRetryPlus),
            1 => near().prop_map(Step::WaitForResetPlus),
            1 => waits.clone().prop_map(Step::SetBack),
        ];
        vec(step, 1..80)
    })
}

struct Run<M: Model> {
    now: i64,
    model: Option<M>,
    real: Option<M::Real>,
    /// Gets the changes only.
    replica: Option<M::Real>,
    retry: i64,
    reset: i64,
}

/// Runs `steps` on a key that is not there at first, and compares all that can be seen with the model after each.
pub fn agrees<M: Model>(start: i64, steps: &[Step<Limit<M>>]) -> TestCaseResult {
    let mut run: Run<M> = Run { now: start, model: None, real: None, replica: None, retry: 0, reset: 0 };
    for step in steps {
        match *step {
            Step::Take(limit, cost) => run.take(limit, amount::<M>(limit, cost))?,
            Step::Peek(limit, cost) => run.peek(limit, amount::<M>(limit, cost))?,
            Step::Give(tokens) => run.give(tokens)?,
            Step::Wait(micros) => run.move_by(i64::try_from(micros).unwrap()),
            Step::WaitForRetryPlus(more) => run.move_by((run.retry + more).max(0)),
            Step::WaitForResetPlus(more) => run.move_by((run.reset + more).max(0)),
            Step::SetBack(micros) => run.move_by(-i64::try_from(micros).unwrap()),
        }
    }
    Ok(())
}

fn amount<M: Model>(limit: Limit<M>, cost: Cost) -> u64 {
    match cost {
        Cost::Tokens(count) => count,
        Cost::LimitPlus(more) => M::most(limit).saturating_add_signed(more).min(MAX_INTEGER),
    }
}

/// How long until `holds`, which stays so if nothing happens.
pub fn search<M: Model>(model: &M, holds: impl Fn(&M) -> bool) -> i64 {
    let at = |wait: i64| {
        let mut later = model.clone();
        later.move_on(model.limit(), model.last_change() + wait);
        holds(&later)
    };
    let (mut not_yet, mut by_then) = (-1, model.horizon());
    while by_then - not_yet > 1 {
        let middle = not_yet + (by_then - not_yet) / 2;
        if at(middle) { by_then = middle } else { not_yet = middle }
    }
    by_then
}

impl<M: Model> Run<M> {
    fn move_by(&mut self, micros: i64) {
        self.now = (self.now + micros).clamp(0, i64::try_from(MAX_INTEGER).unwrap() / 2);
    }

    fn time(&self) -> UnixMicros {
        UnixMicros::saturating(self.now.try_into().unwrap())
    }

    fn seen(&self, limit: Limit<M>) -> M {
        let mut seen = self.model.clone().unwrap_or_else(|| M::begin(limit, self.now));
        seen.move_on(limit, self.now);
        seen
    }

    fn decision(model: &M, outcome: Outcome) -> Decision {
        let reset = search(model, M::is_unused);
        Decision { outcome, remaining: model.left(), reset_after: Wait::Micros(reset.try_into().unwrap()) }
    }

    fn denied(model: &M, cost: u64) -> Decision {
        let retry_after = match cost > M::most(model.limit()) {
            true => Wait::Never,
            false => Wait::Micros(search(model, |later| cost <= later.left()).try_into().unwrap()),
        };
        Self::decision(model, Outcome::Denied { retry_after })
    }

    fn take(&mut self, limit: Limit<M>, cost: u64) -> TestCaseResult {
        let answer = M::Real::take(self.real.as_ref(), &limit, self.time(), Tokens::new(cost).unwrap());
        let mut seen = self.seen(limit);
        if cost <= seen.left() {
            seen.charge(cost);
            prop_assert_eq!(answer.decision, Self::decision(&seen, Outcome::Allowed));
            prop_assert_eq!(answer.change.is_some(), cost > 0, "only what costs is written");
            return self.write(answer, (cost > 0).then_some(seen));
        }
        prop_assert_eq!(answer.decision, Self::denied(&seen, cost));
        if let Outcome::Denied { retry_after: Wait::Micros(micros) } = answer.decision.outcome {
            prop_assert!(micros > 0);
            self.retry = micros.try_into().unwrap();
        }
        let moved = self.model.as_ref().is_some_and(|model| model.limit() != limit || self.now < model.last_change());
        self.write(answer, (moved && cost <= M::most(limit)).then_some(seen))
    }

    fn peek(&mut self, limit: Limit<M>, cost: u64) -> TestCaseResult {
        let told = M::Real::peek(self.real.as_ref(), &limit, self.time(), Tokens::new(cost).unwrap());
        let seen = self.seen(limit);
        let allowed = cost <= seen.left();
        let expected = if allowed { Self::decision(&seen, Outcome::Allowed) } else { Self::denied(&seen, cost) };
        prop_assert_eq!(told, expected);
        Ok(())
    }

    fn give(&mut self, tokens: u64) -> TestCaseResult {
        let (Some(model), Some(real)) = (&self.model, &self.real) else { return Ok(()) };
        let answer = real.give(self.time(), Tokens::new(tokens).unwrap());
        let mut seen = self.seen(model.limit());
        let before = seen.left();
        seen.give(tokens);
        prop_assert_eq!(answer.decision, Self::decision(&seen, Outcome::Allowed));
        prop_assert!(answer.decision.remaining <= before + tokens);
        self.write(answer, (tokens > 0).then_some(seen))
    }

    /// Carries out what was answered, and compares with the model's state if that was to change.
    fn write(&mut self, answer: Answer<<M::Real as Usage>::Change>, changed: Option<M>) -> TestCaseResult {
        if let Wait::Micros(micros) = answer.decision.reset_after {
            self.reset = micros.try_into().unwrap();
        }
        prop_assert_eq!(answer.change.is_some(), changed.is_some(), "{:?}", answer);
        let (Some(change), Some(changed)) = (answer.change, changed) else { return Ok(()) };
        for copy in [&mut self.real, &mut self.replica] {
            match copy {
                Some(held) => held.apply(&change),
                None => *copy = Some(M::Real::begin(&change)),
            }
        }
        let (real, replica) = (self.real.as_mut().unwrap(), self.replica.as_ref().unwrap());
        changed.assert_is(real);
        prop_assert_eq!(real.is_unused(), changed.is_unused());
        prop_assert_eq!(encode_long(real), encode_long(replica));
        // Goes on with what was saved and loaded.
        let reloaded = decode::<M::Real>(&encode_long(real));
        prop_assert_eq!(reloaded.as_ref(), Ok(&*real));
        *real = reloaded.unwrap();
        self.model = Some(changed);
        Ok(())
    }
}
