//! Without axum: any tower service, here under hyper. The server says where a connection comes from, and the older header
//! fields are sent.
//!
//! ```text
//! make run
//! cargo run -p rl-tower --example hyper
//! curl -i http://127.0.0.1:3000
//! ```

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rl_tower::{Fields, Limiter, LimiterOptions, LiveRules, OnOutage, Peer, Policy, RateLimitLayer, Rule, Rules};
use tower::{ServiceBuilder, service_fn};

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let api = Policy::new("api", 10, "10/m")?.on_outage(OnOutage::Deny);
    let rules = LiveRules::new(Rules::new([Rule::any().apply([api])])?);
    let limiter = Limiter::new(LimiterOptions::redis("redis://127.0.0.1:6379"))?;
    let layer = RateLimitLayer::new(limiter, rules).fields(Fields::XTriple);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    loop {
        let (connection, address) = listener.accept().await?;
        let with_peer = move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(address.ip()));
            request
        };
        let service = ServiceBuilder::new().map_request(with_peer).layer(layer.clone()).service(service_fn(hello));
        tokio::spawn(async move {
            let served = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(connection), TowerToHyperService::new(service))
                .await;
            if let Err(error) = served {
                eprintln!("{address}: {error}");
            }
        });
    }
}
