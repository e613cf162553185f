//! The state that the routes share.

use metrics_exporter_prometheus::PrometheusHandle;
use rl_tower::{Limiter, LiveRules};

/// What the routes share.
#[derive(Clone)]
pub struct App {
    /// The limiter.
    pub limiter: Limiter,
    /// The rules in force.
    pub rules: LiveRules,
    /// Where metrics are read.
    pub metrics: PrometheusHandle,
}
