//! `RL.TOP [COUNT count] [RESET]`: the keys that this node has denied most.

use redis_module::raw;
use rl_core::Tokens;

use crate::error::Error;
use crate::offenders;
use crate::server::arguments::Arguments;
use crate::server::context::{Context, integer};
use crate::server::registration::{Argument, Docs, Keys, Kind};

const DEFAULT_COUNT: usize = 10;

pub static DOCS: Docs = Docs {
    summary: c"Lists the keys that this node has denied most.",
    complexity: c"O(N log N) for N keys counted",
    since: c"0.1.0",
    arity: -1,
    keys: Keys::None,
    key_flags: raw::REDISMODULE_CMD_KEY_RO,
    arguments: &[
        Argument::optional(c"count", Kind::Integer).after(c"COUNT"),
        Argument::optional(c"reset", Kind::Token).after(c"RESET"),
    ],
};

struct Request {
    count: usize,
    reset: bool,
}

impl Request {
    fn parse(mut arguments: Arguments<'_>) -> Result<Self, Error> {
        let mut request = Self { count: DEFAULT_COUNT, reset: false };
        while let Some(word) = arguments.optional() {
            if word.eq_ignore_ascii_case(b"RESET") {
                request.reset = true;
            } else if word.eq_ignore_ascii_case(b"COUNT") {
                let count = arguments.optional().ok_or(Error::Syntax)?;
                let count = Tokens::parse(count).map_err(|_| Error::Count)?.get();
                request.count = usize::try_from(count).map_err(|_| Error::Count)?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(request)
    }
}

/// Runs the command. Replies, for each key, its name, the number of denials, by how much that may be too high, and when the
/// last one was, in milliseconds since the Unix epoch.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let request = Request::parse(arguments)?;
    let top = offenders::top(request.count);
    context.reply_array(top.len());
    for offender in &top {
        context.reply_array(4);
        context.reply_string(&offender.key);
        context.reply_integer(integer(offender.denials));
        context.reply_integer(integer(offender.error));
        context.reply_integer(integer(offender.last.get() / 1_000));
    }
    if request.reset {
        offenders::clear();
    }
    Ok(())
}
