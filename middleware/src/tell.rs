//! What the client is told: header fields, and the answer to a request that does not go ahead.

mod answer;
mod fields;

pub use answer::{Grpc, ProblemJson, Responder};
pub use fields::Fields;
pub(crate) use fields::retry_after_s;
