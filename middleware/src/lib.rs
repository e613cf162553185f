//! Rate limiting for HTTP services over librl: a tower [`Layer`](tower_layer::Layer) for axum, hyper and tonic.
//!
//! | place | holds |
//! |---|---|
//! | [`policy`] | a limit with a name, and what becomes of it when Redis is gone |
//! | [`rules`] | which policies a request falls under: from code, or from a TOML file that can be reloaded |
//! | [`client`], [`identity`] | who is limited, and how it is known who that is |
//! | [`verdict`] | what the limiter says: allowed, denied, unavailable |
//! | [`tell`] | what the client is told: header fields and bodies |
//! | [`breaker`] | whether Redis is worth asking |

pub mod breaker;
pub mod client;
pub mod identity;
pub mod policy;
pub mod rules;
pub mod tell;
pub mod verdict;

pub use client::{Client, Kind};
pub use identity::{Forwarded, GatewayHeader, Identity, Peer, Plan, Principal, Tenant};
pub use policy::{OnOutage, Policy, PolicyError, PolicyName};
pub use rules::{Clients, LiveRules, Rule, Rules, RulesError};
pub use tell::{Fields, Grpc, ProblemJson, Responder};
pub use verdict::{Refusal, Verdict};
