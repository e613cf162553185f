//! The sliding window log: never more than so much in any window.
//!
//! It remembers when how much was charged, for as long as it counts: a charge at `t` counts until just before `t + window`, so
//! that any window of that length, without the one of its two ends, holds at most `limit`. A call is allowed if what counts and
//! its cost are at most the limit, and else told when enough of the oldest will have left.
//!
//! Example: 3 in 10 s, charged at 0 s, 2 s and 4 s. A call at 5 s is denied, and told to come back in 5 s, when the first charge
//! leaves. A call of 2 is told 7 s.
//!
//! **8 bytes a charge**, whatever its cost, and one for all charges of the same microsecond: 44 bits for the time, 20 for the sum
//! of the costs up to it, both modulo. The time is enough for windows of up to [`Log::LONGEST_WINDOW`], the sum for limits of up
//! to [`Log::LARGEST_LIMIT`]. They lie in a ring that grows in steps of at most a quarter, to at most as many places as the limit
//! has tokens, and shrinks when three quarters of it are empty. As sums, costs are found by bisection: a denial costs O(log n)
//! for n charges, whatever it asks for, and takes that come evenly O(1).
//!
//! The times are those of a clock of the log's own that moves by what passes between changes. A wall clock that is set back
//! stops it, and the charges leave after the window as ever: nothing extra is admitted, nobody is locked out for longer than that.
//!
//! A longer window counts what is remembered: what has left the window that was in force until now does not come back.
//! Tokens that are given back are taken from the oldest charges, which would be the first to leave. If it was another call
//! that did not happen, that is too little rather than too much: what counts is never less than what did happen. (But for a
//! call that has left already nothing should be given back: it does not count any more.)

use std::fmt;

use crate::decision::Wait;
use crate::expiry::{Expiry, slack_ms};
use crate::quantity::{Micros, Tokens, UnixMicros};
use crate::usage::{Standing, Usage, WindowLimit};

const SUM_BITS: u32 = 20;
const SUM_MASK: u64 = (1 << SUM_BITS) - 1;
const TICK_MASK: u64 = u64::MAX >> SUM_BITS;

/// A ring of fewer places is not made smaller.
const SMALL: usize = 16;
/// A ring has one of this many sizes between one power of two and the next, as the allocator of most servers has.
const SIZES: usize = 4;

/// What was charged, and when.
#[derive(Clone)]
pub struct Log {
    /// A charge is the tick at which it was made, above the sum of all costs up to and with it.
    ring: Box<[u64]>,
    /// The place of the oldest charge, and how many there are.
    oldest: usize,
    len: usize,
    /// The sum of all costs that have left, and of all that were charged; modulo 2^20.
    left: u64,
    charged: u64,
    /// The log's clock at the last change, modulo 2^44.
    tick: u64,
    last_change: UnixMicros,
    limit: WindowLimit,
}

/// A change of a log, such that carrying it out needs no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The limit that comes into force.
    pub limit: WindowLimit,
    /// When.
    pub at: UnixMicros,
    /// The tokens given back.
    pub given: Tokens,
    /// The tokens charged after that.
    pub charged: Tokens,
}

/// A charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// How long before the last change it was made, in microseconds.
    pub age_us: u64,
    /// What was charged.
    pub cost: Tokens,
}

impl Log {
    /// The largest limit that is kept so, in tokens: 8 MB of charges.
    pub const LARGEST_LIMIT: u64 = 1_000_000;
    /// The longest window that is kept so: 2^44 - 1 microseconds, 203 days and 14 hours.
    pub const LONGEST_WINDOW: Micros = Micros::new(TICK_MASK).unwrap();

    /// Whether `limit` can be kept so.
    #[must_use]
    pub const fn can_keep(limit: &WindowLimit) -> bool {
        limit.limit().get() <= Self::LARGEST_LIMIT && limit.window_us().get() <= Self::LONGEST_WINDOW.get()
    }

    /// An empty log. The limit is one that [can be kept](Self::can_keep); a larger one admits no more than the largest.
    #[must_use]
    pub fn new(limit: WindowLimit, now: UnixMicros) -> Self {
        Self { ring: Box::new([]), oldest: 0, len: 0, left: 0, charged: 0, tick: 0, last_change: now, limit }
    }

    /// Remembers one more charge, which was made before the last change and after all that are remembered.
    ///
    /// `None`, and nothing is remembered, if it was not, if its cost is 0, if it has left the window, or if all charges together
    /// would cost more than [`LARGEST_LIMIT`](Self::LARGEST_LIMIT).
    pub fn remember(&mut self, charge: Charge) -> Option<()> {
        let younger_than = self.len.checked_sub(1).map_or(self.limit.window_us().get(), |newest| self.age(newest));
        let room = Self::LARGEST_LIMIT.checked_sub(self.used())?;
        if charge.age_us >= younger_than || charge.cost == Tokens::ZERO || charge.cost.get() > room {
            return None;
        }
        let tick = self.tick;
        self.tick = tick.wrapping_sub(charge.age_us) & TICK_MASK;
        self.push(charge.cost.get());
        self.tick = tick;
        Some(())
    }

    /// What is remembered at the last change, from the oldest to the newest.
    pub fn charges(&self) -> impl Iterator<Item = Charge> + '_ {
        (0..self.len).map(|at| {
            let before = at.checked_sub(1).map_or(self.left, |before| self.entry(before));
            let cost = self.entry(at).wrapping_sub(before) & SUM_MASK;
            Charge { age_us: self.age(at), cost: Tokens::new(cost).unwrap_or(Tokens::ZERO) }
        })
    }

    /// How many charges are remembered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is used at the last change.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.charged.wrapping_sub(self.left) & SUM_MASK
    }

    /// Where the charges lie, for whoever measures memory.
    #[must_use]
    pub const fn storage(&self) -> &[u64] {
        &self.ring
    }

    /// The same, for whoever moves memory about.
    pub const fn storage_mut(&mut self) -> &mut Box<[u64]> {
        &mut self.ring
    }

    /// The place in the ring of the charge at `at`, counted from the oldest.
    fn place(&self, at: usize) -> usize {
        let place = self.oldest.wrapping_add(at);
        if place < self.ring.len() { place } else { place.wrapping_sub(self.ring.len()) }
    }

    fn entry(&self, at: usize) -> u64 {
        self.ring.get(self.place(at)).copied().unwrap_or(0)
    }

    /// How old the charge at `at` was at the last change.
    fn age(&self, at: usize) -> u64 {
        self.tick.wrapping_sub(self.entry(at) >> SUM_BITS) & TICK_MASK
    }

    /// How much was charged up to and with the charge at `at`, of what has not left.
    fn sum_to(&self, at: usize) -> u64 {
        self.entry(at).wrapping_sub(self.left) & SUM_MASK
    }

    /// How many of the oldest charges are `past`, which is true of those up to some place. Looks near the beginning first.
    fn count_while(&self, past: impl Fn(usize) -> bool) -> usize {
        let (mut from, mut step) = (0_usize, 1_usize);
        // `from` charges are known to be past; `to` ends where one is known not to be.
        let to = loop {
            let at = from.saturating_add(step).saturating_sub(1);
            match at < self.len && past(at) {
                true => from = at.saturating_add(1),
                false => break at.min(self.len),
            }
            step = step.saturating_mul(2);
        };
        let found = bisect(from, to, past);
        found.min(self.len)
    }

    fn push(&mut self, cost: u64) {
        self.charged = self.charged.wrapping_add(cost) & SUM_MASK;
        let entry = self.tick << SUM_BITS | self.charged;
        let same_tick = self.len.checked_sub(1).filter(|newest| self.age(*newest) == 0);
        let at = same_tick.unwrap_or(self.len);
        if at == self.ring.len() {
            self.resize(grown(self.len, self.limit.limit()));
        }
        let place = self.place(at);
        if let Some(place) = self.ring.get_mut(place) {
            *place = entry;
            self.len = at.saturating_add(1);
        }
    }

    /// Forgets the `count` oldest charges.
    fn forget(&mut self, count: usize) {
        self.oldest = self.place(count);
        self.len = self.len.saturating_sub(count);
        // Three quarters have to go before the rest moves, so that each charge is moved O(1) times.
        if self.ring.len() > SMALL && self.len < self.ring.len() / 4 {
            self.resize(grown(self.len, self.limit.limit()));
        }
    }

    fn resize(&mut self, places: usize) {
        let mut ring = vec![0; places].into_boxed_slice();
        for (at, place) in ring.iter_mut().enumerate().take(self.len) {
            *place = self.entry(at);
        }
        (self.ring, self.oldest) = (ring, 0);
    }
}

/// How many places to have for one more than `len` charges: never more than the limit allows charges.
fn grown(len: usize, limit: Tokens) -> usize {
    let needed = len.saturating_add(1);
    let most = usize::try_from(limit.get()).unwrap_or(usize::MAX).max(needed);
    let step = (needed.next_power_of_two() / 2 / SIZES).max(1);
    needed.next_multiple_of(step).min(most)
}

/// The first place in `from..to` that is not `past`, else `to`.
fn bisect(from: usize, to: usize, past: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (from, to);
    while from < to {
        let middle = from.midpoint(to);
        match past(middle) {
            true => from = middle.saturating_add(1),
            false => to = middle,
        }
    }
    from
}

/// Two logs are equal if they remember the same, wherever it lies.
impl PartialEq for Log {
    fn eq(&self, other: &Self) -> bool {
        (self.limit, self.last_change) == (other.limit, other.last_change) && self.charges().eq(other.charges())
    }
}

impl Eq for Log {}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("limit", &self.limit)
            .field("last_change", &self.last_change)
            .field("charges", &self.charges().collect::<Vec<_>>())
            .finish()
    }
}

/// A log at some time under some limit: the charges that have left by then are still there, and skipped.
pub struct SeenLog<'a> {
    log: Option<&'a Log>,
    /// What has passed since the last change.
    elapsed: u64,
    /// How many charges have left, and how much they had cost.
    skipped: usize,
    skipped_cost: u64,
    step: Step,
}

impl SeenLog<'_> {
    /// What is used, but for what the step charges.
    fn used_before(&self) -> u64 {
        let held = self.log.map_or(0, Log::used).saturating_sub(self.skipped_cost);
        held.saturating_sub(self.step.given.get())
    }

    fn used(&self) -> u64 {
        self.used_before().saturating_add(self.step.charged.get())
    }

    /// How long until the charge at `at` leaves.
    fn until_left(&self, log: &Log, at: usize) -> Wait {
        let age = log.age(at).saturating_add(self.elapsed);
        Wait::Micros(self.step.limit.window_us().get().saturating_sub(age).into())
    }
}

impl Standing for SeenLog<'_> {
    type Change = Step;

    fn limit(&self) -> Tokens {
        self.step.limit.limit()
    }

    fn remaining(&self) -> u64 {
        self.limit().get().saturating_sub(self.used())
    }

    fn reset_after(&self) -> Wait {
        match self.log {
            _ if self.step.charged != Tokens::ZERO => Wait::Micros(self.step.limit.window_us().get().into()),
            Some(log) if self.used_before() > 0 => self.until_left(log, log.len.saturating_sub(1)),
            _ => Wait::NONE,
        }
    }

    fn wait_for(&self, cost: Tokens) -> Wait {
        let Some(log) = self.log else { return Wait::NONE };
        let too_much = self.used().saturating_add(cost.get()).saturating_sub(self.limit().get());
        let must_leave = too_much.saturating_add(self.skipped_cost);
        self.until_left(log, log.count_while(|at| log.sum_to(at) < must_leave))
    }

    fn charged(self, cost: Tokens) -> Self {
        Self { step: Step { charged: cost, ..self.step }, ..self }
    }

    fn given(self, tokens: Tokens) -> Self {
        let given = Tokens::new(tokens.get().min(self.used())).unwrap_or(tokens);
        Self { step: Step { given, ..self.step }, ..self }
    }

    fn change(&self) -> Step {
        self.step
    }
}

impl Usage for Log {
    type Limit = WindowLimit;
    type Change = Step;
    type Seen<'a> = SeenLog<'a>;

    fn see<'a>(held: Option<&'a Self>, asked: &WindowLimit, now: UnixMicros) -> SeenLog<'a> {
        let step = Step { limit: *asked, at: now, given: Tokens::ZERO, charged: Tokens::ZERO };
        let Some(log) = held else {
            return SeenLog { log: held, elapsed: 0, skipped: 0, skipped_cost: 0, step };
        };
        let elapsed = now.since(log.last_change);
        // Both windows end now, so what has left one of them has left the shorter one.
        let window = log.limit.window_us().min(asked.window_us()).get();
        let skipped = log.count_while(|at| log.age(at).saturating_add(elapsed) >= window);
        let skipped_cost = skipped.checked_sub(1).map_or(0, |last| log.sum_to(last));
        SeenLog { log: held, elapsed, skipped, skipped_cost, step }
    }

    fn begin(step: &Step) -> Self {
        let mut log = Self::new(step.limit, step.at);
        log.apply(step);
        log
    }

    fn apply(&mut self, step: &Step) {
        let (elapsed, skipped, skipped_cost) = {
            let seen = Self::see(Some(self), &step.limit, step.at);
            (seen.elapsed, seen.skipped, seen.skipped_cost)
        };
        (self.limit, self.last_change) = (step.limit, step.at);
        // Those leave first, while the ages are the ones that were seen; then the clock moves on.
        self.left = self.left.wrapping_add(skipped_cost) & SUM_MASK;
        self.forget(skipped);
        self.take_back(step.given.get());
        self.tick = self.tick.wrapping_add(elapsed) & TICK_MASK;
        // No call charges more than fits; a record that does is not let do harm.
        let cost = step.charged.get().min(Self::LARGEST_LIMIT.saturating_sub(self.used()));
        if cost > 0 {
            self.push(cost);
        }
    }

    fn limit(&self) -> WindowLimit {
        self.limit
    }

    fn last_change(&self) -> UnixMicros {
        self.last_change
    }

    fn is_unused(&self) -> bool {
        self.len == 0
    }

    fn expiry(&self) -> Expiry {
        let age = self.len.checked_sub(1).map_or(0, |newest| self.age(newest));
        let window = self.limit.window_us().get();
        let unused_us = u128::from(self.last_change.get()).saturating_add(window.saturating_sub(age).into());
        Expiry::within(unused_us, slack_ms(window.into()))
    }
}

impl Log {
    /// Takes `tokens` off the oldest charges.
    fn take_back(&mut self, tokens: u64) {
        let given = tokens.min(self.used());
        let gone = self.count_while(|at| self.sum_to(at) <= given);
        self.left = self.left.wrapping_add(given) & SUM_MASK;
        self.forget(gone);
    }
}
