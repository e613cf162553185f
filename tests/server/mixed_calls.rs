//! Fifty clients that take, lease and book from one bucket: what they were granted, by their own logs, is no more than
//! the limit admits.

use std::sync::Barrier;
use std::thread::scope;

use crate::support::random::Random;
use crate::support::{Client, Server, now_us};

const CLIENTS: usize = 50;

/// So many tokens, to be spent somewhere between two times: when they have come in.
#[derive(Debug, Clone, Copy)]
struct Grant {
    tokens: u64,
    from_us: u64,
    to_us: u64,
}

/// Asks until `stop_us`, or until nothing is left where nothing comes in; what was granted.
fn spend(client: &mut Client, kinds: &[usize], limit: &str, stop_us: u64) -> Vec<Grant> {
    let mut grants = Vec::new();
    for turn in kinds.iter().cycle() {
        if now_us() > stop_us {
            break;
        }
        let (line, cost) = match turn {
            0 => (format!("RL.TAKE key {limit}"), 1),
            1 => (format!("RL.TAKE key {limit} 3"), 3),
            2 => (format!("RL.LEASE key {limit} 4"), 0),
            3 => (format!("RL.RESERVE key {limit} 1 100ms"), 1),
            _ => (format!("RL.RESERVE key {limit} 2 0.3"), 2),
        };
        let answer = client.timed(&line);
        let granted = answer.reply.allowed.unsigned_abs();
        let tokens = if *turn == 2 { granted } else { granted * cost };
        if tokens == 0 && answer.reply.reset_after_ms == -1 && answer.reply.remaining == 0 {
            break;
        }
        // The third integer is a wait only for a booking; in milliseconds, rounded up.
        let wait_us = if granted > 0 { answer.reply.retry_after_ms.unsigned_abs() * 1_000 } else { 0 };
        if tokens > 0 {
            let from_us = answer.from_us + wait_us.saturating_sub(1_000);
            grants.push(Grant { tokens, from_us, to_us: answer.to_us + wait_us });
        }
    }
    grants
}

fn spend_all(server: &Server, limit: &str, stop_us: u64) -> Vec<Grant> {
    let mut random = Random::seeded();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect();
    let kinds: Vec<Vec<usize>> = clients.iter().map(|_| (0..97).map(|_| random.index(5)).collect()).collect();
    let barrier = Barrier::new(CLIENTS);
    scope(|scope| {
        let spenders: Vec<_> = clients
            .iter_mut()
            .zip(&kinds)
            .map(|(client, kinds)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    spend(client, kinds, limit, stop_us)
                })
            })
            .collect();
        spenders.into_iter().flat_map(|spender| spender.join().unwrap()).collect()
    })
}

fn total(grants: &[Grant]) -> u64 {
    grants.iter().map(|grant| grant.tokens).sum()
}

#[test]
fn a_bucket_that_never_fills_is_spent_to_the_last_token_and_no_further() {
    for capacity in [1_000, 77] {
        let server = Server::start();
        let grants = spend_all(&server, &format!("{capacity} 0"), now_us() + 20_000_000);
        assert_eq!(total(&grants), capacity);
        assert_eq!(server.connect().reply("RL.PEEK key").remaining, 0);
    }
}

#[test]
fn no_window_spends_more_than_the_capacity_and_its_refill() {
    const CAPACITY: u64 = 20;
    const RATE_PER_S: u64 = 100;
    let server = Server::start();
    let start_us = now_us();
    let grants = spend_all(&server, &format!("{CAPACITY} {RATE_PER_S}"), start_us + 1_500_000);
    let end_us = now_us();

    for from in &grants {
        // Sorted by when they were spent at the latest, so that the windows grow by one grant at a time.
        let mut within: Vec<Grant> = grants.iter().filter(|grant| grant.from_us >= from.from_us).copied().collect();
        within.sort_by_key(|grant| grant.to_us);
        let mut spent = 0;
        for grant in within {
            spent += grant.tokens;
            let window_us = grant.to_us - from.from_us;
            let most = CAPACITY + window_us * RATE_PER_S / 1_000_000;
            assert!(spent <= most, "{spent} of at most {most} in {window_us} us from {from:?} to {grant:?}");
        }
    }

    // By the time of the calls: no more than that and what is owed at the end, 300 ms of refill at most.
    let granted = total(&grants);
    let most = CAPACITY + (end_us - start_us) * RATE_PER_S / 1_000_000 + 300 * RATE_PER_S / 1_000;
    assert!(granted <= most, "{granted} of at most {most}");
    // And hardly less: they have asked all the time.
    assert!(granted >= CAPACITY + RATE_PER_S, "{granted}");
}
