//! The invariants, each over random histories: calls, waits, clock steps, changed limits.
//!
//! The exact retry time (3) is in `retry.rs`, the codec (5) in `codec.rs`, the parsers' part of (8) in `hostile.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::codec::{self, Record, RecordedExpiry};
use rl_core::{Bucket, Held, MAX_INTEGER, Outcome, Tokens, UnixMicros, Wait};
use support::generate::{anything, clock_steps, held, integer, moment, steady};
use support::history::{Event, Kind, agrees_with_the_model, take};
use support::model::{Model, State, Terms, fraction, whole};

/// Whether what was admitted between any two events is at most the capacity and what came in meanwhile.
fn window_bound(events: &[Event]) -> Result<(), TestCaseError> {
    for (first, start) in events.iter().enumerate() {
        let terms = Terms::from(&start.limit);
        let mut admitted = whole(0);
        for end in &events[first..] {
            admitted += whole(end.admitted());
            let window_us = whole(end.passed_us - start.passed_us);
            let bound = &terms.capacity + window_us * &terms.per_us;
            prop_assert!(admitted <= bound, "{admitted} admitted, {bound} promised, from {start:?} to {end:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn decisions_and_states_agree_with_the_model(history in anything()) {
        agrees_with_the_model(&history)?;
    }

    #[test]
    fn invariant_1_any_window_admits_at_most_the_capacity_and_its_refill(history in steady()) {
        window_bound(&history.events())?;
    }

    #[test]
    fn invariant_2_a_denial_under_the_limit_in_force_and_a_clock_going_forward_changes_nothing(history in anything()) {
        for event in history.events().iter().filter(|event| event.denied_take().is_some()) {
            let in_force = event.before.is_none_or(|held| held.limit == event.limit);
            let forward = event.before.is_none_or(|held| held.bucket.last_change <= event.now);
            if in_force && forward {
                prop_assert_eq!(event.after, event.before, "{:?}", event);
            }
        }
    }

    #[test]
    fn invariant_2_a_cost_above_the_capacity_is_denied_for_ever_and_changes_nothing(history in anything()) {
        for event in history.events().iter().filter(|event| event.cost > event.limit.capacity()) {
            prop_assert_eq!(event.decision.outcome, Outcome::Denied { retry_after: Wait::Never }, "{:?}", event);
            prop_assert_eq!(event.after, event.before, "{:?}", event);
        }
    }

    #[test]
    fn invariant_2_any_other_denial_keeps_the_tokens_and_brings_limit_and_clock_up_to_date(history in anything()) {
        for event in history.events().iter().filter(|event| event.denied_take().is_some()) {
            let Some(before) = event.before.filter(|_| event.cost <= event.limit.capacity()) else { continue };
            if before.limit != event.limit || event.now < before.bucket.last_change {
                let terms = Terms::from(&event.limit);
                let tokens = Model::of(Some(&before)).tokens_at(&terms, event.now.get());
                let expected = State { terms, tokens, at_us: event.now.get() };
                prop_assert_eq!(event.after.as_ref().map(State::from), Some(expected), "{:?}", event);
            }
        }
    }

    #[test]
    fn invariant_2_a_cost_of_0_is_allowed_and_changes_nothing(
        held in proptest::option::of(held()), other in held(), now in moment(),
    ) {
        let (taken, after) = take(held, &other.limit, now, Tokens::ZERO);
        prop_assert!(taken.decision.is_allowed());
        prop_assert_eq!(after, held);
    }

    #[test]
    fn invariant_4_remaining_is_at_most_the_capacity_and_rises_only_with_time_or_the_limit(history in anything()) {
        let events = history.events();
        for event in &events {
            prop_assert!(event.decision.remaining <= event.limit.capacity().get(), "{:?}", event);
        }
        for pair in events.windows(2) {
            if pair[0].limit == pair[1].limit && pair[1].now <= pair[0].now {
                prop_assert!(pair[1].decision.remaining <= pair[0].decision.remaining, "{:?}", pair);
            }
        }
    }

    #[test]
    fn invariant_4_no_change_of_the_limit_mints_a_fraction_of_a_token(history in anything()) {
        for event in history.events() {
            let (Some(before), Some(after)) = (event.before, event.after) else { continue };
            let there = Model::of(Some(&before)).tokens_at(&Terms::from(&before.limit), event.now.get());
            let kept = fraction(after.bucket.level, after.limit.rate().period_us().get());
            prop_assert!(event.after == event.before || kept + whole(event.admitted()) <= there, "{:?}", event);
        }
    }

    #[test]
    fn invariant_6_a_clock_that_steps_back_admits_nothing_extra(history in clock_steps()) {
        window_bound(&history.events())?;
    }

    /// However far the clock stepped back, the wait is at most that from an empty bucket; `retry.rs` shows it is true.
    #[test]
    fn invariant_6_a_clock_that_steps_back_locks_nobody_out(history in clock_steps()) {
        for event in history.events() {
            let Some(Wait::Micros(retry_us)) = event.denied_take() else { continue };
            let from_empty_us = whole(event.cost.get()) / Terms::from(&event.limit).per_us;
            prop_assert!(whole(retry_us) <= from_empty_us.ceil(), "{:?}", event);
        }
    }

    #[test]
    fn invariant_6_before_its_last_change_a_bucket_holds_what_it_held_then(held in held(), back_us in integer()) {
        let then = UnixMicros::saturating(held.bucket.last_change.get().saturating_sub(back_us));
        prop_assert_eq!(held.under(&held.limit, then), Bucket { last_change: then, ..held.bucket });
    }

    #[test]
    fn invariant_7_a_wait_in_two_parts_is_one_wait(held in held(), first_us in integer(), second_us in integer()) {
        let start = held.bucket.last_change.get();
        let middle = UnixMicros::saturating(start + first_us);
        let end = UnixMicros::saturating(start + first_us + second_us);
        let in_two = held.bucket.refilled(&held.limit, middle).refilled(&held.limit, end);
        prop_assert_eq!(in_two, held.bucket.refilled(&held.limit, end));
    }

    #[test]
    fn millionths_of_a_token_are_the_tokens_held_rounded_down(held in held()) {
        let tokens = fraction(held.bucket.level, held.limit.rate().period_us().get());
        let expected = (tokens * whole(1_000_000)).floor();
        prop_assert_eq!(whole(held.bucket.micro_tokens(&held.limit)), expected);
    }

    #[test]
    fn invariant_8_no_number_panics(
        held in held(), asked in held(), level in any::<i128>(), now in moment(), cost in integer(),
    ) {
        let cost = Tokens::new(cost).unwrap();
        let taken = asked.limit.take(Some(&held), now, cost);
        prop_assert!(taken.decision.remaining <= asked.limit.capacity().get());
        // A level that no decoder lets in and no take leaves: the answer may be any, a panic may not.
        let held = Held { bucket: Bucket { level, ..held.bucket }, limit: held.limit };
        let _ = asked.limit.take(Some(&held), now, cost);
        let _ = codec::encode(&held);
        let _ = held.limit.rate().wait_for(level);
        let _ = held.bucket.micro_tokens(&held.limit);
        let _ = held.bucket.expiry(&held.limit, None);
    }

    /// The primary keeps its state; the reloaded server saves and loads it after every call; the replica gets records.
    #[test]
    fn invariant_9_primary_replica_and_reloaded_server_hold_equal_bytes(history in anything()) {
        let (mut reloaded, mut replica) = (history.held, history.held);
        for event in history.events().iter().filter(|event| event.kind == Kind::Take) {
            let (taken, after) = take(reloaded, &event.limit, event.now, event.cost);
            prop_assert_eq!(taken.decision, event.decision);
            reloaded = after.map(|held| codec::decode(codec::encode(&held).as_bytes()).unwrap());
            if let Some(bucket) = taken.change {
                let record = Record { expiry: RecordedExpiry::Unstated, state: Held { bucket, limit: event.limit } };
                replica = Some(codec::decode_record(codec::encode_record(&record).as_bytes()).unwrap().state);
            }
            let bytes = |held: Option<Held>| held.map(|held| codec::encode(&held).as_bytes().to_vec());
            prop_assert_eq!(bytes(reloaded), bytes(event.after));
            prop_assert_eq!(bytes(replica), bytes(event.after));
        }
    }
}

#[test]
fn invariant_8_a_clock_beyond_its_range_stands_still() {
    assert_eq!(UnixMicros::saturating(u64::MAX).get(), MAX_INTEGER);
    assert_eq!(UnixMicros::saturating(u64::MAX).since(UnixMicros::saturating(MAX_INTEGER)), 0);
}
