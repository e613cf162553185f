//! Windows, counters and quotas as people meet them, one row per call: when, what, and everything that comes out.
//!
//! `now` is the time since the first row, which is midnight of Monday, 2024-01-01, UTC. `left` is what is left after the
//! call, `wait` how long until it may be repeated, `reset` until all is left. `held` is what the key holds then, used tokens of
//! a log and a quota, and previous + current of a counter; `-` if the call has left it as it was.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use rl_core::{
    Answer, Counter, Log, Outcome, Period, Quota, QuotaLimit, Tokens, UnixMicros, Usage, Wait, WindowLimit, duration,
};
use support::table::{micros, wait};

const START_US: u64 = 1_704_067_200_000_000;

trait Shown: Usage<Limit: std::fmt::Debug> + Clone + PartialEq {
    fn limit_of(limit: &str, window: &str) -> Self::Limit;
    fn shown(&self) -> String;
}

fn window_limit(limit: &str, window: &str) -> WindowLimit {
    WindowLimit::new(tokens(limit), duration::parse(window.as_bytes()).unwrap()).unwrap()
}

fn tokens(text: &str) -> Tokens {
    Tokens::parse(text.as_bytes()).unwrap()
}

impl Shown for Log {
    fn limit_of(limit: &str, window: &str) -> WindowLimit {
        window_limit(limit, window)
    }

    fn shown(&self) -> String {
        self.used().to_string()
    }
}

impl Shown for Counter {
    fn limit_of(limit: &str, window: &str) -> WindowLimit {
        window_limit(limit, window)
    }

    fn shown(&self) -> String {
        format!("{}+{}", self.previous.get(), self.current.get())
    }
}

impl Shown for Quota {
    fn limit_of(limit: &str, period: &str) -> QuotaLimit {
        QuotaLimit { limit: tokens(limit), period: Period::parse(period.as_bytes()).unwrap() }
    }

    fn shown(&self) -> String {
        self.used.get().to_string()
    }
}

fn called<U: Shown>(words: &[&str], held: Option<&U>, now: UnixMicros) -> Answer<U::Change> {
    match *words {
        ["take", limit, window, cost] => U::take(held, &U::limit_of(limit, window), now, tokens(cost)),
        ["peek", limit, window, cost] => {
            Answer { decision: U::peek(held, &U::limit_of(limit, window), now, tokens(cost)), change: None }
        }
        ["give", count] => held.unwrap().give(now, tokens(count)),
        _ => panic!("{words:?}"),
    }
}

fn run<U: Shown>(table: &str) {
    let mut held: Option<U> = None;
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with("now")) {
        let [now, words, allowed, left, waits, reset, holds] =
            row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let now = UnixMicros::saturating(START_US.saturating_add_signed(micros(now)));
        let answer = called(&words.split_whitespace().collect::<Vec<_>>(), held.as_ref(), now);
        let told_wait = match answer.decision.outcome {
            Outcome::Denied { retry_after } => retry_after,
            _ => Wait::NONE,
        };
        let shown = answer.change.as_ref().map_or("-".to_owned(), |change| {
            match &mut held {
                Some(held) => held.apply(change),
                None => held = Some(U::begin(change)),
            }
            held.as_ref().unwrap().shown()
        });
        let told = (u8::from(answer.decision.is_allowed()).to_string(), answer.decision.remaining.to_string(), shown);
        assert_eq!(told, (allowed.to_owned(), left.to_owned(), holds.to_owned()), "{row}");
        assert_eq!((told_wait, answer.decision.reset_after), (wait(waits), wait(reset)), "{row}");
    }
}

#[test]
fn a_window_admits_the_limit_and_tells_when_enough_has_left() {
    run::<Log>(
        "now       | call           | allowed | left | wait      | reset     | held
         0         | take 3 10s 1   | 1       | 2    | 0         | 10s       | 1
         2s        | take 3 10s 1   | 1       | 1    | 0         | 10s       | 2
         4s        | take 3 10s 1   | 1       | 0    | 0         | 10s       | 3
         5s        | take 3 10s 1   | 0       | 0    | 5s        | 9s        | -
         5s        | take 3 10s 2   | 0       | 0    | 7s        | 9s        | -
         5s        | take 3 10s 3   | 0       | 0    | 9s        | 9s        | -
         5s        | take 3 10s 4   | 0       | 0    | never     | 9s        | -
         5s        | take 3 10s 0   | 1       | 0    | 0         | 9s        | -
         9999999us | take 3 10s 1   | 0       | 0    | 1us       | 4000001us | -
         10s       | peek 3 10s 1   | 1       | 1    | 0         | 4s        | -
         10s       | take 3 10s 1   | 1       | 0    | 0         | 10s       | 3
         12s       | take 3 10s 2   | 0       | 1    | 2s        | 8s        | -
         14s       | take 3 10s 2   | 1       | 0    | 0         | 10s       | 3",
    );
}

#[test]
fn a_cost_is_one_charge_and_leaves_at_once() {
    run::<Log>(
        "now | call          | allowed | left | wait | reset | held
         0   | take 10 1s 7  | 1       | 3    | 0    | 1s    | 7
         0   | take 10 1s 3  | 1       | 0    | 0    | 1s    | 10
         1ms | take 10 1s 1  | 0       | 0    | 999ms | 999ms | -
         1s  | take 10 1s 10 | 1       | 0    | 0    | 1s    | 10",
    );
}

#[test]
fn a_refund_comes_off_the_oldest_calls_and_never_makes_more_than_the_limit() {
    run::<Log>(
        "now | call         | allowed | left | wait | reset | held
         0   | take 5 10s 2 | 1       | 3    | 0    | 10s   | 2
         1s  | take 5 10s 3 | 1       | 0    | 0    | 10s   | 5
         2s  | give 0       | 1       | 0    | 0    | 9s    | -
         2s  | give 1       | 1       | 1    | 0    | 9s    | 4
         2s  | take 5 10s 2 | 0       | 1    | 8s   | 9s    | -
         2s  | give 2       | 1       | 3    | 0    | 9s    | 2
         2s  | give 99      | 1       | 5    | 0    | 0     | 0",
    );
}

#[test]
fn a_changed_limit_applies_from_the_call_that_brings_it() {
    run::<Log>(
        "now | call          | allowed | left | wait | reset | held
         0   | take 3 10s 3  | 1       | 0    | 0    | 10s   | 3
         1s  | take 2 10s 1  | 0       | 0    | 9s   | 9s    | 3
         1s  | take 2 10s 1  | 0       | 0    | 9s   | 9s    | -
         1s  | take 5 20s 1  | 1       | 1    | 0    | 20s   | 4
         9s  | take 5 5s 5   | 1       | 0    | 0    | 5s    | 5
         9s  | take 5 1h 1   | 0       | 0    | 1h   | 1h    | 5
         15s | take 5 1h 1   | 0       | 0    | 3594s | 3594s | -",
    );
}

#[test]
fn a_clock_that_is_set_back_admits_nothing_extra_and_locks_nobody_out() {
    run::<Log>(
        "now | call         | allowed | left | wait | reset | held
         1h  | take 2 10s 1 | 1       | 1    | 0    | 10s   | 1
         3602s | take 2 10s 1 | 1     | 0    | 0    | 10s   | 2
         0   | take 2 10s 1 | 0       | 0    | 8s   | 10s   | 2
         1s  | take 2 10s 1 | 0       | 0    | 7s   | 9s    | -
         8s  | take 2 10s 1 | 1       | 0    | 0    | 10s   | 2",
    );
}

#[test]
fn a_counter_weighs_the_previous_window_by_what_is_left_of_it() {
    run::<Counter>(
        "now  | call            | allowed | left | wait | reset | held
         0    | take 100 60s 80 | 1       | 20   | 0    | 120s  | 0+80
         75s  | take 100 60s 15 | 1       | 25   | 0    | 105s  | 80+15
         75s  | take 100 60s 26 | 0       | 25   | 750ms | 105s | -
         75s  | take 100 60s 85 | 0       | 25   | 45s  | 105s  | -
         75s  | take 100 60s 86 | 0       | 25   | 49s  | 105s  | -
         75s  | take 100 60s 100 | 0      | 25   | 105s | 105s  | -
         75s  | take 100 60s 101 | 0      | 25   | never | 105s | -
         75s  | take 100 60s 25 | 1       | 0    | 0    | 105s  | 80+40
         180s | take 100 60s 100 | 1      | 0    | 0    | 120s  | 0+100",
    );
}

#[test]
fn a_counter_gives_back_from_the_current_window_first() {
    run::<Counter>(
        "now | call           | allowed | left | wait | reset | held
         0   | take 10 10s 8  | 1       | 2    | 0    | 20s   | 0+8
         15s | take 10 10s 3  | 1       | 3    | 0    | 15s   | 8+3
         15s | give 1         | 1       | 4    | 0    | 15s   | 8+2
         15s | give 4         | 1       | 7    | 0    | 5s    | 6+0
         15s | give 99        | 1       | 10   | 0    | 0     | 0+0",
    );
}

#[test]
fn a_quota_is_all_there_again_at_the_boundary() {
    run::<Quota>(
        "now       | call                | allowed | left | wait | reset | held
         -1h       | take 5 1d 5         | 1       | 0    | 0    | 1h    | 5
         -1us      | take 5 1d 1         | 0       | 0    | 1us  | 1us   | -
         0         | take 5 1d 1         | 1       | 4    | 0    | 1d    | 1
         1h        | take 5 1d 5         | 0       | 4    | 23h  | 23h   | -
         1h        | take 5 1d 6         | 0       | 4    | never | 23h  | -
         1h        | give 9              | 1       | 5    | 0    | 0     | 0",
    );
}

#[test]
fn a_week_begins_on_monday_and_a_month_on_its_first_at_the_offset_that_is_asked_for() {
    run::<Quota>(
        "now  | call                | allowed | left | wait | reset | held
         0    | take 9 week 1       | 1       | 8    | 0    | 7d    | 1
         0    | take 9 month 1      | 1       | 7    | 0    | 31d   | 2
         0    | take 9 month+02:00 1 | 1      | 6    | 0    | 742h  | 3
         0    | take 9 month-01:00 1 | 1      | 5    | 0    | 1h    | 4
         31d  | take 9 month 1      | 1       | 8    | 0    | 29d   | 1
         31d  | take 9 year 1       | 1       | 7    | 0    | 335d  | 2",
    );
}

#[test]
fn a_clock_set_back_over_a_boundary_keeps_what_was_used() {
    run::<Quota>(
        "now  | call        | allowed | left | wait | reset | held
         1h   | take 3 1d 2 | 1       | 1    | 0    | 23h   | 2
         -1h  | take 3 1d 2 | 0       | 1    | 1h   | 1h    | 2
         -1h  | take 3 1d 1 | 1       | 0    | 0    | 1h    | 3
         0    | take 3 1d 1 | 1       | 2    | 0    | 1d    | 1",
    );
}
