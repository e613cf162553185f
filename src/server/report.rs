//! What `INFO` tells of the module.

use std::ffi::{CStr, c_int, c_ulonglong};
use std::ptr;

use redis_module::raw;

use super::api::call;

/// Whoever has something to tell there.
pub trait Tells {
    /// Tells it.
    fn tell(report: &Report);
}

/// Has the server ask `T` whenever somebody asks for the sections of the module.
pub fn register<T: Tells>(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is that of the load. It fails only for a module that is not being loaded.
    unsafe { call!(RedisModule_RegisterInfoFunc(ctx, Some(info::<T>))) };
}

unsafe extern "C" fn info<T: Tells>(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    T::tell(&Report(ctx));
}

/// The server, while it collects what `INFO` tells.
pub struct Report(*mut raw::RedisModuleInfoCtx);

impl Report {
    /// Begins a section; without a name it is that of the module.
    pub fn section(&self, name: Option<&CStr>) {
        // SAFETY: the server's context, here and below, and names and texts that it copies.
        unsafe { call!(RedisModule_InfoAddSection(self.0, name.map_or(ptr::null(), CStr::as_ptr))) };
    }

    /// A field that is a number.
    pub fn number(&self, name: &CStr, value: u64) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoAddFieldULongLong(self.0, name.as_ptr(), value as c_ulonglong)) };
    }

    /// A field that is a text.
    pub fn text(&self, name: &CStr, value: &CStr) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoAddFieldCString(self.0, name.as_ptr(), value.as_ptr())) };
    }

    /// A field of several, those that `fill` adds.
    pub fn several(&self, name: &CStr, fill: impl FnOnce()) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoBeginDictField(self.0, name.as_ptr())) };
        fill();
        // SAFETY: as above.
        unsafe { call!(RedisModule_InfoEndDictField(self.0)) };
    }
}
