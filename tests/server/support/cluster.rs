//! Two nodes of a cluster on the loopback, each with half of the slots.

use std::net::TcpListener;

use redis::Value;

use super::{Client, Server, eventually, free_port};

/// How far a node's port for the cluster's own talk lies above the one for clients.
const BUS: u16 = 10_000;

/// A node.
pub struct Node {
    pub server: Server,
    pub port: u16,
    pub id: String,
}

impl Node {
    fn start(slots: &str, epoch: &str) -> Self {
        let port = free_pair_of_ports();
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

    fn is_ready(&self) -> bool {
        let state: String = self.client().line("CLUSTER INFO");
        ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:2"].iter().all(|line| state.contains(line))
    }

    /// `MOVED` and the like, as a client is told that `slot` is here.
    pub fn redirection(&self, code: &str, slot: u16) -> String {
        format!("{code} {slot} 127.0.0.1:{}", self.port)
    }
}

/// A port that is free, as is the one above it for the cluster's own talk.
fn free_pair_of_ports() -> u16 {
    loop {
        let port = free_port();
        if port.checked_add(BUS).is_some_and(|bus| TcpListener::bind(("127.0.0.1", bus)).is_ok()) {
            return port;
        }
    }
}

/// Two nodes: one with slots 0 to 8191, one with the rest.
pub fn pair() -> [Node; 2] {
    let nodes = [Node::start("0 8191", "1"), Node::start("8192 16383", "2")];
    let _: () = nodes[0].client().line(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[1].port));
    eventually("the cluster is up", || nodes.iter().all(Node::is_ready));
    nodes
}

/// The slot of a key.
pub fn slot(client: &mut Client, key: &str) -> u16 {
    client.ask(&["CLUSTER", "KEYSLOT", key])
}

/// Whether the server has the subcommand `name`, written `cluster|name`.
pub fn has_subcommand(client: &mut Client, name: &str) -> bool {
    let [info]: [Value; 1] = client.ask(&["COMMAND", "INFO", name]);
    info != Value::Nil
}
