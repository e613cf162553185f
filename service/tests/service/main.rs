//! The service as its callers see it: the real binary, with real servers.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(missing_docs)]

mod admin;
mod answers;
mod check;
mod limits;
mod page;
mod running;
#[allow(dead_code, unused_imports, reason = "the server tests use the rest")]
#[path = "../../../tests/server/support/mod.rs"]
mod server;
mod service;
mod tls;
