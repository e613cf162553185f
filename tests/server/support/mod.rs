//! A real server with the module, for one test: its own folder, its own socket, killed when dropped.
//!
//! Which server: `RL_SERVER` (a `redis-server` or `valkey-server`), else what the path has. Which module: `RL_MODULE`,
//! else the release build.

pub mod cluster;
pub mod dump;
pub mod foreign;
pub mod hostile;
pub mod kinds;
mod ports;
pub mod quiet;
pub mod random;
pub mod replicas;
pub mod specimens;
mod states;
pub mod stream;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime};

use redis::{Connection, ConnectionLike, FromRedisValue, RedisError, ToRedisArgs, Value, cmd};
use tempfile::TempDir;

pub use ports::free_port;
pub use states::held;

/// How long anything that should happen at once may take on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub struct Server {
    folder: TempDir,
    /// The module, if it is loaded on the command line, and with what.
    module: Option<PathBuf>,
    arguments: Vec<String>,
    options: Vec<String>,
    /// What its process finds in its environment, besides ours.
    environment: Vec<(String, String)>,
    process: Child,
}

impl Server {
    /// A server with the module and nothing else.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with the module and `options`, as they would stand on the command line.
    pub fn with(options: &[&str]) -> Self {
        Self::loaded_with(&[], options)
    }

    /// A server with the module, loaded with `arguments`, and `options`.
    pub fn loaded_with(arguments: &[&str], options: &[&str]) -> Self {
        Self::launched(tempfile::tempdir().unwrap(), Some(module()), arguments, options)
    }

    /// A server without the module. `options` may load one, or name a configuration file in the first place.
    pub fn bare(options: &[&str]) -> Self {
        Self::launched(tempfile::tempdir().unwrap(), None, &[], options)
    }

    /// A server with the module and `options`, and with `environment` besides ours.
    #[allow(dead_code, reason = "for the tests of faults")]
    pub fn within(environment: &[(&str, &str)], options: &[&str]) -> Self {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::started(tempfile::tempdir().unwrap(), Some(module()), &[], options, environment)
    }

    fn launched(folder: TempDir, module: Option<PathBuf>, arguments: &[&str], options: &[&str]) -> Self {
        Self::started(folder, module, arguments, options, Vec::new())
    }

    fn started(
        folder: TempDir,
        module: Option<PathBuf>,
        arguments: &[&str],
        options: &[&str],
        environment: Vec<(String, String)>,
    ) -> Self {
        let [arguments, options] = [arguments, options].map(owned);
        let process = launch(folder.path(), &options, module.as_deref(), &arguments, &environment);
        let server = Self { folder, module, arguments, options, environment, process };
        server.wait_until_ready();
        server
    }

    /// A server with the module and `options` that finds `files` in its folder.
    pub fn on(files: &[(&str, &[u8])], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        Self::launched(folder, Some(module()), &[], options)
    }

    /// A replica of this server that has caught up with it.
    pub fn replica(&self) -> Self {
        self.replica_with(&[])
    }

    /// A replica of this server with `options`, caught up.
    pub fn replica_with(&self, options: &[&str]) -> Self {
        let port = self.port().to_string();
        let replica = Self::with(&[&["--replicaof", "127.0.0.1", &port][..], options].concat());
        eventually("the replica is linked", || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
        });
        replica
    }

    /// The port on which a server listens that was started with one (see [`free_port`]).
    pub fn port(&self) -> u16 {
        self.connect().config("port").parse().unwrap()
    }

    /// A connection, RESP2.
    pub fn connect(&self) -> Client {
        self.connect_by("").unwrap()
    }

    /// A connection that speaks RESP3.
    pub fn connect_resp3(&self) -> Client {
        self.connect_by("?protocol=resp3").unwrap()
    }

    fn connect_by(&self, query: &str) -> Result<Client, RedisError> {
        let url = format!("redis+unix://{}{query}", self.socket().display());
        redis::Client::open(url)?.get_connection_with_timeout(PATIENCE).map(Client)
    }

    /// Stops the server as an operator would, and starts it again on what it left on disk.
    pub fn restart(&mut self) {
        let _ = self.connect().0.req_command(&cmd("SHUTDOWN"));
        self.process.wait().unwrap();
        self.relaunch();
    }

    /// Kills the server in its tracks, and starts it again on what it left on disk.
    pub fn crash_and_restart(&mut self) {
        self.kill();
        self.relaunch();
    }

    /// The number of its process.
    #[allow(dead_code, reason = "for the tests of faults")]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills the server in its tracks, and leaves it so.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts a server that was killed again, on what it left on disk.
    pub fn relaunch(&mut self) {
        let _ = fs::remove_file(self.socket());
        let module = self.module.as_deref();
        self.process = launch(self.folder.path(), &self.options, module, &self.arguments, &self.environment);
        self.wait_until_ready();
    }

    /// Whether the process is still there.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// The server's folder: RDB and AOF files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A field of a section of `INFO`.
    pub fn info(&self, section: &str, field: &str) -> Option<String> {
        let text: String = self.connect().ask(&["INFO", section]);
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned))
    }

    /// Whether the server has `feature`, which came with Redis `since`. If not, says what goes untested here. A Valkey
    /// has what came with the Redis that it was forked from, and says 7.2 itself.
    pub fn has(&self, feature: &str, since: (u32, u32)) -> bool {
        let version = self.info("server", "redis_version").unwrap();
        let mut numbers = version.split('.').map(|number| number.parse().unwrap());
        let has = (numbers.next().unwrap(), numbers.next().unwrap()) >= since;
        if !has {
            not_tested(&format!("{feature}: Redis {version} does not have it"));
        }
        has
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.connect_by("").and_then(|mut client| client.try_ask::<Value>(&["PING"]));
            match answer {
                Ok(_) => return,
                Err(error) if Instant::now() > deadline => panic!("no server: {error}\n{}", self.log()),
                Err(_) => sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked to, it frees what it has: whoever looks for leaks wants that.
        if std::env::var_os("RL_END_GENTLY").is_some()
            && let Ok(mut client) = self.connect_by("")
        {
            let _ = client.0.req_command(cmd("SHUTDOWN").arg("NOSAVE"));
        } else {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("log of {}:\n{}", server_binary().display(), self.log());
        }
    }
}

/// What came of starting a server on `folder` that is expected not to come up: its log.
pub fn log_of_refused_start(folder: &Path, options: &[&str]) -> String {
    log_of_refused_load(folder, &[], options)
}

/// The same, with the module loaded with `arguments`.
pub fn log_of_refused_load(folder: &Path, arguments: &[&str], options: &[&str]) -> String {
    let mut process = launch(folder, &owned(options), Some(&module()), &owned(arguments), &[]);
    let deadline = Instant::now() + PATIENCE;
    while process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the server came up, or hangs");
        sleep(Duration::from_millis(5));
    }
    fs::read_to_string(folder.join("log")).unwrap()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn launch(
    folder: &Path,
    options: &[String],
    module: Option<&Path>,
    arguments: &[String],
    environment: &[(String, String)],
) -> Child {
    let mut command = Command::new(server_binary());
    let file_first = options.iter().take(1).filter(|option| option.ends_with(".conf")).count();
    let (file, options) = options.split_at(file_first);
    command.args(file);
    command.args(["--port", "0", "--save", "", "--enable-debug-command", "yes", "--unixsocket"]);
    command.arg(folder.join("socket")).arg("--dir").arg(folder).arg("--logfile").arg(folder.join("log"));
    // A record that a replica or the AOF cannot carry out stops the server instead of being passed over.
    command.args(["--propagation-error-behavior", "panic"]);
    if let Some(module) = module {
        command.arg("--loadmodule").arg(module).args(arguments);
    }
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{}: {error}", server_binary().display()))
}

/// The server under test.
pub fn server_binary() -> PathBuf {
    std::env::var_os("RL_SERVER").map_or_else(|| PathBuf::from("redis-server"), PathBuf::from)
}

/// The module under test.
pub fn module() -> PathBuf {
    std::env::var_os("RL_MODULE").map_or_else(|| target().join("release/librl.so"), PathBuf::from)
}

/// Where cargo builds. The tests of `middleware/` use this, too, and their manifest lies one below the workspace.
fn target() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap_or(manifest);
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// What the first of the five integers is for each of `clients`, all asking `line` at the same moment, each on a thread of
/// its own.
pub fn race(clients: &mut [Client], line: &str) -> Vec<i64> {
    let barrier = Barrier::new(clients.len());
    scope(|scope| {
        let racers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    barrier.wait();
                    client.reply(line).allowed
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    })
}

/// Says what goes untested, and why.
pub fn not_tested(what: &str) {
    // Not `eprintln!`, which is shown of failed tests only.
    std::io::stderr().write_all(format!("not tested, {what}\n").as_bytes()).unwrap();
}

/// Waits until `holds` does.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// A connection to a server.
pub struct Client(pub Connection);

impl Client {
    /// The answer to a command.
    pub fn ask<T: FromRedisValue>(&mut self, words: &[impl ToRedisArgs]) -> T {
        self.try_ask(words).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The answer to a command, or the error.
    pub fn try_ask<T: FromRedisValue>(&mut self, words: &[impl ToRedisArgs]) -> Result<T, RedisError> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query(&mut self.0)
    }

    /// The answer to a command line: words separated by blanks.
    pub fn line<T: FromRedisValue>(&mut self, line: &str) -> T {
        self.ask(&line.split(' ').collect::<Vec<_>>())
    }

    /// The error to a command, as it stands on the wire: `ERR ...`.
    pub fn error(&mut self, words: &[impl ToRedisArgs]) -> String {
        let error = self.try_ask::<Value>(words).expect_err("an error");
        let mut text = error.code().unwrap_or("ERR").to_owned();
        if let Some(detail) = error.detail() {
            write!(text, " {detail}").unwrap();
        }
        text
    }

    /// A take, or anything that answers with the five integers.
    pub fn reply(&mut self, line: &str) -> Reply {
        let [allowed, remaining, retry_after_ms, reset_after_ms, limit]: [i64; 5] = self.line(line);
        Reply { allowed, remaining, retry_after_ms, reset_after_ms, limit }
    }

    /// A take, or anything that answers with the five integers, and between which times it was answered.
    pub fn timed(&mut self, line: &str) -> Timed {
        let from_us = now_us();
        let reply = self.reply(line);
        Timed { reply, from_us, to_us: now_us() }
    }

    /// The five integers as they came.
    pub fn five(&mut self, line: &str) -> [i64; 5] {
        self.line(line)
    }

    /// Begins a transaction of `lines`.
    pub fn queue(&mut self, lines: &[&str]) {
        assert_eq!(self.line::<String>("MULTI"), "OK");
        for line in lines {
            assert_eq!(self.line::<String>(line), "QUEUED", "{line}");
        }
    }

    /// What `EXEC` answers to a transaction of `lines`.
    pub fn transaction<T: FromRedisValue>(&mut self, lines: &[&str]) -> T {
        self.queue(lines);
        self.line("EXEC")
    }

    /// What `EXEC` answers, where some of the answers may be errors, as they stand on the wire.
    pub fn exec(&mut self) -> Vec<Result<Value, String>> {
        let Value::Array(answers) = self.0.req_command(&cmd("EXEC")).unwrap() else { panic!("no array") };
        let answer_of = |answer| match answer {
            Value::ServerError(error) => Err(format!("{} {}", error.code(), error.details().unwrap_or_default())),
            answer => Ok(answer),
        };
        answers.into_iter().map(answer_of).collect()
    }

    /// Has the server carry out `lines`, and throws the answers away but for errors.
    pub fn feed(&mut self, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter().peekable();
        while let Some(first) = lines.peek().cloned() {
            let mut pipeline = redis::pipe();
            for line in lines.by_ref().take(1_000) {
                let mut words = line.split(' ');
                pipeline.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>()).ignore();
            }
            pipeline.exec(&mut self.0).unwrap_or_else(|error| panic!("from {first:?} on: {error}"));
        }
    }

    /// A configuration value.
    pub fn config(&mut self, name: &str) -> String {
        let [_, value]: [String; 2] = self.ask(&["CONFIG", "GET", name]);
        value
    }

    /// The digest of a key's value.
    pub fn digest(&mut self, key: &str) -> String {
        let [digest]: [String; 1] = self.ask(&["DEBUG", "DIGEST-VALUE", key]);
        digest
    }

    /// Whether there is such a key.
    pub fn exists(&mut self, key: &str) -> bool {
        self.ask(&["EXISTS", key])
    }

    /// The digest of the whole dataset.
    pub fn dataset_digest(&mut self) -> String {
        self.line("DEBUG DIGEST")
    }

    /// When a key expires, in milliseconds since the epoch; -1 for never, -2 for no key.
    pub fn expiry(&mut self, key: &str) -> i64 {
        self.ask(&["PEXPIRETIME", key])
    }
}

/// The five integers by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    pub allowed: i64,
    pub remaining: i64,
    pub retry_after_ms: i64,
    pub reset_after_ms: i64,
    pub limit: i64,
}

/// An answer, and the times before it was asked for and after it came. The server read its clock somewhere between.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    pub reply: Reply,
    pub from_us: u64,
    pub to_us: u64,
}

/// The wall clock, which is also the server's: microseconds since the epoch.
pub fn now_us() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since_epoch.as_micros().try_into().unwrap()
}

/// The five integers as they stand on the wire.
pub fn integers(five: [i64; 5]) -> Value {
    Value::Array(five.into_iter().map(Value::Int).collect())
}
