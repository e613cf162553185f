//! Take, look, lease, reserve and give back, mixed: each agrees with the model, and together they keep the promises of a
//! bucket. What only a booking promises is in `reservations.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::codec::{decode, encode};
use rl_core::{Bucket, Held, Outcome, Tokens, UnixMicros, Wait};
use support::generate::{held, integer, limit, moment, tokens};
use support::history::{Event, Kind, agrees_with_the_model, call, later};
use support::mixed::{mixed_anything, mixed_clock_steps};
use support::model::{Model, State, Terms, whole};

/// The tokens in the key at `event`, before it.
fn there(event: &Event) -> num_rational::BigRational {
    Model::of(event.before.as_ref()).tokens_at(&Terms::from(&event.limit), event.now.get())
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn decisions_and_states_agree_with_the_model(history in mixed_anything()) {
        agrees_with_the_model(&history)?;
    }

    #[test]
    fn every_call_has_its_own_kind_of_outcome(history in mixed_anything()) {
        for event in history.events() {
            let fits = matches!(
                (event.kind, event.decision.outcome),
                (Kind::Take | Kind::Peek | Kind::Lease | Kind::Reserve { .. }, Outcome::Denied { .. })
                    | (Kind::Take | Kind::Peek | Kind::Give, Outcome::Allowed)
                    | (Kind::Lease, Outcome::Granted(_))
                    | (Kind::Reserve { .. }, Outcome::Booked { act_after: Wait::Micros(_) })
            );
            prop_assert!(fits, "{:?}", event);
        }
    }

    #[test]
    fn a_window_charges_at_most_the_capacity_its_refill_its_gifts_and_what_is_owed_at_its_end(
        history in mixed_clock_steps(),
    ) {
        let events = history.events();
        for (first, start) in events.iter().enumerate() {
            let terms = Terms::from(&start.limit);
            let (mut charged, mut given) = (whole(0), whole(0));
            for end in &events[first..] {
                charged += whole(end.admitted());
                given += whole(if end.kind == Kind::Give { end.cost.get() } else { 0 });
                let refill = whole(end.passed_us - start.passed_us) * &terms.per_us;
                let owed = end.after.map_or(whole(0), |held| -State::from(&held).tokens).max(whole(0));
                let bound = &terms.capacity + refill + &given + owed;
                prop_assert!(charged <= bound, "{charged} charged, {bound} promised, {start:?} to {end:?}");
            }
        }
    }

    #[test]
    fn a_refusal_under_the_limit_in_force_and_a_clock_going_forward_changes_nothing(history in mixed_anything()) {
        for event in history.events().iter().filter(|event| event.refused().is_some()) {
            let moved = event.before.is_some_and(|held| held.limit != event.limit || event.now < held.bucket.last_change);
            if !moved {
                prop_assert_eq!(event.after, event.before, "{:?}", event);
            }
        }
    }

    #[test]
    fn a_refusal_is_retried_exactly_when_it_says(history in mixed_anything()) {
        for event in history.events() {
            let Some(Wait::Micros(retry_us)) = event.refused() else { continue };
            prop_assert!(retry_us > 0, "{:?}", event);
            if let Some(early) = later(event.now, retry_us - 1) {
                let one_more = Outcome::Denied { retry_after: Wait::Micros(1) };
                prop_assert_eq!(event.again(early).0.outcome, one_more, "{:?}", event);
            }
            if let Some(then) = later(event.now, retry_us) {
                prop_assert!(event.again(then).0.is_allowed(), "{:?}", event);
            }
        }
    }

    #[test]
    fn a_refusal_for_ever_is_of_a_rate_of_0_or_of_more_than_the_capacity(history in mixed_anything()) {
        for event in history.events().iter().filter(|event| event.refused() == Some(Wait::Never)) {
            let least = if event.kind == Kind::Lease { Tokens::ONE } else { event.cost };
            prop_assert!(event.limit.rate().is_zero() || least > event.limit.capacity(), "{:?}", event);
        }
    }

    #[test]
    fn what_is_left_is_never_above_full_nor_below_the_deepest_debt_and_is_stored_as_it_is(history in mixed_anything()) {
        for event in history.events() {
            let Some(after) = event.after else { continue };
            prop_assert!(after.bucket.level <= after.limit.full(), "{:?}", event);
            prop_assert!(after.bucket.level >= after.limit.most_owed(), "{:?}", event);
            prop_assert_eq!(decode(encode(&after).as_bytes()), Ok(after), "{:?}", event);
        }
    }

    #[test]
    fn owed_tokens_are_seen_as_none_and_grant_nothing(history in mixed_anything()) {
        for event in history.events().iter().filter(|event| there(event) < whole(1)) {
            let lenient = matches!(event.kind, Kind::Give | Kind::Reserve { .. }) || event.cost == Tokens::ZERO;
            prop_assert!(lenient || !event.decision.is_allowed(), "{:?}", event);
            prop_assert!(event.kind == Kind::Give || event.decision.remaining == 0, "{:?}", event);
        }
    }

    #[test]
    fn nothing_asked_for_is_allowed_at_once_and_changes_nothing(
        held in proptest::option::of(held()), other in limit(), now in moment(), max_wait in integer(),
    ) {
        let max_wait = rl_core::Micros::new(max_wait).unwrap();
        let expected = [
            (Kind::Take, Outcome::Allowed),
            (Kind::Lease, Outcome::Granted(Tokens::ZERO)),
            (Kind::Reserve { max_wait }, Outcome::Booked { act_after: Wait::NONE }),
        ];
        for (kind, outcome) in expected {
            let (decision, after) = call(kind, held, &other, now, Tokens::ZERO);
            prop_assert_eq!((decision.outcome, after), (outcome, held), "{:?}", kind);
        }
        if let Some(held) = held {
            let (decision, after) = call(Kind::Give, Some(held), &held.limit, now, Tokens::ZERO);
            prop_assert_eq!((decision.outcome, after), (Outcome::Allowed, Some(held)));
        }
    }

    #[test]
    fn a_lease_is_granted_the_lesser_of_what_it_wants_and_the_whole_tokens_there(
        held in held(), wanted in tokens(), now in moment(),
    ) {
        let there = held.under(&held.limit, now).remaining(&held.limit);
        let (decision, _) = call(Kind::Lease, Some(held), &held.limit, now, wanted);
        let granted = wanted.get().min(there);
        if granted > 0 || wanted == Tokens::ZERO {
            prop_assert_eq!(decision.outcome, Outcome::Granted(Tokens::new(granted).unwrap()));
        } else {
            let (taken, _) = call(Kind::Take, Some(held), &held.limit, now, Tokens::ONE);
            prop_assert_eq!(decision, taken, "no token is there: told as a take of one is");
        }
    }

    #[test]
    fn a_gift_of_what_was_charged_is_as_if_nothing_was(held in held(), cost in tokens(), max_wait in integer()) {
        let (limit, now) = (held.limit, held.bucket.last_change);
        let max_wait = rl_core::Micros::new(max_wait).unwrap();
        for kind in [Kind::Take, Kind::Reserve { max_wait }] {
            let (decision, charged) = call(kind, Some(held), &limit, now, cost);
            if decision.is_allowed() && cost != Tokens::ZERO {
                let (_, given) = call(Kind::Give, charged, &limit, now, cost);
                let expected = (held.bucket.level < limit.full()).then_some(held);
                prop_assert_eq!(given, expected, "{:?}", kind);
            }
        }
    }

    #[test]
    fn no_number_panics(held in held(), asked in held(), level in any::<i128>(), now in moment(), n in tokens()) {
        let max_wait = rl_core::Micros::new(n.get()).unwrap();
        // A level that no decoder lets in and no call leaves: the answer may be any, a panic may not.
        for held in [held, Held { bucket: Bucket { level, ..held.bucket }, ..held }] {
            for kind in [Kind::Take, Kind::Peek, Kind::Lease, Kind::Reserve { max_wait }] {
                let _ = call(kind, Some(held), &asked.limit, now, n);
            }
            let _ = held.give(now, n);
        }
    }
}

#[test]
fn a_gift_to_a_bucket_of_the_future_is_on_the_clock_that_was_set_back() {
    let limit = rl_core::Limit::new(Tokens::new(10).unwrap(), rl_core::Rate::new(1, 1_000_000).unwrap());
    let at = |micros| UnixMicros::saturating(micros);
    let held = Held { bucket: Bucket { level: -2_000_000, last_change: at(9_000_000) }, limit };
    let given = held.give(at(5_000_000), Tokens::new(5).unwrap()).change;
    assert_eq!(given, Some(Bucket { level: 3_000_000, last_change: at(5_000_000) }));
}
