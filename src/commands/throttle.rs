//! `CL.THROTTLE key max_burst count period [quantity]`: redis-cell's command over our bucket, for those who come from there.
//!
//! Where redis-cell is exact, so is this. Where it is not, this does what is right: the README's section on migration lists it.

use redis_module::raw;
use rl_core::{Decision, Limit, Outcome, Rate, Tokens, Wait};

use super::apply::apply;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::{Context, integer, told};
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::limits::Asked;

pub static DOCS: Docs = Docs {
    summary: c"redis-cell's throttle, over a token bucket of max_burst + 1.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: -5,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[
        Argument::KEY,
        Argument::required(c"max_burst", Kind::Integer),
        Argument::required(c"count", Kind::Integer),
        Argument::required(c"period", Kind::Integer),
        Argument::optional(c"quantity", Kind::Integer),
    ],
};

struct Request<'a> {
    key: KeyName<'a>,
    limit: Limit,
    quantity: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (max_burst, count, period) = (arguments.required()?, arguments.required()?, arguments.required()?);
        let quantity = arguments.optional();
        arguments.finish()?;
        let burst = Tokens::parse(max_burst).map_err(|_| Error::MaxBurst)?.get();
        let capacity = Tokens::new(burst.saturating_add(1)).ok_or(Error::MaxBurst)?;
        let count = Tokens::parse(count).ok().filter(|count| *count != Tokens::ZERO).ok_or(Error::CountPerPeriod)?;
        let period_us = Tokens::parse(period).map_err(|_| Error::PeriodSeconds)?.get().saturating_mul(1_000_000);
        let rate = Rate::new(count.get().into(), period_us.into()).ok_or(Error::PeriodSeconds)?;
        let quantity = quantity.map_or(Ok(Tokens::ONE), |text| Tokens::parse(text).map_err(|_| Error::Quantity))?;
        Ok(Self { key, limit: Limit::new(capacity, rate), quantity })
    }
}

/// Runs the command. Replies redis-cell's five: whether it is limited, the limit, what is left, the seconds until the call may
/// be repeated or -1, the seconds until the bucket is full.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, limit, quantity } = Request::parse(arguments)?;
    let now = context.now();
    let asked = Asked::of(&limit)?;
    let mut key = Key::open_for_change(context, key);
    let decision = apply(&mut key, now, |stored| asked.decide(stored, |held| limit.take(held, now, quantity)))?;
    reply(context, &decision, limit.capacity());
    Ok(())
}

fn reply(context: &Context<'_>, decision: &Decision, capacity: Tokens) {
    let (limited, retry_after) = match decision.outcome {
        Outcome::Denied { retry_after } => (1, retry_after),
        _ => (0, Wait::Never),
    };
    context.reply_array(5);
    context.reply_integer(limited);
    context.reply_integer(integer(capacity.get()));
    context.reply_integer(integer(decision.remaining));
    context.reply_integer(seconds(retry_after));
    context.reply_integer(seconds(decision.reset_after));
}

/// A wait in seconds, rounded up; -1 for one that never ends.
fn seconds(wait: Wait) -> i64 {
    match wait {
        Wait::Micros(micros) => told(u64::try_from(micros.div_ceil(1_000_000)).unwrap_or(u64::MAX)),
        Wait::Never => -1,
    }
}
