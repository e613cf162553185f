//! Decimal numbers as exact fractions, and the fraction that a printed float came from.

use crate::quantity::ParseError;

/// Up to this many decimals a number means exactly itself.
const EXACT_DECIMALS: u32 = 9;
/// As many digits as 128 bits hold. A double prints 17.
const DIGITS_BELOW: u128 = 10_u128.pow(37);
/// The products of [`Decimal::simplest`] fit 128 bits up to this many digits; what is cut off is less than a
/// hundredth of the tolerance.
const SIMPLEST_DIGITS_BELOW: u128 = 10_u128.pow(19);
/// The most decimals whose power of ten fits 128 bits: 19 digits behind so many places are far below the slowest rate.
const MAX_DECIMALS: u32 = 38;
/// How far the tolerance of a float reaches: 2^-52 of its value, the spacing of doubles.
const TOLERANCE_BITS: u32 = 52;
/// Where the simplest fraction has too large a denominator, one that is at most 2^-40 off stands in for it.
const STAND_IN_BITS: u32 = 40;

/// `numerator / denominator`; the denominator is at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) numerator: u128,
    pub(crate) denominator: u128,
}

impl Fraction {
    /// The same in lowest terms.
    pub(crate) fn reduced(self) -> Self {
        let divisor = greatest_common_divisor(self.numerator, self.denominator);
        let divided = |number: u128| number.checked_div(divisor).unwrap_or(number);
        Self { numerator: divided(self.numerator), denominator: divided(self.denominator) }
    }
}

/// Euclid's algorithm; 0 only for (0, 0).
pub(crate) fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// A number as it was typed: `digits` / 10^`decimals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Reads `123` and `0.5`: digits, on both sides of a point if there is one. No sign, no exponent, no superfluous
    /// zero in front.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let (whole, fraction) = split_once(text, |b| b == b'.').unwrap_or((text, b"0"));
        if matches!(whole, [] | [b'0', _, ..]) || fraction.is_empty() {
            return Err(ParseError::Syntax);
        }
        let mut digits = 0;
        for byte in whole {
            digits = append(digits, *byte)?;
        }
        if digits >= DIGITS_BELOW {
            return Err(ParseError::Range);
        }
        let (mut decimals, mut is_cut) = (0_u32, false);
        for byte in fraction {
            let longer = append(digits, *byte)?;
            if longer < DIGITS_BELOW {
                (digits, decimals) = (longer, decimals.saturating_add(1));
            } else {
                is_cut |= *byte != b'0';
            }
        }
        // Of what was cut off a trace must remain, or the number would pass for one with fewer decimals: a last digit that is
        // not 0, so that it is not taken off with the zeros before it.
        let trace = u128::from(is_cut && digits.is_multiple_of(10));
        Ok(Self { digits: digits.saturating_add(trace), decimals }.shortest())
    }

    /// Reads what [`parse`](Self::parse) reads, and after it an exponent as clients print it: `5.787e-05`, `1.0E+15`.
    pub(crate) fn parse_float(text: &[u8]) -> Result<Self, ParseError> {
        let Some((mantissa, exponent)) = split_once(text, |b| b == b'e' || b == b'E') else {
            return Self::parse(text);
        };
        let number = Self::parse(mantissa)?;
        match exponent {
            [b'-', digits @ ..] => Ok(number.divided_by_ten_to(exponent_of(digits)?)),
            [b'+', digits @ ..] | digits => number.times_ten_to(exponent_of(digits)?),
        }
    }

    /// Whether the number is above `bound`.
    pub(crate) fn exceeds(self, bound: u64) -> bool {
        let scaled = 10_u128.checked_pow(self.decimals).and_then(|power| power.checked_mul(u128::from(bound)));
        scaled.is_some_and(|scaled| self.digits > scaled)
    }

    /// Whether the number is whole.
    pub(crate) fn is_whole(self) -> bool {
        self.decimals == 0
    }

    /// The number to the letter, if it has few enough decimals to be meant so.
    pub(crate) fn exact(self) -> Option<Fraction> {
        (self.decimals <= EXACT_DECIMALS)
            .then(|| Fraction { numerator: self.digits, denominator: 10_u128.pow(self.decimals) })
    }

    /// The simplest fraction within half a unit of the last digit or 2^-52 of the value, whichever is wider: what a
    /// client meant that divided and printed the float. `None` if its denominator is above `max_denominator`.
    ///
    /// Every fraction on the way from 0 to x in the Stern-Brocot tree is simpler than all that follow, and the simplest
    /// one of an interval around x lies on that way; so the first one met inside the tolerance is it. The way is x's
    /// continued fraction: between two convergents p/q and p'/q' lie (p + m p')/(q + m q') for m = 1 .. a. With x = D/T
    /// the error |pT - Dq| is what Euclid's algorithm has left over, hence everything here is exact.
    ///
    /// Source: R. Graham, D. Knuth, O. Patashnik, Concrete Mathematics, section 4.5.
    pub(crate) fn simplest(self, max_denominator: u128) -> Option<Fraction> {
        let number = self.cut();
        let tolerance = Tolerance { width: number.digits.max(1 << (TOLERANCE_BITS - 1)), bits: TOLERANCE_BITS };
        let (mut before, mut last) = number.root()?;
        while let Some(term) = before.error.checked_div(last.error) {
            let affordable = term.min(last.affordable(before, max_denominator).unwrap_or(term));
            let closest = before.advanced(last, affordable);
            if affordable > 0 && tolerance.holds(closest) {
                return Some(before.advanced(last, tolerance.first(before, last, affordable)).fraction());
            }
            if affordable < term {
                return None;
            }
            (before, last) = (last, closest);
        }
        // Euclid's algorithm ended: `last` is the number itself. Not reached, for that lies within the tolerance.
        Some(last.fraction())
    }

    /// The closest fraction with at most `max_denominator`, if it is within 2^-40 of the value.
    pub(crate) fn closest(self, max_denominator: u128) -> Option<Fraction> {
        let number = self.cut();
        let (mut before, mut last) = number.root()?;
        while let Some(term) = before.error.checked_div(last.error) {
            let affordable = term.min(last.affordable(before, max_denominator).unwrap_or(term));
            if affordable < term {
                // About half of the way it becomes closer than where the way started from.
                let advanced = before.advanced(last, affordable);
                last = if advanced.is_closer_than(last) { advanced } else { last };
                break;
            }
            (before, last) = (last, before.advanced(last, term));
        }
        Tolerance { width: number.digits, bits: STAND_IN_BITS }.holds(last).then(|| last.fraction())
    }

    /// 0/1 and 1/0, between which every number lies.
    fn root(self) -> Option<(Step, Step)> {
        let power = (self.decimals <= MAX_DECIMALS).then(|| 10_u128.pow(self.decimals))?;
        let zero = Step { numerator: 0, denominator: 1, error: self.digits };
        Some((zero, Step { numerator: 1, denominator: 0, error: power }))
    }

    fn divided_by_ten_to(self, exponent: u32) -> Self {
        Self { digits: self.digits, decimals: self.decimals.saturating_add(exponent) }.shortest()
    }

    fn times_ten_to(self, exponent: u32) -> Result<Self, ParseError> {
        let decimals = self.decimals.saturating_sub(exponent);
        let zeros = exponent.saturating_sub(self.decimals);
        let digits = match 10_u128.checked_pow(zeros).and_then(|power| self.digits.checked_mul(power)) {
            Some(digits) => digits,
            None if self.digits == 0 => 0,
            None => return Err(ParseError::Range),
        };
        Ok(Self { digits, decimals }.shortest())
    }

    /// Without the zeros at the end of its decimals, which say nothing.
    fn shortest(mut self) -> Self {
        while self.decimals > 0 && self.digits.is_multiple_of(10) && self.digits > 0 {
            self = self.without_last_digit();
        }
        if self.digits == 0 { Self { digits: 0, decimals: 0 } } else { self }
    }

    /// With no more digits than [`simplest`](Self::simplest) can multiply.
    fn cut(mut self) -> Self {
        while self.digits >= SIMPLEST_DIGITS_BELOW && self.decimals > 0 {
            self = self.without_last_digit();
        }
        self
    }

    fn without_last_digit(self) -> Self {
        Self { digits: self.digits / 10, decimals: self.decimals.saturating_sub(1) }
    }
}

/// A fraction on the way to a number D/T, and how far off it still is: |numerator T - D denominator|.
#[derive(Debug, Clone, Copy)]
struct Step {
    numerator: u128,
    denominator: u128,
    error: u128,
}

impl Step {
    /// The fraction `times` steps from here towards `other`, which lies on the number's other side.
    fn advanced(self, other: Self, times: u128) -> Self {
        Self {
            numerator: self.numerator.saturating_add(other.numerator.saturating_mul(times)),
            denominator: self.denominator.saturating_add(other.denominator.saturating_mul(times)),
            error: self.error.saturating_sub(other.error.saturating_mul(times)),
        }
    }

    /// Whether the number is closer to this than to `other`. The products fit: an error is about T over a denominator.
    fn is_closer_than(self, other: Self) -> bool {
        self.error.saturating_mul(other.denominator) < other.error.saturating_mul(self.denominator)
    }

    /// How many steps from `before` towards here keep the denominator at most `most`; any number towards 1/0.
    fn affordable(self, before: Self, most: u128) -> Option<u128> {
        most.saturating_sub(before.denominator).checked_div(self.denominator)
    }

    fn fraction(self) -> Fraction {
        Fraction { numerator: self.numerator, denominator: self.denominator.max(1) }
    }
}

/// How far off a fraction of D/T may be: `width` / 2^`bits` / T.
#[derive(Debug, Clone, Copy)]
struct Tolerance {
    width: u128,
    bits: u32,
}

impl Tolerance {
    fn holds(self, step: Step) -> bool {
        step.error <= self.width.saturating_mul(step.denominator).checked_shr(self.bits).unwrap_or(0)
    }

    /// The fewest steps from `before` towards `last` that get inside the tolerance, given that `enough` do. The error
    /// falls and the tolerance grows with each, so halving finds it.
    fn first(self, before: Step, last: Step, enough: u128) -> u128 {
        let (mut too_few, mut enough) = (0, enough);
        while enough.abs_diff(too_few) > 1 {
            let middle = u128::midpoint(too_few, enough);
            if self.holds(before.advanced(last, middle)) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        enough
    }
}

/// `digits` with one more behind; saturates, which the caller's bounds refuse.
fn append(digits: u128, byte: u8) -> Result<u128, ParseError> {
    let digit = byte.wrapping_sub(b'0');
    if digit > 9 {
        return Err(ParseError::Syntax);
    }
    Ok(digits.saturating_mul(10).saturating_add(u128::from(digit)))
}

fn exponent_of(text: &[u8]) -> Result<u32, ParseError> {
    if text.is_empty() || text.len() > 3 {
        return Err(ParseError::Syntax);
    }
    let exponent = text.iter().try_fold(0, |number, byte| append(number, *byte))?;
    u32::try_from(exponent).map_err(|_| ParseError::Range)
}

/// What stands before and behind the first byte that `is_separator`.
pub(crate) fn split_once(text: &[u8], is_separator: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| is_separator(*byte))?;
    let (before, from) = text.split_at_checked(at)?;
    Some((before, from.split_first()?.1))
}
