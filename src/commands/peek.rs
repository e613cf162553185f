//! `RL.PEEK key [capacity rate [cost]]`: what would a take be told? Writes nothing, so replicas answer too.

use redis_module::raw;
use rl_core::{Tokens, UnixMicros};

use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::Holds;
use crate::types::bucket::StoredBucket;
use crate::types::limits::Asked;
use crate::types::usage::{StoredCounter, StoredLog, StoredQuota};
use crate::types::value::Value;

pub static DOCS: Docs = Docs {
    summary: c"Tells what a call would be answered, and charges nothing.",
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
    asked: Option<Asked>,
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
        let asked = limit.map(|(capacity, rate)| Asked::parse(capacity, rate)).transpose()?;
        Ok(Self { key, asked, cost: parse_cost(cost)? })
    }
}

/// Runs the command. Without a limit it looks at a key of any type, with one at a bucket.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost } = Request::parse(arguments)?;
    let now = context.now();
    let mut key = Key::open_to_look(context, key);
    if let Some(asked) = asked {
        let held = key.value::<StoredBucket>()?.map(|stored| stored.held_by(&asked));
        context.reply_decision(&asked.limit().peek(held.as_ref(), now, cost), asked.limit().capacity());
        return Ok(());
    }
    match key.holds()? {
        None => {
            context.reply_null();
            Ok(())
        }
        Some(Holds::Bucket) => peek::<StoredBucket>(context, key, now, cost),
        Some(Holds::Log) => peek::<StoredLog>(context, key, now, cost),
        Some(Holds::Counter) => peek::<StoredCounter>(context, key, now, cost),
        Some(Holds::Quota) => peek::<StoredQuota>(context, key, now, cost),
    }
}

fn peek<T: Value>(context: &Context<'_>, mut key: Key<'_>, now: UnixMicros, cost: Tokens) -> Result<(), Error> {
    let Some(stored) = key.value::<T>()? else { return Err(Error::Internal) };
    context.reply_decision(&stored.peek(now, cost), stored.capacity());
    Ok(())
}
