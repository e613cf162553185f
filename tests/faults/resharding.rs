//! A slot that moves to another of three nodes while it is taken from: no level is lost or doubled, neither of single keys nor
//! of those that are taken from together, and clients are told what the server tells of any command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use redis::Value;

use crate::load::{LIMIT, Target, targets, used};
use crate::support::cluster::{Node, has_atomic_migration, slot, start_atomic_migration, three};
use crate::support::{Client, eventually};

/// A hash tag of a slot of the first node, and one of the third, whose slot stays.
const TAG: &str = "{tenant:3}";
const OTHER: &str = "{tenant:4}";

/// How many keys are taken from together, by each of the calls that take from several.
const TOGETHER: [usize; 2] = [2, 8];

/// What came of a client's calls.
#[derive(Debug, Default)]
struct Told {
    acknowledged: u64,
    /// Sent to where the slot is, or to where the key may be.
    moved: u64,
    asked: u64,
    /// Told to come back, as not all of the keys were on one node.
    again: u64,
}

/// A client that knows all the nodes, and goes where it is sent.
struct Caller<'a> {
    nodes: &'a [Node],
    clients: Vec<Client>,
    at: usize,
    told: Told,
}

impl<'a> Caller<'a> {
    /// Begins at the node that has nothing to do with the move, so that it has to be sent on.
    fn new(nodes: &'a [Node]) -> Self {
        let clients = nodes.iter().map(Node::client).collect();
        Self { nodes, clients, at: nodes.len() - 1, told: Told::default() }
    }

    fn call(&mut self, words: &[&str]) {
        match self.clients[self.at].try_ask::<Value>(words) {
            Ok(answer) => self.told.acknowledged += allowed(&answer),
            Err(error) => match error.code() {
                Some("MOVED") => {
                    self.told.moved += 1;
                    self.at = self.place(&error);
                }
                Some("ASK") => {
                    self.told.asked += 1;
                    let place = self.place(&error);
                    self.call_asking(place, words);
                }
                Some("TRYAGAIN") => self.told.again += 1,
                Some("CLUSTERDOWN") => {}
                _ => panic!("{words:?}: {error}"),
            },
        }
    }

    fn call_asking(&mut self, place: usize, words: &[&str]) {
        let there = &mut self.clients[place];
        let _: String = there.line("ASKING");
        match there.try_ask::<Value>(words) {
            Ok(answer) => self.told.acknowledged += allowed(&answer),
            Err(error) => {
                assert_eq!(error.code(), Some("TRYAGAIN"), "{words:?}: {error}");
                self.told.again += 1;
            }
        }
    }

    /// The node that an error sends to.
    fn place(&self, error: &redis::RedisError) -> usize {
        let (address, _) = error.redirect_node().unwrap();
        self.nodes.iter().position(|node| address == format!("127.0.0.1:{}", node.port)).unwrap()
    }
}

/// Whether a call was allowed, which is the first of its integers, whatever follows.
fn allowed(answer: &Value) -> u64 {
    match answer {
        Value::Array(fields) if matches!(fields.first(), Some(Value::Int(0 | 1))) => {
            u64::from(fields[0] == Value::Int(1))
        }
        other => panic!("{other:?}"),
    }
}

/// Calls `line`, wherever it has to be called, until `stop`.
fn press(nodes: &[Node], line: &str, stop: &AtomicBool) -> Told {
    let words: Vec<&str> = line.split(' ').collect();
    let mut caller = Caller::new(nodes);
    while !stop.load(Ordering::Relaxed) {
        caller.call(&words);
    }
    caller.told
}

/// Takes across slots, at every node: refused by all, all the time, however the slot moves.
fn press_across(nodes: &[Node], stop: &AtomicBool) -> u64 {
    let line = format!("RL.MTAKE 2 {TAG}:across {OTHER}:across 10 0 1 10 0 1");
    let words: Vec<&str> = line.split(' ').collect();
    let (mut clients, mut refused) = (nodes.iter().map(Node::client).collect::<Vec<_>>(), 0);
    while !stop.load(Ordering::Relaxed) {
        for client in &mut clients {
            assert_eq!(client.error(&words), "CROSSSLOT Keys in request don't hash to the same slot");
            refused += 1;
        }
        sleep(Duration::from_millis(1));
    }
    refused
}

/// The keys that are taken from together, and the call.
fn together(keys: usize) -> (Vec<Target>, String) {
    let names: Vec<String> = (0..keys).map(|key| format!("{TAG}:together:{keys}:{key}")).collect();
    let line = format!("RL.MTAKE {keys} {}{}", names.join(" "), format!(" {LIMIT} 0 1").repeat(keys));
    (names.into_iter().map(|key| Target { key, line: line.clone() }).collect(), line)
}

/// Has `moving` move the slot of [`TAG`] from the first node to the second under load, and counts. What was told to each of
/// those that take from several keys.
fn moves_all(nodes: &[Node; 3], moving: impl FnOnce(u16)) -> Vec<Told> {
    let targets: Vec<Target> = targets(TAG);
    let several = TOGETHER.map(together);
    let number = slot(&mut nodes[0].client(), TAG);
    let (mut client, mut maker) = (nodes[0].client(), nodes[0].client());
    // What is taken from together is made apart, one half before all else and one after: some servers move keys in that order.
    let mut make = |half: usize| {
        for target in several.iter().flat_map(|(targets, _)| targets.iter().skip(half).step_by(2)) {
            assert_eq!(maker.five(&format!("RL.TAKE {} {LIMIT} 0", target.key))[0], 1);
        }
    };
    make(0);
    // Keys with their own states, which are moved as they are.
    for key in 0..200 {
        client.five(&format!("RL.TAKE {TAG}:{key} 1000 0 {}", key + 1));
        client.five(&format!("RL.WINDOW {TAG}:w{key} 1000 20d {}", key + 1));
    }
    make(1);
    let stop = AtomicBool::new(false);
    let (single, joint, across) = scope(|scope| {
        let press = |line: String| {
            let stop = &stop;
            scope.spawn(move || press(&nodes[..], &line, stop))
        };
        let single: Vec<_> = targets.iter().map(|target| press(target.line.clone())).collect();
        let joint: Vec<_> = several.iter().map(|(_, line)| press(line.clone())).collect();
        let across = scope.spawn(|| press_across(&nodes[..], &stop));
        sleep(Duration::from_millis(300));
        moving(number);
        sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        let all = |pressing: Vec<std::thread::ScopedJoinHandle<'_, Told>>| -> Vec<Told> {
            pressing.into_iter().map(|pressing| pressing.join().unwrap()).collect()
        };
        (all(single), all(joint), across.join().unwrap())
    });
    let mut client = nodes[1].client();
    let mut assert_used = |target: &Target, told: &Told, before: u64| {
        let acknowledged = told.acknowledged;
        assert!(acknowledged > 100 && (acknowledged as i64) < LIMIT, "there was a load: {told:?}");
        assert_eq!(used(&mut client, target), before + acknowledged, "{target:?}: {told:?}");
    };
    for (target, told) in targets.iter().zip(&single) {
        println!("{}: {told:?}", target.key);
        assert_used(target, told, 0);
        assert_eq!(told.again, 0, "one key is on one node: {told:?}");
    }
    for ((targets, _), told) in several.iter().zip(&joint) {
        println!("{} keys together: {told:?}", targets.len());
        targets.iter().for_each(|target| assert_used(target, told, 1));
    }
    println!("across slots: {across} refused");
    assert!(across > 100, "{across}");
    for key in 0..200 {
        assert_eq!(client.five(&format!("RL.PEEK {TAG}:{key}"))[1], 1000 - (key + 1));
        assert_eq!(client.five(&format!("RL.PEEK {TAG}:w{key}"))[1], 1000 - (key + 1));
    }
    let keys = 400 + targets.len() + TOGETHER.iter().sum::<usize>();
    let sizes = nodes.each_ref().map(|node| node.client().line::<usize>("DBSIZE"));
    assert_eq!(sizes, [0, keys, 0], "all is on the second node, and what was refused is nowhere");
    // The third has heard of it.
    let moved = nodes[1].redirection("MOVED", number);
    eventually("the third node knows", || nodes[2].client().error(&["RL.PEEK", &targets[0].key]) == moved);
    joint
}

#[test]
fn a_slot_that_is_moved_key_by_key_under_load_keeps_every_level() {
    let nodes = three();
    let joint = moves_all(&nodes, |number| {
        let [mut here, mut there, _] = nodes.each_ref().map(Node::client);
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
            // Time for calls while keys that belong together are apart.
            sleep(Duration::from_millis(5));
        }
        for client in [&mut there, &mut here] {
            let _: String = client.line(&format!("CLUSTER SETSLOT {number} NODE {}", nodes[1].id));
        }
    });
    assert!(joint.iter().all(|told| told.asked + told.again > 0), "they were called while the slot moved: {joint:?}");
    assert!(joint.iter().any(|told| told.again > 0), "they were called while their keys were apart: {joint:?}");
}

#[test]
fn a_slot_that_is_moved_as_a_whole_under_load_keeps_every_level() {
    let nodes = three();
    if !has_atomic_migration(&nodes[0]) {
        return;
    }
    let joint = moves_all(&nodes, |number| {
        start_atomic_migration(&nodes[0], &nodes[1], number);
        let mut there = nodes[1].client();
        eventually("the slot is there", || there.try_ask::<Value>(&["RL.PEEK", &format!("{TAG}:0")]).is_ok());
    });
    assert!(joint.iter().all(|told| told.again == 0), "it is in one place at any time: {joint:?}");
}
