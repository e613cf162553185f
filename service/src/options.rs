//! What the service is started with.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use rl_tower::{LimiterOptions, RedisOptions};

/// Rate limiting over HTTP.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Options {
    /// Where to listen.
    #[arg(long, env = "RL_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Redis with librl: redis://HOST:PORT, rediss:// over TLS, redis+unix:///PATH. Without it, buckets are kept in this process.
    #[arg(long, env = "RL_REDIS")]
    pub redis: Option<String>,

    /// Redis is a cluster, of which --redis names some nodes, with commas between them.
    #[arg(long, env = "RL_CLUSTER", requires = "redis")]
    pub cluster: bool,

    /// A TOML file with policies and rules. It is read again when it changes.
    #[arg(long, env = "RL_RULES")]
    pub rules: Option<PathBuf>,

    /// What callers have to send as `Authorization: Bearer TOKEN`. Without it, whoever can connect is a caller.
    #[arg(long, env = "RL_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Where the admin page and its API listen. Needs --admin-token.
    #[arg(long, env = "RL_ADMIN", requires = "admin_token")]
    pub admin: Option<SocketAddr>,

    /// What those who look after the service have to know.
    #[arg(long, env = "RL_ADMIN_TOKEN", hide_env_values = true)]
    pub admin_token: Option<String>,

    /// What a request may wait for Redis, in milliseconds, at least 1.
    #[arg(long, env = "RL_TIMEOUT_MS", default_value = "100")]
    pub timeout_ms: NonZeroU64,

    /// How many instances of this service share the limits: while Redis is gone, each gives out its part.
    #[arg(long, env = "RL_INSTANCES", default_value = "1")]
    pub instances: NonZeroU32,

    /// How many buckets are kept in this process at most.
    #[arg(long, env = "RL_LOCAL_BUCKETS", default_value = "100000")]
    pub local_buckets: NonZeroUsize,

    /// What every key in Redis begins with.
    #[arg(long, env = "RL_PREFIX", default_value = "rl")]
    pub prefix: String,
}

impl Options {
    /// How the limiter is to work.
    pub fn limiter(&self) -> LimiterOptions {
        let timeout = Duration::from_millis(self.timeout_ms.get());
        let redis =
            self.redis.as_ref().map(|url| RedisOptions { timeout, cluster: self.cluster, ..RedisOptions::new(url) });
        LimiterOptions {
            redis,
            prefix: self.prefix.clone(),
            instances: self.instances,
            local_buckets: self.local_buckets,
            own_limits: true,
            ..LimiterOptions::default()
        }
    }
}
