//! A primary with replicas.

use super::{Server, eventually, free_port};

/// Options of a server that may have replicas, beside its port: a first synchronisation does not wait for others.
const PRIMARY: [&str; 4] = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "3600"];

/// A server that may have replicas.
pub fn primary() -> Server {
    primary_with(&[])
}

/// One with `options`.
pub fn primary_with(options: &[&str]) -> Server {
    let port = free_port().to_string();
    Server::with(&[&["--port", &port][..], &PRIMARY, options].concat())
}

/// A replica of `primary` that may have replicas of its own.
pub fn link_of(primary: &Server) -> Server {
    let port = free_port().to_string();
    primary.replica_with(&[&["--port", &port][..], &PRIMARY].concat())
}

/// How much the server has sent to replicas, in bytes.
pub fn sent(server: &Server) -> u64 {
    server.info("replication", "master_repl_offset").unwrap().parse().unwrap()
}

/// Waits until `replica` has carried out all that `primary` has sent.
pub fn caught_up(primary: &Server, replica: &Server) {
    let sent = sent(primary);
    eventually("the replica has caught up", || {
        replica.info("replication", "slave_repl_offset").is_some_and(|offset| offset.parse::<u64>().unwrap() >= sent)
    });
}
