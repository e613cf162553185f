//! The sliding window log beside a list of charges.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::expiry::Expiry;
use rl_core::log::{Charge, Step as Change};
use rl_core::{Log, Micros, Outcome, Tokens, UnixMicros, UnixMillis, Usage, Wait, WindowLimit};
use support::usage::{Model, agrees, histories};

fn limit(most: u64, window_us: u64) -> WindowLimit {
    WindowLimit::new(Tokens::new(most).unwrap(), Micros::new(window_us).unwrap()).unwrap()
}

fn tokens(count: u64) -> Tokens {
    Tokens::new(count).unwrap()
}

fn at(us: u64) -> UnixMicros {
    UnixMicros::saturating(us)
}

/// Every charge with its time, the oldest first.
#[derive(Debug, Clone)]
struct Charges {
    charges: Vec<(i64, u64)>,
    limit: WindowLimit,
    last_change: i64,
}

impl Charges {
    fn used(&self) -> u64 {
        self.charges.iter().map(|(_, cost)| cost).sum()
    }

    fn drop_old(&mut self) {
        let window = i64::try_from(self.limit.window_us().get()).unwrap();
        self.charges.retain(|(time, _)| self.last_change < time + window);
    }
}

impl Model for Charges {
    type Real = Log;

    fn begin(limit: WindowLimit, now: i64) -> Self {
        Self { charges: Vec::new(), limit, last_change: now }
    }

    fn limit(&self) -> WindowLimit {
        self.limit
    }

    fn last_change(&self) -> i64 {
        self.last_change
    }

    fn move_on(&mut self, limit: WindowLimit, now: i64) {
        let set_back = (self.last_change - now).max(0);
        self.charges.iter_mut().for_each(|(time, _)| *time -= set_back);
        self.last_change = now;
        self.drop_old();
        self.limit = limit;
        self.drop_old();
    }

    fn left(&self) -> u64 {
        self.limit.limit().get().saturating_sub(self.used())
    }

    fn is_unused(&self) -> bool {
        self.charges.is_empty()
    }

    fn charge(&mut self, cost: u64) {
        if cost > 0 {
            self.charges.push((self.last_change, cost));
        }
    }

    fn give(&mut self, tokens: u64) {
        let mut rest = tokens;
        for (_, cost) in &mut self.charges {
            let taken = rest.min(*cost);
            (rest, *cost) = (rest - taken, *cost - taken);
        }
        self.charges.retain(|(_, cost)| *cost > 0);
    }

    fn most(limit: WindowLimit) -> u64 {
        limit.limit().get()
    }

    fn horizon(&self) -> i64 {
        self.limit.window_us().get().try_into().unwrap()
    }

    fn assert_is(&self, log: &Log) {
        let mut expected: Vec<Charge> = Vec::new();
        for (time, cost) in &self.charges {
            let age_us = u64::try_from(self.last_change - time).unwrap();
            match expected.last_mut() {
                Some(last) if last.age_us == age_us => last.cost = tokens(last.cost.get() + cost),
                _ => expected.push(Charge { age_us, cost: tokens(*cost) }),
            }
        }
        assert_eq!(log.charges().collect::<Vec<_>>(), expected);
        assert_eq!((log.used(), log.len()), (self.used(), expected.len()));
        assert_eq!(log.last_change(), at(self.last_change.try_into().unwrap()));
    }
}

const LONGEST: u64 = Log::LONGEST_WINDOW.get();

fn limits() -> impl Strategy<Value = WindowLimit> + Clone {
    let most = prop_oneof![4 => 0..=6_u64, 1 => select(vec![100, 999_999, 1_000_000])];
    let window = prop_oneof![4 => 1..=12_u64, 1 => select(vec![1_000_000, LONGEST - 1, LONGEST])];
    (most, window).prop_map(|(most, window)| limit(most, window))
}

fn waits() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![6 => 0..=13_u64, 1 => select(vec![999_999, 1_000_000, LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST])]
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn agrees_with_a_list_of_charges(start in prop_oneof![Just(0), Just(1_750_000_000_000_000)], steps in histories(limits(), waits())) {
        agrees::<Charges>(start, &steps)?;
    }

    /// Whatever refunds there are, and of whichever calls: what really happened stays within the limit.
    #[test]
    fn no_window_ever_holds_more_than_the_limit(
        limit in (0..=6_u64, 1..=12_u64).prop_map(|(most, window)| limit(most, window)),
        calls in vec((0..=4_u64, 0..=4_u64, proptest::option::weighted(0.2, any::<prop::sample::Index>())), 1..200),
    ) {
        let mut now = 1_000;
        let mut log: Option<Log> = None;
        // What was admitted and not given back.
        let mut happened: Vec<(u64, u64)> = Vec::new();
        for (wait, cost, refunded) in calls {
            now += wait;
            let answer = Log::take(log.as_ref(), &limit, at(now), tokens(cost));
            if answer.decision.is_allowed() {
                happened.push((now, cost));
            }
            carry_out(&mut log, answer.change);
            let window = limit.window_us().get();
            // Of the calls that still count: nothing of the others is there to be given back.
            let counting = happened.iter().position(|(time, _)| now < time + window).unwrap_or(happened.len());
            if let (Some(index), [_, ..]) = (refunded, &happened[counting..]) {
                let place = counting + index.index(happened.len() - counting);
                let undone = std::mem::take(&mut happened[place].1);
                let change = log.as_ref().and_then(|log| log.give(at(now), tokens(undone)).change);
                carry_out(&mut log, change);
            }
            let in_window: u64 = happened.iter().filter(|(time, _)| now < time + window).map(|(_, cost)| cost).sum();
            prop_assert!(in_window <= limit.limit().get(), "{in_window} in the window that ends at {now}");
        }
    }

    #[test]
    fn a_step_that_no_call_leads_to_does_no_harm(
        changes in vec((limits(), 0..=1_u64 << 53, 0..=1_u64 << 53, 0..=1_u64 << 53), 1..20)
    ) {
        let mut log: Option<Log> = None;
        for (limit, time, given, charged) in changes {
            let [given, charged] = [given, charged].map(|count| tokens(count.min((1 << 53) - 1)));
            carry_out(&mut log, Some(Change { limit, at: at(time), given, charged }));
            let log = log.as_ref().unwrap();
            prop_assert!(log.used() <= Log::LARGEST_LIMIT);
            prop_assert_eq!(log.charges().map(|charge| charge.cost.get()).sum::<u64>(), log.used());
            prop_assert!(log.charges().all(|charge| charge.age_us < limit.window_us().get()));
        }
    }
}

fn carry_out(log: &mut Option<Log>, change: Option<Change>) {
    match (log.as_mut(), change) {
        (Some(log), Some(change)) => log.apply(&change),
        (None, Some(change)) => *log = Some(Log::begin(&change)),
        (_, None) => {}
    }
}

/// Charges `cost` at each of `times`, all of which must be allowed.
fn charged(limit: WindowLimit, cost: u64, times: impl IntoIterator<Item = u64>) -> Log {
    let mut log = None;
    for time in times {
        let answer = Log::take(log.as_ref(), &limit, at(time), tokens(cost));
        assert!(answer.decision.is_allowed(), "at {time}");
        carry_out(&mut log, answer.change);
    }
    log.unwrap()
}

#[test]
fn a_full_log_takes_a_place_for_each_charge_and_none_besides() {
    for most in [1, 2, 7, 100, 4_096, 10_000] {
        let mut log = charged(limit(most, 1_000_000), 1, 0..most);
        assert_eq!((log.len(), log.storage_mut().len()), (most as usize, most as usize));
    }
}

#[test]
fn a_log_has_room_for_at_most_a_quarter_more_while_it_grows() {
    let limit = limit(1_000_000, 1_000_000);
    let mut log = Some(charged(limit, 1, [0]));
    for time in 1..50_000 {
        let change = Log::take(log.as_ref(), &limit, at(time), Tokens::ONE).change;
        carry_out(&mut log, change);
        let (len, places) = (log.as_ref().unwrap().len(), log.as_ref().unwrap().storage().len());
        assert!(places <= len + len / 4 + 1, "{places} places for {len}");
    }
}

#[test]
fn a_log_that_has_emptied_gives_its_room_back() {
    let limit = limit(100_000, 100_000);
    let mut log = Some(charged(limit, 1, 0..100_000));
    let change = Log::take(log.as_ref(), &limit, at(199_990), Tokens::ONE).change;
    carry_out(&mut log, change);
    let log = log.unwrap();
    assert_eq!(log.len(), 10);
    assert!(log.storage().len() < 16, "{} places", log.storage().len());
}

#[test]
fn a_cost_of_many_and_many_calls_at_once_are_one_charge() {
    let log = charged(limit(1_000_000, 10), 500_000, [7, 7]);
    assert_eq!(log.charges().collect::<Vec<_>>(), [Charge { age_us: 0, cost: tokens(1_000_000) }]);
}

/// The sums pass 2^20 and the times 2^44 many times over, and the ring goes round.
#[test]
fn counts_on_when_its_numbers_wrap() {
    let (most, step) = (1_000_000, LONGEST / 4);
    let limit = limit(most, LONGEST);
    let mut log = None;
    for turn in 0..200_u64 {
        let now = at(turn * (step + 1) / 2);
        let answer = Log::take(log.as_ref(), &limit, now, tokens(100_003));
        carry_out(&mut log, answer.change);
        // Charges lie an eighth of the window apart, so it has room for the nine that the limit allows.
        assert!(answer.decision.is_allowed(), "turn {turn}: {answer:?}");
        let log = log.as_ref().unwrap();
        assert_eq!(log.used(), 100_003 * (turn + 1).min(8), "turn {turn}");
        assert_eq!(log.len() as u64, (turn + 1).min(8));
    }
}

#[test]
fn a_denial_of_a_large_cost_finds_the_wait_in_a_long_log() {
    let limit = limit(1_000_000, 2_000_000);
    let log = charged(limit, 1, 0..1_000_000);
    for cost in [1, 2, 3, 500_000, 999_999, 1_000_000] {
        let denied = Log::peek(Some(&log), &limit, at(1_500_000), tokens(cost));
        let retry_after = Wait::Micros(u128::from(cost - 1 + 2_000_000 - 1_500_000));
        assert_eq!(denied.outcome, Outcome::Denied { retry_after }, "{cost}");
    }
}

#[test]
fn the_key_may_go_when_the_newest_charge_has_left() {
    let log = charged(limit(5, 8_000_000), 1, [1_000_001, 3_000_001]);
    let expected =
        Expiry::Within { earliest: UnixMillis::saturating(11_001), latest: UnixMillis::saturating(11_001 + 2_000) };
    assert_eq!(log.expiry(), expected);
}
