//! Numbers, limits and states out of the fuzzer's bytes, often where things break.

use std::num::NonZeroU64;

use arbitrary::{Result, Unstructured};
use rl_core::log::Charge;
use rl_core::period::Span;
use rl_core::{
    Bucket, Counter, Held, Limit, Log, MAX_INTEGER, Micros, Period, Quota, QuotaLimit, Rate, Tokens, UnixMicros,
    WindowLimit,
};

/// At most `max`: small, near the maximum, near a power of two, or any.
pub fn integer(bytes: &mut Unstructured, max: u64) -> Result<u64> {
    let number = match bytes.int_in_range(0..=5_u8)? {
        0 | 1 => bytes.int_in_range(0..=20)?,
        2 => max.saturating_sub(bytes.int_in_range(0..=3)?),
        3 => (1_u64 << bytes.int_in_range(0..=53_u8)?).saturating_add_signed(bytes.int_in_range(-1..=1)?),
        4 => bytes.arbitrary::<u32>()?.into(),
        _ => bytes.arbitrary::<u64>()?,
    };
    Ok(if number > max { number % max.saturating_add(1).max(1) } else { number })
}

pub fn tokens(bytes: &mut Unstructured, max: u64) -> Result<Tokens> {
    Ok(Tokens::new(integer(bytes, max.min(MAX_INTEGER))?).unwrap_or(Tokens::ZERO))
}

pub fn moment(bytes: &mut Unstructured) -> Result<UnixMicros> {
    const IN_2025: u64 = 1_750_000_000_000_000;
    let moment = if bytes.arbitrary()? { IN_2025 } else { integer(bytes, MAX_INTEGER)? };
    Ok(UnixMicros::saturating(moment))
}

/// The limits of a kind of content, and states to begin with.
pub trait Arbitrary: crate::content::Content {
    fn limit(bytes: &mut Unstructured) -> Result<Self::Limit>;
    fn state(bytes: &mut Unstructured) -> Result<Self>;
}

impl Arbitrary for Held {
    fn limit(bytes: &mut Unstructured) -> Result<Limit> {
        let capacity = tokens(bytes, MAX_INTEGER)?;
        let (amount, period_us) = (integer(bytes, MAX_INTEGER)?, integer(bytes, MAX_INTEGER)?.max(1));
        Ok(Limit::new(capacity, Rate::new(amount.into(), period_us.into()).unwrap_or(Rate::ZERO)))
    }

    fn state(bytes: &mut Unstructured) -> Result<Self> {
        let limit = <Self as Arbitrary>::limit(bytes)?;
        let level = match bytes.int_in_range(0..=4_u8)? {
            0 => limit.full(),
            1 => i128::from(integer(bytes, MAX_INTEGER)?),
            2 => -i128::from(integer(bytes, MAX_INTEGER)?),
            3 => limit.most_owed(),
            _ => limit.shares(tokens(bytes, MAX_INTEGER)?) - i128::from(integer(bytes, MAX_INTEGER)?),
        };
        let level = level.clamp(limit.most_owed(), limit.full());
        Ok(Self { bucket: Bucket { level, last_change: moment(bytes)? }, limit })
    }
}

fn window_limit(bytes: &mut Unstructured, most: u64, longest: Micros) -> Result<WindowLimit> {
    let (limit, window) = (tokens(bytes, most)?, integer(bytes, longest.get())?.max(1));
    Ok(Micros::new(window).and_then(|window| WindowLimit::new(limit, window)).expect("a window within bounds"))
}

impl Arbitrary for Log {
    fn limit(bytes: &mut Unstructured) -> Result<WindowLimit> {
        window_limit(bytes, Self::LARGEST_LIMIT, Self::LONGEST_WINDOW)
    }

    fn state(bytes: &mut Unstructured) -> Result<Self> {
        let mut log = Self::new(<Self as Arbitrary>::limit(bytes)?, moment(bytes)?);
        for _ in 0..bytes.int_in_range(0..=40_u8)? {
            let charge = Charge {
                age_us: integer(bytes, Self::LONGEST_WINDOW.get())?,
                cost: tokens(bytes, Self::LARGEST_LIMIT)?,
            };
            // One that does not fit is refused, which is right, too.
            let _ = log.remember(charge);
        }
        Ok(log)
    }
}

impl Arbitrary for Counter {
    fn limit(bytes: &mut Unstructured) -> Result<WindowLimit> {
        window_limit(bytes, MAX_INTEGER, Micros::MAX)
    }

    fn state(bytes: &mut Unstructured) -> Result<Self> {
        let limit = <Self as Arbitrary>::limit(bytes)?;
        Ok(Self {
            limit,
            previous: tokens(bytes, MAX_INTEGER)?,
            current: tokens(bytes, MAX_INTEGER)?,
            position_us: integer(bytes, MAX_INTEGER)? % limit.window_us(),
            last_change: moment(bytes)?,
        })
    }
}

impl Arbitrary for Quota {
    fn limit(bytes: &mut Unstructured) -> Result<QuotaLimit> {
        let limit = tokens(bytes, MAX_INTEGER)?;
        let span = match bytes.int_in_range(0..=3_u8)? {
            0 => Span::Week,
            1 => Span::Month,
            2 => Span::Year,
            _ => Span::Fixed(NonZeroU64::new(integer(bytes, MAX_INTEGER)?).unwrap_or(NonZeroU64::MIN)),
        };
        let most = Period::MOST_OFFSET_MINUTES;
        let period = Period::new(span, bytes.int_in_range(-most..=most)?).expect("a period within bounds");
        Ok(QuotaLimit { limit, period })
    }

    fn state(bytes: &mut Unstructured) -> Result<Self> {
        let limit = <Self as Arbitrary>::limit(bytes)?;
        Ok(Self { limit, used: tokens(bytes, MAX_INTEGER)?, last_change: moment(bytes)? })
    }
}
