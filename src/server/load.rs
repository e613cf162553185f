//! What happens when the server loads the module.

use std::ffi::{CStr, CString, c_int};

use redis_module::raw;

use super::api::{call, first_missing};
use super::arguments::Arguments;
use super::registration::{Command, add_category};
use super::report;
use crate::sections::Sections;
use crate::{config, types};

const NAME: &CStr = c"rl";
/// 0.1.0 as the server wants it: one number.
const VERSION: c_int = 100;
/// Valkey 9's "can take part in atomic slot migration", which the crate's header does not have.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Registers the module, its data types, its options and its commands. What fails is logged, and the module not loaded.
///
/// # Safety
/// Called by `RedisModule_OnLoad` with what the server passed to it.
pub unsafe fn load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    commands: &[Command],
) -> c_int {
    // SAFETY: `ctx` is the server's; this must come first, for it looks up the functions of the server, those included
    // by which this library allocates.
    let known =
        unsafe { raw::Export_RedisModule_Init(ctx, NAME.as_ptr(), VERSION, raw::REDISMODULE_APIVER_1 as c_int) };
    if known != raw::REDISMODULE_OK as c_int {
        return raw::REDISMODULE_ERR as c_int;
    }
    // SAFETY: the server's strings, valid while it loads the module.
    let arguments = move || unsafe { Arguments::of_load(argv, usize::try_from(argc).unwrap_or(0)) };
    match register(ctx, arguments, commands) {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(why) => {
            log_warning(ctx, &why);
            raw::REDISMODULE_ERR as c_int
        }
    }
}

fn register<'a>(
    ctx: *mut raw::RedisModuleCtx,
    arguments: impl FnOnce() -> Arguments<'a>,
    commands: &[Command],
) -> Result<(), String> {
    if let Some(missing) = first_missing() {
        return Err(format!("librl needs Redis 7.0, Valkey 7.2 or newer: this server has no {missing}"));
    }
    set_options(ctx);
    // The types last of what may fail: the server keeps a type for good, even if the module is refused.
    config::read(arguments())?;
    config::register(ctx)?;
    types::register(ctx)?;
    let category = add_category(ctx);
    let (optional, needed): (Vec<_>, Vec<_>) = commands.iter().partition(|command| command.is_optional);
    needed.iter().try_for_each(|command| command.register(ctx, category))?;
    if config::cl_throttle() {
        // Another module's, most likely. Whoever loads both has a server that starts.
        let refused = optional.iter().filter_map(|command| command.register(ctx, category).err());
        refused.for_each(|why| log_warning(ctx, &format!("{why}; it is left out")));
    }
    report::register::<Sections>(ctx);
    Ok(())
}

fn set_options(ctx: *mut raw::RedisModuleCtx) {
    // An I/O error while loading fails the load, not the process. A key is signalled as modified where the module says
    // so, which a denial does not. Loading beside the old data is fine: a value knows nothing outside of it.
    let mut options = (raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD) as c_int;
    // SAFETY: optional functions are written only while the server initialises the module; this one takes nothing.
    let offered = unsafe { raw::RedisModule_GetModuleOptionsAll.map_or(0, |offered| offered()) };
    options |= offered & HANDLE_ATOMIC_SLOT_MIGRATION;
    // SAFETY: `ctx` is the server's, passed to `load`.
    unsafe { call!(RedisModule_SetModuleOptions(ctx, options)) };
}

fn log_warning(ctx: *mut raw::RedisModuleCtx, text: &str) {
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: `ctx` is the server's; the format takes one C string. Not `call!`: this also speaks for a server that was
    // refused because functions are missing.
    unsafe {
        if let Some(log) = raw::RedisModule_Log {
            log(ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr());
        }
    }
}
