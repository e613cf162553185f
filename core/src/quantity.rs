//! The units that a decision is made of, each bounded by [`MAX_INTEGER`].

use std::fmt;

/// The largest number of tokens, and of microseconds in a rate's period: 2^53 - 1.
///
/// It is the largest integer that every client can hold exactly, those included that know only doubles (JavaScript,
/// Lua). Products of two such numbers fit 106 bits, which leaves 128-bit arithmetic room to spare.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why an argument is not a number of the kind asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// It is not written as such a number.
    Syntax,
    /// It is written well, and is too large, or too small to be told from zero.
    Range,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not written as a number",
            Self::Range => "out of range",
        })
    }
}

impl std::error::Error for ParseError {}

/// A number of whole tokens, from 0 to [`MAX_INTEGER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);
    /// One token, what a call costs that does not say.
    pub const ONE: Self = Self(1);

    /// `count` tokens; `None` above [`MAX_INTEGER`].
    #[must_use]
    pub const fn new(count: u64) -> Option<Self> {
        if count <= MAX_INTEGER { Some(Self(count)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// As many and `more`, held at [`MAX_INTEGER`].
    pub(crate) const fn plus(self, more: Self) -> Self {
        match Self::new(self.0.saturating_add(more.0)) {
            Some(sum) => sum,
            None => Self(MAX_INTEGER),
        }
    }

    /// As many without `less`, held at 0.
    pub(crate) const fn minus(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }

    /// Reads decimal digits, as the server reads an integer: no sign, no blank, no leading zero.
    ///
    /// Errors: [`ParseError::Syntax`] for anything but such digits, [`ParseError::Range`] above [`MAX_INTEGER`].
    ///
    /// ```
    /// use rl_core::{ParseError, Tokens};
    /// assert_eq!(Tokens::parse(b"10").map(Tokens::get), Ok(10));
    /// assert_eq!(Tokens::parse(b"1e3"), Err(ParseError::Syntax));
    /// assert_eq!(Tokens::parse(b"9007199254740992"), Err(ParseError::Range));
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        if matches!(text, [] | [b'0', _, ..]) {
            return Err(ParseError::Syntax);
        }
        let mut count: u64 = 0;
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(ParseError::Syntax);
            }
            // Saturates far above the bound, so that trailing junk is still found in a number that is too large.
            count = count.saturating_mul(10).saturating_add(u64::from(digit));
        }
        Self::new(count).ok_or(ParseError::Range)
    }
}

/// A length of time in microseconds, from 0 to [`MAX_INTEGER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Micros {
    /// The longest: [`MAX_INTEGER`] microseconds, 285 years.
    pub const MAX: Self = Self(MAX_INTEGER);

    /// `count` microseconds; `None` above [`MAX_INTEGER`].
    #[must_use]
    pub const fn new(count: u64) -> Option<Self> {
        if count <= MAX_INTEGER { Some(Self(count)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A point in time: microseconds since the Unix epoch, from 0 to [`MAX_INTEGER`] (June 2255).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(u64);

impl UnixMicros {
    /// `micros` after the epoch, held at [`MAX_INTEGER`]: a clock beyond that stands still, and admits nothing extra.
    #[must_use]
    pub const fn saturating(micros: u64) -> Self {
        if micros > MAX_INTEGER { Self(MAX_INTEGER) } else { Self(micros) }
    }

    /// The number of microseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The microseconds since `earlier`; 0 when the clock has been set back since.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A point in time in milliseconds since the Unix epoch, the unit in which the server keeps expiry; at most
/// [`MAX_INTEGER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// `millis` after the epoch, held at [`MAX_INTEGER`].
    #[must_use]
    pub const fn saturating(millis: u128) -> Self {
        if millis > MAX_INTEGER as u128 { Self(MAX_INTEGER) } else { Self(millis as u64) }
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}
