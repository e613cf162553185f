//! Under tonic, with its own server, client and a service of its own making.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rl_tower::{Grpc, Limiter, OnOutage, Policy, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Channel, Server as Tonic};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::scene::{layer, limiter};
use crate::support::Server;

const LOCALHOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A client of a service that is limited by `policy`, the service's listener being on `LOCALHOST`.
async fn serve(limiter: &Limiter, policy: Policy) -> HealthClient<Channel> {
    let limit: RateLimitLayer<Grpc> = layer(limiter, [policy]).respond_with(Grpc);
    let (_, health) = tonic_health::server::health_reporter();
    let listener = TcpListener::bind(LOCALHOST).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = Tonic::builder().layer(limit).add_service(health);
    tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
    HealthClient::new(Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_is_resource_exhausted_and_says_when_to_come_back() {
    let server = Server::start();
    let mut client = serve(&limiter(&server), Policy::new("api", 2, "1/h").unwrap()).await;
    let ask = || HealthCheckRequest { service: String::new() };
    for remaining in ["1", "0"] {
        let answer = client.check(ask()).await.unwrap();
        let told = answer.metadata().get("ratelimit").unwrap().to_str().unwrap();
        assert!(told.contains(&format!(";r={remaining};")), "{told}");
    }
    let denied = client.check(ask()).await.unwrap_err();
    assert_eq!(denied.code(), Code::ResourceExhausted);
    let pushback = denied.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    assert!((3_500_000..=3_600_000).contains(&pushback.parse().unwrap()), "{pushback}");
    // Who it is comes from tonic's own listener.
    let keys: Vec<String> = server.connect().line("KEYS *");
    assert_eq!(keys, ["rl:{ip:127.0.0.1}:api"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_unavailable() {
    let limiter = Limiter::new(rl_tower::LimiterOptions::redis("redis://127.0.0.1:1")).unwrap();
    let mut client = serve(&limiter, Policy::new("api", 2, "1/h").unwrap().on_outage(OnOutage::Deny)).await;
    let refused = client.check(HealthCheckRequest { service: String::new() }).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.metadata().get("grpc-retry-pushback-ms").is_none());
}
