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
mod arguments;
mod changed_limit;
mod command_docs;
mod concurrency;
mod expiry;
mod give;
mod info;
mod lease;
mod memory;
mod mixed_calls;
mod mtake;
mod payloads;
mod peek;
mod reply;
mod reserve;
mod retry;
mod scripts;
mod spellings;
mod support;
mod take;
mod tracking;
mod transactions;
mod wrong_type;
