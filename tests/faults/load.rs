//! Clients that charge keys and remember what they were told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::support::{Client, Server};

/// A key that nothing comes back to while a test runs, and the command that takes one token from it.
#[derive(Debug, Clone)]
pub struct Target {
    pub key: String,
    pub line: String,
}

/// More than a test can take.
pub const LIMIT: i64 = 100_000;

/// One key of each type. More rows put more commands under load.
pub fn targets(name: &str) -> Vec<Target> {
    [("RL.TAKE", "0"), ("RL.WINDOW", "20d"), ("RL.COUNTER", "20d"), ("RL.QUOTA", "10000d"), ("RL.LEASE", "0")]
        .into_iter()
        .map(|(command, per)| {
            let key = format!("{name}:{}", command.to_lowercase());
            let cost = if command == "RL.LEASE" { " 1" } else { "" };
            Target { line: format!("{command} {key} {LIMIT} {per}{cost}"), key }
        })
        .collect()
}

/// What a client was told of its target: when each take was acknowledged, and whether one was under way at the end.
#[derive(Debug)]
pub struct Log {
    pub target: Target,
    pub acknowledged: Vec<Instant>,
    pub under_way: u64,
}

impl Log {
    pub fn acknowledged_before(&self, time: Instant) -> u64 {
        self.acknowledged.iter().filter(|at| **at < time).count() as u64
    }
}

/// Takes from `target` one at a time, until `stop` or an error.
pub fn press(client: &mut Client, target: &Target, stop: &AtomicBool) -> Log {
    let words: Vec<&str> = target.line.split(' ').collect();
    let mut log = Log { target: target.clone(), acknowledged: Vec::new(), under_way: 0 };
    while !stop.load(Ordering::Relaxed) {
        match client.try_ask::<[i64; 5]>(&words) {
            Ok([allowed, ..]) => {
                assert_eq!(allowed, 1, "{target:?}");
                log.acknowledged.push(Instant::now());
            }
            Err(_) => {
                log.under_way = 1;
                break;
            }
        }
    }
    log
}

/// How much of a target is used.
pub fn used(client: &mut Client, target: &Target) -> u64 {
    match client.try_ask::<Option<[i64; 5]>>(&["RL.PEEK", &target.key]).unwrap() {
        Some([_, remaining, _, _, limit]) => {
            assert_eq!(limit, LIMIT);
            (limit - remaining).try_into().unwrap()
        }
        None => 0,
    }
}

/// Runs `meanwhile` while every target is taken from by a client of its own, until `meanwhile` says that it is enough.
pub fn under_load(server: &Server, targets: &[Target], meanwhile: impl FnOnce()) -> Vec<Log> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pressing: Vec<_> = targets
            .iter()
            .map(|target| {
                let mut client = server.connect();
                let stop = &stop;
                scope.spawn(move || press(&mut client, target, stop))
            })
            .collect();
        meanwhile();
        stop.store(true, Ordering::Relaxed);
        pressing.into_iter().map(|pressing| pressing.join().unwrap()).collect()
    })
}
