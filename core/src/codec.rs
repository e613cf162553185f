//! The bytes in which a bucket is saved, rewritten and replicated: one form for RDB, AOF, replicas, `DUMP`, `COPY` and
//! `DEBUG DIGEST`.
//!
//! ```text
//! state  = version(1) kind(1) level last_change_us capacity tokens period_us
//! record = expiry state                what RL.RESTORE takes
//! expiry = 0 | 1 | 2 millis            not stated (the caller sets it) | none | at this Unix time
//! number = length(1) little-endian bytes, `length` of them, the last one not 0
//! ```
//!
//! The level is signed, and stored as 2n for n >= 0 and -2n - 1 below. The numbers stand in their shortest form and
//! nothing may follow them, so that there is one form of every state and a digest of the bytes is a digest of the state.
//!
//! A payload is user input (`RESTORE`, `RL.RESTORE`, a damaged file): whatever the bytes, decoding returns a state that
//! keeps every bound of the types, or an error. It never panics and allocates nothing.
//!
//! Versions: 1, since 0.1.0. A later version gets a decoder of its own beside [`decode_v1`], which stays.

use std::fmt;

use crate::bucket::{Bucket, Held};
use crate::limit::Limit;
use crate::quantity::{MAX_INTEGER, Tokens, UnixMicros, UnixMillis};
use crate::rate::Rate;

/// The version that is written.
pub const VERSION: u8 = 1;
/// The kind of a token bucket's state.
const KIND_BUCKET: u8 = 1;

const EXPIRY_UNSTATED: u8 = 0;
const EXPIRY_NONE: u8 = 1;
const EXPIRY_AT: u8 = 2;

/// More than the longest record: 10 + 2 + 17 + 4 * 8.
const CAPACITY: usize = 64;

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
pub struct Record {
    /// The expiry.
    pub expiry: RecordedExpiry,
    /// The state.
    pub state: Held,
}

/// Bytes of known length on the stack.
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Encoded {
    const fn new() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn put_byte(&mut self, byte: u8) {
        if let Some([place]) = self.room() {
            *place = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    // All bytes of a number are laid down, and the next number overwrites those that are not its own: a copy of fixed
    // length is one instruction, and there is room for it behind the longest record.

    fn put_number(&mut self, number: u128) {
        let len = u128::BITS.saturating_sub(number.leading_zeros()).div_ceil(8);
        if let Some([length, place @ ..]) = self.room::<17>() {
            (*length, *place) = (len as u8, number.to_le_bytes());
            self.len = self.len.saturating_add(len as usize).saturating_add(1);
        }
    }

    fn put_short(&mut self, number: u64) {
        let len = u64::BITS.saturating_sub(number.leading_zeros()).div_ceil(8);
        if let Some([length, place @ ..]) = self.room::<9>() {
            (*length, *place) = (len as u8, number.to_le_bytes());
            self.len = self.len.saturating_add(len as usize).saturating_add(1);
        }
    }

    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.bytes.get_mut(self.len..)?.first_chunk_mut()
    }

    fn put_state(&mut self, state: &Held) {
        self.put_byte(VERSION);
        self.put_byte(KIND_BUCKET);
        self.put_number(signed_to_number(state.bucket.level));
        self.put_short(state.bucket.last_change.get());
        self.put_short(state.limit.capacity().get());
        self.put_short(state.limit.rate().tokens());
        self.put_short(state.limit.rate().period_us().get());
    }
}

/// The state alone, as an RDB file and `DUMP` hold it.
#[must_use]
pub fn encode(state: &Held) -> Encoded {
    let mut encoded = Encoded::new();
    encoded.put_state(state);
    encoded
}

/// A state with its key's expiry, as replicas and the AOF get it.
#[must_use]
pub fn encode_record(record: &Record) -> Encoded {
    let mut encoded = Encoded::new();
    match record.expiry {
        RecordedExpiry::Unstated => encoded.put_byte(EXPIRY_UNSTATED),
        RecordedExpiry::None => encoded.put_byte(EXPIRY_NONE),
        RecordedExpiry::At(at) => {
            encoded.put_byte(EXPIRY_AT);
            encoded.put_short(at.get());
        }
    }
    encoded.put_state(&record.state);
    encoded
}

/// The state in `bytes`.
///
/// Errors: whatever keeps the bytes from being one whole state of a known version, within bounds.
pub fn decode(bytes: &[u8]) -> Result<Held, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let state = reader.state()?;
    reader.finish()?;
    Ok(state)
}

/// The record in `bytes`.
///
/// Errors: as [`decode`].
pub fn decode_record(bytes: &[u8]) -> Result<Record, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let expiry = match reader.byte()? {
        EXPIRY_UNSTATED => RecordedExpiry::Unstated,
        EXPIRY_NONE => RecordedExpiry::None,
        EXPIRY_AT => RecordedExpiry::At(UnixMillis::saturating(u128::from(reader.bounded()?))),
        _ => return Err(DecodeError::NotCanonical),
    };
    let state = reader.state()?;
    reader.finish()?;
    Ok(Record { expiry, state })
}

/// A cursor that hands out what it has checked.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn state(&mut self) -> Result<Held, DecodeError> {
        match (self.byte()?, self.byte()?) {
            (VERSION, KIND_BUCKET) => decode_v1(self),
            (VERSION, kind) => Err(DecodeError::Kind(kind)),
            (version, _) => Err(DecodeError::Version(version)),
        }
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (byte, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u128, DecodeError> {
        let len = usize::from(self.byte()?);
        let mut bytes = [0; 16];
        let place = bytes.get_mut(..len).ok_or(DecodeError::Range)?;
        let (number, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        if number.last() == Some(&0) {
            return Err(DecodeError::NotCanonical);
        }
        place.copy_from_slice(number);
        self.rest = rest;
        Ok(u128::from_le_bytes(bytes))
    }

    /// A number of at most [`MAX_INTEGER`].
    fn bounded(&mut self) -> Result<u64, DecodeError> {
        u64::try_from(self.number()?).ok().filter(|number| *number <= MAX_INTEGER).ok_or(DecodeError::Range)
    }

    fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::NotCanonical) }
    }
}

fn decode_v1(reader: &mut Reader<'_>) -> Result<Held, DecodeError> {
    let level = number_to_signed(reader.number()?);
    let last_change = UnixMicros::saturating(reader.bounded()?);
    let capacity = Tokens::new(reader.bounded()?).ok_or(DecodeError::Range)?;
    let (tokens, period_us) = (reader.bounded()?, reader.bounded()?);
    let rate = Rate::new(u128::from(tokens), u128::from(period_us)).ok_or(DecodeError::Range)?;
    if (rate.tokens(), rate.period_us().get()) != (tokens, period_us) {
        return Err(DecodeError::NotCanonical);
    }
    let limit = Limit::new(capacity, rate);
    if level > limit.full() || level < limit.most_owed() {
        return Err(DecodeError::Range);
    }
    Ok(Held { bucket: Bucket { level, last_change }, limit })
}

/// 0, -1, 1, -2 ... as 0, 1, 2, 3 ...: short whatever the sign.
const fn signed_to_number(signed: i128) -> u128 {
    (signed.wrapping_shl(1) ^ signed.wrapping_shr(127)) as u128
}

const fn number_to_signed(number: u128) -> i128 {
    (number >> 1) as i128 ^ ((number & 1) as i128).wrapping_neg()
}
