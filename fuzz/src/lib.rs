//! What the fuzz targets share.
//!
//! | module | holds |
//! |---|---|
//! | [`content`] | what a key holds, whichever it is, and how a call changes it |
//! | [`checks`] | what must be true of every call |
//! | [`naive`] | a sliding window log that is too simple to be wrong |
//! | [`values`] | numbers, limits and states out of the fuzzer's bytes |
//! | [`server`] | a server with the module, and what must be true of every key in it |

pub mod checks;
pub mod content;
pub mod naive;
pub mod server;

pub mod values;
