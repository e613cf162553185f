//! Redis is slow, gone, back; or there, and does not do what it is asked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::Router;
use rl_tower::breaker::{BreakerOptions, BreakerState};
use rl_tower::{
    Client, LeaseOptions, Limiter, LimiterOptions, LiveRules, OnOutage, Policy, RateLimitLayer, RedisOptions, Rule,
    Rules, Trouble,
};
use tokio::task::JoinSet;

use crate::scene::{api, by, left, options, passes, routes, send, signal, statuses, until, url};
use crate::support::{Server, eventually};

const ROUTES: [(&str, OnOutage); 3] =
    [("/allow", OnOutage::Allow), ("/deny", OnOutage::Deny), ("/local", OnOutage::Local)];
/// What a request may take, on a machine that is busy with something else. Redis has 100 ms of it.
const AT_MOST: Duration = Duration::from_millis(800);

/// A router whose routes say what becomes of requests in an outage. Four instances share 40 tokens.
fn app(limiter: &Limiter) -> Router {
    let rule = |(route, on_outage): (&'static str, _)| {
        let policy = Policy::new(&route[1..], 40, "0").unwrap().on_outage(on_outage);
        Rule::on([route]).apply([policy])
    };
    routes().layer(RateLimitLayer::new(limiter.clone(), LiveRules::new(Rules::new(ROUTES.map(rule)).unwrap())))
}

fn one_of_four(url: &str, breaker: BreakerOptions) -> Limiter {
    let redis = RedisOptions { breaker, ..RedisOptions::new(url) };
    let instances = NonZeroU32::new(4).unwrap();
    Limiter::new(LimiterOptions { redis: Some(redis), instances, ..LimiterOptions::default() }).unwrap()
}

fn breaker(failures: u32, first_pause_ms: u64) -> BreakerOptions {
    let first_pause = Duration::from_millis(first_pause_ms);
    BreakerOptions { failures, first_pause, longest_pause: 2 * first_pause }
}

fn state(limiter: &Limiter) -> BreakerState {
    limiter.health().breaker.unwrap()
}

/// How a request was answered, and when and how fast.
#[derive(Debug, Clone)]
struct Seen {
    route: &'static str,
    status: u16,
    degraded: Option<String>,
    took: Duration,
}

async fn seen(app: &Router, user: &str, route: &'static str) -> Seen {
    let begun = Instant::now();
    let answer = send(app, by(user, route)).await;
    let degraded = answer.field("ratelimit-degraded").map(str::to_owned);
    let problem = answer.body.contains("temporary-reduced-capacity");
    assert_eq!(problem, answer.status == 503, "{answer:?}");
    Seen { route, status: answer.status, degraded, took: begun.elapsed() }
}

/// What clients see, of which three a route send request after request while `meanwhile` goes on. Each request is of a user who
/// has not been here before.
async fn under_load(app: &Router, meanwhile: impl Future<Output = ()>) -> Vec<Seen> {
    let (stop, stopped) = tokio::sync::watch::channel(());
    let mut clients = JoinSet::new();
    for (n, (route, _)) in ROUTES.into_iter().cycle().take(9).enumerate() {
        let (app, stopped) = (app.clone(), stopped.clone());
        clients.spawn(async move {
            let mut all = Vec::new();
            while !stopped.has_changed().unwrap_or(true) {
                all.push(seen(&app, &format!("{n}-{}", all.len()), route).await);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            all
        });
    }
    meanwhile.await;
    drop(stop);
    clients.join_all().await.into_iter().flatten().collect()
}

/// Every request was answered in time and as its policy says; and some of each route without Redis.
fn are_as_their_policies_say(all: &[Seen]) {
    let mut without_redis = BTreeMap::new();
    for seen in all {
        assert!(seen.took < AT_MOST, "{seen:?}");
        let expected = if seen.degraded.is_some() && seen.route == "/deny" { 503 } else { 200 };
        assert_eq!(seen.status, expected, "{seen:?}");
        *without_redis.entry(seen.route).or_insert(0) += u32::from(seen.degraded.is_some());
    }
    assert!(ROUTES.iter().all(|(route, _)| without_redis[route] > 5), "{without_redis:?}");
}

/// Waits until Redis decides again.
async fn is_back(app: &Router) {
    let mut n = 0;
    until("Redis decides again", async || {
        n += 1;
        seen(app, &format!("after-{n}"), "/deny").await.degraded.is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_without_redis_and_uses_it_when_it_comes() {
    let mut server = Server::start();
    server.kill();
    let limiter = one_of_four(&url(&server), breaker(5, 100));
    assert_eq!(limiter.ready().await, Err(Trouble::Unreachable));
    let app = app(&limiter);
    let mut all = BTreeMap::new();
    for (route, _) in ROUTES {
        for _ in 0..12 {
            let seen = seen(&app, "1", route).await;
            assert!(seen.took < AT_MOST && seen.degraded.is_some(), "{seen:?}");
            all.entry(route).or_insert_with(Vec::new).push(seen.status);
        }
    }
    assert_eq!(all["/allow"], [200; 12]);
    assert_eq!(all["/deny"], [503; 12]);
    // A quarter of 40.
    assert_eq!(all["/local"], [[200; 10].as_slice(), &[429; 2]].concat());
    server.relaunch();
    is_back(&app).await;
    assert_eq!(limiter.ready().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_under_load_holds_nobody_up() {
    let server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(5, 100));
    let app = app(&limiter);
    let all = under_load(&app, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        signal(&server, "STOP");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_ne!(state(&limiter), BreakerState::Closed);
        signal(&server, "CONT");
        is_back(&app).await;
    })
    .await;
    are_as_their_policies_say(&all);
    assert!(all.iter().any(|seen| seen.degraded.is_none()), "none was decided by Redis");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_under_load_and_comes_back_is_used_again() {
    let mut server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(5, 100));
    let app = app(&limiter);
    let all = under_load(&app, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(700)).await;
        server.relaunch();
        is_back(&app).await;
    })
    .await;
    are_as_their_policies_say(&all);
    assert_eq!(state(&limiter), BreakerState::Closed);
}

#[tokio::test]
async fn while_the_breaker_is_open_a_request_costs_microseconds() {
    let server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(2, 60_000));
    let app = app(&limiter);
    signal(&server, "STOP");
    for _ in 0..2 {
        assert_eq!(seen(&app, "1", "/allow").await.degraded.as_deref(), Some("timeout"));
    }
    for (route, _) in ROUTES {
        let mut took = Vec::new();
        for n in 0..201 {
            let seen = seen(&app, &n.to_string(), route).await;
            assert_eq!(seen.degraded.as_deref(), Some("breaker-open"));
            took.push(seen.took);
        }
        took.sort();
        println!("{route}, breaker open: median {:?}", took[100]);
        assert!(took[100] < Duration::from_millis(1), "{route}: {:?}", took[100]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_pause_is_over_exactly_one_request_asks() {
    let server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(1, 2000));
    let app = app(&limiter);
    signal(&server, "STOP");
    assert_eq!(seen(&app, "1", "/allow").await.degraded.as_deref(), Some("timeout"));
    tokio::time::sleep(Duration::from_millis(2100)).await;
    // All begin before the first can have given up: a probe that has failed opens the breaker for seconds again.
    let mut together = JoinSet::new();
    for _ in 0..50 {
        let app = app.clone();
        together.spawn(async move { seen(&app, "1", "/allow").await.degraded.unwrap() });
    }
    let mut words = together.join_all().await;
    words.sort();
    assert_eq!(words.iter().filter(|word| *word == "timeout").count(), 1, "{words:?}");
    assert_eq!(words.iter().filter(|word| *word == "breaker-open").count(), 49, "{words:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_nobody_waits_for_any_more_is_no_probe() {
    let server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(1, 50));
    let app = app(&limiter);
    signal(&server, "STOP");
    seen(&app, "1", "/allow").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let impatient = tokio::time::timeout(Duration::from_millis(10), seen(&app, "1", "/allow")).await;
    assert!(impatient.is_err(), "{impatient:?}");
    signal(&server, "CONT");
    is_back(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_used_again_within_the_pause() {
    let mut server = Server::start();
    let limiter = one_of_four(&url(&server), breaker(1, 500));
    let app = app(&limiter);
    server.kill();
    seen(&app, "1", "/allow").await;
    assert_eq!(state(&limiter), BreakerState::Open);
    server.relaunch();
    let back = Instant::now();
    is_back(&app).await;
    assert!(back.elapsed() < Duration::from_secs(3), "{:?}", back.elapsed());
}

#[tokio::test]
async fn the_longest_of_all_waits_is_none_at_all_to_a_server_that_answers() {
    let server = Server::start();
    let breaker = BreakerOptions { failures: 1, first_pause: Duration::MAX, longest_pause: Duration::MAX };
    let (timeout, connect_timeout) = (Duration::MAX, Duration::MAX);
    let redis = RedisOptions { timeout, connect_timeout, breaker, ..RedisOptions::new(url(&server)) };
    let leases = LeaseOptions { busy: 1, hold: Duration::MAX };
    let options = LimiterOptions { redis: Some(redis), leases, ..LimiterOptions::default() };
    let limiter = Limiter::new(options).unwrap();
    assert_eq!(limiter.ready().await, Ok(()));
    assert!(passes(&limiter, &Client::user("1"), &api(100, "0").leasing(10).unwrap(), 1).await);
    limiter.close().await;
    assert_eq!(left(&server, "1", "api"), Some(99));
}

#[tokio::test]
async fn a_server_without_the_module_is_a_configuration_error_and_no_outage() {
    let server = Server::bare(&["--enable-module-command", "yes"]);
    let limiter = one_of_four(&url(&server), breaker(5, 60_000));
    assert_eq!(limiter.ready().await, Err(Trouble::NotLoaded));
    assert!(Trouble::NotLoaded.to_string().contains("load librl.so"), "{}", Trouble::NotLoaded);
    let app = app(&limiter);
    for (route, status) in [("/allow", 200), ("/deny", 503), ("/local", 200)] {
        for _ in 0..10 {
            let seen = seen(&app, "1", route).await;
            assert_eq!((seen.status, seen.degraded.as_deref()), (status, Some("not-loaded")));
        }
    }
    assert_eq!((state(&limiter), limiter.health().trouble), (BreakerState::Closed, Some(Trouble::NotLoaded)));
    let _: String = server.connect().ask(&["MODULE", "LOAD", &crate::support::module().display().to_string()]);
    assert_eq!(seen(&app, "1", "/deny").await.degraded, None, "it is used as soon as it is loaded");
}

#[tokio::test]
async fn an_error_reply_is_no_outage() {
    let primary = Server::with(&["--port", &crate::support::free_port().to_string()]);
    let replica = primary.replica();
    let (full, typed, locked) = (Server::start(), Server::start(), Server::start());
    let _: () = full.connect().line("CONFIG SET maxmemory 1");
    let _: () = typed.connect().ask(&["SET", "rl:{user:1}:deny", "no bucket"]);
    let _: () = locked.connect().line("ACL SETUSER default -@all +client +acl");
    for (server, error) in [(&replica, "READONLY"), (&full, "OOM"), (&typed, "WRONGTYPE"), (&locked, "NOPERM")] {
        let limiter = one_of_four(&url(server), breaker(3, 60_000));
        let app = app(&limiter);
        for _ in 0..10 {
            let seen = seen(&app, "1", "/deny").await;
            assert_eq!((seen.status, seen.degraded.as_deref()), (503, Some("refused")), "{error}");
        }
        assert_eq!(state(&limiter), BreakerState::Closed, "{error}");
        let trouble = limiter.health().trouble.unwrap();
        assert!(trouble.to_string().contains(error), "{trouble}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_leased_is_spent_while_redis_hangs() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, hold: Duration::from_secs(60) };
    let limiter = Limiter::new(LimiterOptions { leases, ..LimiterOptions::redis(url(&server)) }).unwrap();
    let app =
        routes().layer(crate::scene::layer(&limiter, [api(10, "0").leasing(5).unwrap().on_outage(OnOutage::Deny)]));
    assert_eq!(statuses(&app, "1", "/", 1).await, [200]);
    signal(&server, "STOP");
    assert_eq!(statuses(&app, "1", "/", 6).await, [200, 200, 200, 200, 503, 503]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_that_hung_up_had_taken_from_a_lease_is_put_back() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, hold: Duration::from_secs(60) };
    let limiter = Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap();
    let other = Policy::new("other", 100, "0").unwrap();
    let app = routes().layer(crate::scene::layer(&limiter, [api(10, "0").leasing(5).unwrap(), other]));
    assert_eq!(statuses(&app, "1", "/", 1).await, [200]);
    signal(&server, "STOP");
    // One of its policies is decided, the other waits for Redis.
    let hung_up = tokio::time::timeout(Duration::from_millis(50), statuses(&app, "1", "/", 1)).await;
    assert!(hung_up.is_err(), "{hung_up:?}");
    signal(&server, "CONT");
    limiter.close().await;
    assert_eq!(left(&server, "1", "api"), Some(9));
}

#[test]
fn a_limiter_survives_the_runtime_on_which_it_connected() {
    let server = Server::start();
    let limiter = Limiter::new(LimiterOptions::redis(url(&server))).unwrap();
    let (client, policy) = (Client::user("1"), api(9, "0").on_outage(OnOutage::Deny));
    signal(&server, "STOP");
    // The attempt to connect is under way when its runtime ends.
    let short = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(short.block_on(limiter.ready()), Err(Trouble::Slow));
    drop(short);
    signal(&server, "CONT");
    let next = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    eventually("it connects again", || next.block_on(limiter.ready()) == Ok(()));
    assert!(next.block_on(passes(&limiter, &client, &policy, 1)));
}

#[test]
fn leases_go_back_although_the_runtime_that_saw_to_it_has_ended() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, hold: Duration::from_millis(100) };
    let limiter = Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap();
    let (client, policy) = (Client::user("1"), api(100, "0").leasing(5).unwrap());
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime().block_on(passes(&limiter, &client, &policy, 1)));
    // The connection has ended, too, with its runtime.
    let next = runtime();
    eventually("it connects again", || next.block_on(limiter.ready()) == Ok(()));
    for _ in 0..5 {
        assert!(next.block_on(passes(&limiter, &client, &policy, 1)));
    }
    next.block_on(until("they go back", async || left(&server, "1", "api") == Some(94)));
}
