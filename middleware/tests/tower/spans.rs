//! Spans of the calls to Redis, by the names that OpenTelemetry has for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rl_tower::{Client, Limiter, LimiterOptions, RedisOptions};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use crate::scene::{api, check, passes, signal, url};
use crate::support::Server;

type Fields = BTreeMap<String, String>;

/// The spans that were begun, in their order, with their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(u64, Fields)>>>);

struct Written<'a>(&'a mut Fields);

impl Visit for Written<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Layer<Registry> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, Registry>) {
        let mut fields = Fields::new();
        attributes.record(&mut Written(&mut fields));
        if fields.contains_key("db.system.name") {
            self.0.lock().unwrap().push((id.into_u64(), fields));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Context<'_, Registry>) {
        let mut spans = self.0.lock().unwrap();
        if let Some((_, fields)) = spans.iter_mut().rev().find(|(span, _)| *span == id.into_u64()) {
            record.record(&mut Written(fields));
        }
    }
}

impl Spans {
    fn taken(&self) -> Vec<Fields> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|(_, fields)| fields).collect()
    }
}

fn has(fields: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(fields.get(*name).map(String::as_str), Some(*value), "{name} in {fields:?}");
    }
}

#[tokio::test]
async fn a_call_is_a_client_span_that_says_what_went_wrong() {
    let server = Server::start();
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
    // Long enough for a machine that is busy with something else, and for a server that does not answer at all.
    let redis = RedisOptions { timeout: Duration::from_secs(1), ..RedisOptions::new(url(&server)) };
    let limiter = Limiter::new(LimiterOptions { redis: Some(redis), ..LimiterOptions::default() }).unwrap();
    let (client, policy) = (Client::user("1"), api(9, "0"));
    assert!(passes(&limiter, &client, &policy, 1).await);
    let [take] = &spans.taken()[..] else { panic!("not one span") };
    let socket = server.folder().join("socket").display().to_string();
    let expected = [
        ("otel.name", "RL.TAKE"),
        ("otel.kind", "client"),
        ("db.system.name", "redis"),
        ("db.operation.name", "RL.TAKE"),
        ("server.address", &socket),
    ];
    has(take, &expected);
    assert!(!take.contains_key("error.type"), "{take:?}");
    signal(&server, "STOP");
    check(&limiter, &client, &policy, 1).await;
    signal(&server, "CONT");
    let [late] = &spans.taken()[..] else { panic!("not one span") };
    has(late, &expected);
    has(late, &[("error.type", "timeout")]);
    assert!(!format!("{late:?}").contains("user:1"), "{late:?}");
}

#[tokio::test]
async fn the_address_is_told_apart_from_the_port() {
    let port = crate::support::free_port().to_string();
    let server = Server::with(&["--port", &port]);
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
    let options = LimiterOptions::redis(format!("redis://127.0.0.1:{port}"));
    let limiter = Limiter::new(options).unwrap();
    assert!(passes(&limiter, &Client::user("1"), &api(9, "0"), 1).await);
    let [take] = &spans.taken()[..] else { panic!("not one span") };
    has(take, &[("server.address", "127.0.0.1"), ("server.port", &port)]);
    drop(server);
}
