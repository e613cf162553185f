//! `RL.RESTORE` with records that are valid, or were: each is refused, or is a state like any other.

use rl_core::codec::{Record, RecordedExpiry, State, decode_record, encode_long_record};
use rl_core::log::{Charge, Step};
use rl_core::period::Span;
use rl_core::{
    Bucket, Counter, Held, Limit, Log, Micros, Period, Quota, QuotaLimit, Rate, Tokens, UnixMicros, UnixMillis, Usage,
    WindowLimit,
};

use crate::support::Server;
use crate::support::dump::{Dump, assert_no_crash};
use crate::support::hostile::{accepted, answers, use_key};
use crate::support::random::Random;

const MAX: u64 = (1 << 53) - 1;

fn bucket(random: &mut Random) -> State {
    let rate = Rate::new(random.biased(MAX).into(), random.biased(MAX).max(1).into()).unwrap();
    let limit = Limit::new(tokens(random, MAX), rate);
    let held = tokens(random, limit.capacity().get());
    let level = limit.shares(held) - i128::from(random.biased(rate.period_us().get()));
    State::Bucket(Held { bucket: Bucket { level, last_change: time(random) }, limit })
}

fn log(random: &mut Random) -> State {
    let mut log = Log::new(window_limit(random), time(random));
    let mut ages: Vec<u64> = (0..random.below(20)).map(|_| random.biased(log.limit().window_us().get() - 1)).collect();
    ages.sort_unstable_by(|a, b| b.cmp(a));
    for age_us in ages {
        // One that is too much, or of the same age, is left out.
        let _ = log.remember(Charge { age_us, cost: tokens(random, 1_000) });
    }
    State::Log(log)
}

fn step(random: &mut Random) -> State {
    let limit = window_limit(random);
    let charged = tokens(random, limit.limit().get());
    State::Step(Step { limit, at: time(random), given: tokens(random, MAX), charged })
}

fn counter(random: &mut Random) -> State {
    let limit = WindowLimit::new(tokens(random, MAX), micros(random.biased(MAX).max(1))).unwrap();
    State::Counter(Counter {
        limit,
        previous: tokens(random, MAX),
        current: tokens(random, MAX),
        position_us: random.biased(limit.window_us().get() - 1),
        last_change: time(random),
    })
}

fn quota(random: &mut Random) -> State {
    let span = match random.below(5) {
        0 => Span::Week,
        1 => Span::Month,
        2 => Span::Year,
        _ => Span::Fixed(random.biased(MAX).max(1).try_into().unwrap()),
    };
    let offset = random.below(2 * 1_439 + 1) as i16 - 1_439;
    let limit = QuotaLimit { limit: tokens(random, MAX), period: Period::new(span, offset).unwrap() };
    State::Quota(Quota { limit, used: tokens(random, MAX), last_change: time(random) })
}

fn window_limit(random: &mut Random) -> WindowLimit {
    let window = micros(random.biased(Log::LONGEST_WINDOW.get()).max(1));
    WindowLimit::new(tokens(random, Log::LARGEST_LIMIT), window).unwrap()
}

fn tokens(random: &mut Random, most: u64) -> Tokens {
    Tokens::new(random.biased(most)).unwrap()
}

fn micros(count: u64) -> Micros {
    Micros::new(count).unwrap()
}

fn time(random: &mut Random) -> UnixMicros {
    UnixMicros::saturating(random.biased(MAX))
}

/// A valid record, or what is left of one.
fn some_record(random: &mut Random) -> Vec<u8> {
    let kind = [bucket, log, step, counter, quota][random.index(5)];
    let state = kind(random);
    let expiry = match random.below(3) {
        0 => RecordedExpiry::None,
        1 => RecordedExpiry::Unstated,
        _ => RecordedExpiry::At(UnixMillis::saturating(random.biased(MAX).into())),
    };
    let mut record = encode_long_record(expiry, &state);
    for _ in 0..random.below(4) {
        let at = random.index(record.len());
        match random.below(4) {
            0 => record[at] ^= 1 << random.below(8),
            1 => record[at] = random.below(256) as u8,
            2 => record.insert(at, random.below(256) as u8),
            _ => record.truncate(at + 1),
        }
    }
    record
}

/// The key for a record: of those that hold what the record is about.
fn key_of(payload: &[u8], at: usize) -> String {
    let holds = match decode_record(payload).map(|record: Record<State>| record.state) {
        Err(_) => "none",
        Ok(State::Bucket(_)) => "bucket",
        Ok(State::Log(_) | State::Step(_)) => "log",
        Ok(State::Counter(_)) => "counter",
        Ok(State::Quota(_)) => "quota",
    };
    format!("{holds}:{}", at % 200)
}

#[test]
fn random_records_are_refused_or_states_that_survive_a_reload() {
    let mut server = Server::start();
    let mut client = server.connect();
    let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    let mut random = Random::seeded();
    let payloads: Vec<_> = (0..20_000).map(|_| some_record(&mut random)).collect();
    let mut pipeline = redis::pipe();
    for (at, payload) in payloads.iter().enumerate() {
        pipeline.cmd("RL.RESTORE").arg(key_of(payload, at)).arg(payload);
    }
    let refusals = [
        "ERR payload must be a record of RL.RESTORE: it is malformed",
        "ERR payload must be a whole record of RL.RESTORE: it ends too early",
        "ERR payload must be of a version that this module knows: it was written by a newer one",
        "ERR payload must be of a kind that this module knows",
        "ERR payload must hold numbers within their ranges",
    ];
    let mut states = 0;
    for (payload, answer) in payloads.iter().zip(answers(&mut client, &pipeline)) {
        let taken = accepted(&answer, &refusals);
        assert_eq!(taken, decode_record::<State>(payload).is_ok(), "{payload:02x?}");
        states += u32::from(taken);
    }
    assert!((4_000..16_000).contains(&states), "{states} of 20000 are states");

    // Those that have not expired are used, and put back as they were.
    let mut kept: Vec<(String, Dump)> = Vec::new();
    for key in client.line::<Vec<String>>("KEYS *") {
        if client.ask::<i64>(&["EXISTS", &key]) == 1 {
            kept.push((key.clone(), Dump::of(&mut client, &key)));
            use_key(&mut client, &key);
        }
    }
    let _: () = client.line("FLUSHALL");
    for (key, dump) in &kept {
        let _: () = client.ask(&[b"RESTORE".as_slice(), key.as_bytes(), b"0", dump.bytes()]);
    }
    let digest = client.dataset_digest();
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(client.dataset_digest(), digest);
    assert_eq!(client.line::<usize>("DBSIZE"), kept.len());
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}
