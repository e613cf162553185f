//! `POST /check`: may this client do this now?

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use rl_core::Tokens;
use rl_tower::admin::{NamedClient, Problem};
use rl_tower::policy::{PolicyName, RateText};
use rl_tower::rules::{Chosen, Facts, MAX_POLICIES};
use rl_tower::verdict::{Allowed, Denied, Standing, Trouble};
use rl_tower::views::StandingView;
use rl_tower::{Charge, Client, Fields, Kind, Policy, ProblemJson, Refusal, Responder, Rules, Verdict};
use serde::{Deserialize, Serialize};

use crate::app::App;

/// The name of the policy that a request brings itself.
const OWN: &str = "limit";

/// What is asked. Who: `client` or `key`. What for: `policy`, `policies`, `limit`, or else what the rules say of `route`,
/// `method` and `plan`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    client: Option<String>,
    key: Option<String>,
    policy: Option<String>,
    policies: Option<Vec<String>>,
    limit: Option<Limit>,
    route: Option<String>,
    method: Option<String>,
    plan: Option<String>,
    cost: Option<u64>,
}

/// A limit that a request brings itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Tokens.
    pub capacity: u64,
    /// As the module reads it, or a number of tokens per second.
    pub rate: RateText,
}

impl Limit {
    /// The limit.
    ///
    /// Errors: it is none.
    pub fn read(&self) -> Result<rl_core::Limit, Problem> {
        rl_tower::policy::limit(self.capacity, self.rate.as_str()).map_err(|error| bad(error.to_string()))
    }
}

/// What is answered. A refusal carries the members of `application/problem+json` besides.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    allowed: bool,
    client: Cow<'a, str>,
    policies: Vec<StandingView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<&'a str>,
}

fn bad(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

/// Answers 200 if the request may go ahead, 429 if a policy denies it, 503 if nobody could decide and a policy refuses then.
pub async fn check(
    State(app): State<App>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(question) = question?;
    let client = question.client()?;
    let charges = question.charges(&app.rules.now(), &client)?;
    let verdict = app.limiter.check(&client, &charges, question.route.as_deref().unwrap_or_default()).await;
    Ok(answered(&client, verdict))
}

impl Question {
    fn client(&self) -> Result<Client, Problem> {
        match (&self.client, &self.key) {
            (Some(client), None) => NamedClient::read(client).map(|NamedClient(client)| client),
            (None, Some(key)) => {
                let client = Client::parse(&[Kind::Key.as_str(), ":", key].concat());
                client.ok_or(bad("key must have 1 to 1024 bytes"))
            }
            _ => Err(bad("say either client or key")),
        }
    }

    fn charges(&self, rules: &Rules, client: &Client) -> Result<Vec<Charge>, Problem> {
        let policies = self.chosen(rules, client)?;
        let cost =
            self.cost.map(|cost| Tokens::new(cost).ok_or(bad("cost must be an integer from 0 to 9007199254740991")));
        let cost = cost.transpose()?;
        let charge = |policy| {
            let charge = Charge::of(policy);
            Charge { cost: cost.unwrap_or(charge.cost), ..charge }
        };
        Ok(policies.into_iter().map(charge).collect())
    }

    fn chosen(&self, rules: &Rules, client: &Client) -> Result<Vec<Arc<Policy>>, Problem> {
        match (&self.policy, &self.policies, &self.limit) {
            (Some(name), None, None) => Ok(vec![named(rules, name)?]),
            (None, Some(names), None) => several(rules, names),
            (None, None, Some(limit)) => {
                let (name, limit) = (PolicyName::new(OWN), limit.read()?);
                let name = name.map_err(|error| bad(error.to_string()))?;
                Ok(vec![Arc::new(Policy::with(name, limit))])
            }
            (None, None, None) => self.by_rules(rules, client),
            _ => Err(bad("say one of policy, policies and limit")),
        }
    }

    fn by_rules(&self, rules: &Rules, client: &Client) -> Result<Vec<Arc<Policy>>, Problem> {
        let route = self.route.as_deref().ok_or(bad("say policy, policies, limit or route"))?;
        let method = self.method.as_deref().unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| bad("method must be one of HTTP"))?;
        match rules.choose(&Facts { route, method: &method, plan: self.plan.as_deref(), client }) {
            Chosen::Policies(policies) => Ok(policies.to_vec()),
            Chosen::Skip | Chosen::Nothing => Ok(Vec::new()),
        }
    }
}

fn named(rules: &Rules, name: &str) -> Result<Arc<Policy>, Problem> {
    rules
        .policy(name)
        .cloned()
        .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no policy {name:?}")))
}

fn several(rules: &Rules, names: &[String]) -> Result<Vec<Arc<Policy>>, Problem> {
    if names.is_empty() || names.len() > MAX_POLICIES {
        return Err(bad(format!("policies must be 1 to {MAX_POLICIES} names")));
    }
    let policies: Vec<_> = names.iter().map(|name| named(rules, name)).collect::<Result<_, _>>()?;
    for (index, policy) in policies.iter().enumerate() {
        if policies.iter().take(index).any(|before| before.bucket == policy.bucket) {
            return Err(bad("policies must take from different buckets"));
        }
    }
    Ok(policies)
}

fn answered(client: &Client, verdict: Verdict) -> Response {
    match verdict {
        Verdict::Allowed(Allowed { standings, degraded, .. }) => {
            let answer = Answer::new(client, true, &standings, degraded.as_ref());
            let mut response = Json(answer).into_response();
            tell(&standings, degraded.as_ref(), response.headers_mut());
            response
        }
        Verdict::Denied(denied) => {
            let Denied { standings, degraded, .. } = denied.clone();
            let mut answer = Answer::new(client, false, &standings, degraded.as_ref());
            let refusal = Refusal::Denied(denied);
            let problem: Response<String> = ProblemJson.respond(&refusal);
            answer.retry_after_s = retry_after_s(problem.headers());
            refused(problem, &answer, &standings, degraded.as_ref())
        }
        Verdict::Unavailable(unavailable) => {
            let trouble = unavailable.trouble.clone();
            let answer = Answer::new(client, false, &[], Some(&trouble));
            refused(ProblemJson.respond(&Refusal::Unavailable(unavailable)), &answer, &[], Some(&trouble))
        }
    }
}

impl<'a> Answer<'a> {
    fn new(client: &'a Client, allowed: bool, standings: &[Standing], degraded: Option<&'a Trouble>) -> Self {
        let policies = standings.iter().map(StandingView::from).collect();
        Self {
            allowed,
            client: client.written(),
            policies,
            retry_after_s: None,
            degraded: degraded.map(Trouble::as_str),
        }
    }
}

fn retry_after_s(headers: &HeaderMap) -> Option<u64> {
    headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

/// The problem that the layer would answer with, and the verdict in the same object.
fn refused(
    problem: Response<String>,
    answer: &Answer<'_>,
    standings: &[Standing],
    degraded: Option<&Trouble>,
) -> Response {
    let (parts, body) = problem.into_parts();
    let mut members = match serde_json::from_str(&body) {
        Ok(serde_json::Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    if let Ok(serde_json::Value::Object(verdict)) = serde_json::to_value(answer) {
        members.extend(verdict);
    }
    let mut response = (parts.status, parts.headers, serde_json::Value::Object(members).to_string()).into_response();
    // A body of text says that it is text; this one says what it is.
    if let Some(kind) = response.headers().get(CONTENT_TYPE).cloned() {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    tell(standings, degraded, response.headers_mut());
    response
}

fn tell(standings: &[Standing], degraded: Option<&Trouble>, headers: &mut HeaderMap) {
    Fields::Draft.tell(standings, headers);
    if let Some(trouble) = degraded {
        Fields::Draft.tell_degraded(trouble, headers);
    }
}
