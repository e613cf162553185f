//! `RL.PEEK key [capacity rate [cost]]`: what would a take be told? Writes nothing, so replicas answer too.

use redis_module::raw;
use rl_core::{Limit, Tokens};

use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::limits;

pub static DOCS: Docs = Docs {
    summary: c"Tells what RL.TAKE would answer, and charges nothing.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: -2,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
    arguments: &[
        Argument::KEY,
        Argument::optional(c"limit", Kind::Block(&[Argument::CAPACITY, Argument::RATE, Argument::COST])),
    ],
};

struct Request<'a> {
    key: KeyName<'a>,
    /// `None`: the limit in the key.
    limit: Option<Limit>,
    cost: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let limit = match arguments.optional() {
            Some(capacity) => Some((capacity, arguments.required()?)),
            None => None,
        };
        let cost = arguments.optional();
        arguments.finish()?;
        let limit = limit.map(|(capacity, rate)| limits::spelled(capacity, rate).map(limits::limit)).transpose()?;
        Ok(Self { key, limit, cost: parse_cost(cost)? })
    }
}

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let request = Request::parse(arguments)?;
    let mut key = Key::open_to_look(context, request.key);
    let held = key.bucket()?.map(|stored| stored.held());
    let Some(limit) = request.limit.or(held.map(|held| held.limit)) else {
        context.reply_null();
        return Ok(());
    };
    context.reply_decision(&limit.peek(held.as_ref(), context.now(), request.cost), limit.capacity());
    Ok(())
}
