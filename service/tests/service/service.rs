//! A running service, for one test: on ports of its own, killed when dropped.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Server, free_port};

/// How long anything that should happen at once may take on a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const ADMIN_TOKEN: &str = "for admins only";

pub const RULES: &str = r#"
[policies.global]
capacity = 1000
rate = "100"
on_outage = "local"

[policies.login]
capacity = 3
rate = "3/h"
on_outage = "deny"

[policies.once]
capacity = 5
rate = 0

[policies.trial]
capacity = 1
rate = "1/d"
shadow = true

[[rules]]
routes = ["/healthz"]
skip = true

[[rules]]
routes = ["/login"]
methods = ["POST"]
policies = ["global", "login"]

[[rules]]
routes = ["/search"]
policies = ["global", "trial"]
"#;

/// A server with the module that listens on a port.
pub fn redis() -> Server {
    Server::with(&["--port", &free_port().to_string()])
}

pub struct Service {
    folder: TempDir,
    process: Child,
    port: u16,
    admin_port: u16,
    agent: ureq::Agent,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Service {
    /// On `redis`, with [`RULES`].
    pub fn on(redis: &Server) -> Self {
        Self::with(Some(&format!("redis://127.0.0.1:{}", redis.port())), RULES, &[])
    }

    /// On the Redis at `url`, or on none, with `rules` and further options.
    pub fn with(url: Option<&str>, rules: &str, options: &[&str]) -> Self {
        Self::within(&[], url, rules, options)
    }

    /// The same with `environment` besides ours.
    pub fn within(environment: &[(&str, &str)], url: Option<&str>, rules: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, admin_port) = (free_port(), free_port());
        std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
        let process = launch(&folder, environment, [port, admin_port], url, options);
        let agent =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
        let service = Self { folder, process, port, admin_port, agent };
        service.wait_until_ready();
        service
    }

    /// Started as [`Self::with`] does, it ends at once: what it said.
    pub fn refused(url: Option<&str>, rules: &str, options: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
        let mut process = launch(&folder, &[], [free_port(), free_port()], url, options);
        let deadline = Instant::now() + PATIENCE;
        while process.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it came up");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!process.wait().unwrap().success());
        std::fs::read_to_string(folder.path().join("log")).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn admin_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.admin_port)
    }

    pub fn rules_file(&self) -> PathBuf {
        self.folder.path().join("rules.toml")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request =
            headers.iter().fold(self.agent.get(self.url(path)), |request, (name, value)| request.header(*name, *value));
        answer(request.call())
    }

    pub fn check(&self, question: &str) -> Answer {
        self.send("POST", "/check", "application/json", question)
    }

    pub fn put_limits(&self, client: &str, limits: &str) -> Answer {
        self.send("PUT", &format!("/limits/{client}"), "application/json", limits)
    }

    pub fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let request = if method == "PUT" { self.agent.put(self.url(path)) } else { self.agent.post(self.url(path)) };
        answer(request.header("content-type", kind).send(body))
    }

    /// Asks the admin API.
    pub fn admin(&self, path: &str) -> Answer {
        answer(self.agent.get(self.admin_url(path)).header("authorization", format!("Bearer {ADMIN_TOKEN}")).call())
    }

    /// Tells the admin API to do something.
    pub fn admin_does(&self, path: &str, kind: &str, body: &str) -> Answer {
        let request = self.agent.post(self.admin_url(path)).header("authorization", format!("Bearer {ADMIN_TOKEN}"));
        answer(request.header("content-type", kind).send(body))
    }

    /// Sends it a signal, such as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has ended: whether that was in order.
    pub fn ended_in_order(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.agent.get(self.url("/healthz")).call().is_err() {
            assert!(Instant::now() < deadline, "no service:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("log of the service:\n{}", self.log());
        }
    }
}

fn launch(
    folder: &TempDir,
    environment: &[(&str, &str)],
    [port, admin_port]: [u16; 2],
    url: Option<&str>,
    options: &[&str],
) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rl-service"));
    // By its variables, so that a test can say otherwise with an option.
    command.env("RL_LISTEN", format!("127.0.0.1:{port}")).env("RL_ADMIN", format!("127.0.0.1:{admin_port}"));
    command.env("RL_RULES", folder.path().join("rules.toml")).env("RL_ADMIN_TOKEN", ADMIN_TOKEN);
    if let Some(url) = url {
        command.env("RL_REDIS", url);
    }
    let log = File::create(folder.path().join("log")).unwrap();
    command
        .args(options)
        .envs(environment.iter().copied())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().unwrap()
}

fn answer(result: Result<http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = result.unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    Answer { status: response.status().as_u16(), headers: response.headers().clone(), text }
}
