//! `RL.TAKE key capacity rate [cost]`: may this happen now? If so, charge it.

use redis_module::raw;
use rl_core::Tokens;

use super::apply::apply;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys};
use crate::types::limits::Asked;

pub static DOCS: Docs = Docs {
    summary: c"Takes tokens from a bucket if they are there, and tells where the client stands.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: -4,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::CAPACITY, Argument::RATE, Argument::COST],
};

struct Request<'a> {
    key: KeyName<'a>,
    asked: Asked,
    cost: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (capacity, rate) = (arguments.required()?, arguments.required()?);
        let cost = arguments.optional();
        arguments.finish()?;
        Ok(Self { key, asked: Asked::parse(capacity, rate)?, cost: parse_cost(cost)? })
    }
}

/// A cost, or 1 where none is given.
pub fn parse_cost(text: Option<&[u8]>) -> Result<Tokens, Error> {
    text.map_or(Ok(Tokens::ONE), |text| Tokens::parse(text).map_err(|_| Error::Cost))
}

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost } = Request::parse(arguments)?;
    let now = context.now();
    let mut key = Key::open_for_change(context, key);
    let decision = apply(&mut key, now, |stored| asked.decide(stored, |held| asked.limit().take(held, now, cost)))?;
    context.reply_decision(&decision, asked.limit().capacity());
    Ok(())
}
