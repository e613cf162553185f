//! Bytes that may be a state: they are refused, or are the one form of a state within bounds; and whatever is decoded can
//! be taken from at any time and under any limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rl_core::codec::{State, Stored, decode, decode_record, encode_long, encode_long_record};
use rl_core::log::Step;
use rl_core::{
    Counter, Held, Limit, Log, MAX_INTEGER, Micros, Period, Quota, QuotaLimit, Rate, Tokens, UnixMicros, Usage,
    WindowLimit,
};
use rl_fuzz::checks;
use rl_fuzz::content::{Content, after_record};
use rl_fuzz::naive::Naive;

fuzz_target!(|bytes: &[u8]| {
    let record = decode_record::<State>(bytes);
    if let Ok(record) = &record {
        assert_eq!(encode_long_record(record.expiry, &record.state), bytes);
    }
    let state = decode::<State>(bytes);
    if let Ok(state) = &state {
        assert_eq!(encode_long(state), bytes);
    }
    agree::<Held>(bytes, state.clone().ok().and_then(|state| if let State::Bucket(it) = state { Some(it) } else { None }));
    agree::<Log>(bytes, state.clone().ok().and_then(|state| if let State::Log(it) = state { Some(it) } else { None }));
    agree::<Step>(bytes, state.clone().ok().and_then(|state| if let State::Step(it) = state { Some(it) } else { None }));
    agree::<Counter>(bytes, state.clone().ok().and_then(|state| if let State::Counter(it) = state { Some(it) } else { None }));
    agree::<Quota>(bytes, state.clone().ok().and_then(|state| if let State::Quota(it) = state { Some(it) } else { None }));
    match record.map(|record| record.state).or(state) {
        Ok(State::Bucket(held)) => bucket(&held),
        Ok(State::Log(log)) => a_log(&log),
        Ok(State::Step(step)) => a_step(&step),
        Ok(State::Counter(counter)) => counter_of(&counter),
        Ok(State::Quota(quota)) => quota_of(&quota),
        Err(_) => {}
    }
});

/// A decoder of one kind takes the bytes if, and only if, the decoder of all kinds finds that one.
fn agree<S: Stored + PartialEq + std::fmt::Debug>(bytes: &[u8], found: Option<S>) {
    assert_eq!(decode::<S>(bytes).ok(), found);
}

/// Takes from `held`, and gives to it, at times and of amounts where things break; and once more from what that leaves.
fn calls<C: Content>(held: &C, limits: &[C::Limit], call: impl Fn(&C, &C::Limit, UnixMicros, Tokens) -> Option<C>) {
    let last = held.last_change().get();
    let reset = match C::peek(Some(held), &held.limit(), held.last_change(), Tokens::ZERO).reset_after {
        rl_core::Wait::Micros(micros) => u64::try_from(micros).unwrap_or(u64::MAX),
        rl_core::Wait::Never => 1,
    };
    for now in [0, last.saturating_sub(1), last, last.saturating_add(reset / 3), last.saturating_add(reset), MAX_INTEGER] {
        let now = UnixMicros::saturating(now);
        for asked in [&[held.limit()], limits].concat() {
            let remaining = C::peek(Some(held), &asked, now, Tokens::ZERO).remaining;
            for cost in [0, 1, remaining, remaining + 1, C::most(&asked).get(), MAX_INTEGER] {
                let cost = Tokens::new(cost).unwrap_or(Tokens::ONE);
                if let Some(after) = call(held, &asked, now, cost) {
                    checks::give(&after, now, cost);
                    checks::take(Some(&after), &held.limit(), now, Tokens::ONE);
                }
                checks::give(held, now, cost);
            }
        }
    }
}

fn bucket(held: &Held) {
    assert!(held.bucket.level <= held.limit.full() && held.bucket.level >= held.limit.most_owed());
    let rates = [Rate::ZERO, Rate::new(7, 3).unwrap(), Rate::new(MAX_INTEGER.into(), 2).unwrap()];
    let limits = rates.map(|rate| Limit::new(Tokens::new(rate.tokens() ^ 10).unwrap(), rate));
    calls(held, &limits, |held, asked, now, cost| {
        checks::lease(Some(held), asked, now, cost);
        checks::reserve(Some(held), asked, now, cost, Micros::new(cost.get() / 2).unwrap());
        checks::reserve(Some(held), asked, now, cost, Micros::MAX);
        checks::take(Some(held), asked, now, cost)
    });
}

fn window(limit: u64, window_us: u64) -> WindowLimit {
    WindowLimit::new(Tokens::new(limit).unwrap(), Micros::new(window_us).unwrap()).unwrap()
}

/// Half the window and twice the limit, and the other way round; within `most` and `longest`.
fn other_windows(limit: &WindowLimit, most: u64, longest: u64) -> [WindowLimit; 3] {
    let (tokens, window_us) = (limit.limit().get(), limit.window_us().get());
    let up = |number: u64, most: u64| number.saturating_mul(2).clamp(1, most);
    [
        window(up(tokens, most), (window_us / 2).max(1)),
        window(tokens / 2, up(window_us, longest)),
        window(most, longest),
    ]
}

fn a_log(log: &Log) {
    let limit = Usage::limit(log);
    assert!(Log::can_keep(&limit));
    assert!(log.used() <= Log::LARGEST_LIMIT);
    assert!(log.storage().len() <= (log.len() + log.len() / 4 + 1).max(16).max(4 * log.len()), "{} for {}", log.storage().len(), log.len());
    Naive::of(log).assert_same(log);
    calls(log, &other_windows(&limit, Log::LARGEST_LIMIT, Log::LONGEST_WINDOW.get()), |log, asked, now, cost| {
        let (told, naive) = Naive::of(log).take(asked, now, cost);
        assert_eq!(<Log as Content>::take(Some(log), asked, now, cost).0, told, "as the naive log says");
        let after = checks::take(Some(log), asked, now, cost)?;
        naive.assert_same(&after);
        Some(after)
    });
}

/// A step can be carried out on any log.
fn a_step(step: &Step) {
    let mut state = None;
    for _ in 0..3 {
        state = after_record(state.as_ref(), State::Step(*step));
        let Some(State::Log(log)) = &state else { panic!("{state:?}") };
        assert!(log.used() <= Log::LARGEST_LIMIT);
        assert_eq!(decode::<Log>(&encode_long(log)).as_ref(), Ok(log));
    }
}

fn counter_of(counter: &Counter) {
    assert!(counter.position_us < counter.limit.window_us().get());
    calls(counter, &other_windows(&counter.limit, MAX_INTEGER, MAX_INTEGER), |counter, asked, now, cost| {
        checks::take(Some(counter), asked, now, cost)
    });
}

fn quota_of(quota: &Quota) {
    let limits = ["month", "week+13:59", "1ms-23:59"]
        .map(|period| QuotaLimit { limit: Tokens::new(10).unwrap(), period: Period::parse(period.as_bytes()).unwrap() });
    calls(quota, &limits, |quota, asked, now, cost| checks::take(Some(quota), asked, now, cost));
}
