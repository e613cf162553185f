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
use rl_core::UnixMillis;
use rl_core::codec::RecordedExpiry;

use crate::support::specimens::restore;
use crate::support::stream::aof;
use crate::support::{Client, Server, eventually, held};

/// What every file of 0.1.0 holds: key, expiry, and the answer to `RL.PEEK key`, which is the same until the year 2250.
const BUCKETS: [(&str, i64, [i64; 5]); 8] = [
    ("once", -1, [1, 13, 0, -1, 20]),
    ("once:emptied", -1, [0, 0, -1, -1, 3]),
    ("once:until-the-year-3000", 32_503_680_000_000, [1, 2, 0, -1, 3]),
    ("once:raised", -1, [1, 10, 0, -1, 50]),
    ("slow", MAX, [1, 1, 0, i64::MAX, MAX]),
    ("ahead", -1, [1, 1, 0, 1_700, 10]),
    ("ahead:until-the-year-3000", 32_503_680_000_000, [1, 3, 0, 4_200, 10]),
    ("owing", -1, [0, 0, 400, 2_200, 10]),
];

/// 2^53 - 1.
const MAX: i64 = 9_007_199_254_740_991;

/// Made by takes, but for those whose clock is ahead until the year 2255, so that they stand still.
fn write_buckets(client: &mut Client) {
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
    for (key, expiry, answer) in BUCKETS {
        assert_eq!(client.ask::<[i64; 5]>(&["RL.PEEK", key]), answer, "{key}");
        assert_eq!(client.expiry(key), expiry, "{key}");
    }
    assert_eq!(client.line::<usize>("DBSIZE"), BUCKETS.len());
}

/// The buckets are as recorded, survive being written by this version, and go on.
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
    write_buckets(&mut client);
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
