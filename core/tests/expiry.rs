//! When a key may go: not before its bucket is full, and not much later.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use rl_core::expiry::Expiry;
use rl_core::{Bucket, Held, Limit, MAX_INTEGER, Rate, Tokens, UnixMicros, UnixMillis, Wait};
use support::generate::{held, limit, tokens};
use support::model::{Terms, fraction, whole};

/// The time at which the bucket is full, in exact milliseconds.
fn full_ms(held: &Held) -> num_rational::BigRational {
    let terms = Terms::from(&held.limit);
    let tokens = fraction(held.bucket.level, held.limit.rate().period_us().get());
    (whole(held.bucket.last_change.get()) + (terms.capacity - tokens) / terms.per_us) / whole(1_000)
}

/// The first microsecond of a millisecond; `None` if the clock does not go that far.
fn start_of(millis: u64) -> Option<UnixMicros> {
    millis.checked_mul(1_000).filter(|micros| *micros <= MAX_INTEGER).map(UnixMicros::saturating)
}

fn within(held: &Held) -> Option<(u64, u64)> {
    match held.bucket.expiry(&held.limit, Some(&held.limit)) {
        Expiry::Within { earliest, latest } => Some((earliest.get(), latest.get())),
        Expiry::Theirs | Expiry::Never => None,
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn earliest_is_when_the_bucket_is_full_rounded_up(held in held()) {
        if let Some((earliest, _)) = within(&held) {
            prop_assert_eq!(whole(earliest), full_ms(&held).ceil().min(whole(MAX_INTEGER)));
        }
    }

    #[test]
    fn latest_is_a_second_and_an_eighth_of_the_refill_later_at_most(held in held()) {
        if let Some((earliest, latest)) = within(&held) {
            let terms = Terms::from(&held.limit);
            let refill_ms = terms.capacity / terms.per_us / whole(1_000);
            prop_assert!(earliest <= latest);
            prop_assert!(whole(latest - earliest) <= whole(1_000) + refill_ms / whole(8) + whole(1));
        }
    }

    #[test]
    fn there_is_one_for_every_rate_but_0(held in held(), before in proptest::option::of(limit())) {
        let expiry = held.bucket.expiry(&held.limit, before.as_ref());
        match (held.limit.rate().is_zero(), before.is_some_and(|before| !before.rate().is_zero())) {
            (false, _) => prop_assert!(matches!(expiry, Expiry::Within { .. }), "{:?}", expiry),
            (true, true) => prop_assert_eq!(expiry, Expiry::Never),
            (true, false) => prop_assert_eq!(expiry, Expiry::Theirs),
        }
    }

    #[test]
    fn a_key_gone_at_earliest_decides_as_one_still_there(held in held(), cost in tokens(), later_ms in 0..10_000_u64) {
        let Some((earliest, _)) = within(&held) else { return Ok(()) };
        for then in [start_of(earliest), start_of(earliest + later_ms)].into_iter().flatten() {
            let there = held.limit.take(Some(&held), then, cost);
            prop_assert_eq!(there, held.limit.take(None, then, cost));
        }
    }

    #[test]
    fn a_key_gone_a_millisecond_before_earliest_would_give_away_what_is_charged(held in held()) {
        let Some((earliest, _)) = within(&held) else { return Ok(()) };
        let Some(then) = earliest.checked_sub(1).and_then(start_of) else { return Ok(()) };
        if then >= held.bucket.last_change {
            prop_assert!(held.under(&held.limit, then).level < held.limit.full());
        }
    }
}

fn at(ms: u64) -> UnixMillis {
    UnixMillis::saturating(u128::from(ms))
}

/// Ten at 5/s, emptied at 1.0005 s: full again at 3.0005 s, so from 3,001 ms, up to a second and an eighth of 2 s more.
fn emptied() -> (Bucket, Limit) {
    let limit = Limit::new(Tokens::new(10).unwrap(), Rate::new(5, 1_000_000).unwrap());
    (Bucket { level: 0, last_change: UnixMicros::saturating(1_000_500) }, limit)
}

#[test]
fn a_fraction_of_a_millisecond_is_rounded_up_and_the_margin_added() {
    let (bucket, limit) = emptied();
    let expected = Expiry::Within { earliest: at(3_001), latest: at(4_251) };
    assert_eq!(bucket.expiry(&limit, None), expected);
}

#[test]
fn an_expiry_is_accepted_from_earliest_to_latest_and_nowhere_else() {
    let (bucket, limit) = emptied();
    let expiry = bucket.expiry(&limit, None);
    let table = [
        (None, false),
        (Some(at(3_000)), false),
        (Some(at(3_001)), true),
        (Some(at(4_251)), true),
        (Some(at(4_252)), false),
    ];
    for (current, accepted) in table {
        assert_eq!(expiry.accepts(current), accepted, "{current:?}");
    }
}

#[test]
fn a_bucket_that_never_fills_leaves_an_expiry_alone_unless_it_came_from_when_it_did() {
    let (bucket, filling) = emptied();
    let unfillable = Limit::new(filling.capacity(), Rate::ZERO);
    assert_eq!(bucket.reset_after(&unfillable), Wait::Never);
    let (theirs, never) = (bucket.expiry(&unfillable, Some(&unfillable)), bucket.expiry(&unfillable, Some(&filling)));
    assert_eq!((theirs.accepts(None), theirs.accepts(Some(at(5)))), (true, true));
    assert_eq!((never.accepts(None), never.accepts(Some(at(5)))), (true, false));
}
