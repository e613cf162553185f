//! The native data types, and the limits that buckets share. A further type is what [`value::Value`] asks for, and a row in
//! [`Holds`].

pub mod bucket;
pub mod denials;
pub mod expiries;
pub mod limits;
pub mod usage;
pub mod value;

use redis_module::raw;

use bucket::StoredBucket;
use usage::{StoredCounter, StoredLog, StoredQuota};
use value::{Type, Value};

/// Which of our types a key holds.
#[derive(Clone, Copy)]
pub enum Holds {
    /// A token bucket.
    Bucket,
    /// A sliding window log.
    Log,
    /// A sliding window counter.
    Counter,
    /// A quota.
    Quota,
}

impl Holds {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bucket, Self::Log, Self::Counter, Self::Quota];

    /// The type.
    pub fn value_type(self) -> &'static Type {
        match self {
            Self::Bucket => StoredBucket::value_type(),
            Self::Log => StoredLog::value_type(),
            Self::Counter => StoredCounter::value_type(),
            Self::Quota => StoredQuota::value_type(),
        }
    }
}

/// Registers the types with the server.
///
/// Errors: in words, if it refuses one.
pub fn register(ctx: *mut raw::RedisModuleCtx) -> Result<(), String> {
    value::register::<StoredBucket>(ctx)?;
    value::register::<StoredLog>(ctx)?;
    value::register::<StoredCounter>(ctx)?;
    value::register::<StoredQuota>(ctx)
}
