//! Calls on a key: any state to begin with, limits that change, a clock that goes either way. Nothing panics, and what
//! [`rl_fuzz::checks`] says is true of each call; a log also says what the naive one says.
#![no_main]

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use rl_core::{Counter, Held, Limit, Log, MAX_INTEGER, Micros, Outcome, Quota, Tokens, UnixMicros, Wait};
use rl_fuzz::checks;
use rl_fuzz::content::Content;
use rl_fuzz::naive::Naive;
use rl_fuzz::values::{Arbitrary, integer, moment};

const MOST_STEPS: usize = 60;

fuzz_target!(|bytes: &[u8]| {
    // It is an error to be out of bytes: the history ends there.
    let _ = history(&mut Unstructured::new(bytes));
});

fn history(bytes: &mut Unstructured) -> Result<()> {
    match bytes.int_in_range(0..=3_u8)? {
        0 => run::<Held>(bytes, charge_bucket),
        1 => run::<Counter>(bytes, checks::take),
        2 => run::<Quota>(bytes, checks::take),
        _ => run_log(bytes),
    }
}

/// How a call changes what a key holds.
type Call<C> = fn(Option<&C>, &<C as Content>::Limit, UnixMicros, Tokens) -> Option<C>;

/// Each amount once as a take, a lease and a booking, of which the last is the one that stays.
fn charge_bucket(held: Option<&Held>, asked: &Limit, now: UnixMicros, cost: Tokens) -> Option<Held> {
    let wait_us = cost.get().rotate_left(7) ^ now.get();
    let patience = Micros::new(wait_us & MAX_INTEGER).unwrap_or(Micros::MAX);
    let taken = checks::take(held, asked, now, cost);
    match wait_us % 3 {
        0 => taken,
        1 => checks::lease(held, asked, now, cost),
        _ => checks::reserve(held, asked, now, cost, patience),
    }
}

struct History<C: Arbitrary> {
    limits: [C::Limit; 3],
    held: Option<C>,
    now: UnixMicros,
    /// What the last denial told to wait, or else when all will be back.
    told_us: u64,
}

impl<C: Arbitrary> History<C> {
    fn begin(bytes: &mut Unstructured) -> Result<Self> {
        let held = if bytes.arbitrary()? { Some(C::state(bytes)?) } else { None };
        let first = match &held {
            Some(held) => Content::limit(held),
            None => <C as Arbitrary>::limit(bytes)?,
        };
        let limits = [first, <C as Arbitrary>::limit(bytes)?, <C as Arbitrary>::limit(bytes)?];
        Ok(Self { limits, held, now: moment(bytes)?, told_us: 0 })
    }

    /// Lets time pass, or sets the clock back.
    fn wait(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let now = self.now.get();
        let next = match bytes.int_in_range(0..=6_u8)? {
            0 | 1 => now,
            2 => now.saturating_add(self.told_us),
            3 => now.saturating_add(self.told_us.saturating_sub(1)),
            4 => now.saturating_add(integer(bytes, MAX_INTEGER)?),
            5 => now.saturating_add(integer(bytes, 100)?),
            _ => now.saturating_sub(integer(bytes, MAX_INTEGER)?),
        };
        self.now = UnixMicros::saturating(next);
        Ok(())
    }

    /// One of the limits, mostly the first.
    fn asked(&self, bytes: &mut Unstructured) -> Result<C::Limit> {
        Ok(self.limits[usize::from(bytes.int_in_range(0..=4_u8)?).saturating_sub(2)])
    }

    /// An amount: what is left, about what is allowed at most, or any.
    fn cost(&self, asked: &C::Limit, bytes: &mut Unstructured) -> Result<Tokens> {
        let remaining = C::peek(self.held.as_ref(), asked, self.now, Tokens::ZERO).remaining;
        let cost = match bytes.int_in_range(0..=4_u8)? {
            0 => bytes.int_in_range(0..=3)?,
            1 => remaining,
            2 => remaining.saturating_add(1),
            3 => C::most(asked).get().saturating_add(bytes.int_in_range(0..=1)?),
            _ => integer(bytes, MAX_INTEGER)?,
        };
        Ok(Tokens::new(cost).unwrap_or(Tokens::ONE))
    }

    /// Remembers what a caller is told who asks for `cost`.
    fn listen(&mut self, asked: &C::Limit, cost: Tokens) {
        let told = C::peek(self.held.as_ref(), asked, self.now, cost);
        let wait = match told.outcome {
            Outcome::Denied { retry_after } => retry_after,
            _ => told.reset_after,
        };
        self.told_us = match wait {
            Wait::Micros(micros) => u64::try_from(micros).unwrap_or(u64::MAX),
            Wait::Never => 0,
        };
    }
}

fn run<C: Arbitrary>(bytes: &mut Unstructured, call: Call<C>) -> Result<()> {
    let mut history = History::<C>::begin(bytes)?;
    for _ in 0..MOST_STEPS {
        history.wait(bytes)?;
        let asked = history.asked(bytes)?;
        let cost = history.cost(&asked, bytes)?;
        history.listen(&asked, cost);
        let gift = bytes.int_in_range(0..=4_u8)? == 0;
        let after = match &history.held {
            Some(held) if gift => checks::give(held, history.now, cost),
            held => call(held.as_ref(), &asked, history.now, cost),
        };
        history.held = after.or(history.held);
    }
    Ok(())
}

fn run_log(bytes: &mut Unstructured) -> Result<()> {
    let mut history = History::<Log>::begin(bytes)?;
    let mut naive = history.held.as_ref().map(Naive::of);
    for _ in 0..MOST_STEPS {
        history.wait(bytes)?;
        let asked = history.asked(bytes)?;
        let cost = history.cost(&asked, bytes)?;
        history.listen(&asked, cost);
        let gift = bytes.int_in_range(0..=4_u8)? == 0;
        let (told, expected, after) = match (&history.held, &naive) {
            (Some(held), Some(naive)) if gift => {
                let told = Content::give(held, history.now, cost).0;
                (told, naive.give(history.now, cost), checks::give(held, history.now, cost))
            }
            (held, naive) => {
                let told = <Log as Content>::take(held.as_ref(), &asked, history.now, cost).0;
                let naive = naive.clone().unwrap_or_else(|| Naive::empty(asked, history.now));
                (told, naive.take(&asked, history.now, cost), checks::take(held.as_ref(), &asked, history.now, cost))
            }
        };
        assert_eq!(told, expected.0, "as the naive log says");
        if let Some(after) = after {
            expected.1.assert_same(&after);
            (history.held, naive) = (Some(after), Some(expected.1));
        }
    }
    Ok(())
}
