//! A circuit breaker: whether Redis is worth asking.
//!
//! ```text
//! closed --(failures in a row)--> open --(pause over)--> half-open --(probe answered)--> closed
//!                                   ^                        |
//!                                   +----(probe failed, pause doubled)
//! ```
//!
//! It opens on timeouts and broken connections alone: an error reply comes from a server that is there. While it is
//! open nobody asks. When the pause is over, one request does, the probe; the others go on as if it were open. Pauses
//! double up to a bound, each with up to half of it taken off at random, so that many instances do not come back at
//! the same moment.
//!
//! A pure state machine: time comes in as an argument, and so does chance.

use std::time::{Duration, Instant};

/// When it opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Failures in a row that open it; at least 1.
    pub failures: u32,
    /// The first pause.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for BreakerOptions {
    /// Five failures; pauses from 100 ms to 5 s.
    fn default() -> Self {
        Self { failures: 5, first_pause: Duration::from_millis(100), longest_pause: Duration::from_secs(5) }
    }
}

/// Where the breaker stands, as people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Redis is asked.
    Closed,
    /// It is not.
    Open,
    /// One request is asking, and the others wait for what comes of it.
    HalfOpen,
}

impl BreakerState {
    /// The state in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Whether a request may ask Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Ask,
    /// It may, and what comes of it decides for all. Its outcome has to be recorded.
    Probe,
    /// It may not.
    Refused,
}

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// An answer, be it an error.
    Answered,
    /// A timeout or a broken connection.
    Failed,
    /// Nothing: whoever asked has gone away before there was an answer.
    Abandoned,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { since: Instant, pause: Duration, full_pause: Duration },
    HalfOpen { full_pause: Duration },
}

/// The breaker.
#[derive(Debug)]
pub struct Breaker {
    options: BreakerOptions,
    state: State,
}

impl Breaker {
    /// A closed one.
    #[must_use]
    pub fn new(options: BreakerOptions) -> Self {
        Self { options, state: State::Closed { failures: 0 } }
    }

    /// Whether a request may ask at `now`.
    pub fn admit(&mut self, now: Instant) -> Admission {
        match self.state {
            State::Closed { .. } => Admission::Ask,
            State::Open { since, pause, full_pause } if now.saturating_duration_since(since) >= pause => {
                self.state = State::HalfOpen { full_pause };
                Admission::Probe
            }
            State::Open { .. } | State::HalfOpen { .. } => Admission::Refused,
        }
    }

    /// Whether a request at `now` would be refused. Unlike [`Self::admit`] it changes nothing.
    #[must_use]
    pub fn refuses(&self, now: Instant) -> bool {
        match self.state {
            State::Closed { .. } => false,
            State::Open { since, pause, .. } => now.saturating_duration_since(since) < pause,
            State::HalfOpen { .. } => true,
        }
    }

    /// Takes note of what came of a request that was admitted as `admission`. `chance`, from 0 to 1, is how much of the jitter to
    /// take off a pause.
    pub fn record(&mut self, admission: Admission, outcome: Outcome, now: Instant, chance: f64) {
        match (admission, outcome, self.state) {
            (Admission::Ask, Outcome::Answered, State::Closed { .. }) | (Admission::Probe, Outcome::Answered, _) => {
                self.state = State::Closed { failures: 0 };
            }
            (Admission::Ask, Outcome::Failed, State::Closed { failures }) => {
                let failures = failures.saturating_add(1);
                if failures >= self.options.failures {
                    self.open(self.options.first_pause, now, chance);
                } else {
                    self.state = State::Closed { failures };
                }
            }
            (Admission::Probe, Outcome::Failed, State::HalfOpen { full_pause }) => {
                self.open(full_pause.saturating_mul(2).min(self.options.longest_pause), now, chance);
            }
            // Nothing was learnt. The next request is the probe.
            (Admission::Probe, Outcome::Abandoned, State::HalfOpen { full_pause }) => {
                self.state = State::Open { since: now, pause: Duration::ZERO, full_pause };
            }
            // Stragglers that were admitted before it opened say nothing new.
            _ => {}
        }
    }

    /// Until when it refuses whatever comes, if it is open.
    #[must_use]
    pub fn open_until(&self) -> Option<Instant> {
        match self.state {
            State::Open { since, pause, .. } => since.checked_add(pause),
            State::Closed { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn open(&mut self, full_pause: Duration, now: Instant, chance: f64) {
        // The part that goes is worked out, and not the one that stays: as a float the longest pause rounds to more than there is.
        let pause = full_pause.saturating_sub(full_pause.mul_f64(chance.clamp(0.0, 1.0) / 2.0));
        self.state = State::Open { since: now, pause, full_pause };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn breaker() -> (Breaker, Instant) {
        let options = BreakerOptions { failures: 3, first_pause: 100 * MS, longest_pause: 300 * MS };
        (Breaker::new(options), Instant::now())
    }

    fn fail(breaker: &mut Breaker, now: Instant, times: u32) {
        for _ in 0..times {
            breaker.record(Admission::Ask, Outcome::Failed, now, 0.0);
        }
    }

    #[test]
    fn opens_on_failures_in_a_row_alone() {
        let (mut breaker, now) = breaker();
        fail(&mut breaker, now, 2);
        breaker.record(Admission::Ask, Outcome::Answered, now, 0.0);
        fail(&mut breaker, now, 2);
        assert_eq!(breaker.state(), BreakerState::Closed);
        fail(&mut breaker, now, 1);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.refuses(now + 99 * MS) && !breaker.refuses(now + 100 * MS));
        assert_eq!(breaker.open_until(), Some(now + 100 * MS));
        assert_eq!(breaker.admit(now + 99 * MS), Admission::Refused);
    }

    #[test]
    fn lets_one_probe_through_and_closes_when_it_is_answered() {
        let (mut breaker, now) = breaker();
        fail(&mut breaker, now, 3);
        assert_eq!(breaker.admit(now + 100 * MS), Admission::Probe);
        for _ in 0..10 {
            assert_eq!(breaker.admit(now + 500 * MS), Admission::Refused);
        }
        breaker.record(Admission::Probe, Outcome::Answered, now + 500 * MS, 0.0);
        assert_eq!(breaker.admit(now + 500 * MS), Admission::Ask);
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let (mut breaker, mut now) = breaker();
        fail(&mut breaker, now, 3);
        for pause in [100, 200, 300, 300] {
            assert_eq!(breaker.admit(now + (pause - 1) * MS), Admission::Refused);
            now += pause * MS;
            assert_eq!(breaker.admit(now), Admission::Probe, "after {pause} ms");
            breaker.record(Admission::Probe, Outcome::Failed, now, 0.0);
        }
    }

    #[test]
    fn chance_takes_up_to_half_off_a_pause() {
        for (chance, pause) in [(0.0, 100), (0.5, 75), (1.0, 50), (7.0, 50)] {
            let (mut breaker, now) = breaker();
            for _ in 0..3 {
                breaker.record(Admission::Ask, Outcome::Failed, now, chance);
            }
            assert_eq!(breaker.admit(now + (pause - 1) * MS), Admission::Refused);
            assert_eq!(breaker.admit(now + pause * MS), Admission::Probe);
        }
    }

    #[test]
    fn the_longest_pause_there_is_is_a_pause() {
        let options = BreakerOptions { failures: 1, first_pause: Duration::MAX, longest_pause: Duration::MAX };
        for chance in [0.0, 0.25, 1.0] {
            let (mut breaker, now) = (Breaker::new(options), Instant::now());
            breaker.record(Admission::Ask, Outcome::Failed, now, chance);
            assert!(breaker.refuses(now + 1_000_000_000 * MS));
        }
    }

    #[test]
    fn a_probe_that_went_away_leaves_its_place_to_the_next() {
        let (mut breaker, now) = breaker();
        fail(&mut breaker, now, 3);
        assert_eq!(breaker.admit(now + 100 * MS), Admission::Probe);
        breaker.record(Admission::Probe, Outcome::Abandoned, now + 100 * MS, 0.0);
        assert_eq!(breaker.admit(now + 100 * MS), Admission::Probe);
    }

    #[test]
    fn stragglers_neither_close_it_nor_prolong_the_pause() {
        let (mut breaker, now) = breaker();
        fail(&mut breaker, now, 3);
        for outcome in [Outcome::Answered, Outcome::Failed, Outcome::Abandoned] {
            breaker.record(Admission::Ask, outcome, now + 50 * MS, 0.0);
            assert_eq!(breaker.state(), BreakerState::Open);
        }
        assert_eq!(breaker.admit(now + 100 * MS), Admission::Probe);
    }
}
