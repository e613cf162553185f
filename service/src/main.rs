//! `rl-service`: librl's limiter as an HTTP service, for every language.
//!
//! | place | holds |
//! |---|---|
//! | this file | start and stop |
//! | `options.rs` | what it is started with |
//! | `app.rs` | the state that the routes share |
//! | `routes.rs`, `check.rs` | the routes |
//! | `openapi.json` | their description, which a test holds against the answers |

#![forbid(unsafe_code)]

mod app;
mod check;
mod options;
mod routes;

use std::error::Error;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rl_tower::admin::{self, Token};
use rl_tower::{Limiter, LiveRules, Rules, Trouble};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use app::App;
use options::Options;

type Fault = Box<dyn Error + Send + Sync>;

/// How often the file of rules is looked at.
const LOOK_AT_RULES: Duration = Duration::from_secs(1);
/// How often counts are folded together that nobody has asked for.
const UPKEEP: Duration = Duration::from_secs(5);
/// How long requests that are under way may take when the service is asked to stop.
const GRACE: Duration = Duration::from_secs(10);
/// Seconds in which calls to Redis are counted.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Colours are for people: a log that is kept has none.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    match serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Fault> {
    let metrics = recorder()?;
    let rules = rules(options.rules.as_deref())?;
    let limiter = Limiter::new(options.limiter())?;
    look_at_redis(&limiter).await?;
    let token =
        options.token.as_deref().map(|token| Token::new(token).ok_or("the token must not be empty")).transpose()?;
    let app = routes::router(App { limiter: limiter.clone(), rules: rules.clone(), metrics }, token);

    let listener = listener(options.listen).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    if let (Some(address), Some(token)) = (options.admin, &options.admin_token) {
        let token = Token::new(token).ok_or("the admin token must not be empty")?;
        let listener = self::listener(address).await?;
        tracing::info!(address = %listener.local_addr()?, "admin page");
        let admin = admin::router(limiter.clone(), rules, token);
        tokio::spawn(async move { axum::serve(listener, admin).await });
    }
    run(listener, app).await?;
    limiter.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Serves until it is asked to stop, and then until what is under way is done, but no longer than [`GRACE`].
async fn run(listener: TcpListener, app: axum::Router) -> Result<(), Fault> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move { stopped.await.unwrap_or_default() });
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        ended = &mut serving => return Ok(ended??),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    let _ = stop.send(());
    match tokio::time::timeout(GRACE, serving).await {
        Ok(ended) => ended??,
        Err(_) => tracing::warn!("some requests were still under way after {GRACE:?}"),
    }
    Ok(())
}

async fn listener(address: std::net::SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}").into())
}

fn recorder() -> Result<PrometheusHandle, Fault> {
    let calls = Matcher::Full("rl_redis_seconds".to_owned());
    let metrics = PrometheusBuilder::new().set_buckets_for_metric(calls, &BUCKETS)?.install_recorder()?;
    let kept = metrics.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            kept.run_upkeep();
        }
    });
    Ok(metrics)
}

/// The rules of the file, which is followed from now on. A file that is wrong at the start is an error.
fn rules(path: Option<&Path>) -> Result<LiveRules, Fault> {
    let Some(path) = path else { return Ok(LiveRules::default()) };
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    let rules = LiveRules::new(Rules::parse(&text).map_err(|error| format!("{shown}: {error}"))?);
    tokio::spawn(rules.clone().follow(path.to_owned(), LOOK_AT_RULES));
    Ok(rules)
}

/// Redis may come later; one without the module does not get it by waiting.
async fn look_at_redis(limiter: &Limiter) -> Result<(), Fault> {
    match limiter.ready().await {
        Ok(()) => Ok(()),
        Err(trouble @ Trouble::NotLoaded) => Err(trouble.into()),
        Err(trouble) => {
            tracing::warn!("{trouble}; starting all the same");
            Ok(())
        }
    }
}
