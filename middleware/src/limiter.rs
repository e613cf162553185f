//! The limiter: takes from the buckets of a client, wherever they are, and says what came of it.
//!
//! What is remembered comes first (a denial that still holds), then what is leased, then Redis, and where that does not answer what
//! each policy says. Nothing here knows a request or a response.

mod admin;
mod decide;
mod ways;

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use rl_core::{Limit, Tokens};

pub use admin::{Health, Offender};
pub(crate) use decide::Begun;

use crate::client::Client;
use crate::denials::Denials;
use crate::incidents::Incidents;
use crate::keys;
use crate::leases::{LeaseOptions, Leases, Pool};
use crate::link::{Link, RedisOptions};
use crate::local::Local;
use crate::measure;
use crate::own::OwnLimits;
use crate::policy::{Policy, PolicyName};
use crate::receipt::{By, Charged, Receipt};
use crate::verdict::Trouble;

/// How a limiter works.
#[derive(Debug, Clone)]
pub struct LimiterOptions {
    /// Redis; `None` decides in this process alone.
    pub redis: Option<RedisOptions>,
    /// What every key begins with. `rl` unless set.
    pub prefix: String,
    /// How many instances share the limits: what a bucket of this one holds while Redis is gone is divided by it. 1 unless set.
    pub instances: NonZeroU32,
    /// How many buckets this process keeps at most. 100,000 unless set.
    pub local_buckets: NonZeroUsize,
    /// How many denials are remembered at most. 10,000 unless set; `None` remembers none.
    pub denials: Option<NonZeroUsize>,
    /// When leases are taken, and when they go back.
    pub leases: LeaseOptions,
    /// Whether clients can have limits of their own, which costs a look-up in Redis per client every few seconds.
    pub own_limits: bool,
}

impl Default for LimiterOptions {
    fn default() -> Self {
        Self {
            redis: None,
            prefix: "rl".to_owned(),
            instances: NonZeroU32::MIN,
            local_buckets: NonZeroUsize::new(100_000).unwrap_or(NonZeroUsize::MIN),
            denials: NonZeroUsize::new(10_000),
            leases: LeaseOptions::default(),
            own_limits: false,
        }
    }
}

impl LimiterOptions {
    /// Redis at `url`, everything else as it is by default.
    #[must_use]
    pub fn redis(url: impl Into<String>) -> Self {
        Self { redis: Some(RedisOptions::new(url)), ..Self::default() }
    }
}

/// Why there is no limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// The URL of Redis is none.
    Url(String),
    /// The prefix of keys holds what would break a hash tag.
    Prefix,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "the URL of Redis: {error}"),
            Self::Prefix => f.write_str("the prefix of keys must not hold '{' or '}'"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The limiter. Clones share it.
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    options: LimiterOptions,
    link: Option<Link>,
    local: Local,
    denials: Option<Denials>,
    leases: Leases,
    own: OwnLimits,
    incidents: Incidents,
    sweeping: AtomicBool,
}

/// A bucket to take from.
struct Take {
    key: String,
    policy: Arc<Policy>,
    limit: Limit,
    cost: Tokens,
}

impl Limiter {
    /// Does not connect: Redis may come later. To learn whether it is there and has the module, ask [`Self::ready`].
    ///
    /// Errors: an option that cannot be.
    pub fn new(options: LimiterOptions) -> Result<Self, ConfigError> {
        if options.prefix.contains(['{', '}']) {
            return Err(ConfigError::Prefix);
        }
        let link = options.redis.as_ref().map(Link::new).transpose();
        let link = link.map_err(|error| ConfigError::Url(error.to_string()))?;
        measure::describe();
        Ok(Self(Arc::new(Inner {
            link,
            local: Local::new(options.local_buckets),
            denials: options.denials.map(Denials::new),
            leases: Leases::new(options.leases),
            own: OwnLimits::new(options.local_buckets),
            incidents: Incidents::default(),
            sweeping: AtomicBool::new(false),
            options,
        })))
    }

    /// Asks Redis whether it is there and has the module. A limiter works without: this is for those who want to know at once.
    ///
    /// Errors: the trouble. [`Trouble::NotLoaded`] is one that no waiting mends.
    pub async fn ready(&self) -> Result<(), Trouble> {
        let Some(link) = &self.0.link else { return Ok(()) };
        let mut peek = redis::cmd("RL.PEEK");
        peek.arg(format!("{}:ready", self.0.options.prefix));
        link.ask("RL.PEEK", peek, link.deadline()).await.map(drop)
    }

    /// Gives back what a request was charged. What cannot be given back is lost to the client until the bucket refills.
    pub async fn refund(&self, receipt: Receipt) {
        let Some(client) = receipt.client else { return };
        for charged in receipt.charges {
            let Charged { key, policy, cost, by } = charged;
            if cost == Tokens::ZERO {
                continue;
            }
            measure::refunded(&policy.name, cost.get());
            match by {
                By::Lease(pool) => pool.unspend(cost),
                By::Local => self.0.local.give(client.in_key(), &key, cost),
                By::Redis => {
                    let _ = self.give(&key, cost).await;
                }
            }
            // Not before: a request in between would be denied, and remembered.
            self.forget_denial(&key);
        }
    }

    /// Gives back every lease. Call it when no more requests come.
    pub async fn close(&self) {
        self.give_back(self.0.leases.all()).await;
    }

    fn key(&self, client: &Client, bucket: &PolicyName) -> String {
        keys::bucket(&self.0.options.prefix, client, bucket)
    }

    fn forget_denial(&self, key: &str) {
        if let Some(denials) = &self.0.denials {
            denials.forget(key);
        }
    }

    async fn give_back(&self, unused: Vec<(Arc<Pool>, u64)>) {
        for (pool, left) in unused {
            let Some(tokens) = Tokens::new(left) else { continue };
            // What cannot be given back is lost to the client until the bucket refills; kept, it might be spent twice.
            if self.give(&pool.key, tokens).await.is_ok() {
                self.forget_denial(&pool.key);
                measure::returned(&pool.policy, left);
            }
        }
    }

    /// Sees to it that leases that are not used go back. Begins with the first lease, as there need not be a runtime before.
    fn sweep(&self) {
        if !self.0.sweeping.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(Sweeping(Arc::downgrade(&self.0))));
        }
    }
}

/// Says that nobody sweeps when the task that does ends, be it with its runtime: the next lease begins it anew.
struct Sweeping(Weak<Inner>);

impl Drop for Sweeping {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.sweeping.store(false, Ordering::Relaxed);
        }
    }
}

/// Gives unused leases back, as long as there is a limiter.
async fn sweep(sweeping: Sweeping) {
    let Sweeping(limiter) = &sweeping;
    while let Some(inner) = limiter.upgrade() {
        let limiter = Limiter(inner);
        let rhythm = limiter.0.leases.rhythm();
        limiter.give_back(limiter.0.leases.idle(Instant::now())).await;
        drop(limiter);
        tokio::time::sleep(rhythm).await;
    }
}
