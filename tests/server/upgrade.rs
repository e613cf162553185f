//! Files that released versions have written, in `golden/`: every later version loads them and answers as it was
//! recorded.
//!
//! A version's files are made once, by Redis 7.0, whose files every supported server reads:
//!
//! ```text
//! RL_GOLDEN=write RL_SERVER=/path/to/redis-7.0 cargo test --test server upgrade
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;
use rl_core::codec::{RecordedExpiry, State, encode_long_record};
use rl_core::log::{Charge, Step};
use rl_core::{Counter, Log, Micros, Period, Quota, QuotaLimit, Tokens, UnixMicros, UnixMillis, WindowLimit};

use crate::support::specimens::restore;
use crate::support::stream::aof;
use crate::support::{Client, Server, eventually, held};

/// What every file of 0.1.0 holds: key, expiry, and the answer to `RL.PEEK key`, which is the same until the year 2250.
const KEYS: [(&str, i64, [i64; 5]); 12] = [
    ("once", -1, [1, 13, 0, -1, 20]),
    ("once:emptied", -1, [0, 0, -1, -1, 3]),
    ("once:until-the-year-3000", 32_503_680_000_000, [1, 2, 0, -1, 3]),
    ("once:raised", -1, [1, 10, 0, -1, 50]),
    ("slow", MAX, [1, 1, 0, MAX, MAX]),
    ("ahead", -1, [1, 1, 0, 1_700, 10]),
    ("ahead:until-the-year-3000", 32_503_680_000_000, [1, 3, 0, 4_200, 10]),
    ("owing", -1, [0, 0, 400, 2_200, 10]),
    ("window", -1, [1, 5, 0, 55_000, 10]),
    ("window:stepped", -1, [1, 2, 0, 60_000, 10]),
    ("window:full", 32_503_680_000_000, [0, 0, 25_000, 55_000, 5]),
    ("counter", -1, [1, 25, 0, 105_000, 100]),
];

/// The same of quotas, but for the waits: a boundary comes closer.
const QUOTAS: [(&str, i64, [i64; 3]); 2] = [("quota", -1, [1, 7, 10]), ("quota:full", -1, [0, 0, 3])];

/// 2^53 - 1.
const MAX: i64 = 9_007_199_254_740_991;

/// Made by takes, but for those whose clock is ahead until the year 2255, so that they stand still.
fn write_keys(client: &mut Client) {
    for line in [
        "RL.TAKE once 20 0 7",
        "RL.TAKE once:emptied 3 0 3",
        "RL.TAKE once:until-the-year-3000 3 0",
        "PEXPIREAT once:until-the-year-3000 32503680000000",
        "RL.TAKE once:raised 20 0 7",
        "RL.TAKE once:raised 50 0 3",
        "RL.TAKE slow 9007199254740991 1/9007199254.740991 9007199254740990",
    ] {
        let _: Value = client.line(line);
    }
    let in_2255_us = MAX.unsigned_abs();
    let year_3000 = RecordedExpiry::At(UnixMillis::saturating(32_503_680_000_000));
    restore(client, "ahead", RecordedExpiry::None, &held(10, "5", (2, 100_000), in_2255_us));
    restore(client, "ahead:until-the-year-3000", year_3000, &held(10, "100/60", (3, 0), in_2255_us));
    restore(client, "owing", RecordedExpiry::None, &held(10, "5", (0, 200_000), in_2255_us));
    let mut put = |key: &str, expiry, state| {
        let payload = encode_long_record(expiry, &state);
        let _: () = client.ask(&[b"RL.RESTORE".as_slice(), key.as_bytes(), &payload]);
    };
    put("window", RecordedExpiry::None, State::Log(log(10)));
    put("window:stepped", RecordedExpiry::None, State::Log(log(10)));
    let step = Step { limit: per_minute(10), at: IN_2255, given: tokens(1), charged: tokens(4) };
    put("window:stepped", RecordedExpiry::None, State::Step(step));
    put("window:full", year_3000, State::Log(log(5)));
    let (previous, current) = (tokens(80), tokens(15));
    let counter = Counter { limit: per_minute(100), previous, current, position_us: 15_000_000, last_change: IN_2255 };
    put("counter", RecordedExpiry::None, State::Counter(counter));
    for (key, most, period) in [("quota", 10, "month+02:00"), ("quota:full", 3, "1d")] {
        let limit = QuotaLimit { limit: tokens(most), period: Period::parse(period.as_bytes()).unwrap() };
        put(key, RecordedExpiry::None, State::Quota(Quota { limit, used: tokens(3), last_change: IN_2255 }));
    }
}

const IN_2255: UnixMicros = UnixMicros::saturating(MAX.unsigned_abs());

fn tokens(count: u64) -> Tokens {
    Tokens::new(count).unwrap()
}

fn per_minute(most: u64) -> WindowLimit {
    WindowLimit::new(tokens(most), Micros::new(60_000_000).unwrap()).unwrap()
}

/// Two charges: of 2, 35 s ago, and of 3, 5 s ago.
fn log(most: u64) -> Log {
    let mut log = Log::new(per_minute(most), IN_2255);
    for (age_us, cost) in [(35_000_000, 2), (5_000_000, 3)] {
        log.remember(Charge { age_us, cost: tokens(cost) }).unwrap();
    }
    log
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/golden").join(name)
}

/// A server on a golden file, which it finds under the name that it looks for.
fn server_on(name: &str, as_name: &str, options: &[&str]) -> Server {
    let content = fs::read(golden(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Server::on(&[(as_name, &content)], options)
}

fn assert_answers_as_recorded(client: &mut Client) {
    for (key, expiry, answer) in KEYS {
        assert_eq!(client.ask::<[i64; 5]>(&["RL.PEEK", key]), answer, "{key}");
        assert_eq!(client.expiry(key), expiry, "{key}");
    }
    for (key, expiry, answer) in QUOTAS {
        let [allowed, remaining, _, _, limit] = client.ask(&["RL.PEEK", key]);
        assert_eq!(([allowed, remaining, limit], client.expiry(key)), (answer, expiry), "{key}");
    }
    assert_eq!(client.line::<usize>("DBSIZE"), KEYS.len() + QUOTAS.len());
}

/// The keys are as recorded, survive being written by this version, and go on.
fn assert_goes_on(server: &Server) {
    let mut client = server.connect();
    assert_answers_as_recorded(&mut client);
    let digest = client.dataset_digest();
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(client.dataset_digest(), digest);
    assert_answers_as_recorded(&mut client);

    assert_eq!(client.reply("RL.TAKE once 20 0 14").allowed, 0);
    assert_eq!(client.reply("RL.TAKE once 20 0 13").allowed, 1);
    assert_eq!(client.reply("RL.TAKE once:emptied 3 0").allowed, 0);
    assert_eq!(client.reply("RL.TAKE ahead 10 5/h 2").allowed, 0);
    assert_eq!(client.reply("RL.TAKE ahead 10 5/h").allowed, 1);
    assert_eq!(client.reply("RL.WINDOW window 10 1m 6").allowed, 0);
    assert_eq!(client.reply("RL.WINDOW window 10 1m 5").allowed, 1);
    assert_eq!(client.reply("RL.COUNTER counter 100 1m 26").allowed, 0);
    assert_eq!(client.reply("RL.COUNTER counter 100 1m 25").allowed, 1);
    assert_eq!(client.reply("RL.QUOTA quota 10 month+02:00 8").allowed, 0);
    assert_eq!(client.reply("RL.QUOTA quota 10 month+02:00 7").allowed, 1);
}

#[test]
fn an_rdb_file_of_0_1_0_is_loaded() {
    assert_goes_on(&server_on("0.1.0.rdb", "dump.rdb", &[]));
}

#[test]
fn an_aof_of_0_1_0_is_replayed() {
    assert_goes_on(&server_on("0.1.0.aof", "appendonly.aof", &["--appendonly", "yes"]));
}

#[test]
fn a_rewritten_aof_of_0_1_0_is_replayed() {
    assert_goes_on(&server_on("0.1.0-rewritten.aof", "appendonly.aof", &["--appendonly", "yes"]));
}

/// Writes the golden files where `RL_GOLDEN=write`; else sees that they would be made of what is recorded.
#[test]
fn this_version_writes_what_is_recorded_of_0_1_0() {
    let server = Server::with(&["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no"]);
    let mut client = server.connect();
    write_keys(&mut client);
    assert_answers_as_recorded(&mut client);
    if std::env::var_os("RL_GOLDEN").is_none_or(|wish| wish != "write") {
        return;
    }
    let version = server.info("server", "redis_version").unwrap();
    assert!(version.starts_with("7.0."), "golden files are made by the oldest server, not by {version}");
    fs::write(golden("0.1.0.aof"), aof(&server, ".incr.aof")).unwrap();
    let _: () = client.line("SAVE");
    fs::copy(server.folder().join("dump.rdb"), golden("0.1.0.rdb")).unwrap();
    let _: String = client.line("BGREWRITEAOF");
    eventually("the file is rewritten", || {
        server.info("persistence", "aof_rewrite_in_progress").as_deref() == Some("0")
    });
    fs::write(golden("0.1.0-rewritten.aof"), aof(&server, ".base.aof")).unwrap();
}
