//! Leases, bookings and gifts as people meet them, one row per call: when, what, and everything that comes out.
//!
//! `now` is the time since the first row. `first` is what the first of the five integers says: allowed or the number
//! granted. `wait` is how long until the caller may act, or ask again. `level` is what the key holds then, in millionths
//! of a token, or `-` if the call has left it as it was; a key that holds a full bucket is `gone`. Every row starts from
//! the key as the rows above it left it; at first there is none.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use rl_core::{Held, Limit, Outcome, Rate, Tokens, UnixMicros, Wait, duration};
use support::history::{Kind, call};
use support::table::{micros, wait};

const START_US: u64 = 1_750_000_000_000_000;

fn tokens(text: &str) -> Tokens {
    Tokens::parse(text.as_bytes()).unwrap()
}

fn limit(capacity: &str, rate: &str) -> Limit {
    Limit::new(tokens(capacity), Rate::parse(rate.as_bytes()).unwrap())
}

fn parsed(words: &[&str], held: Option<Held>) -> (Kind, Limit, Tokens) {
    match *words {
        ["take", capacity, rate, cost] => (Kind::Take, limit(capacity, rate), tokens(cost)),
        ["peek", capacity, rate, cost] => (Kind::Peek, limit(capacity, rate), tokens(cost)),
        ["lease", capacity, rate, wanted] => (Kind::Lease, limit(capacity, rate), tokens(wanted)),
        ["reserve", capacity, rate, cost, max_wait] => {
            let max_wait = duration::parse(max_wait.as_bytes()).unwrap();
            (Kind::Reserve { max_wait }, limit(capacity, rate), tokens(cost))
        }
        ["give", count] => (Kind::Give, held.unwrap().limit, tokens(count)),
        _ => panic!("{words:?}"),
    }
}

fn run(table: &str) {
    let mut held: Option<Held> = None;
    let rows = table.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with("now"));
    for row in rows {
        let [now, words, first, remaining, waits, reset, level] =
            row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let (kind, limit, count) = parsed(&words.split_whitespace().collect::<Vec<_>>(), held);
        let now = UnixMicros::saturating(START_US.saturating_add_signed(micros(now)));
        let (decision, after) = call(kind, held, &limit, now, count);
        let (told, told_wait) = match decision.outcome {
            Outcome::Allowed => (1, Wait::NONE),
            Outcome::Granted(granted) => (granted.get(), Wait::NONE),
            Outcome::Booked { act_after } => (1, act_after),
            Outcome::Denied { retry_after } => (0, retry_after),
        };
        let holds = match after {
            _ if after == held => "-".to_owned(),
            None => "gone".to_owned(),
            Some(held) => held.bucket.micro_tokens(&held.limit).to_string(),
        };
        assert_eq!(
            (told.to_string(), decision.remaining.to_string()),
            (first.to_owned(), remaining.to_owned()),
            "{row}"
        );
        assert_eq!((told_wait, decision.reset_after), (wait(waits), wait(reset)), "{row}");
        assert_eq!(holds, level.replace('_', ""), "{row}");
        held = after;
    }
}

#[test]
fn a_lease_takes_what_is_there() {
    run("now    | call         | first | remaining | wait  | reset  | level
         0      | lease 10 5 4 | 4     | 6         | 0     | 800ms  | 6_000_000
         0      | lease 10 5 9 | 6     | 0         | 0     | 2s     | 0
         0      | lease 10 5 1 | 0     | 0         | 200ms | 2s     | -
         50ms   | lease 10 5 9 | 0     | 0         | 150ms | 1950ms | -
         50ms   | lease 10 5 0 | 0     | 0         | 0     | 1950ms | -
         199ms  | lease 10 5 9 | 0     | 0         | 1ms   | 1801ms | -
         500ms  | lease 10 5 9 | 2     | 0         | 0     | 1900ms | 500_000
         1h     | lease 10 5 99 | 10   | 0         | 0     | 2s     | 0");
}

#[test]
fn a_lease_of_a_bucket_that_never_fills_is_told_never_once_it_is_empty() {
    run("now | call         | first | remaining | wait  | reset | level
         0   | lease 3 0 0  | 0     | 3         | 0     | 0     | -
         0   | lease 3 0 2  | 2     | 1         | 0     | never | 1_000_000
         1d  | lease 3 0 2  | 1     | 0         | 0     | never | 0
         2d  | lease 3 0 2  | 0     | 0         | never | never | -
         2d  | lease 0 5 2  | 0     | 0         | never | 0     | -
         2d  | lease 3 1 2  | 0     | 0         | 1s    | 3s    | 0");
}

/// The last row is a fourth caller who would have to wait 800 ms: he is told when it would be 600.
#[test]
fn bookings_stand_in_line() {
    run("now   | call                | first | remaining | wait  | reset  | level
         0     | reserve 1 5 1 600ms | 1     | 0         | 0     | 200ms  | 0
         0     | reserve 1 5 1 600ms | 1     | 0         | 200ms | 400ms  | -1_000_000
         0     | reserve 1 5 1 600ms | 1     | 0         | 400ms | 600ms  | -2_000_000
         0     | reserve 1 5 1 600ms | 1     | 0         | 600ms | 800ms  | -3_000_000
         0     | reserve 1 5 1 600ms | 0     | 0         | 200ms | 800ms  | -
         199ms | reserve 1 5 1 600ms | 0     | 0         | 1ms   | 601ms  | -
         200ms | reserve 1 5 1 600ms | 1     | 0         | 600ms | 800ms  | -3_000_000
         200ms | reserve 1 5 2 1h    | 0     | 0         | never | 800ms  | -
         200ms | reserve 1 5 0 0     | 1     | 0         | 0     | 800ms  | -");
}

#[test]
fn a_debt_is_repaid_before_anything_is_granted() {
    run("now    | call               | first | remaining | wait   | reset  | level
         0      | reserve 2 1 2 1m   | 1     | 0         | 0      | 2s     | 0
         0      | reserve 2 1 2 1m   | 1     | 0         | 2s     | 4s     | -2_000_000
         0      | take 2 1 1         | 0     | 0         | 3s     | 4s     | -
         0      | take 2 1 0         | 1     | 0         | 0      | 4s     | -
         0      | peek 2 1 2         | 0     | 0         | 4s     | 4s     | -
         0      | lease 2 1 2        | 0     | 0         | 3s     | 4s     | -
         2s     | take 2 1 1         | 0     | 0         | 1s     | 2s     | -
         2s     | reserve 2 1 1 999ms | 0    | 0         | 1ms    | 2s     | -
         2500ms | lease 2 1 2        | 0     | 0         | 500ms  | 1500ms | -
         3s     | take 2 1 1         | 1     | 0         | 0      | 2s     | 0");
}

#[test]
fn a_gift_cancels_a_slot_and_fills_no_more_than_the_bucket() {
    run("now | call             | first | remaining | wait | reset | level
         0   | reserve 3 1 3 0  | 1     | 0         | 0    | 3s    | 0
         0   | reserve 3 1 2 5s | 1     | 0         | 2s   | 5s    | -2_000_000
         0   | reserve 3 1 1 5s | 1     | 0         | 3s   | 6s    | -3_000_000
         0   | give 2           | 1     | 0         | 0    | 4s    | -1_000_000
         0   | reserve 3 1 1 5s | 1     | 0         | 2s   | 5s    | -2_000_000
         0   | give 0           | 1     | 0         | 0    | 5s    | -
         1s  | give 3           | 1     | 2         | 0    | 1s    | 2_000_000
         1s  | take 3 1 1       | 1     | 1         | 0    | 2s    | 1_000_000
         1s  | give 9007199254740991 | 1 | 3        | 0    | 0     | gone
         1s  | take 3 1 1       | 1     | 2         | 0    | 1s    | 2_000_000
         5s  | give 1           | 1     | 3         | 0    | 0     | gone");
}

#[test]
fn a_gift_refills_a_bucket_that_never_fills() {
    run("now  | call       | first | remaining | wait  | reset | level
         0    | take 3 0 3 | 1     | 0         | 0     | never | 0
         365d | give 1     | 1     | 1         | 0     | never | 1_000_000
         365d | take 3 0 2 | 0     | 1         | never | never | -
         365d | reserve 3 0 2 100d | 0 | 1     | never | never | -
         365d | reserve 3 0 1 0 | 1 | 0        | 0     | never | 0
         365d | give 3     | 1     | 3         | 0     | 0     | gone");
}

/// A debt is a number of tokens: the second caller asks at half the rate, and twice the wait is what two tokens take.
#[test]
fn a_debt_outlives_a_changed_limit() {
    run("now | call              | first | remaining | wait  | reset | level
         0   | reserve 2 2 2 0   | 1     | 0         | 0     | 1s    | 0
         0   | reserve 2 2 2 1s  | 1     | 0         | 1s    | 2s    | -2_000_000
         0   | take 2 1 1        | 0     | 0         | 3s    | 4s    | -2_000_000
         0   | take 9 1 1        | 0     | 0         | 3s    | 11s   | -2_000_000
         0   | take 9 0 1        | 0     | 0         | never | never | -2_000_000
         1h  | reserve 9 1 1 1h  | 1     | 0         | 3s    | 12s   | -3_000_000");
}

/// An hour back: nothing comes in by that, and whoever is behind a debt of two seconds waits two seconds, not an hour.
#[test]
fn a_clock_set_back_keeps_a_debt_and_moves_it() {
    run("now     | call             | first | remaining | wait | reset | level
         0       | reserve 1 1 1 0  | 1     | 0         | 0    | 1s    | 0
         0       | reserve 1 1 1 1s | 1     | 0         | 1s   | 2s    | -1_000_000
         -1h     | peek 1 1 1       | 0     | 0         | 2s   | 2s    | -
         -1h     | take 1 1 1       | 0     | 0         | 2s   | 2s    | -1_000_000
         -3599s  | reserve 1 1 1 0  | 0     | 0         | 1s   | 1s    | -
         -3598s  | take 1 1 1       | 1     | 0         | 0    | 1s    | 0");
}
