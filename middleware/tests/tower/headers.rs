//! What the client is told, read back by a parser of structured fields that is not ours.

use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use http::HeaderMap;
use rl_core::Tokens;
use rl_tower::{Fields, LeaseOptions, Limiter, LimiterOptions, OnOutage, Policy};
use sfv::{BareItem, Item, List, ListEntry, Parser};

use crate::scene::{Answer, api, by, layer, limiter, options, routes, send};
use crate::support::Server;

const MAX: u64 = (1 << 53) - 1;
/// The largest integer that a structured field can hold.
const MAX_FIELD: i64 = 999_999_999_999_999;
const TRIPLES: [(Fields, &str); 2] = [(Fields::Triple, "ratelimit"), (Fields::XTriple, "x-ratelimit")];

/// An item of a list: the string, and its parameters.
type Told = (String, Vec<(String, i64)>);

/// All lines of a field as one list of strings with integers as parameters.
fn list(headers: &HeaderMap, name: &str) -> Vec<Told> {
    let lines: Vec<_> = headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
    let text = lines.join(", ");
    let list: List = Parser::new(&text).parse().unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
    list.into_iter().map(told).collect()
}

fn told(entry: ListEntry) -> Told {
    let ListEntry::Item(item) = entry else { panic!("an inner list: {entry:?}") };
    let BareItem::String(name) = item.bare_item else { panic!("no string: {:?}", item.bare_item) };
    let integer = |value: &BareItem| i64::from(value.as_integer().unwrap_or_else(|| panic!("no integer: {value:?}")));
    (
        name.as_str().to_owned(),
        item.params.iter().map(|(key, value)| (key.as_str().to_owned(), integer(value))).collect(),
    )
}

/// A field of one line as an integer; `None` without the field.
fn integer(answer: &Answer, name: &str) -> Option<i64> {
    let text = answer.field(name)?;
    let item: Item = Parser::new(text).parse().unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
    assert!(item.params.is_empty(), "{name}: {text}");
    Some(item.bare_item.as_integer().unwrap_or_else(|| panic!("{name}: {text}")).into())
}

/// `RateLimit-Degraded`, which is a token.
fn degraded(answer: &Answer) -> String {
    let item: Item = Parser::new(answer.field("ratelimit-degraded").unwrap()).parse().unwrap();
    item.bare_item.as_token().unwrap().as_str().to_owned()
}

fn named(name: &str, parameters: &[(&str, i64)]) -> Told {
    (name.to_owned(), parameters.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect())
}

/// A policy, and what the first request that falls under it is told: quota, window, what is left, time until full.
fn told_at_first() -> [(Policy, [Option<i64>; 4]); 7] {
    let policy = |capacity, rate| Policy::new("a-b_c.9", capacity, rate).unwrap();
    let some = |numbers: [i64; 4]| numbers.map(Some);
    [
        (policy(10, "10/h"), some([10, 3600, 9, 360])),
        (policy(100, "10"), some([100, 10, 99, 1])),
        (policy(1, "1000"), some([1, 1, 0, 1])),
        (policy(5, "0"), [Some(5), None, Some(4), None]),
        (policy(MAX, "1"), some([MAX_FIELD, MAX_FIELD, MAX_FIELD, 1])),
        (policy(MAX, "1000000"), some([MAX_FIELD, 9_007_199_255, MAX_FIELD, 1])),
        (policy(MAX_FIELD as u64, "0"), [Some(MAX_FIELD), None, Some(MAX_FIELD - 1), None]),
    ]
}

fn parameters(of: [(&str, Option<i64>); 2]) -> Vec<Told> {
    let known: Vec<_> = of.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    vec![named("a-b_c.9", &known)]
}

#[tokio::test]
async fn the_draft_fields_are_lists_of_names_with_numbers() {
    let server = Server::start();
    let limiter = limiter(&server);
    for (n, (policy, [quota, window, left, reset])) in told_at_first().into_iter().enumerate() {
        let app = routes().layer(layer(&limiter, [policy.clone()]));
        let answer = send(&app, by(&n.to_string(), "/")).await;
        assert_eq!(list(&answer.headers, "ratelimit-policy"), parameters([("q", quota), ("w", window)]), "{policy:?}");
        assert_eq!(list(&answer.headers, "ratelimit"), parameters([("r", left), ("t", reset)]), "{policy:?}");
    }
}

#[tokio::test]
async fn the_older_fields_are_integers() {
    let server = Server::start();
    let limiter = limiter(&server);
    for (fields, begin) in TRIPLES {
        for (n, (policy, [quota, _, left, reset])) in told_at_first().into_iter().enumerate() {
            let app = routes().layer(layer(&limiter, [policy.clone()]).fields(fields));
            let answer = send(&app, by(&format!("{begin}{n}"), "/")).await;
            let seen = ["limit", "remaining", "reset"].map(|end| integer(&answer, &format!("{begin}-{end}")));
            assert_eq!(seen, [quota, left, reset], "{policy:?}");
            assert!(!answer.headers.contains_key("ratelimit-policy"));
        }
    }
}

#[tokio::test]
async fn several_policies_are_told_in_one_list_and_the_older_fields_tell_the_one_that_denies() {
    let server = Server::start();
    let policies = [api(9, "0"), Policy::new("login", 1, "1/h").unwrap()];
    let app = routes().layer(layer(&limiter(&server), policies.clone()));
    for (status, left) in [(200, [8, 0]), (429, [8, 0])] {
        let answer = send(&app, by("1", "/")).await;
        assert_eq!(answer.status, status);
        let quotas = [named("api", &[("q", 9)]), named("login", &[("q", 1), ("w", 3600)])];
        assert_eq!(list(&answer.headers, "ratelimit-policy"), quotas);
        let standings = list(&answer.headers, "ratelimit");
        assert_eq!(
            standings.iter().map(|(name, now)| (&**name, now[0].1)).collect::<Vec<_>>(),
            [("api", left[0]), ("login", left[1])]
        );
    }
    let app = routes().layer(layer(&limiter(&server), policies).fields(Fields::Triple));
    let answer = send(&app, by("1", "/")).await;
    assert_eq!((answer.status, integer(&answer, "ratelimit-limit")), (429, Some(1)));
}

#[tokio::test]
async fn nothing_is_told_where_nothing_is_to_be_told() {
    let server = Server::start();
    let limiter = limiter(&server);
    let app = routes().layer(layer(&limiter, [api(1, "1/h")]).fields(Fields::Off));
    for status in [200, 429] {
        let answer = send(&app, by("1", "/")).await;
        assert_eq!(answer.status, status);
        assert!(answer.headers.keys().all(|name| !name.as_str().contains("ratelimit")), "{:?}", answer.headers);
        assert_eq!(answer.headers.contains_key("retry-after"), status == 429);
    }
}

#[tokio::test]
async fn what_the_service_has_said_stays() {
    let server = Server::start();
    let limiter = limiter(&server);
    let theirs = || async {
        let fields = [
            ("ratelimit", r#""theirs";r=1;t=1"#),
            ("ratelimit-policy", r#""theirs";q=2;w=3"#),
            ("x-ratelimit-limit", "77"),
            ("retry-after", "5"),
        ];
        fields.into_response()
    };
    let app = Router::new().fallback(theirs);
    let answer = send(&app.clone().layer(layer(&limiter, [api(9, "0")])), by("1", "/")).await;
    assert_eq!(list(&answer.headers, "ratelimit"), [named("theirs", &[("r", 1), ("t", 1)]), named("api", &[("r", 8)])]);
    assert_eq!(
        list(&answer.headers, "ratelimit-policy"),
        [named("theirs", &[("q", 2), ("w", 3)]), named("api", &[("q", 9)])]
    );
    assert_eq!(answer.field("retry-after"), Some("5"));
    let answer = send(&app.layer(layer(&limiter, [api(9, "0")]).fields(Fields::XTriple)), by("1", "/")).await;
    assert_eq!(answer.lines("x-ratelimit-limit"), ["77", "9"]);
}

#[tokio::test]
async fn retry_after_comes_with_denials_that_waiting_can_end_and_with_nothing_else() {
    let server = Server::start();
    let costing = |tokens: u64| move |_: &http::request::Parts| Tokens::new(tokens);
    // Policy, cost, statuses, and the seconds that the last answer names.
    let rows = [
        (api(1, "5/h"), 1, vec![200, 429], Some(1..=720)),
        (api(1, "100"), 1, vec![200], None),
        (api(3, "1/h"), 3, vec![200, 429], Some(10_000..=10_800)),
        (api(3, "1"), 5, vec![429], None),
        (api(1, "0"), 1, vec![200, 429], None),
        (api(0, "1"), 1, vec![429], None),
        // So slow that nobody will see the day.
        (api(2, "1/100000d"), 2, vec![200, 429], Some(17_279_000_000..=17_280_000_000)),
    ];
    for (n, (policy, cost, statuses, seconds)) in rows.into_iter().enumerate() {
        let app = routes().layer(layer(&limiter(&server), [policy.clone()]).cost(costing(cost)));
        for (nth, status) in statuses.iter().enumerate() {
            let answer = send(&app, by(&n.to_string(), "/")).await;
            assert_eq!(answer.status, *status, "{policy:?}");
            let told: Option<i64> = answer.field("retry-after").map(|text| text.parse().unwrap());
            let expected = seconds.clone().filter(|_| nth + 1 == statuses.len());
            match (told, expected) {
                (None, None) => {}
                (Some(told), Some(range)) if range.contains(&told) => {}
                other => panic!("{policy:?}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn an_outage_is_told_in_a_word_and_without_retry_after() {
    let mut server = Server::start();
    let limiter = limiter(&server);
    server.kill();
    for (on_outage, status, body) in
        [(OnOutage::Allow, 200, "done"), (OnOutage::Deny, 503, "temporary-reduced-capacity")]
    {
        let app = routes().layer(layer(&limiter, [api(1, "1/h").on_outage(on_outage)]));
        let answer = send(&app, by("1", "/")).await;
        assert_eq!((answer.status, degraded(&answer).as_str()), (status, "unreachable"));
        assert!(answer.body.contains(body), "{}", answer.body);
        assert_eq!((answer.field("retry-after"), answer.field("ratelimit")), (None, None));
    }
}

/// A client that honours `Retry-After`, for a few rounds. `seed` says what is random.
async fn honours_retry_after(app: Router, user: String, seed: u64) {
    let mut chance = fastrand::Rng::with_seed(seed);
    for round in 0..3 {
        let denied = loop {
            let answer = send(&app, by(&user, "/")).await;
            if answer.status == 429 {
                break answer;
            }
        };
        let seconds: u64 = denied.field("retry-after").unwrap().parse().unwrap();
        assert!((1..=3).contains(&seconds), "seed {seed}, round {round}: {seconds}");
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let answer = send(&app, by(&user, "/")).await;
        assert_eq!(answer.status, 200, "seed {seed}, round {round}: came back after {seconds} s as told: {answer:?}");
        tokio::time::sleep(Duration::from_millis(chance.u64(0..300))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_honours_retry_after_passes() {
    let server = Server::start();
    let leases = LeaseOptions { busy: 1, hold: Duration::from_millis(300) };
    let on_redis = Limiter::new(LimiterOptions { leases, ..options(&server) }).unwrap();
    let alone = Limiter::new(LimiterOptions::default()).unwrap();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..16 {
        let rate = ["1", "3", "5", "7/2s"][n % 4];
        let (capacity, cost) = (chance.u64(2..5), chance.u64(1..3));
        let policy = Policy::new("fast", capacity, rate).unwrap().costing(cost).unwrap();
        let other = Policy::new("other", 2, "1").unwrap();
        let policies = match n / 4 {
            0 => vec![policy],
            1 => vec![policy, other],
            2 => vec![policy.leasing(2).unwrap()],
            _ => vec![policy.leasing(2).unwrap(), other],
        };
        let limiter = if n % 8 == 7 { &alone } else { &on_redis };
        let rules = rl_tower::Rules::new([rl_tower::Rule::any().apply(policies)]).unwrap();
        let layer = rl_tower::RateLimitLayer::new(limiter.clone(), rl_tower::LiveRules::new(rules));
        clients.spawn(honours_retry_after(routes().layer(layer), n.to_string(), chance.u64(..)));
    }
    clients.join_all().await;
}
