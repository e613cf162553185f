//! Values for properties: mostly what people use, and often the edges.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rl_core::{Bucket, Held, Limit, MAX_INTEGER, Rate, Tokens, UnixMicros};

use super::history::{Cost, History, Step};

/// 0 to 2^53 - 1, with a bias to 0, 1, the maximum, and powers of two plus and minus one.
pub fn integer() -> impl Strategy<Value = u64> {
    let near_power = (0_u32..=53, -1_i64..=1).prop_map(|(power, off)| (1_u64 << power).saturating_add_signed(off));
    prop_oneof![
        1 => Just(0),
        1 => Just(1),
        1 => Just(MAX_INTEGER),
        3 => near_power.prop_map(|number| number.min(MAX_INTEGER)),
        1 => 0..=MAX_INTEGER,
    ]
}

/// Rates of daily life, rates with odd fractions, and rates at the bounds.
pub fn rate() -> impl Strategy<Value = Rate> {
    let daily = select(vec![
        (5, 1_000_000_u64),
        (5, 900_000_000),
        (100, 60_000_000),
        (1_000_000, 86_400_000_000),
        (300_000, 1_000_000),
        (700_000, 1_000_000),
        (1, 3_600_000_000),
        (3_000_000, 1_000_000),
    ]);
    let pair = prop_oneof![
        5 => daily,
        1 => Just((0, 1)),
        2 => (1..=1_000_u64, 1..=1_000_000_u64),
        2 => (integer(), integer().prop_map(|period| period.max(1))),
    ];
    pair.prop_map(|(tokens, period_us)| Rate::new(u128::from(tokens), u128::from(period_us)).unwrap())
}

pub fn tokens() -> impl Strategy<Value = Tokens> {
    integer().prop_map(|count| Tokens::new(count).unwrap())
}

pub fn limit() -> impl Strategy<Value = Limit> {
    let capacity = prop_oneof![5 => 0..=20_u64, 1 => select(vec![100, 300_000, 1_000_000]), 2 => integer()];
    (capacity, rate()).prop_map(|(capacity, rate)| Limit::new(Tokens::new(capacity).unwrap(), rate))
}

pub fn moment() -> impl Strategy<Value = UnixMicros> {
    prop_oneof![3 => Just(1_750_000_000_000_000), 1 => integer()].prop_map(UnixMicros::saturating)
}

/// Any state that may be stored: full, empty, in between, in debt down to the lowest level, and where 64 bits end.
pub fn held() -> impl Strategy<Value = Held> {
    (limit(), 0..7_u8, any::<u128>(), moment()).prop_map(|(limit, place, random, last_change)| {
        let span = limit.full().abs_diff(limit.most_owed()) + 1;
        let level = match place {
            0 => limit.full(),
            1 => 0,
            2 => -1,
            3 => limit.most_owed(),
            4 => i128::try_from(random % (limit.full().unsigned_abs() + 1)).unwrap(),
            5 => limit.most_owed() + i128::try_from(random % span).unwrap(),
            _ => (limit.full() - (1 << 64) + i128::try_from(random % 3).unwrap()).min(limit.full()),
        };
        Held { bucket: Bucket { level: level.max(limit.most_owed()), last_change }, limit }
    })
}

/// Full buckets whose every number takes all of its bytes: the longest encodings there are.
pub fn longest() -> impl Strategy<Value = Held> {
    let long = || MAX_INTEGER / 2..=MAX_INTEGER;
    let coprime = (long(), long()).prop_filter_map("not coprime", |(tokens, period_us)| {
        Rate::new(u128::from(tokens), u128::from(period_us)).filter(|rate| rate.tokens() == tokens)
    });
    (long(), coprime, long()).prop_map(|(capacity, rate, last_change)| {
        let limit = Limit::new(Tokens::new(capacity).unwrap(), rate);
        Held { bucket: Bucket::full(&limit, UnixMicros::saturating(last_change)), limit }
    })
}

pub(super) fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        5 => (0..=5_u64).prop_map(Cost::Tokens),
        3 => (-1..=1_i64).prop_map(Cost::CapacityPlus),
        1 => integer().prop_map(Cost::Tokens),
    ]
}

pub(super) fn wait() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (-1..=1_i64).prop_map(Step::WaitForRetryPlus),
        3 => (0..=3_000_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Wait(0)),
        1 => Just(Step::Wait(1)),
        1 => integer().prop_map(Step::Wait),
    ]
}

fn call(limits: BoxedStrategy<Limit>) -> impl Strategy<Value = Step> {
    let take = (limits.clone(), cost()).prop_map(|(limit, cost)| Step::Take(limit, cost));
    let peek = (limits, cost()).prop_map(|(limit, cost)| Step::Peek(limit, cost));
    prop_oneof![6 => take, 1 => peek]
}

pub(super) fn set_back() -> impl Strategy<Value = Step> {
    prop_oneof![Just(1), 0..=3_000_000_u64, integer()].prop_map(Step::SetBack)
}

/// One limit, a clock that goes forward.
pub fn steady() -> impl Strategy<Value = History> {
    (moment(), limit().prop_flat_map(|limit| vec(prop_oneof![call(Just(limit).boxed()), wait()], 1..60)))
        .prop_map(|(start, steps)| History { start, held: None, steps })
}

/// One limit, a clock that goes either way.
pub fn clock_steps() -> impl Strategy<Value = History> {
    let steps = limit()
        .prop_flat_map(|limit| vec(prop_oneof![5 => call(Just(limit).boxed()), 4 => wait(), 1 => set_back()], 1..60));
    (moment(), steps).prop_map(|(start, steps)| History { start, held: None, steps })
}

/// Everything at once: a few limits that flap, now and then another, and a clock that goes either way, on a key that
/// may have held anything before.
pub fn anything() -> impl Strategy<Value = History> {
    let steps = vec(limit(), 1..=3).prop_flat_map(|limits| {
        let limits = prop_oneof![9 => select(limits), 1 => limit()].boxed();
        vec(prop_oneof![5 => call(limits), 4 => wait(), 1 => set_back()], 1..60)
    });
    (moment(), proptest::option::of(held()), steps).prop_map(|(start, held, steps)| History { start, held, steps })
}
