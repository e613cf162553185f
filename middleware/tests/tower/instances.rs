//! Four instances on one server and one key.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rl_tower::{Client, LeaseOptions, Limiter, LimiterOptions, Policy};
use tokio::task::JoinSet;

use crate::scene::{api, calls, options, passes, until};
use crate::support::Server;

const INSTANCES: u64 = 4;
const TASKS: u64 = 4;

/// As many limiters as there are instances.
fn instances(server: &Server, leases: LeaseOptions, denials: Option<NonZeroUsize>) -> Vec<Limiter> {
    let options = LimiterOptions { leases, denials, ..options(server) };
    (0..INSTANCES).map(|_| Limiter::new(options.clone()).unwrap()).collect()
}

fn client() -> Client {
    Client::user("1")
}

/// How many requests pass, where each of a few tasks on each instance asks for as long as `more` says, given how often it has
/// asked.
async fn admitted(limiters: &[Limiter], policy: &Policy, more: impl Fn(u64) -> bool + Clone + Send + 'static) -> u64 {
    let admitted = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for limiter in limiters.iter().flat_map(|limiter| (0..TASKS).map(|_| limiter.clone())) {
        let (policy, more, admitted) = (policy.clone(), more.clone(), admitted.clone());
        tasks.spawn(async move {
            let mut asked = 0;
            while more(asked) {
                asked += 1;
                admitted.fetch_add(passes(&limiter, &client(), &policy, 1).await.into(), Ordering::Relaxed);
            }
        });
    }
    tasks.join_all().await;
    admitted.load(Ordering::Relaxed)
}

/// So many requests of each task.
fn times(count: u64) -> impl Fn(u64) -> bool + Clone + Send + 'static {
    move |asked| asked < count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admit_exactly_what_there_is_with_plain_takes() {
    let server = Server::start();
    let limiters = instances(&server, LeaseOptions::default(), NonZeroUsize::new(100));
    assert_eq!(admitted(&limiters, &api(301, "0"), times(40)).await, 301);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_admit_more_with_leases_and_all_of_it_in_the_end() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 5, hold: Duration::from_millis(200) };
    let limiters = instances(&server, leases, None);
    let policy = api(301, "0").leasing(20).unwrap();
    let mut sum = admitted(&limiters, &policy, times(40)).await;
    assert!((200..=301).contains(&sum), "{sum}");
    until("what was leased and not used can be taken", async || {
        sum += u64::from(passes(&limiters[0], &client(), &policy, 1).await);
        assert!(sum <= 301, "{sum}");
        sum == 301
    })
    .await;
    tokio::time::sleep(3 * leases.hold).await;
    assert_eq!(admitted(&limiters, &policy, times(5)).await, 0, "nothing was given back twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_goes_back_when_an_instance_stops_and_when_it_is_idle() {
    let server = Server::start();
    let policy = api(100, "0").leasing(30).unwrap();
    let left = async || crate::scene::left(&server, "1", "api").unwrap();
    let [closing, idle] = [3600, 1].map(|seconds| {
        let leases = LeaseOptions { busy: 1, hold: Duration::from_secs(seconds) };
        Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap()
    });
    assert!(passes(&closing, &client(), &policy, 1).await);
    assert_eq!(left().await, 70);
    closing.close().await;
    assert_eq!(left().await, 99);
    let leased = Instant::now();
    assert!(passes(&idle, &client(), &policy, 1).await);
    assert_eq!(left().await, 69);
    until("it goes back", async || left().await == 98).await;
    assert!(leased.elapsed() >= Duration::from_millis(900), "{:?}", leased.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admit_no_more_than_what_refills_and_what_was_leased() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 5, hold: Duration::from_millis(200) };
    let limiters = instances(&server, leases, None);
    let (capacity, rate, lease) = (100, 200, 10);
    let policy = api(capacity, &rate.to_string()).leasing(lease).unwrap();
    let begun = Instant::now();
    let sum = admitted(&limiters, &policy, move |_| begun.elapsed() < Duration::from_millis(1500)).await;
    let window = begun.elapsed();
    let most = capacity as f64 + rate as f64 * window.as_secs_f64() + (INSTANCES * lease) as f64;
    assert!(sum as f64 <= most, "{sum} in {window:?}");
    assert!(sum as f64 >= (capacity as f64 + rate as f64 * 1.5) / 2.0, "{sum} in {window:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_save_at_least_four_of_five_calls() {
    let mut asked = Vec::new();
    for policy in [api(100_000, "0"), api(100_000, "0").leasing(100).unwrap()] {
        let server = Server::start();
        let limiters = instances(&server, LeaseOptions::default(), None);
        assert_eq!(admitted(&limiters, &policy, times(250)).await, INSTANCES * TASKS * 250);
        for limiter in &limiters {
            limiter.close().await;
        }
        asked.push(["RL.TAKE", "RL.LEASE", "RL.GIVE"].map(|command| calls(&server, command)).iter().sum::<u64>());
        assert_eq!(crate::scene::left(&server, "1", "api"), Some(100_000 - 4000));
    }
    println!("calls for 4000 requests: {asked:?}");
    assert_eq!(asked[0], 4000);
    assert!(asked[1] * 5 <= asked[0], "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_little_is_left_those_who_waited_for_a_lease_do_not_each_ask_for_one() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, ..LeaseOptions::default() };
    let limiter = &instances(&server, leases, None)[0];
    let policy = api(1, "0").leasing(1).unwrap();
    let mut together = JoinSet::new();
    for _ in 0..100 {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        together.spawn(async move { passes(&limiter, &client(), &policy, 1).await });
    }
    let passed = together.join_all().await.into_iter().filter(|passed| *passed).count();
    assert_eq!(passed, 1);
    assert!(calls(&server, "RL.LEASE") <= 10, "{} calls", calls(&server, "RL.LEASE"));
}
