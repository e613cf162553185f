//! How a request is decided.

use std::mem::take;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join;
use rl_core::{Decision, Outcome, Tokens};

use super::{Limiter, Take};
use crate::client::Client;
use crate::leases::{Left, Pool, Spend};
use crate::link::Link;
use crate::local::Demand;
use crate::measure;
use crate::own::Own;
use crate::policy::{OnOutage, share};
use crate::receipt::{By, Charged, Receipt};
use crate::tell::retry_after_s;
use crate::verdict::{Allowed, Charge, Denied, Incident, Source, Standing, Trouble, Unavailable, Verdict};

/// So many bytes of a route are kept with a denial: where there is no class of route it is a path, as long as the client likes.
const ROUTE_LEN: usize = 256;

/// What has been decided so far.
#[derive(Default)]
struct Sofar {
    standings: Vec<Standing>,
    charges: Vec<Charged>,
}

impl Sofar {
    /// Tokens of a lease were spent.
    fn spent(&mut self, take: Take, left: Left, pool: Arc<Pool>) {
        self.standings.push(take.spent(left));
        self.charges.push(take.charged(By::Lease(pool)));
    }

    /// The request goes ahead.
    fn allowed(mut self, degraded: Option<Trouble>) -> Verdict {
        let receipt = Receipt { client: None, charges: take(&mut self.charges) };
        Verdict::Allowed(Allowed { standings: take(&mut self.standings), degraded, receipt })
    }

    /// It does not.
    fn denied(mut self, degraded: Option<Trouble>) -> Verdict {
        Verdict::Denied(Denied::of(take(&mut self.standings), degraded))
    }
}

/// A request that does not go ahead, or that nobody waits for any more: what it spent from leases is there for the next one.
impl Drop for Sofar {
    fn drop(&mut self) {
        for charged in self.charges.drain(..) {
            if let By::Lease(pool) = charged.by {
                pool.unspend(charged.cost);
            }
        }
    }
}

/// What only Redis can decide, after what was decided at once.
struct Open {
    sofar: Sofar,
    /// Busy keys, for which tokens are worth leasing.
    to_lease: Vec<(Take, Arc<Pool>)>,
    to_take: Vec<Take>,
    dry: Vec<Take>,
}

/// A request on which the decision has begun.
pub(crate) enum Begun {
    /// It is decided.
    Decided(Verdict),
    /// Redis has to be asked.
    Open(Pending),
}

/// A request that waits for Redis.
pub(crate) struct Pending {
    client: Client,
    route: String,
    begun: Instant,
    stage: Stage,
}

enum Stage {
    /// For the client's own limits; here is what was known before.
    Limits { known: Option<Arc<Own>>, charges: Vec<Charge> },
    /// For a decision.
    Decision(Open),
}

impl Limiter {
    /// Decides on a request of `client` that falls under `charges`: all of them are taken or none. Those that are a dry run are taken on
    /// their own, and never deny. `route` is what denials are shown with.
    pub async fn check(&self, client: &Client, charges: &[Charge], route: &str) -> Verdict {
        match self.begin(client.clone(), charges.iter().cloned(), route) {
            Begun::Decided(verdict) => verdict,
            Begun::Open(pending) => self.finish(pending).await,
        }
    }

    /// Decides at once, if that can be.
    pub(crate) fn begin(&self, client: Client, charges: impl IntoIterator<Item = Charge>, route: &str) -> Begun {
        let begun = Instant::now();
        let stage = match self.own_limits_at_once(&client, begun) {
            Err(known) => Stage::Limits { known, charges: charges.into_iter().collect() },
            Ok(own) => match self.begin_with(&client, charges, route, own.as_deref(), begun) {
                Ok(verdict) => return Begun::Decided(verdict),
                Err(open) => Stage::Decision(open),
            },
        };
        Begun::Open(Pending { client, route: route.to_owned(), begun, stage })
    }

    fn begin_with(
        &self,
        client: &Client,
        charges: impl IntoIterator<Item = Charge>,
        route: &str,
        own: Option<&Own>,
        now: Instant,
    ) -> Result<Verdict, Open> {
        let takes = charges.into_iter().map(|charge| self.taking(client, charge, own));
        let (dry, takes): (Vec<_>, Vec<_>) = takes.partition(|take| take.policy.shadow);
        let (verdict, dry_charges) = match &self.0.link {
            Some(link) => (self.at_once(link, client, takes, dry, now)?, Vec::new()),
            None => (self.decide_here(client, takes, None, Sofar::default()), self.dry_here(client, dry)),
        };
        Ok(self.concluded(client, route, verdict, dry_charges))
    }

    /// Asks Redis, and decides.
    pub(crate) async fn finish(&self, pending: Pending) -> Verdict {
        let Pending { client, route, begun, stage } = pending;
        let open = match stage {
            Stage::Decision(open) => open,
            Stage::Limits { known, charges } => {
                let own = self.own_limits_by(&client, known, begun).await;
                match self.begin_with(&client, charges, &route, own.as_deref(), begun) {
                    Ok(verdict) => return verdict,
                    Err(open) => open,
                }
            }
        };
        let (verdict, dry_charges) = self.ask(&client, open, begun).await;
        self.concluded(&client, &route, verdict, dry_charges)
    }

    /// Counts a verdict, and has it know what there is to give back.
    fn concluded(&self, client: &Client, route: &str, mut verdict: Verdict, dry_charges: Vec<Charged>) -> Verdict {
        if let Verdict::Allowed(allowed) = &mut verdict {
            allowed.receipt.client = Some(client.clone());
            allowed.receipt.charges.extend(dry_charges);
        }
        self.note(client, &verdict, route);
        verdict
    }

    fn taking(&self, client: &Client, Charge { policy, cost }: Charge, own: Option<&Own>) -> Take {
        let take = Take { key: self.key(client, &policy.bucket), limit: policy.limit, cost, policy };
        let own = own.and_then(|own| own.get(&take.policy.name));
        take.with_limit(own)
    }

    /// Decides without a round trip, if that can be: by a denial that is remembered, by tokens that are leased, or because Redis
    /// is not asked.
    fn at_once(
        &self,
        link: &Link,
        client: &Client,
        takes: Vec<Take>,
        dry: Vec<Take>,
        now: Instant,
    ) -> Result<Verdict, Open> {
        if let Some(denied) = self.remembered(&takes, now) {
            return Ok(Verdict::Denied(denied));
        }
        let mut open = Open { sofar: Sofar::default(), to_lease: Vec::new(), to_take: Vec::new(), dry };
        for take in takes {
            self.spend(take, now, &mut open);
        }
        let Open { to_lease, to_take, dry, .. } = &open;
        if to_lease.is_empty() && to_take.is_empty() && dry.is_empty() {
            return Ok(open.sofar.allowed(None));
        }
        if !link.refuses(now) {
            return Err(open);
        }
        for take in dry {
            measure::degraded(&take.policy.name, &Trouble::Open);
        }
        let rest = open.to_lease.into_iter().map(|(take, _)| take).chain(open.to_take).collect();
        Ok(self.without(client, rest, Trouble::Open, open.sofar))
    }

    /// The denial that this instance remembers, if there is one.
    fn remembered(&self, takes: &[Take], now: Instant) -> Option<Denied> {
        let denials = self.0.denials.as_ref()?;
        let recall = |take: &Take| denials.recall(&take.key, &take.limit, take.cost, now);
        let standings: Vec<_> = takes.iter().filter_map(recall).collect();
        (!standings.is_empty()).then(|| Denied::of(standings, None))
    }

    /// Spends what is leased, or says what is to be done.
    fn spend(&self, take: Take, now: Instant, open: &mut Open) {
        // What costs nothing is a question of where the client stands, which Redis knows better.
        let leasing = take.policy.lease.is_some_and(|lease| take.cost <= lease) && take.cost != Tokens::ZERO;
        if !leasing {
            return open.to_take.push(take);
        }
        let pool = self.0.leases.pool(&take.key, &take.policy.name, now);
        match self.0.leases.spend(&pool, &take.limit, take.cost, now) {
            Spend::Spent(left) => open.sofar.spent(take, left, pool),
            Spend::Lease => open.to_lease.push((take, pool)),
            Spend::Ask => open.to_take.push(take),
        }
    }

    /// Asks Redis about what is open, and about what is a dry run in the same round trip.
    async fn ask(&self, client: &Client, open: Open, begun: Instant) -> (Verdict, Vec<Charged>) {
        let Open { sofar, to_lease, to_take, dry } = open;
        let Some(link) = &self.0.link else { return (self.decide_here(client, to_take, None, sofar), Vec::new()) };
        // One deadline for all that a request asks.
        let deadline = link.deadline_from(begun);
        let enforced = self.enforce(link, client, sofar, to_lease, to_take, deadline);
        join(enforced, self.dry_run(link, client, dry, deadline)).await
    }

    async fn enforce(
        &self,
        link: &Link,
        client: &Client,
        mut sofar: Sofar,
        to_lease: Vec<(Take, Arc<Pool>)>,
        mut to_take: Vec<Take>,
        deadline: Instant,
    ) -> Verdict {
        for (take, pool) in to_lease {
            match self.leased(link, &take, &pool, deadline).await {
                Some(left) => sofar.spent(take, left, pool),
                None => to_take.push(take),
            }
        }
        if to_take.is_empty() {
            return sofar.allowed(None);
        }
        match self.take(link, &to_take, deadline).await {
            Ok(standings) => self.settled(to_take, standings, sofar),
            Err(trouble) => self.without(client, to_take, trouble, sofar),
        }
    }

    /// Redis has decided on what was not leased.
    fn settled(&self, takes: Vec<Take>, standings: Vec<Standing>, mut sofar: Sofar) -> Verdict {
        let denies = standings.iter().any(|standing| standing.retry_after.is_some());
        if denies && let Some(denials) = &self.0.denials {
            let now = Instant::now();
            for (take, standing) in takes.iter().zip(&standings) {
                denials.remember(&take.key, standing, now);
            }
        }
        sofar.standings.extend(standings);
        if denies {
            return sofar.denied(None);
        }
        sofar.charges.extend(takes.into_iter().map(|take| take.charged(By::Redis)));
        sofar.allowed(None)
    }

    /// Leases tokens, and spends from them. `None` leaves the charge to Redis.
    async fn leased(&self, link: &Link, take: &Take, pool: &Pool, deadline: Instant) -> Option<Left> {
        // One leases, the others wait for what it brings.
        let leasing = tokio::time::timeout_at(deadline.into(), pool.leasing.lock()).await.ok()?;
        let mut left = pool.spend(&take.limit, take.cost, Instant::now());
        // The one before may have found that too little is left: those who waited do not each find it out again.
        let worth_it = left.is_none() && !pool.is_scarce(Instant::now());
        if worth_it && self.lease(link, take, pool, deadline).await.is_ok() {
            left = pool.spend(&take.limit, take.cost, Instant::now());
        }
        drop(leasing);
        left
    }

    /// Redis has not decided: each policy says what becomes of the request.
    fn without(&self, client: &Client, mut takes: Vec<Take>, trouble: Trouble, sofar: Sofar) -> Verdict {
        for take in &takes {
            measure::degraded(&take.policy.name, &trouble);
        }
        let refusing = takes.iter().filter(|take| take.policy.on_outage == OnOutage::Deny);
        let policies: Vec<_> = refusing.map(|take| take.policy.name.clone()).collect();
        if !policies.is_empty() {
            return Verdict::Unavailable(Unavailable { policies, trouble });
        }
        takes.retain(|take| take.policy.on_outage == OnOutage::Local);
        self.decide_here(client, takes, Some(trouble), sofar)
    }

    /// Takes from buckets of this process: of the whole limit where there is no Redis, of this instance's share where it is gone.
    fn decide_here(&self, client: &Client, takes: Vec<Take>, degraded: Option<Trouble>, mut sofar: Sofar) -> Verdict {
        if takes.is_empty() {
            return sofar.allowed(degraded);
        }
        let instances = self.0.options.instances;
        let limit = |take: &Take| match degraded {
            Some(_) => share(&take.limit, instances, take.cost),
            None => take.limit,
        };
        let demands: Vec<_> =
            takes.iter().map(|take| Demand { key: &take.key, limit: limit(take), cost: take.cost }).collect();
        let decisions = self.0.local.take(client.in_key(), &demands);
        let denies = decisions.iter().any(|decision| !decision.is_allowed());
        let decided = takes.iter().zip(&demands).zip(decisions);
        sofar.standings.extend(decided.map(|((take, demand), decision)| take.decided_here(demand, decision)));
        if denies {
            return sofar.denied(degraded);
        }
        sofar.charges.extend(takes.into_iter().map(|take| take.charged(By::Local)));
        sofar.allowed(degraded)
    }

    /// Takes what is a dry run, each on its own, and counts what it would have denied.
    async fn dry_run(&self, link: &Link, client: &Client, takes: Vec<Take>, deadline: Instant) -> Vec<Charged> {
        let tries = takes.iter().map(|take| self.take_one(link, take, deadline));
        let standings = futures_util::future::join_all(tries).await;
        let mut charges = Vec::new();
        for (take, standing) in takes.into_iter().zip(standings) {
            match standing {
                Ok(standing) => charges.extend(dry_decision(client, take, &standing, By::Redis)),
                Err(trouble) => measure::degraded(&take.policy.name, &trouble),
            }
        }
        charges
    }

    fn dry_here(&self, client: &Client, takes: Vec<Take>) -> Vec<Charged> {
        let decide = |take: Take| {
            let demand = Demand { key: &take.key, limit: take.limit, cost: take.cost };
            let decision = self.0.local.take(client.in_key(), &[demand]).pop()?;
            let standing = take.decided_here(&demand, decision);
            dry_decision(client, take, &standing, By::Local)
        };
        takes.into_iter().filter_map(decide).collect()
    }

    /// Counts what was decided, and keeps denials for those who ask why.
    fn note(&self, client: &Client, verdict: &Verdict, route: &str) {
        let kind = client.kind();
        match verdict {
            Verdict::Allowed(allowed) => {
                for standing in &allowed.standings {
                    measure::decision(&standing.policy, kind, "allowed", standing.source);
                }
            }
            Verdict::Denied(denied) => {
                for standing in denied.violated() {
                    measure::decision(&standing.policy, kind, "denied", standing.source);
                    self.0.incidents.add(incident(client, standing, route));
                }
            }
            Verdict::Unavailable(unavailable) => {
                for policy in &unavailable.policies {
                    measure::decision(policy, kind, "unavailable", Source::Nobody);
                }
            }
        }
    }
}

impl Take {
    fn charged(self, by: By) -> Charged {
        Charged { key: self.key, policy: self.policy, cost: self.cost, by }
    }

    /// Where the client stands after tokens of a lease were spent.
    fn spent(&self, Left { remaining, reset_after }: Left) -> Standing {
        Standing {
            policy: self.policy.name.clone(),
            limit: self.limit,
            cost: self.cost,
            remaining,
            reset_after,
            retry_after: None,
            source: Source::Lease,
        }
    }

    /// Where the client stands after a decision of this process.
    pub(super) fn decided_here(&self, demand: &Demand<'_>, decision: Decision) -> Standing {
        Standing {
            policy: self.policy.name.clone(),
            limit: demand.limit,
            cost: demand.cost,
            remaining: decision.remaining,
            reset_after: decision.reset_after,
            retry_after: match decision.outcome {
                Outcome::Denied { retry_after } => Some(retry_after),
                Outcome::Allowed | Outcome::Granted(_) | Outcome::Booked { .. } => None,
            },
            source: Source::Local,
        }
    }
}

/// Counts the decision of a dry run. What it charged can be given back like any charge.
fn dry_decision(client: &Client, take: Take, standing: &Standing, by: By) -> Option<Charged> {
    let denied = standing.retry_after.is_some();
    let outcome = if denied { "dry-run-denied" } else { "dry-run-allowed" };
    measure::decision(&take.policy.name, client.kind(), outcome, standing.source);
    (!denied).then(|| take.charged(by))
}

fn incident(client: &Client, standing: &Standing, route: &str) -> Incident {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Incident {
        at_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        client: client.clone(),
        policy: standing.policy.clone(),
        route: route.get(..route.floor_char_boundary(ROUTE_LEN)).unwrap_or_default().into(),
        cost: standing.cost.get(),
        remaining: standing.remaining,
        retry_after_s: standing.retry_after.and_then(retry_after_s),
        source: standing.source,
    }
}
