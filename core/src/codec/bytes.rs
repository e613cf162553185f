//! Bytes, and the numbers in them.

use super::DecodeError;
use crate::quantity::{MAX_INTEGER, Tokens, UnixMicros};
use crate::usage::WindowLimit;
use crate::{Micros, Rate};

/// More than the longest record of a state of fixed size: 10 + 2 + 6 * 8.
const CAPACITY: usize = 64;

/// Where bytes are put.
pub trait Sink {
    /// One byte.
    fn put_byte(&mut self, byte: u8);
    /// A number.
    fn put_number(&mut self, number: u128);
    /// A number.
    fn put_short(&mut self, number: u64);
}

/// Bytes of known length on the stack.
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Encoded {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.bytes.get_mut(self.len..)?.first_chunk_mut()
    }
}

impl AsRef<[u8]> for Encoded {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

const fn length(bits: u32, leading_zeros: u32) -> usize {
    bits.saturating_sub(leading_zeros).div_ceil(8) as usize
}

impl Sink for Encoded {
    fn put_byte(&mut self, byte: u8) {
        if let Some([place]) = self.room() {
            *place = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    // All bytes of a number are laid down, and the next number overwrites those that are not its own: a copy of fixed
    // length is one instruction, and there is room for it behind the longest record.

    fn put_number(&mut self, number: u128) {
        let len = length(u128::BITS, number.leading_zeros());
        if let Some([length, place @ ..]) = self.room::<17>() {
            (*length, *place) = (len as u8, number.to_le_bytes());
            self.len = self.len.saturating_add(len).saturating_add(1);
        }
    }

    fn put_short(&mut self, number: u64) {
        let len = length(u64::BITS, number.leading_zeros());
        if let Some([length, place @ ..]) = self.room::<9>() {
            (*length, *place) = (len as u8, number.to_le_bytes());
            self.len = self.len.saturating_add(len).saturating_add(1);
        }
    }
}

impl Sink for Vec<u8> {
    fn put_byte(&mut self, byte: u8) {
        self.push(byte);
    }

    fn put_number(&mut self, number: u128) {
        let len = length(u128::BITS, number.leading_zeros());
        self.push(len as u8);
        self.extend(number.to_le_bytes().iter().take(len));
    }

    fn put_short(&mut self, number: u64) {
        self.put_number(number.into());
    }
}

/// A cursor that hands out what it has checked.
pub struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl Reader<'_> {
    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (byte, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u128, DecodeError> {
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
    pub(super) fn bounded(&mut self) -> Result<u64, DecodeError> {
        u64::try_from(self.number()?).ok().filter(|number| *number <= MAX_INTEGER).ok_or(DecodeError::Range)
    }

    pub(super) fn tokens(&mut self) -> Result<Tokens, DecodeError> {
        Tokens::new(self.bounded()?).ok_or(DecodeError::Range)
    }

    pub(super) fn micros(&mut self) -> Result<Micros, DecodeError> {
        Micros::new(self.bounded()?).ok_or(DecodeError::Range)
    }

    pub(super) fn time(&mut self) -> Result<UnixMicros, DecodeError> {
        Ok(UnixMicros::saturating(self.bounded()?))
    }

    /// A rate, which is reduced.
    pub(super) fn rate(&mut self) -> Result<Rate, DecodeError> {
        let (tokens, period_us) = (self.bounded()?, self.bounded()?);
        let rate = Rate::new(u128::from(tokens), u128::from(period_us)).ok_or(DecodeError::Range)?;
        let as_written = (rate.tokens(), rate.period_us().get()) == (tokens, period_us);
        as_written.then_some(rate).ok_or(DecodeError::NotCanonical)
    }

    pub(super) fn window_limit(&mut self) -> Result<WindowLimit, DecodeError> {
        let limit = self.tokens()?;
        WindowLimit::new(limit, self.micros()?).ok_or(DecodeError::Range)
    }

    pub(super) fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::NotCanonical) }
    }
}
