//! What each kind of state is made of, in version 1.

use std::num::NonZeroU64;

use super::bytes::{Reader, Sink};
use super::{DecodeError, State};
use crate::log::{Charge, Step};
use crate::period::Span;
use crate::quantity::{Micros, Tokens};
use crate::{Bucket, Counter, Held, Limit, Log, Period, Quota, QuotaLimit, WindowLimit};

const BUCKET: u8 = 1;
const LOG: u8 = 2;
const STEP: u8 = 3;
const COUNTER: u8 = 4;
const QUOTA: u8 = 5;

const SPAN_FIXED: u8 = 0;
const SPAN_WEEK: u8 = 1;
const SPAN_MONTH: u8 = 2;
const SPAN_YEAR: u8 = 3;

/// A state, as bytes.
pub trait Fields: Sized {
    /// Its kind.
    fn kind(&self) -> u8;
    /// Puts what follows the kind.
    fn put(&self, out: &mut impl Sink);
    /// Reads what follows the kind.
    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Refuses another kind than `expected`.
fn expect(expected: u8, kind: u8) -> Result<(), DecodeError> {
    if kind == expected { Ok(()) } else { Err(DecodeError::Kind(kind)) }
}

fn put_window_limit(limit: &WindowLimit, out: &mut impl Sink) {
    out.put_short(limit.limit().get());
    out.put_short(limit.window_us().get());
}

impl Fields for Held {
    fn kind(&self) -> u8 {
        BUCKET
    }

    fn put(&self, out: &mut impl Sink) {
        out.put_number(signed_to_number(self.bucket.level));
        out.put_short(self.bucket.last_change.get());
        out.put_short(self.limit.capacity().get());
        out.put_short(self.limit.rate().tokens());
        out.put_short(self.limit.rate().period_us().get());
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        expect(BUCKET, kind)?;
        let level = number_to_signed(reader.number()?);
        let last_change = reader.time()?;
        let capacity = reader.tokens()?;
        let limit = Limit::new(capacity, reader.rate()?);
        if level > limit.full() || level < limit.most_owed() {
            return Err(DecodeError::Range);
        }
        Ok(Self { bucket: Bucket { level, last_change }, limit })
    }
}

impl Fields for Log {
    fn kind(&self) -> u8 {
        LOG
    }

    fn put(&self, out: &mut impl Sink) {
        put_window_limit(&crate::Usage::limit(self), out);
        out.put_short(crate::Usage::last_change(self).get());
        out.put_short(self.len() as u64);
        let mut before = None;
        for charge in self.charges() {
            let age = before.map_or(charge.age_us, |before: u64| before.saturating_sub(charge.age_us));
            out.put_short(age);
            out.put_short(charge.cost.get());
            before = Some(charge.age_us);
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        expect(LOG, kind)?;
        let limit = keepable(reader.window_limit()?)?;
        let mut log = Self::new(limit, reader.time()?);
        let mut before = None;
        for _ in 0..reader.bounded()? {
            let age = reader.bounded()?;
            let age_us = before.map_or(Some(age), |before: u64| before.checked_sub(age)).ok_or(DecodeError::Range)?;
            log.remember(Charge { age_us, cost: reader.tokens()? }).ok_or(DecodeError::Range)?;
            before = Some(age_us);
        }
        Ok(log)
    }
}

fn keepable(limit: WindowLimit) -> Result<WindowLimit, DecodeError> {
    if Log::can_keep(&limit) { Ok(limit) } else { Err(DecodeError::Range) }
}

impl Fields for Step {
    fn kind(&self) -> u8 {
        STEP
    }

    fn put(&self, out: &mut impl Sink) {
        put_window_limit(&self.limit, out);
        out.put_short(self.at.get());
        out.put_short(self.given.get());
        out.put_short(self.charged.get());
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        expect(STEP, kind)?;
        let limit = keepable(reader.window_limit()?)?;
        let step = Self { limit, at: reader.time()?, given: reader.tokens()?, charged: reader.tokens()? };
        if step.charged > limit.limit() { Err(DecodeError::Range) } else { Ok(step) }
    }
}

impl Fields for Counter {
    fn kind(&self) -> u8 {
        COUNTER
    }

    fn put(&self, out: &mut impl Sink) {
        put_window_limit(&self.limit, out);
        out.put_short(self.previous.get());
        out.put_short(self.current.get());
        out.put_short(self.position_us);
        out.put_short(self.last_change.get());
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        expect(COUNTER, kind)?;
        let limit = reader.window_limit()?;
        let (previous, current) = (reader.tokens()?, reader.tokens()?);
        let position_us = reader.bounded()?;
        if position_us >= limit.window_us().get() {
            return Err(DecodeError::Range);
        }
        Ok(Self { limit, previous, current, position_us, last_change: reader.time()? })
    }
}

impl Fields for Quota {
    fn kind(&self) -> u8 {
        QUOTA
    }

    fn put(&self, out: &mut impl Sink) {
        out.put_short(self.limit.limit.get());
        match self.limit.period.span() {
            Span::Fixed(span_us) => {
                out.put_byte(SPAN_FIXED);
                out.put_short(span_us.get());
            }
            Span::Week => out.put_byte(SPAN_WEEK),
            Span::Month => out.put_byte(SPAN_MONTH),
            Span::Year => out.put_byte(SPAN_YEAR),
        }
        out.put_number(signed_to_number(self.limit.period.offset_minutes().into()));
        out.put_short(self.used.get());
        out.put_short(self.last_change.get());
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        expect(QUOTA, kind)?;
        let limit = reader.tokens()?;
        let period = read_period(reader)?;
        Ok(Self { limit: QuotaLimit { limit, period }, used: reader.tokens()?, last_change: reader.time()? })
    }
}

fn read_period(reader: &mut Reader<'_>) -> Result<Period, DecodeError> {
    let span = match reader.byte()? {
        SPAN_FIXED => Span::Fixed(NonZeroU64::new(reader.micros().map(Micros::get)?).ok_or(DecodeError::Range)?),
        SPAN_WEEK => Span::Week,
        SPAN_MONTH => Span::Month,
        SPAN_YEAR => Span::Year,
        _ => return Err(DecodeError::Range),
    };
    let offset = i16::try_from(number_to_signed(reader.number()?)).map_err(|_| DecodeError::Range)?;
    Period::new(span, offset).ok_or(DecodeError::Range)
}

impl Fields for State {
    fn kind(&self) -> u8 {
        match self {
            Self::Bucket(held) => held.kind(),
            Self::Log(log) => log.kind(),
            Self::Step(step) => step.kind(),
            Self::Counter(counter) => counter.kind(),
            Self::Quota(quota) => quota.kind(),
        }
    }

    fn put(&self, out: &mut impl Sink) {
        match self {
            Self::Bucket(held) => held.put(out),
            Self::Log(log) => log.put(out),
            Self::Step(step) => step.put(out),
            Self::Counter(counter) => counter.put(out),
            Self::Quota(quota) => quota.put(out),
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match kind {
            BUCKET => Held::read(kind, reader).map(Self::Bucket),
            LOG => Log::read(kind, reader).map(Self::Log),
            STEP => Step::read(kind, reader).map(Self::Step),
            COUNTER => Counter::read(kind, reader).map(Self::Counter),
            QUOTA => Quota::read(kind, reader).map(Self::Quota),
            _ => Err(DecodeError::Kind(kind)),
        }
    }
}

/// 0, -1, 1, -2 ... as 0, 1, 2, 3 ...: short whatever the sign.
const fn signed_to_number(signed: i128) -> u128 {
    (signed.wrapping_shl(1) ^ signed.wrapping_shr(127)) as u128
}

const fn number_to_signed(number: u128) -> i128 {
    (number >> 1) as i128 ^ ((number & 1) as i128).wrapping_neg()
}

const _: () = assert!(Log::LARGEST_LIMIT <= crate::MAX_INTEGER && Tokens::new(Log::LARGEST_LIMIT).is_some());
