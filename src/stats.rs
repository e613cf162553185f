//! Counters, and the sections of `INFO` that show them.

use std::ffi::{CStr, CString, c_int, c_ulonglong};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use redis_module::raw;
use rl_core::classes::Outcomes;

use crate::server::api::call;
use crate::server::registration::Command;
use crate::types::Holds;
use crate::{COMMANDS, classes, config};

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

/// Registers the sections with the server.
pub fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is that of the load. It fails only for a module that is not being loaded.
    unsafe { call!(RedisModule_RegisterInfoFunc(ctx, Some(info))) };
}

/// The server, while it collects what `INFO` tells.
struct Report(*mut raw::RedisModuleInfoCtx);

impl Report {
    /// Begins a section; without a name it is that of the module.
    fn section(&self, name: Option<&CStr>) {
        // SAFETY: the server's context, here and below, and names and texts that it copies.
        unsafe { call!(RedisModule_InfoAddSection(self.0, name.map_or(ptr::null(), CStr::as_ptr))) };
    }

    fn number(&self, name: &CStr, value: u64) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoAddFieldULongLong(self.0, name.as_ptr(), value as c_ulonglong)) };
    }

    fn text(&self, name: &CStr, value: &CStr) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoAddFieldCString(self.0, name.as_ptr(), value.as_ptr())) };
    }

    /// A field of several, those that `fill` adds.
    fn several(&self, name: &CStr, fill: impl FnOnce()) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoBeginDictField(self.0, name.as_ptr())) };
        fill();
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoEndDictField(self.0)) };
    }

    fn tally(&self, command: &Command) {
        self.several(command.label, || {
            self.number(c"calls", command.tally.calls.get());
            self.number(c"allowed", command.tally.allowed.get());
            self.number(c"denied", command.tally.denied.get());
            self.number(c"errors", command.tally.errors.get());
        });
    }

    fn class(&self, name: &CStr, class: Option<&CStr>, outcomes: Outcomes) {
        self.several(name, || {
            if let Some(class) = class {
                self.text(c"class", class);
            }
            self.number(c"allowed", outcomes.allowed);
            self.number(c"denied", outcomes.denied);
        });
    }
}

unsafe extern "C" fn info(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let report = Report(ctx);
    let commands = || COMMANDS.iter().filter(|command| !command.is_optional || config::cl_throttle());
    let total = |of: fn(&Tally) -> &Counter| commands().map(|command| of(command.tally).get()).sum::<u64>();
    report.section(None);
    report.number(c"allowed", total(|tally| &tally.allowed));
    report.number(c"denied", total(|tally| &tally.denied));
    report.number(c"errors", total(|tally| &tally.errors));
    report.number(c"refunds", REFUNDS.get());
    report.number(c"buckets", Holds::Bucket.value_type().live());
    report.number(c"windows", Holds::Log.value_type().live());
    report.number(c"counters", Holds::Counter.value_type().live());
    report.number(c"quotas", Holds::Quota.value_type().live());
    report.number(c"limits", LIMITS.load(Ordering::Relaxed));
    commands().for_each(|command| report.tally(command));
    if let Some((classes, other)) = classes::all() {
        report.section(Some(c"classes"));
        for (number, (class, outcomes)) in classes.into_iter().enumerate() {
            let name = CString::new(format!("class{number}")).unwrap_or_default();
            report.class(&name, Some(&CString::new(class).unwrap_or_default()), outcomes);
        }
        report.class(c"other", None, other);
    }
}
