//! An API with plans, behind one proxy: who calls is known by an API key, limits come from a file that is read again when it
//! changes, a search costs more, what the server has broken is given back, and there is an admin page.
//!
//! ```text
//! make run
//! cargo run -p rl-tower --features admin --example plans
//! curl -i http://127.0.0.1:3000/search -H 'authorization: Bearer key-of-ada'
//! curl -i http://127.0.0.1:3000/broken -H 'authorization: Bearer key-of-ada'    # costs nothing
//! ```
//!
//! The admin page is on <http://127.0.0.1:3001>, its token `only for this example`.

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use rl_core::Tokens;
use rl_tower::admin::{self, Token};
use rl_tower::{Forwarded, Identity, Limiter, LimiterOptions, LiveRules, Plan, Principal, RateLimitLayer, Rules};
use tokio::net::TcpListener;

/// Stands for what looks an API key up: who it belongs to, and the plan. It runs before the limiter.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let known = match request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes) {
        Some(b"Bearer key-of-ada") => Some(("ada", "pro")),
        Some(b"Bearer key-of-bob") => Some(("bob", "free")),
        _ => None,
    };
    if let Some((user, plan)) = known {
        request.extensions_mut().insert(Principal(user.into()));
        request.extensions_mut().insert(Plan(plan.into()));
    }
    next.run(request).await
}

/// A search costs 5 tokens; everything else what the policy says.
fn cost(parts: &Parts) -> Option<Tokens> {
    if parts.uri.path() == "/search" { Tokens::new(5) } else { None }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plans.toml"));
    let rules = LiveRules::new(Rules::parse(&std::fs::read_to_string(&file)?)?);
    tokio::spawn(rules.clone().follow(file, Duration::from_secs(1)));

    let limiter = Limiter::new(LimiterOptions::redis("redis://127.0.0.1:6379"))?;
    // One proxy in front: the last entry of X-Forwarded-For is the one that it has written.
    let identity = Identity::default().forwarded(Forwarded::FromRight(NonZeroUsize::MIN));
    let layer = RateLimitLayer::new(limiter.clone(), rules.clone())
        .identity(identity)
        .cost(cost)
        .refund_if(|status| status.is_server_error());
    let app = Router::new()
        .route("/search", get(|| async { "found\n" }))
        .route("/broken", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
        .layer(layer)
        .layer(from_fn(authenticate));

    if let Some(token) = Token::new("only for this example") {
        let listener = TcpListener::bind("127.0.0.1:3001").await?;
        let admin = admin::router(limiter.clone(), rules, token);
        tokio::spawn(async move { axum::serve(listener, admin).await });
    }
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    limiter.close().await;
    Ok(())
}
