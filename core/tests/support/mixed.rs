//! Histories of all calls at once.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::Limit;

use super::generate::{cost, held, integer, limit, moment, set_back, wait};
use super::history::{History, Patience, Step};

fn patience() -> impl Strategy<Value = Patience> {
    prop_oneof![
        4 => (-1..=1_i64).prop_map(Patience::NeededPlus),
        2 => (0..=3_000_000_u64).prop_map(Patience::Us),
        2 => integer().prop_map(Patience::Us),
    ]
}

/// Everything but a gift.
fn charge(limits: BoxedStrategy<Limit>) -> impl Strategy<Value = Step> {
    let take = (limits.clone(), cost()).prop_map(|(limit, cost)| Step::Take(limit, cost));
    let peek = (limits.clone(), cost()).prop_map(|(limit, cost)| Step::Peek(limit, cost));
    let lease = (limits.clone(), cost()).prop_map(|(limit, wanted)| Step::Lease(limit, wanted));
    let reserve = (limits, cost(), patience()).prop_map(|(limit, cost, max)| Step::Reserve(limit, cost, max));
    prop_oneof![3 => take, 1 => peek, 2 => lease, 4 => reserve]
}

fn give() -> impl Strategy<Value = Step> {
    cost().prop_map(Step::Give)
}

/// One limit, a clock that goes forward, nothing given back.
pub fn steady_charges() -> impl Strategy<Value = History> {
    let steps = limit().prop_flat_map(|limit| vec(prop_oneof![3 => charge(Just(limit).boxed()), 2 => wait()], 1..60));
    (moment(), steps).prop_map(|(start, steps)| History { start, held: None, steps })
}

/// One limit, a clock that goes either way.
pub fn mixed_clock_steps() -> impl Strategy<Value = History> {
    let steps = limit().prop_flat_map(|limit| {
        vec(prop_oneof![5 => charge(Just(limit).boxed()), 1 => give(), 4 => wait(), 1 => set_back()], 1..60)
    });
    (moment(), steps).prop_map(|(start, steps)| History { start, held: None, steps })
}

/// A few limits that flap, now and then another, and a clock that goes either way, on a key that may have held anything.
pub fn mixed_anything() -> impl Strategy<Value = History> {
    let steps = vec(limit(), 1..=3).prop_flat_map(|limits| {
        let limits = prop_oneof![9 => select(limits), 1 => limit()].boxed();
        vec(prop_oneof![5 => charge(limits), 1 => give(), 4 => wait(), 1 => set_back()], 1..60)
    });
    (moment(), proptest::option::of(held()), steps).prop_map(|(start, held, steps)| History { start, held, steps })
}
