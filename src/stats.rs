//! Counters, and the sections of `INFO` that show them.

use std::ffi::{CStr, c_int, c_ulonglong};
use std::sync::atomic::{AtomicU64, Ordering};

use redis_module::raw;

use crate::COMMANDS;
use crate::server::api::call;

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

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What has come of a command's calls.
pub struct Tally {
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
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { calls: Counter::new(), allowed: Counter::new(), denied: Counter::new(), errors: Counter::new() }
    }
}

/// Buckets that are there. Atomic: they are freed on background threads, too.
pub static BUCKETS: AtomicU64 = AtomicU64::new(0);
/// Limits that are known: those in use, and those not swept yet.
pub static LIMITS: AtomicU64 = AtomicU64::new(0);

/// Registers the sections with the server.
pub fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is that of the load. It fails only for a module that is not being loaded.
    unsafe { call!(RedisModule_RegisterInfoFunc(ctx, Some(info))) };
}

unsafe extern "C" fn info(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let add = |name: &CStr, value: u64| {
        // SAFETY: the server's context, and a name that it copies.
        unsafe { call!(RedisModule_InfoAddFieldULongLong(ctx, name.as_ptr(), value as c_ulonglong)) };
    };
    let total = |of: fn(&Tally) -> &Counter| COMMANDS.iter().map(|command| of(command.tally).get()).sum::<u64>();
    // SAFETY: as above. Without a name, the section is that of the module: `INFO rl`.
    unsafe { call!(RedisModule_InfoAddSection(ctx, std::ptr::null())) };
    add(c"allowed", total(|tally| &tally.allowed));
    add(c"denied", total(|tally| &tally.denied));
    add(c"errors", total(|tally| &tally.errors));
    add(c"buckets", BUCKETS.load(Ordering::Relaxed));
    add(c"limits", LIMITS.load(Ordering::Relaxed));
    for command in &COMMANDS {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoBeginDictField(ctx, command.label.as_ptr())) };
        add(c"calls", command.tally.calls.get());
        add(c"allowed", command.tally.allowed.get());
        add(c"denied", command.tally.denied.get());
        add(c"errors", command.tally.errors.get());
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoEndDictField(ctx)) };
    }
}
