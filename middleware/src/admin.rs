//! The router of the admin listener: what those who look after a service ask and do, and a page for it.
//!
//! It belongs on a listener of its own, which clients cannot reach. All under `/api` needs the token
//! (`Authorization: Bearer TOKEN`); the page itself holds nothing, and asks for it.
//!
//! | route | |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /api/clients/{client}` | where a client stands, and its last denials |
//! | `POST /api/clients/{client}/policies/{policy}/reset` | fills a bucket |
//! | `POST /api/clients/{client}/policies/{policy}/grant` | `{"tokens": n}` grants tokens, at most to what is full |
//! | `GET /api/denials?count=n` | the last denials of this instance |
//! | `GET /api/top?count=n` | the clients that Redis has denied most |
//! | `GET /api/rules` | the rules in force |
//! | `GET /api/health` | how the limiter is |

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use rl_core::Tokens;
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::client::Client;
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::rules::LiveRules;
use crate::verdict::Trouble;
use crate::views::{ClientView, DenialView, HealthView, OffenderView, RulesView};

/// The most rows that a list answers with.
const MOST_ROWS: usize = 1000;

/// A secret that callers have to know. It is never shown.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// `None` for an empty one: it would let everybody in.
    #[must_use]
    pub fn new(token: &str) -> Option<Self> {
        (!token.is_empty()).then(|| Self(token.into()))
    }

    /// Lets requests through that bring the token, and refuses the others with 401.
    ///
    /// It takes as long for a token that is wrong at its end as for one that is wrong at its beginning.
    pub async fn required(State(token): State<Self>, request: Request, next: Next) -> Response {
        let brought = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let brought = brought.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
        if bool::from(brought.ct_eq(token.0.as_bytes())) {
            return next.run(request).await;
        }
        let mut response = Problem::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong").into_response();
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        response
    }
}

#[derive(Clone)]
struct Admin {
    limiter: Limiter,
    rules: LiveRules,
}

/// The router, for those who know `token`.
pub fn router(limiter: Limiter, rules: LiveRules, token: Token) -> Router {
    let api = Router::new()
        .route("/clients/{client}", get(client))
        .route("/clients/{client}/policies/{policy}/reset", post(reset))
        .route("/clients/{client}/policies/{policy}/grant", post(grant))
        .route("/denials", get(denials))
        .route("/top", get(top))
        .route("/rules", get(rules_in_force))
        .route("/health", get(health))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "there is no such route") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "reset and grant are POST, the others GET")
        })
        .layer(from_fn_with_state(token, Token::required))
        .with_state(Admin { limiter, rules });
    Router::new()
        .route("/", get(|| file("text/html; charset=utf-8", include_str!("admin/page.html"))))
        .route("/page.css", get(|| file("text/css; charset=utf-8", include_str!("admin/page.css"))))
        .route("/page.js", get(|| file("text/javascript; charset=utf-8", include_str!("admin/page.js"))))
        .nest("/api", api)
}

/// A file of the page. It loads nothing from elsewhere, runs no script but its own, and cannot be framed.
async fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; connect-src 'self'; img-src data:; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ];
    (headers, text).into_response()
}

/// What cannot be done, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// What is wrong.
    pub detail: Cow<'static, str>,
}

impl Problem {
    /// With this status and what is wrong.
    #[must_use]
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, detail: detail.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let (status, detail) = (self.status.as_u16(), self.detail);
        let body = serde_json::json!({ "type": "about:blank", "title": title, "status": status, "detail": detail });
        (self.status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
    }
}

/// Of a request that cannot be read.
macro_rules! problem_of {
    ($($rejection:ty),+) => {$(
        impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                Self::new(rejection.status(), rejection.body_text())
            }
        }
    )+};
}
problem_of!(JsonRejection, PathRejection, QueryRejection);

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, trouble.to_string())
    }
}

/// The client that the path names.
pub struct NamedClient(pub Client);

impl<S: Send + Sync> FromRequestParts<S> for NamedClient {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Named {
            client: String,
        }
        let named = Path::<Named>::from_request_parts(parts, state).await.ok();
        Self::read(named.as_ref().map_or("", |Path(Named { client })| client))
    }
}

impl NamedClient {
    /// Reads a client as [`Client::parse`] does.
    ///
    /// Errors: the problem that says what clients there are.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let forms = "a client is user:ID, tenant:ID, key:KEY with 1 to 1024 bytes, ip:ADDRESS, ip:NETWORK or unknown";
        Client::parse(text).map(Self).ok_or(Problem::new(StatusCode::BAD_REQUEST, forms))
    }
}

#[derive(Deserialize)]
struct NamedPolicy {
    policy: String,
}

#[derive(Deserialize)]
struct Count {
    count: Option<usize>,
}

impl Count {
    fn or(&self, usual: usize) -> usize {
        self.count.unwrap_or(usual).min(MOST_ROWS)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    tokens: u64,
}

impl Admin {
    fn policy(&self, named: &NamedPolicy) -> Result<Arc<Policy>, Problem> {
        let policy = self.rules.now().policy(&named.policy).cloned();
        policy.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no policy {:?}", named.policy)))
    }
}

async fn client(State(admin): State<Admin>, NamedClient(client): NamedClient) -> Result<Json<ClientView>, Problem> {
    Ok(Json(ClientView::of(&admin.limiter, &admin.rules.now(), &client).await?))
}

async fn reset(
    State(admin): State<Admin>,
    NamedClient(client): NamedClient,
    policy: Result<Path<NamedPolicy>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let policy = admin.policy(&policy?.0)?;
    admin.limiter.reset(&client, &policy).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn grant(
    State(admin): State<Admin>,
    NamedClient(client): NamedClient,
    policy: Result<Path<NamedPolicy>, PathRejection>,
    grant: Result<Json<Grant>, JsonRejection>,
) -> Result<StatusCode, Problem> {
    let Json(grant) = grant?;
    let policy = admin.policy(&policy?.0)?;
    let tokens = Tokens::new(grant.tokens);
    let range = "tokens must be an integer from 0 to 9007199254740991";
    let tokens = tokens.ok_or(Problem::new(StatusCode::BAD_REQUEST, range))?;
    admin.limiter.grant(&client, &policy, tokens).await?;
    Ok(StatusCode::NO_CONTENT)
}

type Asked = Result<Query<Count>, QueryRejection>;

async fn denials(State(admin): State<Admin>, count: Asked) -> Result<Json<Vec<DenialView>>, Problem> {
    let Query(count) = count?;
    Ok(Json(admin.limiter.incidents(None, count.or(50)).into_iter().map(DenialView::from).collect()))
}

async fn top(State(admin): State<Admin>, count: Asked) -> Result<Json<Vec<OffenderView>>, Problem> {
    let Query(count) = count?;
    let top = admin.limiter.top(count.or(20)).await?;
    Ok(Json(top.into_iter().map(OffenderView::from).collect()))
}

async fn rules_in_force(State(admin): State<Admin>) -> Json<RulesView> {
    Json(RulesView::from(&*admin.rules.now()))
}

async fn health(State(admin): State<Admin>) -> Json<HealthView> {
    Json(HealthView::from(admin.limiter.health()))
}
