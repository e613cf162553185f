//! The native data types, one file each, and the limits that their values share.

pub mod bucket;
pub mod expiries;
pub mod limits;
