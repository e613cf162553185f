//! What a value must be able to do that a key of ours holds, and the callbacks by which the server has it done.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use redis_module::raw;
use rl_core::codec::{Encoded, RecordedExpiry};
use rl_core::expiry::Expiry;
use rl_core::{Answer, Decision, Tokens, UnixMicros};

use super::denials::Denials;
use super::expiries;
use crate::error::Error;
use crate::server::api::call;
use crate::server::context::RESTORE_COMMAND;

/// What RDB files are written with; every lower one is read.
const ENCODING_VERSION: c_int = 1;

/// A data type, as the server knows it.
pub struct Type {
    /// Nine characters, for ever: what `TYPE` says and RDB files hold.
    pub name: &'static CStr,
    raw: AtomicPtr<raw::RedisModuleType>,
    live: AtomicU64,
}

impl Type {
    /// A type that is not registered yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, raw: AtomicPtr::new(ptr::null_mut()), live: AtomicU64::new(0) }
    }

    /// The server's pointer to it; null before it is registered.
    pub fn raw(&self) -> *mut raw::RedisModuleType {
        self.raw.load(Ordering::Relaxed)
    }

    /// How many values of it there are. Atomic: they are freed on background threads, too.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }
}

/// What a key holds.
pub trait Value: Sized {
    /// How a call changes it.
    type Change;
    /// Its stored form.
    type Bytes: AsRef<[u8]>;
    /// What it is called when it cannot be loaded.
    const NOUN: &'static str;

    /// Its type.
    fn value_type() -> &'static Type;

    /// The value of a key that was not there, after `change`.
    fn begin(change: &Self::Change) -> Self;
    /// Carries out a change, and says when the key has to expire from then on. `None`: it says no more than a missing key
    /// would, and is to be deleted.
    fn change(&mut self, change: &Self::Change) -> Option<Expiry>;
    /// When the key of a value that has just begun has to expire.
    fn first_expiry(&self) -> Expiry;
    /// What the replicas get of a change.
    fn record(change: &Self::Change, expiry: RecordedExpiry) -> Encoded;
    /// Takes over the state of `other`, but not what was seen of denials.
    fn replace(&mut self, other: Self);

    /// What a take of `cost` at `now` would be told, under the limit in force.
    fn peek(&self, now: UnixMicros, cost: Tokens) -> Decision;
    /// Gives `tokens` back.
    fn give(&self, now: UnixMicros, tokens: Tokens) -> Answer<Self::Change>;
    /// The most that the limit in force allows at once.
    fn capacity(&self) -> Tokens;
    /// When it was last changed.
    fn last_change(&self) -> UnixMicros;
    /// What was seen of denials.
    fn denials(&self) -> &Denials;
    /// The same, to be noted in.
    fn denials_mut(&mut self) -> &mut Denials;

    /// Its stored form.
    fn encode(&self) -> Self::Bytes;
    /// The record of its whole state, without the expiry.
    fn encode_record(&self) -> Self::Bytes;
    /// The value of that stored form.
    ///
    /// Errors: why there is none, to follow a noun.
    fn decode(bytes: &[u8]) -> Result<Self, String>;
    /// One that holds the same, of which nothing was seen of denials.
    fn duplicate(&self) -> Self;
    /// The memory that it holds besides its own.
    fn storage(&self) -> Option<&[u64]> {
        None
    }
    /// The same, for it to be moved.
    fn storage_mut(&mut self) -> Option<&mut Box<[u64]>> {
        None
    }
}

/// Gives the value out of Rust's hands, into the server's.
pub fn into_raw<T: Value>(value: T) -> *mut T {
    T::value_type().live.fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(value))
}

/// Takes a value back, which ends it. From any thread.
///
/// # Safety
/// It came from [`into_raw`] and nobody else has it.
pub unsafe fn drop_raw<T: Value>(value: *mut T) {
    expiries::forget(value.cast());
    T::value_type().live.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(value) });
}

/// Registers the type of `T`.
///
/// Errors: in words, if the server refuses it.
pub fn register<T: Value>(ctx: *mut raw::RedisModuleCtx) -> Result<(), String> {
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(rdb_load::<T>),
        rdb_save: Some(rdb_save::<T>),
        aof_rewrite: Some(aof_rewrite::<T>),
        mem_usage: Some(mem_usage::<T>),
        digest: Some(digest::<T>),
        free: Some(free::<T>),
        copy: Some(copy::<T>),
        defrag: Some(defrag::<T>),
        free_effort: Some(free_effort),
        // Nothing outside of the dataset refers to a value, so there is nothing to tidy when it is unlinked; and nothing
        // is kept beside the keys, so that an RDB file without our keys loads without us.
        unlink: None,
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    };
    let known = T::value_type();
    // SAFETY: `ctx` is that of the load; the server copies the table.
    let raw_type =
        unsafe { call!(RedisModule_CreateDataType(ctx, known.name.as_ptr(), ENCODING_VERSION, &raw mut methods)) };
    known.raw.store(raw_type, Ordering::Relaxed);
    if raw_type.is_null() {
        return Err(format!("librl could not register its data type: {} is taken", known.name.to_string_lossy()));
    }
    Ok(())
}

// The callbacks. The server calls each with a value of this type, which `into_raw` made, and nobody else has it then.

unsafe extern "C" fn rdb_save<T: Value>(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: see above; the server copies the bytes.
    unsafe {
        let encoded = (*value.cast::<T>()).encode();
        let bytes = encoded.as_ref();
        call!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len()));
    }
}

unsafe extern "C" fn rdb_load<T: Value>(io: *mut raw::RedisModuleIO, encoding_version: c_int) -> *mut c_void {
    if encoding_version > ENCODING_VERSION {
        log_load_error(io, "it was written by a newer version of librl");
        return ptr::null_mut();
    }
    // A file is input too: should it find a panic in here, that fails the load and not the process.
    match catch_unwind(|| load::<T>(io)) {
        Ok(Ok(value)) => into_raw(value).cast(),
        Ok(Err(why)) => {
            log_load_error(io, &why);
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

fn load<T: Value>(io: *mut raw::RedisModuleIO) -> Result<T, String> {
    let mut len = 0;
    // SAFETY: `io` is that of the load.
    let buffer = unsafe { call!(RedisModule_LoadStringBuffer(io, &raw mut len)) };
    // SAFETY: as above.
    if buffer.is_null() || unsafe { call!(RedisModule_IsIOError(io)) } != 0 {
        return Err("the file could not be read".to_owned());
    }
    // SAFETY: the server has read `len` bytes into the buffer, which is ours now.
    let decoded = T::decode(unsafe { slice::from_raw_parts(buffer.cast(), len) });
    // SAFETY: the buffer came from the server's allocator and is not used any more.
    unsafe { call!(RedisModule_Free(buffer.cast())) };
    decoded.map_err(|why| format!("{}'s state {why}", T::NOUN))
}

fn log_load_error(io: *mut raw::RedisModuleIO, why: &str) {
    let Ok(why) = CString::new(why) else { return };
    // SAFETY: `io` is that of the load; the format takes one C string.
    unsafe { call!(RedisModule_LogIOError(io, c"warning".as_ptr(), c"cannot load: %s".as_ptr(), why.as_ptr())) };
}

unsafe extern "C" fn aof_rewrite<T: Value>(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: see above; the format says what follows, and the server copies it. It adds the expiry itself.
    unsafe {
        let encoded = (*value.cast::<T>()).encode_record();
        let bytes = encoded.as_ref();
        let format: *const c_char = c"sb".as_ptr();
        call!(RedisModule_EmitAOF(io, RESTORE_COMMAND.as_ptr(), format, key, bytes.as_ptr(), bytes.len()));
    }
}

unsafe extern "C" fn mem_usage<T: Value>(value: *const c_void) -> usize {
    // SAFETY: see above; both came from the server's allocator. An empty storage is no allocation.
    unsafe {
        let storage = (*value.cast::<T>()).storage().filter(|storage| !storage.is_empty());
        let beside = storage.map_or(0, |storage| call!(RedisModule_MallocSize(storage.as_ptr().cast_mut().cast())));
        call!(RedisModule_MallocSize(value.cast_mut())).saturating_add(beside)
    }
}

unsafe extern "C" fn digest<T: Value>(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: see above; the server reads the bytes and keeps none.
    unsafe {
        let encoded = (*value.cast::<T>()).encode();
        let bytes = encoded.as_ref();
        call!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast(), bytes.len()));
        call!(RedisModule_DigestEndSequence(digest));
    }
}

unsafe extern "C" fn free<T: Value>(value: *mut c_void) {
    // SAFETY: see above; the server has let go of the value. Any thread may do this.
    unsafe { drop_raw::<T>(value.cast()) };
}

unsafe extern "C" fn copy<T: Value>(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: see above.
    into_raw(unsafe { (*value.cast::<T>()).duplicate() }).cast()
}

unsafe extern "C" fn defrag<T: Value>(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: see above; the server moves the bytes and has freed the old place if it returns a new one. A value holds
    // no pointer into itself.
    unsafe {
        let moved = call!(RedisModule_DefragAlloc(ctx, *value));
        if !moved.is_null() {
            expiries::forget(*value);
            *value = moved;
        }
        if let Some(storage) = (*(*value).cast::<T>()).storage_mut().filter(|storage| !storage.is_empty()) {
            let moved = call!(RedisModule_DefragAlloc(ctx, storage.as_mut_ptr().cast()));
            if !moved.is_null() {
                let moved = Box::from_raw(ptr::slice_from_raw_parts_mut(moved.cast(), storage.len()));
                // The old place is freed already.
                std::mem::forget(std::mem::replace(storage, moved));
            }
        }
    }
    0
}

/// One or two allocations to free, whatever the value: never worth a background thread.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, _value: *const c_void) -> usize {
    1
}

/// Why a value that was decoded cannot be kept, in words to follow a noun.
pub fn cannot_keep(_: Error) -> String {
    "needs one more limit than can be kept".to_owned()
}
