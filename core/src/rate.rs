//! A rate: tokens per time, as a reduced fraction, so that no rational rate is ever rounded.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

use crate::decision::Wait;
use crate::duration::{DAY_US, SECOND_US, UNITS, parse_period};
use crate::fraction::{Decimal, Fraction, greatest_common_divisor, split_once};
use crate::quantity::{MAX_INTEGER, ParseError};
use crate::wide::quotient_up;

/// The longest rate that is read: a number of 37 digits, a slash, a period. Bounds what a caller can make us look at.
pub const MAX_RATE_LEN: usize = 48;

/// `tokens` per `period_us` microseconds, reduced. Zero is 0 per day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    tokens: u64,
    period_us: NonZeroU64,
}

impl Rate {
    /// A bucket that never refills: a one-off allowance. Its shares are those of a day: any would do, and of these the
    /// shares of most rates are multiples, so that a bucket which is switched to rate 0 and back keeps what it holds.
    pub const ZERO: Self = Self { tokens: 0, period_us: NonZeroU64::new(DAY_US).unwrap() };

    /// `tokens` in every `period_us` microseconds. `None` if the period is 0, or if reduced either part is above
    /// [`MAX_INTEGER`].
    #[must_use]
    pub fn new(tokens: u128, period_us: u128) -> Option<Self> {
        if tokens == 0 && period_us > 0 {
            return Some(Self::ZERO);
        }
        let divisor = NonZeroU128::new(greatest_common_divisor(tokens, period_us))?;
        let tokens = u64::try_from(tokens / divisor).ok()?;
        let period_us = NonZeroU64::new(u64::try_from(period_us / divisor).ok()?)?;
        (tokens <= MAX_INTEGER && period_us.get() <= MAX_INTEGER).then_some(Self { tokens, period_us })
    }

    /// Tokens that come in every [`period_us`](Self::period_us).
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.tokens
    }

    /// Microseconds in which [`tokens`](Self::tokens) come; also the number of shares in a token.
    #[must_use]
    pub const fn period_us(self) -> NonZeroU64 {
        self.period_us
    }

    /// Whether nothing ever comes in.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.tokens == 0
    }

    /// How long until `shares` more have come, rounded up to a microsecond. Nothing to wait for if there are none.
    #[must_use]
    pub fn wait_for(self, shares: i128) -> Wait {
        let Ok(shares @ 1..) = u128::try_from(shares) else { return Wait::NONE };
        match NonZeroU64::new(self.tokens) {
            Some(tokens) => Wait::Micros(quotient_up(shares, tokens)),
            None => Wait::Never,
        }
    }

    /// Reads a rate: `amount`, `amount/period`, where the amount is a number of tokens and the period is a number of
    /// seconds, a number with a unit (`ms`, `s`, `m`, `h`, `d`), or a unit alone. Without a period it is a second.
    ///
    /// Rounding: a number with up to nine decimals means exactly itself. An amount with more is what a client sends
    /// that has divided, and is taken for the simplest fraction within half a unit of its last digit or 2^-52 of its
    /// value, whichever is wider: `1.6666666666666667` is 5/3. An amount may have an exponent, as clients print small
    /// floats. A number that is too fine to be kept exactly (reduced, both parts of the rate fit 53 bits) is treated
    /// likewise, within 2^-40 of its value.
    ///
    /// Errors: [`ParseError::Syntax`] for anything not written so, and for more than [`MAX_RATE_LEN`] bytes;
    /// [`ParseError::Range`] for a period of 0, an amount above [`MAX_INTEGER`], and for what does not fit 53 bits.
    ///
    /// ```
    /// use rl_core::Rate;
    /// assert_eq!(Rate::parse(b"100/m"), Rate::parse(b"1.6666666666666667"));
    /// assert_eq!(Rate::parse(b"5/15m"), Ok(Rate::new(5, 900_000_000).unwrap()));
    /// assert!(Rate::parse(b"-1").is_err());
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        if text.len() > MAX_RATE_LEN {
            return Err(ParseError::Syntax);
        }
        let (amount, period) = match split_once(text, |b| b == b'/') {
            Some((amount, period)) => (amount, parse_period(period)?),
            None => (text, Fraction { numerator: SECOND_US.into(), denominator: 1 }),
        };
        let amount = Decimal::parse_float(amount)?;
        if amount.exceeds(MAX_INTEGER) {
            return Err(ParseError::Range);
        }
        let exact = amount.exact();
        if let Some(rate) = exact.and_then(|exact| per(exact, period)) {
            return Ok(rate);
        }
        if amount.is_whole() {
            return Err(ParseError::Range);
        }
        let max_denominator = u128::from(MAX_INTEGER).checked_div(period.numerator).unwrap_or(0).max(1);
        let meant = if exact.is_none() { amount.simplest(max_denominator) } else { None };
        let kept = meant.or_else(|| amount.closest(max_denominator)).ok_or(ParseError::Range)?;
        per(kept, period).ok_or(ParseError::Range)
    }
}

/// The rate as it can be typed: tokens per second if that is a whole number, else tokens per a period in the largest
/// unit in which it is one, else in milliseconds with decimals.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tokens, period_us) = (self.tokens, self.period_us.get());
        if self.is_zero() {
            return f.write_str("0");
        }
        if let Some(times) = exact_quotient(SECOND_US, period_us) {
            let per_second = u128::from(tokens).saturating_mul(u128::from(times));
            if per_second <= u128::from(MAX_INTEGER) {
                return write!(f, "{per_second}");
            }
        }
        for (unit, unit_us) in UNITS {
            match exact_quotient(period_us, unit_us) {
                Some(1) => return write!(f, "{tokens}/{unit}"),
                Some(count) => return write!(f, "{tokens}/{count}{unit}"),
                None => {}
            }
        }
        write!(f, "{tokens}/{}.{:03}ms", period_us / 1_000, period_us % 1_000)
    }
}

/// `amount` tokens in every `period`, if that is a rate within bounds.
fn per(amount: Fraction, period: Fraction) -> Option<Rate> {
    let tokens = amount.numerator.checked_mul(period.denominator)?;
    Rate::new(tokens, amount.denominator.checked_mul(period.numerator)?)
}

/// `dividend / divisor` if that is a whole number.
fn exact_quotient(dividend: u64, divisor: u64) -> Option<u64> {
    (dividend.checked_rem(divisor)? == 0).then(|| dividend.checked_div(divisor)).flatten()
}
