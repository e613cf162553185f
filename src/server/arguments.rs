//! The arguments of a command, handed out one by one.

use std::marker::PhantomData;
use std::slice;

use redis_module::raw;

use super::api::call;
use crate::error::Error;

/// A key's name, as the server passed it. Valid for the duration of the command.
#[derive(Clone, Copy)]
pub struct KeyName<'a> {
    pub(super) raw: *mut raw::RedisModuleString,
    command: PhantomData<&'a ()>,
}

impl<'a> KeyName<'a> {
    /// The name itself.
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: an argument of the running command, which lasts for `'a`.
        unsafe { bytes(self.raw) }
    }
}

/// The bytes of an argument.
///
/// # Safety
/// `raw` is a string of the server that is valid for `'a`. It does not change an argument while the command runs.
unsafe fn bytes<'a>(raw: *mut raw::RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let start = call!(RedisModule_StringPtrLen(raw, &raw mut len));
        slice::from_raw_parts(start.cast(), len)
    }
}

/// A cursor over what follows the command's name. What is left over at the end is refused.
pub struct Arguments<'a> {
    rest: slice::Iter<'a, *mut raw::RedisModuleString>,
}

impl<'a> Arguments<'a> {
    /// The arguments behind the command's name.
    ///
    /// # Safety
    /// `argv` points to `argc` strings of the server, all of them valid for `'a`.
    pub unsafe fn new(argv: *mut *mut raw::RedisModuleString, argc: usize) -> Self {
        // SAFETY: the caller's promise. The name of the command is always there, so `argv` is never null.
        let all = unsafe { slice::from_raw_parts(argv, argc) };
        Self { rest: all.get(1..).unwrap_or_default().iter() }
    }

    /// The arguments with which the module is loaded.
    ///
    /// # Safety
    /// As [`new`](Self::new), but that `argv` may be null if there are none.
    pub unsafe fn of_load(argv: *mut *mut raw::RedisModuleString, argc: usize) -> Self {
        // SAFETY: the caller's promise.
        let all = if argc == 0 { &[] } else { unsafe { slice::from_raw_parts(argv, argc) } };
        Self { rest: all.iter() }
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next one, a key.
    pub fn key(&mut self) -> Result<KeyName<'a>, Error> {
        self.rest.next().map(|raw| KeyName { raw: *raw, command: PhantomData }).ok_or(Error::WrongArity)
    }

    /// The next one, as bytes.
    pub fn required(&mut self) -> Result<&'a [u8], Error> {
        self.optional().ok_or(Error::WrongArity)
    }

    /// The next one, if there is another.
    pub fn optional(&mut self) -> Option<&'a [u8]> {
        // SAFETY: the string is valid for 'a: promised to `new`.
        self.rest.next().map(|raw| unsafe { bytes(*raw) })
    }

    /// Refuses what is left.
    pub fn finish(self) -> Result<(), Error> {
        if self.rest.len() == 0 { Ok(()) } else { Err(Error::WrongArity) }
    }
}
