//! Invariant 3: the retry time is exact. Alone on the key, the same call is denied one unit earlier and allowed at it,
//! after a changed limit and a clock step too, in microseconds and in milliseconds.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::{Bucket, Held, Limit, MAX_INTEGER, Outcome, Rate, Tokens, UnixMicros, Wait};
use support::generate::anything;
use support::history::{Event, later, take};

/// The same call again, `wait_us` later; `None` if the clock does not go that far.
fn again(event: &Event, wait_us: u128) -> Option<Outcome> {
    let (taken, _) = take(event.after, &event.limit, later(event.now, wait_us)?, event.cost);
    Some(taken.decision.outcome)
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn is_denied_one_microsecond_earlier_and_allowed_at_it(history in anything()) {
        for event in history.events() {
            let Some(Wait::Micros(retry_us)) = event.denied_take() else { continue };
            prop_assert!(retry_us > 0, "{:?}", event);
            let one_more = Outcome::Denied { retry_after: Wait::Micros(1) };
            prop_assert_eq!(again(&event, retry_us - 1).unwrap_or(one_more), one_more, "{:?}", event);
            prop_assert_eq!(again(&event, retry_us).unwrap_or(Outcome::Allowed), Outcome::Allowed, "{:?}", event);
        }
    }

    #[test]
    fn is_denied_one_millisecond_earlier_and_allowed_at_it_when_told_in_milliseconds(history in anything()) {
        for event in history.events() {
            let Some(Wait::Micros(retry_us)) = event.denied_take() else { continue };
            let retry_ms = retry_us.div_ceil(1_000);
            let early = again(&event, (retry_ms - 1) * 1_000);
            prop_assert!(early != Some(Outcome::Allowed), "{:?}", event);
            prop_assert!(again(&event, retry_ms * 1_000).is_none_or(|then| then == Outcome::Allowed), "{:?}", event);
        }
    }

    #[test]
    fn is_never_only_when_no_wait_helps(history in anything()) {
        for event in history.events() {
            if event.denied_take() != Some(Wait::Never) {
                continue;
            }
            prop_assert!(event.cost > event.limit.capacity() || event.limit.rate().is_zero(), "{:?}", event);
            let (taken, _) = take(event.after, &event.limit, UnixMicros::saturating(MAX_INTEGER), event.cost);
            prop_assert_eq!(taken.decision.outcome, Outcome::Denied { retry_after: Wait::Never }, "{:?}", event);
        }
    }

    #[test]
    fn reset_is_when_the_bucket_is_first_full(history in anything()) {
        for event in history.events() {
            // What the decision speaks of: the bucket after the call, under the call's limit.
            let bucket = event.after.map_or(Bucket::full(&event.limit, event.now), |held| {
                held.under(&event.limit, event.now)
            });
            let level_after = |wait_us| later(event.now, wait_us).map(|then| bucket.refilled(&event.limit, then).level);
            match event.decision.reset_after {
                Wait::Never => prop_assert!(event.limit.rate().is_zero() && bucket.level < event.limit.full()),
                Wait::Micros(0) => prop_assert_eq!(bucket.level, event.limit.full(), "{:?}", event),
                Wait::Micros(us) => {
                    prop_assert!(level_after(us - 1).is_none_or(|level| level < event.limit.full()), "{:?}", event);
                    prop_assert!(level_after(us).is_none_or(|level| level == event.limit.full()), "{:?}", event);
                }
            }
        }
    }
}

// Why a denial may write. Each of these drops what the denial would have written, as "a denial changes no bit" taken
// to the letter would, and finds the promised time broken.

const START: UnixMicros = UnixMicros::saturating(1_750_000_000_000_000);

fn limit(capacity: u64, tokens: u128, period_us: u128) -> Limit {
    Limit::new(Tokens::new(capacity).unwrap(), Rate::new(tokens, period_us).unwrap())
}

fn empty(limit: Limit) -> Held {
    Held { bucket: Bucket { level: 0, last_change: START }, limit }
}

/// How a take of one token ends if the denial at `now` is written, and if it is dropped; both at the promised time.
fn kept_and_dropped(held: Held, asked: &Limit, now: UnixMicros) -> (Outcome, Outcome) {
    let (denied, kept) = take(Some(held), asked, now, Tokens::ONE);
    let Outcome::Denied { retry_after: Wait::Micros(retry_us) } = denied.decision.outcome else {
        panic!("{denied:?} is not a denial with a retry time");
    };
    let promised = later(now, retry_us).unwrap();
    let outcome = |held| take(held, asked, promised, Tokens::ONE).0.decision.outcome;
    (outcome(kept), outcome(Some(held)))
}

#[test]
fn would_be_a_lie_after_a_raised_limit_if_the_denial_did_not_bring_it_into_force() {
    let (slow, fast) = (limit(10, 1, 3_600_000_000), limit(10, 5, 1_000_000));
    let (kept, dropped) = kept_and_dropped(empty(slow), &fast, START);
    assert_eq!(kept, Outcome::Allowed);
    assert_ne!(dropped, Outcome::Allowed, "the bucket would go on filling at the old rate");
}

#[test]
fn would_never_come_after_rate_0_if_the_denial_did_not_bring_the_new_limit_into_force() {
    let (never, fast) = (limit(10, 0, 1), limit(10, 5, 1_000_000));
    let (kept, dropped) = kept_and_dropped(empty(never), &fast, START);
    assert_eq!(kept, Outcome::Allowed);
    assert_eq!(dropped, Outcome::Denied { retry_after: Wait::Micros(200_000) }, "at any time, for ever");
}

#[test]
fn would_be_the_whole_step_away_if_the_denial_did_not_move_the_bucket_to_the_clock_set_back() {
    let limit = limit(10, 5, 1_000_000);
    let an_hour_back = UnixMicros::saturating(START.get() - 3_600_000_000);
    let (kept, dropped) = kept_and_dropped(empty(limit), &limit, an_hour_back);
    assert_eq!(kept, Outcome::Allowed);
    assert_eq!(dropped, Outcome::Denied { retry_after: Wait::Micros(200_000) }, "until the clock is where it was");
}
