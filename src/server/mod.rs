//! The adapter: all that the module asks of the server, and the only place besides `types/` that calls it.
//!
//! The server promises, and every `SAFETY` comment here builds on it: commands and the callbacks of data types run one
//! at a time, on a thread that holds the server's lock, with pointers that are valid until they return. The one callback
//! that also comes from background threads is a type's `free`.

pub mod api;
pub mod arguments;
pub mod context;
pub mod key;
pub mod load;
pub mod registration;
pub mod report;
