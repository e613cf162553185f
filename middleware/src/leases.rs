//! Tokens leased in advance, for clients that are busy on this instance.
//!
//! A key that was asked for often within a second takes many tokens at once with `RL.LEASE`, and requests then spend
//! them without a round trip. What has not been used for a while goes back with `RL.GIVE`. Every token that is spent here was charged
//! there before, so an instance never admits more than it was granted. Leased tokens are charged when they are leased and may be
//! spent a little later, so in any window at most what was leased comes on top of capacity + rate * window.
//!
//! Near the limit leases would keep for one instance what another needs: where less than a lease is left, each request asks again.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use rl_core::{Limit, Tokens, Wait};

use crate::policy::{PolicyName, less};

/// How many keys are watched for being busy.
const WATCHED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
const SECOND: Duration = Duration::from_secs(1);

/// When leases are taken, and when they go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseOptions {
    /// Calls within a second from which a key is busy. 20 unless set.
    pub busy: u32,
    /// After this a lease that is not used up goes back. 1 s unless set.
    pub hold: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self { busy: 20, hold: SECOND }
    }
}

/// What a charge can do here.
pub(crate) enum Spend {
    /// It was spent from leased tokens.
    Spent(Left),
    /// The key is busy and has no tokens left here: a lease is worth it.
    Lease,
    /// Redis has to be asked.
    Ask,
}

/// What is left after leased tokens were spent, as of the last lease: others take from the bucket, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// Tokens, in the bucket and here.
    pub(crate) remaining: u64,
    /// How long until the bucket is full.
    pub(crate) reset_after: Wait,
}

/// What Redis said when tokens were leased.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    /// Tokens granted.
    pub(crate) granted: u64,
    /// Tokens left in the bucket after that.
    pub(crate) remaining: u64,
    /// When the bucket is full.
    pub(crate) reset_after: Wait,
}

/// The leased tokens of one key.
pub(crate) struct Pool {
    pub(crate) key: Box<str>,
    pub(crate) policy: PolicyName,
    /// Held by the one that leases, so that the others wait for its tokens.
    pub(crate) leasing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    tokens: u64,
    grant: Grant,
    leased: Instant,
    /// Until then leases do harm: too little is left.
    scarce_until: Instant,
    calls: Calls,
}

/// Calls by the second.
#[derive(Clone, Copy)]
struct Calls {
    since: Instant,
    now: u32,
    before: u32,
}

impl Calls {
    /// Counts a call, and says how many there were in this second or in the one before.
    fn count(&mut self, now: Instant) -> u32 {
        let age = now.saturating_duration_since(self.since);
        if age >= SECOND {
            let before = if age < SECOND.saturating_mul(2) { self.now } else { 0 };
            *self = Self { since: now, now: 0, before };
        }
        self.now = self.now.saturating_add(1);
        self.now.max(self.before)
    }
}

impl Pool {
    fn new(key: &str, policy: PolicyName, now: Instant) -> Self {
        let grant = Grant { granted: 0, remaining: 0, reset_after: Wait::NONE };
        let calls = Calls { since: now, now: 0, before: 0 };
        let state = State { tokens: 0, grant, leased: now, scarce_until: now, calls };
        Self { key: key.into(), policy, leasing: tokio::sync::Mutex::new(()), state: Mutex::new(state) }
    }

    /// Spends `cost`, if so much is there.
    pub(crate) fn spend(&self, limit: &Limit, cost: Tokens, now: Instant) -> Option<Left> {
        self.state().spend(limit, cost, now)
    }

    /// Takes back what was spent on a request that did not go ahead.
    pub(crate) fn unspend(&self, cost: Tokens) {
        let mut state = self.state();
        state.tokens = state.tokens.saturating_add(cost.get());
    }

    /// Puts in what Redis has granted of `wanted`.
    pub(crate) fn receive(&self, grant: Grant, wanted: Tokens, now: Instant) {
        let mut state = self.state();
        state.tokens = state.tokens.saturating_add(grant.granted);
        state.grant = grant;
        state.leased = now;
        if grant.remaining < wanted.get() {
            state.scarce_until = now.checked_add(SECOND).unwrap_or(now);
        }
    }

    /// Whether too little is left for leases.
    pub(crate) fn is_scarce(&self, now: Instant) -> bool {
        self.state().scarce_until > now
    }

    /// Takes out all that is left.
    fn empty(&self) -> u64 {
        std::mem::take(&mut self.state().tokens)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn spend(&mut self, limit: &Limit, cost: Tokens, now: Instant) -> Option<Left> {
        self.tokens = self.tokens.checked_sub(cost.get())?;
        Some(Left {
            remaining: self.grant.remaining.saturating_add(self.tokens).min(limit.capacity().get()),
            reset_after: less(self.grant.reset_after, now.saturating_duration_since(self.leased)),
        })
    }
}

/// All leases of this instance.
pub(crate) struct Leases {
    options: LeaseOptions,
    pools: Mutex<Pools>,
}

struct Pools {
    watched: LruCache<Box<str>, Arc<Pool>>,
    /// Those that were not watched any more, with what they may still hold.
    dropped: Vec<Arc<Pool>>,
}

impl Leases {
    pub(crate) fn new(options: LeaseOptions) -> Self {
        let mut watched = LruCache::unbounded();
        watched.resize(WATCHED);
        Self { options, pools: Mutex::new(Pools { watched, dropped: Vec::new() }) }
    }

    /// The pool of `key`.
    pub(crate) fn pool(&self, key: &str, policy: &PolicyName, now: Instant) -> Arc<Pool> {
        let mut pools = self.pools();
        if let Some(pool) = pools.watched.get(key) {
            return pool.clone();
        }
        let pool = Arc::new(Pool::new(key, policy.clone(), now));
        if let Some((_, dropped)) = pools.watched.push(key.into(), pool.clone()) {
            pools.dropped.push(dropped);
        }
        pool
    }

    /// What a charge of `cost` can do with a pool.
    pub(crate) fn spend(&self, pool: &Pool, limit: &Limit, cost: Tokens, now: Instant) -> Spend {
        let mut state = pool.state();
        let busy = state.calls.count(now) >= self.options.busy;
        if let Some(left) = state.spend(limit, cost, now) {
            return Spend::Spent(left);
        }
        if busy && state.scarce_until <= now { Spend::Lease } else { Spend::Ask }
    }

    /// Takes out what was leased long enough ago and is not used.
    pub(crate) fn idle(&self, now: Instant) -> Vec<(Arc<Pool>, u64)> {
        let idle = |pool: &Arc<Pool>| now.saturating_duration_since(pool.state().leased) >= self.options.hold;
        self.unused(idle)
    }

    /// Takes out all that is not used.
    pub(crate) fn all(&self) -> Vec<(Arc<Pool>, u64)> {
        self.unused(|_| true)
    }

    /// Forgets what is leased of a key.
    pub(crate) fn forget(&self, key: &str) {
        if let Some(pool) = self.pools().watched.peek(key) {
            pool.empty();
        }
    }

    /// How often to look for what is not used.
    pub(crate) fn rhythm(&self) -> Duration {
        self.options.hold.checked_div(2).unwrap_or_default().max(Duration::from_millis(10))
    }

    fn unused(&self, due: impl Fn(&Arc<Pool>) -> bool) -> Vec<(Arc<Pool>, u64)> {
        let mut pools = self.pools();
        let mut candidates = std::mem::take(&mut pools.dropped);
        candidates.extend(pools.watched.iter().map(|(_, pool)| pool.clone()).filter(|pool| due(pool)));
        drop(pools);
        candidates
            .into_iter()
            .map(|pool| (pool.empty(), pool))
            .filter(|(left, _)| *left > 0)
            .map(|(n, p)| (p, n))
            .collect()
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::limit;

    fn leases() -> (Leases, Arc<Pool>, Limit, Instant) {
        let (leases, now) = (Leases::new(LeaseOptions { busy: 3, hold: SECOND }), Instant::now());
        let pool = leases.pool("k", &PolicyName::new("p").unwrap(), now);
        (leases, pool, limit(100, "1").unwrap(), now)
    }

    fn grant(granted: u64, remaining: u64) -> Grant {
        Grant { granted, remaining, reset_after: Wait::Micros(5_000_000) }
    }

    const TEN: Tokens = Tokens::new(10).unwrap();

    #[test]
    fn a_key_is_busy_from_so_many_calls_in_a_second() {
        let (leases, pool, limit, now) = leases();
        for expected in [false, false, true, true] {
            assert_eq!(matches!(leases.spend(&pool, &limit, Tokens::ONE, now), Spend::Lease), expected);
        }
        // The second before counts, too; the one before that does not.
        assert!(matches!(leases.spend(&pool, &limit, Tokens::ONE, now + SECOND), Spend::Lease));
        assert!(matches!(leases.spend(&pool, &limit, Tokens::ONE, now + 4 * SECOND), Spend::Ask));
    }

    #[test]
    fn spends_what_was_granted_and_not_more() {
        let (_, pool, limit, now) = leases();
        pool.receive(grant(3, 90), TEN, now);
        for left in [92, 91, 90] {
            assert_eq!(pool.spend(&limit, Tokens::ONE, now).unwrap().remaining, left);
        }
        assert_eq!(pool.spend(&limit, Tokens::ONE, now), None);
        pool.unspend(Tokens::ONE);
        assert!(pool.spend(&limit, Tokens::ONE, now).is_some());
    }

    #[test]
    fn near_the_limit_each_request_asks() {
        let (leases, pool, limit, now) = leases();
        pool.receive(grant(0, 9), TEN, now);
        for _ in 0..10 {
            assert!(matches!(leases.spend(&pool, &limit, Tokens::ONE, now), Spend::Ask));
        }
        assert!(matches!(leases.spend(&pool, &limit, Tokens::ONE, now + SECOND), Spend::Lease));
    }

    #[test]
    fn what_is_not_used_comes_back_once() {
        let (leases, pool, limit, now) = leases();
        pool.receive(grant(5, 90), TEN, now);
        assert!(pool.spend(&limit, Tokens::ONE, now).is_some());
        assert!(leases.idle(now + SECOND / 2).is_empty());
        let idle = leases.idle(now + SECOND);
        assert_eq!(idle.iter().map(|(pool, left)| (&*pool.key, *left)).collect::<Vec<_>>(), [("k", 4)]);
        assert!(leases.idle(now + SECOND).is_empty());
        assert_eq!(pool.spend(&limit, Tokens::ONE, now), None);
    }

    #[test]
    fn what_is_no_longer_watched_comes_back_too() {
        let (leases, pool, _, now) = leases();
        pool.receive(grant(5, 90), TEN, now);
        for n in 0..WATCHED.get() {
            leases.pool(&n.to_string(), &pool.policy, now);
        }
        assert_eq!(leases.idle(now).len(), 1);
    }
}
