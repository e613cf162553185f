//! The context of a command: the clock, memory, replies, replication.

use std::ffi::{CStr, c_int, c_long, c_longlong};
use std::marker::PhantomData;
use std::slice;

use redis_module::raw;
use rl_core::{Decision, MAX_INTEGER, Outcome, Tokens, UnixMicros, Wait};

use super::api::call;
use super::arguments::KeyName;
use crate::error::Error;
use crate::stats::Tally;

/// The command that writes a state as it is, on replicas and from the AOF.
pub const RESTORE_COMMAND: &CStr = c"RL.RESTORE";

/// The server, for as long as a command runs. Proof that its lock is held.
pub struct Context<'a> {
    pub(super) raw: *mut raw::RedisModuleCtx,
    tally: &'static Tally,
    command: PhantomData<&'a ()>,
}

impl Context<'_> {
    /// The context of the command that runs.
    ///
    /// # Safety
    /// `raw` is what the server passed to the command, which runs for as long as the result lives.
    pub unsafe fn new(raw: *mut raw::RedisModuleCtx, tally: &'static Tally) -> Self {
        Self { raw, tally, command: PhantomData }
    }

    /// The time that decisions go by: wall time, in microseconds.
    ///
    /// Where the server has it, the time at which it began to execute, which stands still in a transaction or a script
    /// and is the time by which keys expire. Else the system's clock: a clock of milliseconds, as the older servers have,
    /// would halve the rate of a bucket that holds one token and gets a thousand a second.
    pub fn now(&self) -> UnixMicros {
        // SAFETY: optional functions are written only while the server initialises the module; this one takes nothing.
        let cached = unsafe { raw::RedisModule_CachedMicroseconds.map(|cached| cached()) };
        let micros = match cached {
            Some(micros) => u64::try_from(micros).unwrap_or(0),
            None => system_micros(),
        };
        UnixMicros::saturating(micros)
    }

    /// Whether the server would refuse a command that needs memory: above `maxmemory`, with nothing to evict.
    pub fn is_out_of_memory(&self) -> bool {
        // SAFETY: `raw` is the running command's context.
        let flags = unsafe { call!(RedisModule_GetContextFlags(self.raw)) };
        flags & raw::REDISMODULE_CTX_FLAGS_OOM as c_int != 0 && self.is_memory_refused()
    }

    /// The flags say how memory is now, and now it may be a little above what eviction had brought it down to before the
    /// command. What the server goes by is how it was then, and it only tells when asked to run something: a SET is
    /// refused for want of memory, or else because it writes (W), and so never carried out.
    fn is_memory_refused(&self) -> bool {
        // SAFETY: the format says that errors are wanted as replies (E), that memory counts (M), and that two C strings
        // follow. The text lasts until the reply is freed.
        unsafe {
            let reply = call!(RedisModule_Call(
                self.raw,
                c"SET".as_ptr(),
                c"EMWcc".as_ptr(),
                c"key".as_ptr(),
                c"value".as_ptr(),
            ));
            if reply.is_null() {
                return true;
            }
            let mut len = 0;
            let text = call!(RedisModule_CallReplyStringPtr(reply, &raw mut len));
            let refused = !text.is_null() && slice::from_raw_parts(text.cast::<u8>(), len).starts_with(b"OOM");
            call!(RedisModule_FreeCallReply(reply));
            refused
        }
    }

    /// Sends `payload` to replicas and the AOF, as the state of `key`.
    pub fn replicate_state(&self, key: KeyName, payload: &[u8]) {
        // SAFETY: the format says what follows: a string of the server, and a buffer with its length, which the server
        // copies. It can only fail for a command that does not exist; ours does, or the module would not have loaded.
        unsafe {
            call!(RedisModule_Replicate(
                self.raw,
                RESTORE_COMMAND.as_ptr(),
                c"sb".as_ptr(),
                key.raw,
                payload.as_ptr(),
                payload.len(),
            ));
        }
    }

    /// Tells replicas and the AOF that `key` is gone.
    pub fn replicate_deletion(&self, key: KeyName) {
        // SAFETY: as in `replicate_state`.
        unsafe { call!(RedisModule_Replicate(self.raw, c"DEL".as_ptr(), c"s".as_ptr(), key.raw)) };
    }

    /// Sends the running command to replicas and the AOF as it came.
    pub fn replicate_verbatim(&self) {
        // SAFETY: `raw` is the running command's context.
        unsafe { call!(RedisModule_ReplicateVerbatim(self.raw)) };
    }

    /// Tells transactions and client-side caches that `key` has changed. The server leaves that to the module (see the
    /// options in `load`), so that a denial can leave it out.
    pub fn signal_modified(&self, key: KeyName) {
        // SAFETY: `raw` and the name are those of the running command.
        unsafe { call!(RedisModule_SignalModifiedKey(self.raw, key.raw)) };
    }

    /// Replies with an integer.
    pub fn reply_integer(&self, integer: i64) {
        // SAFETY: `raw` is the running command's context, here and in the replies below.
        unsafe { call!(RedisModule_ReplyWithLongLong(self.raw, c_longlong::from(integer))) };
    }

    /// Begins an array of `len` replies.
    pub fn reply_array(&self, len: usize) {
        // SAFETY: as in `reply_integer`.
        unsafe { call!(RedisModule_ReplyWithArray(self.raw, c_long::try_from(len).unwrap_or(c_long::MAX))) };
    }

    /// Begins a map of `len` pairs; an array of twice as many for a client that speaks RESP2.
    pub fn reply_map(&self, len: usize) {
        // SAFETY: as in `reply_integer`.
        unsafe { call!(RedisModule_ReplyWithMap(self.raw, c_long::try_from(len).unwrap_or(c_long::MAX))) };
    }

    /// Replies with a string.
    pub fn reply_string(&self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        // SAFETY: as in `reply_integer`; the server copies the bytes.
        unsafe { call!(RedisModule_ReplyWithStringBuffer(self.raw, text.as_ptr().cast(), text.len())) };
    }

    /// Replies with nil.
    pub fn reply_null(&self) {
        // SAFETY: as in `reply_integer`.
        unsafe { call!(RedisModule_ReplyWithNull(self.raw)) };
    }

    /// Replies `OK`.
    pub fn reply_ok(&self) {
        // SAFETY: as in `reply_integer`.
        unsafe { call!(RedisModule_ReplyWithSimpleString(self.raw, c"OK".as_ptr())) };
    }

    /// Replies with an error.
    pub fn reply_error(&self, error: Error) {
        // SAFETY: as in `reply_integer`; the text is static.
        unsafe {
            match error {
                Error::WrongArity => call!(RedisModule_WrongArity(self.raw)),
                _ => call!(RedisModule_ReplyWithError(self.raw, error.text().as_ptr())),
            }
        };
    }

    /// Counts a decision, as the running command's.
    pub fn count(&self, is_allowed: bool) {
        if is_allowed { self.tally.allowed.count() } else { self.tally.denied.count() }
    }

    /// Tells whoever listens for keyspace events that the running command has changed `key`.
    pub fn notify_changed(&self, key: KeyName) {
        self.notify(raw::REDISMODULE_NOTIFY_MODULE, self.tally.event, key);
    }

    /// Tells them that a call on `key` was denied.
    pub fn notify_denied(&self, key: KeyName) {
        self.notify(raw::REDISMODULE_NOTIFY_MODULE, c"rl.denied", key);
    }

    /// Tells them that `key` was deleted.
    pub fn notify_deleted(&self, key: KeyName) {
        self.notify(raw::REDISMODULE_NOTIFY_GENERIC, c"del", key);
    }

    /// Asks for the setting first (`notify-keyspace-events`): the server looks at it last, after a detour through three
    /// functions that every take would pay for. A module that subscribes to events gets ours if they are switched on.
    fn notify(&self, class: c_int, event: &CStr, key: KeyName) {
        // SAFETY: the function takes nothing.
        let wanted = unsafe { call!(RedisModule_GetNotifyKeyspaceEvents()) };
        if wanted & class == 0 {
            return;
        }
        // SAFETY: `raw` and the name are those of the running command; the server copies the event's name.
        unsafe { call!(RedisModule_NotifyKeyspaceEvent(self.raw, class, event.as_ptr(), key.raw)) };
    }

    /// Replies with a wait in milliseconds.
    pub fn reply_wait(&self, wait: Wait) {
        self.reply_integer(millis(wait));
    }

    /// Replies with the five integers of a decision: allowed, remaining, retry_after_ms, reset_after_ms, limit.
    pub fn reply_decision(&self, decision: &Decision, capacity: Tokens) {
        let (allowed, retry_after_ms) = match decision.outcome {
            Outcome::Allowed => (1, 0),
            Outcome::Granted(tokens) => (integer(tokens.get()), 0),
            Outcome::Booked { act_after } => (1, millis(act_after)),
            Outcome::Denied { retry_after } => (0, millis(retry_after)),
        };
        self.reply_array(5);
        self.reply_integer(allowed);
        self.reply_integer(integer(decision.remaining));
        self.reply_integer(retry_after_ms);
        self.reply_integer(millis(decision.reset_after));
        self.reply_integer(integer(capacity.get()));
    }
}

/// The system's wall clock. Half the instructions of the standard library's, on the path of every take.
fn system_micros() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Unix, and the place for the answer is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000)
}

/// A wait in milliseconds, rounded up; -1 for one that never ends.
fn millis(wait: Wait) -> i64 {
    match wait {
        // What does not fit 64 bits is beyond what can be told, as is what saturates here; `div_ceil` would take a
        // multiplication more.
        Wait::Micros(micros) => {
            told(u64::try_from(micros).map_or(MAX_INTEGER, |micros| micros.saturating_add(999) / 1_000))
        }
        Wait::Never => -1,
    }
}

/// The length of a wait as a reply's integer, held at 2^53 - 1: scripts know doubles only, and what is too long for an
/// integer's 63 bits came out of them as -2^63.
pub fn told(length: u64) -> i64 {
    integer(length.min(MAX_INTEGER))
}

/// As a reply's integer. What is replied is below 2^53.
pub fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
