//! `RL.RESTORE key payload`: the state of a key, as it is. What replicas and the AOF get in place of the command that
//! led to it, so that neither reads a clock. Internal: nothing checks whether the state is one that a take could leave.

use redis_module::raw;
use rl_core::codec::{Record, RecordedExpiry, State, decode_record};
use rl_core::log::Step;

use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::bucket::StoredBucket;
use crate::types::usage::{StoredCounter, StoredLog, StoredQuota};
use crate::types::value::Value;

pub static DOCS: Docs = Docs {
    summary: c"Internal: sets the state of a key, for replication and the append-only file.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arity: 3,
    keys: Keys::First,
    key_flags: raw::REDISMODULE_CMD_KEY_OW | raw::REDISMODULE_CMD_KEY_UPDATE,
    arguments: &[Argument::KEY, Argument::required(c"payload", Kind::String)],
};

struct Request<'a> {
    key: KeyName<'a>,
    record: Record<State>,
}

impl<'a> Request<'a> {
    fn parse(mut arguments: Arguments<'a>) -> Result<Self, Error> {
        let key = arguments.key()?;
        let payload = arguments.required()?;
        arguments.finish()?;
        Ok(Self { key, record: decode_record(payload).map_err(Error::Payload)? })
    }
}

/// Runs the command.
pub fn run<'a>(context: &'a Context<'a>, arguments: Arguments<'a>) -> Result<(), Error> {
    let Request { key: name, record: Record { expiry, state } } = Request::parse(arguments)?;
    let mut key = Key::open_for_change(context, name);
    match state {
        State::Bucket(held) => put(&mut key, StoredBucket::of(&held)?)?,
        State::Log(log) => put(&mut key, StoredLog::new(log))?,
        State::Step(step) => follow(&mut key, &step)?,
        State::Counter(counter) => put(&mut key, StoredCounter::new(counter))?,
        State::Quota(quota) => put(&mut key, StoredQuota::new(quota))?,
    }
    match expiry {
        RecordedExpiry::Unstated => {}
        RecordedExpiry::None => key.set_expiry(None),
        RecordedExpiry::At(at) => key.set_expiry(Some(at)),
    }
    // Closed first: Redis 8.6 looks the key up to signal it, and deletes it there and then if its expiry has passed.
    drop(key);
    context.replicate_verbatim();
    context.signal_modified(name);
    context.notify_changed(name);
    context.reply_ok();
    Ok(())
}

fn put<T: Value>(key: &mut Key<'_>, value: T) -> Result<(), Error> {
    match key.value::<T>()? {
        Some(stored) => stored.replace(value),
        None => {
            key.create(value)?;
        }
    }
    Ok(())
}

fn follow(key: &mut Key<'_>, step: &Step) -> Result<(), Error> {
    match key.value::<StoredLog>()? {
        Some(stored) => stored.follow(step),
        None => {
            key.create(StoredLog::begin(step))?;
        }
    }
    Ok(())
}
