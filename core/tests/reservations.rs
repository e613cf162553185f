//! Bookings: first come, first served, each slot as long after the one before as its tokens take, and none more than the
//! limit admits, counted at the time when it may act.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use num_rational::BigRational;
use proptest::prelude::*;
use rl_core::{Bucket, Decision, Held, Limit, MAX_INTEGER, Micros, Outcome, Rate, Tokens, UnixMicros, Wait};
use support::generate::{integer, limit, moment};
use support::history::{Event, Kind, call, later};
use support::mixed::{mixed_anything, steady_charges};
use support::model::{State, Terms, whole};

fn act_after(decision: &Decision) -> Option<u128> {
    match decision.outcome {
        Outcome::Booked { act_after: Wait::Micros(us) } => Some(us),
        _ => None,
    }
}

fn patience(us: u64) -> Kind {
    Kind::Reserve { max_wait: Micros::new(us).unwrap() }
}

/// When the tokens charged by `event` have come in, and when the caller is told to act, in microseconds since the start.
fn due(event: &Event) -> (BigRational, BigRational) {
    let told_us = whole(event.passed_us + act_after(&event.decision).unwrap_or(0));
    let owed = event.after.map_or(whole(0), |held| -State::from(&held).tokens).max(whole(0));
    let rate = Terms::from(&event.limit).per_us;
    let exact_us = if owed == whole(0) { whole(event.passed_us) } else { whole(event.passed_us) + owed / rate };
    (exact_us, told_us)
}

proptest! {
    #![proptest_config(support::config())]

    /// From when to when does not matter: a window begins and ends with something that acts in it.
    #[test]
    fn a_window_of_acting_admits_at_most_the_capacity_and_its_refill(history in steady_charges()) {
        let acting: Vec<_> = history.events().into_iter().filter(|event| event.admitted() > 0).collect();
        for (first, start) in acting.iter().enumerate() {
            let terms = Terms::from(&start.limit);
            let mut admitted = whole(0);
            for end in &acting[first..] {
                admitted += whole(end.admitted());
                let ((from, told_from), (to, told_to)) = (due(start), due(end));
                let bound = &terms.capacity + (&to - &from) * &terms.per_us;
                prop_assert!(admitted <= bound, "{admitted} admitted, {bound} promised, {start:?} to {end:?}");
                // Told in whole microseconds, rounded up: the first of them may be told that much late.
                let bound = &terms.capacity + (&told_to - &told_from + whole(1)) * &terms.per_us;
                prop_assert!(admitted <= bound, "{admitted} admitted, {bound} promised, {start:?} to {end:?}");
            }
        }
    }

    #[test]
    fn is_told_to_act_when_its_tokens_have_come_in_rounded_up(history in mixed_anything()) {
        for event in history.events() {
            let (Some(act_us), Some(after)) = (act_after(&event.decision), event.after) else { continue };
            if event.cost == Tokens::ZERO {
                continue;
            }
            let level_then = |us| later(event.now, us).map(|then| after.under(&event.limit, then).level);
            prop_assert!(level_then(act_us).is_none_or(|level| level >= 0), "{:?}", event);
            if let Some(early) = act_us.checked_sub(1) {
                prop_assert!(level_then(early).is_none_or(|level| level < 0), "{:?}", event);
            }
        }
    }

    #[test]
    fn whoever_comes_later_acts_no_earlier(history in steady_charges()) {
        let told: Vec<_> = history.events().iter().filter(|event| event.admitted() > 0).map(|e| due(e).1).collect();
        prop_assert!(told.is_sorted(), "{:?}", told);
    }

    #[test]
    fn a_booking_waits_no_longer_than_it_is_willing_to(history in mixed_anything()) {
        for event in history.events() {
            if let (Kind::Reserve { max_wait }, Some(act_us)) = (event.kind, act_after(&event.decision)) {
                prop_assert!(act_us <= u128::from(max_wait.get()), "{:?}", event);
            }
        }
    }

    /// Unless it is the depth of the debt that it was refused for, it waits to the microsecond as long as it is willing to.
    #[test]
    fn a_refused_booking_is_booked_to_the_microsecond_when_it_says(history in mixed_anything()) {
        for event in history.events() {
            let (Kind::Reserve { max_wait }, Some(Wait::Micros(retry_us))) = (event.kind, event.refused()) else { continue };
            let Some(then) = later(event.now, retry_us) else { continue };
            let (decision, after) = event.again(then);
            let depth = after.unwrap().bucket.level - event.limit.most_owed();
            let booked_us = act_after(&decision);
            // Within one microsecond's refill of the deepest there is.
            if depth >= i128::from(event.limit.rate().tokens()) {
                prop_assert_eq!(booked_us, Some(u128::from(max_wait.get())), "{:?}", event);
            }
            prop_assert!(booked_us.is_some_and(|us| us <= max_wait.get().into()), "{:?}", event);
        }
    }

    #[test]
    fn willing_to_wait_for_nothing_it_is_a_take(limit in limit(), level in any::<i128>(), now in moment(), cost in integer()) {
        let level = level.clamp(limit.most_owed(), limit.full());
        let held = Held { bucket: Bucket { level, last_change: now }, limit };
        let cost = Tokens::new(cost).unwrap();
        let (booked, left) = call(patience(0), Some(held), &limit, now, cost);
        let (taken, left_by_take) = call(Kind::Take, Some(held), &limit, now, cost);
        prop_assert_eq!(left, left_by_take);
        let as_take = match booked.outcome {
            Outcome::Booked { act_after: Wait::NONE } => Decision { outcome: Outcome::Allowed, ..booked },
            _ => booked,
        };
        prop_assert_eq!(as_take, taken);
    }

    /// The nth of many at once waits until n times the cost has come in beyond what was there.
    #[test]
    fn callers_at_once_get_waits_of_one_cost_after_the_other(
        limit in limit().prop_filter("lends", |limit| limit.capacity() > Tokens::ZERO && !limit.rate().is_zero()),
        now in moment(), cost in 1..=20_u64, callers in 1..=40_u64,
    ) {
        let cost = cost.min(limit.capacity().get());
        let terms = Terms::from(&limit);
        let mut held = None;
        for caller in 1..=callers {
            let (decision, after) = call(patience(MAX_INTEGER), held, &limit, now, Tokens::new(cost).unwrap());
            let short = (whole(cost * caller) - &terms.capacity).max(whole(0));
            let expected_us = (short / &terms.per_us).ceil();
            if expected_us > whole(MAX_INTEGER) {
                prop_assert!(!decision.is_allowed() && after == held);
                break;
            }
            prop_assert_eq!(act_after(&decision).map(whole), Some(expected_us), "caller {}", caller);
            held = after;
        }
    }
}

const START: UnixMicros = UnixMicros::saturating(1_750_000_000_000_000);

#[test]
fn ten_callers_at_once_at_300_000_per_second_keep_the_third_of_a_microsecond() {
    let limit = Limit::new(Tokens::ONE, Rate::parse(b"300000").unwrap());
    let mut held = None;
    let waits: Vec<_> = (0..10)
        .map(|_| {
            let (decision, after) = call(patience(1_000), held, &limit, START, Tokens::ONE);
            held = after;
            act_after(&decision).unwrap()
        })
        .collect();
    assert_eq!(waits, [0, 4, 7, 10, 14, 17, 20, 24, 27, 30]);
}

#[test]
fn the_deepest_debt_is_2_to_the_53_less_one_and_one_more_waits_for_one_to_be_repaid() {
    let limit = Limit::new(Tokens::new(MAX_INTEGER).unwrap(), Rate::new(MAX_INTEGER.into(), 1).unwrap());
    let most = patience(MAX_INTEGER);
    let (_, emptied) = call(Kind::Take, None, &limit, START, Tokens::new(MAX_INTEGER).unwrap());
    let (booked, deepest) = call(most, emptied, &limit, START, Tokens::new(MAX_INTEGER).unwrap());
    assert_eq!(act_after(&booked), Some(1));
    assert_eq!(deepest.map(|held| held.bucket.level), Some(limit.most_owed()));
    let (refused, after) = call(most, deepest, &limit, START, Tokens::ONE);
    assert_eq!((refused.outcome, after), (Outcome::Denied { retry_after: Wait::Micros(1) }, deepest));
    let (booked, _) = call(most, deepest, &limit, later(START, 1).unwrap(), Tokens::ONE);
    assert_eq!(act_after(&booked), Some(1));
}
