//! A key while a command works on it.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use redis_module::raw;
use rl_core::UnixMillis;

use super::api::call;
use super::arguments::KeyName;
use super::context::Context;
use crate::error::Error;
use crate::types::Holds;
use crate::types::value::{self, Type, Value};

/// A key that is open; closed when dropped.
pub struct Key<'a> {
    raw: *mut raw::RedisModuleKey,
    name: KeyName<'a>,
    context: &'a Context<'a>,
    /// The value in it and its type, once it was looked for and found.
    found: Option<(NonNull<c_void>, &'static Type)>,
}

impl<'a> Key<'a> {
    /// Opens `name` to be changed. An expired key is gone.
    pub fn open_for_change(context: &'a Context<'a>, name: KeyName<'a>) -> Self {
        Self::open(context, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    /// Opens `name` to be looked at: it gets neither younger in the eyes of eviction nor a hit in the statistics.
    pub fn open_to_look(context: &'a Context<'a>, name: KeyName<'a>) -> Self {
        let unseen = raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOSTATS;
        Self::open(context, name, raw::REDISMODULE_READ | unseen)
    }

    fn open(context: &'a Context<'a>, name: KeyName<'a>, mode: u32) -> Self {
        // SAFETY: the context and the name are those of the running command.
        let raw = unsafe { call!(RedisModule_OpenKey(context.raw, name.raw, mode as c_int)) };
        Self { raw, name, context, found: None }
    }

    /// The value in the key, if there is a key.
    ///
    /// Errors: [`Error::WrongType`] if the key holds anything else.
    pub fn value<T: Value>(&mut self) -> Result<Option<&mut T>, Error> {
        let wanted = T::value_type();
        // SAFETY: the key is open, or null, which has no type and counts as empty. A value of this type was made by
        // `value::into_raw` and lives until the key is deleted, which nobody does while `self` is borrowed.
        unsafe {
            if self.found.is_none() && call!(RedisModule_ModuleTypeGetType(self.raw)) == wanted.raw() {
                let value = NonNull::new(call!(RedisModule_ModuleTypeGetValue(self.raw)));
                self.found = value.map(|value| (value, wanted));
            }
            match self.found {
                Some((found, its_type)) if std::ptr::eq(its_type, wanted) => Ok(Some(found.cast().as_mut())),
                Some(_) => Err(Error::WrongType),
                None if self.is_empty() => Ok(None),
                None => Err(Error::WrongType),
            }
        }
    }

    /// Which of our types the key holds, if there is a key.
    ///
    /// Errors: [`Error::WrongType`] if it holds none of them.
    pub fn holds(&self) -> Result<Option<Holds>, Error> {
        // SAFETY: as in `value`.
        let its_type = unsafe { call!(RedisModule_ModuleTypeGetType(self.raw)) };
        let known = Holds::ALL.into_iter().find(|holds| holds.value_type().raw() == its_type && !its_type.is_null());
        if known.is_some() || self.is_empty() { Ok(known) } else { Err(Error::WrongType) }
    }

    fn is_empty(&self) -> bool {
        // SAFETY: as in `value`.
        unsafe { call!(RedisModule_KeyType(self.raw)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int }
    }

    /// Puts a value into the key, in place of whatever was there, and says where it lies.
    ///
    /// Errors: [`Error::Internal`] if the server refuses, which it does only for a key that is not open for change.
    pub fn create<T: Value>(&mut self, value: T) -> Result<*const T, Error> {
        let value = value::into_raw(value);
        self.found = None;
        // SAFETY: the key is open for change; the server owns the value from here on and gives it back to `free`.
        let done = unsafe { call!(RedisModule_ModuleTypeSetValue(self.raw, T::value_type().raw(), value.cast())) };
        if done == raw::REDISMODULE_OK as c_int {
            return Ok(value);
        }
        // SAFETY: the server did not take the value.
        unsafe { value::drop_raw(value) };
        Err(Error::Internal)
    }

    /// Deletes the key, here and on the replicas.
    pub fn delete(&mut self) {
        self.found = None;
        // SAFETY: the key is open for change, and nobody holds its value: `self` is borrowed.
        unsafe { call!(RedisModule_DeleteKey(self.raw)) };
        self.context.replicate_deletion(self.name);
        self.context.signal_modified(self.name);
        self.context.notify_deleted(self.name);
    }

    /// When the key expires, if it does.
    pub fn expiry(&self) -> Option<UnixMillis> {
        // A key that was opened to look at and is not there is null, and this function of the server's does not ask.
        if self.raw.is_null() {
            return None;
        }
        // SAFETY: the key is open.
        let millis = unsafe { call!(RedisModule_GetAbsExpire(self.raw)) };
        u128::try_from(millis).ok().map(UnixMillis::saturating)
    }

    /// Sets or removes the expiry of a key that is open for change and not empty.
    pub fn set_expiry(&mut self, expiry: Option<UnixMillis>) {
        let never = i64::from(raw::REDISMODULE_NO_EXPIRE);
        let millis = expiry.map_or(never, |at| i64::try_from(at.get()).unwrap_or(i64::MAX));
        // SAFETY: the key is open for change. It fails only for an empty key and a negative time.
        unsafe { call!(RedisModule_SetAbsExpire(self.raw, millis)) };
    }

    /// The key's name.
    pub fn name(&self) -> KeyName<'a> {
        self.name
    }

    /// The command that has opened the key.
    pub fn context(&self) -> &'a Context<'a> {
        self.context
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: opened by `open` and closed only here; the server takes a null pointer for a key that is not there.
        unsafe { call!(RedisModule_CloseKey(self.raw)) };
    }
}
