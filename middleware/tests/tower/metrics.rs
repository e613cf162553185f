//! What is counted, and with which labels.

use std::collections::BTreeSet;
use std::future::Future;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rl_tower::{LeaseOptions, Limiter, LimiterOptions, OnOutage, Policy};

use crate::scene::{api, layer, left, limiter, options, routes, statuses, until};
use crate::support::Server;

/// A metric: its name, its labels, its value.
struct Metric {
    name: String,
    labels: Vec<(String, String)>,
    value: DebugValue,
}

/// What was counted.
pub struct Counts(Vec<Metric>);

impl Counts {
    /// The sum of the counters called `name` that have `labels`.
    pub fn of(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let has = |metric: &Metric, (label, value): &(&str, &str)| {
            metric.labels.iter().any(|(name, found)| name == label && found == value)
        };
        let fit = |metric: &&Metric| metric.name == name && labels.iter().all(|label| has(metric, label));
        let count = |metric: &Metric| match &metric.value {
            DebugValue::Counter(count) => *count,
            DebugValue::Histogram(values) => values.len().try_into().unwrap(),
            DebugValue::Gauge(_) => panic!("{name} is a gauge"),
        };
        self.0.iter().filter(fit).map(count).sum()
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|metric| metric.name == name).map(|metric| match metric.value {
            DebugValue::Gauge(value) => value.into_inner(),
            _ => panic!("{name} is no gauge"),
        })
    }

    /// Each name with the names of its labels.
    fn shapes(&self) -> BTreeSet<(&str, Vec<&str>)> {
        self.0.iter().map(|metric| (&*metric.name, metric.labels.iter().map(|(name, _)| &**name).collect())).collect()
    }
}

/// Runs `work` to its end on this thread, with a recorder of its own.
pub fn counted(work: impl Future<Output = ()>) -> Counts {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(work));
    let metrics = snapshotter.snapshot().into_vec().into_iter().map(|(key, _, _, value)| {
        let labels = key.key().labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
        Metric { name: key.key().name().to_owned(), labels, value }
    });
    Counts(metrics.collect())
}

#[test]
fn are_named_and_labelled_as_documented() {
    let mut server = Server::start();
    let counts = counted(async {
        let leases = LeaseOptions { busy: 1, ..LeaseOptions::default() };
        let limiter = Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap();
        let (leased, plain) =
            (Policy::new("leased", 10, "0").unwrap().leasing(5).unwrap(), Policy::new("plain", 2, "0").unwrap());
        let layer = layer(&limiter, [leased, plain]).refund_if(|status| status.is_server_error());
        let app = routes().layer(layer);
        assert_eq!(statuses(&app, "secret-id", "/fails", 1).await, [500]);
        until("it is given back", async || left(&server, "secret-id", "plain") != Some(1)).await;
        assert_eq!(statuses(&app, "secret-id", "/", 3).await, [200, 200, 429]);
        assert_eq!(statuses(&app, "secret-id", "/", 1).await, [429], "remembered");
        limiter.close().await;
        server.kill();
        statuses(&app, "other-id", "/", 10).await;
    });
    assert_eq!(
        counts.shapes(),
        BTreeSet::from([
            ("rl_breaker_open", vec![]),
            ("rl_decisions_total", vec!["policy", "kind", "outcome", "source"]),
            ("rl_degraded_total", vec!["policy", "trouble"]),
            ("rl_leased_tokens_total", vec!["policy"]),
            ("rl_redis_seconds", vec!["operation", "result"]),
            ("rl_refunded_tokens_total", vec!["policy"]),
            ("rl_requests_total", vec!["outcome"]),
            ("rl_returned_tokens_total", vec!["policy"]),
        ])
    );
    let decisions = |policy, outcome, source| {
        counts
            .of("rl_decisions_total", &[("policy", policy), ("kind", "user"), ("outcome", outcome), ("source", source)])
    };
    assert_eq!(decisions("leased", "allowed", "lease"), 3);
    assert_eq!(decisions("plain", "allowed", "redis"), 3);
    assert_eq!((decisions("plain", "denied", "redis"), decisions("plain", "denied", "memory")), (1, 1));
    assert_eq!(counts.of("rl_refunded_tokens_total", &[("policy", "plain")]), 1);
    assert_eq!(counts.of("rl_leased_tokens_total", &[]), 5);
    assert_eq!(counts.of("rl_returned_tokens_total", &[]), 3);
    assert_eq!(counts.of("rl_degraded_total", &[("policy", "plain")]), 10);
    assert!(counts.of("rl_degraded_total", &[("policy", "plain"), ("trouble", "breaker-open")]) > 0);
    assert_eq!(counts.of("rl_redis_seconds", &[("operation", "RL.LEASE"), ("result", "ok")]), 1);
    assert_eq!(counts.gauge("rl_breaker_open"), Some(1.0));
    for metric in &counts.0 {
        for (label, value) in &metric.labels {
            assert!(!value.contains("-id"), "{} tells in {label} who the client is: {value}", metric.name);
        }
    }
}

#[test]
fn a_request_that_nobody_decided_on_is_counted_as_such() {
    let mut server = Server::start();
    let counts = counted(async {
        let limiter = limiter(&server);
        server.kill();
        let app = routes().layer(layer(&limiter, [api(1, "0").on_outage(OnOutage::Deny)]));
        assert_eq!(statuses(&app, "1", "/", 2).await, [503; 2]);
    });
    assert_eq!(counts.of("rl_requests_total", &[("outcome", "unavailable")]), 2);
    assert_eq!(counts.of("rl_decisions_total", &[("outcome", "unavailable"), ("source", "none")]), 2);
    assert_eq!(counts.of("rl_redis_seconds", &[("operation", "RL.TAKE"), ("result", "unreachable")]), 2);
}
