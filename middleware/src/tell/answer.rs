//! The answer to a request that does not go ahead.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use rl_core::Wait;

use super::fields::{retry_after, retry_after_s};
use crate::verdict::{Denied, Refusal, Unavailable};

/// Where the problem types of the draft are registered (draft-ietf-httpapi-ratelimit-headers-10, section 9).
const TYPES: &str = "https://iana.org/assignments/http-problem-types#";

/// Answers requests that do not go ahead. A function from a [`Refusal`] to a response is one. The layer adds the header fields
/// that say where the client stands.
pub trait Responder<B> {
    /// The answer.
    fn respond(&self, refusal: &Refusal) -> Response<B>;
}

impl<B, F: Fn(&Refusal) -> Response<B>> Responder<B> for F {
    fn respond(&self, refusal: &Refusal) -> Response<B> {
        self(refusal)
    }
}

/// `application/problem+json` (RFC 9457). A denial is a 429 of the type `quota-exceeded` that names the violated policies,
/// with `Retry-After`; an outage a 503 of the type `temporary-reduced-capacity`, without.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProblemJson;

impl<B: From<String>> Responder<B> for ProblemJson {
    fn respond(&self, refusal: &Refusal) -> Response<B> {
        match refusal {
            Refusal::Denied(denied) => {
                let mut response = problem(StatusCode::TOO_MANY_REQUESTS, exceeded(denied));
                retry_after(denied.retry_after, response.headers_mut());
                response
            }
            Refusal::Unavailable(unavailable) => problem(StatusCode::SERVICE_UNAVAILABLE, reduced(unavailable)),
        }
    }
}

fn exceeded(denied: &Denied) -> String {
    // Names of policies need no escape in JSON.
    let violated: Vec<_> = denied.violated().map(|standing| format!("\"{}\"", standing.policy)).collect();
    let detail = match retry_after_s(denied.retry_after) {
        Some(1) => "Retry in 1 second.".to_owned(),
        Some(seconds) => format!("Retry in {seconds} seconds."),
        None => "Waiting does not help.".to_owned(),
    };
    format!(
        "{{\"type\":\"{TYPES}quota-exceeded\",\"title\":\"Quota exceeded\",\"status\":429,\"detail\":\"{detail}\",\
         \"violated-policies\":[{}]}}",
        violated.join(",")
    )
}

/// Nothing of what the trouble is: that is the operator's business, and in the log.
fn reduced(_: &Unavailable) -> String {
    format!(
        "{{\"type\":\"{TYPES}temporary-reduced-capacity\",\"title\":\"Temporarily reduced capacity\",\"status\":503,\
         \"detail\":\"The rate limiter is unavailable.\"}}"
    )
}

fn problem<B: From<String>>(status: StatusCode, body: String) -> Response<B> {
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

/// For gRPC: a response without a body and with `grpc-status`, `RESOURCE_EXHAUSTED` for a denial and `UNAVAILABLE` for an
/// outage. `grpc-retry-pushback-ms` (gRFC A6) says how long to wait, and -1 that waiting does not help.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grpc;

impl<B: Default> Responder<B> for Grpc {
    fn respond(&self, refusal: &Refusal) -> Response<B> {
        let mut response = Response::new(B::default());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let (status, message) = match refusal {
            Refusal::Denied(_) => ("8", "quota exceeded"),
            Refusal::Unavailable(_) => ("14", "the rate limiter is unavailable"),
        };
        headers.insert("grpc-status", HeaderValue::from_static(status));
        headers.insert("grpc-message", HeaderValue::from_static(message));
        if let Refusal::Denied(denied) = refusal {
            headers.insert("grpc-retry-pushback-ms", HeaderValue::from(pushback_ms(denied.retry_after)));
        }
        response
    }
}

fn pushback_ms(wait: Wait) -> i64 {
    match wait {
        Wait::Micros(us) => i64::try_from(us.div_ceil(1000)).unwrap_or(i64::MAX),
        Wait::Never => -1,
    }
}
