//! Decisions by class of key, in bounded memory.
//!
//! A class is what keys have in common before their last separator: `login:ip:203.0.113.7` is of the class `login:ip`. With a
//! depth it is the first so many parts, for keys that name the client before the end: `user:42:login` at depth 1 is of the
//! class `user`. A key without a separator is of none.
//!
//! The first classes that come are counted each, up to a number of them; what comes later is counted together.

use std::collections::HashMap;

/// What has come of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// How many were allowed.
    pub allowed: u64,
    /// How many were denied.
    pub denied: u64,
}

impl Outcomes {
    const fn count(&mut self, is_allowed: bool) {
        let counter = if is_allowed { &mut self.allowed } else { &mut self.denied };
        *counter = counter.wrapping_add(1);
    }
}

/// The class of `key`: its parts before the last `separator`, and of these the first `depth`, if that is not 0.
///
/// ```
/// use rl_core::classes::class_of;
/// assert_eq!(class_of(b"user:42:login", b':', 0), Some(&b"user:42"[..]));
/// assert_eq!(class_of(b"user:42:login", b':', 1), Some(&b"user"[..]));
/// assert_eq!(class_of(b"global", b':', 0), None);
/// ```
#[must_use]
pub fn class_of(key: &[u8], separator: u8, depth: usize) -> Option<&[u8]> {
    let last = key.iter().rposition(|byte| *byte == separator)?;
    let end = match depth.checked_sub(1) {
        None => last,
        Some(before) => {
            key.iter().enumerate().filter(|(_, byte)| **byte == separator).nth(before).map_or(last, |(at, _)| at)
        }
    };
    key.get(..end)
}

/// Counts by class.
#[derive(Debug, Default)]
pub struct Classes {
    most: usize,
    by_class: HashMap<Box<[u8]>, Outcomes>,
    other: Outcomes,
}

impl Classes {
    /// At most `most` classes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Counts a call on a key of `class`.
    pub fn count(&mut self, class: Option<&[u8]>, is_allowed: bool) {
        let Some(class) = class else { return self.other.count(is_allowed) };
        if let Some(outcomes) = self.by_class.get_mut(class) {
            outcomes.count(is_allowed);
        } else if self.by_class.len() < self.most {
            self.by_class.entry(class.into()).or_default().count(is_allowed);
        } else {
            self.other.count(is_allowed);
        }
    }

    /// The classes, those with the most calls first.
    #[must_use]
    pub fn all(&self) -> Vec<(&[u8], Outcomes)> {
        let mut all: Vec<_> = self.by_class.iter().map(|(class, outcomes)| (&**class, *outcomes)).collect();
        let calls = |outcomes: &Outcomes| outcomes.allowed.wrapping_add(outcomes.denied);
        all.sort_unstable_by(|(a, x), (b, y)| calls(y).cmp(&calls(x)).then(a.cmp(b)));
        all
    }

    /// What has come of calls on keys without a class, and of classes that came too late.
    #[must_use]
    pub fn other(&self) -> Outcomes {
        self.other
    }
}
