//! What a command costs the server: RL.TAKE beside PING, INCR, SET EX and the usual Lua script, in one run.
//!
//! The figure is CPU time of the server's main thread per request, which a busy machine and a slow client disturb least.
//! Every cell is the median of several rounds, in each of which all commands take their turn.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(missing_docs, dead_code)]

#[path = "../tests/server/support/mod.rs"]
mod support;

use redis::ConnectionLike;
use support::{Client, Server, server_binary};

const ROUNDS: usize = 5;
const RANDOM_KEYS: u64 = 100_000;
const PIPELINE: usize = 64;

/// A token bucket as people write it: a hash of tokens and time, written when something was taken.
const SCRIPT: &str = r"
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local held = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(held[1]) or capacity, tonumber(held[2]) or now
tokens = math.min(capacity, tokens + (now - at) * rate)
if tokens < cost then
  return {0, math.floor(tokens), math.ceil((cost - tokens) / rate * 1000)}
end
tokens = tokens - cost
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - tokens) / rate * 1000) + 1000)
return {1, math.floor(tokens), 0}
";

/// A limit that allows whatever this benchmark asks, and one that allows a single take.
const GENEROUS: [&str; 2] = ["1000000", "1000000"];
const MEAN: [&str; 2] = ["1", "1/d"];

struct Subject {
    name: &'static str,
    words: fn(key: &str, script: &str) -> Vec<String>,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const SUBJECTS: [Subject; 7] = [
    Subject { name: "PING", words: |_, _| words(&["PING"]) },
    Subject { name: "INCR", words: |key, _| words(&["INCR", &format!("i:{key}")]) },
    Subject { name: "SET EX", words: |key, _| words(&["SET", &format!("s:{key}"), "1", "EX", "100"]) },
    Subject {
        name: "RL.TAKE allowed",
        words: |key, _| words(&["RL.TAKE", &format!("a:{key}"), GENEROUS[0], GENEROUS[1]]),
    },
    Subject { name: "RL.TAKE denied", words: |key, _| words(&["RL.TAKE", &format!("d:{key}"), MEAN[0], MEAN[1]]) },
    Subject {
        name: "Lua allowed",
        words: |key, script| words(&["EVALSHA", script, "1", &format!("x:{key}"), GENEROUS[0], GENEROUS[1], "1"]),
    },
    Subject {
        name: "Lua denied",
        words: |key, script| words(&["EVALSHA", script, "1", &format!("y:{key}"), "1", "0.00001", "1"]),
    },
];
/// The subject that the ratios are taken to.
const YARDSTICK: usize = 2;

struct Load {
    name: &'static str,
    keys: u64,
    pipeline: usize,
    requests: usize,
}

const LOADS: [Load; 4] = [
    Load { name: "one hot key, pipelined 64", keys: 1, pipeline: PIPELINE, requests: 128_000 },
    Load { name: "100,000 random keys, pipelined 64", keys: RANDOM_KEYS, pipeline: PIPELINE, requests: 128_000 },
    Load { name: "one hot key, one at a time", keys: 1, pipeline: 1, requests: 20_000 },
    Load { name: "100,000 random keys, one at a time", keys: RANDOM_KEYS, pipeline: 1, requests: 20_000 },
];

fn main() {
    // `cargo test --benches` runs this too, and asks for nothing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let server = Server::start();
    let mut client = server.connect();
    let script: String = client.ask(&["SCRIPT", "LOAD", SCRIPT]);
    let version = server.info("server", "valkey_version").or(server.info("server", "redis_version"));
    println!("{} {}", server_binary().display(), version.unwrap_or_default());
    let mut random = Random(0x5eed);
    for subject in &SUBJECTS {
        fill(&mut client, subject, &script);
    }
    for load in &LOADS {
        let mut rounds = vec![Vec::new(); SUBJECTS.len()];
        for _ in 0..ROUNDS {
            for (subject, rounds) in SUBJECTS.iter().zip(&mut rounds) {
                rounds.push(measure(&mut client, load, subject, &script, &mut random));
            }
        }
        report(load, rounds);
    }
}

/// Every key exists before it is measured, and what is to be denied is emptied.
fn fill(client: &mut Client, subject: &Subject, script: &str) {
    for start in (0..RANDOM_KEYS).step_by(1_000) {
        let keys = (start..start + 1_000).map(|key| (subject.words)(&key.to_string(), script));
        send(client, keys);
    }
}

/// Nanoseconds of server CPU per request.
fn measure(client: &mut Client, load: &Load, subject: &Subject, script: &str, random: &mut Random) -> f64 {
    let before = main_thread_cpu(client);
    for _ in 0..load.requests / load.pipeline {
        let keys = (0..load.pipeline).map(|_| (subject.words)(&random.below(load.keys).to_string(), script));
        send(client, keys);
    }
    (main_thread_cpu(client) - before) * 1e9 / load.requests as f64
}

fn send(client: &mut Client, commands: impl Iterator<Item = Vec<String>>) {
    let mut bytes = Vec::new();
    let mut count = 0;
    for words in commands {
        let mut command = redis::Cmd::new();
        command.arg(words);
        bytes.extend(command.get_packed_command());
        count += 1;
    }
    let replies = client.0.req_packed_commands(&bytes, 0, count).unwrap();
    assert!(replies.iter().all(|reply| !matches!(reply, redis::Value::ServerError(_))), "{replies:?}");
}

/// Seconds, user and system.
fn main_thread_cpu(client: &mut Client) -> f64 {
    let text: String = client.ask(&["INFO", "cpu"]);
    let seconds = |field: &str| -> f64 {
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.parse().ok()).unwrap()
    };
    seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread")
}

fn report(load: &Load, rounds: Vec<Vec<f64>>) {
    let medians: Vec<f64> = rounds.into_iter().map(median).collect();
    println!("\n{}\n{:24} {:>16} {:>10}", load.name, "", "server ns/request", "to SET EX");
    for (subject, median) in SUBJECTS.iter().zip(&medians) {
        println!("{:24} {:>17.0} {:>10.2}", subject.name, median, median / medians[YARDSTICK]);
    }
    println!("{:24} {:>17} {:>10.1}", "Lua / RL.TAKE, allowed", "", medians[5] / medians[3]);
    println!("{:24} {:>17} {:>10.1}", "Lua / RL.TAKE, denied", "", medians[6] / medians[4]);
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The same keys in every run: a linear congruential generator with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
