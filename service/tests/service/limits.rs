//! Limits of single clients.

use std::time::{Duration, Instant};

use crate::service::{Service, redis};

const LOGIN: &str = r#"{"client":"user:1","policy":"login"}"#;

fn capacity(service: &Service) -> u64 {
    service.check(LOGIN).json()["policies"][0]["capacity"].as_u64().unwrap()
}

#[test]
fn apply_at_once_here_and_soon_elsewhere() {
    let redis = redis();
    let (here, elsewhere) = (Service::on(&redis), Service::on(&redis));
    assert_eq!((capacity(&here), capacity(&elsewhere)), (3, 3));
    here.put_limits("user:1", r#"{"login":{"capacity":30,"rate":"30/h"}}"#);
    assert_eq!(capacity(&here), 30);
    let set = Instant::now();
    while capacity(&elsewhere) != 30 {
        assert!(set.elapsed() < Duration::from_secs(7), "not within the five seconds");
        std::thread::sleep(Duration::from_millis(50));
    }
    let other = here.check(r#"{"client":"user:2","policy":"login"}"#).json();
    assert_eq!(other["policies"][0]["capacity"], 3, "it is the limit of one client");
}

#[test]
fn are_those_of_the_id_in_the_path() {
    let service = Service::with(None, crate::service::RULES, &[]);
    service.put_limits("user:alic%2565", r#"{"once":{"capacity":7,"rate":"0"}}"#);
    for (client, capacity) in [("user:alic%65", 7), ("user:alice", 5)] {
        let question = serde_json::json!({"client": client, "policy": "once"}).to_string();
        assert_eq!(service.check(&question).json()["policies"][0]["capacity"], capacity, "{client}");
    }
    assert_eq!(service.get("/status/user:alic%2565").json()["client"], "user:alic%65");
    assert_eq!(service.get("/status/key:a%2Fb%3F%25").json()["client"], "key:a/b?%");
}

#[test]
fn are_kept_while_the_client_is_idle_and_over_a_restart() {
    let redis = redis();
    let service = Service::on(&redis);
    service.put_limits("user:1", r#"{"once":{"capacity":7,"rate":"1000000"}}"#);
    // Its bucket fills at once, so that its key goes; the limit stays, and never expires.
    assert_eq!(service.check(r#"{"client":"user:1","policy":"once"}"#).status, 200);
    assert_eq!(redis.connect().ask::<i64>(&["PTTL", "rl:{user:1}:#limits"]), -1);
    drop(service);
    let again = Service::on(&redis);
    assert_eq!(again.get("/limits/user:1").json(), serde_json::json!({"once": {"capacity": 7, "rate": "1000000"}}));
    let status = again.get("/status/user:1").json();
    assert_eq!(status["own_limits"], serde_json::json!(["once"]));
}

#[test]
fn can_be_taken_away() {
    for redis in [Some(redis()), None] {
        let url = redis.as_ref().map(|redis| format!("redis://127.0.0.1:{}", redis.port()));
        let service = Service::with(url.as_deref(), crate::service::RULES, &[]);
        service.put_limits("user:1", r#"{"login":{"capacity":30,"rate":"30/h"},"once":{"capacity":7,"rate":"0"}}"#);
        assert_eq!(capacity(&service), 30);
        let left = service.put_limits("user:1", r#"{"login":null}"#).json();
        assert_eq!(left, serde_json::json!({"once": {"capacity": 7, "rate": "0"}}));
        assert_eq!(capacity(&service), 3);
    }
}

#[test]
fn one_that_is_wrong_leaves_all_as_they_are() {
    let redis = redis();
    let service = Service::on(&redis);
    let answer =
        service.put_limits("user:1", r#"{"login":{"capacity":30,"rate":"30/h"},"once":{"capacity":7,"rate":"x"}}"#);
    assert_eq!(answer.status, 400);
    assert_eq!(service.get("/limits/user:1").json(), serde_json::json!({}));
}
