//! `RL.WINDOW key limit window [cost]`: never more than `limit` in any `window`.

use redis_module::raw;
use rl_core::{Log, Tokens, WindowLimit, duration};

use super::apply::take_usage;
use super::take::parse_cost;
use crate::config;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::registration::{Argument, Docs, Keys};

pub static DOCS: Docs = Docs {
    summary: c"Admits at most so much in any window, exactly, and tells where the client stands.",
    complexity: c"O(1) amortized; O(log N) for a denial with N charges in the window",
    since: c"0.1.0",
    arity: -4,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::LIMIT, Argument::WINDOW, Argument::COST],
};

/// What is asked for by those who count in a window.
pub struct Request<'a> {
    /// The key.
    pub key: KeyName<'a>,
    /// The limit.
    pub asked: WindowLimit,
    /// The cost.
    pub cost: Tokens,
}

impl<'a> Request<'a> {
    /// Reads `key limit window [cost]`.
    pub fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (limit, window) = (arguments.required()?, arguments.required()?);
        let cost = arguments.optional();
        arguments.finish()?;
        let limit = Tokens::parse(limit).map_err(|_| Error::Limit)?;
        let window = duration::parse(window).map_err(|_| Error::Window)?;
        let asked = WindowLimit::new(limit, window).ok_or(Error::Window)?;
        Ok(Self { key, asked, cost: parse_cost(cost)? })
    }
}

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost } = Request::parse(arguments)?;
    if asked.limit().get() > config::window_limit() {
        return Err(Error::LimitForLog);
    }
    if !Log::can_keep(&asked) {
        return Err(Error::WindowForLog);
    }
    take_usage::<Log>(context, key, &asked, cost)
}
