//! Half an hour of everything at once. `RL_SOAK_SECONDS` makes it longer or shorter.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use redis::Value;

use crate::support::dump::assert_no_crash;
use crate::support::random::Random;
use crate::support::replicas::{caught_up, primary_with, sent};
use crate::support::{Client, Server, eventually};

const CLIENTS: usize = 100;
const PHASE: Duration = Duration::from_secs(20);

const LINES: [&str; 16] = [
    "RL.TAKE b:@ 100 1000",
    "RL.TAKE b:@ 10 5/h",
    "RL.TAKE b:@ 1000 0 3",
    "RL.PEEK b:@",
    "RL.GIVE b:@ 1",
    "RL.LEASE b:@ 100 1000 20",
    "RL.RESERVE b:@ 100 1000 1 1s",
    "RL.MTAKE 2 b:@ m:@ 100 1000 1 50 500 1",
    "RL.INFO b:@",
    "RL.WINDOW w:@ 200 1s",
    "RL.WINDOW w:@ 50 100ms 2",
    "RL.COUNTER c:@ 1000 1s",
    "RL.QUOTA q:@ 1000 1s",
    "RL.GIVE w:@ 1",
    "DEL b:@",
    "RL.TOP COUNT 5",
];

/// Sends commands until `stop`; none of them may be answered with an error.
fn press(client: &mut Client, number: usize, stop: &AtomicBool) -> u64 {
    let mut sent = 0;
    let mut random = Random::from(number as u64);
    while !stop.load(Ordering::Relaxed) {
        let mut pipeline = redis::pipe();
        for _ in 0..20 {
            let line = LINES[random.index(LINES.len())].replace('@', &random.below(500).to_string());
            let mut words = line.split(' ');
            pipeline.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
        }
        let _: Vec<Value> = pipeline.query(&mut client.0).unwrap_or_else(|error| panic!("client {number}: {error}"));
        sent += 20;
    }
    sent
}

fn used_memory(server: &Server) -> u64 {
    server.info("memory", "used_memory").unwrap().parse().unwrap()
}

/// A replica that shares two cores with a hundred clients may be far behind: it is waited for before it is asked in earnest.
fn catch_up_in_peace(primary: &Server, replica: &Server) {
    let (sent, begun) = (sent(primary), Instant::now());
    let done =
        || replica.info("replication", "slave_repl_offset").is_some_and(|done| done.parse::<u64>().unwrap() >= sent);
    while !done() && begun.elapsed() < Duration::from_secs(300) {
        sleep(Duration::from_millis(50));
    }
    caught_up(primary, replica);
}

/// Nothing changes any more but by expiry, which is put off; then all that hold the data hold the same.
fn assert_same(primary: &Server, replica: &Server) {
    let mut client = primary.connect();
    let _: String = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    catch_up_in_peace(primary, replica);
    // The keys of short windows are gone in a second or two; those that are left are looked at.
    sleep(Duration::from_secs(3));
    let _: Vec<String> = client.line("KEYS *");
    caught_up(primary, replica);
    let digest = client.dataset_digest();
    assert_eq!(replica.connect().dataset_digest(), digest, "the replica");
    let _: String = client.line("DEBUG LOADAOF");
    assert_eq!(client.dataset_digest(), digest, "the append-only file");
    let _: String = client.line("DEBUG SET-ACTIVE-EXPIRE 1");
}

#[test]
#[ignore = "takes half an hour: make soak"]
fn half_an_hour_of_everything_brings_no_error_no_growth_and_no_divergence() {
    let seconds = std::env::var("RL_SOAK_SECONDS").map_or(1_800, |seconds| seconds.parse().unwrap());
    let mut primary = primary_with(&["--appendonly", "yes"]);
    let replica = primary.replica();
    let begun = Instant::now();
    let sent = AtomicU64::new(0);
    let mut memory = Vec::new();
    for phase in 0.. {
        if begun.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        let stop = AtomicBool::new(false);
        scope(|scope| {
            for number in 0..CLIENTS {
                let (mut client, stop, sent) = (primary.connect(), &stop, &sent);
                scope.spawn(move || {
                    sent.fetch_add(press(&mut client, number + phase * CLIENTS, stop), Ordering::Relaxed)
                });
            }
            sleep(PHASE);
            stop.store(true, Ordering::Relaxed);
        });
        memory.push(used_memory(&primary));
        assert_same(&primary, &replica);
        match phase % 4 {
            1 => primary.restart(),
            3 => primary.crash_and_restart(),
            _ => {}
        }
        eventually("the replica is linked", || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
        });
        println!("{:?}: {} commands, {} bytes", begun.elapsed(), sent.load(Ordering::Relaxed), memory[phase]);
    }
    // The first phase fills what is kept; after that it stays within a fifth of what it was.
    let (first, last) = (memory.get(1).copied().unwrap_or(memory[0]), memory[memory.len() - 1]);
    assert!(last <= first + first / 5, "{memory:?}");
    for server in [&primary, &replica] {
        assert_no_crash(&server.log());
    }
}
