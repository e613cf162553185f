//! A server killed in its tracks: no bucket comes back with more tokens than its answered takes have left.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::{self, JoinHandle};

use crate::support::specimens::Dataset;
use crate::support::stream::{in_aof, records};
use crate::support::{Client, Server, eventually};

const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];
const CAPACITY: i64 = 1_000_000_000;
const BUCKETS: usize = 4;
const CLIENTS: usize = 4;

/// What was asked of a bucket, and what of that was answered.
#[derive(Default)]
struct Tally {
    asked: AtomicI64,
    answered: AtomicI64,
}

type Tallies = Arc<[Tally; BUCKETS]>;

/// Takes from every bucket in turn until the server is gone. A bucket with rate 0 knows no time.
fn load(mut client: Client, tallies: Tallies) {
    for bucket in (0..BUCKETS).cycle() {
        let tally = &tallies[bucket];
        tally.asked.fetch_add(1, Ordering::SeqCst);
        let line = format!("RL.TAKE bucket:{bucket} {CAPACITY} 0");
        let words: Vec<&str> = line.split(' ').collect();
        match client.try_ask::<[i64; 5]>(&words) {
            Ok(answer) => assert_eq!(answer[0], 1),
            Err(_) => return,
        }
        tally.answered.fetch_add(1, Ordering::SeqCst);
    }
}

fn answered(tallies: &Tallies) -> i64 {
    tallies.iter().map(|tally| tally.answered.load(Ordering::SeqCst)).sum()
}

fn start_load(server: &Server, tallies: &Tallies) -> Vec<JoinHandle<()>> {
    (0..CLIENTS)
        .map(|_| {
            let (client, tallies) = (server.connect(), Arc::clone(tallies));
            thread::spawn(move || load(client, tallies))
        })
        .collect()
}

#[test]
fn no_answered_take_is_forgotten_by_a_kill_under_load() {
    let mut server = Server::with(&[&ALWAYS[..], &["--aof-use-rdb-preamble", "no"]].concat());
    let tallies = Tallies::default();
    for round in 0..4 {
        let before = answered(&tallies);
        let clients = start_load(&server, &tallies);
        eventually("takes are answered", || answered(&tallies) > before + 400);
        if round % 2 == 1 {
            // Killed while a child rewrites the file.
            let _: String = server.connect().line("BGREWRITEAOF");
        }
        server.crash_and_restart();
        clients.into_iter().for_each(|client| client.join().unwrap());
        for (bucket, tally) in tallies.iter().enumerate() {
            let left = server.connect().reply(&format!("RL.PEEK bucket:{bucket}")).remaining;
            let taken = CAPACITY - left;
            let (answered, asked) = (tally.answered.load(Ordering::SeqCst), tally.asked.load(Ordering::SeqCst));
            assert!(
                (answered..=asked).contains(&taken),
                "round {round}: {answered} of {asked} answered, {taken} taken"
            );
        }
    }
}

#[test]
fn a_file_cut_off_within_a_record_keeps_those_before_it() {
    let mut server = Server::with(&ALWAYS);
    let mut client = server.connect();
    let before = Dataset::written(&mut client);
    assert_eq!(client.reply("RL.TAKE last 10 0 4").remaining, 6);
    assert_eq!(client.reply("RL.TAKE last 10 0 4").remaining, 2);
    assert_eq!(records(&in_aof(&server, ".incr.aof")).last().unwrap().0, "last");

    let path = server.folder().join("appendonlydir/appendonly.aof.1.incr.aof");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    server.crash_and_restart();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.PEEK last").remaining, 6);
    let _: i64 = client.line("DEL last");
    before.assert_held_by(&mut client, "after the end of the file was lost");
}
