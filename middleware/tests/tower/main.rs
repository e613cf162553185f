//! The middleware against real servers with the module: `redis-server` and `RL_MODULE`, as the tests of the module have them.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![allow(missing_docs)]

mod cluster;
mod grpc;
mod headers;
mod identity;
mod instances;
mod layer;
mod memory;
mod metrics;
mod outage;
mod own_limits;
mod ready;
mod scene;
mod spans;
#[allow(dead_code, reason = "the server tests use the rest")]
#[path = "../../../tests/server/support/mod.rs"]
mod support;
