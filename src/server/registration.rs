//! Commands: how one is entered, and what the server is told of it.

use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use redis_module::raw;
use rl_core::Tokens;

use super::api::call;
use super::arguments::Arguments;
use super::context::Context;
use crate::error::Error;
use crate::stats::Tally;

/// A command's work: everything is replied, or an error is returned and nothing was written.
pub type Run = for<'a> fn(&'a Context<'a>, Arguments<'a>) -> Result<(), Error>;

/// The function that the server calls.
pub type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

/// A command as it is registered.
pub struct Command {
    /// Its name.
    pub name: &'static CStr,
    /// Its name in `INFO`.
    pub label: &'static CStr,
    /// The server's flags for it.
    pub flags: &'static CStr,
    /// The ACL categories it is in, on servers that let a module say so.
    pub acl: &'static CStr,
    /// Where the server enters it.
    pub entry: Entry,
    /// Whether it is there only if the configuration says so.
    pub is_optional: bool,
    /// What `COMMAND DOCS` tells.
    pub docs: &'static Docs,
    /// What has come of its calls.
    pub tally: &'static Tally,
}

/// What `COMMAND DOCS` and `COMMAND INFO` tell.
pub struct Docs {
    /// One sentence.
    pub summary: &'static CStr,
    /// In big O.
    pub complexity: &'static CStr,
    /// The version of librl that brought it.
    pub since: &'static CStr,
    /// The number of words, or minus the least number.
    pub arity: c_int,
    /// Where its keys stand.
    pub keys: Keys,
    /// What it does with its keys: `REDISMODULE_CMD_KEY_*`.
    pub key_flags: u32,
    /// The arguments, the key first.
    pub arguments: &'static [Argument],
}

/// Where a command's keys stand.
#[derive(Clone, Copy)]
pub enum Keys {
    /// There are none.
    None,
    /// The first argument is the one key.
    First,
    /// The first argument says how many follow.
    Counted,
}

/// What an argument is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The key.
    Key,
    /// An integer.
    Integer,
    /// Anything else.
    String,
    /// A word that stands for itself.
    Token,
    /// A group that is given or left out as a whole.
    Block(&'static [Argument]),
}

/// An argument.
#[derive(Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static CStr,
    /// What it is.
    pub kind: Kind,
    /// `REDISMODULE_CMD_ARG_*`.
    pub flags: u32,
    /// The word before it, if there is one.
    pub token: Option<&'static CStr>,
}

impl Argument {
    /// The key.
    pub const KEY: Self = Self::required(c"key", Kind::Key);
    /// The most that a bucket holds.
    pub const CAPACITY: Self = Self::required(c"capacity", Kind::Integer);
    /// The most that is admitted in a window.
    pub const LIMIT: Self = Self::required(c"limit", Kind::Integer);
    /// How long a window is.
    pub const WINDOW: Self = Self::required(c"window", Kind::String);
    /// How fast it fills.
    pub const RATE: Self = Self::required(c"rate", Kind::String);
    /// A number of tokens.
    pub const TOKENS: Self = Self::required(c"tokens", Kind::Integer);
    /// What a call takes.
    pub const COST: Self = Self::optional(c"cost", Kind::Integer);

    /// One that must be given.
    pub const fn required(name: &'static CStr, kind: Kind) -> Self {
        Self { name, kind, flags: raw::REDISMODULE_CMD_ARG_NONE, token: None }
    }

    /// The same, once or more.
    pub const fn repeated(self) -> Self {
        Self { flags: self.flags | raw::REDISMODULE_CMD_ARG_MULTIPLE, ..self }
    }

    /// The same behind a word.
    pub const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }

    /// One that may be left out.
    pub const fn optional(name: &'static CStr, kind: Kind) -> Self {
        Self { name, kind, flags: raw::REDISMODULE_CMD_ARG_OPTIONAL, token: None }
    }
}

/// A row of the table of commands: the function by which the server enters `$module::run`, and all else that it is told.
macro_rules! command {
    ($module:ident, $name:literal, $flags:literal, $acl:literal) => {{
        static TALLY: $crate::stats::Tally =
            $crate::stats::Tally::new($crate::server::registration::named(concat!("rl.", stringify!($module), "\0")));
        unsafe extern "C" fn entry(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls a command with its context and its arguments, valid until it returns.
            unsafe { $crate::server::registration::enter(ctx, argv, argc, $module::run, &$module::DOCS, &TALLY) }
        }
        $crate::server::registration::Command {
            name: $name,
            label: $crate::server::registration::named(concat!(stringify!($module), "\0")),
            is_optional: false,
            flags: $flags,
            acl: $acl,
            entry,
            docs: &$module::DOCS,
            tally: &TALLY,
        }
    }};
}
pub(crate) use command;

/// A name that ends with a zero, as the server wants it.
pub const fn named(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// Runs a command. Whatever happens, the client gets one reply and the server goes on.
///
/// # Safety
/// The arguments are those with which the server called the command.
pub unsafe fn enter(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    run: Run,
    docs: &'static Docs,
    tally: &'static Tally,
) -> c_int {
    if matches!(docs.keys, Keys::Counted) {
        // SAFETY: the caller's promise.
        let asked_for_keys = unsafe { tell_keys(ctx, argv, argc) };
        if asked_for_keys {
            return raw::REDISMODULE_OK as c_int;
        }
    }
    tally.calls.count();
    // SAFETY: the caller's promise.
    let context = unsafe { Context::new(ctx, tally) };
    // SAFETY: the caller's promise.
    let arguments = unsafe { Arguments::new(argv, usize::try_from(argc).unwrap_or(0)) };
    // A panic that left this function would abort the server. None is known; the linter refuses what could panic.
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&context, arguments))).unwrap_or(Err(Error::Internal));
    if let Err(error) = outcome {
        tally.errors.count();
        context.reply_error(error);
    }
    raw::REDISMODULE_OK as c_int
}

/// Where the server only wants to know the keys of a command that counts them, tells it. A cluster sends a call where its keys
/// are by asking so; most servers do not go by the description of the command for that.
///
/// # Safety
/// As [`enter`].
unsafe fn tell_keys(ctx: *mut raw::RedisModuleCtx, argv: *mut *mut raw::RedisModuleString, argc: c_int) -> bool {
    // SAFETY: `ctx` is the command's.
    if unsafe { call!(RedisModule_IsKeysPositionRequest(ctx)) } == 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    let mut arguments = unsafe { Arguments::new(argv, usize::try_from(argc).unwrap_or(0)) };
    let count = arguments.optional().and_then(|count| Tokens::parse(count).ok()).map_or(0, Tokens::get);
    // A number that cannot be right names no keys: the command will say so, wherever it is sent.
    let last = c_int::try_from(count).unwrap_or(c_int::MAX).saturating_add(1);
    for position in 2..=if last < argc { last } else { 0 } {
        // SAFETY: `ctx` is the command's, and asks for positions.
        unsafe { call!(RedisModule_KeyAtPos(ctx, position)) };
    }
    true
}

/// A category of our own, on the servers that let a module have one (Redis 7.4 and newer, Valkey 8).
///
/// Returns its name, or nothing.
pub fn add_category(ctx: *mut raw::RedisModuleCtx) -> &'static str {
    // SAFETY: optional functions are written only while the server initialises the module. `ctx` is that of the load.
    let added = unsafe { raw::RedisModule_AddACLCategory.map(|add| add(ctx, c"rl".as_ptr())) };
    if added == Some(raw::REDISMODULE_OK as c_int) { " rl" } else { "" }
}

impl Command {
    /// The same, there only if the configuration says so.
    pub const fn if_configured(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// Registers the command with all that is known of it, in `category` besides its own categories.
    ///
    /// Errors: what the server refused, in words.
    pub fn register(&self, ctx: *mut raw::RedisModuleCtx, category: &str) -> Result<(), String> {
        let done = |status: c_int, what: &str| {
            (status == raw::REDISMODULE_OK as c_int)
                .then_some(())
                .ok_or_else(|| format!("librl could not register {}: {what}", self.name.to_string_lossy()))
        };
        // The first key, the last and the step, for servers and clients that know no more than that.
        let (first, last, step) = match self.docs.keys {
            Keys::First => (1, 1, 1),
            Keys::Counted | Keys::None => (0, 0, 0),
        };
        let (name, flags) = (self.name.as_ptr(), self.flags.as_ptr());
        // SAFETY: `ctx` is that of the load; names and flags are static.
        let created =
            unsafe { call!(RedisModule_CreateCommand(ctx, name, Some(self.entry), flags, first, last, step)) };
        done(created, "the name is taken")?;
        // SAFETY: the command was just created, so the server finds it.
        let command = unsafe { call!(RedisModule_GetCommand(ctx, self.name.as_ptr())) };
        done(self.describe(command), "the server does not accept its description")?;
        // SAFETY: optional functions are written only while the server initialises the module.
        let Some(set_categories) = (unsafe { raw::RedisModule_SetCommandACLCategories }) else { return Ok(()) };
        let categories = CString::new([self.acl.to_bytes(), category.as_bytes()].concat()).unwrap_or_default();
        // SAFETY: the command is the server's own, and the module is being loaded, as the function asks.
        done(unsafe { set_categories(command, categories.as_ptr()) }, "the server does not know its ACL categories")
    }

    fn describe(&self, command: *mut raw::RedisModuleCommand) -> c_int {
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let mut key_specs: Vec<_> = key_spec(self.docs).into_iter().chain([end_of_key_specs()]).collect();
        let mut blocks = Vec::new();
        let mut arguments = raw_arguments(self.docs.arguments, &mut blocks);
        let info = raw::RedisModuleCommandInfo {
            version: &raw const version,
            summary: self.docs.summary.as_ptr(),
            complexity: self.docs.complexity.as_ptr(),
            since: self.docs.since.as_ptr(),
            history: ptr::null_mut(),
            tips: ptr::null(),
            arity: self.docs.arity,
            key_specs: key_specs.as_mut_ptr(),
            args: arguments.as_mut_ptr(),
        };
        // SAFETY: the server copies all of it before it returns; the lists end as it asks, with an entry of zeros.
        unsafe { call!(RedisModule_SetCommandInfo(command, &raw const info)) }
    }
}

/// The server's form of `arguments`, ended by an entry of zeros. What the entries of a block point to goes to `blocks`.
fn raw_arguments(
    arguments: &[Argument],
    blocks: &mut Vec<Vec<raw::RedisModuleCommandArg>>,
) -> Vec<raw::RedisModuleCommandArg> {
    let mut list = Vec::new();
    for argument in arguments {
        let (kind, subarguments) = match argument.kind {
            Kind::Key => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY, ptr::null_mut()),
            Kind::Integer => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER, ptr::null_mut()),
            Kind::String => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING, ptr::null_mut()),
            Kind::Token => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN, ptr::null_mut()),
            Kind::Block(inner) => {
                let mut inner = raw_arguments(inner, blocks);
                let start = inner.as_mut_ptr();
                // The entries stay where they are when the list that owns them moves.
                blocks.push(inner);
                (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK, start)
            }
        };
        list.push(raw::RedisModuleCommandArg {
            name: argument.name.as_ptr(),
            type_: kind,
            key_spec_index: if matches!(argument.kind, Kind::Key) { 0 } else { -1 },
            token: argument.token.map_or(ptr::null(), CStr::as_ptr),
            flags: argument.flags as c_int,
            subargs: subarguments,
            ..no_argument()
        });
    }
    list.push(no_argument());
    list
}

fn no_argument() -> raw::RedisModuleCommandArg {
    // SAFETY: a structure of C, all of whose fields may be zero; as such it ends a list.
    unsafe { std::mem::zeroed() }
}

/// Where the keys are, and what happens to them: counted from the first argument.
fn key_spec(docs: &Docs) -> Option<raw::RedisModuleCommandKeySpec> {
    let (find_keys_type, fk) = match docs.keys {
        Keys::None => return None,
        Keys::First => (
            raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
            raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
                range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey: 0, keystep: 1, limit: 0 },
            },
        ),
        Keys::Counted => (
            raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM,
            raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
                keynum: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_2 {
                    keynumidx: 0,
                    firstkey: 1,
                    keystep: 1,
                },
            },
        ),
    };
    Some(raw::RedisModuleCommandKeySpec {
        notes: ptr::null(),
        flags: u64::from(docs.key_flags),
        begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 1 },
        },
        find_keys_type,
        fk,
    })
}

fn end_of_key_specs() -> raw::RedisModuleCommandKeySpec {
    // SAFETY: a structure of C that the server reads as ended where all is zero.
    unsafe { std::mem::zeroed() }
}
