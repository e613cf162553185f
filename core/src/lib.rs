//! The arithmetic of librl: exact rate limiting in integers.
//!
//! Pure: time comes in as an argument, every function is total, and nothing here knows a clock, a server or I/O. The
//! module, and whoever must decide the same way without a server, share this crate.
//!
//! | module | holds |
//! |---|---|
//! | [`quantity`] | the units: tokens and points in time, bounded |
//! | [`rate`] | a rate as an exact fraction, and how it is written |
//! | [`duration`] | how durations are written |
//! | [`limit`] | capacity and rate, with what a decision needs worked out once |
//! | [`bucket`] | the token bucket: what it holds, and how it fills |
//! | [`call`] | what a call does with a bucket |
//! | [`usage`] | limits of so much in a window, and what a call does with them |
//! | [`log`] | the sliding window log |
//! | [`counter`] | the sliding window counter |
//! | [`quota`] | the quota, in fixed windows |
//! | [`period`] | periods of the calendar, and how they are written |
//! | [`decision`] | what a decision says |
//! | [`expiry`] | when a key may be forgotten |
//! | [`codec`] | the bytes in which all of these are stored and replicated |
//! | [`classes`] | decisions by class of key, in bounded memory |
//! | [`offenders`] | the most denied keys, in bounded memory |
#![forbid(unsafe_code)]

pub mod bucket;
pub mod call;
pub mod classes;
pub mod codec;
pub mod counter;
pub mod decision;
pub mod duration;
pub mod expiry;
mod fraction;
pub mod limit;
pub mod log;
pub mod offenders;
pub mod period;
pub mod quantity;
pub mod quota;
pub mod rate;
pub mod usage;
mod wide;

pub use bucket::{Bucket, Held};
pub use call::Answer;
pub use counter::Counter;
pub use decision::{Decision, Outcome, Wait};
pub use limit::Limit;
pub use log::Log;
pub use period::Period;
pub use quantity::{MAX_INTEGER, Micros, ParseError, Tokens, UnixMicros, UnixMillis};
pub use quota::{Quota, QuotaLimit};
pub use rate::Rate;
pub use usage::{Usage, WindowLimit};
