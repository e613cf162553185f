//! The routes of the service, but for `/check`.

use std::collections::BTreeMap;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use rl_tower::admin::{NamedClient, Problem, Token};
use rl_tower::policy::PolicyName;
use rl_tower::views::{ClientView, HealthView, LimitView};

use crate::app::App;
use crate::check::{self, Limit};

/// The description of all routes.
const OPENAPI: &str = include_str!("../openapi.json");

/// The longest body, in bytes: it is held in memory before it is read.
const MAX_BODY: usize = 64 << 10;

/// The service. With a token, what tells of clients or charges them is for those who know it.
pub fn router(app: App, token: Option<Token>) -> Router {
    let mut guarded = Router::new()
        .route("/check", post(check::check))
        .route("/status/{client}", get(status))
        .route("/limits/{client}", get(limits).put(set_limits))
        .layer(DefaultBodyLimit::max(MAX_BODY));
    if let Some(token) = token {
        guarded = guarded.layer(from_fn_with_state(token, Token::required));
    }
    guarded
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/openapi.json", get(openapi))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "there is no such route; see /openapi.json") })
        .method_not_allowed_fallback(|| async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "see /openapi.json") })
        .with_state(app)
}

async fn status(State(app): State<App>, NamedClient(client): NamedClient) -> Result<Json<ClientView>, Problem> {
    Ok(Json(ClientView::of(&app.limiter, &app.rules.now(), &client).await?))
}

type Limits = BTreeMap<String, LimitView>;

async fn limits(State(app): State<App>, NamedClient(client): NamedClient) -> Result<Json<Limits>, Problem> {
    let own = app.limiter.own_limits(&client).await?;
    Ok(Json(own.iter().map(|(policy, limit)| (policy.to_string(), LimitView::from(limit))).collect()))
}

/// Sets the limits of the policies that are named, takes away those that are null, and leaves the others as they are. All are
/// looked at before any is set.
async fn set_limits(
    State(app): State<App>,
    NamedClient(client): NamedClient,
    asked: Result<Json<BTreeMap<String, Option<Limit>>>, JsonRejection>,
) -> Result<Json<Limits>, Problem> {
    let Json(asked) = asked?;
    let mut changes = Vec::new();
    for (name, limit) in &asked {
        changes.push((policy(&app, name, limit.is_some())?, limit.as_ref().map(Limit::read).transpose()?));
    }
    app.limiter.set_own_limits(&client, changes).await?;
    limits(State(app), NamedClient(client)).await
}

/// The policy of that name. To take a limit away, it need not be there any more.
fn policy(app: &App, name: &str, must_be_there: bool) -> Result<PolicyName, Problem> {
    if must_be_there && app.rules.now().policy(name).is_none() {
        return Err(Problem::new(StatusCode::NOT_FOUND, format!("there is no policy {name:?}")));
    }
    PolicyName::new(name).map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))
}

async fn metrics(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render()).into_response()
}

/// 200 as long as the service answers: while Redis is gone it goes on by its policies, and says so.
async fn health(State(app): State<App>) -> Json<HealthView> {
    Json(HealthView::from(app.limiter.health()))
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
