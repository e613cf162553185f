//! `RL.INFO key`: what the key holds, for people and dashboards.

use std::fmt::Display;

use redis_module::raw;
use rl_core::{Counter, Tokens, UnixMicros, Usage};

use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::{Context, integer};
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys};
use crate::types::Holds;
use crate::types::bucket::StoredBucket;
use crate::types::usage::{StoredCounter, StoredLog, StoredQuota};
use crate::types::value::Value;

pub static DOCS: Docs = Docs {
    summary: c"Tells what a key holds: limit, level, denials.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 2,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
    arguments: &[Argument::KEY],
};

/// What a field says.
enum Field {
    Integer(i64),
    Text(String),
}

impl Field {
    fn integer(number: u64) -> Self {
        Self::Integer(integer(number))
    }

    fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// A time in milliseconds.
    fn millis(time: UnixMicros) -> Self {
        Self::integer(time.get() / 1_000)
    }
}

type Fields = Vec<(&'static str, Field)>;

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, mut arguments: Arguments<'a>) -> Result<(), Error> {
    let name: KeyName<'a> = arguments.key()?;
    arguments.finish()?;
    let mut key = Key::open_to_look(context, name);
    let now = context.now();
    let fields = match key.holds()? {
        None => {
            context.reply_null();
            return Ok(());
        }
        Some(Holds::Bucket) => describe(&mut key, now, bucket)?,
        Some(Holds::Log) => describe(&mut key, now, log)?,
        Some(Holds::Counter) => describe(&mut key, now, counter)?,
        Some(Holds::Quota) => describe(&mut key, now, quota)?,
    };
    reply(context, fields);
    Ok(())
}

fn reply(context: &Context<'_>, fields: Fields) {
    context.reply_map(fields.len());
    for (name, field) in fields {
        context.reply_string(name);
        match field {
            Field::Integer(integer) => context.reply_integer(integer),
            Field::Text(text) => context.reply_string(text),
        }
    }
}

/// What `own` says of the value, and then what can be said of every type.
fn describe<T: Value>(
    key: &mut Key<'_>,
    now: UnixMicros,
    own: impl FnOnce(&T, UnixMicros) -> Fields,
) -> Result<Fields, Error> {
    let expiry = key.expiry();
    let Some(stored) = key.value::<T>()? else { return Err(Error::Internal) };
    let ttl_ms = expiry.map_or(-1, |at| integer(at.get().saturating_sub(now.get() / 1_000)));
    let mut fields = own(stored, now);
    fields.extend([
        ("last_change_ms", Field::millis(stored.last_change())),
        ("denials", Field::Integer(stored.denials().count().into())),
        ("last_denial_s", Field::Integer(stored.denials().last_s().map_or(-1, i64::from))),
        ("ttl_ms", Field::Integer(ttl_ms)),
    ]);
    Ok(fields)
}

fn bucket(stored: &StoredBucket, now: UnixMicros) -> Fields {
    let held = stored.held();
    let level = held.bucket.refilled(&held.limit, now).micro_tokens(&held.limit);
    vec![
        ("algorithm", Field::text("token-bucket")),
        ("limit", Field::integer(held.limit.capacity().get())),
        ("rate", Field::text(held.limit.rate())),
        ("level", Field::text(decimal(level))),
    ]
}

fn log(stored: &StoredLog, now: UnixMicros) -> Fields {
    let limit = stored.usage().limit();
    vec![
        ("algorithm", Field::text("sliding-window-log")),
        ("limit", Field::integer(limit.limit().get())),
        ("window", Field::text(limit.window())),
        ("level", Field::text(stored.peek(now, Tokens::ZERO).remaining)),
        ("charges", Field::integer(stored.usage().len() as u64)),
    ]
}

fn counter(stored: &StoredCounter, now: UnixMicros) -> Fields {
    let limit = stored.usage().limit;
    let level = Counter::see(Some(stored.usage()), &limit, now).micro_tokens();
    vec![
        ("algorithm", Field::text("sliding-window-counter")),
        ("limit", Field::integer(limit.limit().get())),
        ("window", Field::text(limit.window())),
        ("level", Field::text(decimal(level))),
    ]
}

fn quota(stored: &StoredQuota, now: UnixMicros) -> Fields {
    let limit = stored.usage().limit;
    vec![
        ("algorithm", Field::text("fixed-window")),
        ("limit", Field::integer(limit.limit.get())),
        ("period", Field::text(limit.period)),
        ("level", Field::text(stored.peek(now, Tokens::ZERO).remaining)),
    ]
}

/// Millionths as a decimal number, without the zeros that say nothing.
fn decimal(millionths: i128) -> String {
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, rest) = (millionths.unsigned_abs() / 1_000_000, millionths.unsigned_abs() % 1_000_000);
    format!("{sign}{whole}.{rest:06}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
