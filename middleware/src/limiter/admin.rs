//! What those who look after the service ask: where a client stands, who is denied, how Redis is. And what they do about it.

use std::sync::Arc;
use std::time::Instant;

use redis::cmd;
use rl_core::{Limit, Tokens};

use super::ways::answer;
use super::{Limiter, Take};
use crate::breaker::BreakerState;
use crate::client::Client;
use crate::keys;
use crate::link::Link;
use crate::local::Demand;
use crate::own::{self, Own};
use crate::policy::{Policy, PolicyName};
use crate::verdict::{Incident, Standing, Trouble};

/// A client that is often denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// Who; as the key is written, where it is none of ours.
    pub client: String,
    /// The bucket, where the key is one of ours.
    pub bucket: Option<String>,
    /// Denials that Redis has seen.
    pub denials: u64,
    /// By how much that may be too high.
    pub error: u64,
    /// When the last one was, in milliseconds since the Unix epoch.
    pub last_ms: u64,
}

/// How the limiter is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Where the breaker stands; `None` without Redis.
    pub breaker: Option<BreakerState>,
    /// What the last call met with, if it was trouble.
    pub trouble: Option<Trouble>,
    /// Buckets in this process.
    pub local_buckets: usize,
}

impl Limiter {
    /// How the limiter is, as far as its last calls tell.
    #[must_use]
    pub fn health(&self) -> Health {
        let link = self.0.link.as_ref();
        Health {
            breaker: link.map(|link| link.breaker()),
            trouble: link.and_then(|link| link.last_trouble()),
            local_buckets: self.0.local.len(),
        }
    }

    /// Where a client stands with each of `policies`, in their order. Charges nothing.
    ///
    /// Errors: Redis does not say.
    pub async fn standings(&self, client: &Client, policies: &[Arc<Policy>]) -> Result<Vec<Standing>, Trouble> {
        let own = self.own_limits(client).await?;
        let takes = policies.iter().map(|policy| Take {
            key: self.key(client, &policy.bucket),
            limit: own.get(&policy.name).copied().unwrap_or(policy.limit),
            cost: policy.cost,
            policy: policy.clone(),
        });
        let takes: Vec<_> = takes.collect();
        let Some(link) = &self.0.link else {
            return Ok(takes.iter().map(|take| self.standing_here(client, take)).collect());
        };
        let deadline = link.deadline();
        let peeks = takes.iter().map(|take| self.peek(link, take, deadline));
        futures_util::future::try_join_all(peeks).await
    }

    fn standing_here(&self, client: &Client, take: &Take) -> Standing {
        let demand = Demand { key: &take.key, limit: take.limit, cost: take.cost };
        take.decided_here(&demand, self.0.local.peek(client.in_key(), &demand))
    }

    /// Fills a client's bucket of a policy again. What instances have leased of it stays leased.
    ///
    /// Errors: Redis has not done it.
    pub async fn reset(&self, client: &Client, policy: &Policy) -> Result<(), Trouble> {
        let key = self.key(client, &policy.bucket);
        self.0.local.reset(client.in_key(), &key);
        if let Some(link) = &self.0.link {
            let mut command = cmd("DEL");
            command.arg(&key);
            link.ask("DEL", command, link.deadline()).await?;
        }
        self.0.leases.forget(&key);
        self.forget_denial(&key);
        Ok(())
    }

    /// Grants a client tokens of a policy, at most to what is full.
    ///
    /// Errors: Redis has not done it.
    pub async fn grant(&self, client: &Client, policy: &Policy, tokens: Tokens) -> Result<(), Trouble> {
        let key = self.key(client, &policy.bucket);
        self.0.local.give(client.in_key(), &key, tokens);
        self.give(&key, tokens).await?;
        self.forget_denial(&key);
        Ok(())
    }

    /// The `count` clients that Redis has denied most, all instances together. Denials that an instance remembered are not
    /// among them: they never reached Redis. Without Redis there are none.
    ///
    /// Errors: Redis does not say. `RL.TOP` needs a permission of its own.
    pub async fn top(&self, count: usize) -> Result<Vec<Offender>, Trouble> {
        let Some(link) = &self.0.link else { return Ok(Vec::new()) };
        let mut command = cmd("RL.TOP");
        command.arg("COUNT").arg(count);
        let mut rows: Vec<(Vec<u8>, u64, u64, u64)> = answer(link.ask("RL.TOP", command, link.deadline()).await?)?;
        // Of a cluster each node has told its own.
        rows.sort_by_key(|(_, denials, ..)| std::cmp::Reverse(*denials));
        rows.truncate(count);
        Ok(rows.into_iter().map(|row| self.offender(row)).collect())
    }

    fn offender(&self, (key, denials, error, last_ms): (Vec<u8>, u64, u64, u64)) -> Offender {
        let key = String::from_utf8_lossy(&key);
        let (client, bucket) = match keys::read(&self.0.options.prefix, &key) {
            Some((client, bucket)) => (client.to_string(), Some(bucket.to_owned())),
            None => (key.into_owned(), None),
        };
        Offender { client, bucket, denials, error, last_ms }
    }

    /// The last `count` denials that this instance has seen, the newest first; of one client, or of all.
    #[must_use]
    pub fn incidents(&self, client: Option<&Client>, count: usize) -> Vec<Incident> {
        self.0.incidents.latest(count, |incident| client.is_none_or(|client| incident.client == *client))
    }

    /// A client's own limits.
    ///
    /// Errors: Redis does not say.
    pub async fn own_limits(&self, client: &Client) -> Result<Arc<Own>, Trouble> {
        match &self.0.link {
            Some(link) if self.0.options.own_limits => self.read_own_limits(link, client, link.deadline()).await,
            _ => Ok(self.0.own.known(client, Instant::now()).map(|(own, _)| own).unwrap_or_default()),
        }
    }

    async fn read_own_limits(&self, link: &Link, client: &Client, deadline: Instant) -> Result<Arc<Own>, Trouble> {
        let mut command = cmd("HGETALL");
        command.arg(keys::own_limits(&self.0.options.prefix, client));
        let fields: Vec<(String, String)> = answer(link.ask("HGETALL", command, deadline).await?)?;
        Ok(self.0.own.keep(client, own::read(fields), Instant::now()))
    }

    /// Gives a client limits of its own in the place of policies'; `None` takes one away, and policies that are not named stay as they
    /// are. It applies at once here, and within a few seconds on other instances. Buckets keep their tokens, at most the new
    /// capacity.
    ///
    /// All that are given are in force at the same moment, and so are, right after, all that are taken away. Without Redis they are
    /// kept as long as this process.
    ///
    /// Errors: Redis has not kept it.
    pub async fn set_own_limits(
        &self,
        client: &Client,
        changes: impl IntoIterator<Item = (PolicyName, Option<Limit>)>,
    ) -> Result<(), Trouble> {
        let Some(link) = &self.0.link else {
            self.set_own_limits_here(client, changes);
            return Ok(());
        };
        let key = keys::own_limits(&self.0.options.prefix, client);
        let (mut given, mut taken) = (Vec::new(), Vec::new());
        for (policy, limit) in changes {
            match limit {
                Some(limit) => given.extend([policy.as_str().to_owned(), own::written(&limit)]),
                None => taken.push(policy.as_str().to_owned()),
            }
        }
        let deadline = link.deadline();
        for (operation, words) in [("HSET", given), ("HDEL", taken)] {
            if !words.is_empty() {
                let mut command = cmd(operation);
                command.arg(&key).arg(words);
                link.ask(operation, command, deadline).await?;
                self.0.own.forget(client);
            }
        }
        Ok(())
    }

    fn set_own_limits_here(&self, client: &Client, changes: impl IntoIterator<Item = (PolicyName, Option<Limit>)>) {
        let now = Instant::now();
        let mut own = self.0.own.known(client, now).map(|(own, _)| (*own).clone()).unwrap_or_default();
        for (policy, limit) in changes {
            match limit {
                Some(limit) => own.insert(policy, limit),
                None => own.remove(&policy),
            };
        }
        self.0.own.keep(client, own, now);
    }

    /// The limits of its own that a request of `client` goes by, if that is known; else what was known before.
    pub(super) fn own_limits_at_once(
        &self,
        client: &Client,
        now: Instant,
    ) -> Result<Option<Arc<Own>>, Option<Arc<Own>>> {
        if !self.0.options.own_limits {
            return Ok(None);
        }
        match self.0.own.known(client, now) {
            Some((own, true)) => Ok(Some(own)),
            known => Err(known.map(|(own, _)| own)),
        }
    }

    /// Reads them; where Redis does not say, it is what was `known` before.
    pub(super) async fn own_limits_by(
        &self,
        client: &Client,
        known: Option<Arc<Own>>,
        begun: Instant,
    ) -> Option<Arc<Own>> {
        let Some(link) = &self.0.link else { return known };
        self.read_own_limits(link, client, link.deadline_from(begun)).await.ok().or(known)
    }
}
