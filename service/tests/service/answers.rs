//! The description in `openapi.json`, held against the answers: each answer that is described is brought about, and is as it is
//! described, and no other comes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::server::Server;
use crate::service::{Answer, RULES, Service, redis};

struct Description {
    document: Value,
    seen: BTreeSet<String>,
}

impl Description {
    /// Checks an answer to `method` on the path that is described as `path`.
    fn holds(&mut self, method: &str, path: &str, answer: &Answer) {
        let told = format!("{method} {path} {}", answer.status);
        let response = &self.document["paths"][path][method]["responses"][answer.status.to_string()];
        assert!(response.is_object(), "{told} is not described: {}", answer.text);
        let described = response["headers"].as_object();
        for header in ["RateLimit", "RateLimit-Policy", "RateLimit-Degraded", "Retry-After"] {
            let told_of = described.is_some_and(|described| described.contains_key(header));
            assert!(told_of || answer.header(header).is_none(), "{told} has {header}, which is not described");
        }
        self.told_where_it_stands(answer, &told);
        let kind = answer.header("content-type").unwrap().split(';').next().unwrap();
        let schema = &response["content"][kind]["schema"];
        assert!(schema.is_object(), "{told} is not described as {kind}");
        let body = if kind == "text/plain" { Value::String(answer.text.clone()) } else { answer.json() };
        self.valid(schema, &body, &told);
        self.seen.insert(told);
    }

    /// An answer that tells of policies tells of them in its header, too.
    fn told_where_it_stands(&self, answer: &Answer, told: &str) {
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let rows = body["policies"].as_array().map_or(0, Vec::len);
        if told.starts_with("post") {
            for header in ["RateLimit", "RateLimit-Policy"] {
                let items = answer.header(header).map_or(0, |value| value.split(", ").count());
                assert_eq!(items, rows, "{told}: {header}");
            }
        }
    }

    /// Checks a value by a schema, which may refer to others of the document.
    fn valid(&self, schema: &Value, value: &Value, told: &str) {
        let mut schema = schema.clone();
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let faults: Vec<_> =
            validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect();
        assert!(faults.is_empty(), "{told}: {faults:?} in {value}");
    }

    fn described(&self) -> BTreeSet<String> {
        let paths = self.document["paths"].as_object().unwrap();
        let methods = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().iter().map(move |(method, operation)| (path, method, operation))
        });
        methods
            .flat_map(|(path, method, operation)| {
                operation["responses"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(move |status| format!("{method} {path} {status}"))
            })
            .collect()
    }
}

#[test]
fn every_answer_is_as_it_is_described() {
    let redis = redis();
    let service = Service::on(&redis);
    let answer = service.get("/openapi.json");
    let mut api = Description { document: answer.json(), seen: BTreeSet::new() };
    assert_eq!(api.document["openapi"], "3.1.0");
    api.holds("get", "/openapi.json", &answer);

    let question = json!({"$ref": "#/components/schemas/Question"});
    for asked in [
        r#"{"client":"user:1","policies":["global","login"]}"#,
        r#"{"client":"user:1","policy":"login","cost":2}"#,
        r#"{"client":"user:1","policy":"login"}"#,
        r#"{"client":"user:1","policy":"login"}"#,
        r#"{"client":"user:1","policy":"once","cost":6}"#,
        r#"{"key":"job 7","limit":{"capacity":1,"rate":"1/h"}}"#,
        r#"{"key":"job 7","limit":{"capacity":1,"rate":"1/h"}}"#,
        r#"{"client":"ip:203.0.113.7","route":"/login","method":"POST","plan":"free"}"#,
        r#"{"client":"unknown","route":"/nowhere"}"#,
        r#"{"client":"user:1","policy":"nothing"}"#,
    ] {
        api.valid(&question, &serde_json::from_str(asked).unwrap(), asked);
        api.holds("post", "/check", &service.check(asked));
    }
    api.holds("post", "/check", &service.check(r#"{"client":"nobody","policy":"login"}"#));
    api.holds("post", "/check", &service.check(r#"{"clients":"user:1"}"#));
    api.holds("post", "/check", &service.send("POST", "/check", "text/plain", "{}"));
    let long = " ".repeat((64 << 10) + 1);
    api.holds("post", "/check", &service.check(&long));
    api.holds("put", "/limits/{client}", &service.put_limits("user:1", &long));

    api.holds("get", "/status/{client}", &service.get("/status/user:1"));
    api.holds("get", "/status/{client}", &service.get("/status/nobody"));
    api.holds(
        "put",
        "/limits/{client}",
        &service.put_limits("user:1", r#"{"login":{"capacity":9,"rate":"9/h"},"once":null}"#),
    );
    api.holds("put", "/limits/{client}", &service.put_limits("user:1", r#"{"login":{"capacity":9,"rate":"often"}}"#));
    api.holds("put", "/limits/{client}", &service.put_limits("user:1", r#"{"nothing":{"capacity":9,"rate":"1"}}"#));
    api.holds("put", "/limits/{client}", &service.put_limits("user:1", r#"{"login":9}"#));
    api.holds("put", "/limits/{client}", &service.send("PUT", "/limits/user:1", "text/plain", "{}"));
    api.holds("get", "/limits/{client}", &service.get("/limits/user:1"));
    api.holds("get", "/limits/{client}", &service.get("/limits/nobody"));
    api.holds("get", "/metrics", &service.get("/metrics"));
    api.holds("get", "/healthz", &service.get("/healthz"));
    refusals(&mut api, &redis);

    assert_eq!(api.seen, api.described());
}

/// The answers of a service whose callers have no token, and of one whose Redis is gone.
fn refusals(api: &mut Description, redis: &Server) {
    let url = format!("redis://127.0.0.1:{}", redis.port());
    let guarded = Service::with(Some(&url), RULES, &["--token", "for callers only"]);
    api.holds("post", "/check", &guarded.check(r#"{"client":"user:1","policy":"login"}"#));
    api.holds(
        "get",
        "/status/{client}",
        &guarded.get_with("/status/user:1", &[("authorization", "Bearer for callers onl")]),
    );
    api.holds("get", "/limits/{client}", &guarded.get_with("/limits/user:1", &[("authorization", "for callers only")]));
    api.holds("put", "/limits/{client}", &guarded.put_limits("user:1", "{}"));
    let known = guarded.get_with("/status/user:1", &[("authorization", "Bearer for callers only")]);
    assert_eq!(known.status, 200);

    let alone = Service::with(Some("redis://127.0.0.1:1"), RULES, &[]);
    api.holds("post", "/check", &alone.check(r#"{"client":"user:1","policy":"login"}"#));
    api.holds("post", "/check", &alone.check(r#"{"client":"user:1","policy":"global"}"#));
    api.holds("get", "/status/{client}", &alone.get("/status/user:1"));
    api.holds("get", "/limits/{client}", &alone.get("/limits/user:1"));
    api.holds("put", "/limits/{client}", &alone.put_limits("user:1", r#"{"login":null}"#));
    api.holds("get", "/healthz", &alone.get("/healthz"));
}
