//! Denials that this instance remembers, so that a client who does not wait costs Redis nothing.
//!
//! A denial is known by bucket, limit and cost: another limit (an upgraded plan) or another cost asks Redis at once. It is
//! remembered until the client may retry, but no longer than [`LONGEST`]: should somebody give tokens back or reset the bucket
//! through another instance, that is how long this one may not know.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use rl_core::{Limit, Tokens, Wait};

use crate::policy::less;
use crate::verdict::{Source, Standing};

/// The longest time for which a denial is remembered.
pub const LONGEST: Duration = Duration::from_secs(10);

/// A bucket that has denied a request.
struct Denial {
    standing: Standing,
    at: Instant,
    until: Instant,
}

/// The denials of late. Where there is no room, the one that was asked for the longest ago goes.
pub(crate) struct Denials {
    denials: Mutex<LruCache<Box<str>, Denial>>,
    began: Instant,
    /// When the last of them is over, in microseconds since it began. After that there is nothing to look up, and no request
    /// waits for another to do so.
    over_us: AtomicU64,
}

impl Denials {
    /// Room for so many.
    pub(crate) fn new(room: NonZeroUsize) -> Self {
        let mut denials = LruCache::unbounded();
        denials.resize(room);
        Self { denials: Mutex::new(denials), began: Instant::now(), over_us: AtomicU64::new(0) }
    }

    /// Remembers that the bucket of `key` has denied, if it has.
    pub(crate) fn remember(&self, key: &str, standing: &Standing, now: Instant) {
        let Some(retry_after) = standing.retry_after else { return };
        let wait = match retry_after {
            Wait::Micros(us) => Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX)).min(LONGEST),
            Wait::Never => LONGEST,
        };
        let until = now.checked_add(wait).unwrap_or(now);
        let denial = Denial { standing: standing.clone(), at: now, until };
        self.lock().put(key.into(), denial);
        // Never too early: what is left of a microsecond counts as one.
        self.over_us.fetch_max(self.since_began(until).saturating_add(1), Ordering::Relaxed);
    }

    /// The denial that `cost` under `limit` would meet with, if one is remembered: what it said, less the time since.
    pub(crate) fn recall(&self, key: &str, limit: &Limit, cost: Tokens, now: Instant) -> Option<Standing> {
        if self.since_began(now) >= self.over_us.load(Ordering::Relaxed) {
            return None;
        }
        let mut denials = self.lock();
        let denial = denials.get(key)?;
        if denial.until <= now {
            denials.pop(key);
            return None;
        }
        if denial.standing.limit != *limit || denial.standing.cost != cost {
            return None;
        }
        let since = now.saturating_duration_since(denial.at);
        let standing = &denial.standing;
        Some(Standing {
            reset_after: less(standing.reset_after, since),
            retry_after: standing.retry_after.map(|wait| less(wait, since)),
            source: Source::Memory,
            ..standing.clone()
        })
    }

    /// Forgets what is known of a bucket: it holds more than before.
    pub(crate) fn forget(&self, key: &str) {
        self.lock().pop(key);
    }

    fn since_began(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_micros()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Box<str>, Denial>> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{PolicyName, limit};

    fn denied(retry_after: Wait) -> Standing {
        Standing {
            policy: PolicyName::new("p").unwrap(),
            limit: limit(10, "1").unwrap(),
            cost: Tokens::ONE,
            remaining: 0,
            reset_after: Wait::Micros(10_000_000),
            retry_after: Some(retry_after),
            source: Source::Redis,
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn is_remembered_until_it_may_retry() {
        let (denials, key, now) = (Denials::new(NonZeroUsize::MIN), "k", Instant::now());
        let standing = denied(Wait::Micros(1_000_000));
        denials.remember(key, &standing, now);
        let recalled = denials.recall("k", &standing.limit, Tokens::ONE, now + 999 * MS).unwrap();
        assert_eq!(recalled.retry_after, Some(Wait::Micros(1000)));
        assert_eq!(recalled.reset_after, Wait::Micros(9_001_000));
        assert_eq!(recalled.source, Source::Memory);
        assert_eq!(denials.recall("k", &standing.limit, Tokens::ONE, now + 1000 * MS), None);
    }

    #[test]
    fn another_limit_or_cost_is_another_question() {
        let (denials, key, now) = (Denials::new(NonZeroUsize::MIN), "k", Instant::now());
        let standing = denied(Wait::Never);
        denials.remember(key, &standing, now);
        assert_eq!(denials.recall("k", &limit(11, "1").unwrap(), Tokens::ONE, now), None);
        assert_eq!(denials.recall("k", &standing.limit, Tokens::ZERO, now), None);
        assert!(denials.recall("k", &standing.limit, Tokens::ONE, now + LONGEST - MS).is_some());
        assert_eq!(denials.recall("k", &standing.limit, Tokens::ONE, now + LONGEST), None);
    }

    #[test]
    fn as_many_as_there_is_room_for() {
        let (denials, now) = (Denials::new(NonZeroUsize::new(10).unwrap()), Instant::now());
        let standing = denied(Wait::Micros(1_000_000));
        for n in 0..100 {
            denials.remember(&n.to_string(), &standing, now);
        }
        let known = (0..100)
            .filter(|n: &i32| denials.recall(&n.to_string(), &standing.limit, Tokens::ONE, now).is_some())
            .count();
        assert_eq!(known, 10);
        denials.forget("99");
        assert_eq!(denials.recall("99", &standing.limit, Tokens::ONE, now), None);
    }
}
