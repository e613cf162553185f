//! Decisions by class of key, for `INFO rl`. Off unless `rl.key-classes` says how many classes to count: finding the class and
//! its counters costs a few hundred instructions a call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rl_core::classes::{Classes, Outcomes};

static COUNTED: AtomicBool = AtomicBool::new(false);
static CLASSES: LazyLock<Mutex<Classes>> = LazyLock::new(|| Mutex::new(Classes::default()));

fn classes() -> MutexGuard<'static, Classes> {
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call on a key of `class`, or of none; it is looked for only if classes are counted.
pub fn count<'a>(class: impl FnOnce() -> Option<&'a [u8]>, is_allowed: bool) {
    if COUNTED.load(Ordering::Relaxed) {
        classes().count(class(), is_allowed);
    }
}

/// Begins anew, with at most `most` classes; with 0 nothing is counted.
pub fn restart(most: usize) {
    COUNTED.store(most > 0, Ordering::Relaxed);
    *classes() = Classes::new(most);
}

/// The classes as they can stand in `INFO`, and what belongs to none of them. `None` if nothing is counted.
pub fn all() -> Option<(Vec<(String, Outcomes)>, Outcomes)> {
    if !COUNTED.load(Ordering::Relaxed) {
        return None;
    }
    let classes = classes();
    let all = classes.all().into_iter().map(|(class, outcomes)| (escaped(class), outcomes)).collect();
    Some((all, classes.other()))
}

/// Letters, digits and what cannot be mistaken for the end of a field as they are, every other byte as `%` and two hex digits.
fn escaped(class: &[u8]) -> String {
    let mut text = String::new();
    for byte in class {
        match byte {
            b',' | b'=' | b'%' => text.push_str(&format!("%{byte:02X}")),
            b'!'..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
