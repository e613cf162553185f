//! What people meet daily, one row per call: when, under which limit, at what cost, and everything that comes out.
//!
//! `now` is the time since the first row; a time without a unit is in microseconds. `holds` is what the key does after
//! the call: it is `written`, or it is left as it is (`-`). Every row starts from the key as the rows above it left it;
//! at first there is none.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod support;

use rl_core::{Held, Limit, Outcome, Rate, Tokens, UnixMicros, Wait};
use support::table::{micros, wait};

const START_US: u64 = 1_750_000_000_000_000;

struct Row {
    now: &'static str,
    capacity: u64,
    rate: &'static str,
    cost: u64,
    expected: Expected,
}

#[derive(Debug, PartialEq)]
struct Expected {
    allowed: bool,
    remaining: u64,
    retry_after: Wait,
    reset_after: Wait,
    written: bool,
}

macro_rules! answer {
    (yes) => {
        true
    };
    (no) => {
        false
    };
}

macro_rules! holds {
    (written) => {
        true
    };
    (-) => {
        false
    };
}

macro_rules! scenarios {
    ($($(#[$about:meta])* $name:ident {
        now | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
        $(| $now:tt | $capacity:tt | $rate:tt | $cost:tt
          | $allowed:ident | $remaining:tt | $retry:tt | $reset:tt | $holds:tt |)*
    })*) => {$(
        $(#[$about])*
        #[test]
        fn $name() {
            run(&[$(Row {
                now: $now,
                capacity: $capacity,
                rate: $rate,
                cost: $cost,
                expected: Expected {
                    allowed: answer!($allowed),
                    remaining: $remaining,
                    retry_after: wait($retry),
                    reset_after: wait($reset),
                    written: holds!($holds),
                },
            }),*]);
        }
    )*};
}

fn run(rows: &[Row]) {
    let mut held: Option<Held> = None;
    for (number, row) in rows.iter().enumerate() {
        let limit = Limit::new(Tokens::new(row.capacity).unwrap(), Rate::parse(row.rate.as_bytes()).unwrap());
        let now = UnixMicros::saturating(START_US.saturating_add_signed(micros(row.now)));
        let cost = Tokens::new(row.cost).unwrap();
        let peeked = limit.peek(held.as_ref(), now, cost);
        let take = limit.take(held.as_ref(), now, cost);
        assert_eq!(peeked.outcome, take.decision.outcome, "row {}: a peek says otherwise", number + 1);
        let retry_after = match take.decision.outcome {
            Outcome::Allowed | Outcome::Granted(_) | Outcome::Booked { .. } => Wait::NONE,
            Outcome::Denied { retry_after } => retry_after,
        };
        let found = Expected {
            allowed: take.decision.is_allowed(),
            remaining: take.decision.remaining,
            retry_after,
            reset_after: take.decision.reset_after,
            written: take.change.is_some(),
        };
        assert_eq!(found, row.expected, "row {}, at {}", number + 1, row.now);
        held = take.change.map(|bucket| Held { bucket, limit }).or(held);
    }
}

scenarios! {
    ten_at_five_per_second {
        now         | capacity | rate | cost | allowed | remaining | retry_after | reset_after   | holds
      | "0"         | 10       | "5"  | 1    | yes     | 9         | "0"         | "200ms"       | written |
      | "0"         | 10       | "5"  | 9    | yes     | 0         | "0"         | "2s"          | written |
      | "0"         | 10       | "5"  | 1    | no      | 0         | "200ms"     | "2s"          | -       |
      | "150ms"     | 10       | "5"  | 1    | no      | 0         | "50ms"      | "1850ms"      | -       |
      | "199_999us" | 10       | "5"  | 1    | no      | 0         | "1us"       | "1_800_001us" | -       |
      | "200ms"     | 10       | "5"  | 1    | yes     | 0         | "0"         | "2s"          | written |
      | "1s"        | 10       | "5"  | 5    | no      | 4         | "200ms"     | "1200ms"      | -       |
      | "1200ms"    | 10       | "5"  | 5    | yes     | 0         | "0"         | "2s"          | written |
      | "1h"        | 10       | "5"  | 1    | yes     | 9         | "0"         | "200ms"       | written |
    }

    five_per_15_minutes_as_for_a_login {
        now           | capacity | rate    | cost | allowed | remaining | retry_after | reset_after     | holds
      | "0"           | 5        | "5/15m" | 1    | yes     | 4         | "0"         | "3m"            | written |
      | "1s"          | 5        | "5/15m" | 1    | yes     | 3         | "0"         | "359s"          | written |
      | "2s"          | 5        | "5/15m" | 1    | yes     | 2         | "0"         | "538s"          | written |
      | "3s"          | 5        | "5/15m" | 1    | yes     | 1         | "0"         | "717s"          | written |
      | "4s"          | 5        | "5/15m" | 1    | yes     | 0         | "0"         | "896s"          | written |
      | "5s"          | 5        | "5/15m" | 1    | no      | 0         | "175s"      | "895s"          | -       |
      | "179_999_999" | 5        | "5/15m" | 1    | no      | 0         | "1us"       | "720_000_001us" | -       |
      | "3m"          | 5        | "5/15m" | 1    | yes     | 0         | "0"         | "15m"           | written |
      | "18m"         | 5        | "5/15m" | 5    | yes     | 0         | "0"         | "15m"           | written |
    }

    /// One every 86.4 ms, which no whole number of milliseconds or tokens per second says.
    a_million_a_day {
      now            | capacity | rate        | cost    | allowed | remaining | retry_after | reset_after   | holds
    | "0"            | 1000000  | "1000000/d" | 1000000 | yes     | 0         | "0"         | "1d"          | written |
    | "0"            | 1000000  | "1000000/d" | 1       | no      | 0         | "86_400"    | "1d"          | -       |
    | "86_399"       | 1000000  | "1000000/d" | 1       | no      | 0         | "1us"       | "86399913601" | -       |
    | "86_400"       | 1000000  | "1000000/d" | 1       | yes     | 0         | "0"         | "1d"          | written |
    | "43200086400"  | 1000000  | "1000000/d" | 500000  | yes     | 0         | "0"         | "1d"          | written |
    | "129600086399" | 1000000  | "1000000/d" | 1000000 | no      | 999999    | "1us"       | "1us"         | -       |
    | "129600086400" | 1000000  | "1000000/d" | 1000000 | yes     | 0         | "0"         | "1d"          | written |
    }

    /// Three every 10 us: an interval rounded to 3 or 4 us would be 11 % too fast or 17 % too slow.
    three_hundred_thousand_a_second {
        now         | capacity | rate     | cost   | allowed | remaining | retry_after | reset_after | holds
      | "0"         | 300000   | "300000" | 300000 | yes     | 0         | "0"         | "1s"        | written |
      | "0"         | 300000   | "300000" | 1      | no      | 0         | "4us"       | "1s"        | -       |
      | "3us"       | 300000   | "300000" | 1      | no      | 0         | "1us"       | "999_997us" | -       |
      | "4us"       | 300000   | "300000" | 1      | yes     | 0         | "0"         | "1s"        | written |
      | "6us"       | 300000   | "300000" | 1      | no      | 0         | "1us"       | "999_998us" | -       |
      | "7us"       | 300000   | "300000" | 1      | yes     | 0         | "0"         | "1s"        | written |
      | "10us"      | 300000   | "300000" | 1      | yes     | 0         | "0"         | "1s"        | written |
      | "500_010us" | 300000   | "300000" | 150000 | yes     | 0         | "0"         | "1s"        | written |
    }

    /// One every 0.6 s; the same limit however it is spelled, so no row but the allowed ones writes.
    a_hundred_a_minute_in_five_spellings {
        now      | capacity | rate                 | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"      | 100      | "100/m"              | 100  | yes     | 0         | "0"         | "1m"        | written |
      | "0"      | 100      | "100/60"             | 1    | no      | 0         | "600ms"     | "1m"        | -       |
      | "1s"     | 100      | "1.6666666666666667" | 2    | no      | 1         | "200ms"     | "59s"       | -       |
      | "1100ms" | 100      | "1.6666666666667"    | 2    | no      | 1         | "100ms"     | "58_900ms"  | -       |
      | "1200ms" | 100      | "100/60s"            | 2    | yes     | 0         | "0"         | "1m"        | written |
    }

    a_cost_of_5_with_4_left_takes_nothing {
        now | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0" | 10       | "1"  | 6    | yes     | 4         | "0"         | "6s"        | written |
      | "0" | 10       | "1"  | 5    | no      | 4         | "1s"        | "6s"        | -       |
      | "0" | 10       | "1"  | 4    | yes     | 0         | "0"         | "10s"       | written |
    }

    a_cost_of_the_capacity_is_allowed_when_full {
        now           | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"           | 5        | "1"  | 5    | yes     | 0         | "0"         | "5s"        | written |
      | "4_999_999us" | 5        | "1"  | 5    | no      | 4         | "1us"       | "1us"       | -       |
      | "5s"          | 5        | "1"  | 5    | yes     | 0         | "0"         | "5s"        | written |
    }

    a_cost_above_the_capacity_is_never_allowed {
        now  | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"  | 5        | "1"  | 6    | no      | 5         | "never"     | "0"         | -       |
      | "0"  | 5        | "1"  | 2    | yes     | 3         | "0"         | "2s"        | written |
      | "1s" | 5        | "1"  | 6    | no      | 4         | "never"     | "1s"        | -       |
      | "1s" | 1        | "1"  | 2    | no      | 1         | "never"     | "0"         | -       |
      | "1s" | 5        | "1"  | 5    | no      | 4         | "1s"        | "1s"        | -       |
    }

    capacity_0_denies_everything {
        now  | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"  | 0        | "5"  | 1    | no      | 0         | "never"     | "0"         | -     |
      | "1h" | 0        | "5"  | 1    | no      | 0         | "never"     | "0"         | -     |
      | "1h" | 0        | "5"  | 0    | yes     | 0         | "0"         | "0"         | -     |
    }

    rate_0_is_a_one_off_allowance {
        now    | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"    | 3        | "0"  | 0    | yes     | 3         | "0"         | "0"         | -       |
      | "0"    | 3        | "0"  | 2    | yes     | 1         | "0"         | "never"     | written |
      | "1s"   | 3        | "0"  | 2    | no      | 1         | "never"     | "never"     | -       |
      | "1d"   | 3        | "0"  | 1    | yes     | 0         | "0"         | "never"     | written |
      | "365d" | 3        | "0"  | 1    | no      | 0         | "never"     | "never"     | -       |
    }

    a_cost_of_0_states_where_the_client_stands {
        now     | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"     | 10       | "5"  | 0    | yes     | 10        | "0"         | "0"         | -       |
      | "0"     | 10       | "5"  | 10   | yes     | 0         | "0"         | "2s"        | written |
      | "100ms" | 10       | "5"  | 0    | yes     | 0         | "0"         | "1900ms"    | -       |
      | "500ms" | 20       | "1"  | 0    | yes     | 2         | "0"         | "17_500ms"  | -       |
    }

    /// A second caller with another limit cannot mint tokens for the first, however often they take turns.
    a_raised_limit_mints_nothing {
        now    | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"    | 10       | "5"  | 10   | yes     | 0         | "0"         | "2s"        | written |
      | "0"    | 100      | "5"  | 1    | no      | 0         | "200ms"     | "20s"       | written |
      | "0"    | 10       | "5"  | 1    | no      | 0         | "200ms"     | "2s"        | written |
      | "0"    | 100      | "50" | 1    | no      | 0         | "20ms"      | "2s"        | written |
      | "20ms" | 100      | "50" | 1    | yes     | 0         | "0"         | "2s"        | written |
    }

    a_cut_limit_caps_what_is_held {
        now | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0" | 100      | "10" | 1    | yes     | 99        | "0"         | "100ms"     | written |
      | "0" | 10       | "10" | 1    | yes     | 9         | "0"         | "100ms"     | written |
      | "0" | 100      | "10" | 1    | yes     | 8         | "0"         | "9200ms"    | written |
    }

    /// The second row brings 5/s into force, so that its promise holds; the last finds 1/s in force until it came.
    time_until_a_change_counts_at_the_rate_in_force {
        now     | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"     | 10       | "1"  | 10   | yes     | 0         | "0"         | "10s"       | written |
      | "500ms" | 10       | "5"  | 1    | no      | 0         | "100ms"     | "1900ms"    | written |
      | "600ms" | 10       | "5"  | 1    | yes     | 0         | "0"         | "2s"        | written |
      | "1s"    | 10       | "1"  | 2    | yes     | 0         | "0"         | "10s"       | written |
      | "3s"    | 10       | "5"  | 3    | no      | 2         | "200ms"     | "1600ms"    | written |
    }

    /// An hour back: nothing comes in by that, and nobody waits an hour. The denial moves the bucket to the new clock.
    a_clock_set_back_adds_nothing_and_locks_nobody_out {
        now            | capacity | rate | cost | allowed | remaining | retry_after | reset_after | holds
      | "0"            | 10       | "5"  | 10   | yes     | 0         | "0"         | "2s"        | written |
      | "-1h"          | 10       | "5"  | 1    | no      | 0         | "200ms"     | "2s"        | written |
      | "-3_599_900ms" | 10       | "5"  | 1    | no      | 0         | "100ms"     | "1900ms"    | -       |
      | "-3_599_800ms" | 10       | "5"  | 1    | yes     | 0         | "0"         | "2s"        | written |
    }
}
