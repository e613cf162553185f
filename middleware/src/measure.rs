//! Metrics, through the facade of the crate `metrics`: whoever installs a recorder has them.
//!
//! | metric | kind | labels | |
//! |---|---|---|---|
//! | `rl_requests_total` | counter | `outcome` | requests: `allowed`, `denied`, `unavailable`, `skipped`, `unmatched` |
//! | `rl_decisions_total` | counter | `policy`, `kind`, `outcome`, `source` | decisions on each policy: `allowed`, `denied`, `unavailable`, `dry-run-allowed`, `dry-run-denied` |
//! | `rl_degraded_total` | counter | `policy`, `trouble` | decisions without Redis |
//! | `rl_refunded_tokens_total` | counter | `policy` | tokens given back after the response |
//! | `rl_leased_tokens_total`, `rl_returned_tokens_total` | counter | `policy` | tokens leased, and given back unused |
//! | `rl_redis_seconds` | histogram | `operation`, `result` | calls to Redis: `ok`, or the trouble |
//! | `rl_breaker_open` | gauge | | 1 while Redis is not asked |
//!
//! `kind` is what the client was known by. No label names a client: they are many, and personal data.

use std::time::Duration;

use metrics::{SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::breaker::BreakerState;
use crate::client::Kind;
use crate::policy::PolicyName;
use crate::verdict::{Source, Trouble};

impl From<&PolicyName> for SharedString {
    fn from(name: &PolicyName) -> Self {
        name.shared().into()
    }
}

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    describe_counter!("rl_requests_total", "Requests, by what became of them");
    describe_counter!("rl_decisions_total", "Decisions on each policy");
    describe_counter!("rl_degraded_total", "Decisions without Redis");
    describe_counter!("rl_refunded_tokens_total", "Tokens given back after the response");
    describe_counter!("rl_leased_tokens_total", "Tokens leased");
    describe_counter!("rl_returned_tokens_total", "Leased tokens given back unused");
    describe_histogram!("rl_redis_seconds", Unit::Seconds, "Calls to Redis");
    describe_gauge!("rl_breaker_open", "1 while Redis is not asked");
    // There before it first changes, and as it is where another limiter of this process has set it.
    gauge!("rl_breaker_open").increment(0.0);
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Allowed,
    Denied,
    Unavailable,
    Skipped,
    Unmatched,
}

/// A request. Names and labels that are constants cost no allocation.
pub(crate) fn request(request: Request) {
    let counter = match request {
        Request::Allowed => counter!("rl_requests_total", "outcome" => "allowed"),
        Request::Denied => counter!("rl_requests_total", "outcome" => "denied"),
        Request::Unavailable => counter!("rl_requests_total", "outcome" => "unavailable"),
        Request::Skipped => counter!("rl_requests_total", "outcome" => "skipped"),
        Request::Unmatched => counter!("rl_requests_total", "outcome" => "unmatched"),
    };
    counter.increment(1);
}

/// A decision.
pub(crate) fn decision(policy: &PolicyName, kind: Kind, outcome: &'static str, source: Source) {
    counter!("rl_decisions_total", "policy" => policy, "kind" => kind.as_str(), "outcome" => outcome, "source" => source.as_str())
        .increment(1);
}

/// A decision without Redis.
pub(crate) fn degraded(policy: &PolicyName, trouble: &Trouble) {
    counter!("rl_degraded_total", "policy" => policy, "trouble" => trouble.as_str()).increment(1);
}

/// Tokens given back after the response.
pub(crate) fn refunded(policy: &PolicyName, tokens: u64) {
    counter!("rl_refunded_tokens_total", "policy" => policy).increment(tokens);
}

/// Tokens leased.
pub(crate) fn leased(policy: &PolicyName, tokens: u64) {
    counter!("rl_leased_tokens_total", "policy" => policy).increment(tokens);
}

/// Tokens of a lease given back unused.
pub(crate) fn returned(policy: &PolicyName, tokens: u64) {
    counter!("rl_returned_tokens_total", "policy" => policy).increment(tokens);
}

/// A call to Redis.
pub(crate) fn call(operation: &'static str, trouble: Option<&Trouble>, took: Duration) {
    let result = trouble.map_or("ok", Trouble::as_str);
    histogram!("rl_redis_seconds", "operation" => operation, "result" => result).record(took);
}

/// The breaker has changed.
pub(crate) fn breaker(state: BreakerState) {
    gauge!("rl_breaker_open").set(if state == BreakerState::Closed { 0.0 } else { 1.0 });
}
