//! Starting, stopping, and what happens in between.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::cluster::pair;
use crate::server::{Server, eventually, free_port};
use crate::service::{RULES, Service, redis};

const GLOBAL: &str = r#"{"client":"user:1","policy":"global"}"#;

#[test]
fn a_server_without_the_module_is_an_error_that_says_so() {
    let port = free_port().to_string();
    let _bare = Server::bare(&["--port", &port]);
    let said = Service::refused(Some(&format!("redis://127.0.0.1:{port}")), RULES, &[]);
    assert!(said.contains("does not know RL.TAKE: load librl.so into it"), "{said}");
}

#[test]
fn what_is_wrong_at_the_start_is_said() {
    for (url, rules, options, message) in [
        (None, "[policies.a]\ncapacity = ", &[][..], "rules.toml: line 2"),
        (Some("redis:/nonsense"), RULES, &[], "the URL of Redis"),
        (None, RULES, &["--prefix", "{x}"], "the prefix of keys must not hold"),
        (None, RULES, &["--token", ""], "the token must not be empty"),
        (None, RULES, &["--rules", "/no/such/file"], "/no/such/file: No such file"),
        (None, RULES, &["--listen", "192.0.2.1:80"], "cannot listen on 192.0.2.1:80"),
        (None, RULES, &["--admin", "192.0.2.1:80"], "cannot listen on 192.0.2.1:80"),
        (None, RULES, &["--timeout-ms", "0"], "--timeout-ms"),
    ] {
        let said = Service::refused(url, rules, options);
        assert!(said.contains(message), "{options:?}: {said}");
    }
}

#[test]
fn starts_without_redis_and_goes_on_when_it_comes() {
    let port = free_port().to_string();
    let service = Service::with(Some(&format!("redis://127.0.0.1:{port}")), RULES, &[]);
    let answer = service.check(GLOBAL);
    assert_eq!((answer.status, answer.header("ratelimit-degraded")), (200, Some("unreachable")));
    assert_eq!(answer.json()["policies"][0]["source"], "local");
    assert_eq!(service.get("/healthz").json()["status"], "degraded");
    let _redis = Server::with(&["--port", &port]);
    eventually("Redis decides", || service.check(GLOBAL).json()["policies"][0]["source"] == "redis");
    assert_eq!(service.get("/healthz").json()["status"], "ok");
}

#[test]
fn a_cluster_is_used_where_it_is_said_to_be_one() {
    let [node, _other] = pair();
    let url = format!("redis://127.0.0.1:{}", node.port);
    let service = Service::with(Some(&url), RULES, &["--cluster", "--timeout-ms", "20000"]);
    for user in 0..10 {
        let answer = service.check(&format!(r#"{{"client":"user:{user}","policies":["global","login"]}}"#));
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(!answer.text.contains("degraded"), "{}", answer.text);
    }
}

#[test]
fn without_redis_it_decides_alone() {
    let service = Service::with(None, RULES, &["--instances", "4"]);
    let answer = service.check(GLOBAL);
    assert_eq!(answer.header("ratelimit-degraded"), None);
    // The whole limit: nobody shares it.
    assert_eq!(answer.json()["policies"][0]["remaining"], 999);
    let status = service.get("/status/user:1").json();
    assert_eq!(status["policies"][0]["source"], "local");
    assert_eq!(service.get("/healthz").json()["breaker"], serde_json::Value::Null);
}

#[test]
fn rules_are_read_again_and_a_bad_file_is_refused_with_its_line() {
    let service = Service::with(None, RULES, &[]);
    std::fs::write(service.rules_file(), "[policies.global]\ncapacity = many\nrate = 1").unwrap();
    eventually("the fault is told", || service.log().contains("line 2"));
    assert_eq!(service.check(GLOBAL).status, 200, "the old rules stay");
    std::fs::write(service.rules_file(), "[policies.global]\ncapacity = 7\nrate = 1").unwrap();
    eventually("the new rules are in force", || service.check(GLOBAL).json()["policies"][0]["capacity"] == 7);
    assert_eq!(service.check(r#"{"client":"user:1","policy":"login"}"#).status, 404);
}

#[test]
fn asked_to_stop_it_finishes_what_is_under_way() {
    let redis = redis();
    let mut service = Service::on(&redis);
    // A request whose body is still to come.
    let address = service.url("").trim_start_matches("http://").to_owned();
    let mut under_way = TcpStream::connect(address).unwrap();
    let head = "POST /check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n";
    write!(under_way, "{head}content-length: {}\r\n\r\n", GLOBAL.len()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    service.signal("-TERM");
    eventually("it stops", || service.log().contains("stopping"));
    under_way.write_all(GLOBAL.as_bytes()).unwrap();
    let mut answer = String::new();
    under_way.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(service.ended_in_order());
    assert!(service.log().contains("stopped"), "{}", service.log());
}

#[test]
fn a_caller_who_never_finishes_does_not_hold_it_up_for_ever() {
    let mut service = Service::with(None, RULES, &[]);
    let mut slow = TcpStream::connect(service.url("").trim_start_matches("http://")).unwrap();
    write!(slow, "POST /check HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let asked = Instant::now();
    service.signal("-INT");
    assert!(service.ended_in_order());
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
}
