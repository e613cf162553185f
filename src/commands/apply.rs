//! Carrying out what was decided about a bucket: value, expiry, replication, notice to those who watch the key.

use std::ffi::c_void;
use std::ptr;

use rl_core::codec::{Record, RecordedExpiry, encode_record};
use rl_core::expiry::Expiry;
use rl_core::{Bucket, Held, Limit, Take, UnixMicros};

use crate::error::Error;
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
    decide: impl FnOnce(Option<&Held>) -> Take,
) -> Result<Take, Error> {
    let Some(stored) = key.bucket()? else {
        let take = decide(None);
        if let Some(bucket) = take.change {
            create(key, bucket, asked)?;
        }
        return Ok(take);
    };
    // The usual case, told by the number: the limit need not be looked up again.
    let limit = if stored.limit_id() == asked.id { asked.limit } else { stored.limit() };
    let held = Held { bucket: stored.bucket(), limit };
    let take = decide(Some(&held));
    if !take.decision.is_allowed() {
        stored.count_denial(now);
    }
    if let Some(bucket) = take.change {
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
    Ok(take)
}

fn create(key: &mut Key<'_>, bucket: Bucket, asked: &Asked) -> Result<(), Error> {
    if key.context().is_out_of_memory() {
        return Err(Error::OutOfMemory);
    }
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
