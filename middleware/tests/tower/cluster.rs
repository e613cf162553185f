//! A cluster of three nodes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::Router;
use rl_tower::breaker::BreakerState;
use rl_tower::{Client, LeaseOptions, Limiter, LimiterOptions, OnOutage, Policy, RedisOptions};

use crate::scene::{PATIENCE, api, calls, layer, passes, routes, statuses};
use crate::support::cluster::{Node, slot, three};

/// A limiter on a cluster, of which it is told one node.
fn limiter(nodes: &[Node; 3], timeout: Duration) -> Limiter {
    let url = format!("redis://127.0.0.1:{}", nodes[0].port);
    let redis = RedisOptions { cluster: true, timeout, ..RedisOptions::new(url) };
    let leases = LeaseOptions { busy: 1, hold: Duration::from_secs(60) };
    Limiter::new(LimiterOptions { redis: Some(redis), leases, own_limits: true, ..LimiterOptions::default() }).unwrap()
}

fn app(limiter: &Limiter, policies: [Policy; 2]) -> Router {
    routes().layer(layer(limiter, policies))
}

/// How often a node has sent a client to another one.
fn redirections(node: &Node) -> bool {
    let text: String = node.client().line("INFO errorstats");
    text.contains("errorstat_MOVED")
}

/// The node that has the buckets of a user.
fn home<'a>(nodes: &'a [Node; 3], user: &str) -> &'a Node {
    let slot = slot(&mut nodes[0].client(), &format!("rl:{{user:{user}}}:api"));
    &nodes[usize::from(slot / 5461)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_goes_to_the_node_of_its_client() {
    let nodes = three();
    let limiter = limiter(&nodes, PATIENCE);
    assert_eq!(limiter.ready().await, Ok(()));
    let app = app(&limiter, [api(3, "0"), Policy::new("other", 100, "0").unwrap()]);
    for user in 0..30 {
        assert_eq!(statuses(&app, &user.to_string(), "/", 5).await, [200, 200, 200, 429, 429]);
    }
    for node in &nodes {
        assert!(calls(&node.server, "RL.MTAKE") >= 8, "{} of 120 calls", calls(&node.server, "RL.MTAKE"));
        assert!(!redirections(node), "a call has gone to the wrong node");
    }

    // What a client is leased, given back, granted and told lies on its node, too.
    let (client, leased) = (Client::user("lessee"), Policy::new("leased", 100, "0").unwrap().leasing(10).unwrap());
    assert!(passes(&limiter, &client, &leased, 1).await);
    limiter.close().await;
    limiter.grant(&client, &leased, rl_core::Tokens::ONE).await.unwrap();
    let standing = limiter.standings(&client, &[leased.clone().into()]).await.unwrap();
    assert_eq!(standing[0].remaining, 100);
    let own = rl_tower::policy::limit(1, "0").unwrap();
    limiter.set_own_limits(&client, [(leased.name.clone(), Some(own))]).await.unwrap();
    assert_eq!(limiter.own_limits(&client).await.unwrap().len(), 1);

    // Each node knows whom it has denied.
    let top = limiter.top(100).await.unwrap();
    let denied: BTreeSet<_> = top.iter().map(|offender| offender.client.clone()).collect();
    assert_eq!(denied.len(), 30, "{top:?}");
    assert_eq!(limiter.top(7).await.unwrap().len(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_has_moved_is_followed() {
    let nodes = three();
    let limiter = limiter(&nodes, PATIENCE);
    let app = app(&limiter, [api(5, "0"), Policy::new("other", 100, "0").unwrap()]);
    assert_eq!(statuses(&app, "1", "/", 2).await, [200, 200]);
    let home = home(&nodes, "1");
    let target = nodes.iter().find(|node| node.port != home.port).unwrap();
    let slot = slot(&mut home.client(), "rl:{user:1}:api");
    let (mut from, mut to) = (home.client(), target.client());
    let _: () = to.line(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", home.id));
    let _: () = from.line(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", target.id));
    let keys: Vec<String> = from.line(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
    let port = target.port.to_string();
    let fixed = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    let _: () = from.ask(&[&fixed[..], &keys.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    // The keys are there, and the slot still here: the node says where to ask.
    assert_eq!(statuses(&app, "1", "/", 1).await, [200]);
    for client in [&mut to, &mut from] {
        let _: () = client.line(&format!("CLUSTER SETSLOT {slot} NODE {}", target.id));
    }
    assert_eq!(statuses(&app, "1", "/", 3).await, [200, 200, 429]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_gone_is_an_outage_for_its_clients_alone() {
    let mut nodes = three();
    let limiter = limiter(&nodes, Duration::from_millis(250));
    let policies = ["api", "other"].map(|name| Policy::new(name, 1000, "0").unwrap().on_outage(OnOutage::Deny));
    let app = app(&limiter, policies);
    let user_at = |nodes: &[Node; 3], port: u16| {
        (0..).map(|user: u32| user.to_string()).find(|user| home(nodes, user).port == port).unwrap()
    };
    let users = [0, 1, 2].map(|at| user_at(&nodes, nodes[at].port));
    for user in &users {
        assert_eq!(statuses(&app, user, "/", 1).await, [200]);
    }
    nodes[2].server.kill();
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(statuses(&app, &users[2], "/", 1).await, [503]);
        assert!(begun.elapsed() < Duration::from_millis(800), "{:?}", begun.elapsed());
        for user in &users[..2] {
            assert_eq!(statuses(&app, user, "/", 3).await, [200; 3]);
        }
    }
    assert_eq!(limiter.health().breaker, Some(BreakerState::Closed));
}
