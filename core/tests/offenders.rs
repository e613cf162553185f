//! The sketch of the most denied keys, beside a count of everything.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;

use proptest::prelude::*;
use rl_core::UnixMicros;
use rl_core::offenders::Offenders;

fn noted(most: usize, keys: &[u8]) -> Offenders {
    let mut sketch = Offenders::new(most);
    for (at, key) in keys.iter().enumerate() {
        sketch.note(&[*key], UnixMicros::saturating(at as u64));
    }
    sketch
}

fn counted(keys: &[u8]) -> HashMap<u8, u64> {
    let mut counts = HashMap::new();
    for key in keys {
        *counts.entry(*key).or_default() += 1;
    }
    counts
}

/// Few keys often and many keys seldom, as those who are denied are.
fn denials() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => 0..4_u8, 2 => 0..20_u8, 1 => any::<u8>()], 0..600)
}

proptest! {
    #[test]
    fn a_count_is_the_true_one_or_at_most_its_error_above(keys in denials(), most in 1..40_usize) {
        let counts = counted(&keys);
        for offender in noted(most, &keys).top(most) {
            let truth = counts[&offender.key[0]];
            prop_assert!(offender.denials - offender.error <= truth && truth <= offender.denials, "{:?}", offender);
        }
    }

    #[test]
    fn a_key_denied_more_often_than_its_share_is_there(keys in denials(), most in 1..40_usize) {
        let sketch = noted(most, &keys);
        let there: Vec<u8> = sketch.top(most).iter().map(|offender| offender.key[0]).collect();
        for (key, count) in counted(&keys) {
            prop_assert!(count * most as u64 <= keys.len() as u64 || there.contains(&key), "{} of {}", count, keys.len());
        }
    }

    #[test]
    fn all_counts_together_are_all_denials(keys in denials(), most in 1..40_usize) {
        let total: u64 = noted(most, &keys).top(most).iter().map(|offender| offender.denials).sum();
        prop_assert_eq!(total, keys.len() as u64);
    }

    #[test]
    fn while_there_is_room_every_count_is_exact(keys in prop::collection::vec(0..20_u8, 0..300)) {
        let sketch = noted(20, &keys);
        let found: HashMap<u8, u64> = sketch.top(20).iter().map(|offender| (offender.key[0], offender.denials)).collect();
        prop_assert_eq!(found, counted(&keys));
        prop_assert!(sketch.top(20).iter().all(|offender| offender.error == 0));
    }

    #[test]
    fn the_most_denied_comes_first_and_the_last_time_is_known(keys in denials(), most in 1..40_usize) {
        let sketch = noted(most, &keys);
        let top = sketch.top(most);
        prop_assert!(top.windows(2).all(|pair| pair[0].denials >= pair[1].denials));
        for offender in top {
            let last = keys.iter().rposition(|key| *key == offender.key[0]).unwrap();
            prop_assert_eq!(offender.last.get(), last as u64);
        }
    }

    #[test]
    fn resized_it_keeps_the_most_denied_and_goes_on(keys in denials(), most in 1..40_usize, later in 1..40_usize) {
        let mut sketch = noted(most, &keys);
        let before: Vec<_> = sketch.top(later.min(most)).into_iter().cloned().collect();
        sketch.resize(later);
        prop_assert_eq!(sketch.top(later).into_iter().cloned().collect::<Vec<_>>(), before);
        for key in &keys {
            sketch.note(&[*key], UnixMicros::saturating(10_000));
        }
        prop_assert!(sketch.top(usize::MAX).len() <= later);
    }
}

#[test]
fn without_counters_nothing_is_noted() {
    assert_eq!(noted(0, b"aab").top(10), Vec::<&rl_core::offenders::Offender>::new());
}

#[test]
fn cleared_it_is_empty_and_goes_on() {
    let mut sketch = noted(2, b"aab");
    sketch.clear();
    sketch.note(b"c", UnixMicros::saturating(7));
    let top: Vec<_> =
        sketch.top(10).iter().map(|offender| (offender.key.to_vec(), offender.denials, offender.error)).collect();
    assert_eq!(top, [(b"c".to_vec(), 1, 0)]);
}
