//! `RL.MTAKE numkeys key [key ...] capacity rate cost [capacity rate cost ...]`: all or nothing over several buckets, such as
//! a client's limit and its route's.

use std::collections::HashSet;

use redis_module::raw;
use rl_core::{Answer, Held, Tokens, UnixMicros};

use super::apply::{Asked, carry_out, held_under};
use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::{Context, integer};
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::limits;

pub static DOCS: Docs = Docs {
    summary: c"Takes tokens from several buckets if they are there in all of them, and else from none.",
    complexity: c"O(N) for N keys",
    since: c"0.1.0",
    arity: -6,
    keys: Keys::Counted,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[
        Argument::required(c"numkeys", Kind::Integer),
        Argument::KEY.repeated(),
        Argument::required(
            c"limit",
            Kind::Block(&[Argument::CAPACITY, Argument::RATE, Argument::required(c"cost", Kind::Integer)]),
        )
        .repeated(),
    ],
};

/// A bucket, and what is asked of it. Keeps its hand on the limit, as the next one is looked up while it lasts.
struct Part<'a> {
    name: KeyName<'a>,
    asked: Asked,
    cost: Tokens,
}

impl<'a> Part<'a> {
    fn new(name: KeyName<'a>, asked: Asked, cost: Tokens) -> Self {
        limits::hold(asked.id);
        Self { name, asked, cost }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        limits::release(self.asked.id);
    }
}

fn parse<'a>(mut arguments: Arguments<'a>) -> Result<Vec<Part<'a>>, Error> {
    let count = Tokens::parse(arguments.required()?).map_err(|_| Error::KeyCount)?.get();
    // As many keys and three words for each: anything else is a wrong count, and nothing is reserved for it.
    if count == 0 || Some(arguments.len() as u64) != count.checked_mul(4) {
        return Err(Error::KeyCount);
    }
    let names = (0..count).map(|_| arguments.key()).collect::<Result<Vec<_>, _>>()?;
    let mut seen = HashSet::new();
    if !names.iter().all(|name| seen.insert(name.bytes())) {
        return Err(Error::SameKey);
    }
    let mut parts = Vec::new();
    for name in names {
        let (capacity, rate, cost) = (arguments.required()?, arguments.required()?, arguments.required()?);
        parts.push(Part::new(name, Asked::parse(capacity, rate)?, parse_cost(Some(cost))?));
    }
    arguments.finish()?;
    Ok(parts)
}

struct Looked<'a> {
    key: Key<'a>,
    held: Option<Held>,
    answer: Answer,
}

/// Runs the command. Replies whether all were allowed, the index of the first that was denied or -1, and the five integers of
/// each. Of those that would have been allowed where another was denied, they tell where the client stands.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let parts = parse(arguments)?;
    let now = context.now();
    let mut looked = Vec::new();
    for part in &parts {
        let mut key = Key::open_for_change(context, part.name);
        let held = held_under(&mut key, &part.asked)?;
        let answer = part.asked.limit.take(held.as_ref(), now, part.cost);
        looked.push(Looked { key, held, answer });
    }
    let denied = looked.iter().position(|looked| !looked.answer.decision.is_allowed());
    if denied.is_some() {
        for (part, looked) in parts.iter().zip(&mut looked) {
            uncharge(part, looked, now);
        }
    }
    write(&parts, &mut looked, now)?;
    reply(context, &parts, &looked, denied);
    Ok(())
}

/// Where another bucket denies, this one is only looked at. What a denial brings about, a new limit or clock, stays.
fn uncharge(part: &Part<'_>, looked: &mut Looked<'_>, now: UnixMicros) {
    if looked.answer.decision.is_allowed() {
        let decision = part.asked.limit.peek(looked.held.as_ref(), now, part.cost);
        looked.answer = Answer { decision, change: None };
    }
}

fn write(parts: &[Part<'_>], looked: &mut [Looked<'_>], now: UnixMicros) -> Result<(), Error> {
    let creates = looked.iter().any(|looked| looked.held.is_none() && looked.answer.change.is_some());
    if creates && looked.first().is_some_and(|looked| looked.key.context().is_out_of_memory()) {
        return Err(Error::OutOfMemory);
    }
    for (part, looked) in parts.iter().zip(looked) {
        carry_out(&mut looked.key, &part.asked, now, looked.held.as_ref(), &looked.answer)?;
    }
    Ok(())
}

fn reply(context: &Context<'_>, parts: &[Part<'_>], looked: &[Looked<'_>], denied: Option<usize>) {
    context.reply_array(3);
    context.reply_integer(i64::from(denied.is_none()));
    context.reply_integer(denied.map_or(-1, |at| integer(at as u64)));
    context.reply_array(looked.len());
    for (part, looked) in parts.iter().zip(looked) {
        context.reply_decision(&looked.answer.decision, part.asked.limit.capacity());
    }
}
