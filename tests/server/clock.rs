//! The clock steps. A step back looks like a last change in the future, so that is what these tests put into the keys:
//! nobody is locked out for the length of the step, and nobody gets anything extra.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rl_core::UnixMillis;
use rl_core::codec::RecordedExpiry;

use crate::support::specimens::{info, restore};
use crate::support::{Client, Server, held, now_us};

const HOUR_US: u64 = 3_600_000_000;

/// Capacity 10 at 5 tokens an hour, `tokens` left at `last_change_us`.
fn hold(client: &mut Client, tokens: u64, last_change_us: u64) {
    let expiry = RecordedExpiry::At(UnixMillis::saturating(u128::from(last_change_us / 1_000) + 99_000_000));
    restore(client, "key", expiry, &held(10, "5/h", (tokens, 0), last_change_us));
}

/// Last changes after which the clock was set back: by an hour, by a century and for as long as can be.
fn futures_us() -> [u64; 3] {
    [now_us() + HOUR_US, now_us() + 100 * 365 * 24 * HOUR_US, (1 << 53) - 1]
}

#[test]
fn a_step_back_leaves_the_tokens_that_were_there() {
    let server = Server::start();
    let mut client = server.connect();
    for future_us in futures_us() {
        hold(&mut client, 3, future_us);
        assert_eq!(client.reply("RL.PEEK key").remaining, 3);
        assert_eq!(info(&mut client, "key", "level"), "3");
        for remaining in [2, 1, 0] {
            let reply = client.reply("RL.TAKE key 10 5/h");
            assert_eq!((reply.allowed, reply.remaining), (1, remaining), "{future_us}");
        }
        assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    }
}

#[test]
fn a_step_back_puts_the_wait_of_an_empty_bucket_on_the_new_clock() {
    let server = Server::start();
    let mut client = server.connect();
    for future_us in futures_us() {
        hold(&mut client, 0, future_us);
        // A token takes twelve minutes: the wait is that from the first denial on, and runs.
        let first = client.reply("RL.TAKE key 10 5/h");
        assert_eq!((first.allowed, first.retry_after_ms, first.reset_after_ms), (0, 720_000, 7_200_000));
        sleep(Duration::from_millis(20));
        let second = client.reply("RL.TAKE key 10 5/h");
        assert_eq!(second.allowed, 0);
        assert!((600_000..=719_980).contains(&second.retry_after_ms), "{second:?}");
        let last_change_ms: u64 = info(&mut client, "key", "last_change_ms").parse().unwrap();
        assert!(last_change_ms <= now_us() / 1_000, "{last_change_ms}");
    }
}

#[test]
fn a_client_that_waits_as_told_after_a_step_back_passes_and_gets_nothing_extra() {
    let server = Server::start();
    let mut client = server.connect();
    let empty = held(3, "10", (0, 0), now_us() + HOUR_US);
    restore(&mut client, "fast", RecordedExpiry::None, &empty);
    let since = Instant::now();
    let denied = client.reply("RL.TAKE fast 3 10");
    assert_eq!((denied.allowed, denied.retry_after_ms), (0, 100));
    sleep(Duration::from_millis(100));
    assert_eq!(client.reply("RL.TAKE fast 3 10").allowed, 1);

    let mut granted = 1;
    for _ in 0..20 {
        granted += client.reply("RL.TAKE fast 3 10").allowed;
        sleep(Duration::from_millis(10));
    }
    // Ten a second since the bucket was empty.
    let due = since.elapsed().as_millis() as i64 / 100;
    assert!(granted <= due, "{granted} granted where {due} were due");
}

#[test]
fn a_step_back_moves_the_expiry_to_the_new_clock() {
    let server = Server::start();
    let mut client = server.connect();
    hold(&mut client, 5, now_us() + 100 * HOUR_US);
    let taken = client.reply("RL.TAKE key 10 5/h");
    let ttl: i64 = client.line("PTTL key");
    // Until it is full, rounded up, and at most a second and an eighth of the two hours that filling takes more.
    assert!((taken.reset_after_ms - 60_000..=taken.reset_after_ms + 1 + 901_000).contains(&ttl), "{ttl} {taken:?}");
}

#[test]
fn a_state_from_long_ago_is_a_full_bucket() {
    let server = Server::start();
    let mut client = server.connect();
    for past_us in [0, 1, now_us() - 3 * HOUR_US] {
        let empty = held(10, "5/h", (0, 0), past_us);
        restore(&mut client, "key", RecordedExpiry::None, &empty);
        assert_eq!(client.five("RL.PEEK key"), [1, 10, 0, 0, 10], "{past_us}");
        assert_eq!(client.reply("RL.TAKE key 10 5/h 11").allowed, 0);
        assert_eq!(client.reply("RL.TAKE key 10 5/h 10").remaining, 0);
        assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    }
}

#[test]
fn a_step_forth_fills_no_more_than_the_capacity() {
    let server = Server::start();
    let mut client = server.connect();
    // The bucket was emptied before the clock jumped by an hour: five tokens have come, however they came.
    hold(&mut client, 0, now_us() - HOUR_US);
    assert_eq!(client.reply("RL.TAKE key 10 5/h 5").allowed, 1);
    assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    hold(&mut client, 9, now_us() - HOUR_US);
    assert_eq!(client.reply("RL.TAKE key 10 5/h 10").allowed, 1);
    assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
}
