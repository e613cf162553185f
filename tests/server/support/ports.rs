//! Ports for whatever a test starts.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// They and those [`BUS`] above them lie below the ports that systems give to outgoing connections (from 32,768 on
/// Linux), and above 10,080, the last one that browsers refuse to open a page from.
const PORTS: Range<u16> = 11_000..20_000;

/// How far the port for a cluster's own talk lies above the one for clients.
const BUS: u16 = 10_000;

/// A port that nobody listens on, nor on the one for a cluster's own talk, and that is not given again: what is started
/// on it has time to come up, and to come back.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let ports = u32::from(PORTS.end - PORTS.start);
    // Test programs that run side by side begin far from each other.
    let first = std::process::id().wrapping_mul(1009) % ports;
    for _ in 0..ports {
        let next = GIVEN.fetch_add(1, Ordering::Relaxed) % ports;
        let port = PORTS.start + u16::try_from((first + next) % ports).unwrap();
        if [port, port + BUS].iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
            return port;
        }
    }
    panic!("no port from {PORTS:?} is free");
}
