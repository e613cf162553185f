//! `RL.MTAKE numkeys key [key ...] capacity rate cost [capacity rate cost ...]`: all or nothing over several buckets, such as
//! a client's limit and its route's.

use std::collections::HashSet;

use redis_module::raw;
use rl_core::{Answer, Outcome, Tokens, UnixMicros, Wait};

use super::apply::carry_out;
use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::{Context, integer};
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::bucket::{Change, StoredBucket};
use crate::types::limits::{self, Asked};

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
        limits::hold(asked.id());
        Self { name, asked, cost }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        limits::release(self.asked.id());
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

/// A bucket that has decided, and whose answer is not written yet.
struct Looked<'a> {
    key: Key<'a>,
    is_missing: bool,
    answer: Answer<Change>,
}

impl<'a> Looked<'a> {
    fn take(context: &'a Context<'a>, part: &Part<'a>, now: UnixMicros) -> Result<Self, Error> {
        let mut key = Key::open_for_change(context, part.name);
        let stored = key.value::<StoredBucket>()?.map(|stored| &*stored);
        let is_missing = stored.is_none();
        let answer = part.asked.decide(stored, |held| part.asked.limit().take(held, now, part.cost));
        Ok(Self { key, is_missing, answer })
    }

    /// Where another bucket denies, this one is only looked at. What a denial brings about, a new limit or clock, stays.
    fn uncharge(&mut self, part: &Part<'_>, now: UnixMicros) -> Result<(), Error> {
        if self.answer.decision.is_allowed() {
            let held = self.key.value::<StoredBucket>()?.map(|stored| stored.held_by(&part.asked));
            let decision = part.asked.limit().peek(held.as_ref(), now, part.cost);
            self.answer = Answer { decision, change: None };
        }
        Ok(())
    }

    /// How long until this bucket lets the call pass.
    fn retry_after(&self) -> Wait {
        match self.answer.decision.outcome {
            Outcome::Denied { retry_after } => retry_after,
            _ => Wait::NONE,
        }
    }
}

/// Runs the command. Replies whether all were allowed, the index of the first that was denied or -1, the five integers of
/// each, and how long to wait for the slowest of those that deny. Of those that would have been allowed where another was
/// denied, the five tell where the client stands.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let parts = parse(arguments)?;
    let now = context.now();
    let mut looked = parts.iter().map(|part| Looked::take(context, part, now)).collect::<Result<Vec<_>, _>>()?;
    let denied = looked.iter().position(|looked| !looked.answer.decision.is_allowed());
    if denied.is_some() {
        parts.iter().zip(&mut looked).try_for_each(|(part, looked)| looked.uncharge(part, now))?;
    }
    if looked.iter().any(|looked| looked.is_missing && looked.answer.change.is_some()) && context.is_out_of_memory() {
        return Err(Error::OutOfMemory);
    }
    looked.iter_mut().try_for_each(|looked| carry_out::<StoredBucket>(&mut looked.key, now, &looked.answer))?;
    reply(context, &parts, &looked, denied);
    Ok(())
}

fn reply(context: &Context<'_>, parts: &[Part<'_>], looked: &[Looked<'_>], denied: Option<usize>) {
    context.reply_array(4);
    context.reply_integer(i64::from(denied.is_none()));
    context.reply_integer(denied.map_or(-1, |at| integer(at as u64)));
    context.reply_array(looked.len());
    for (part, looked) in parts.iter().zip(looked) {
        context.reply_decision(&looked.answer.decision, part.asked.limit().capacity());
    }
    context.reply_wait(looked.iter().map(Looked::retry_after).max().unwrap_or(Wait::NONE));
}
