//! Counters. `sections.rs` shows them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows, under the server's lock: read and written without the cost of an atomic increment.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more.
    pub fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What has come of a command's calls.
pub struct Tally {
    /// The keyspace event of a change by the command.
    pub event: &'static CStr,
    /// All of them, errors included.
    pub calls: Counter,
    /// Those that were allowed.
    pub allowed: Counter,
    /// Those that were denied.
    pub denied: Counter,
    /// Those that were answered with an error.
    pub errors: Counter,
}

impl Tally {
    /// Nothing yet, of the command whose changes are that event.
    pub const fn new(event: &'static CStr) -> Self {
        Self { event, calls: Counter::new(), allowed: Counter::new(), denied: Counter::new(), errors: Counter::new() }
    }
}

/// Calls that gave something back: something above nothing, to a key that was there and not full.
pub static REFUNDS: Counter = Counter::new();
/// Limits that are known: those in use, and those not swept yet. Atomic: read by a forked child, too.
pub static LIMITS: AtomicU64 = AtomicU64::new(0);
