//! `RL.LEASE key capacity rate tokens`: as many tokens as are there, for a client that spends them from a counter of its
//! own and comes back when they are used up.

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
    summary: c"Takes as many tokens from a bucket as are there, up to a number.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 5,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::CAPACITY, Argument::RATE, Argument::TOKENS],
};

struct Request<'a> {
    key: KeyName<'a>,
    asked: Asked,
    tokens: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (capacity, rate, tokens) = (arguments.required()?, arguments.required()?, arguments.required()?);
        arguments.finish()?;
        let asked = Asked::parse(capacity, rate)?;
        Ok(Self { key, asked, tokens: Tokens::parse(tokens).map_err(|_| Error::Tokens)? })
    }
}

/// Runs the command. The first of the five integers is the number of tokens granted.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, tokens } = Request::parse(arguments)?;
    let now = context.now();
    let mut key = Key::open_for_change(context, key);
    let decision = apply(&mut key, now, |stored| asked.decide(stored, |held| asked.limit().lease(held, now, tokens)))?;
    context.reply_decision(&decision, asked.limit().capacity());
    Ok(())
}
