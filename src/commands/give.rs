//! `RL.GIVE key tokens`: gives tokens back, for a call that did not happen after all.

use redis_module::raw;
use rl_core::{Tokens, Wait};

use super::apply::write;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys};
use crate::stats;
use crate::types::Holds;
use crate::types::bucket::StoredBucket;
use crate::types::usage::{StoredCounter, StoredLog, StoredQuota};
use crate::types::value::Value;

pub static DOCS: Docs = Docs {
    summary: c"Gives tokens back to a key of any type, at most to what is full.",
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

/// Runs the command. A key that is not there is full already: there is nothing to give to, and no limit to tell.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, tokens } = Request::parse(arguments)?;
    let key = Key::open_for_change(context, key);
    match key.holds()? {
        None => {
            context.reply_null();
            Ok(())
        }
        Some(Holds::Bucket) => give::<StoredBucket>(context, key, tokens),
        Some(Holds::Log) => give::<StoredLog>(context, key, tokens),
        Some(Holds::Counter) => give::<StoredCounter>(context, key, tokens),
        Some(Holds::Quota) => give::<StoredQuota>(context, key, tokens),
    }
}

fn give<'a, T: Value>(context: &'a Context<'a>, mut key: Key<'a>, tokens: Tokens) -> Result<(), Error> {
    let now = context.now();
    let Some(stored) = key.value::<T>()? else { return Err(Error::Internal) };
    let (answer, capacity) = (stored.give(now, tokens), stored.capacity());
    // A key may be full already: it lives a little longer than it must.
    let is_short = stored.peek(now, Tokens::ZERO).reset_after != Wait::NONE;
    write::<T>(&mut key, now, &answer)?;
    if is_short && tokens != Tokens::ZERO {
        stats::REFUNDS.count();
    }
    context.reply_decision(&answer.decision, capacity);
    Ok(())
}
