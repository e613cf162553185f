//! The fraction that a printed number stands for, found with big rationals and a search that is no continued fraction
//! of the number but a walk over the interval around it.

use num_bigint::BigInt;
use num_rational::BigRational;

use super::model::{fraction, whole};

/// `digits` / 10^`decimals`, as it is written.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    pub digits: u128,
    pub decimals: u32,
}

impl Written {
    /// Zeros behind the last decimal say nothing.
    pub fn shortest(mut self) -> Self {
        while self.decimals > 0 && self.digits.is_multiple_of(10) {
            self = Self { digits: self.digits / 10, decimals: self.decimals - 1 };
        }
        self
    }

    pub fn value(self) -> BigRational {
        fraction(self.digits, BigInt::from(10).pow(self.decimals))
    }

    /// Half a unit of the last digit or 2^-52 of the value, whichever is wider.
    pub fn tolerance(self) -> BigRational {
        let half_unit = fraction(1, BigInt::from(2) * BigInt::from(10).pow(self.decimals));
        half_unit.max(self.value() / whole(1_u64 << 52))
    }

    /// The simplest fraction within the tolerance.
    pub fn meant(self) -> BigRational {
        let (low, high) = (self.value() - self.tolerance(), self.value() + self.tolerance());
        let simplest = simplest_between(&low, &high);
        // Where it is cheap, the definition itself: no smaller denominator has a fraction in the interval.
        if *simplest.denom() <= BigInt::from(200) {
            let mut denominator = BigInt::from(1);
            while denominator < *simplest.denom() {
                assert!((&low * &denominator).ceil() > &high * &denominator, "{simplest} is not the simplest");
                denominator += 1;
            }
        }
        simplest
    }

    /// With a point, and as many zeros behind it as it takes.
    pub fn plain(self) -> String {
        let digits = format!("{:0>width$}", self.digits, width = self.decimals as usize + 1);
        match digits.split_at(digits.len() - self.decimals as usize) {
            (whole, "") => whole.to_owned(),
            (whole, decimals) => format!("{whole}.{decimals}"),
        }
    }
}

/// The fraction of the lowest denominator (and of those the lowest) from `low` to `high`, `low` being above 0. It is
/// where the Stern-Brocot tree's way down to `low` and to `high` part; all steps in one direction are taken at once.
pub fn simplest_between(low: &BigRational, high: &BigRational) -> BigRational {
    let up = low.ceil();
    if up <= *high {
        return up;
    }
    let down = low.floor();
    &down + simplest_between(&(high - &down).recip(), &(low - &down).recip()).recip()
}

/// The fraction closest to `value` (above 0) of those with a denominator up to `bound`: the way down the Stern-Brocot
/// tree, until a step would pass the bound.
pub fn closest_below(value: &BigRational, bound: &BigInt) -> BigRational {
    let (mut low, mut high) = ((BigInt::from(0), BigInt::from(1)), (BigInt::from(1), BigInt::from(0)));
    loop {
        // As many steps towards one side as keep the fraction on that side of the value and below the bound.
        let below = steps(&low, &high, value, bound);
        low = (&low.0 + &below * &high.0, &low.1 + &below * &high.1);
        let above = steps(&high, &low, value, bound);
        high = (&high.0 + &above * &low.0, &high.1 + &above * &low.1);
        if below == BigInt::from(0) && above == BigInt::from(0) {
            break;
        }
    }
    let low = BigRational::new(low.0, low.1);
    if high.1 == BigInt::from(0) {
        return low;
    }
    let high = BigRational::new(high.0, high.1);
    if value - &low <= &high - value { low } else { high }
}

/// How often `from` can move towards `to` without passing `value` and with a denominator up to `bound`.
fn steps(from: &(BigInt, BigInt), to: &(BigInt, BigInt), value: &BigRational, bound: &BigInt) -> BigInt {
    // How far off a fraction p/q of n/d is, as |p d - n q|: a step adds that of `to`, which has the other sign.
    let off = |(p, q): &(BigInt, BigInt)| p * value.denom() - value.numer() * q;
    let (from_off, to_off) = (off(from), off(to));
    let mut most = if to_off == BigInt::from(0) { bound.clone() } else { -from_off / to_off };
    if to.1 > BigInt::from(0) {
        most = most.min((bound - &from.1) / &to.1);
    }
    most.max(BigInt::from(0))
}
