//! `RL.RESTORE key payload`: the state of a key, as it is. What replicas and the AOF get in place of the command that
//! led to it, so that neither reads a clock. Internal: nothing checks whether the state is one that a take could leave.

use redis_module::raw;
use rl_core::codec::{Record, RecordedExpiry, decode_record};

use crate::error::Error;
use crate::server::arguments::{Arguments, KeyName};
use crate::server::context::Context;
use crate::server::key::Key;
use crate::server::registration::{Argument, Docs, Keys, Kind};
use crate::types::bucket;

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
    record: Record,
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
    let request = Request::parse(arguments)?;
    let mut key = Key::open_for_change(context, request.key);
    let restored = bucket::stored(&request.record.state)?;
    match key.bucket()? {
        Some(stored) => stored.set(request.record.state.bucket, restored.limit_id()),
        None => {
            key.create(restored)?;
        }
    }
    match request.record.expiry {
        RecordedExpiry::Unstated => {}
        RecordedExpiry::None => key.set_expiry(None),
        RecordedExpiry::At(at) => key.set_expiry(Some(at)),
    }
    context.replicate_verbatim();
    context.signal_modified(request.key);
    context.reply_ok();
    Ok(())
}
