//! The tower [`Layer`]: who sends a request, what it falls under, whether it goes ahead, and what the client is told.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;

use http::request::Parts;
use http::{Response, StatusCode};
use pin_project_lite::pin_project;
use rl_core::Tokens;
use tower_layer::Layer;
use tower_service::Service;

use crate::identity::Identity;
use crate::limiter::{Begun, Limiter};
use crate::measure::{self, Request};
use crate::policy::Policy;
use crate::receipt::Receipt;
use crate::rules::{Chosen, Facts, LiveRules};
use crate::tell::{Fields, ProblemJson, Responder};
use crate::verdict::{Allowed, Charge, Denied, Refusal, Standing, Trouble, Verdict};

type Asks<T> = Arc<dyn Fn(&Parts) -> T + Send + Sync>;

/// Limits the requests to a service.
///
/// ```
/// use rl_tower::{Limiter, LimiterOptions, LiveRules, Policy, RateLimitLayer, Rule, Rules};
/// let api = Policy::new("api", 100, "10")?;
/// let rules = LiveRules::new(Rules::new([Rule::any().apply([api])])?);
/// let limiter = Limiter::new(LimiterOptions::redis("redis://127.0.0.1:6379"))?;
/// let layer = RateLimitLayer::new(limiter, rules);
/// # let _: axum::Router = axum::Router::new().layer(layer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RateLimitLayer<R = ProblemJson> {
    settings: Arc<Settings>,
    responder: R,
}

#[derive(Clone)]
struct Settings {
    limiter: Limiter,
    rules: LiveRules,
    identity: Identity,
    fields: Fields,
    route: Option<Asks<Option<String>>>,
    cost: Option<Asks<Option<Tokens>>>,
    skip: Option<Asks<bool>>,
    refund_if: Option<Arc<dyn Fn(StatusCode) -> bool + Send + Sync>>,
}

impl RateLimitLayer {
    /// Limits by `rules`. Clients are told apart by what the application says, else by the peer's address; they are told where they
    /// stand as the draft has it, and denied with `application/problem+json`.
    #[must_use]
    pub fn new(limiter: Limiter, rules: LiveRules) -> Self {
        let (identity, fields) = (Identity::default(), Fields::default());
        let settings =
            Settings { limiter, rules, identity, fields, route: None, cost: None, skip: None, refund_if: None };
        Self { settings: Arc::new(settings), responder: ProblemJson }
    }
}

impl<R> RateLimitLayer<R> {
    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// The same with clients told apart in another way.
    #[must_use]
    pub fn identity(self, identity: Identity) -> Self {
        self.with(|settings| settings.identity = identity)
    }

    /// The same with other header fields.
    #[must_use]
    pub fn fields(self, fields: Fields) -> Self {
        self.with(|settings| settings.fields = fields)
    }

    /// The same with classes of routes by `route`. Where it says nothing, and without it, the class is what axum's router has
    /// matched (`/users/{id}`), else the path.
    #[must_use]
    pub fn route(self, route: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.route = Some(Arc::new(route)))
    }

    /// The same with the cost of a request by `cost`, in tokens, of every policy. Where it says nothing, it is the policy's.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&Parts) -> Option<Tokens> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// The same without limits for the requests that `skip` picks out.
    #[must_use]
    pub fn skip(self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.skip = Some(Arc::new(skip)))
    }

    /// The same, and what a request was charged is given back if the response's status is one that `refund` picks out.
    #[must_use]
    pub fn refund_if(self, refund: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.refund_if = Some(Arc::new(refund)))
    }

    /// The same with other answers to requests that do not go ahead: [`Grpc`](crate::Grpc), or a function from a [`Refusal`] to
    /// a response.
    #[must_use]
    pub fn respond_with<N>(self, responder: N) -> RateLimitLayer<N> {
        RateLimitLayer { settings: self.settings, responder }
    }
}

impl<S, R: Clone> Layer<S> for RateLimitLayer<R> {
    type Service = RateLimit<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit { inner, settings: self.settings.clone(), responder: self.responder.clone() }
    }
}

/// A service whose requests are limited.
#[derive(Clone)]
pub struct RateLimit<S, R = ProblemJson> {
    inner: S,
    settings: Arc<Settings>,
    responder: R,
}

impl<S, R, B, A> Service<http::Request<B>> for RateLimit<S, R>
where
    S: Service<http::Request<B>, Response = Response<A>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    R: Responder<A> + Clone + Send + 'static,
    B: Send + 'static,
    A: Send,
{
    type Response = Response<A>;
    type Error = S::Error;
    type Future = Answering<S::Future, A, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let stage = match self.settings.begin(&parts) {
            None => Stage::Inner { answering: self.inner.call(http::Request::from_parts(parts, body)), allowed: None },
            Some(Begun::Decided(verdict)) => match self.settings.told(verdict, &self.responder) {
                Ok(allowed) => Stage::Inner {
                    answering: self.inner.call(http::Request::from_parts(parts, body)),
                    allowed: Some((self.settings.clone(), allowed)),
                },
                Err(response) => Stage::Refused { response: Some(*response) },
            },
            Some(Begun::Open(pending)) => {
                // The service that was polled ready is the one to call; the clone takes its place and is polled in its turn.
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let (settings, responder) = (self.settings.clone(), self.responder.clone());
                let answering = async move {
                    match settings.told(settings.limiter.finish(pending).await, &responder) {
                        Ok(allowed) => {
                            let response = ready.call(http::Request::from_parts(parts, body)).await;
                            settings.finished(response, allowed)
                        }
                        Err(response) => Ok(*response),
                    }
                };
                Stage::Waiting { answering: Box::pin(answering) }
            }
        };
        Answering { stage }
    }
}

pin_project! {
    /// The response to a request. What can be decided at once already is, and then there is no more to it than the response
    /// of the service behind.
    pub struct Answering<F, A, E> {
        #[pin]
        stage: Stage<F, A, E>,
    }
}

pin_project! {
    #[project = StageNow]
    enum Stage<F, A, E> {
        /// The service behind answers.
        Inner { #[pin] answering: F, allowed: Option<(Arc<Settings>, Allowed)> },
        /// It is not asked.
        Refused { response: Option<Response<A>> },
        /// Redis is asked first.
        Waiting { answering: BoxFuture<'static, Result<Response<A>, E>> },
    }
}

impl<F, A, E> Future for Answering<F, A, E>
where
    F: Future<Output = Result<Response<A>, E>>,
{
    type Output = Result<Response<A>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageNow::Inner { answering, allowed } => {
                let response = ready!(answering.poll(context));
                Poll::Ready(match allowed.take() {
                    Some((settings, allowed)) => settings.finished(response, allowed),
                    None => response,
                })
            }
            // Nobody polls what has answered; whoever does waits.
            StageNow::Refused { response } => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
            StageNow::Waiting { answering } => answering.as_mut().poll(context),
        }
    }
}

impl Settings {
    /// Begins to decide on a request; `None` if it has no limit.
    fn begin(&self, parts: &Parts) -> Option<Begun> {
        if self.skip.as_ref().is_some_and(|skip| skip(parts)) {
            measure::request(Request::Skipped);
            return None;
        }
        let client = self.identity.identify(&parts.headers, &parts.extensions);
        let route = self.route_of(parts);
        let rules = self.rules.now();
        let plan = self.identity.plan(&parts.headers, &parts.extensions);
        let outcome = match rules.choose(&Facts { route: &route, method: &parts.method, plan, client: &client }) {
            Chosen::Policies(policies) => {
                let cost = self.cost.as_ref().and_then(|cost| cost(parts));
                let charge =
                    |policy: &Arc<Policy>| Charge { cost: cost.unwrap_or(policy.cost), policy: policy.clone() };
                return Some(self.limiter.begin(client, policies.iter().map(charge), &route));
            }
            Chosen::Skip => Request::Skipped,
            Chosen::Nothing => Request::Unmatched,
        };
        measure::request(outcome);
        None
    }

    /// Counts a request. What may go ahead does; what may not has its answer.
    fn told<A>(&self, verdict: Verdict, responder: &impl Responder<A>) -> Result<Allowed, Box<Response<A>>> {
        match verdict {
            Verdict::Allowed(allowed) => {
                measure::request(Request::Allowed);
                Ok(allowed)
            }
            Verdict::Denied(denied) => {
                measure::request(Request::Denied);
                Err(Box::new(self.denied(denied, responder)))
            }
            Verdict::Unavailable(unavailable) => {
                measure::request(Request::Unavailable);
                let trouble = unavailable.trouble.clone();
                let mut response = responder.respond(&Refusal::Unavailable(unavailable));
                self.fields.tell_degraded(&trouble, response.headers_mut());
                Err(Box::new(response))
            }
        }
    }

    fn route_of<'a>(&self, parts: &'a Parts) -> Cow<'a, str> {
        if let Some(route) = self.route.as_ref().and_then(|route| route(parts)) {
            return route.into();
        }
        #[cfg(feature = "axum")]
        if let Some(matched) = parts.extensions.get::<axum::extract::MatchedPath>() {
            return matched.as_str().into();
        }
        parts.uri.path().into()
    }

    /// Tells the client where it stands, and gives back what the outcome says.
    fn finished<A, E>(&self, response: Result<Response<A>, E>, allowed: Allowed) -> Result<Response<A>, E> {
        let Allowed { standings, degraded, receipt } = allowed;
        let mut response = response?;
        if self.refund_if.as_ref().is_some_and(|refund| refund(response.status())) {
            self.refund(receipt);
        }
        self.tell(&standings, degraded.as_ref(), &mut response);
        Ok(response)
    }

    fn denied<A>(&self, denied: Denied, responder: &impl Responder<A>) -> Response<A> {
        let refusal = Refusal::Denied(denied);
        let mut response = responder.respond(&refusal);
        if let Refusal::Denied(denied) = &refusal {
            self.tell(&denied.standings, denied.degraded.as_ref(), &mut response);
        }
        response
    }

    fn tell<A>(&self, standings: &[Standing], degraded: Option<&Trouble>, response: &mut Response<A>) {
        self.fields.tell(standings, response.headers_mut());
        if let Some(trouble) = degraded {
            self.fields.tell_degraded(trouble, response.headers_mut());
        }
    }

    /// In a task of its own: the client does not wait for it.
    fn refund(&self, receipt: Receipt) {
        let limiter = self.limiter.clone();
        tokio::spawn(async move { limiter.refund(receipt).await });
    }
}
