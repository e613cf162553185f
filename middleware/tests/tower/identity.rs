//! Attacks: a client that wants to be somebody else, to escape its own limit or to use up another's.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use axum::body::Body;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use rl_tower::{Forwarded, GatewayHeader, Identity, Peer};

use crate::scene::{api, layer, limiter, routes, send};
use crate::support::Server;

const ATTACKER: &str = "198.51.100.66";
const PROXY: &str = "10.0.0.9";
const REQUESTS: usize = 60;
const CAPACITY: u64 = 7;

/// What a client writes into a request to be taken for another.
fn forged(chance: &mut fastrand::Rng) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let names = [
        "x-forwarded-for",
        "forwarded",
        "x-real-ip",
        "x-user",
        "x-tenant",
        "x-client-ip",
        "cf-connecting-ip",
        "x_user",
    ];
    for _ in 0..chance.usize(1..6) {
        let address = format!("{}.{}.{}.{}", chance.u8(..), chance.u8(..), chance.u8(..), chance.u8(..));
        let value = match chance.usize(0..8) {
            0 => address,
            1 => format!("{address}, 10.0.0.1, 10.0.0.2"),
            2 => format!("for={address};proto=https"),
            3 => format!("[2001:db8::{:x}]:443", chance.u16(..)),
            4 => format!("::ffff:{address}, nonsense"),
            5 => format!("victim-{}", chance.u8(..)),
            6 => ",,, ,".to_owned(),
            _ => "\u{e9}\u{ff}".to_owned(),
        };
        let bytes: Vec<u8> = value.chars().map(|c| u32::from(c) as u8).collect();
        let name = HeaderName::from_static(names[chance.usize(0..names.len())]);
        headers.append(name, HeaderValue::from_bytes(&bytes).unwrap());
    }
    headers
}

/// What the operator's proxy makes of a request: it appends whom it was called by, to the last line or in one of its own.
fn proxied(headers: &mut HeaderMap, caller: &str, chance: &mut fastrand::Rng) {
    let mut lines: Vec<Vec<u8>> =
        headers.get_all("x-forwarded-for").iter().map(|value| value.as_bytes().to_vec()).collect();
    match lines.last_mut() {
        Some(last) if chance.bool() => last.extend_from_slice(format!(", {caller}").as_bytes()),
        _ => lines.push(caller.into()),
    }
    headers.remove("x-forwarded-for");
    for line in lines {
        headers.append("x-forwarded-for", HeaderValue::from_bytes(&line).unwrap());
    }
}

fn from(peer: &str, headers: HeaderMap) -> Request<Body> {
    let mut request = Request::get("/").body(Body::empty()).unwrap();
    *request.headers_mut() = headers;
    request.extensions_mut().insert(Peer(peer.parse::<IpAddr>().unwrap()));
    request
}

/// Sends forged requests through `proxies` (the nearest to the client first), and sees that all of them were charged to
/// `client` and to nobody else.
async fn is_charged_to(client: &str, identity: Identity, proxies: &[&str]) {
    let server = Server::start();
    let app = routes().layer(layer(&limiter(&server), [api(CAPACITY, "0")]).identity(identity));
    let seed = fastrand::u64(..);
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut statuses = Vec::new();
    for _ in 0..REQUESTS {
        let mut headers = forged(&mut chance);
        let mut caller = ATTACKER;
        for proxy in proxies {
            proxied(&mut headers, caller, &mut chance);
            caller = proxy;
        }
        statuses.push(send(&app, from(caller, headers)).await.status);
    }
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(passed as u64, CAPACITY, "seed {seed}");
    let keys: Vec<String> = server.connect().line("KEYS *");
    assert_eq!(keys, [format!("rl:{{{client}}}:api")], "seed {seed}");
}

fn attacker() -> String {
    format!("ip:{ATTACKER}")
}

#[tokio::test]
async fn without_proxies_no_header_makes_a_client_another() {
    is_charged_to(&attacker(), Identity::default(), &[]).await;
}

#[tokio::test]
async fn behind_one_proxy_and_behind_two_the_client_is_who_called_the_first() {
    let nth = |n| Identity::default().forwarded(Forwarded::FromRight(NonZeroUsize::new(n).unwrap()));
    is_charged_to(&attacker(), nth(1), &[PROXY]).await;
    is_charged_to(&attacker(), nth(2), &["10.0.0.1", PROXY]).await;
}

#[tokio::test]
async fn behind_trusted_networks_the_client_is_who_called_the_first_of_them() {
    let behind = || Identity::default().forwarded(Forwarded::BehindTrusted(vec!["10.0.0.0/8".parse().unwrap()]));
    is_charged_to(&attacker(), behind(), &[PROXY]).await;
    is_charged_to(&attacker(), behind(), &["10.0.0.1", PROXY]).await;
    // Past the proxies, straight to the service.
    is_charged_to(&attacker(), behind(), &[]).await;
}

#[tokio::test]
async fn a_header_of_the_gateway_counts_from_the_gateway_only() {
    let gateway = || GatewayHeader::from_gateways(HeaderName::from_static("x-user"), ["10.0.0.0/8".parse().unwrap()]);
    is_charged_to(&attacker(), Identity::default().principal_header(gateway()), &[]).await;
    is_charged_to(&attacker(), Identity::default().tenant_header(gateway()), &[]).await;
}

#[tokio::test]
async fn a_principal_that_looks_like_another_key_is_a_client_of_its_own() {
    let server = Server::start();
    let app = routes().layer(layer(&limiter(&server), [api(1, "0")]));
    for user in ["a", "a}:api", "{a", "a:api", "ip:198.51.100.66", "a%7D:api", "a\r\nb", " a"] {
        assert_eq!(crate::scene::statuses(&app, user, "/", 2).await, [200, 429], "{user:?}");
    }
    let keys: Vec<String> = server.connect().line("KEYS *");
    assert_eq!(keys.len(), 8, "{keys:?}");
}
