//! What a limiter costs an HTTP service: the same route without one, with ours, with a Lua script through the same client, and
//! `rl-service`; in one run, with `wrk` and 200 connections, on traffic that is allowed.
//!
//! There are two routes: one that only says hello, beside which any layer is dear (so one that does nothing is measured, too, and
//! one that appends two constant fields), and one that answers with a list of 50 items in JSON.
//!
//! Each subject is a process of its own (this program, started anew), so that CPU time can be told apart: its own per request,
//! and that of Redis. The cells are medians of interleaved rounds. `cargo bench --bench http -- none lease dead` measures these
//! kinds alone, which then stand closer together in time, where a machine is shared and goes fast and slow.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderValue, StatusCode};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{IntoConnectionInfo, Script};
use rl_tower::{Limiter, LimiterOptions, LiveRules, Policy, RateLimitLayer, Rule, Rules};
use serde::Serialize;

#[allow(dead_code, unused_imports, reason = "the server tests use the rest")]
#[path = "../../tests/server/support/mod.rs"]
mod server;

const ROUNDS: usize = 9;
const SECONDS: u64 = 3;
const CONNECTIONS: usize = 200;
/// A limit that allows whatever this benchmark asks.
const CAPACITY: u64 = 100_000_000;
const RATE: &str = "100000000";

/// A token bucket as people write it: a hash of tokens and time.
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

/// What is measured: what to start, what to ask it for, and how it is called.
type Subject = (&'static str, &'static str, &'static str);

const SUBJECTS: [Subject; 14] = [
    ("none", "/hello", "hello, no limiter"),
    ("empty", "/hello", "hello, a layer that does nothing"),
    ("fields", "/hello", "hello, a layer that appends two fields"),
    ("librl", "/hello", "hello, rl-tower, RL.TAKE"),
    ("lease", "/hello", "hello, rl-tower, leases"),
    ("dead", "/hello", "hello, rl-tower, Redis gone, breaker open"),
    ("lua", "/hello", "hello, Lua script"),
    ("none", "/list", "list, no limiter"),
    ("librl", "/list", "list, rl-tower, RL.TAKE"),
    ("lease", "/list", "list, rl-tower, leases"),
    ("dead", "/list", "list, rl-tower, Redis gone, breaker open"),
    ("check", "/check", "rl-service /check, RL.TAKE"),
    ("check-lease", "/check", "rl-service /check, leases"),
    ("check-local", "/check", "rl-service /check, without Redis"),
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let first = arguments.next();
    let words: Vec<_> = arguments.collect();
    if first.as_deref() == Some("serve") {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(serve(&words[0], words[1].parse().unwrap(), &words[2]));
    }
    let kinds: Vec<_> = first.into_iter().chain(words).collect();
    let wanted = |subject: &&Subject| kinds.is_empty() || kinds.iter().any(|kind| kind == subject.0);
    measure(&SUBJECTS.iter().filter(wanted).copied().collect::<Vec<_>>());
}

async fn serve(kind: &str, port: u16, redis: &str) {
    let route = Router::new().route("/hello", get(async || "hello")).route("/list", get(list));
    let policy = Policy::new("api", CAPACITY, RATE).unwrap();
    let limited = |policy: Policy, redis: &str| {
        let rules = LiveRules::new(Rules::new([Rule::any().apply([policy])]).unwrap());
        RateLimitLayer::new(Limiter::new(LimiterOptions::redis(redis)).unwrap(), rules)
    };
    let app = match kind {
        "none" => route,
        "empty" => route.layer(from_fn(async |request: Request, next: Next| next.run(request).await)),
        "fields" => route.layer(from_fn(append_two)),
        "librl" => route.layer(limited(policy, redis)),
        "lease" => route.layer(limited(policy.leasing(10_000).unwrap(), redis)),
        // A port on which nobody listens.
        "dead" => route.layer(limited(policy, "redis://127.0.0.1:1")),
        "lua" => route.layer(from_fn_with_state(Lua::connect(redis).await, Lua::limit)),
        _ => panic!("{kind}"),
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await.unwrap();
}

#[derive(Serialize)]
struct Item {
    id: u64,
    name: String,
    price: f64,
    in_stock: bool,
}

/// What an API might answer: 50 items, about 3 kB.
async fn list() -> Json<Vec<Item>> {
    let item =
        |id: u64| Item { id, name: format!("item {id}"), price: id as f64 * 1.25, in_stock: !id.is_multiple_of(3) };
    Json((1..=50).map(item).collect())
}

async fn append_two(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.append("ratelimit-policy", HeaderValue::from_static("\"api\";q=100000000;w=1"));
    headers.append("ratelimit", HeaderValue::from_static("\"api\";r=99999999;t=1"));
    response
}

/// A limiter as people write it: the script by its hash, over the same kind of connection, and the same header fields.
#[derive(Clone)]
struct Lua {
    connection: MultiplexedConnection,
    script: Script,
}

impl Lua {
    async fn connect(redis: &str) -> Self {
        let info = redis.into_connection_info().unwrap().set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let config = redis::AsyncConnectionConfig::new().set_pipeline_buffer_size(4096).set_response_timeout(None);
        let client = redis::Client::open(info).unwrap();
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        let script = Script::new(SCRIPT);
        script.load_async(&mut connection).await.unwrap();
        Self { connection, script }
    }

    async fn limit(
        State(mut lua): State<Self>,
        peer: ConnectInfo<SocketAddr>,
        request: Request,
        next: Next,
    ) -> Response {
        let mut call = lua.script.key(format!("lua:{}", peer.ip()));
        call.arg(CAPACITY).arg(RATE).arg(1);
        let asked = tokio::time::timeout(Duration::from_millis(100), call.invoke_async(&mut lua.connection));
        let (allowed, remaining, retry_after_ms): (u8, u64, u64) = asked.await.unwrap().unwrap();
        let mut response = match allowed {
            1 => next.run(request).await,
            _ => (StatusCode::TOO_MANY_REQUESTS, format!("retry in {retry_after_ms} ms")).into_response(),
        };
        let headers = response.headers_mut();
        headers.append("ratelimit-policy", HeaderValue::try_from(format!("\"api\";q={CAPACITY};w=1")).unwrap());
        headers.append("ratelimit", HeaderValue::try_from(format!("\"api\";r={remaining};t=1")).unwrap());
        response
    }
}

/// A process that serves, killed when dropped.
struct Served {
    process: Child,
    port: u16,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    fn start(kind: &str, redis: &str, folder: &std::path::Path) -> Self {
        let port = server::free_port();
        let mut command = match kind.strip_prefix("check") {
            Some(variant) => {
                let lease = if variant == "-lease" { "lease = 10000" } else { "" };
                let rules = folder.join(format!("{kind}.toml"));
                std::fs::write(&rules, format!("[policies.api]\ncapacity = {CAPACITY}\nrate = {RATE}\n{lease}"))
                    .unwrap();
                let mut command = Command::new(env!("CARGO_BIN_EXE_rl-service"));
                command.args(["--listen", &format!("127.0.0.1:{port}"), "--rules"]).arg(rules);
                if variant != "-local" {
                    command.args(["--redis", redis]);
                }
                command
            }
            None => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["serve", kind, &port.to_string(), redis]);
                command
            }
        };
        let process = command.stdout(Stdio::null()).stderr(Stdio::inherit()).env("RUST_LOG", "warn").spawn().unwrap();
        let served = Self { process, port };
        server::eventually("it serves", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        served
    }

    /// Has it answer for `seconds`.
    fn load(&self, path: &str, seconds: u64, folder: &std::path::Path) -> Load {
        let mut command = Command::new("wrk");
        command.args(["-t", "1", "-c", &CONNECTIONS.to_string(), "-d", &format!("{seconds}s"), "--latency", "-s"]);
        command.arg(folder.join("report.lua"));
        let said = command.arg(format!("http://127.0.0.1:{}{path}", self.port)).output().expect("wrk is installed");
        let text = String::from_utf8(said.stdout).unwrap();
        let figures = text.lines().find_map(|line| line.strip_prefix("figures ")).unwrap_or_else(|| panic!("{text}"));
        let figures: Vec<f64> = figures.split(' ').map(|figure| figure.parse().unwrap()).collect();
        assert!(figures[3] == 0.0, "{path}: {} answers were errors", figures[3]);
        Load { requests: figures[0], seconds: figures[4] / 1e6, p50_ms: figures[1] / 1e3, p99_ms: figures[2] / 1e3 }
    }
}

struct Load {
    requests: f64,
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// What wrk is told to send to `/check`, and to say at the end.
const REPORT: &str = r#"
if wrk.path == "/check" then
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
  wrk.body = '{"client":"ip:127.0.0.1","policy":"api"}'
end
function done(summary, latency, requests)
  local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("figures %d %d %d %d %d\n", summary.requests, latency:percentile(50), latency:percentile(99), wrong, summary.duration))
end
"#;

/// Seconds of CPU that a process has used.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    // utime and stime, in hundredths of a second on Linux.
    (after_name[11].parse::<f64>().unwrap() + after_name[12].parse::<f64>().unwrap()) / 100.0
}

/// What is told of a subject: requests per second, p50 and p99 in ms, its CPU and that of Redis in us per request.
const COLUMNS: [&str; 5] = ["requests/s", "p50 ms", "p99 ms", "CPU us", "Redis CPU us"];

fn measure(subjects: &[Subject]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("report.lua"), REPORT).unwrap();
    let port = server::free_port().to_string();
    let redis = server::Server::with(&["--port", &port]);
    let url = format!("redis://127.0.0.1:{port}");
    let mut cells: BTreeMap<Subject, Vec<[f64; 5]>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for subject @ &(kind, path, _) in subjects {
            let served = Served::start(kind, &url, folder.path());
            served.load(path, 1, folder.path());
            let (own, redis_own) = (cpu(served.process.id()), cpu(redis.pid()));
            let load = served.load(path, SECONDS, folder.path());
            let per_request = |before: f64, after: f64| (after - before) * 1e6 / load.requests;
            cells.entry(*subject).or_default().push([
                load.requests / load.seconds,
                load.p50_ms,
                load.p99_ms,
                per_request(own, cpu(served.process.id())),
                per_request(redis_own, cpu(redis.pid())),
            ]);
        }
    }
    report(&cells);
}

fn report(cells: &BTreeMap<Subject, Vec<[f64; 5]>>) {
    println!("{ROUNDS} rounds of {SECONDS} s, {CONNECTIONS} connections, medians");
    println!("{:<44}{:>12}{:>9}{:>9}{:>9}{:>14}", "", COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3], COLUMNS[4]);
    for (subject, rounds) in SUBJECTS.iter().filter_map(|subject| Some((subject, cells.get(subject)?))) {
        let cell = |column: usize| median(rounds.iter().map(|round| round[column]));
        let [rate, p50, p99, own, redis] = std::array::from_fn(cell);
        println!("{:<44}{rate:>12.0}{p50:>9.2}{p99:>9.2}{own:>9.1}{redis:>14.1}", subject.2);
    }
    // Ratios of one round, as a machine that is shared goes fast and slow.
    let of = |kind: &str, path: &str| {
        cells.iter().find(|(subject, _)| (subject.0, subject.1) == (kind, path)).map(|(_, rounds)| rounds)
    };
    let ratio = |path: &str, kind: &str, to: &str, column: usize| {
        let rounds = of(kind, path)?.iter().zip(of(to, path)?);
        Some(median(rounds.map(|(one, other)| one[column] / other[column])))
    };
    if let Some(ratio) = ratio("/hello", "lua", "librl", 4) {
        println!("Redis CPU per request, Lua to RL.TAKE: {ratio:.2}");
    }
    for (path, kinds) in [("/hello", &["empty", "fields", "lease", "dead"][..]), ("/list", &["lease", "dead"])] {
        for kind in kinds {
            if let Some(ratio) = ratio(path, kind, "none", 0) {
                println!("requests/s to no limiter, {path}, {kind}: {ratio:.3}");
            }
        }
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
