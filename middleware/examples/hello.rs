//! The shortest way: 10 requests at once per client, then 1 a second.
//!
//! ```text
//! make run                                # in one terminal: Redis with librl
//! cargo run -p rl-tower --example hello   # in another
//! curl -i http://127.0.0.1:3000
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use rl_tower::{Limiter, LimiterOptions, LiveRules, Policy, RateLimitLayer, Rule, Rules};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let api = Policy::new("api", 10, "1")?;
    let rules = LiveRules::new(Rules::new([Rule::any().apply([api])])?);
    let limiter = Limiter::new(LimiterOptions::redis("redis://127.0.0.1:6379"))?;
    let app = Router::new().route("/", get(|| async { "hello\n" })).layer(RateLimitLayer::new(limiter, rules));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    // With the peer's address, by which clients are told apart.
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
