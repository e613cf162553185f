//! librl: rate limiting as native commands of Redis and Valkey.
//!
//! | place | holds |
//! |---|---|
//! | this file | every command, with its flags and where it lives |
//! | `commands/` | one file per command: parse, decide, apply, reply |
//! | `types/` | the native data types, and the limits they share |
//! | `server/` | the adapter: all that the module asks of the server |
//! | `error.rs` | every error text |
//! | `rl-core` (`core/`) | the arithmetic, the argument grammar and the stored form |
//!
//! A new command is a file in `commands/` and a row in [`COMMANDS`].

mod commands;
mod error;
mod server;
mod types;

use std::ffi::c_int;

use redis_module::alloc::RedisAlloc;
use redis_module::raw;

use commands::{give, info, lease, mtake, peek, reserve, restore, take};
use server::registration::{Command, entry};

/// Memory of the module counts towards the server's `used_memory` and `maxmemory`.
#[global_allocator]
static ALLOCATOR: RedisAlloc = RedisAlloc;

static COMMANDS: [Command; 8] = [
    Command { name: c"RL.TAKE", flags: c"write fast", acl: c"write fast", entry: entry!(take::run), docs: &take::DOCS },
    Command {
        name: c"RL.PEEK",
        flags: c"readonly fast",
        acl: c"read fast",
        entry: entry!(peek::run),
        docs: &peek::DOCS,
    },
    Command {
        name: c"RL.INFO",
        flags: c"readonly fast",
        acl: c"read fast",
        entry: entry!(info::run),
        docs: &info::DOCS,
    },
    Command { name: c"RL.GIVE", flags: c"write fast", acl: c"write fast", entry: entry!(give::run), docs: &give::DOCS },
    Command {
        name: c"RL.LEASE",
        flags: c"write fast",
        acl: c"write fast",
        entry: entry!(lease::run),
        docs: &lease::DOCS,
    },
    Command {
        name: c"RL.RESERVE",
        flags: c"write fast",
        acl: c"write fast",
        entry: entry!(reserve::run),
        docs: &reserve::DOCS,
    },
    Command { name: c"RL.MTAKE", flags: c"write", acl: c"write", entry: entry!(mtake::run), docs: &mtake::DOCS },
    // Not `deny-oom`: a replica that refused a record for want of memory would hold another state than its primary.
    Command {
        name: c"RL.RESTORE",
        flags: c"write",
        acl: c"write admin dangerous",
        entry: entry!(restore::run),
        docs: &restore::DOCS,
    },
];

/// What the server calls when it loads the module.
///
/// # Safety
/// The server calls it once, with its own context and the arguments of the module, before anything else of ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server keeps its promises to this function, which are those that `load` asks for.
    unsafe { server::load::load(ctx, argc, &COMMANDS) }
}
