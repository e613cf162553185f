//! Denials that are remembered: a client that does not wait costs Redis nothing.

use std::time::{Duration, Instant};

use rl_core::Tokens;
use rl_tower::{Client, LeaseOptions, Limiter, LimiterOptions, Policy, Verdict};

use crate::scene::{api, calls, check, limiter, options, passes, until};
use crate::support::Server;

#[tokio::test]
async fn a_client_that_hammers_reaches_redis_once() {
    let server = Server::start();
    let (limiter, client, hourly) = (limiter(&server), Client::user("1"), api(1, "1/h"));
    assert!(passes(&limiter, &client, &hourly, 1).await);
    for _ in 0..500 {
        assert!(!passes(&limiter, &client, &hourly, 1).await);
    }
    assert_eq!(calls(&server, "RL.TAKE"), 2);
}

#[tokio::test]
async fn a_client_that_hammers_reaches_redis_once_per_wait_and_passes_when_it_is_over() {
    let server = Server::start();
    let (limiter, client, slow) = (limiter(&server), Client::user("1"), api(1, "2"));
    let (begun, mut asked, mut allowed) = (Instant::now(), 0_u64, 0_u64);
    while begun.elapsed() < Duration::from_millis(2200) {
        asked += 1;
        allowed += u64::from(passes(&limiter, &client, &slow, 1).await);
    }
    assert!((3..=6).contains(&allowed), "{allowed}");
    assert!(calls(&server, "RL.TAKE") <= 2 * allowed + 1, "{} calls", calls(&server, "RL.TAKE"));
    assert!(asked > 20 * allowed, "{asked}");
}

#[tokio::test]
async fn another_limit_and_another_cost_are_asked_for_at_once() {
    let server = Server::start();
    let (limiter, client) = (limiter(&server), Client::user("1"));
    let (free, pro) = (api(5, "0"), api(50, "10").sharing("api").unwrap());
    assert!(passes(&limiter, &client, &free, 3).await);
    assert!(!passes(&limiter, &client, &free, 3).await);
    assert!(passes(&limiter, &client, &free, 2).await, "another cost");
    assert!(!passes(&limiter, &client, &free, 3).await);
    // A bucket that has room for more is not fuller at once, but waiting helps.
    let Verdict::Denied(denied) = check(&limiter, &client, &pro, 3).await else { panic!("passed") };
    assert!(denied.retry_after < rl_core::Wait::Micros(400_000), "{denied:?}");
    until("the upgraded client passes", async || passes(&limiter, &client, &pro, 3).await).await;
}

#[tokio::test]
async fn a_grant_and_a_reset_through_the_same_limiter_are_felt_at_once() {
    let server = Server::start();
    let (limiter, client, once) = (limiter(&server), Client::user("1"), api(2, "0"));
    let exhausted = async || {
        while passes(&limiter, &client, &once, 1).await {}
        !passes(&limiter, &client, &once, 1).await
    };
    assert!(exhausted().await);
    limiter.grant(&client, &once, Tokens::ONE).await.unwrap();
    assert!(passes(&limiter, &client, &once, 1).await);
    assert!(exhausted().await);
    limiter.reset(&client, &once).await.unwrap();
    assert!(passes(&limiter, &client, &once, 2).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_is_felt_at_once_by_those_who_hammer() {
    let server = Server::start();
    let (limiter, once) = (limiter(&server), api(1, "0"));
    for round in 0..50 {
        let client = Client::user(&round.to_string());
        let Verdict::Allowed(allowed) = check(&limiter, &client, &once, 1).await else { panic!("denied") };
        assert!(!passes(&limiter, &client, &once, 1).await);
        let hammering = tokio::spawn({
            let (limiter, client, once) = (limiter.clone(), client.clone(), once.clone());
            async move {
                let begun = Instant::now();
                while !passes(&limiter, &client, &once, 1).await {
                    tokio::task::yield_now().await;
                }
                begun.elapsed()
            }
        });
        limiter.refund(allowed.receipt).await;
        let waited = hammering.await.unwrap();
        assert!(waited < Duration::from_secs(3), "round {round}: {waited:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_goes_back_is_felt_at_once() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, hold: Duration::from_millis(100) };
    let limiter = Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap();
    let (client, policy) = (Client::user("1"), api(10, "0").leasing(6).unwrap());
    assert!(passes(&limiter, &client, &policy, 1).await);
    let begun = Instant::now();
    // Four are in the bucket, five are leased, and so much is not leased at all.
    if passes(&limiter, &client, &policy, 7).await {
        return assert!(begun.elapsed() > Duration::from_millis(20), "more than there was");
    }
    until("what went back can be taken", async || passes(&limiter, &client, &policy, 7).await).await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "not for as long as a denial is remembered: {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn without_a_memory_every_request_asks() {
    let server = Server::start();
    let limiter = Limiter::new(LimiterOptions { denials: None, ..options(&server) }).unwrap();
    let (client, policy) = (Client::user("1"), Policy::new("api", 1, "1/h").unwrap());
    for n in 0..10 {
        assert_eq!(passes(&limiter, &client, &policy, 1).await, n == 0);
    }
    assert_eq!(calls(&server, "RL.TAKE"), 10);
}
