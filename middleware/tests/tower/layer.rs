//! A request in, a response out.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Response;
use rl_core::Tokens;
use rl_tower::{
    Charge, Client, Grpc, LeaseOptions, Limiter, LimiterOptions, LiveRules, Policy, RateLimitLayer, Refusal, Rule,
    Rules, Verdict,
};
use serde_json::Value;

use crate::metrics::counted;
use crate::scene::{api, by, calls, layer, left, limiter, options, routes, rules, send, statuses, until};
use crate::support::Server;

#[tokio::test]
async fn lets_as_many_through_as_the_limit_says() {
    let server = Server::start();
    let app = routes().layer(layer(&limiter(&server), [api(3, "0")]));
    assert_eq!(statuses(&app, "1", "/", 5).await, [200, 200, 200, 429, 429]);
    assert_eq!(statuses(&app, "2", "/", 1).await, [200], "another client has its own bucket");
    assert_eq!(left(&server, "1", "api"), Some(0));
}

#[tokio::test]
async fn a_denial_is_a_problem_that_names_the_policies_that_deny() {
    let server = Server::start();
    let policies = [api(10, "0"), Policy::new("login", 1, "10/h").unwrap(), Policy::new("trial", 1, "1/h").unwrap()];
    let app = routes().layer(layer(&limiter(&server), policies));
    assert_eq!(send(&app, by("1", "/")).await.body, "done");
    let denied = send(&app, by("1", "/")).await;
    assert_eq!((denied.status, denied.field("content-type")), (429, Some("application/problem+json")));
    let problem: Value = serde_json::from_str(&denied.body).unwrap();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["login", "trial"]));
}

#[tokio::test]
async fn a_denied_request_charges_no_policy() {
    let server = Server::start();
    let app = routes().layer(layer(&limiter(&server), [api(10, "0"), Policy::new("narrow", 2, "0").unwrap()]));
    assert_eq!(statuses(&app, "1", "/", 6).await, [200, 200, 429, 429, 429, 429]);
    assert_eq!((left(&server, "1", "api"), left(&server, "1", "narrow")), (Some(8), Some(0)));
}

#[tokio::test]
async fn a_denied_request_charges_no_lease_either() {
    let server = Server::start();
    let options = LimiterOptions {
        leases: LeaseOptions { busy: 1, ..LeaseOptions::default() },
        denials: None,
        ..options(&server)
    };
    let limiter = Limiter::new(options).unwrap();
    let app =
        routes().layer(layer(&limiter, [api(10, "0").leasing(5).unwrap(), Policy::new("narrow", 2, "0").unwrap()]));
    assert_eq!(statuses(&app, "1", "/", 6).await, [200, 200, 429, 429, 429, 429]);
    limiter.close().await;
    assert_eq!((left(&server, "1", "api"), left(&server, "1", "narrow")), (Some(8), Some(0)));
}

#[test]
fn a_request_without_a_rule_is_let_through_and_counted() {
    let server = Server::start();
    let counts = counted(async {
        let rules = LiveRules::new(Rules::new([Rule::on(["/api/*"]).apply([api(1, "0")])]).unwrap());
        let app = routes().layer(RateLimitLayer::new(limiter(&server), rules));
        assert_eq!(statuses(&app, "1", "/other", 3).await, [200; 3]);
        assert_eq!(statuses(&app, "1", "/api/x", 2).await, [200, 429]);
    });
    assert_eq!(counts.of("rl_requests_total", &[("outcome", "unmatched")]), 3);
    assert_eq!(counts.of("rl_requests_total", &[("outcome", "allowed")]), 1);
    assert_eq!(counts.of("rl_requests_total", &[("outcome", "denied")]), 1);
    assert_eq!(calls(&server, "RL.TAKE"), 2);
}

#[test]
fn what_is_skipped_is_not_charged() {
    let server = Server::start();
    let counts = counted(async {
        let skipping = Rules::new([Rule::on(["/healthz"]), Rule::any().apply([api(1, "0")])]).unwrap();
        let layer = RateLimitLayer::new(limiter(&server), LiveRules::new(skipping));
        let app = routes().layer(layer.skip(|parts| parts.uri.path().starts_with("/static/")));
        assert_eq!(statuses(&app, "1", "/healthz", 3).await, [200; 3]);
        assert_eq!(statuses(&app, "1", "/static/a.css", 3).await, [200; 3]);
        assert_eq!(statuses(&app, "1", "/", 2).await, [200, 429]);
    });
    assert_eq!(counts.of("rl_requests_total", &[("outcome", "skipped")]), 6);
}

#[tokio::test]
async fn a_request_costs_what_it_says() {
    let server = Server::start();
    let cost = |parts: &http::request::Parts| {
        let tokens = parts.uri.query()?.strip_prefix("cost=")?.parse().ok()?;
        Tokens::new(tokens)
    };
    let app = routes().layer(layer(&limiter(&server), [api(10, "0").costing(2).unwrap()]).cost(cost));
    let mut seen = Vec::new();
    for path in ["/?cost=5", "/", "/?cost=4", "/?cost=0", "/?cost=3", "/?cost=1"] {
        seen.push((send(&app, by("1", path)).await.status, left(&server, "1", "api").unwrap()));
    }
    assert_eq!(seen, [(200, 5), (200, 3), (429, 3), (200, 3), (200, 0), (429, 0)]);
}

#[tokio::test]
async fn a_request_of_no_cost_is_told_what_is_left_although_tokens_could_be_leased() {
    let server = Server::start();
    let leasing = api(10, "0").leasing(5).unwrap();
    let app = routes().layer(layer(&limiter(&server), [leasing]).cost(|_| Some(Tokens::ZERO)));
    assert_eq!(send(&app, by("1", "/")).await.field("ratelimit"), Some(r#""api";r=10;t=0"#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_is_given_back() {
    let server = Server::start();
    let leased = LimiterOptions { leases: LeaseOptions { busy: 1, ..LeaseOptions::default() }, ..options(&server) };
    let policies = [Policy::new("plain", 3, "0").unwrap(), Policy::new("leased", 30, "0").unwrap().leasing(3).unwrap()];
    for (options, policy) in [
        (options(&server), policies[0].clone()),
        (leased, policies[1].clone()),
        (LimiterOptions::default(), policies[0].clone()),
    ] {
        let on_redis = options.redis.is_some();
        let limiter = Limiter::new(options).unwrap();
        let layer = layer(&limiter, [policy.clone()]).refund_if(|status| status.is_server_error());
        let app = routes().layer(layer);
        let (client, capacity) = (Client::user("1"), policy.limit.capacity().get());
        let held = async || {
            limiter.close().await;
            limiter.standings(&client, &[policy.clone().into()]).await.unwrap()[0].remaining
        };
        for _ in 0..2 {
            assert_eq!(statuses(&app, "1", "/fails", 3).await, [500; 3], "{}", policy.name);
            until("what failed is given back", async || held().await == capacity).await;
        }
        assert_eq!(statuses(&app, "1", "/", 2).await, [200; 2]);
        assert_eq!(held().await, capacity - 2, "{} on Redis: {on_redis}", policy.name);
    }
}

#[test]
fn a_dry_run_never_denies_and_is_counted() {
    let server = Server::start();
    let counts = counted(async {
        let dry = Policy::new("dry", 2, "0").unwrap().shadow();
        let app = routes().layer(layer(&limiter(&server), [api(5, "0"), dry]));
        let first = send(&app, by("1", "/")).await;
        assert_eq!(
            (first.status, first.field("ratelimit")),
            (200, Some(r#""api";r=4"#)),
            "the client is not told of it"
        );
        assert_eq!(statuses(&app, "1", "/", 4).await, [200; 4]);
    });
    let decisions = |outcome| counts.of("rl_decisions_total", &[("policy", "dry"), ("outcome", outcome)]);
    assert_eq!((decisions("dry-run-allowed"), decisions("dry-run-denied"), decisions("denied")), (2, 3, 0));
    assert_eq!(left(&server, "1", "dry"), Some(0));
}

#[tokio::test]
async fn the_answer_can_be_another() {
    let server = Server::start();
    let app = routes().layer(layer(&limiter(&server), [api(1, "0")]).respond_with(|refusal: &Refusal| {
        let Refusal::Denied(denied) = refusal else { panic!("{refusal:?}") };
        let names: Vec<_> = denied.violated().map(|standing| standing.policy.to_string()).collect();
        Response::builder().status(420).body(Body::from(names.join(" "))).unwrap()
    }));
    assert_eq!(statuses(&app, "1", "/", 1).await, [200]);
    let denied = send(&app, by("1", "/")).await;
    assert_eq!((denied.status, denied.body.as_str()), (420, "api"));
    assert_eq!(denied.field("ratelimit"), Some(r#""api";r=0"#), "it is told where it stands all the same");
}

#[tokio::test]
async fn grpc_is_denied_in_its_own_way() {
    let server = Server::start();
    for (policy, pushback) in
        [(api(1, "0"), -1..=-1), (Policy::new("hourly", 1, "1/h").unwrap(), 3_500_000..=3_600_000)]
    {
        let app = routes().layer(layer(&limiter(&server), [policy]).respond_with(Grpc));
        assert_eq!(statuses(&app, "1", "/", 1).await, [200]);
        let denied = send(&app, by("1", "/")).await;
        assert_eq!((denied.status, denied.body.as_str()), (200, ""));
        assert_eq!(denied.field("content-type"), Some("application/grpc"));
        assert_eq!(denied.field("grpc-status"), Some("8"));
        let told: i64 = denied.field("grpc-retry-pushback-ms").unwrap().parse().unwrap();
        assert!(pushback.contains(&told), "{told}");
    }
}

#[tokio::test]
async fn the_class_of_route_is_what_the_router_has_matched() {
    let server = Server::start();
    let limiter = limiter(&server);
    let rules = Rules::new([Rule::on(["/users/{id}"]).apply([api(2, "0")])]).unwrap();
    let app = Router::new()
        .route("/users/{id}", get(|| async {}))
        .route("/teams/{id}", get(|| async {}))
        .layer(RateLimitLayer::new(limiter.clone(), LiveRules::new(rules)));
    let mut seen = Vec::new();
    for path in ["/users/1", "/users/2", "/users/3", "/teams/1"] {
        seen.push(send(&app, by("1", path)).await.status);
    }
    assert_eq!(seen, [200, 200, 429, 200]);
    assert_eq!(&*limiter.incidents(None, 1)[0].route, "/users/{id}");
}

#[tokio::test]
async fn of_a_long_route_a_denial_keeps_the_beginning() {
    let server = Server::start();
    let limiter = limiter(&server);
    let app = Router::new().fallback(|| async {}).layer(layer(&limiter, [api(0, "0")]));
    let path = format!("/{}", "a".repeat(10_000));
    assert_eq!(statuses(&app, "1", &path, 1).await, [429]);
    // 256 bytes end in the middle of a letter.
    let told = limiter.check(&Client::user("2"), &[Charge::of(Arc::new(api(0, "0")))], &"語".repeat(10_000)).await;
    assert!(matches!(told, Verdict::Denied(_)), "{told:?}");
    let routes: Vec<_> = limiter.incidents(None, 2).into_iter().map(|incident| incident.route.to_string()).collect();
    assert_eq!(routes, ["語".repeat(85), path[..256].to_owned()]);
}

#[tokio::test]
async fn the_application_can_say_what_the_class_of_route_is() {
    let server = Server::start();
    let rules = Rules::new([Rule::on(["search"]).apply([api(1, "0")])]).unwrap();
    let layer = RateLimitLayer::new(limiter(&server), LiveRules::new(rules))
        .route(|parts| parts.uri.path().starts_with("/find").then(|| "search".to_owned()));
    let app = routes().layer(layer);
    assert_eq!(statuses(&app, "1", "/find/a", 1).await, [200]);
    assert_eq!(statuses(&app, "1", "/find/b", 1).await, [429]);
    assert_eq!(statuses(&app, "1", "/search", 1).await, [200]);
}

#[tokio::test]
async fn rules_are_exchanged_while_it_runs() {
    let server = Server::start();
    let live = rules([api(1, "0")]);
    let app = routes().layer(RateLimitLayer::new(limiter(&server), live.clone()));
    assert_eq!(statuses(&app, "1", "/", 2).await, [200, 429]);
    assert_eq!(live.reload("[policies.api]\ncapacity = none").unwrap_err().line, Some(2));
    assert_eq!(statuses(&app, "1", "/", 1).await, [429], "a bad file changes nothing");
    live.reload("[policies.other]\ncapacity = 2\nrate = 0\n[[rules]]\npolicies = [\"other\"]").unwrap();
    assert_eq!(statuses(&app, "1", "/", 3).await, [200, 200, 429]);
    live.reload("").unwrap();
    assert_eq!(statuses(&app, "1", "/", 3).await, [200; 3]);
}
