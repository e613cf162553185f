//! librl: rate limiting as native commands of Redis and Valkey.
//!
//! | place | holds |
//! |---|---|
//! | this file | every command, with its flags and where it lives |
//! | `commands/` | one file per command: parse, decide, apply, reply |
//! | `types/` | the native data types, and the limits they share |
//! | `server/` | the adapter: all that the module asks of the server |
//! | `error.rs` | every error text |
//! | `config.rs` | what can be configured |
//! | `stats.rs`, `classes.rs`, `offenders.rs` | counters; by class of key; the most denied keys |
//! | `sections.rs` | what `INFO` tells of them |
//! | `rl-core` (`core/`) | the arithmetic, the argument grammar and the stored form |
//!
//! A new command is a file in `commands/` and a row in [`COMMANDS`].

mod classes;
mod commands;
mod config;
mod error;
mod offenders;
mod sections;
mod server;
mod stats;
mod types;

use std::ffi::c_int;

use redis_module::alloc::RedisAlloc;
use redis_module::raw;

use commands::{counter, give, info, lease, mtake, peek, quota, reserve, restore, take, throttle, top, window};
use server::registration::{Command, command};

/// Memory of the module counts towards the server's `used_memory` and `maxmemory`.
#[global_allocator]
static ALLOCATOR: RedisAlloc = RedisAlloc;

/// File, name, flags, ACL categories.
static COMMANDS: [Command; 13] = [
    command!(take, c"RL.TAKE", c"write fast", c"write fast"),
    command!(peek, c"RL.PEEK", c"readonly fast", c"read fast"),
    command!(give, c"RL.GIVE", c"write fast", c"write fast"),
    command!(lease, c"RL.LEASE", c"write fast", c"write fast"),
    command!(reserve, c"RL.RESERVE", c"write fast", c"write fast"),
    command!(mtake, c"RL.MTAKE", c"write getkeys-api", c"write"),
    command!(window, c"RL.WINDOW", c"write fast", c"write fast"),
    command!(counter, c"RL.COUNTER", c"write fast", c"write fast"),
    command!(quota, c"RL.QUOTA", c"write fast", c"write fast"),
    command!(info, c"RL.INFO", c"readonly fast", c"read fast"),
    // Key names are personal data: not among what a client may read.
    command!(top, c"RL.TOP", c"readonly", c"admin dangerous"),
    // Not `deny-oom`: a replica that refused a record for want of memory would hold another state than its primary.
    command!(restore, c"RL.RESTORE", c"write", c"write admin dangerous"),
    command!(throttle, c"CL.THROTTLE", c"write fast", c"write fast").if_configured(),
];

/// What the server calls when it loads the module.
///
/// # Safety
/// The server calls it once, with its own context and the arguments of the module, before anything else of ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server keeps its promises to this function, which are those that `load` asks for.
    unsafe { server::load::load(ctx, argv, argc, &COMMANDS) }
}
