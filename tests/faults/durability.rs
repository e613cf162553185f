//! A server that is killed under load, again and again.

use std::cell::RefCell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::load::{targets, under_load, used};
use crate::rounds;
use crate::support::Server;
use crate::support::dump::assert_no_crash;
use crate::support::random::Random;

/// Kills a server under load in each of `rounds`; after each restart no key has more left than what was acknowledged
/// earlier than `forgiven` before the kill allows, nor less than if what was under way had been charged, too.
fn kill_under_load(appendfsync: &str, rounds: u64, forgiven: Duration) {
    let mut random = Random::seeded();
    let server = RefCell::new(Server::with(&["--appendonly", "yes", "--appendfsync", appendfsync]));
    let (mut charged, mut lost) = (0, 0);
    for round in 0..rounds {
        let targets = targets(&format!("round:{round}"));
        let long = if round % 10 == 9 { 1_200 } else { 0 };
        let pause = Duration::from_millis(20 + random.below(80) + long);
        let mut killed_at = Instant::now();
        let logs = {
            let shared = server.borrow();
            let pid = shared.pid();
            under_load(&shared, &targets, || {
                sleep(pause);
                killed_at = Instant::now();
                kill(pid);
            })
        };
        server.borrow_mut().crash_and_restart();
        let mut client = server.borrow().connect();
        for log in logs {
            let used = used(&mut client, &log.target);
            let all = log.acknowledged.len() as u64;
            let kept = killed_at.checked_sub(forgiven).map_or(0, |time| log.acknowledged_before(time));
            let at_least = if forgiven.is_zero() { all } else { kept };
            assert!(
                used >= at_least,
                "round {round}: {used} used, {all} acknowledged, {at_least} must be kept: {:?}",
                log.target
            );
            assert!(used <= all + log.under_way, "round {round}: {used} used, {all} acknowledged: {:?}", log.target);
            charged += all;
            lost += all.saturating_sub(used);
        }
        assert_no_crash(&server.borrow().log());
        client.feed(["FLUSHALL".to_owned()]);
    }
    println!("{appendfsync}: {rounds} kills, {charged} takes acknowledged, {lost} lost");
    assert!(charged > 100 * rounds, "there was a load: {charged}");
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn no_acknowledged_take_is_lost_where_every_write_is_synced() {
    kill_under_load("always", rounds(200), Duration::ZERO);
}

#[test]
fn at_most_a_second_of_takes_is_lost_where_the_file_is_synced_every_second() {
    kill_under_load("everysec", rounds(200), Duration::from_secs(1));
}
