//! What nearly every test sets up: a limiter on a server, a router behind the layer, a request and its answer.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use rl_tower::{
    Charge, Client, Limiter, LimiterOptions, LiveRules, Policy, Principal, RateLimitLayer, RedisOptions, Rule, Rules,
    Verdict,
};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::support::Server;

/// How long anything may take that should happen at once, on a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Where the server is.
pub fn url(server: &Server) -> String {
    format!("redis+unix://{}", server.folder().join("socket").display())
}

/// A limiter on the server with everything as it is by default, but for its patience: where no outage is the subject, a
/// machine that is busy with something else must not look like one.
pub fn options(server: &Server) -> LimiterOptions {
    let redis = RedisOptions { timeout: PATIENCE, ..RedisOptions::new(url(server)) };
    LimiterOptions { redis: Some(redis), ..LimiterOptions::default() }
}

/// A limiter with these options.
pub fn limiter(server: &Server) -> Limiter {
    Limiter::new(options(server)).unwrap()
}

/// A policy named `api`.
pub fn api(capacity: u64, rate: &str) -> Policy {
    Policy::new("api", capacity, rate).unwrap()
}

/// Every request falls under `policies`.
pub fn rules<const N: usize>(policies: [Policy; N]) -> LiveRules {
    LiveRules::new(Rules::new([Rule::any().apply(policies)]).unwrap())
}

/// A layer that limits every request by `policies`.
pub fn layer<const N: usize>(limiter: &Limiter, policies: [Policy; N]) -> RateLimitLayer {
    RateLimitLayer::new(limiter.clone(), rules(policies))
}

/// Routes that answer 200, and `/fails`, which answers 500.
pub fn routes() -> Router {
    Router::new().route("/fails", any(|| async { StatusCode::INTERNAL_SERVER_ERROR })).fallback(|| async { "done" })
}

/// A request of a user who has logged in.
pub fn by(user: &str, path: &str) -> Request<Body> {
    let mut request = Request::get(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(Principal(user.into()));
    request
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The lines of a header field, in their order.
    pub fn lines(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// A header field of one line at most.
    pub fn field(&self, name: &str) -> Option<&str> {
        let lines = self.lines(name);
        assert!(lines.len() <= 1, "{name}: {lines:?}");
        lines.first().copied()
    }
}

/// Sends a request.
pub async fn send(app: &Router, request: Request<Body>) -> Answer {
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body: String::from_utf8(body.into()).unwrap() }
}

/// The statuses of `count` requests of a user, one after the other.
pub async fn statuses(app: &Router, user: &str, path: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, by(user, path)).await.status);
    }
    statuses
}

/// What the limiter says of a request of `client` that costs `cost`.
pub async fn check(limiter: &Limiter, client: &Client, policy: &Policy, cost: u64) -> Verdict {
    let cost = rl_core::Tokens::new(cost).unwrap();
    limiter.check(client, &[Charge { policy: Arc::new(policy.clone()), cost }], "/").await
}

/// Whether a request of `client` that costs `cost` goes ahead.
pub async fn passes(limiter: &Limiter, client: &Client, policy: &Policy, cost: u64) -> bool {
    match check(limiter, client, policy, cost).await {
        Verdict::Allowed(_) => true,
        Verdict::Denied(_) => false,
        Verdict::Unavailable(unavailable) => panic!("{unavailable:?}"),
    }
}

/// Tokens left in a user's bucket, as Redis has it; `None` where there is no bucket.
pub fn left(server: &Server, user: &str, policy: &str) -> Option<i64> {
    let five: Option<[i64; 5]> = server.connect().ask(&["RL.PEEK", &format!("rl:{{user:{user}}}:{policy}")]);
    five.map(|five| five[1])
}

/// How often the server was asked `command`.
pub fn calls(server: &Server, command: &str) -> u64 {
    let text: String = server.connect().line("INFO commandstats");
    let begin = format!("cmdstat_{}:calls=", command.to_lowercase());
    let count = text.lines().find_map(|line| {
        let line = line.to_lowercase();
        line.strip_prefix(&begin).map(|rest| rest.split(',').next().unwrap().parse().unwrap())
    });
    count.unwrap_or(0)
}

/// Waits until `holds` does. Other tasks go on meanwhile.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends the server's process a signal: `STOP`, `CONT`.
pub fn signal(server: &Server, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), server.pid().to_string()]).status().unwrap();
    assert!(status.success());
}
