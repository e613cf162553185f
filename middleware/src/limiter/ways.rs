//! The calls to Redis, and what their answers mean.

use std::time::Instant;

use redis::{Cmd, FromRedisValue, Value, cmd};
use rl_core::{Limit, Tokens, Wait};

use super::{Limiter, Take};
use crate::leases::{Grant, Pool};
use crate::link::Link;
use crate::measure;
use crate::verdict::{Source, Standing, Trouble};

/// The five integers of a decision.
type Five = (i64, i64, i64, i64, i64);

impl Take {
    fn limited(&self, command: &mut Cmd) {
        command.arg(self.limit.capacity().get()).arg(self.limit.rate().to_string());
    }

    /// Where the client stands after an answer of Redis.
    fn standing(&self, (allowed, remaining, retry_after_ms, reset_after_ms, _): Five) -> Standing {
        Standing {
            policy: self.policy.name.clone(),
            limit: self.limit,
            cost: self.cost,
            remaining: u64::try_from(remaining).unwrap_or(0),
            reset_after: wait(reset_after_ms),
            retry_after: (allowed == 0).then(|| wait(retry_after_ms)),
            source: Source::Redis,
        }
    }
}

/// Milliseconds of a reply; negative is never.
fn wait(ms: i64) -> Wait {
    u128::try_from(ms).map_or(Wait::Never, |ms| Wait::Micros(ms.saturating_mul(1000)))
}

/// An answer of the form that the command has.
pub(super) fn answer<T: FromRedisValue>(value: Value) -> Result<T, Trouble> {
    redis::from_redis_value(value)
        .map_err(|error| Trouble::Refused(format!("an answer that makes no sense: {error}").into()))
}

impl Limiter {
    /// Takes from all or from none.
    pub(super) async fn take(&self, link: &Link, takes: &[Take], deadline: Instant) -> Result<Vec<Standing>, Trouble> {
        if let [one] = takes {
            return self.take_one(link, one, deadline).await.map(|standing| vec![standing]);
        }
        let mut command = cmd("RL.MTAKE");
        command.arg(takes.len());
        for take in takes {
            command.arg(&take.key);
        }
        for take in takes {
            take.limited(&mut command);
            command.arg(take.cost.get());
        }
        let (_, _, fives, _): (i64, i64, Vec<Five>, i64) = answer(link.ask("RL.MTAKE", command, deadline).await?)?;
        Ok(takes.iter().zip(fives).map(|(take, five)| take.standing(five)).collect())
    }

    /// Takes from one bucket.
    pub(super) async fn take_one(&self, link: &Link, take: &Take, deadline: Instant) -> Result<Standing, Trouble> {
        let mut command = cmd("RL.TAKE");
        command.arg(&take.key);
        take.limited(&mut command);
        // One token is what it costs unless said otherwise, and an argument less is time saved.
        if take.cost != Tokens::ONE {
            command.arg(take.cost.get());
        }
        let five = answer(link.ask("RL.TAKE", command, deadline).await?)?;
        Ok(take.standing(five))
    }

    /// Where the client stands, without charging anything.
    pub(super) async fn peek(&self, link: &Link, take: &Take, deadline: Instant) -> Result<Standing, Trouble> {
        let mut command = cmd("RL.PEEK");
        command.arg(&take.key);
        take.limited(&mut command);
        command.arg(take.cost.get());
        Ok(take.standing(answer(link.ask("RL.PEEK", command, deadline).await?)?))
    }

    /// Leases tokens into a pool; says what a request for one token would have been told.
    pub(super) async fn lease(
        &self,
        link: &Link,
        take: &Take,
        pool: &Pool,
        deadline: Instant,
    ) -> Result<Standing, Trouble> {
        let wanted = take.policy.lease.unwrap_or(take.cost).max(take.cost);
        let mut command = cmd("RL.LEASE");
        command.arg(&take.key);
        take.limited(&mut command);
        command.arg(wanted.get());
        let five: Five = answer(link.ask("RL.LEASE", command, deadline).await?)?;
        let standing = take.standing(five);
        let granted = u64::try_from(five.0).unwrap_or(0);
        pool.receive(
            Grant { granted, remaining: standing.remaining, reset_after: standing.reset_after },
            wanted,
            Instant::now(),
        );
        measure::leased(&take.policy.name, granted);
        self.sweep();
        Ok(standing)
    }

    /// Gives tokens back to a bucket.
    pub(super) async fn give(&self, key: &str, tokens: Tokens) -> Result<(), Trouble> {
        let Some(link) = &self.0.link else { return Ok(()) };
        let mut command = cmd("RL.GIVE");
        command.arg(key).arg(tokens.get());
        link.ask("RL.GIVE", command, link.deadline()).await.map(drop)
    }
}

/// The limit that a take goes by.
impl Take {
    pub(super) fn with_limit(self, own: Option<&Limit>) -> Self {
        Self { limit: own.copied().unwrap_or(self.limit), ..self }
    }
}
