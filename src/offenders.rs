//! The keys that this node has denied most, for `RL.TOP`. Bounded by `rl.top-keys`, kept in memory only.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rl_core::UnixMicros;
use rl_core::offenders::{Offender, Offenders};

static SKETCH: LazyLock<Mutex<Offenders>> = LazyLock::new(|| Mutex::new(Offenders::default()));

fn sketch() -> MutexGuard<'static, Offenders> {
    SKETCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that `key` was denied at `now`.
pub fn note(key: &[u8], now: UnixMicros) {
    sketch().note(key, now);
}

/// The `count` most denied keys.
pub fn top(count: usize) -> Vec<Offender> {
    sketch().top(count).into_iter().cloned().collect()
}

/// Forgets all of them.
pub fn clear() {
    sketch().clear();
}

/// Keeps at most `most` from now on; with 0 nothing is noted.
pub fn resize(most: usize) {
    sketch().resize(most);
}
