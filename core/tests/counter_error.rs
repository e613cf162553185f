//! How far a sliding window counter is off, measured: `cargo test -p rl-core --test counter_error -- --nocapture`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

use rl_core::{Counter, Log, Micros, Tokens, UnixMicros, Usage, WindowLimit};

const LIMIT: u64 = 1_000;
const WINDOW_US: u64 = 60_000_000;

fn limit() -> WindowLimit {
    WindowLimit::new(Tokens::new(LIMIT).unwrap(), Micros::new(WINDOW_US).unwrap()).unwrap()
}

/// When those calls were admitted that came at `times`.
fn play<U: Usage<Limit = WindowLimit>>(times: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut held: Option<U> = None;
    let mut admitted = Vec::new();
    for time in times {
        if let Some(change) = U::take(held.as_ref(), &limit(), UnixMicros::saturating(time), Tokens::ONE).change {
            admitted.push(time);
            match &mut held {
                Some(held) => held.apply(&change),
                None => held = Some(U::begin(&change)),
            }
        }
    }
    admitted
}

/// The most that was admitted in any window.
fn most(admitted: &[u64]) -> u64 {
    let in_window = |last: &u64| admitted.iter().filter(|time| **time <= *last && *last < **time + WINDOW_US).count();
    admitted.iter().map(in_window).max().unwrap_or(0) as u64
}

/// Even arrivals, `times_limit` times as many as the limit allows, for ten windows.
fn evenly(times_limit: f64) -> Vec<u64> {
    let every = WINDOW_US as f64 / LIMIT as f64 / times_limit;
    (0..(10.0 * LIMIT as f64 * times_limit) as u64).map(|call| (call as f64 * every) as u64).collect()
}

/// As many, at random: each wait is exponential.
fn randomly(times_limit: f64) -> Vec<u64> {
    let mut seed = 0x5eed_u64;
    let mut time = 0.0;
    evenly(times_limit)
        .iter()
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((seed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            time += -uniform.ln() * WINDOW_US as f64 / LIMIT as f64 / times_limit;
            time as u64
        })
        .collect()
}

/// Beside an exact window, for ten windows.
#[test]
fn is_close_to_exact_for_arrivals_that_are_even_or_random() {
    println!("arrivals  times the limit  most in a window  admitted a window  by an exact window");
    for (name, arrivals) in [("even", evenly as fn(f64) -> Vec<u64>), ("random", randomly)] {
        for times_limit in [0.5, 0.9, 1.0, 1.1, 2.0, 10.0] {
            let counted = play::<Counter>(arrivals(times_limit));
            let exact = play::<Log>(arrivals(times_limit));
            let [a_window, by_exact] = [counted.len() / 10, exact.len() / 10];
            println!("{name:8} {times_limit:16} {:17} {a_window:18} {by_exact:19}", most(&counted));
            assert_eq!(most(&exact).max(LIMIT), LIMIT);
            assert!(most(&counted) <= LIMIT + LIMIT / 20, "{name} {times_limit}");
            assert!(a_window.abs_diff(by_exact) <= LIMIT as usize / 100, "{name} {times_limit}");
        }
    }
}

/// All of a window at its very end, and then as much as the next one gives.
#[test]
fn can_be_off_by_nearly_the_limit_and_never_by_all_of_it() {
    // The first call begins a window; the rest of it comes at its end, the next one is asked every millisecond.
    let burst = (1..LIMIT).map(|call| WINDOW_US - LIMIT + call);
    let after = (WINDOW_US..2 * WINDOW_US).step_by(1_000);
    let most = most(&play::<Counter>([0].into_iter().chain(burst).chain(after)));
    println!("most in a window of a limit of {LIMIT}, at worst: {most}");
    assert!((1_900..2 * LIMIT).contains(&most));
}
