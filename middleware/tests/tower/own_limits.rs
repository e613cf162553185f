//! Limits of single clients, in the place of a policy's.

use std::time::{Duration, Instant};

use rl_tower::policy::limit;
use rl_tower::{Client, Limiter, LimiterOptions, Policy};

use crate::scene::{api, calls, limiter, options, passes, until};
use crate::support::Server;

fn knowing(server: &Server) -> Limiter {
    Limiter::new(LimiterOptions { own_limits: true, ..options(server) }).unwrap()
}

/// How many requests of `client` pass until one does not.
async fn passed(limiter: &Limiter, client: &Client, policy: &Policy) -> usize {
    let mut passed = 0;
    while passes(limiter, client, policy, 1).await {
        passed += 1;
    }
    passed
}

#[tokio::test]
async fn applies_at_once_where_it_is_set_and_soon_on_other_instances_until_it_is_removed() {
    let server = Server::start();
    let (here, there) = (knowing(&server), knowing(&server));
    let (vip, policy) = (Client::user("vip"), api(2, "0"));
    let limit_of = async |limiter: &Limiter| {
        limiter
            .check(&vip, &[rl_tower::Charge { policy: policy.clone().into(), cost: rl_core::Tokens::ZERO }], "/")
            .await
    };
    let capacity = async |limiter: &Limiter| match limit_of(limiter).await {
        rl_tower::Verdict::Allowed(allowed) => allowed.standings[0].limit.capacity().get(),
        other => panic!("{other:?}"),
    };
    assert_eq!((capacity(&here).await, capacity(&there).await), (2, 2));
    for (own, expected) in [(Some(limit(5, "0").unwrap()), 5), (None, 2)] {
        let begun = Instant::now();
        here.set_own_limits(&vip, [(policy.name.clone(), own)]).await.unwrap();
        assert_eq!(capacity(&here).await, expected);
        until("it applies on the other instance", async || capacity(&there).await == expected).await;
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn is_of_one_client_and_of_one_policy() {
    let server = Server::start();
    let (limiter, unaware) = (knowing(&server), limiter(&server));
    let (vip, policy, other) = (Client::user("vip"), api(2, "0"), Policy::new("other", 2, "0").unwrap());
    limiter.set_own_limits(&vip, [(policy.name.clone(), limit(5, "0").ok())]).await.unwrap();
    assert_eq!(passed(&limiter, &vip, &policy).await, 5);
    assert_eq!(passed(&limiter, &vip, &other).await, 2);
    assert_eq!(passed(&limiter, &Client::user("else"), &policy).await, 2);
    assert_eq!(passed(&unaware, &vip, &api(9, "0").sharing("unaware").unwrap()).await, 9);
}

#[tokio::test]
async fn those_that_are_given_together_are_in_force_together() {
    let server = Server::start();
    let limiter = knowing(&server);
    let vip = Client::user("vip");
    let [a, b, c] = ["a", "b", "c"].map(|name| Policy::new(name, 1, "0").unwrap().name);
    let five = limit(5, "0").ok();
    limiter.set_own_limits(&vip, [(a.clone(), five), (b.clone(), five)]).await.unwrap();
    assert_eq!(calls(&server, "HSET"), 1);
    limiter.set_own_limits(&vip, [(b, None), (c.clone(), five), (a.clone(), None)]).await.unwrap();
    assert_eq!((calls(&server, "HSET"), calls(&server, "HDEL")), (2, 1));
    assert_eq!(limiter.own_limits(&vip).await.unwrap().keys().collect::<Vec<_>>(), [&c]);
    limiter.set_own_limits(&vip, []).await.unwrap();
    assert_eq!((calls(&server, "HSET"), calls(&server, "HDEL")), (2, 1));
}

#[tokio::test]
async fn outlives_a_bucket_that_nobody_uses() {
    let server = Server::start();
    let (vip, policy) = (Client::user("vip"), api(2, "1/h"));
    knowing(&server).set_own_limits(&vip, [(policy.name.clone(), limit(3, "100").ok())]).await.unwrap();
    assert!(passes(&knowing(&server), &vip, &policy, 3).await);
    until("the bucket is full and forgotten", async || !server.connect().exists("rl:{user:vip}:api")).await;
    assert!(passes(&knowing(&server), &vip, &policy, 3).await, "three at once, which the policy would not grant");
}

#[tokio::test]
async fn what_was_known_applies_while_redis_is_gone() {
    let mut server = Server::start();
    let limiter = knowing(&server);
    let (vip, policy) = (Client::user("vip"), api(2, "0").on_outage(rl_tower::OnOutage::Local));
    limiter.set_own_limits(&vip, [(policy.name.clone(), limit(5, "0").ok())]).await.unwrap();
    assert!(passes(&limiter, &vip, &policy, 1).await);
    server.kill();
    assert_eq!(passed(&limiter, &vip, &policy).await, 5, "a bucket of its own, of its own limit");
}
