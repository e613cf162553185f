//! A service may only be called when that very clone of it has said that it is ready.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::body::Body;
use http::{Request, Response};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use crate::scene::{api, by, layer, limiter};
use crate::support::Server;

/// Panics when it is called without having said that it is ready. A clone has said nothing yet.
#[derive(Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<Body>> for Strict {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having said that it is ready");
        ready(Ok(Response::new(Body::empty())))
    }
}

/// The statuses of 12 requests under a limit of 8: one after the other, then from clones all at once.
async fn statuses<S>(inner: S) -> Vec<u16>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + std::fmt::Debug,
{
    let server = Server::start();
    let mut limited = layer(&limiter(&server), [api(8, "0")]).layer(inner);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(limited.ready().await.unwrap().call(by("1", "/")).await.unwrap().status().as_u16());
    }
    let mut together = tokio::task::JoinSet::new();
    for _ in 0..8 {
        together.spawn(limited.clone().oneshot(by("1", "/")));
    }
    statuses.extend(together.join_all().await.into_iter().map(|response| response.unwrap().status().as_u16()));
    statuses.sort_unstable();
    statuses
}

fn eight_of_twelve() -> Vec<u16> {
    [[200; 8].as_slice(), &[429; 4]].concat()
}

#[tokio::test]
#[should_panic(expected = "called without having said that it is ready")]
async fn the_service_of_these_tests_notices_a_call_of_a_clone() {
    let mut strict = Strict::default();
    let _ = strict.ready().await.unwrap();
    let _ = strict.clone().call(by("1", "/")).await;
}

#[tokio::test]
async fn the_one_that_is_called_is_the_one_that_was_asked() {
    assert_eq!(statuses(Strict::default()).await, eight_of_twelve());
}

#[tokio::test]
async fn a_limit_of_concurrency_inside_is_kept_and_a_denial_gives_its_place_back() {
    assert_eq!(statuses(ConcurrencyLimit::new(Strict::default(), 1)).await, eight_of_twelve());
}

#[tokio::test]
async fn a_buffer_inside_is_asked_before_it_is_called() {
    assert_eq!(statuses(Buffer::new(Strict::default(), 1)).await, eight_of_twelve());
}
