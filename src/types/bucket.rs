//! The data type `rl-bucket`: a token bucket in 32 bytes.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;
use rl_core::codec::{self, Record, RecordedExpiry};
use rl_core::{Bucket, Held, Limit, UnixMicros};

use super::expiries;
use super::limits::{self, LimitId};
use crate::error::Error;
use crate::server::api::call;
use crate::server::context::RESTORE_COMMAND;
use crate::stats;

/// Nine characters, for ever: what `TYPE` says and RDB files hold.
const NAME: &CStr = c"rl-bucket";
/// What RDB files are written with; every lower one is read.
const ENCODING_VERSION: c_int = 1;

const LEVEL_HIGH_SHIFT: u32 = 20;
const TIME_SHIFT: u32 = 11;
const ID_LOW_MASK: u64 = (1 << LEVEL_HIGH_SHIFT) - 1;
const ID_HIGH_MASK: u64 = (1 << TIME_SHIFT) - 1;

/// A bucket as a key holds it. The level needs 108 bits, the time 53 and the number of the limit 31, which leaves
/// 64 bits for what this node has seen of denials.
///
/// Denials are this node's observation: they are not part of the state, are not saved, replicated or digested.
#[repr(C)]
pub struct StoredBucket {
    level_low: u64,
    /// The level's higher 44 bits, the number's lower 20.
    level_high_and_id: u64,
    /// The time's 53 bits, the number's higher 11.
    time_and_id: u64,
    denials: u32,
    last_denial_s: u32,
}

const _: () = assert!(size_of::<StoredBucket>() == 32);
const _: () = assert!(LEVEL_HIGH_SHIFT + TIME_SHIFT == LimitId::BITS);

impl StoredBucket {
    /// `bucket` under the limit of that number, on which it keeps its hand.
    pub fn new(bucket: Bucket, id: LimitId) -> Self {
        limits::hold(id);
        stats::BUCKETS.fetch_add(1, Ordering::Relaxed);
        let mut stored = Self { level_low: 0, level_high_and_id: 0, time_and_id: 0, denials: 0, last_denial_s: 0 };
        stored.write(bucket, id);
        stored
    }

    /// What it holds.
    pub fn held(&self) -> Held {
        Held { bucket: self.bucket(), limit: self.limit() }
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        limits::limit(self.limit_id())
    }

    /// What it holds, in shares of the limit in force.
    pub fn bucket(&self) -> Bucket {
        let high = (self.level_high_and_id as i64 >> LEVEL_HIGH_SHIFT) as i128;
        let level = (high << 64) | i128::from(self.level_low);
        let last_change = UnixMicros::saturating(self.time_and_id >> TIME_SHIFT);
        Bucket { level, last_change }
    }

    /// The number of the limit that is in force.
    pub fn limit_id(&self) -> LimitId {
        let number = (self.time_and_id & ID_HIGH_MASK) << LEVEL_HIGH_SHIFT | (self.level_high_and_id & ID_LOW_MASK);
        // SAFETY: `write` put it there, out of a number.
        unsafe { LimitId::from_number(number as u32) }
    }

    /// Replaces what it holds. What was seen of denials stays.
    pub fn set(&mut self, bucket: Bucket, id: LimitId) {
        let old = self.limit_id();
        if old != id {
            limits::hold(id);
            limits::release(old);
        }
        self.write(bucket, id);
    }

    fn write(&mut self, bucket: Bucket, id: LimitId) {
        let number = u64::from(id.get());
        self.level_low = bucket.level as u64;
        self.level_high_and_id = ((bucket.level >> 64) as u64) << LEVEL_HIGH_SHIFT | (number & ID_LOW_MASK);
        self.time_and_id = bucket.last_change.get() << TIME_SHIFT | number >> LEVEL_HIGH_SHIFT;
    }

    /// Notes that a take was denied at `now`.
    pub fn count_denial(&mut self, now: UnixMicros) {
        self.denials = self.denials.saturating_add(1);
        self.last_denial_s = u32::try_from(now.get() / 1_000_000).unwrap_or(u32::MAX);
    }

    /// How many takes this node has denied since the key was created or loaded; stands still at 2^32 - 1.
    pub fn denials(&self) -> u32 {
        self.denials
    }

    /// When the last of them was, in seconds since the Unix epoch; 0 if there was none.
    pub fn last_denial_s(&self) -> u32 {
        self.last_denial_s
    }

    /// Gives the value out of Rust's hands, into the server's.
    pub fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    /// Takes a value back.
    ///
    /// # Safety
    /// It came from [`into_raw`](Self::into_raw) and nobody else has it.
    pub unsafe fn from_raw(value: *mut Self) -> Box<Self> {
        // SAFETY: the caller's promise.
        unsafe { Box::from_raw(value) }
    }
}

impl Drop for StoredBucket {
    fn drop(&mut self) {
        expiries::forget(ptr::from_ref(self).cast());
        limits::release(self.limit_id());
        stats::BUCKETS.fetch_sub(1, Ordering::Relaxed);
    }
}

static TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(ptr::null_mut());

/// The type, as the server knows it; null before it is registered.
pub fn raw_type() -> *mut raw::RedisModuleType {
    TYPE.load(Ordering::Relaxed)
}

/// Registers the type. `None` if the server refuses it.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> Option<()> {
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(rdb_load),
        rdb_save: Some(rdb_save),
        aof_rewrite: Some(aof_rewrite),
        mem_usage: Some(mem_usage),
        digest: Some(digest),
        free: Some(free),
        copy: Some(copy),
        defrag: Some(defrag),
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
    // SAFETY: `ctx` is that of the load; the server copies the table.
    let raw_type = unsafe { call!(RedisModule_CreateDataType(ctx, NAME.as_ptr(), ENCODING_VERSION, &raw mut methods)) };
    TYPE.store(raw_type, Ordering::Relaxed);
    (!raw_type.is_null()).then_some(())
}

// The callbacks. The server calls each with a value of this type, which `into_raw` made, and nobody else has it then.

unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: see above; the server copies the bytes.
    unsafe {
        let encoded = codec::encode(&(*value.cast::<StoredBucket>()).held());
        let bytes = encoded.as_bytes();
        call!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len()));
    }
}

unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, encoding_version: c_int) -> *mut c_void {
    if encoding_version > ENCODING_VERSION {
        log_load_error(io, "it was written by a newer version of librl");
        return ptr::null_mut();
    }
    // A file is input too: should it find a panic in here, that fails the load and not the process.
    match catch_unwind(|| load(io)) {
        Ok(Ok(stored)) => stored.into_raw().cast(),
        Ok(Err(why)) => {
            log_load_error(io, &why);
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

fn load(io: *mut raw::RedisModuleIO) -> Result<StoredBucket, String> {
    let mut len = 0;
    // SAFETY: `io` is that of the load.
    let buffer = unsafe { call!(RedisModule_LoadStringBuffer(io, &raw mut len)) };
    // SAFETY: as above.
    if buffer.is_null() || unsafe { call!(RedisModule_IsIOError(io)) } != 0 {
        return Err("the file could not be read".to_owned());
    }
    // SAFETY: the server has read `len` bytes into the buffer, which is ours now.
    let decoded = codec::decode(unsafe { slice::from_raw_parts(buffer.cast(), len) });
    // SAFETY: the buffer came from the server's allocator and is not used any more.
    unsafe { call!(RedisModule_Free(buffer.cast())) };
    let held = decoded.map_err(|error| format!("a bucket's state {error}"))?;
    stored(&held).map_err(|_| "too many different limits are in use".to_owned())
}

fn log_load_error(io: *mut raw::RedisModuleIO, why: &str) {
    let Ok(why) = CString::new(why) else { return };
    // SAFETY: `io` is that of the load; the format takes one C string.
    unsafe { call!(RedisModule_LogIOError(io, c"warning".as_ptr(), c"cannot load: %s".as_ptr(), why.as_ptr())) };
}

unsafe extern "C" fn aof_rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, value: *mut c_void) {
    // SAFETY: see above; the format says what follows, and the server copies it. It adds the expiry itself.
    unsafe {
        let state = (*value.cast::<StoredBucket>()).held();
        let encoded = codec::encode_record(&Record { expiry: RecordedExpiry::Unstated, state });
        let bytes = encoded.as_bytes();
        let format: *const c_char = c"sb".as_ptr();
        call!(RedisModule_EmitAOF(io, RESTORE_COMMAND.as_ptr(), format, key, bytes.as_ptr(), bytes.len()));
    }
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: see above; the value came from the server's allocator.
    unsafe { call!(RedisModule_MallocSize(value.cast_mut())) }
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: see above; the server reads the bytes and keeps none.
    unsafe {
        let encoded = codec::encode(&(*value.cast::<StoredBucket>()).held());
        let bytes = encoded.as_bytes();
        call!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast(), bytes.len()));
        call!(RedisModule_DigestEndSequence(digest));
    }
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: see above; the server has let go of the value. Any thread may do this.
    drop(unsafe { StoredBucket::from_raw(value.cast()) });
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: see above.
    let stored = unsafe { &*value.cast::<StoredBucket>() };
    StoredBucket::new(stored.held().bucket, stored.limit_id()).into_raw().cast()
}

unsafe extern "C" fn defrag(
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
    }
    0
}

/// One allocation to free, whatever the bucket: never worth a background thread.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, _value: *const c_void) -> usize {
    1
}

/// Puts a decoded state into a form that a key can hold.
///
/// Errors: as [`limits::intern`].
pub fn stored(held: &Held) -> Result<StoredBucket, Error> {
    Ok(StoredBucket::new(held.bucket, limits::intern(&held.limit)?))
}
