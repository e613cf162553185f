//! A token bucket too simple to be wrong: tokens as exact fractions, one rule a line, nothing of the code under test.
//!
//! It rounds in one place. When the limit changes, the tokens held are rounded down to a multiple of 1/`period_us` of
//! the new rate in its lowest terms, because that is the unit in which a bucket under the new limit is counted. A bucket
//! of rate 0 is counted in the unit of a day.

use num_bigint::BigInt;
use num_rational::BigRational;
use rl_core::{Decision, Held, Limit, Outcome, Wait};

const DAY_US: u64 = 86_400_000_000;

pub fn whole(number: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(number.into())
}

pub fn fraction(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

/// What a limit promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub capacity: BigRational,
    pub per_us: BigRational,
}

impl From<&Limit> for Terms {
    fn from(limit: &Limit) -> Self {
        Self {
            capacity: whole(limit.capacity().get()),
            per_us: fraction(limit.rate().tokens(), limit.rate().period_us().get()),
        }
    }
}

/// What a caller is told; a wait of `None` is for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub allowed: bool,
    pub remaining: BigInt,
    pub retry_after_us: Option<BigInt>,
    pub reset_after_us: Option<BigInt>,
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        let us = |wait| match wait {
            Wait::Micros(us) => Some(BigInt::from(us)),
            Wait::Never => None,
        };
        let (allowed, retry_after_us) = match decision.outcome {
            Outcome::Allowed | Outcome::Granted(_) | Outcome::Booked { .. } => (true, Some(BigInt::from(0))),
            Outcome::Denied { retry_after } => (false, us(retry_after)),
        };
        let remaining = BigInt::from(decision.remaining);
        Self { allowed, remaining, retry_after_us, reset_after_us: us(decision.reset_after) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub terms: Terms,
    pub tokens: BigRational,
    pub at_us: u64,
}

impl From<&Held> for State {
    fn from(held: &Held) -> Self {
        Self {
            terms: Terms::from(&held.limit),
            tokens: fraction(held.bucket.level, held.limit.rate().period_us().get()),
            at_us: held.bucket.last_change.get(),
        }
    }
}

/// One key; `None` while it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub key: Option<State>,
}

impl Model {
    pub fn of(held: Option<&Held>) -> Self {
        Self { key: held.map(State::from) }
    }

    /// The tokens there are at `now_us` for a call under `terms`.
    pub fn tokens_at(&self, terms: &Terms, now_us: u64) -> BigRational {
        let Some(state) = &self.key else { return terms.capacity.clone() };
        // A clock that stepped back has seen no time pass.
        let elapsed_us = whole(now_us.saturating_sub(state.at_us));
        let refilled = (&state.tokens + elapsed_us * &state.terms.per_us).min(state.terms.capacity.clone());
        let unit =
            if terms.per_us == whole(0) { fraction(1, DAY_US) } else { fraction(1, terms.per_us.denom().clone()) };
        let kept = (refilled / &unit).floor() * unit;
        kept.min(terms.capacity.clone())
    }

    pub fn take(&mut self, terms: &Terms, now_us: u64, cost: u64) -> Answer {
        let before = self.tokens_at(terms, now_us);
        let allowed = cost == 0 || before >= whole(cost);
        let left = if allowed { &before - whole(cost) } else { before.clone() };
        let answer = answer(terms, allowed, &left, cost, &before);
        // A denial is written only if it changes what the next call finds: a new limit, or a clock that stepped back.
        // A cost above the capacity is denied whatever the key holds, and so may leave it alone.
        let moved = self.key.as_ref().is_some_and(|state| state.terms != *terms || now_us < state.at_us);
        if cost != 0 && whole(cost) <= terms.capacity && (allowed || moved) {
            self.key = Some(State { terms: terms.clone(), tokens: left, at_us: now_us });
        }
        answer
    }

    pub fn peek(&self, terms: &Terms, now_us: u64, cost: u64) -> Answer {
        let tokens = self.tokens_at(terms, now_us);
        answer(terms, cost == 0 || tokens >= whole(cost), &tokens, cost, &tokens)
    }
}

fn answer(terms: &Terms, allowed: bool, left: &BigRational, cost: u64, before: &BigRational) -> Answer {
    let retry_after_us = match allowed {
        true => Some(BigInt::from(0)),
        false if whole(cost) > terms.capacity => None,
        false => wait_us(terms, whole(cost) - before),
    };
    let reset_after_us = wait_us(terms, &terms.capacity - left);
    Answer { allowed, remaining: left.floor().to_integer().max(BigInt::from(0)), retry_after_us, reset_after_us }
}

/// Whole microseconds until `tokens` have come in.
fn wait_us(terms: &Terms, tokens: BigRational) -> Option<BigInt> {
    if tokens <= whole(0) {
        Some(BigInt::from(0))
    } else if terms.per_us == whole(0) {
        None
    } else {
        Some((tokens / &terms.per_us).ceil().to_integer())
    }
}
