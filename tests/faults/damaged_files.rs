//! Files that were cut short or have a bit flipped: the server refuses or repairs them as it does any, and never dies of us.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rounds;
use crate::support::kinds::write_all;
use crate::support::random::Random;
use crate::support::stream::aof;
use crate::support::{Server, module, server_binary};

/// What became of a server that was started on a damaged file.
#[derive(Debug, Default)]
struct Outcomes {
    came_up: u32,
    refused: u32,
    /// It said that it ends, and hung. Seen on Redis 7.0, 8.6 and Valkey 9, and on 8.6 as often without any module.
    hung_at_its_end: u32,
}

/// Starts a server on `bytes`, and sees that it comes up or ends by itself with an exit code.
fn start_on(name: &str, bytes: &[u8], options: &[&str], outcomes: &mut Outcomes, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    let log = folder.path().join("log");
    let mut process = Command::new(server_binary())
        .args(["--port", "0", "--save", "", "--unixsocket", "socket", "--dir"])
        .arg(folder.path())
        .arg("--logfile")
        .arg(&log)
        .arg("--loadmodule")
        .arg(module())
        .args(options)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        // A damaged name in it may be any bytes.
        let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        for trace in ["REPORT START", "crashed by signal", "ASSERTION FAILED", "panicked", "Guru Meditation"] {
            assert!(!said.contains(trace), "{what}: {trace}\n{said}");
        }
        if let Some(status) = process.try_wait().unwrap() {
            // By itself, and not by a signal; for some damage the code is 0.
            assert!(status.code().is_some_and(|code| code <= 1), "{what}: {status}\n{said}");
            outcomes.refused += 1;
            return;
        }
        if said.contains("eady to accept connections") {
            outcomes.came_up += 1;
            process.kill().unwrap();
            process.wait().unwrap();
            return;
        }
        if begun.elapsed() > Duration::from_secs(5) && said.contains("Internal error in RDB reading") {
            outcomes.hung_at_its_end += 1;
            process.kill().unwrap();
            process.wait().unwrap();
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: neither up nor gone\n{said}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn damage(random: &mut Random, bytes: &[u8]) -> (Vec<u8>, String) {
    let mut damaged = bytes.to_vec();
    let at = random.index(bytes.len());
    if random.below(4) == 0 {
        damaged.truncate(at);
        return (damaged, format!("cut to {at} bytes"));
    }
    let bit = random.below(8);
    damaged[at] ^= 1 << bit;
    (damaged, format!("bit {bit} of byte {at} flipped"))
}

#[test]
fn a_damaged_rdb_file_is_refused_or_loaded() {
    let mut random = Random::seeded();
    // Without a checksum, damage reaches the values.
    let server = Server::with(&["--rdbchecksum", "no", "--rdbcompression", "no"]);
    let mut client = server.connect();
    write_all(&mut client);
    let _: String = client.line("SAVE");
    let good = fs::read(server.folder().join("dump.rdb")).unwrap();
    let mut outcomes = Outcomes::default();
    for round in 0..rounds(400) {
        let (damaged, how) = damage(&mut random, &good);
        start_on("dump.rdb", &damaged, &[], &mut outcomes, &format!("round {round}, {how}"));
    }
    println!("{outcomes:?}");
    assert!(outcomes.refused > 0);
}

#[test]
fn a_damaged_append_only_file_is_refused_or_repaired() {
    let mut random = Random::seeded();
    let server = Server::with(&["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no"]);
    let mut client = server.connect();
    write_all(&mut client);
    let good = aof(&server, ".incr.aof");
    let mut outcomes = Outcomes::default();
    for round in 0..rounds(400) {
        let (damaged, how) = damage(&mut random, &good);
        let options = ["--appendonly", "yes", "--aof-load-truncated", "yes"];
        start_on("appendonly.aof", &damaged, &options, &mut outcomes, &format!("round {round}, {how}"));
    }
    println!("{outcomes:?}");
    assert!(outcomes.refused > 0 && outcomes.came_up > 0);
}
