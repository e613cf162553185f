//! `RL.WINDOW`, `RL.COUNTER` and `RL.QUOTA`: what is special to each.

use redis::Value;

use crate::support::kinds::Sight;
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::info;
use crate::support::{Client, Server, eventually, now_us};

const LIMIT: &str = "ERR limit must be an integer from 0 to 9007199254740991 tokens";
const COST: &str = "ERR cost must be an integer from 0 to 9007199254740991 tokens";
const WINDOW: &str = "ERR window must be a number of seconds, or a number with a unit (ms, s, m, h, d), from 1 to \
    9007199254740991 microseconds";
const PERIOD: &str = "ERR period must be a number of seconds, a number with a unit (ms, s, m, h, d), day, week, month or \
    year, and may be followed by an offset from UTC (+hh:mm, -hh:mm)";
const TOO_MANY: &str = "ERR limit must be at most rl.window-limit tokens, as an exact window remembers each charge: use \
    RL.COUNTER, which remembers two sums";
const TOO_LONG: &str = "ERR window must be at most 17592186044415 microseconds (203 days) to be exact: use RL.COUNTER for a \
    longer one";

fn error(client: &mut Client, line: &str) -> String {
    client.error(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    let server = Server::start();
    let mut client = server.connect();
    for command in ["RL.WINDOW", "RL.COUNTER", "RL.QUOTA"] {
        let (word, arity) =
            (if command == "RL.QUOTA" { PERIOD } else { WINDOW }, "ERR wrong number of arguments for '");
        for arguments in ["", " key", " key 10", " key 10 1h 1 1"] {
            assert!(error(&mut client, &format!("{command}{arguments}")).starts_with(arity), "{command}{arguments}");
        }
        for (arguments, text) in [
            ("x 1h", LIMIT),
            ("-1 1h", LIMIT),
            ("1.5 1h", LIMIT),
            ("01 1h", LIMIT),
            ("9007199254740992 1h", LIMIT),
            ("10 0", word),
            ("10 0s", word),
            ("10 -1", word),
            ("10 1w", word),
            ("10 x", word),
            ("10 1e3", word),
            ("10 0.0000001", word),
            ("10 9007199255", word),
            ("10 1h -1", COST),
            ("10 1h x", COST),
            ("10 1h 9007199254740992", COST),
        ] {
            let line = format!("{command} key {arguments}");
            assert_eq!(error(&mut client, &line), text, "{line}");
        }
    }
    for period in ["month+2:00", "month+24:00", "Month", "month ", "1month", "+02:00", "week+02:00:00"] {
        assert_eq!(client.error(&["RL.QUOTA", "key", "10", period]), PERIOD, "{period}");
    }
    assert!(!client.exists("key"));
}

#[test]
fn a_window_of_too_many_calls_or_too_long_a_time_is_refused_and_told_of_the_counter() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.five("RL.WINDOW key 100000 17592186044.415ms 1")[0], 1);
    assert_eq!(error(&mut client, "RL.WINDOW key 100001 1h"), TOO_MANY);
    assert_eq!(error(&mut client, "RL.WINDOW key 10 17592186044.416ms"), TOO_LONG);
    let _: String = client.line("CONFIG SET rl.window-limit 1000000");
    assert_eq!(client.five("RL.WINDOW key 1000000 1h 1000000")[0], 0, "one is used");
    assert_eq!(client.five("RL.WINDOW key 1000000 1h 999999")[..2], [1, 0]);
    assert_eq!(error(&mut client, "RL.WINDOW key 1000001 1h"), TOO_MANY);
    // What is there stays, and goes on being seen and given back to.
    let _: String = client.line("CONFIG SET rl.window-limit 0");
    assert_eq!(error(&mut client, "RL.WINDOW key 1 1h"), TOO_MANY);
    assert_eq!(client.five("RL.GIVE key 5")[..2], [1, 5]);
    assert_eq!(client.five("RL.PEEK key")[1], 5);
    for line in ["RL.COUNTER c 9007199254740991 285y", "RL.COUNTER c 9007199254740991 104249d"] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(client.try_ask::<Value>(&words).is_ok(), line.ends_with('d'), "{line}");
    }
}

#[test]
fn a_window_takes_8_bytes_a_call_whatever_it_costs() {
    let server = Server::start();
    let mut client = server.connect();
    let empty: u64 = {
        client.five("RL.WINDOW one 8192 1h 8000");
        client.line("MEMORY USAGE one")
    };
    client.feed((0..8_192).map(|_| "RL.WINDOW key 8192 1h".to_owned()));
    assert_eq!(client.five("RL.WINDOW key 8192 1h")[0], 0, "it is full");
    let charges: u64 = info(&mut client, "key", "charges").parse().unwrap();
    // Calls in one microsecond are one charge.
    assert!((1..=8_192).contains(&charges), "{charges}");
    let full: u64 = client.line("MEMORY USAGE key");
    assert!(full <= 8 * 8_192 + empty, "{full} for {charges} charges");
    assert!(empty <= 160, "{empty} for one");
}

#[test]
fn a_window_tells_replicas_of_a_call_in_a_few_bytes_however_many_it_remembers() {
    let primary = primary();
    let replica = primary.replica();
    let mut client = primary.connect();
    let bytes = |client: &mut Client| {
        let before = sent(&primary);
        client.five("RL.WINDOW key 50000 1h");
        sent(&primary) - before
    };
    let first = bytes(&mut client);
    client.feed((0..20_000).map(|_| "RL.WINDOW key 50000 1h".to_owned()));
    let later = bytes(&mut client);
    assert!(later <= first + 16 && later < 200, "{first} bytes, then {later}");
    caught_up(&primary, &replica);
    assert_eq!(Sight::of(&mut replica.connect(), "key"), Sight::of(&mut client, "key"));
}

/// The ring of a log goes round many times here, while calls leave and come.
#[test]
fn a_busy_short_window_is_the_same_on_a_replica_and_after_a_restart() {
    let primary = primary();
    // With `everysec` a write waits while the file is being synced, and a crash then takes what was confirmed along.
    let mut replica = primary.replica_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = primary.connect();
    for round in 0..40 {
        client.feed((0..500).map(|call| format!("RL.WINDOW key:{} 37 {}ms {}", call % 3, 1 + round % 5, call % 4)));
        if round % 10 == 3 {
            client.feed(["RL.GIVE key:1 5".to_owned(), "RL.GIVE key:2 1".to_owned()]);
        }
    }
    // They expire within a second and an eighth of their windows; kept, they can be compared in peace.
    client.feed((0..3).map(|key| format!("RL.WINDOW key:{key} 1000 1h 1")));
    let keys: Vec<String> = (0..3).map(|key| format!("key:{key}")).collect();
    let before = Sight::of_all(&mut client, &keys);
    caught_up(&primary, &replica);
    assert_eq!(Sight::of_all(&mut replica.connect(), &keys), before);
    let _: String = replica.connect().line("REPLICAOF NO ONE");
    // A replica begins its file anew with what it is sent first; before that is done a crash takes it along.
    eventually("the replica's file is written", || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| replica.info("persistence", field).as_deref() == Some("0"))
    });
    // It asks for its primary again when it comes back; what it holds then is to be from its file.
    drop((client, primary));
    replica.crash_and_restart();
    let restarted = Sight::of_all(&mut replica.connect(), &keys);
    assert!(restarted == before, "{restarted:?}\n{before:?}");
}

#[test]
fn a_denied_call_on_a_window_is_told_when_enough_has_left() {
    let server = Server::start();
    let mut client = server.connect();
    let first = client.timed("RL.WINDOW key 3 1h");
    client.feed((0..2).map(|_| "RL.WINDOW key 3 1h".to_owned()));
    let denied = client.timed("RL.WINDOW key 3 1h");
    let earliest = 3_600_000 - (denied.to_us - first.from_us).div_ceil(1_000) as i64;
    assert!((earliest..=3_600_000).contains(&denied.reply.retry_after_ms), "{denied:?}");
    // A window that passes while one looks.
    client.feed((0..2).map(|_| "RL.WINDOW short 2 40ms".to_owned()));
    let begun = now_us();
    while client.five("RL.WINDOW short 2 40ms")[0] == 0 {
        assert!(now_us() - begun < 20_000_000);
    }
    assert!(now_us() - begun < 19_000_000);
}

#[test]
fn a_quota_ends_where_the_calendar_says() {
    let server = Server::start();
    let mut client = server.connect();
    let until = |client: &mut Client, period: &str| {
        let taken = client.timed(&format!("RL.QUOTA {period} 5 {period}"));
        (
            taken.reply.reset_after_ms,
            i64::try_from(taken.from_us / 1_000).unwrap(),
            i64::try_from(taken.to_us / 1_000).unwrap(),
        )
    };
    for (period, length_ms, offset_ms) in
        [("1d", 86_400_000, 0), ("day+05:30", 86_400_000, 19_800_000), ("1h", 3_600_000, 0), ("90m", 5_400_000, 0)]
    {
        let (reset_ms, from_ms, to_ms) = until(&mut client, period);
        let end = |now: i64| length_ms - (now + offset_ms).rem_euclid(length_ms);
        assert!(reset_ms <= end(from_ms) + 1 && reset_ms >= end(to_ms) - 1, "{period}: {reset_ms} {}", end(from_ms));
        assert_eq!(info(&mut client, period, "period"), period.replace("day", "1d"), "{period}");
    }
    let (month, ..) = until(&mut client, "month");
    let (year, ..) = until(&mut client, "year");
    let (week, ..) = until(&mut client, "week");
    assert!(week <= 7 * 86_400_000 && month <= 31 * 86_400_000 && year <= 366 * 86_400_000);
    // In December they end together, and the year was asked about a moment later.
    assert!(month <= year + 20_000, "{month} {year}");
}
