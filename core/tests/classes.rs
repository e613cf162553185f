//! Classes of keys, and counts by them.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::classes::{Classes, Outcomes, class_of};

#[test]
fn a_class_is_what_stands_before_the_last_separator_or_the_first_so_many_parts() {
    let rows: [(&str, usize, Option<&str>); 17] = [
        ("login:ip:203.0.113.7", 0, Some("login:ip")),
        ("login:ip:203.0.113.7", 1, Some("login")),
        ("login:ip:203.0.113.7", 2, Some("login:ip")),
        ("login:ip:203.0.113.7", 3, Some("login:ip")),
        ("login:ip:203.0.113.7", 100, Some("login:ip")),
        ("user:42:login", 0, Some("user:42")),
        ("user:42:login", 1, Some("user")),
        ("login:", 0, Some("login")),
        (":login", 0, Some("")),
        (":login", 1, Some("")),
        ("::", 0, Some(":")),
        ("::", 1, Some("")),
        ("::", 2, Some(":")),
        (":", 0, Some("")),
        ("", 0, None),
        ("global", 0, None),
        ("global", 1, None),
    ];
    for (key, depth, class) in rows {
        assert_eq!(class_of(key.as_bytes(), b':', depth), class.map(str::as_bytes), "{key:?} at depth {depth}");
    }
    assert_eq!(class_of(b"a/b:c", b'/', 0), Some(&b"a"[..]));
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_class_is_the_first_parts_of_those_before_the_last(key in "[ab:]{0,12}", depth in 0..5_usize) {
        let parts: Vec<&str> = key.split(':').collect();
        let before = &parts[..parts.len() - 1];
        let taken = if depth == 0 { before } else { &before[..before.len().min(depth)] };
        let expected = (!before.is_empty()).then(|| taken.join(":"));
        prop_assert_eq!(class_of(key.as_bytes(), b':', depth), expected.as_deref().map(str::as_bytes));
    }

    #[test]
    fn the_first_classes_are_counted_each_and_the_rest_together(
        most in 0..4_usize, calls in vec((proptest::option::of(select(vec!["a", "b", "c", "d", "e"])), any::<bool>()), 0..60),
    ) {
        let mut classes = Classes::new(most);
        let mut expected: Vec<(&str, Outcomes)> = Vec::new();
        let mut other = Outcomes::default();
        for (class, is_allowed) in calls {
            classes.count(class.map(str::as_bytes), is_allowed);
            let known = expected.iter().position(|(name, _)| Some(*name) == class);
            let outcomes = match (known, class) {
                (Some(at), _) => &mut expected[at].1,
                (None, Some(class)) if expected.len() < most => {
                    expected.push((class, Outcomes::default()));
                    &mut expected.last_mut().unwrap().1
                }
                _ => &mut other,
            };
            *(if is_allowed { &mut outcomes.allowed } else { &mut outcomes.denied }) += 1;
        }
        let told = classes.all();
        prop_assert!(told.is_sorted_by_key(|(_, outcomes)| u64::MAX - outcomes.allowed - outcomes.denied));
        let told: HashMap<_, _> = told.into_iter().collect();
        prop_assert_eq!(told, expected.iter().map(|(class, outcomes)| (class.as_bytes(), *outcomes)).collect());
        prop_assert_eq!(classes.other(), other);
    }
}
