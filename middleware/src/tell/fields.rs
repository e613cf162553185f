//! Header fields that say where a client stands.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use rl_core::Wait;

use crate::policy::{seconds, window_s};
use crate::verdict::{Standing, Trouble};

/// The largest integer of a structured field (RFC 9651, section 3.3.1). What is larger is held there.
const MAX_FIELD_INTEGER: u64 = 999_999_999_999_999;

/// The room that an item of a list usually takes.
const ITEM_LEN: usize = 48;

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const DEGRADED: HeaderName = HeaderName::from_static("ratelimit-degraded");

/// In which header fields clients are told where they stand. There is no standard yet, only a draft that has changed its form
/// before, so this is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fields {
    /// `RateLimit-Policy` and `RateLimit`, an item for each policy, as draft-ietf-httpapi-ratelimit-headers-08 to -11 have them:
    /// `"login";q=10;w=36000` and `"login";r=3;t=25200`.
    #[default]
    Draft,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, as drafts up to -07 had them: of the policy that is
    /// closest to a denial.
    Triple,
    /// The same three with the older prefix `X-`. `X-RateLimit-Reset` is in seconds from now, too.
    XTriple,
    /// None.
    Off,
}

impl Fields {
    /// Adds what is to be said of `standings`. What others have put there stays.
    ///
    /// Rounding: what is left down, times up to a second. A bucket that never fills has no window and no reset.
    pub fn tell(self, standings: &[Standing], headers: &mut HeaderMap) {
        match self {
            _ if standings.is_empty() => {}
            Self::Draft => {
                append(headers, RATELIMIT_POLICY, items(standings, policy_item));
                append(headers, RATELIMIT, items(standings, standing_item));
            }
            Self::Triple => triple(standings, headers, ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]),
            Self::XTriple => {
                triple(standings, headers, ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]);
            }
            Self::Off => {}
        }
    }

    /// Adds that Redis has not decided, and why, in a word: `RateLimit-Degraded: timeout`.
    pub fn tell_degraded(self, trouble: &Trouble, headers: &mut HeaderMap) {
        if self != Self::Off {
            append(headers, DEGRADED, HeaderValue::from_static(trouble.as_str()));
        }
    }
}

/// Sets `Retry-After` on a denial: whole seconds, rounded up, at least 1. None where waiting does not help.
pub(super) fn retry_after(wait: Wait, headers: &mut HeaderMap) {
    if let Some(seconds) = retry_after_s(wait) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// How long a denied client has to wait, in whole seconds as `Retry-After` has them.
pub(crate) fn retry_after_s(wait: Wait) -> Option<u64> {
    seconds(wait).map(|seconds| seconds.max(1))
}

fn policy_item(field: &mut String, standing: &Standing) {
    name(field, standing);
    parameter(field, ";q=", Some(standing.limit.capacity().get()));
    parameter(field, ";w=", window_s(&standing.limit));
}

fn standing_item(field: &mut String, standing: &Standing) {
    name(field, standing);
    parameter(field, ";r=", Some(standing.remaining));
    parameter(field, ";t=", seconds(standing.reset_after));
}

fn name(field: &mut String, standing: &Standing) {
    field.push('"');
    field.push_str(standing.policy.as_str());
    field.push('"');
}

fn parameter(field: &mut String, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        field.push_str(name);
        field.push_str(itoa::Buffer::new().format(held(value)));
    }
}

/// A list with an item for each policy. Written into one string: it is on the way of every response.
fn items(standings: &[Standing], item: fn(&mut String, &Standing)) -> String {
    let mut field = String::with_capacity(standings.len().saturating_mul(ITEM_LEN));
    for standing in standings {
        if !field.is_empty() {
            field.push_str(", ");
        }
        item(&mut field, standing);
    }
    field
}

fn triple(standings: &[Standing], headers: &mut HeaderMap, [limit, remaining, reset]: [&'static str; 3]) {
    let Some(closest) = standings.iter().min_by_key(|standing| closeness(standing)) else { return };
    append(headers, HeaderName::from_static(limit), held(closest.limit.capacity().get()));
    append(headers, HeaderName::from_static(remaining), held(closest.remaining));
    if let Some(seconds) = seconds(closest.reset_after) {
        append(headers, HeaderName::from_static(reset), held(seconds));
    }
}

/// Those that deny come first, the longest wait before the others; then those with the least left.
fn closeness(standing: &Standing) -> impl Ord {
    (std::cmp::Reverse(standing.retry_after), standing.remaining)
}

fn append(headers: &mut HeaderMap, name: HeaderName, value: impl TryInto<HeaderValue>) {
    // Names of policies and numbers: there is nothing in them that a field could not hold.
    if let Ok(value) = value.try_into() {
        headers.append(name, value);
    }
}

fn held(number: u64) -> u64 {
    number.min(MAX_FIELD_INTEGER)
}

#[cfg(test)]
mod tests {
    use rl_core::Tokens;

    use super::*;
    use crate::policy::{PolicyName, limit};
    use crate::verdict::Source;

    fn standing(policy: &str, capacity: u64, rate: &str, remaining: u64) -> Standing {
        let limit = limit(capacity, rate).unwrap();
        let missing = limit.shares(Tokens::new(capacity - remaining).unwrap());
        let reset_after = limit.rate().wait_for(missing);
        let policy = PolicyName::new(policy).unwrap();
        Standing { policy, limit, cost: Tokens::ONE, remaining, reset_after, retry_after: None, source: Source::Redis }
    }

    fn told(fields: Fields, standings: &[Standing]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        fields.tell(standings, &mut headers);
        let mut lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn has_an_item_for_each_policy() {
        let standings = [standing("global", 1000, "100", 999), standing("login", 10, "10/h", 3)];
        let policy = r#"ratelimit-policy: "global";q=1000;w=10, "login";q=10;w=3600"#;
        let now = r#"ratelimit: "global";r=999;t=1, "login";r=3;t=2520"#;
        assert_eq!(told(Fields::Draft, &standings), [policy, now]);
    }

    #[test]
    fn a_bucket_that_never_fills_has_no_window_and_no_reset() {
        let once = standing("trial", 5, "0", 2);
        assert_eq!(told(Fields::Draft, &[once]), [r#"ratelimit-policy: "trial";q=5"#, r#"ratelimit: "trial";r=2"#]);
    }

    #[test]
    fn the_older_forms_tell_of_what_is_closest_to_a_denial() {
        let mut standings = [standing("global", 1000, "100", 1), standing("login", 10, "10/h", 3)];
        let lines = ["ratelimit-limit: 1000", "ratelimit-remaining: 1", "ratelimit-reset: 10"];
        assert_eq!(told(Fields::Triple, &standings), lines);
        standings[1].retry_after = Some(Wait::Micros(1));
        let lines = ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 3", "x-ratelimit-reset: 2520"];
        assert_eq!(told(Fields::XTriple, &standings), lines);
        assert!(told(Fields::Off, &standings).is_empty());
    }

    #[test]
    fn what_others_have_said_stays() {
        let mut headers = HeaderMap::new();
        headers.insert(RATELIMIT, HeaderValue::from_static(r#""theirs";r=1;t=1"#));
        Fields::Draft.tell(&[standing("login", 10, "10/h", 3)], &mut headers);
        let lines: Vec<_> = headers.get_all(RATELIMIT).iter().collect();
        assert_eq!(lines, [r#""theirs";r=1;t=1"#, r#""login";r=3;t=2520"#]);
    }

    #[test]
    fn a_wait_is_rounded_up_and_at_least_a_second() {
        for (us, seconds) in [(0, 1), (1, 1), (1_000_000, 1), (1_000_001, 2), (u128::MAX, rl_core::MAX_INTEGER)] {
            assert_eq!(retry_after_s(Wait::Micros(us)), Some(seconds));
        }
        assert_eq!(retry_after_s(Wait::Never), None);
    }
}
