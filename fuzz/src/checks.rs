//! What must be true of every call, whatever the key holds, the limit, the time and the amount.

use rl_core::expiry::Expiry;
use rl_core::{Bucket, Held, Limit, MAX_INTEGER, Micros, Outcome, Tokens, UnixMicros, Wait};

use crate::content::{Content, Told};

/// The moment `wait_us` after `now`; `None` if clocks stand still before that.
fn later(now: UnixMicros, wait_us: u128) -> Option<UnixMicros> {
    let at = u128::from(now.get()).checked_add(wait_us)?;
    u64::try_from(at).ok().filter(|at| *at <= MAX_INTEGER).map(UnixMicros::saturating)
}

fn a_microsecond_before(at: UnixMicros) -> UnixMicros {
    UnixMicros::saturating(at.get() - 1)
}

/// A take: what the key holds from then on, if it is written.
pub fn take<C: Content>(held: Option<&C>, asked: &C::Limit, now: UnixMicros, cost: Tokens) -> Option<C> {
    let most = C::most(asked);
    let before = C::peek(held, asked, now, Tokens::ZERO);
    assert_eq!(before.outcome, Outcome::Allowed, "a cost of 0");
    assert!(before.remaining <= most.get(), "{before:?}");
    let peeked = C::peek(held, asked, now, cost);
    let (decision, after) = C::take(held, asked, now, cost);
    assert_eq!(peeked.outcome, decision.outcome, "a look tells what the call would be told");
    assert_eq!(decision.is_allowed(), cost.get() <= before.remaining, "{before:?} {decision:?}");
    if decision.is_allowed() {
        assert_eq!(decision.remaining, before.remaining - cost.get());
        assert_eq!(after.is_some(), cost != Tokens::ZERO);
    } else {
        assert_eq!((decision.remaining, decision.reset_after), (before.remaining, before.reset_after));
        let moved = held.is_some_and(|held| held.limit() != *asked || now < held.last_change());
        assert_eq!(after.is_some(), moved && cost <= most, "a denial writes only a new limit or an earlier clock");
    }
    let told = (decision, after);
    written(asked, now, &told);
    retry(held, asked, now, cost, &told, |content, at| C::peek(content, asked, at, cost).is_allowed());
    reset(held, asked, now, &told);
    told.1
}

/// A gift: what the key holds from then on, if it is written.
pub fn give<C: Content>(held: &C, now: UnixMicros, tokens: Tokens) -> Option<C> {
    let limit = held.limit();
    let before = C::peek(Some(held), &limit, now, Tokens::ZERO);
    let told = held.give(now, tokens);
    let remaining = told.0.remaining;
    assert_eq!(told.0.outcome, Outcome::Allowed);
    assert!(before.remaining <= remaining && remaining <= before.remaining.saturating_add(tokens.get()));
    assert!(remaining <= C::most(&limit).get());
    assert_eq!(told.1.is_some(), tokens != Tokens::ZERO);
    written(&limit, now, &told);
    told.1
}

/// A lease from a bucket.
pub fn lease(held: Option<&Held>, asked: &Limit, now: UnixMicros, wanted: Tokens) -> Option<Held> {
    let before = asked.peek(held, now, Tokens::ZERO);
    let answer = asked.lease(held, now, wanted);
    let told = (answer.decision, answer.change.map(|bucket| Held { bucket, limit: *asked }));
    match told.0.outcome {
        Outcome::Granted(granted) => {
            assert_eq!(granted.get(), wanted.get().min(before.remaining));
            assert!(granted != Tokens::ZERO || wanted == Tokens::ZERO, "nothing granted is a denial");
            assert_eq!(told.0.remaining, before.remaining - granted.get());
        }
        Outcome::Denied { .. } => assert_eq!((told.0.remaining, before.remaining), (0, 0)),
        _ => panic!("{told:?}"),
    }
    written(asked, now, &told);
    retry(held, asked, now, wanted.min(Tokens::ONE), &told, |content, at| asked.lease(content, at, wanted).decision.is_allowed());
    told.1
}

/// A booking.
pub fn reserve(held: Option<&Held>, asked: &Limit, now: UnixMicros, cost: Tokens, max_wait: Micros) -> Option<Held> {
    let answer = asked.reserve(held, now, cost, max_wait);
    let told = (answer.decision, answer.change.map(|bucket| Held { bucket, limit: *asked }));
    match told.0.outcome {
        Outcome::Booked { act_after } => {
            assert!(cost <= asked.capacity() || cost == Tokens::ZERO);
            assert!(act_after <= Wait::Micros(max_wait.get().into()), "{told:?}");
            if let (Wait::Micros(wait), Some(after)) = (act_after, told.1) {
                let level = |at: UnixMicros| Bucket::refilled(after.bucket, asked, at).level;
                if let Some(at) = later(now, wait) {
                    assert!(level(at) >= 0, "what was booked has come in");
                    assert!(wait == 0 || level(a_microsecond_before(at)) < 0, "and not before");
                }
            }
        }
        Outcome::Denied { .. } => {}
        _ => panic!("{told:?}"),
    }
    written(asked, now, &told);
    retry(held, asked, now, cost, &told, |content, at| asked.reserve(content, at, cost, max_wait).decision.is_allowed());
    told.1
}

/// What is written is within its bounds, shows what the caller was told, and expires no sooner than it may.
fn written<C: Content>(asked: &C::Limit, now: UnixMicros, (decision, after): &Told<C>) {
    let Some(after) = after else { return };
    assert_eq!(after.stored(), *after, "the stored form is that of the state");
    assert_eq!((after.limit(), after.last_change()), (*asked, now));
    let seen = C::peek(Some(after), asked, now, Tokens::ZERO);
    assert_eq!((seen.remaining, seen.reset_after), (decision.remaining, decision.reset_after));
    if let (Expiry::Within { earliest, latest }, Wait::Micros(reset)) = (after.expiry(), decision.reset_after) {
        assert!(earliest <= latest);
        let unused_us = u128::from(now.get()) + reset;
        let held_at_its_bound = earliest.get() == MAX_INTEGER;
        assert!(held_at_its_bound || u128::from(earliest.get()) * 1_000 >= unused_us, "{after:?}");
    }
}

/// The retry time is exact: told `wait`, the same call passes then and not a microsecond sooner.
fn retry<C: Content>(
    held: Option<&C>,
    asked: &C::Limit,
    now: UnixMicros,
    cost: Tokens,
    (decision, after): &Told<C>,
    passes: impl Fn(Option<&C>, UnixMicros) -> bool,
) {
    let Outcome::Denied { retry_after } = decision.outcome else { return };
    let hopeless = cost > C::most(asked) || !C::comes_back(asked);
    assert_eq!(retry_after == Wait::Never, hopeless, "{decision:?}");
    let Wait::Micros(wait) = retry_after else { return };
    assert!(wait > 0, "{decision:?}");
    if let Some(at) = later(now, wait) {
        let content = after.as_ref().or(held);
        assert!(passes(content, at), "denied again: {content:?} {decision:?}");
        assert!(!passes(content, a_microsecond_before(at)), "told to wait too long: {content:?} {decision:?}");
    }
}

/// So is the time when all of it is back.
fn reset<C: Content>(held: Option<&C>, asked: &C::Limit, now: UnixMicros, (decision, after): &Told<C>) {
    let Some(content) = after.as_ref().or(held) else { return };
    // A look under another limit or an earlier clock is not what a later one goes on from.
    if content.limit() != *asked || now < content.last_change() {
        return;
    }
    let Wait::Micros(wait) = decision.reset_after else { return };
    if let Some(at) = later(now, wait) {
        let then = C::peek(Some(content), asked, at, Tokens::ZERO);
        assert_eq!((then.remaining, then.reset_after), (C::most(asked).get(), Wait::NONE), "{content:?}");
        if wait > 0 {
            let before = C::peek(Some(content), asked, a_microsecond_before(at), Tokens::ZERO);
            assert_ne!(before.reset_after, Wait::NONE, "{content:?}");
        }
    }
}
