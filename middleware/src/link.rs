//! The way to Redis: one multiplexed connection, a deadline on every call, the breaker, and what an error means.
//!
//! A connection is made by whoever needs one first, in a task of its own: a caller whose time is up goes away without
//! it, and the next one finds it. When the breaker opens the connection is dropped, since a peer that has vanished without a word
//! would leave it hanging.

mod target;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, Value};
use tokio::time::{error::Elapsed, timeout_at};
use tracing::{Instrument, field};

use target::{Address, Connection, Target};

use crate::breaker::{Admission, Breaker, BreakerOptions, BreakerState, Outcome};
use crate::measure;
use crate::verdict::Trouble;

/// Longer than anybody waits, and short enough to be added to any instant.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How Redis is reached.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// `redis://[user:password@]host:port/db`, `redis+unix:///path`, or with the feature `tls` `rediss://...`.
    pub url: String,
    /// Whether it is a cluster, of which `url` names some nodes, with commas between them. The others are found.
    #[cfg(feature = "cluster")]
    pub cluster: bool,
    /// What a request may wait for Redis in all: a day at most, 100 ms unless set.
    pub timeout: Duration,
    /// How long making a connection may take, whoever waits for it. 1 s unless set.
    pub connect_timeout: Duration,
    /// When to stop asking.
    pub breaker: BreakerOptions,
}

impl RedisOptions {
    /// Redis at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            #[cfg(feature = "cluster")]
            cluster: false,
            timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(1),
            breaker: BreakerOptions::default(),
        }
    }
}

type Connecting = Shared<BoxFuture<'static, RedisResult<Connection>>>;

/// The way to a Redis server. Clones share it.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    target: Target,
    address: Address,
    timeout: Duration,
    connection: ArcSwapOption<Connection>,
    /// The attempt to connect that is under way.
    attempt: Mutex<Option<Connecting>>,
    breaker: Mutex<Breaker>,
    began: Instant,
    /// Until when the breaker refuses whatever comes, in microseconds since it began: while it is open, requests look here and do
    /// not wait for each other.
    open_until_us: AtomicU64,
    /// Why the last attempt to connect has failed, as it was logged.
    failed: Mutex<Option<String>>,
    /// What the last call met with, for those who look after the service.
    last: Mutex<Option<Trouble>>,
}

impl Link {
    /// Does not connect: that is for the first call.
    ///
    /// Errors: a URL that is none.
    pub(crate) fn new(options: &RedisOptions) -> RedisResult<Self> {
        let (target, address) = Target::new(options)?;
        Ok(Self(Arc::new(Inner {
            target,
            address,
            timeout: options.timeout.min(LONGEST_TIMEOUT),
            connection: ArcSwapOption::empty(),
            attempt: Mutex::new(None),
            breaker: Mutex::new(Breaker::new(options.breaker)),
            began: Instant::now(),
            open_until_us: AtomicU64::new(0),
            failed: Mutex::new(None),
            last: Mutex::new(None),
        })))
    }

    /// When a request that begins now has waited long enough.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline_from(Instant::now())
    }

    /// When a request that began at `begun` has waited long enough.
    pub(crate) fn deadline_from(&self, begun: Instant) -> Instant {
        begun.checked_add(self.0.timeout).unwrap_or(begun)
    }

    /// Whether a call at `now` would be refused by the breaker.
    pub(crate) fn refuses(&self, now: Instant) -> bool {
        let since_began = now.saturating_duration_since(self.0.began).as_micros();
        since_began < u128::from(self.0.open_until_us.load(Ordering::Relaxed)) || locked(&self.0.breaker).refuses(now)
    }

    /// Where the breaker stands.
    pub(crate) fn breaker(&self) -> BreakerState {
        locked(&self.0.breaker).state()
    }

    /// What the last call met with, if it was trouble.
    pub(crate) fn last_trouble(&self) -> Option<Trouble> {
        locked(&self.0.last).clone()
    }

    /// Sends a command and waits for the answer, until `deadline`.
    pub(crate) async fn ask(&self, operation: &'static str, command: Cmd, deadline: Instant) -> Result<Value, Trouble> {
        let begun = Instant::now();
        let admission = locked(&self.0.breaker).admit(begun);
        if admission == Admission::Refused {
            return Err(Trouble::Open);
        }
        let mut pending = Pending { link: self, admission, outcome: Outcome::Abandoned };
        let span = tracing::info_span!(
            "redis",
            otel.name = operation,
            otel.kind = "client",
            db.system.name = "redis",
            db.operation.name = operation,
            server.address = self.0.address.host,
            server.port = self.0.address.port,
            error.type = field::Empty,
        );
        let answer = async {
            let answer = match timeout_at(deadline.into(), self.send(command)).await {
                Ok(answer) => answer.map_err(|error| self.understood(&error)),
                Err(Elapsed { .. }) => Err(Trouble::Slow),
            };
            if let Err(trouble) = &answer {
                tracing::Span::current().record("error.type", trouble.as_str());
            }
            answer
        };
        let answer = answer.instrument(span).await;
        let trouble = answer.as_ref().err();
        pending.outcome = if trouble.is_some_and(Trouble::is_outage) { Outcome::Failed } else { Outcome::Answered };
        drop(pending);
        measure::call(operation, trouble, begun.elapsed());
        self.remember(trouble);
        answer
    }

    async fn send(&self, command: Cmd) -> RedisResult<Value> {
        self.connection().await?.send(command).await
    }

    /// The connection, or the one that is being made.
    async fn connection(&self) -> RedisResult<Connection> {
        if let Some(connection) = &*self.0.connection.load() {
            return Ok(Connection::clone(connection));
        }
        self.connecting().await
    }

    fn connecting(&self) -> Connecting {
        let mut attempt = locked(&self.0.attempt);
        // One that has ended and is still here was aborted with its runtime.
        if let Some(under_way) = attempt.as_ref().filter(|attempt| attempt.peek().is_none()) {
            return under_way.clone();
        }
        let task = tokio::spawn(self.clone().connect());
        let gone = || RedisError::from((ErrorKind::Io, "the task that connects has gone"));
        let connecting = task.map(move |ended| ended.unwrap_or_else(|_| Err(gone()))).boxed().shared();
        attempt.insert(connecting).clone()
    }

    async fn connect(self) -> RedisResult<Connection> {
        let made = self.0.target.connect().await;
        let mut attempt = locked(&self.0.attempt);
        if let Ok(connection) = &made {
            self.0.connection.store(Some(Arc::new(connection.clone())));
        }
        *attempt = None;
        drop(attempt);
        self.log(made.as_ref().err());
        made
    }

    /// Logs why there is no connection, once for each reason in a row.
    fn log(&self, error: Option<&RedisError>) {
        let reason = error.map(ToString::to_string);
        let mut failed = locked(&self.0.failed);
        if let Some(reason) = reason.as_ref().filter(|reason| failed.as_ref() != Some(*reason)) {
            tracing::warn!(address = self.0.address.text, "cannot connect to Redis: {reason}");
        }
        *failed = reason;
    }

    /// What an error means for the request, and for the connection.
    fn understood(&self, error: &RedisError) -> Trouble {
        let trouble = trouble(error);
        if trouble.is_outage() || error.is_unrecoverable_error() {
            self.0.connection.store(None);
        }
        trouble
    }

    fn record(&self, admission: Admission, outcome: Outcome) {
        let mut breaker = locked(&self.0.breaker);
        let before = breaker.state();
        breaker.record(admission, outcome, Instant::now(), fastrand::f64());
        let (after, open_until) = (breaker.state(), breaker.open_until());
        drop(breaker);
        if before == after {
            return;
        }
        if after == BreakerState::Open {
            self.0.connection.store(None);
        }
        if let Some(until) = open_until {
            // Rounds down: the last microsecond is the breaker's.
            let until_us = until.saturating_duration_since(self.0.began).as_micros();
            self.0.open_until_us.store(u64::try_from(until_us).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        measure::breaker(after);
        match after {
            BreakerState::Closed => tracing::info!(address = self.0.address.text, "Redis answers again"),
            _ => tracing::warn!(address = self.0.address.text, "Redis does not answer and is not asked for a while"),
        }
    }

    /// Keeps what the matter is. What only an operator can put right is said once when it begins.
    fn remember(&self, trouble: Option<&Trouble>) {
        let mut last = locked(&self.0.last);
        if last.as_ref() == trouble {
            return;
        }
        if let Some(trouble @ (Trouble::NotLoaded | Trouble::Refused(_))) = trouble {
            tracing::error!(address = self.0.address.text, "{trouble}");
        }
        *last = trouble.cloned();
    }
}

/// A call on which the breaker has not been told yet what came of it. Dropped, it is: whoever waited may have gone away.
struct Pending<'a> {
    link: &'a Link,
    admission: Admission,
    outcome: Outcome,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.link.record(self.admission, self.outcome);
    }
}

/// A timeout of the operating system's or of making a connection is one of ours.
fn trouble(error: &RedisError) -> Trouble {
    if error.is_timeout() {
        return Trouble::Slow;
    }
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => refused(error),
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => Trouble::Refused(error.to_string().into()),
        _ => Trouble::Unreachable,
    }
}

fn refused(error: &RedisError) -> Trouble {
    let detail = error.detail().unwrap_or_default();
    if error.code() == Some("ERR") && detail.starts_with("unknown command") {
        return Trouble::NotLoaded;
    }
    Trouble::Refused(format!("{} {detail}", error.code().unwrap_or("ERR")).into())
}

/// Nothing that is done under these locks leaves half of it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
