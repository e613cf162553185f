//! Configuration: `CONFIG GET rl.*`, `CONFIG SET rl.*`, the server's configuration file, `CONFIG REWRITE`.
//!
//! | name | range | default | meaning |
//! |---|---|---|---|
//! | `rl.top-keys` | 0 to 100000 | 1000 | keys that `RL.TOP` counts; 0 switches it off |

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw;

use crate::offenders;
use crate::server::api::call;

const MOST_TOP_KEYS: i64 = 100_000;
const DEFAULT_TOP_KEYS: i64 = 1_000;

static TOP_KEYS: AtomicI64 = AtomicI64::new(0);

/// Registers the options, and reads what the server's configuration says of them.
///
/// Errors: what could not be registered, or was out of range, in words.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> Result<(), String> {
    // SAFETY: `ctx` is that of the load; the name is static, and the server calls the functions as their types say.
    let registered = unsafe {
        call!(RedisModule_RegisterNumericConfig(
            ctx,
            c"top-keys".as_ptr(),
            DEFAULT_TOP_KEYS,
            raw::REDISMODULE_CONFIG_DEFAULT,
            0,
            MOST_TOP_KEYS,
            Some(top_keys),
            Some(set_top_keys),
            None,
            ptr::null_mut(),
        ))
    };
    // SAFETY: as above.
    let loaded = unsafe { call!(RedisModule_LoadConfigs(ctx)) };
    let ok = raw::REDISMODULE_OK as c_int;
    if registered == ok && loaded == ok { Ok(()) } else { Err("librl could not read its configuration".to_owned()) }
}

unsafe extern "C" fn top_keys(_name: *const c_char, _data: *mut c_void) -> c_longlong {
    TOP_KEYS.load(Ordering::Relaxed)
}

/// The server has held the value against the range.
unsafe extern "C" fn set_top_keys(
    _name: *const c_char,
    value: c_longlong,
    _data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    TOP_KEYS.store(value, Ordering::Relaxed);
    offenders::resize(usize::try_from(value).unwrap_or(0));
    raw::REDISMODULE_OK as c_int
}
