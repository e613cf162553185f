//! A slot that moves to another node while it is taken from: no level is lost or doubled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use redis::Value;

use crate::load::{LIMIT, Target, targets, used};
use crate::support::cluster::{Node, has_subcommand, pair, slot};
use crate::support::{Client, eventually, not_tested};

/// A hash tag of a slot of the first node.
const TAG: &str = "{tenant:3}";

/// Takes from `target`, wherever it is, until `stop`; returns how many takes were acknowledged.
fn press(nodes: &[Node], target: &Target, stop: &AtomicBool) -> u64 {
    let mut clients: Vec<Client> = nodes.iter().map(Node::client).collect();
    let words: Vec<&str> = target.line.split(' ').collect();
    let (mut at, mut acknowledged) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        match clients[at].try_ask::<[i64; 5]>(&words) {
            Ok([allowed, ..]) => acknowledged += u64::try_from(allowed).unwrap(),
            Err(error) => match error.code() {
                Some("MOVED") => at = 1 - at,
                Some("ASK") => {
                    let there = &mut clients[1 - at];
                    let _: String = there.line("ASKING");
                    match there.try_ask::<[i64; 5]>(&words) {
                        Ok([allowed, ..]) => acknowledged += u64::try_from(allowed).unwrap(),
                        Err(error) => assert_eq!(error.code(), Some("TRYAGAIN"), "{error}"),
                    }
                }
                Some("TRYAGAIN" | "CLUSTERDOWN") => {}
                _ => panic!("{error}"),
            },
        }
    }
    acknowledged
}

/// Has `moving` move the slot of [`TAG`] from the first node to the second under load, and counts.
fn moves_all(nodes: &[Node; 2], moving: impl FnOnce(u16)) {
    let targets: Vec<Target> = targets(TAG);
    let number = slot(&mut nodes[0].client(), TAG);
    // Keys with their own states, which are moved as they are.
    let mut client = nodes[0].client();
    for key in 0..200 {
        client.five(&format!("RL.TAKE {TAG}:{key} 1000 0 {}", key + 1));
        client.five(&format!("RL.WINDOW {TAG}:w{key} 1000 20d {}", key + 1));
    }
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let pressing: Vec<_> = targets.iter().map(|target| scope.spawn(|| press(&nodes[..], target, &stop))).collect();
        sleep(Duration::from_millis(200));
        moving(number);
        sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        pressing.into_iter().map(|pressing| pressing.join().unwrap()).collect()
    });
    let mut client = nodes[1].client();
    for (target, acknowledged) in targets.iter().zip(acknowledged) {
        println!("{}: {acknowledged}", target.key);
        assert!(acknowledged > 100 && (acknowledged as i64) < LIMIT, "there was a load: {acknowledged}");
        assert_eq!(used(&mut client, target), acknowledged, "{target:?}");
    }
    for key in 0..200 {
        assert_eq!(client.five(&format!("RL.PEEK {TAG}:{key}"))[1], 1000 - (key + 1));
        assert_eq!(client.five(&format!("RL.PEEK {TAG}:w{key}"))[1], 1000 - (key + 1));
    }
    assert_eq!(nodes[0].client().line::<i64>("DBSIZE"), 0);
}

#[test]
fn a_slot_that_is_moved_key_by_key_under_load_keeps_every_level() {
    let nodes = pair();
    moves_all(&nodes, |number| {
        let [mut here, mut there] = nodes.each_ref().map(Node::client);
        let _: String = there.line(&format!("CLUSTER SETSLOT {number} IMPORTING {}", nodes[0].id));
        let _: String = here.line(&format!("CLUSTER SETSLOT {number} MIGRATING {}", nodes[1].id));
        loop {
            let keys: Vec<String> = here.line(&format!("CLUSTER GETKEYSINSLOT {number} 10"));
            if keys.is_empty() {
                break;
            }
            let port = nodes[1].port.to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            let _: String = here.ask(&words);
        }
        for client in [&mut there, &mut here] {
            let _: String = client.line(&format!("CLUSTER SETSLOT {number} NODE {}", nodes[1].id));
        }
    });
}

#[test]
fn a_slot_that_is_moved_as_a_whole_under_load_keeps_every_level() {
    let nodes = pair();
    let mut here = nodes[0].client();
    if !has_subcommand(&mut here, "cluster|migrateslots") {
        not_tested("atomic slot migration: the server does not have it");
        return;
    }
    moves_all(&nodes, |number| {
        let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {number} {number} NODE {}", nodes[1].id);
        let _: String = here.line(&line);
        let owns = |client: &mut Client| {
            let told: Result<Value, _> = client.try_ask(&["RL.PEEK", &format!("{TAG}:0")]);
            told.is_ok()
        };
        let mut there = nodes[1].client();
        eventually("the slot is there", || owns(&mut there));
    });
}
