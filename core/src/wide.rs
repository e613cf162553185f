//! Products and quotients that need more than 64 bits, cheap where 64 are enough: a decision is made of little else.

use std::num::{NonZeroU64, NonZeroU128};

/// `a * b`. Exact while both are at most [`MAX_INTEGER`](crate::MAX_INTEGER), or one is and the other fits 64 bits.
pub(crate) const fn product(a: u64, b: u64) -> i128 {
    (a as i128).wrapping_mul(b as i128)
}

/// `dividend / divisor`, rounded down.
pub(crate) fn quotient(dividend: u128, divisor: NonZeroU64) -> u128 {
    match u64::try_from(dividend) {
        Ok(dividend) => u128::from(dividend / divisor),
        Err(_) => dividend / NonZeroU128::from(divisor),
    }
}

/// `dividend / divisor`, rounded up.
pub(crate) fn quotient_up(dividend: u128, divisor: NonZeroU64) -> u128 {
    match u64::try_from(dividend) {
        Ok(dividend) => u128::from(dividend.div_ceil(divisor.get())),
        Err(_) => dividend.div_ceil(u128::from(divisor.get())),
    }
}
