//! `RL.COUNTER key limit window [cost]`: nearly at most `limit` in any `window`, whatever the limit, in two sums.

use redis_module::raw;
use rl_core::Counter;

use super::apply::take_usage;
use super::window::Request;
use crate::error::Error;
use crate::server::arguments::Arguments;
use crate::server::context::Context;
use crate::server::registration::{Argument, Docs, Keys};

pub static DOCS: Docs = Docs {
    summary: c"Admits about so much in any window, counted in two of them, and tells where the client stands.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: -4,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::LIMIT, Argument::WINDOW, Argument::COST],
};

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost } = Request::parse(arguments)?;
    take_usage::<Counter>(context, key, &asked, cost)
}
