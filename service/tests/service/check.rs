//! `POST /check`.

use crate::service::{RULES, Service, redis};

/// Status, what is left of each policy, and `Retry-After`.
fn told(service: &Service, question: &str) -> (u16, Vec<(String, u64)>, Option<u64>) {
    let answer = service.check(question);
    let verdict = answer.json();
    let standings = verdict["policies"].as_array().cloned().unwrap_or_default();
    let left =
        standings.iter().map(|row| (row["policy"].as_str().unwrap().to_owned(), row["remaining"].as_u64().unwrap()));
    (answer.status, left.collect(), answer.header("retry-after").map(|seconds| seconds.parse().unwrap()))
}

fn left<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
    rows.into_iter().map(|(policy, left)| (policy.to_owned(), left)).collect()
}

#[test]
fn charges_all_policies_or_none() {
    let redis = redis();
    let service = Service::on(&redis);
    let both = r#"{"client":"user:1","policies":["login","once"]}"#;
    for n in 1..=3 {
        assert_eq!(told(&service, both), (200, left([("login", 3 - n), ("once", 5 - n)]), None));
    }
    let (status, standings, retry_after) = told(&service, both);
    assert_eq!((status, standings), (429, left([("login", 0), ("once", 2)])));
    assert!((1190..=1200).contains(&retry_after.unwrap()), "{retry_after:?}");
    assert_eq!(told(&service, r#"{"client":"user:1","policy":"once"}"#), (200, left([("once", 1)]), None));
}

#[test]
fn waiting_that_does_not_help_is_not_asked_for() {
    let redis = redis();
    let service = Service::on(&redis);
    let (status, _, retry_after) = told(&service, r#"{"client":"user:1","policy":"once","cost":6}"#);
    assert_eq!((status, retry_after), (429, None));
}

#[test]
fn goes_by_the_rules_where_no_policy_is_named() {
    let redis = redis();
    let service = Service::on(&redis);
    for (question, policies) in [
        (r#"{"client":"user:1","route":"/login","method":"POST"}"#, left([("global", 999), ("login", 2)])),
        (r#"{"client":"user:1","route":"/login"}"#, left([])),
        (r#"{"client":"user:1","route":"/healthz"}"#, left([])),
        (r#"{"client":"user:1","route":"/nowhere"}"#, left([])),
        // The dry run is taken, and not told.
        (r#"{"client":"user:2","route":"/search"}"#, left([("global", 999)])),
        (r#"{"client":"user:3","route":"/search"}"#, left([("global", 999)])),
    ] {
        assert_eq!(told(&service, question), (200, policies, None), "{question}");
    }
    let again = told(&service, r#"{"client":"user:2","route":"/search"}"#);
    assert_eq!(again.0, 200);
    let metrics = service.get("/metrics").text;
    let denied = r#"rl_decisions_total{policy="trial",kind="user",outcome="dry-run-denied",source="redis"} 1"#;
    assert!(metrics.contains(denied), "{metrics}");
    assert!(!metrics.contains("user:"), "a client is named in the metrics");
    assert!(metrics.contains("rl_breaker_open 0"), "{metrics}");
    for kind in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = kind.split(' ').next().expect("a name");
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name} does not say what it is");
    }
}

#[test]
fn a_limit_can_come_with_the_question() {
    for url in [Some(redis()), None] {
        let at = url.as_ref().map(|redis| format!("redis://127.0.0.1:{}", redis.port()));
        let service = Service::with(at.as_deref(), "", &[]);
        let ask = |capacity: u64| {
            let question =
                format!(r#"{{"key":"mail {{}} {capacity}","limit":{{"capacity":{capacity},"rate":"1/h"}}}}"#);
            told(&service, &question).0
        };
        assert_eq!([ask(2), ask(2), ask(2)], [200, 200, 429]);
        assert_eq!(ask(1), 200, "another key is another bucket");
    }
}

#[test]
fn a_rate_can_be_a_number_as_in_the_file_of_rules() {
    let service = Service::with(None, RULES, &[]);
    for (rate, window_s) in [("5", 2), ("0.5", 20), ("\"10/m\"", 60), ("5e-1", 20)] {
        let answer = service.check(&format!(r#"{{"client":"user:1","limit":{{"capacity":10,"rate":{rate}}}}}"#));
        assert_eq!(answer.status, 200, "{rate}: {}", answer.text);
        assert_eq!(answer.json()["policies"][0]["window_s"], window_s, "{rate}");
    }
    let own = service.check(r#"{"client":"user:1","limit":{"capacity":10,"rate":true}}"#);
    assert_eq!((own.status, own.text.contains("a rate, like 5, 0.5")), (422, true), "{}", own.text);
}

#[test]
fn what_makes_no_sense_is_said() {
    let service = Service::with(None, RULES, &[]);
    for (question, status, detail) in [
        ("{}", 400, "say either client or key"),
        (r#"{"client":"user:1","key":"x","policy":"login"}"#, 400, "say either client or key"),
        (r#"{"key":"","policy":"login"}"#, 400, "key must have 1 to 1024 bytes"),
        (r#"{"client":"user:1"}"#, 400, "say policy, policies, limit or route"),
        (r#"{"client":"user:1","policy":"login","limit":{"capacity":1,"rate":"1"}}"#, 400, "say one of"),
        (r#"{"client":"user:1","policies":[]}"#, 400, "policies must be 1 to 16 names"),
        (r#"{"client":"user:1","policies":["login","login"]}"#, 400, "different buckets"),
        (r#"{"client":"user:1","policy":"x"}"#, 404, "there is no policy \"x\""),
        (r#"{"client":"user:1","policy":"login","cost":9007199254740992}"#, 400, "cost must be"),
        (r#"{"client":"user:1","limit":{"capacity":1,"rate":"often"}}"#, 400, "rate must be"),
        (r#"{"client":"user:1","limit":{"capacity":9007199254740992,"rate":"1"}}"#, 400, "capacity must be"),
        (r#"{"client":"user:1","route":"/","method":"G T"}"#, 400, "method must be"),
        (r#"{"client":"user:1","polcy":"login"}"#, 422, "unknown field `polcy`"),
        ("{", 400, "EOF"),
    ] {
        let answer = service.check(question);
        assert_eq!(answer.status, status, "{question}: {}", answer.text);
        assert!(answer.json()["detail"].as_str().unwrap().contains(detail), "{question}: {}", answer.text);
    }
    assert_eq!(service.get("/nowhere").status, 404);
    assert_eq!(service.get("/check").status, 405);
}

#[test]
fn no_id_is_taken_for_another() {
    for redis in [Some(redis()), None] {
        let url = redis.as_ref().map(|redis| format!("redis://127.0.0.1:{}", redis.port()));
        let service = Service::with(url.as_deref(), RULES, &[]);
        let once = |client: &str| {
            let question = serde_json::json!({"client": client, "policy": "once", "cost": 5}).to_string();
            let answer = service.check(&question);
            assert!(answer.json()["client"].is_string(), "{client}: {}", answer.text);
            answer.status
        };
        let alike =
            ["user:alice", "user:alic%65", "user:alic%2565", "user:Alice", "user: alice", "user:alice}", "key:alice"];
        for client in alike {
            assert_eq!(once(client), 200, "{client:?} has a bucket of its own");
            assert_eq!(once(client), 429, "{client:?} has one bucket");
        }
        // One customer has a /64, and may write its addresses as it likes.
        for (client, status) in [
            ("ip:2001:db8::1", 200),
            ("ip:2001:DB8:0:0::2", 429),
            ("ip:2001:db8::/64", 429),
            ("ip:2001:db8:0:1::1", 200),
            ("ip:2001:db8:0:2::1/128", 200),
            ("ip:2001:db8:0:2::1", 200),
            ("ip:203.0.113.7", 200),
            ("ip:::ffff:203.0.113.7", 429),
            ("ip:203.0.113.7/32", 429),
        ] {
            assert_eq!(once(client), status, "{client}");
        }
    }
}

#[test]
fn what_is_no_client_is_refused() {
    let service = Service::with(None, RULES, &[]);
    let long = "x".repeat(1025);
    for (who, id) in [
        ("client", "alice"),
        ("client", "robot:1"),
        ("client", "user:"),
        ("client", "ip:home"),
        ("client", "ip:203.0.113.7:80"),
        ("client", &format!("user:{long}")),
        ("key", ""),
        ("key", &long),
    ] {
        let question = serde_json::json!({who: id, "policy": "once"}).to_string();
        assert_eq!(service.check(&question).status, 400, "{who} {id}");
    }
    let question = serde_json::json!({"key": "x".repeat(1024), "policy": "once"}).to_string();
    assert_eq!(service.check(&question).status, 200);
}
