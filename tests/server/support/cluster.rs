//! The nodes of a cluster on the loopback, each with its part of the slots.

use redis::Value;

use super::{Client, Server, eventually, free_port, not_tested};

/// A node.
pub struct Node {
    pub server: Server,
    pub port: u16,
    pub id: String,
}

impl Node {
    fn start(slots: &str, epoch: usize) -> Self {
        let port = free_port();
        let options = ["--port", &port.to_string(), "--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"];
        let server = Server::with(&options);
        let mut client = server.connect();
        let _: () = client.line(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
        let _: () = client.line(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}"));
        let id = client.line("CLUSTER MYID");
        Self { server, port, id }
    }

    pub fn client(&self) -> Client {
        self.server.connect()
    }

    fn is_ready_among(&self, nodes: usize) -> bool {
        let state: String = self.client().line("CLUSTER INFO");
        let known = format!("cluster_known_nodes:{nodes}");
        ["cluster_state:ok", "cluster_slots_ok:16384", &known].iter().all(|line| state.contains(line))
    }

    /// `MOVED` and the like, as a client is told that `slot` is here.
    pub fn redirection(&self, code: &str, slot: u16) -> String {
        format!("{code} {slot} 127.0.0.1:{}", self.port)
    }
}

/// Two nodes: one with slots 0 to 8191, one with the rest.
pub fn pair() -> [Node; 2] {
    cluster(["0 8191", "8192 16383"])
}

/// Three nodes, each with a third of the slots.
#[allow(dead_code, reason = "for the tests of faults")]
pub fn three() -> [Node; 3] {
    cluster(["0 5460", "5461 10922", "10923 16383"])
}

fn cluster<const NODES: usize>(slots: [&str; NODES]) -> [Node; NODES] {
    let nodes = std::array::from_fn(|at| Node::start(slots[at], at + 1));
    let [first, others @ ..] = &nodes[..] else { return nodes };
    for other in others {
        let _: () = first.client().line(&format!("CLUSTER MEET 127.0.0.1 {}", other.port));
    }
    eventually("the cluster is up", || nodes.iter().all(|node| node.is_ready_among(NODES)));
    nodes
}

/// Whether the servers can move a slot in one go. If not, says so.
pub fn has_atomic_migration(node: &Node) -> bool {
    let mut client = node.client();
    let has = has_subcommand(&mut client, "cluster|migrateslots") || has_subcommand(&mut client, "cluster|migration");
    if !has {
        not_tested("atomic slot migration: the server does not have it");
    }
    has
}

/// Has `slot` moved in one go, as Valkey 9 does it or else as Redis 8.4 does.
pub fn start_atomic_migration(source: &Node, target: &Node, slot: u16) {
    let (mut from, mut to) = (source.client(), target.client());
    if has_subcommand(&mut from, "cluster|migrateslots") {
        let _: () = from.line(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", target.id));
    } else {
        let _: Value = to.line(&format!("CLUSTER MIGRATION IMPORT {slot} {slot}"));
    }
}

/// The slot of a key.
pub fn slot(client: &mut Client, key: &str) -> u16 {
    client.ask(&["CLUSTER", "KEYSLOT", key])
}

/// Whether the server has the subcommand `name`, written `cluster|name`.
fn has_subcommand(client: &mut Client, name: &str) -> bool {
    let [info]: [Value; 1] = client.ask(&["COMMAND", "INFO", name]);
    info != Value::Nil
}
