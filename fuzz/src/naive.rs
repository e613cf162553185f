//! A sliding window log that is too simple to be wrong: a list of charges, summed up one by one.

use rl_core::{Decision, Log, Outcome, Tokens, UnixMicros, Wait, WindowLimit};

/// A log, and the clock of its own by which its charges were made.
#[derive(Debug, Clone)]
pub struct Naive {
    limit: WindowLimit,
    last_change: UnixMicros,
    clock: u128,
    charges: Vec<(u128, u64)>,
}

impl Naive {
    /// What `log` remembers.
    pub fn of(log: &Log) -> Self {
        // Any number will do that is above every age.
        let clock = 1 << 60;
        let charges = log.charges().map(|charge| (clock - u128::from(charge.age_us), charge.cost.get())).collect();
        Self { limit: rl_core::Usage::limit(log), last_change: rl_core::Usage::last_change(log), clock, charges }
    }

    /// Another, of which nothing is used.
    pub fn empty(limit: WindowLimit, now: UnixMicros) -> Self {
        Self::of(&Log::new(limit, now))
    }

    /// The same at `now` under `asked`.
    fn at(&self, asked: &WindowLimit, now: UnixMicros) -> Self {
        let clock = self.clock + u128::from(now.get().saturating_sub(self.last_change.get()));
        let window = u128::from(self.limit.window_us().min(asked.window_us()).get());
        let charges = self.charges.iter().copied().filter(|(at, _)| clock - at < window).collect();
        Self { limit: *asked, last_change: now, clock, charges }
    }

    fn used(&self) -> u64 {
        self.charges.iter().map(|(_, cost)| cost).sum()
    }

    fn until_gone(&self, (at, _): (u128, u64)) -> Wait {
        Wait::Micros(at + u128::from(self.limit.window_us().get()) - self.clock)
    }

    fn decision(&self, outcome: Outcome) -> Decision {
        let remaining = self.limit.limit().get().saturating_sub(self.used());
        let reset_after = self.charges.last().map_or(Wait::NONE, |last| self.until_gone(*last));
        Decision { outcome, remaining, reset_after }
    }

    /// A take: what the caller is told, and the log after it, whether or not that is written.
    pub fn take(&self, asked: &WindowLimit, now: UnixMicros, cost: Tokens) -> (Decision, Self) {
        let mut then = self.at(asked, now);
        let limit = asked.limit().get();
        let Some(too_much) = (then.used() + cost.get()).checked_sub(limit + 1) else {
            then.charge(cost.get());
            return (then.decision(Outcome::Allowed), then);
        };
        if cost == Tokens::ZERO {
            return (then.decision(Outcome::Allowed), then);
        }
        let mut gone = 0;
        let last_to_go = then.charges.iter().find(|(_, cost)| {
            gone += cost;
            gone > too_much
        });
        let retry_after = last_to_go.filter(|_| cost.get() <= limit).map_or(Wait::Never, |last| then.until_gone(*last));
        (then.decision(Outcome::Denied { retry_after }), then)
    }

    fn charge(&mut self, cost: u64) {
        match self.charges.last_mut() {
            _ if cost == 0 => {}
            Some((at, sum)) if *at == self.clock => *sum += cost,
            _ => self.charges.push((self.clock, cost)),
        }
    }

    /// A gift.
    pub fn give(&self, now: UnixMicros, tokens: Tokens) -> (Decision, Self) {
        let mut then = self.at(&self.limit, now);
        let mut left = tokens.get();
        for (_, cost) in &mut then.charges {
            let off = left.min(*cost);
            (*cost, left) = (*cost - off, left - off);
        }
        then.charges.retain(|(_, cost)| *cost > 0);
        (then.decision(Outcome::Allowed), then)
    }

    /// Panics unless `log` remembers the same.
    pub fn assert_same(&self, log: &Log) {
        let ours: Vec<_> = self.charges.iter().map(|(at, cost)| (self.clock - at, u128::from(*cost))).collect();
        let theirs: Vec<_> = log.charges().map(|charge| (charge.age_us.into(), charge.cost.get().into())).collect();
        assert_eq!(ours, theirs);
    }
}
