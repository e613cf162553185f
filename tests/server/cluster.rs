//! In a cluster: a bucket lives in the slot of its key, and moves with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::cluster::{has_atomic_migration, pair, slot, start_atomic_migration};
use crate::support::specimens::Sight;
use crate::support::{Client, eventually};

/// A key of the first node, and one of the second.
const KEYS: [&str; 2] = ["tenant:3", "tenant:1"];

#[test]
fn a_command_is_sent_to_the_node_of_its_key() {
    let nodes = pair();
    for (at, key) in KEYS.into_iter().enumerate() {
        let (here, there) = (&nodes[at], &nodes[1 - at]);
        let mut client = there.client();
        let moved = here.redirection("MOVED", slot(&mut client, key));
        for words in [
            &["RL.TAKE", key, "10", "5/h"][..],
            &["RL.PEEK", key],
            &["RL.PEEK", key, "10", "5/h"],
            &["RL.INFO", key],
            &["RL.RESTORE", key, "payload"],
        ] {
            assert_eq!(client.error(words), moved, "{words:?}");
        }
        assert_eq!(here.client().reply(&format!("RL.TAKE {key} 10 5/h")).remaining, 9);
    }
}

#[test]
fn the_key_is_found_in_every_command() {
    let [node, _] = pair();
    let mut client = node.client();
    for line in ["RL.TAKE key 10 5/h 2", "RL.PEEK key", "RL.PEEK key 10 5/h", "RL.INFO key", "RL.RESTORE key payload"] {
        assert_eq!(client.line::<Vec<String>>(&format!("COMMAND GETKEYS {line}")), ["key"], "{line}");
    }
}

/// Makes a bucket that fills slowly and one that does not, in the slot of `tag`; what can be seen of them.
fn fill(client: &mut Client, tag: &str) -> Vec<(String, Sight)> {
    let lines = ["RL.TAKE {@}slow 10 5/h 4", "RL.TAKE {@}once 20 0 7", "RL.TAKE {@}huge 9007199254740991 1/7d 5"];
    lines
        .iter()
        .map(|line| {
            let line = line.replace('@', tag);
            assert_eq!(client.reply(&line).allowed, 1, "{line}");
            let key = line.split(' ').nth(1).unwrap().to_owned();
            let sight = Sight::of(client, &key);
            (key, sight)
        })
        .collect()
}

fn assert_moved(before: &[(String, Sight)], client: &mut Client) {
    for (key, before) in before {
        before.assert_same_bucket(&Sight::of(client, key), key);
    }
}

#[test]
fn a_migrated_slot_keeps_its_buckets() {
    let [source, target] = pair();
    let (mut from, mut to) = (source.client(), target.client());
    let slot = slot(&mut from, KEYS[0]);
    let before = fill(&mut from, KEYS[0]);
    let _: () = to.line(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", source.id));
    let _: () = from.line(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", target.id));
    for (key, before) in &before {
        let _: () = from.ask(&["MIGRATE", "127.0.0.1", &target.port.to_string(), key, "0", "20000"]);
        let words = ["RL.TAKE", key, "20", "0"];
        assert_eq!(from.error(&words), target.redirection("ASK", slot));
        assert_eq!(to.error(&words), source.redirection("MOVED", slot));
        let _: () = to.line("ASKING");
        let peek: [i64; 5] = to.ask(&["RL.PEEK", key]);
        assert_eq!(peek[1], before.peek.remaining, "{key}");
    }
    for client in [&mut to, &mut from] {
        let _: () = client.line(&format!("CLUSTER SETSLOT {slot} NODE {}", target.id));
    }
    assert_moved(&before, &mut to);
    for (key, before) in &before {
        let expiry = to.expiry(key);
        // The server sends the time that is left, so that the key may live longer by as long as that took.
        assert!((0..60_000).contains(&(expiry - before.expiry)), "{key}: {expiry} {before:?}");
    }
    assert_eq!(to.reply(&format!("RL.TAKE {{{}}}slow 10 5/h 6", KEYS[0])).allowed, 1);
    assert_eq!(to.reply(&format!("RL.TAKE {{{}}}once 20 0 14", KEYS[0])).allowed, 0);
}

/// The server counts the keys that are where it looks, and for that has to find both of them in the command.
#[test]
fn an_all_or_nothing_take_waits_for_its_keys_to_be_on_one_node() {
    let [source, target] = pair();
    let (mut from, mut to) = (source.client(), target.client());
    let slot = slot(&mut from, KEYS[0]);
    let keys = ["one", "two"].map(|name| format!("{{{}}}:{name}", KEYS[0]));
    let words = ["RL.MTAKE", "2", &keys[0], &keys[1], "9", "0", "1", "9", "0", "2"];
    let code = |client: &mut Client| client.error(&words).split(' ').next().unwrap().to_owned();
    let here: (i64, i64, Vec<[i64; 5]>, i64) = from.ask(&words);
    assert_eq!(here, (1, -1, vec![[1, 8, 0, -1, 9], [1, 7, 0, -1, 9]], 0));
    let _: () = to.line(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", source.id));
    let _: () = from.line(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", target.id));
    let port = target.port.to_string();
    for (key, here) in keys.iter().zip(["TRYAGAIN", "ASK"]) {
        let _: () = from.ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "20000"]);
        assert_eq!(code(&mut from), here);
        assert_eq!(code(&mut to), "MOVED");
        if here == "TRYAGAIN" {
            let _: () = to.line("ASKING");
            assert_eq!(code(&mut to), "TRYAGAIN");
        }
    }
    let _: () = to.line("ASKING");
    let there: (i64, i64, Vec<[i64; 5]>, i64) = to.ask(&words);
    assert_eq!(there, (1, -1, vec![[1, 7, 0, -1, 9], [1, 5, 0, -1, 9]], 0));
}

#[test]
fn an_atomic_slot_migration_keeps_its_buckets_while_they_are_taken_from() {
    let [source, target] = pair();
    let mut from = source.client();
    let slot = slot(&mut from, KEYS[0]);
    let before = fill(&mut from, KEYS[0]);
    let stop = Arc::new(AtomicBool::new(false));
    let clients = [source.client(), target.client()];
    let taker = thread::spawn({
        let stop = Arc::clone(&stop);
        move || take_wherever_it_is(clients, &stop)
    });
    if has_atomic_migration(&source) {
        start_atomic_migration(&source, &target, slot);
        let mut to = target.client();
        let key = before[0].0.clone();
        eventually("the slot has moved", || to.try_ask::<[i64; 5]>(&["RL.PEEK", &key]).is_ok());
        assert_moved(&before, &mut to);
        for (key, before) in &before {
            assert_eq!(to.expiry(key), before.expiry, "{key}");
        }
        assert_eq!(to.reply(&format!("RL.TAKE {{{}}}slow 10 5/h 6", KEYS[0])).allowed, 1);
        assert_eq!(to.reply(&format!("RL.TAKE {{{}}}once 20 0 14", KEYS[0])).allowed, 0);
    }
    stop.store(true, Ordering::SeqCst);
    let granted = taker.join().unwrap();
    let left = [source.client(), target.client()]
        .iter_mut()
        .find_map(|client| client.try_ask::<[i64; 5]>(&["RL.PEEK", &busy_key()]).ok());
    // Where there is nothing to migrate, the taker may be stopped before its first take: then there is no key, and it is full.
    assert_eq!(left.map_or(BUSY_CAPACITY, |peek| peek[1]), BUSY_CAPACITY - granted);
}

const BUSY_CAPACITY: i64 = 1_000_000_000;

fn busy_key() -> String {
    format!("{{{}}}busy", KEYS[0])
}

/// Takes one by one from a bucket that never refills, on whichever node has it; how many were granted.
fn take_wherever_it_is(mut clients: [Client; 2], stop: &AtomicBool) -> i64 {
    let (key, capacity) = (busy_key(), BUSY_CAPACITY.to_string());
    let mut granted = 0;
    while !stop.load(Ordering::SeqCst) {
        for client in &mut clients {
            if let Ok(answer) = client.try_ask::<[i64; 5]>(&["RL.TAKE", &key, &capacity, "0"]) {
                assert_eq!(answer[0], 1);
                granted += 1;
            }
        }
    }
    granted
}
