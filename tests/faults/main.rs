//! What happens on the bad days: processes that are killed, links that are cut, clocks that jump, slots that move, bytes that
//! make no sense. These take minutes; `make test-faults` runs them. `RL_ROUNDS` sets how often what is repeated is repeated.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(missing_docs)]

mod clock;
mod commands;
mod damaged_files;
mod durability;
mod failover;
mod load;
mod memory;
mod resharding;
mod soak;
#[allow(dead_code, reason = "the server tests use the rest")]
#[path = "../server/support/mod.rs"]
mod support;

/// How often to repeat what is repeated: `RL_ROUNDS`, else `usual`.
fn rounds(usual: u64) -> u64 {
    std::env::var("RL_ROUNDS").map_or(usual, |rounds| rounds.parse().expect("RL_ROUNDS is a number"))
}
