//! What only a server can show, one file per topic. See `support` for which server and which module.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(missing_docs)]

mod acl;
mod aof;
mod arguments;
mod changed_limit;
mod classes;
mod clock;
mod cluster;
mod command_docs;
mod concurrency;
mod config;
mod corrupt_file;
mod corrupt_payload;
mod crash;
mod dump_restore_copy;
mod events;
mod every_type;
mod expiry;
mod give;
mod info;
mod lease;
mod memory;
mod mixed_calls;
mod mtake;
mod payloads;
mod peek;
mod ports;
mod random_records;
mod rdb;
mod replication;
mod replication_stream;
mod reply;
mod reserve;
mod retry;
mod same_state;
mod scripts;
mod spellings;
mod stats;
mod support;
mod take;
mod throttle;
mod top;
mod tracking;
mod transactions;
mod upgrade;
mod window;
mod wrong_type;
