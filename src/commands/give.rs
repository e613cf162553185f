//! `RL.GIVE key tokens`: gives tokens back, for a call that did not happen after all.

use redis_module::raw;
use rl_core::Tokens;

use super::apply::{Asked, carry_out};
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys};

pub static DOCS: Docs = Docs {
    summary: c"Gives tokens back to a bucket, at most to what is full.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 3,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::TOKENS],
};

struct Request<'a> {
    key: KeyName<'a>,
    tokens: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let tokens = arguments.required()?;
        arguments.finish()?;
        Ok(Self { key, tokens: Tokens::parse(tokens).map_err(|_| Error::Tokens)? })
    }
}

/// Runs the command. A key that is not there is a full bucket already: there is nothing to give to, and no limit to tell.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, tokens } = Request::parse(arguments)?;
    let now = context.now();
    let mut key = Key::open_for_change(context, key);
    let Some((id, held)) = key.bucket()?.map(|stored| (stored.limit_id(), stored.held())) else {
        context.reply_null();
        return Ok(());
    };
    let asked = Asked { id, limit: held.limit };
    let answer = held.give(now, tokens);
    carry_out(&mut key, &asked, now, Some(&held), &answer)?;
    context.reply_decision(&answer.decision, asked.limit.capacity());
    Ok(())
}
