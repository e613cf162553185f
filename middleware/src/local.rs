//! Buckets of this process, decided by the arithmetic of the module. For running without Redis, and for going on while it is
//! gone.
//!
//! Their number is bounded. Where there is no room, one that is full again goes first (a missing bucket says the same), then the one
//! that nobody has asked for the longest. So a new client always has its bucket; what many of them at once can do is make an
//! idle client's bucket full before its time.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lru::LruCache;
use rl_core::{Answer, Decision, Held, Limit, Tokens, UnixMicros};

/// Parts of the map, each with a lock of its own, so that cores seldom wait for each other. A power of two.
const SHARDS: usize = 16;
const SHARD_MASK: u64 = SHARDS as u64 - 1;
/// How many of the buckets that nobody has asked for the longest are looked at for one that is full.
const CANDIDATES: usize = 8;

/// What is asked of a bucket.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'a> {
    /// Its key.
    pub key: &'a str,
    /// The limit to apply.
    pub limit: Limit,
    /// Tokens to charge.
    pub cost: Tokens,
}

type Shard = LruCache<Box<str>, Held>;

/// Buckets in memory.
pub struct Local {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    started: Instant,
    started_us: u64,
}

impl Local {
    /// Room for about `buckets`.
    #[must_use]
    pub fn new(buckets: NonZeroUsize) -> Self {
        let each = NonZeroUsize::new(buckets.get().div_ceil(SHARDS)).unwrap_or(NonZeroUsize::MIN);
        // Not with its capacity: it would be allocated at once.
        let shard = || {
            let mut shard = Shard::unbounded();
            shard.resize(each);
            Mutex::new(shard)
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            shards: std::array::from_fn(|_| shard()),
            hasher: RandomState::new(),
            started: Instant::now(),
            started_us: u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Charges every demand or none, and says how each of them was decided. All of them have to be of one `client`.
    pub fn take(&self, client: &str, demands: &[Demand<'_>]) -> Vec<Decision> {
        let now = self.now();
        let mut shard = self.shard(client);
        let answers: Vec<Answer> =
            demands.iter().map(|ask| ask.limit.take(shard.get(ask.key), now, ask.cost)).collect();
        let allowed = answers.iter().all(|answer| answer.decision.is_allowed());
        if !allowed {
            return demands.iter().zip(&answers).map(|(ask, answer)| uncharged(&mut shard, ask, answer, now)).collect();
        }
        for (ask, answer) in demands.iter().zip(&answers) {
            if let Some(bucket) = answer.change {
                put(&mut shard, ask.key, Held { bucket, limit: ask.limit }, now);
            }
        }
        answers.into_iter().map(|answer| answer.decision).collect()
    }

    /// How a take would be decided now.
    pub fn peek(&self, client: &str, ask: &Demand<'_>) -> Decision {
        ask.limit.peek(self.shard(client).peek(ask.key), self.now(), ask.cost)
    }

    /// Gives tokens back, at most to what is full. Nothing happens where there is no bucket.
    pub fn give(&self, client: &str, key: &str, tokens: Tokens) {
        let now = self.now();
        let mut shard = self.shard(client);
        if let Some(held) = shard.get_mut(key)
            && let Some(bucket) = held.give(now, tokens).change
        {
            held.bucket = bucket;
        }
    }

    /// Forgets a bucket: it is full again.
    pub fn reset(&self, client: &str, key: &str) {
        self.shard(client).pop(key);
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| locked(shard).len()).sum()
    }

    /// Whether there is no bucket.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, client: &str) -> MutexGuard<'_, Shard> {
        let [first, ..] = &self.shards;
        let index = usize::try_from(self.hasher.hash_one(client) & SHARD_MASK).unwrap_or(0);
        locked(self.shards.get(index).unwrap_or(first))
    }

    /// The time, by a clock that is never set back.
    fn now(&self) -> UnixMicros {
        let elapsed = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        UnixMicros::saturating(self.started_us.saturating_add(elapsed))
    }
}

/// A panic elsewhere does not leave a bucket half written: it is put in one piece.
fn locked(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a demand that is not charged is told, and what a denial has to keep (see [`Limit::take`]).
fn uncharged(shard: &mut Shard, ask: &Demand<'_>, answer: &Answer, now: UnixMicros) -> Decision {
    if answer.decision.is_allowed() {
        return ask.limit.peek(shard.peek(ask.key), now, ask.cost);
    }
    if let Some(bucket) = answer.change {
        put(shard, ask.key, Held { bucket, limit: ask.limit }, now);
    }
    answer.decision
}

fn put(shard: &mut Shard, key: &str, held: Held, now: UnixMicros) {
    if let Some(there) = shard.get_mut(key) {
        *there = held;
        return;
    }
    if shard.len() >= shard.cap().get() {
        let full = |held: &Held| held.bucket.refilled(&held.limit, now).level >= held.limit.full();
        let idle = shard.iter().rev().take(CANDIDATES).find(|(_, held)| full(held)).map(|(key, _)| key.clone());
        if let Some(idle) = idle {
            shard.pop(&*idle);
        }
    }
    shard.push(key.into(), held);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::limit;

    fn one<'a>(key: &'a str, limit: Limit) -> Demand<'a> {
        Demand { key, limit, cost: Tokens::ONE }
    }

    #[test]
    fn takes_all_or_nothing() {
        let local = Local::new(NonZeroUsize::new(100).unwrap());
        let (wide, narrow) = (limit(10, "0").unwrap(), limit(2, "0").unwrap());
        let both = [one("a", wide), one("b", narrow)];
        for _ in 0..2 {
            assert!(local.take("c", &both).iter().all(Decision::is_allowed));
        }
        let denied = local.take("c", &both);
        assert_eq!(denied.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false]);
        // What the denial left alone says what is left.
        assert_eq!(denied.iter().map(|decision| decision.remaining).collect::<Vec<_>>(), [8, 0]);
        assert_eq!(local.peek("c", &both[0]).remaining, 8);
    }

    #[test]
    fn gives_back_and_forgets() {
        let local = Local::new(NonZeroUsize::new(100).unwrap());
        let narrow = one("b", limit(2, "0").unwrap());
        local.give("c", "b", Tokens::ONE);
        assert!(local.is_empty());
        local.take("c", &[narrow]);
        local.give("c", "b", Tokens::ONE);
        assert_eq!(local.peek("c", &narrow).remaining, 2);
        local.take("c", &[narrow]);
        local.reset("c", "b");
        assert_eq!(local.peek("c", &narrow).remaining, 2);
    }

    #[test]
    fn a_new_client_has_its_bucket_however_many_there_are() {
        let local = Local::new(NonZeroUsize::new(64).unwrap());
        let once = limit(1, "0").unwrap();
        for n in 0..10_000 {
            let client = format!("c{n}");
            assert!(local.take(&client, &[one(&client, once)])[0].is_allowed());
            assert!(!local.take(&client, &[one(&client, once)])[0].is_allowed());
        }
        assert!(local.len() <= 64);
    }

    #[test]
    fn those_that_are_full_again_go_first() {
        let local = Local::new(NonZeroUsize::new(16 * 4).unwrap());
        let (fast, never) = (limit(1, "1000000").unwrap(), limit(1, "0").unwrap());
        // All of one shard: one client has them.
        for key in ["kept", "also kept", "kept as well"] {
            local.take("c", &[one(key, never)]);
        }
        for n in 0..100 {
            local.take("c", &[one(&n.to_string(), fast)]);
            std::thread::sleep(std::time::Duration::from_micros(2));
        }
        assert_eq!(local.peek("c", &one("kept", never)).remaining, 0);
    }

    #[test]
    fn many_threads_take_exactly_what_is_there() {
        let local = Local::new(NonZeroUsize::new(100).unwrap());
        let thousand = limit(1000, "0").unwrap();
        let taken = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let allowed = local.take("c", &[one("k", thousand)])[0].is_allowed();
                        taken.fetch_add(usize::from(allowed), std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 1000);
    }
}
