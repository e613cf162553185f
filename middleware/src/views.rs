//! What the limiter knows, as JSON. Times that have passed are in milliseconds since the Unix epoch; waits are in seconds, rounded
//! up as they are in header fields, and absent where waiting does not help.

use std::sync::Arc;

use rl_core::{Limit, Rate};
use serde::Serialize;

use crate::client::Client;
use crate::limiter::{Health, Limiter, Offender};
use crate::policy::{Policy, seconds, window_s};
use crate::rules::Rules;
use crate::tell::retry_after_s;
use crate::verdict::{Incident, Standing, Trouble};

/// Where a client stands with a policy.
#[derive(Debug, Clone, Serialize)]
pub struct StandingView {
    /// The policy.
    pub policy: String,
    /// Tokens that the bucket holds at most.
    pub capacity: u64,
    /// The rate, as it can be typed.
    pub rate: String,
    /// Tokens that come in a second, for drawing; no decision goes by it.
    pub refill_per_s: f64,
    /// Whole tokens left.
    pub remaining: u64,
    /// The time in which an empty bucket fills.
    pub window_s: Option<u64>,
    /// How long until the bucket is full.
    pub reset_after_s: Option<u64>,
    /// Whether a request that costs what the policy says would be denied now.
    pub denied: bool,
    /// How long until it would not; absent where it is not, or where waiting does not help.
    pub retry_after_s: Option<u64>,
    /// Who says so: `redis`, `lease`, `memory`, `local`.
    pub source: &'static str,
}

impl From<&Standing> for StandingView {
    fn from(standing: &Standing) -> Self {
        Self {
            policy: standing.policy.to_string(),
            capacity: standing.limit.capacity().get(),
            rate: standing.limit.rate().to_string(),
            refill_per_s: refill_per_s(standing.limit.rate()),
            remaining: standing.remaining,
            window_s: window_s(&standing.limit),
            reset_after_s: seconds(standing.reset_after),
            denied: standing.retry_after.is_some(),
            retry_after_s: standing.retry_after.and_then(retry_after_s),
            source: standing.source.as_str(),
        }
    }
}

/// Rounded as floats are.
#[allow(clippy::arithmetic_side_effects, reason = "of floats: there are none")]
fn refill_per_s(rate: Rate) -> f64 {
    rate.tokens() as f64 * 1e6 / rate.period_us().get() as f64
}

/// A denial.
#[derive(Debug, Clone, Serialize)]
pub struct DenialView {
    /// When.
    pub at_ms: u64,
    /// Who.
    pub client: String,
    /// The policy that denied.
    pub policy: String,
    /// The class of route.
    pub route: String,
    /// Tokens that the request would have cost.
    pub cost: u64,
    /// Tokens that were there.
    pub remaining: u64,
    /// How long to wait; absent where that does not help.
    pub retry_after_s: Option<u64>,
    /// Who has denied.
    pub source: &'static str,
}

impl From<Incident> for DenialView {
    fn from(incident: Incident) -> Self {
        Self {
            at_ms: incident.at_ms,
            client: incident.client.to_string(),
            policy: incident.policy.to_string(),
            route: incident.route.to_string(),
            cost: incident.cost,
            remaining: incident.remaining,
            retry_after_s: incident.retry_after_s,
            source: incident.source.as_str(),
        }
    }
}

/// A client, with all that is known of it.
#[derive(Debug, Clone, Serialize)]
pub struct ClientView {
    /// Who.
    pub client: String,
    /// Where it stands with each policy.
    pub policies: Vec<StandingView>,
    /// The policies for which it has a limit of its own.
    pub own_limits: Vec<String>,
    /// Its last denials on this instance, the newest first.
    pub denials: Vec<DenialView>,
}

/// How many denials of a client are shown.
const DENIALS: usize = 50;

impl ClientView {
    /// All that is known of `client`.
    ///
    /// Errors: Redis does not say.
    pub async fn of(limiter: &Limiter, rules: &Rules, client: &Client) -> Result<Self, Trouble> {
        let standings = limiter.standings(client, rules.policies()).await?;
        let own = limiter.own_limits(client).await?;
        Ok(Self {
            client: client.to_string(),
            policies: standings.iter().map(StandingView::from).collect(),
            own_limits: own.keys().map(ToString::to_string).collect(),
            denials: limiter.incidents(Some(client), DENIALS).into_iter().map(DenialView::from).collect(),
        })
    }
}

/// A client that is often denied.
#[derive(Debug, Clone, Serialize)]
pub struct OffenderView {
    /// Who.
    pub client: String,
    /// The bucket.
    pub bucket: Option<String>,
    /// Denials.
    pub denials: u64,
    /// By how much that may be too high.
    pub error: u64,
    /// The last one.
    pub last_ms: u64,
}

impl From<Offender> for OffenderView {
    fn from(offender: Offender) -> Self {
        let Offender { client, bucket, denials, error, last_ms } = offender;
        Self { client, bucket, denials, error, last_ms }
    }
}

/// A limit.
#[derive(Debug, Clone, Serialize)]
pub struct LimitView {
    /// Tokens that the bucket holds at most.
    pub capacity: u64,
    /// The rate, as it can be typed.
    pub rate: String,
}

impl From<&Limit> for LimitView {
    fn from(limit: &Limit) -> Self {
        Self { capacity: limit.capacity().get(), rate: limit.rate().to_string() }
    }
}

/// A policy.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyView {
    /// Its name.
    pub policy: String,
    /// The bucket that it takes from.
    pub bucket: String,
    /// Tokens that the bucket holds at most.
    pub capacity: u64,
    /// The rate, as it can be typed.
    pub rate: String,
    /// What a request costs that does not say.
    pub cost: u64,
    /// `allow`, `deny`, `local`.
    pub on_outage: String,
    /// Whether it is a dry run.
    pub shadow: bool,
    /// Tokens leased at once.
    pub lease: Option<u64>,
}

impl From<&Arc<Policy>> for PolicyView {
    fn from(policy: &Arc<Policy>) -> Self {
        Self {
            policy: policy.name.to_string(),
            bucket: policy.bucket.to_string(),
            capacity: policy.limit.capacity().get(),
            rate: policy.limit.rate().to_string(),
            cost: policy.cost.get(),
            on_outage: policy.on_outage.to_string(),
            shadow: policy.shadow,
            lease: policy.lease.map(rl_core::Tokens::get),
        }
    }
}

/// The rules in force.
#[derive(Debug, Clone, Serialize)]
pub struct RulesView {
    /// The policies.
    pub policies: Vec<PolicyView>,
    /// The rules in their order, as people read them.
    pub rules: Vec<String>,
}

impl From<&Rules> for RulesView {
    fn from(rules: &Rules) -> Self {
        Self {
            policies: rules.policies().iter().map(PolicyView::from).collect(),
            rules: rules.rules().iter().map(ToString::to_string).collect(),
        }
    }
}

/// How the limiter is.
#[derive(Debug, Clone, Serialize)]
pub struct HealthView {
    /// `ok`; `degraded` where Redis does not decide.
    pub status: &'static str,
    /// Where the breaker stands: `closed`, `open`, `half-open`; absent without Redis.
    pub breaker: Option<&'static str>,
    /// What the last call to Redis met with, if it was trouble.
    pub trouble: Option<String>,
    /// Buckets in this process.
    pub local_buckets: usize,
}

impl From<Health> for HealthView {
    fn from(health: Health) -> Self {
        Self {
            status: if health.trouble.is_some() { "degraded" } else { "ok" },
            breaker: health.breaker.map(crate::breaker::BreakerState::as_str),
            trouble: health.trouble.map(|trouble| trouble.to_string()),
            local_buckets: health.local_buckets,
        }
    }
}
