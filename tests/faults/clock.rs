//! A clock that jumps and drifts under a running server, and a replica whose clock is another. The clock is `clock.c`,
//! which is preloaded into the server.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::kinds::{KINDS, Sight};
use crate::support::replicas::caught_up;
use crate::support::{Client, Server, eventually, free_port, not_tested, now_us};

const HOUR: i64 = 3_600;

/// A clock that can be set.
struct Clock {
    folder: TempDir,
    library: PathBuf,
}

impl Clock {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/clock.c");
        let library = folder.path().join("clock.so");
        let output =
            Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let clock = Self { folder, library };
        std::fs::write(clock.file(), [0; 24]).unwrap();
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Sets it so many seconds ahead of the system's.
    fn set(&self, seconds: i64) {
        self.write(seconds * 1_000_000, 0);
    }

    /// Lets it run faster by so many millionths, from now on.
    fn drift(&self, ppm: i64) {
        self.write(0, ppm);
    }

    fn write(&self, offset_us: i64, drift_ppm: i64) {
        let numbers = [offset_us, i64::try_from(now_us()).unwrap(), drift_ppm];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        std::fs::OpenOptions::new().write(true).open(self.file()).unwrap().write_all_at(&bytes, 0).unwrap();
    }

    /// A server that goes by it; `None`, and what goes untested is said, if the server does not ask the C library for the time.
    fn server(&self, options: &[&str]) -> Option<Server> {
        let (library, file) = (self.library.to_str().unwrap(), self.file());
        let environment = [("LD_PRELOAD", library), ("CLOCK_FILE", file.to_str().unwrap())];
        let server = Server::within(&environment, options);
        let mut client = server.connect();
        let before = time(&mut client);
        self.set(2 * HOUR);
        let shown = time(&mut client);
        self.set(0);
        if shown < before + 7_000 {
            not_tested("clocks: the server does not go by a preloaded one");
            return None;
        }
        Some(server)
    }
}

fn time(client: &mut Client) -> u64 {
    let [seconds, _]: [u64; 2] = client.line("TIME");
    seconds
}

/// A limit of 10 that takes an hour to come back, of each type.
fn lines() -> [(&'static str, String); 4] {
    ["RL.TAKE b 10 10/h", "RL.WINDOW w 10 1h", "RL.COUNTER c 10 1h", "RL.QUOTA q 10 1h"]
        .map(|line| (line.split(' ').nth(1).unwrap(), line.to_owned()))
}

fn take_all(client: &mut Client, line: &str) -> i64 {
    (0..100).take_while(|_| client.five(line)[0] == 1).count() as i64
}

#[test]
fn a_step_back_locks_nobody_out_and_admits_nothing_extra() {
    let clock = Clock::new();
    let Some(server) = clock.server(&[]) else { return };
    let mut client = server.connect();
    for (key, line) in lines() {
        assert_eq!(take_all(&mut client, &line), 10, "{key}");
        clock.set(-HOUR);
        let [allowed, remaining, retry_ms, ..] = client.five(&line);
        assert_eq!((allowed, remaining), (0, 0), "{key}: nothing extra");
        // Two windows is the longest that a counter makes wait, whatever the clock did.
        assert!((1..=2 * 3_600_000).contains(&retry_ms), "{key}: {retry_ms}");
        clock.set(retry_ms / 1_000 + 1 - HOUR);
        assert_eq!(client.five(&line)[0], 1, "{key}: let in after {retry_ms} ms of the new clock");
        clock.set(0);
        let _: i64 = client.line(&format!("DEL {key}"));
    }
}

#[test]
fn a_step_forth_gives_back_what_that_time_would_and_no_more() {
    let clock = Clock::new();
    let Some(server) = clock.server(&[]) else { return };
    let mut client = server.connect();
    for (key, line) in lines() {
        assert_eq!(take_all(&mut client, &line), 10, "{key}");
        clock.set(2 * HOUR);
        assert_eq!(take_all(&mut client, &line), 10, "{key}: the limit and no more");
        assert_eq!(client.five(&line)[0], 0, "{key}");
        // And back to where it was, and forth again: the bucket is not filled twice by the same hour.
        clock.set(0);
        assert_eq!(take_all(&mut client, &line), 0, "{key}");
        let _: i64 = client.line(&format!("DEL {key}"));
    }
}

#[test]
fn a_clock_that_drifts_admits_by_its_own_time() {
    let clock = Clock::new();
    let Some(server) = clock.server(&[]) else { return };
    let mut client = server.connect();
    for speed in [0.5_f64, 2.0] {
        clock.drift((speed * 1e6) as i64 - 1_000_000);
        let _: i64 = client.line("DEL drift");
        let (begun, mut admitted) = (Instant::now(), 0_u64);
        while begun.elapsed() < Duration::from_secs(3) {
            admitted += u64::from(client.five("RL.TAKE drift 50 100")[0] == 1);
        }
        // Enough of a bucket that a machine busy with something else loses nothing of what comes in.
        let due = 50.0 + 100.0 * begun.elapsed().as_secs_f64() * speed;
        println!("at {speed} times the speed {admitted} in {:?}", begun.elapsed());
        assert!((due * 0.9..=due + 2.0).contains(&(admitted as f64)), "{admitted} at {speed}, {due} were due");
        clock.set(0);
    }
}

#[test]
fn a_replica_whose_clock_is_an_hour_off_holds_the_same_and_decides_sanely_when_promoted() {
    let clock = Clock::new();
    for offset in [HOUR, -HOUR] {
        let port = free_port().to_string();
        let primary = Server::with(&["--port", &port, "--repl-diskless-sync-delay", "0"]);
        let Some(replica) = clock.server(&["--replicaof", "127.0.0.1", &port]) else { return };
        eventually("the replica is linked", || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
        });
        clock.set(offset);
        let mut client = primary.connect();
        let keys: Vec<String> = KINDS.iter().flat_map(|kind| kind.write_states(&mut client)).collect();
        caught_up(&primary, &replica);
        let mut there = replica.connect();
        assert_eq!(there.dataset_digest(), client.dataset_digest(), "{offset}");
        for key in &keys {
            assert_eq!(Sight::of(&mut there, key), Sight::of(&mut client, key), "{offset} {key}");
        }
        let _: String = there.line("REPLICAOF NO ONE");
        for kind in KINDS {
            // Ten days are ten tokens, so an hour is nothing much.
            let key = format!("{}:fresh", kind.name);
            assert_eq!(there.five(&kind.take(&key, 10, 9))[..2], [1, 0], "{offset} {key}");
            let [allowed, _, retry_ms, ..] = there.five(&kind.take(&key, 10, 1));
            assert!(allowed == 0 && retry_ms > 0, "{offset} {key}");
        }
        clock.set(0);
    }
}
