//! `RL.QUOTA key limit period [cost]`: at most `limit` in each period of the calendar.

use redis_module::raw;
use rl_core::{Period, Quota, QuotaLimit, Tokens};

use super::apply::take_usage;
use super::take::parse_cost;
use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::registration::{Argument, Docs, Keys, Kind};

pub static DOCS: Docs = Docs {
    summary:
        c"Admits at most so much in each day, month or other period of the calendar, and tells where the client stands.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: -4,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::LIMIT, Argument::required(c"period", Kind::String), Argument::COST],
};

struct Request<'a> {
    key: KeyName<'a>,
    asked: QuotaLimit,
    cost: Tokens,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let (limit, period) = (arguments.required()?, arguments.required()?);
        let cost = arguments.optional();
        arguments.finish()?;
        let limit = Tokens::parse(limit).map_err(|_| Error::Limit)?;
        let period = Period::parse(period).map_err(|_| Error::Period)?;
        Ok(Self { key, asked: QuotaLimit { limit, period }, cost: parse_cost(cost)? })
    }
}

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key, asked, cost } = Request::parse(arguments)?;
    take_usage::<Quota>(context, key, &asked, cost)
}
