//! Carrying out what was decided about a bucket: value, expiry, replication, notice to those who watch the key.

use std::ffi::c_void;
use std::ptr;

use rl_core::codec::{Record, RecordedExpiry, encode_record};
use rl_core::expiry::Expiry;
use rl_core::{Answer, Bucket, Held, Limit, UnixMicros};

use crate::error::Error;
use crate::offenders;
use crate::server::key::Key;
use crate::types::bucket::StoredBucket;
use crate::types::expiries;
use crate::types::limits::{self, LimitId};

/// The limit that a command asks for: its number, and what it says.
#[derive(Clone, Copy)]
pub struct Asked {
    pub id: LimitId,
    pub limit: Limit,
}

impl Asked {
    /// The limit that `capacity` and `rate` spell.
    pub fn parse(capacity: &[u8], rate: &[u8]) -> Result<Self, Error> {
        let id = limits::spelled(capacity, rate)?;
        Ok(Self { id, limit: limits::limit(id) })
    }
}

/// Has `decide` look at what `key` holds at `now`, and writes what it wants changed, here and on the replicas.
///
/// Errors: [`Error::WrongType`]; [`Error::OutOfMemory`] for a key that would have to be created when memory is used up.
/// A key that exists is changed in place, which takes no memory, so its limit goes on being enforced.
pub fn apply(
    key: &mut Key<'_>,
    asked: &Asked,
    now: UnixMicros,
    decide: impl FnOnce(Option<&Held>) -> Answer,
) -> Result<Answer, Error> {
    let held = held_under(key, asked)?;
    let answer = decide(held.as_ref());
    if held.is_none() && answer.change.is_some() && key.context().is_out_of_memory() {
        return Err(Error::OutOfMemory);
    }
    carry_out(key, asked, now, held.as_ref(), &answer)?;
    Ok(answer)
}

/// What `key` holds.
pub fn held_under(key: &mut Key<'_>, asked: &Asked) -> Result<Option<Held>, Error> {
    Ok(key.bucket()?.map(|stored| {
        // The usual case, told by the number: the limit need not be looked up again.
        let limit = if stored.limit_id() == asked.id { asked.limit } else { stored.limit() };
        Held { bucket: stored.bucket(), limit }
    }))
}

/// Writes what `answer` wants changed in `key`, which holds `held`.
pub fn carry_out(
    key: &mut Key<'_>,
    asked: &Asked,
    now: UnixMicros,
    held: Option<&Held>,
    answer: &Answer,
) -> Result<(), Error> {
    key.context().count(&answer.decision);
    if !answer.decision.is_allowed() {
        offenders::note(key.name().bytes(), now);
    }
    let Some(held) = held else {
        return answer.change.map_or(Ok(()), |bucket| create(key, asked, bucket));
    };
    let Some(stored) = key.bucket()? else { return Err(Error::Internal) };
    if !answer.decision.is_allowed() {
        stored.count_denial(now);
    }
    match answer.change {
        None => {}
        // A full bucket says no more than a missing key.
        Some(bucket) if bucket.level == asked.limit.full() => key.delete(),
        Some(bucket) => {
            stored.set(bucket, asked.id);
            let value: *const c_void = ptr::from_ref(stored).cast();
            let needed = Expiry::of(bucket, &asked.limit, Some(&held.limit));
            let recorded = match expiries::recall(value, held.bucket.last_change, now) {
                // As remembered, but perhaps no longer so: replicas keep what they have, as this node does.
                Some(remembered) if needed.accepts(remembered) => {
                    expiries::note(value, bucket.last_change, remembered);
                    RecordedExpiry::Unstated
                }
                _ => expire(key, value, bucket, needed),
            };
            announce(key, bucket, asked.limit, recorded);
        }
    }
    Ok(())
}

fn create(key: &mut Key<'_>, asked: &Asked, bucket: Bucket) -> Result<(), Error> {
    let value = key.create(StoredBucket::new(bucket, asked.id))?.cast();
    let recorded = expire(key, value, bucket, Expiry::of(bucket, &asked.limit, None));
    announce(key, bucket, asked.limit, recorded);
    Ok(())
}

/// Sees to it that the key of `value` expires as `needed`; says when it does.
fn expire(key: &mut Key<'_>, value: *const c_void, bucket: Bucket, needed: Expiry) -> RecordedExpiry {
    let current = key.expiry();
    let expiry = needed.applied_to(current);
    if expiry != current {
        key.set_expiry(expiry);
    }
    expiries::note(value, bucket.last_change, expiry);
    expiry.map_or(RecordedExpiry::None, RecordedExpiry::At)
}

/// Tells replicas and the AOF what `key` holds now, and those who watch it that it has changed.
fn announce(key: &Key<'_>, bucket: Bucket, limit: Limit, expiry: RecordedExpiry) {
    let record = Record { expiry, state: Held { bucket, limit } };
    key.context().replicate_state(key.name(), encode_record(&record).as_bytes());
    key.context().signal_modified(key.name());
}
