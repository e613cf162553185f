//! One file per command. Each parses its arguments into a request, decides, applies and replies, in this order:
//! whatever is wrong with a request is found before a key is opened.

mod apply;
pub mod counter;
pub mod give;
pub mod info;
pub mod lease;
pub mod mtake;
pub mod peek;
pub mod quota;
pub mod reserve;
pub mod restore;
pub mod take;
pub mod throttle;
pub mod top;
pub mod window;
