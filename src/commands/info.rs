//! `RL.INFO key`: what the key holds, for people and dashboards.

use redis_module::raw;
use rl_core::UnixMicros;

use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::{Context, integer};
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys};
use crate::types::bucket::StoredBucket;

pub static DOCS: Docs = Docs {
    summary: c"Tells what a key holds: limit, level, denials.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 2,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
    arguments: &[Argument::KEY],
};

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, mut arguments: Arguments<'a>) -> Result<(), Error> {
    let name: KeyName<'a> = arguments.key()?;
    arguments.finish()?;
    let mut key = Key::open_to_look(context, name);
    let ttl_ms = key.expiry().map(|at| integer(at.get()));
    match key.bucket()? {
        Some(stored) => reply(context, stored, ttl_ms),
        None => context.reply_null(),
    }
    Ok(())
}

fn reply(context: &Context<'_>, stored: &StoredBucket, expires_at_ms: Option<i64>) {
    let now = context.now();
    let held = stored.held();
    let level = decimal(held.bucket.refilled(&held.limit, now).micro_tokens(&held.limit));
    let last_denial_s = if stored.denials() == 0 { -1 } else { i64::from(stored.last_denial_s()) };
    context.reply_map(8);
    context.reply_string("algorithm");
    context.reply_string("token-bucket");
    context.reply_string("limit");
    context.reply_integer(integer(held.limit.capacity().get()));
    context.reply_string("rate");
    context.reply_string(held.limit.rate().to_string());
    context.reply_string("level");
    context.reply_string(level);
    context.reply_string("last_change_ms");
    context.reply_integer(integer(held.bucket.last_change.get() / 1_000));
    context.reply_string("denials");
    context.reply_integer(i64::from(stored.denials()));
    context.reply_string("last_denial_s");
    context.reply_integer(last_denial_s);
    context.reply_string("ttl_ms");
    context.reply_integer(expires_at_ms.map_or(-1, |at| at.saturating_sub(now_ms(now)).max(0)));
}

/// Millionths as a decimal number, without the zeros that say nothing.
fn decimal(millionths: i128) -> String {
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, rest) = (millionths.unsigned_abs() / 1_000_000, millionths.unsigned_abs() % 1_000_000);
    format!("{sign}{whole}.{rest:06}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn now_ms(now: UnixMicros) -> i64 {
    integer(now.get() / 1_000)
}
