//! The bytes in which states are saved, rewritten and replicated: one form for RDB, AOF, replicas, `DUMP`, `COPY` and
//! `DEBUG DIGEST`.
//!
//! ```text
//! state   = version(1) kind(1) fields
//! bucket  = 1: level last_change_us capacity tokens period_us
//! log     = 2: limit window_us last_change_us n, then n times: age_us cost        from the oldest charge to the newest
//! step    = 3: limit window_us at_us given charged                                a change of a log
//! counter = 4: limit window_us previous current position_us last_change_us
//! quota   = 5: limit period used last_change_us
//! period  = span offset_minutes
//! span    = 0 span_us | 1 | 2 | 3           fixed | week | month | year           a byte each, and a number
//! record  = expiry state                    what RL.RESTORE takes
//! expiry  = 0 | 1 | 2 millis                not stated (the caller sets it) | none | at this Unix time
//! number  = length(1) little-endian bytes, `length` of them, the last one not 0
//! ```
//!
//! The level and the offset are signed, and stored as 2n for n >= 0 and -2n - 1 below. The age of a log's first charge is
//! counted from the last change, that of every other one back from the one before it. The numbers stand in their shortest
//! form and nothing may follow them, so that there is one form of every state and a digest of the bytes is a digest of the
//! state.
//!
//! A log can be long, so with each change the replicas get the step and not the log. A step carries its time and what it
//! does, and is carried out without a clock and without a decision.
//!
//! A payload is user input (`RESTORE`, `RL.RESTORE`, a damaged file): whatever the bytes, decoding returns a state that
//! keeps every bound of the types, or an error. It never panics, and allocates at most four times the length of the bytes.
//!
//! Versions: 1, since 0.1.0. A later version gets decoders of its own beside those in `states.rs`, which stay.

mod bytes;
mod states;

use std::fmt;

pub use bytes::Encoded;
use bytes::{Reader, Sink};
use states::Fields;

use crate::bucket::Held;
use crate::counter::Counter;
use crate::log::{Log, Step};
use crate::quantity::UnixMillis;
use crate::quota::Quota;

/// The version that is written.
pub const VERSION: u8 = 1;

const EXPIRY_UNSTATED: u8 = 0;
const EXPIRY_NONE: u8 = 1;
const EXPIRY_AT: u8 = 2;

/// Why bytes are not a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// They end too early.
    Truncated,
    /// Of a version that this crate does not know, most likely a later one.
    Version(u8),
    /// Of a kind that this version does not know.
    Kind(u8),
    /// A number is not in its shortest form, or more follows where the end should be.
    NotCanonical,
    /// A number is outside its bounds.
    Range,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("ends too early"),
            Self::Version(version) => write!(f, "has version {version}, and {VERSION} is the newest known"),
            Self::Kind(kind) => write!(f, "is of the unknown kind {kind}"),
            Self::NotCanonical => f.write_str("is not in its one proper form"),
            Self::Range => f.write_str("holds a number out of range"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// What a record says of the key's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedExpiry {
    /// Nothing: whoever wrote the record sets it by other means, as an AOF rewrite does.
    Unstated,
    /// The key has none.
    None,
    /// The key expires then.
    At(UnixMillis),
}

/// A state and the expiry of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<S = Held> {
    /// The expiry.
    pub expiry: RecordedExpiry,
    /// The state.
    pub state: S,
}

/// What has a stored form.
pub trait Stored: Fields {}

/// What has a stored form of bounded length.
pub trait Short: Stored {}

impl<S: Fields> Stored for S {}
impl Short for Held {}
impl Short for Step {}
impl Short for Counter {}
impl Short for Quota {}

/// Any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "short-lived: decoded, and put into a key")]
pub enum State {
    /// A token bucket.
    Bucket(Held),
    /// A sliding window log.
    Log(Log),
    /// A change of a sliding window log.
    Step(Step),
    /// A sliding window counter.
    Counter(Counter),
    /// A quota.
    Quota(Quota),
}

fn put_state(state: &impl Stored, out: &mut impl Sink) {
    out.put_byte(VERSION);
    out.put_byte(state.kind());
    state.put(out);
}

fn put_record(expiry: RecordedExpiry, state: &impl Stored, out: &mut impl Sink) {
    match expiry {
        RecordedExpiry::Unstated => out.put_byte(EXPIRY_UNSTATED),
        RecordedExpiry::None => out.put_byte(EXPIRY_NONE),
        RecordedExpiry::At(at) => {
            out.put_byte(EXPIRY_AT);
            out.put_short(at.get());
        }
    }
    put_state(state, out);
}

/// The state alone, as an RDB file and `DUMP` hold it.
#[must_use]
pub fn encode(state: &impl Short) -> Encoded {
    let mut encoded = Encoded::new();
    put_state(state, &mut encoded);
    encoded
}

/// The same of a state that may be long.
#[must_use]
pub fn encode_long(state: &impl Stored) -> Vec<u8> {
    let mut encoded = Vec::new();
    put_state(state, &mut encoded);
    encoded
}

/// A state with its key's expiry, as replicas and the AOF get it.
#[must_use]
pub fn encode_record(record: &Record<impl Short>) -> Encoded {
    let mut encoded = Encoded::new();
    put_record(record.expiry, &record.state, &mut encoded);
    encoded
}

/// The same of a state that may be long.
#[must_use]
pub fn encode_long_record(expiry: RecordedExpiry, state: &impl Stored) -> Vec<u8> {
    let mut encoded = Vec::new();
    put_record(expiry, state, &mut encoded);
    encoded
}

/// The state in `bytes`.
///
/// Errors: whatever keeps the bytes from being one whole state of that kind, of a known version and within bounds.
pub fn decode<S: Stored>(bytes: &[u8]) -> Result<S, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let state = read_state(&mut reader)?;
    reader.finish()?;
    Ok(state)
}

/// The record in `bytes`.
///
/// Errors: as [`decode`].
pub fn decode_record<S: Stored>(bytes: &[u8]) -> Result<Record<S>, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let expiry = match reader.byte()? {
        EXPIRY_UNSTATED => RecordedExpiry::Unstated,
        EXPIRY_NONE => RecordedExpiry::None,
        EXPIRY_AT => RecordedExpiry::At(UnixMillis::saturating(u128::from(reader.bounded()?))),
        _ => return Err(DecodeError::NotCanonical),
    };
    let state = read_state(&mut reader)?;
    reader.finish()?;
    Ok(Record { expiry, state })
}

fn read_state<S: Stored>(reader: &mut Reader<'_>) -> Result<S, DecodeError> {
    match (reader.byte()?, reader.byte()?) {
        (VERSION, kind) => S::read(kind, reader),
        (version, _) => Err(DecodeError::Version(version)),
    }
}
