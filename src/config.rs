//! Options: what they are, and where they come from. `CONFIG GET rl.*`, `CONFIG SET`, the server's configuration file and
//! `CONFIG REWRITE` know them by these names, `loadmodule librl.so NAME VALUE ...` by what follows the `rl.`; there the
//! configuration file has the last word.
//!
//! | name | range | default | meaning |
//! |---|---|---|---|
//! | `rl.top-keys` | 0 to 100000 keys | 1000 | keys that `RL.TOP` counts; 0 switches it off |
//! | `rl.window-limit` | 0 to 1000000 tokens | 100000 | the largest limit of `RL.WINDOW`, at 8 bytes a charge |
//! | `rl.key-classes` | 0 to 10000 classes | 0 | classes of keys that `INFO rl` counts; 0 switches it off |
//! | `rl.class-depth` | 0 to 100 parts | 0 | how many parts of a key are its class; 0 is all but the last |
//! | `rl.class-separator` | one byte | `:` | what stands between the parts of a key |
//! | `rl.cl-throttle` | yes, no | no | whether there is `CL.THROTTLE`; at load only |

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, Ordering};

use redis_module::raw;
use rl_core::{Log, Tokens};

use crate::server::api::call;
use crate::server::arguments::Arguments;
use crate::{classes, offenders};

/// An option that is a number.
struct Number {
    name: &'static CStr,
    most: i64,
    value: AtomicI64,
    /// What there is to do when it is set.
    set: fn(usize),
}

impl Number {
    const fn new(name: &'static CStr, most: i64, default: i64, set: fn(usize)) -> Self {
        Self { name, most, value: AtomicI64::new(default), set }
    }

    fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

static TOP_KEYS: Number = Number::new(c"top-keys", 100_000, 1_000, offenders::resize);
static WINDOW_LIMIT: Number = Number::new(c"window-limit", Log::LARGEST_LIMIT.cast_signed(), 100_000, |_| {});
static KEY_CLASSES: Number = Number::new(c"key-classes", 10_000, 0, classes::restart);
static CLASS_DEPTH: Number = Number::new(c"class-depth", 100, 0, |_| classes::restart(count(&KEY_CLASSES)));
static NUMBERS: [&Number; 4] = [&TOP_KEYS, &WINDOW_LIMIT, &KEY_CLASSES, &CLASS_DEPTH];

const CL_THROTTLE_NAME: &CStr = c"cl-throttle";
static CL_THROTTLE: AtomicBool = AtomicBool::new(false);

const CLASS_SEPARATOR_NAME: &CStr = c"class-separator";
static CLASS_SEPARATOR: AtomicU8 = AtomicU8::new(b':');
/// The same as the server wants to have it.
static CLASS_SEPARATOR_STRING: AtomicPtr<raw::RedisModuleString> = AtomicPtr::new(ptr::null_mut());

fn count(number: &Number) -> usize {
    usize::try_from(number.get()).unwrap_or(0)
}

/// The largest limit of `RL.WINDOW`.
pub fn window_limit() -> u64 {
    u64::try_from(WINDOW_LIMIT.get()).unwrap_or(0)
}

/// How many parts of a key are its class; 0 is all but the last.
pub fn class_depth() -> usize {
    count(&CLASS_DEPTH)
}

/// What stands between the parts of a key.
pub fn class_separator() -> u8 {
    CLASS_SEPARATOR.load(Ordering::Relaxed)
}

/// Whether there is to be `CL.THROTTLE`.
pub fn cl_throttle() -> bool {
    CL_THROTTLE.load(Ordering::Relaxed)
}

/// Takes `arguments`, names and values in turn, for the defaults.
///
/// Errors: the first that is not known or out of range, in words.
pub fn read(mut arguments: Arguments<'_>) -> Result<(), String> {
    while let Some(name) = arguments.optional() {
        let shown = String::from_utf8_lossy(name);
        let value = arguments.optional().ok_or_else(|| format!("librl's argument {shown} has no value"))?;
        if let Some(number) = NUMBERS.iter().find(|number| number.name.to_bytes() == name) {
            let given = Tokens::parse(value).ok().and_then(|given| i64::try_from(given.get()).ok());
            let within = given.filter(|given| *given <= number.most);
            let within =
                within.ok_or_else(|| format!("librl's {shown} must be an integer from 0 to {}", number.most))?;
            number.value.store(within, Ordering::Relaxed);
        } else if name == CL_THROTTLE_NAME.to_bytes() {
            let given = match value {
                b"yes" => true,
                b"no" => false,
                _ => return Err(format!("librl's {shown} must be yes or no")),
            };
            CL_THROTTLE.store(given, Ordering::Relaxed);
        } else if name == CLASS_SEPARATOR_NAME.to_bytes() {
            let [separator] = value else { return Err(format!("librl's {shown} must be one byte")) };
            CLASS_SEPARATOR.store(*separator, Ordering::Relaxed);
        } else {
            return Err(format!("librl has no argument {shown}"));
        }
    }
    Ok(())
}

/// Registers the options, and reads what the server's configuration says of them.
///
/// Errors: what could not be registered, or was out of range, in words.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> Result<(), String> {
    let all_registered = NUMBERS.iter().all(|number| register_number(ctx, number)) && register_others(ctx);
    // SAFETY: `ctx` is that of the load.
    let loaded = unsafe { call!(RedisModule_LoadConfigs(ctx)) } == raw::REDISMODULE_OK as c_int;
    if all_registered && loaded { Ok(()) } else { Err("librl could not read its configuration".to_owned()) }
}

fn register_number(ctx: *mut raw::RedisModuleCtx, number: &'static Number) -> bool {
    // SAFETY: `ctx` is that of the load; the name is static, as is the option that the server hands to the functions.
    let status = unsafe {
        call!(RedisModule_RegisterNumericConfig(
            ctx,
            number.name.as_ptr(),
            number.get(),
            raw::REDISMODULE_CONFIG_DEFAULT,
            0,
            number.most,
            Some(get_number),
            Some(set_number),
            None,
            ptr::from_ref(number).cast_mut().cast(),
        ))
    };
    status == raw::REDISMODULE_OK as c_int
}

fn register_others(ctx: *mut raw::RedisModuleCtx) -> bool {
    let separator = [class_separator().cast_signed(), 0];
    // SAFETY: as in `register_number`. The server copies the default.
    let statuses = unsafe {
        [
            call!(RedisModule_RegisterBoolConfig(
                ctx,
                CL_THROTTLE_NAME.as_ptr(),
                c_int::from(cl_throttle()),
                raw::REDISMODULE_CONFIG_IMMUTABLE,
                Some(get_cl_throttle),
                Some(set_cl_throttle),
                None,
                ptr::null_mut(),
            )),
            call!(RedisModule_RegisterStringConfig(
                ctx,
                CLASS_SEPARATOR_NAME.as_ptr(),
                separator.as_ptr(),
                raw::REDISMODULE_CONFIG_DEFAULT,
                Some(get_class_separator),
                Some(set_class_separator),
                None,
                ptr::null_mut(),
            )),
        ]
    };
    statuses == [raw::REDISMODULE_OK as c_int; 2]
}

unsafe extern "C" fn get_number(_name: *const c_char, number: *mut c_void) -> c_longlong {
    // SAFETY: what was registered with this function.
    unsafe { &*number.cast::<Number>() }.get()
}

/// The server has held the value against the range.
unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    number: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: what was registered with this function.
    let number = unsafe { &*number.cast::<Number>() };
    number.value.store(value, Ordering::Relaxed);
    (number.set)(count(number));
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn get_cl_throttle(_name: *const c_char, _data: *mut c_void) -> c_int {
    c_int::from(cl_throttle())
}

unsafe extern "C" fn set_cl_throttle(
    _name: *const c_char,
    value: c_int,
    _data: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    CL_THROTTLE.store(value != 0, Ordering::Relaxed);
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn get_class_separator(_name: *const c_char, _data: *mut c_void) -> *mut raw::RedisModuleString {
    CLASS_SEPARATOR_STRING.load(Ordering::Relaxed)
}

unsafe extern "C" fn set_class_separator(
    _name: *const c_char,
    value: *mut raw::RedisModuleString,
    _data: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    let mut len = 0;
    // SAFETY: the server's string; what is kept of it is held. The old one was held here, too, and nobody else has it. The
    // server takes the text of the error over.
    unsafe {
        let text = call!(RedisModule_StringPtrLen(value, &raw mut len));
        if len != 1 {
            let why = c"rl.class-separator must be one byte";
            *error = call!(RedisModule_CreateString(ptr::null_mut(), why.as_ptr(), why.to_bytes().len()));
            return raw::REDISMODULE_ERR as c_int;
        }
        CLASS_SEPARATOR.store((*text).cast_unsigned(), Ordering::Relaxed);
        call!(RedisModule_RetainString(ptr::null_mut(), value));
        let old = CLASS_SEPARATOR_STRING.swap(value, Ordering::Relaxed);
        if !old.is_null() {
            call!(RedisModule_FreeString(ptr::null_mut(), old));
        }
    }
    classes::restart(count(&KEY_CLASSES));
    raw::REDISMODULE_OK as c_int
}
