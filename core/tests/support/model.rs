//! A token bucket too simple to be wrong: tokens as exact fractions, one rule a line, nothing of the code under test.
//!
//! It rounds in one place. When the limit changes, the tokens held are rounded down to a multiple of 1/`period_us` of
//! the new rate in its lowest terms, because that is the unit in which a bucket under the new limit is counted. A bucket
//! of rate 0 is counted in the unit of a day.

use num_bigint::BigInt;
use num_rational::BigRational;
use rl_core::{Decision, Held, Limit, MAX_INTEGER, Outcome, Wait};

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
    /// The tokens that a lease was granted.
    pub granted: Option<BigInt>,
    pub remaining: BigInt,
    /// Until the call may act if it is allowed, until it is allowed if it is not.
    pub wait_us: Option<BigInt>,
    pub reset_after_us: Option<BigInt>,
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        let us = |wait| match wait {
            Wait::Micros(us) => Some(BigInt::from(us)),
            Wait::Never => None,
        };
        let now = Some(BigInt::from(0));
        let (allowed, granted, wait_us) = match decision.outcome {
            Outcome::Allowed => (true, None, now),
            Outcome::Granted(tokens) => (true, Some(BigInt::from(tokens.get())), now),
            Outcome::Booked { act_after } => (true, None, us(act_after)),
            Outcome::Denied { retry_after } => (false, None, us(retry_after)),
        };
        let remaining = BigInt::from(decision.remaining);
        Self { allowed, granted, remaining, wait_us, reset_after_us: us(decision.reset_after) }
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
        // Nobody owes more than can be written down; rounding a debt down makes it larger.
        kept.min(terms.capacity.clone()).max(whole(0) - whole(MAX_INTEGER))
    }

    pub fn take(&mut self, terms: &Terms, now_us: u64, cost: u64) -> Answer {
        let before = self.tokens_at(terms, now_us);
        if cost == 0 || before >= whole(cost) {
            return self.charge(terms, now_us, cost, before);
        }
        self.refuse(terms, now_us, cost, &before, whole(cost) - &before)
    }

    pub fn peek(&self, terms: &Terms, now_us: u64, cost: u64) -> Answer {
        let tokens = self.tokens_at(terms, now_us);
        // Told what a take would be, but for what it would leave.
        let taken = self.clone().take(terms, now_us, cost);
        told(terms, taken.allowed, taken.wait_us, &tokens)
    }

    /// As many as are there.
    pub fn lease(&mut self, terms: &Terms, now_us: u64, wanted: u64) -> Answer {
        let before = self.tokens_at(terms, now_us);
        if wanted > 0 && before < whole(1) {
            return self.refuse(terms, now_us, 1, &before, whole(1) - &before);
        }
        let granted = whole(wanted).min(before.floor()).max(whole(0));
        let granted = u64::try_from(granted.to_integer()).unwrap();
        let granted_to = Some(BigInt::from(granted));
        Answer { granted: granted_to, ..self.charge(terms, now_us, granted, before) }
    }

    /// Charged now if the debt is repaid in time, and can be written down.
    pub fn reserve(&mut self, terms: &Terms, now_us: u64, cost: u64, max_wait_us: u64) -> Answer {
        let before = self.tokens_at(terms, now_us);
        let short = whole(cost) - &before;
        if cost == 0 || short <= whole(0) {
            return self.charge(terms, now_us, cost, before);
        }
        let too_late = &short - whole(max_wait_us) * &terms.per_us;
        let too_deep = &short - whole(MAX_INTEGER);
        let excess = too_late.max(too_deep);
        let possible = whole(cost) <= terms.capacity && terms.per_us > whole(0);
        if !possible || excess > whole(0) {
            return self.refuse(terms, now_us, cost, &before, excess);
        }
        Answer { wait_us: wait_us(terms, short), ..self.charge(terms, now_us, cost, before) }
    }

    /// Under the limit in force. There must be a key; a full bucket is forgotten.
    pub fn give(&mut self, now_us: u64, tokens: u64) -> Answer {
        let terms = self.key.as_ref().unwrap().terms.clone();
        let left = (self.tokens_at(&terms, now_us) + whole(tokens)).min(terms.capacity.clone());
        if tokens > 0 {
            let full = left == terms.capacity;
            self.key = (!full).then(|| State { terms: terms.clone(), tokens: left.clone(), at_us: now_us });
        }
        told(&terms, true, Some(BigInt::from(0)), &left)
    }

    fn charge(&mut self, terms: &Terms, now_us: u64, cost: u64, before: BigRational) -> Answer {
        let left = before - whole(cost);
        if cost > 0 {
            self.key = Some(State { terms: terms.clone(), tokens: left.clone(), at_us: now_us });
        }
        told(terms, true, Some(BigInt::from(0)), &left)
    }

    /// Allowed once `missing` has come in. Written only if that changes what the next call finds: a new limit, or a clock
    /// that stepped back. A cost above the capacity is refused whatever the key holds, and so may leave it alone.
    fn refuse(&mut self, terms: &Terms, now_us: u64, cost: u64, there: &BigRational, missing: BigRational) -> Answer {
        let hopeless = whole(cost) > terms.capacity;
        let moved = self.key.as_ref().is_some_and(|state| state.terms != *terms || now_us < state.at_us);
        if moved && !hopeless {
            self.key = Some(State { terms: terms.clone(), tokens: there.clone(), at_us: now_us });
        }
        let retry = if hopeless || terms.per_us == whole(0) { None } else { wait_us(terms, missing) };
        told(terms, false, retry, there)
    }
}

fn told(terms: &Terms, allowed: bool, wait: Option<BigInt>, left: &BigRational) -> Answer {
    Answer {
        allowed,
        granted: None,
        remaining: left.floor().to_integer().max(BigInt::from(0)),
        wait_us: wait,
        reset_after_us: wait_us(terms, &terms.capacity - left),
    }
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
