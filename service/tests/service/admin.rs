//! The admin API, without its page.

use serde_json::{Value, json};

use crate::service::{RULES, Service, redis};

const JSON: &str = "application/json";

/// Capacity, what is left and where that is known from, of the client's bucket of a policy.
fn standing(service: &Service, client: &str, policy: &str) -> [Value; 3] {
    let view = service.admin(&format!("/api/clients/{client}")).json();
    let row = view["policies"].as_array().unwrap().iter().find(|row| row["policy"] == policy).unwrap().clone();
    [row["capacity"].clone(), row["remaining"].clone(), row["source"].clone()]
}

fn ask(service: &Service, times: usize) -> Vec<u16> {
    (0..times).map(|_| service.check(r#"{"client":"user:a/b","policy":"login"}"#).status).collect()
}

#[test]
fn tells_where_a_client_stands_and_does_something_about_it() {
    for (redis, source) in [(Some(redis()), "redis"), (None, "local")] {
        let url = redis.as_ref().map(|redis| format!("redis://127.0.0.1:{}", redis.port()));
        let service = Service::with(url.as_deref(), RULES, &[]);
        let client = "user:a%2Fb";
        assert_eq!(standing(&service, client, "login"), [json!(3), json!(3), json!(source)]);
        assert_eq!(ask(&service, 5), [200, 200, 200, 429, 429]);
        assert_eq!(standing(&service, client, "login"), [json!(3), json!(0), json!(source)]);

        let denials = service.admin("/api/denials?count=2").json();
        let seen = denials.as_array().unwrap().iter().map(|row| [&row["client"], &row["policy"], &row["cost"]]);
        assert_eq!(seen.collect::<Vec<_>>(), [[&json!("user:a/b"), &json!("login"), &json!(1)]; 2]);
        assert_eq!(service.admin("/api/denials?count=1").json().as_array().unwrap().len(), 1);
        let top = service.admin("/api/top").json();
        match &redis {
            // The second denial was remembered, and has not reached Redis.
            Some(_) => assert_eq!(
                json!([top[0]["client"], top[0]["bucket"], top[0]["denials"]]),
                json!(["user:a/b", "login", 1])
            ),
            None => assert_eq!(top, json!([])),
        }

        let grant = format!("/api/clients/{client}/policies/login/grant");
        assert_eq!(service.admin_does(&grant, JSON, r#"{"tokens":2}"#).status, 204);
        assert_eq!(ask(&service, 3), [200, 200, 429], "what was granted counts at once");
        let reset = format!("/api/clients/{client}/policies/login/reset");
        assert_eq!(service.admin_does(&reset, JSON, "").status, 204);
        assert_eq!(ask(&service, 4), [200, 200, 200, 429]);
    }
}

#[test]
fn what_cannot_be_done_is_a_problem() {
    let service = Service::with(None, RULES, &[]);
    let grant = "/api/clients/user:1/policies/login/grant";
    for (answer, status, detail) in [
        (service.admin("/api/clients/robot:1"), 400, "a client is user:ID"),
        (service.admin("/api/denials?count=many"), 400, "count"),
        (service.admin("/api/top?count=-1"), 400, "count"),
        (service.admin("/api/nothing"), 404, "no such route"),
        (service.admin(grant), 405, "POST"),
        (service.admin_does(grant, JSON, r#"{"tokens":9007199254740992}"#), 400, "tokens must be"),
        (service.admin_does(grant, JSON, r#"{"tokens":-1}"#), 422, "tokens"),
        (service.admin_does(grant, JSON, "{"), 400, "EOF"),
        (service.admin_does(grant, "text/plain", r#"{"tokens":1}"#), 415, "Content-Type"),
        (service.admin_does("/api/clients/user:1/policies/none/grant", JSON, r#"{"tokens":1}"#), 404, "no policy"),
        (service.admin_does("/api/clients/user:1/policies/none/reset", JSON, ""), 404, "no policy"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{}", answer.text);
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{}", answer.text);
    }
}
