//! `RL.RESERVE key capacity rate cost max_wait`: books a slot. Who may wait a little is charged now, told how long to wait
//! before acting, and keeps its place in the queue.

use redis_module::raw;
use rl_core::{Micros, Tokens, duration};

use super::apply::apply;
use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::limits::Asked;

pub static DOCS: Docs = Docs {
    summary:
        c"Takes tokens from a bucket ahead of time, if they will be there soon enough, and tells how long to wait.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 6,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[
        Argument::KEY,
        Argument::CAPACITY,
        Argument::RATE,
        Argument::required(c"cost", Kind::Integer),
        Argument::required(c"max_wait", Kind::String),
    ],
};

struct Request<'a> {
    key: KeyName<'a>,
    asked: Asked,
    cost: Tokens,
    max_wait: Micros,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (capacity, rate) = (arguments.required()?, arguments.required()?);
        let (cost, max_wait) = (arguments.required()?, arguments.required()?);
        arguments.finish()?;
        let asked = Asked::parse(capacity, rate)?;
        let cost = parse_cost(Some(cost))?;
        Ok(Self { key, asked, cost, max_wait: duration::parse(max_wait).map_err(|_| Error::MaxWait)? })
    }
}

/// Runs the command. The third of the five integers is how long to wait before acting, or before asking again.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost, max_wait } = Request::parse(arguments)?;
    let now = context.now();
    let mut key = Key::open_for_change(context, key);
    let decision =
        apply(&mut key, now, |stored| asked.decide(stored, |held| asked.limit().reserve(held, now, cost, max_wait)))?;
    context.reply_decision(&decision, asked.limit().capacity());
    Ok(())
}
