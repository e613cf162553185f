//! When a key may be forgotten: once its bucket is full, a missing key says the same.

use std::num::NonZeroU64;

use crate::quantity::UnixMillis;
use crate::wide::quotient_up;

const MILLISECOND_US: NonZeroU64 = NonZeroU64::new(1_000).unwrap();

/// The margin on every key's expiry, beside an eighth of the time in which it fills.
const MARGIN_MS: u128 = 1_000;

/// How much longer than needed a key may live that fills in `fill_us`, in milliseconds: a second and an eighth of that.
pub(crate) fn slack_ms(fill_us: u128) -> u64 {
    u64::try_from(MARGIN_MS.saturating_add(fill_us / 8_000)).unwrap_or(u64::MAX)
}

/// What the expiry of a key must be. A value says it of itself: [`Bucket::expiry`](crate::bucket::Bucket::expiry),
/// [`Usage::expiry`](crate::usage::Usage::expiry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// The bucket never fills, so it has no expiry of its own; one that somebody else has set stands.
    Theirs,
    /// The bucket no longer fills: the expiry from the time when it did must go, or it would refill the bucket.
    Never,
    /// The bucket will be full at `earliest`, rounded up. Anything up to `latest` will do, so that a busy key need not
    /// move its expiry with every take.
    Within {
        /// Before this the key must not go: its going would refill the bucket.
        earliest: UnixMillis,
        /// After this it must not stay: a second and an eighth of the refill time later.
        latest: UnixMillis,
    },
}

impl Expiry {
    /// The expiry of a key that may go at `full_us`, in microseconds since the Unix epoch, and by `slack_ms` later.
    #[must_use]
    pub(crate) fn within(full_us: u128, slack_ms: u64) -> Self {
        // Rounded up: a key that goes a fraction of a millisecond early has just lost what its last take charged.
        let full_ms = quotient_up(full_us, MILLISECOND_US);
        Self::Within {
            earliest: UnixMillis::saturating(full_ms),
            latest: UnixMillis::saturating(full_ms.saturating_add(slack_ms.into())),
        }
    }

    /// What the expiry of a key that expires at `current` is to become. As it is, where that will do.
    #[must_use]
    pub fn applied_to(&self, current: Option<UnixMillis>) -> Option<UnixMillis> {
        match self {
            _ if self.accepts(current) => current,
            Self::Within { latest, .. } => Some(*latest),
            Self::Theirs | Self::Never => None,
        }
    }

    /// Whether a key that expires at `current` (`None`: never) may be left as it is.
    #[must_use]
    pub fn accepts(&self, current: Option<UnixMillis>) -> bool {
        match (self, current) {
            (Self::Theirs, _) | (Self::Never, None) => true,
            (Self::Never, Some(_)) | (Self::Within { .. }, None) => false,
            (Self::Within { earliest, latest }, Some(current)) => *earliest <= current && current <= *latest,
        }
    }
}
