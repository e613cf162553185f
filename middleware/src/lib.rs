//! Rate limiting for HTTP services over librl: a tower [`Layer`](tower_layer::Layer) for axum, hyper and tonic.
//!
//! It needs a Tokio runtime. The guide (`docs/HTTP.md`) says how to choose keys, limits and failure policies.
//!
//! | place | holds |
//! |---|---|
//! | [`layer`] | the layer: a request in, a response out |
//! | [`policy`] | a limit with a name, and what becomes of it when Redis is gone |
//! | [`rules`] | which policies a request falls under: from code, or from a TOML file that can be reloaded |
//! | [`client`], [`identity`] | who is limited, and how it is known who that is |
//! | [`verdict`], [`receipt`] | what the limiter says: allowed, denied, unavailable; what was charged |
//! | [`tell`] | what the client is told: header fields and bodies |
//! | [`limiter`] | takes from a client's buckets, and says what came of it |
//! | `link` | the way to Redis: connection, deadline, breaker, errors |
//! | [`breaker`] | whether Redis is worth asking |
//! | [`local`] | buckets of this process |
//! | [`leases`], [`denials`] | tokens leased in advance, denials remembered: round trips saved |
//! | [`own`] | limits of single clients |
//! | [`measure`] | metrics |
//! | `views` | what the limiter knows, as JSON (feature `admin`) |
//! | `admin` | the router of the admin listener, and its page (feature `admin`) |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[cfg(feature = "admin")]
pub mod admin;
pub mod breaker;
pub mod client;
pub mod denials;
pub mod identity;
mod incidents;
mod keys;
pub mod layer;
pub mod leases;
pub mod limiter;
mod link;
pub mod local;
pub mod measure;
pub mod own;
pub mod policy;
pub mod receipt;
pub mod rules;
pub mod tell;
pub mod verdict;
#[cfg(feature = "admin")]
pub mod views;

pub use client::{Client, Kind};
pub use identity::{Forwarded, GatewayHeader, Identity, Peer, Plan, Principal, Tenant};
pub use layer::{RateLimit, RateLimitLayer};
pub use leases::LeaseOptions;
pub use limiter::{ConfigError, Limiter, LimiterOptions};
pub use link::RedisOptions;
pub use policy::{OnOutage, Policy, PolicyError, PolicyName};
pub use rules::{Clients, LiveRules, Rule, Rules, RulesError};
pub use tell::{Fields, Grpc, ProblemJson, Responder};
pub use verdict::{Charge, Refusal, Trouble, Verdict};
