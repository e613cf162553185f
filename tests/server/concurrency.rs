//! Many clients at one bucket, each on a connection and a thread of its own, let go at the same moment.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::support::{self, Client, Server};

/// How many of `clients` are allowed `line`, all asking at once.
fn race(clients: &mut [Client], line: &str) -> i64 {
    support::race(clients, line).into_iter().sum()
}

fn crowd(server: &Server, size: usize) -> Vec<Client> {
    (0..size).map(|_| server.connect()).collect()
}

#[test]
fn of_200_at_a_fresh_key_of_10_exactly_10_pass() {
    let server = Server::start();
    let mut clients = crowd(&server, 200);
    for round in 0..5 {
        assert_eq!(race(&mut clients, &format!("RL.TAKE fresh:{round} 10 1/h")), 10, "round {round}");
    }
}

#[test]
fn of_100_at_a_bucket_of_20_that_never_refills_exactly_20_pass() {
    let server = Server::start();
    let mut clients = crowd(&server, 100);
    for round in 0..10 {
        assert_eq!(race(&mut clients, &format!("RL.TAKE once:{round} 20 0")), 20, "round {round}");
    }
}

#[test]
fn threads_that_read_for_the_server_change_nothing() {
    let server = Server::with(&["--io-threads", "4"]);
    let mut clients = crowd(&server, 100);
    for round in 0..5 {
        assert_eq!(race(&mut clients, &format!("RL.TAKE fresh:{round} 10 1/h")), 10, "round {round}");
    }
}

#[test]
fn costs_that_do_not_divide_the_capacity_leave_the_rest() {
    let server = Server::start();
    let mut clients = crowd(&server, 50);
    assert_eq!(race(&mut clients, "RL.TAKE key 20 0 3"), 6);
    assert_eq!(clients[0].five("RL.TAKE key 20 0 2"), [1, 0, 0, -1, 20]);
}

#[test]
fn callers_who_race_with_two_limits_get_no_more_than_the_first_made() {
    let server = Server::start();
    let mut clients = crowd(&server, 40);
    assert_eq!(clients[0].reply("RL.TAKE key 10 1/h").remaining, 9);
    let (left, right) = clients.split_at_mut(20);
    let allowed: i64 = scope(|scope| {
        let raised = scope.spawn(|| race(left, "RL.TAKE key 1000 1/h"));
        let usual = scope.spawn(|| race(right, "RL.TAKE key 10 1/h"));
        raised.join().unwrap() + usual.join().unwrap()
    });
    assert_eq!(allowed, 9);
}

#[test]
fn under_steady_fire_no_more_passes_than_capacity_and_refill() {
    const CAPACITY: i64 = 10;
    const RATE_PER_S: i64 = 200;
    let server = Server::start();
    let mut clients = crowd(&server, 8);
    let start = Instant::now();
    let stop = start + Duration::from_millis(500);
    let allowed: i64 = scope(|scope| {
        let shooters: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || fire_until(stop, client))).collect();
        shooters.into_iter().map(|shooter| shooter.join().unwrap()).sum()
    });
    let elapsed_us = i64::try_from(start.elapsed().as_micros()).unwrap();
    let most = CAPACITY + elapsed_us * RATE_PER_S / 1_000_000;
    assert!((CAPACITY..=most).contains(&allowed), "{allowed} of at most {most} in {elapsed_us} us");
    // And it is not less either: what is left, and what was allowed, is all there has been.
    sleep(Duration::from_millis(60));
    assert_eq!(clients[0].reply(&format!("RL.TAKE key {CAPACITY} {RATE_PER_S} {CAPACITY}")).allowed, 1);
}

fn fire_until(stop: Instant, client: &mut Client) -> i64 {
    let mut allowed = 0;
    while Instant::now() < stop {
        allowed += client.reply("RL.TAKE key 10 200").allowed;
    }
    allowed
}
