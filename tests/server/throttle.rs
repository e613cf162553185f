//! `CL.THROTTLE`: what those who come from redis-cell find, beside what redis-cell 0.5.0 answered on Redis 7.0.15.

use redis::Value;

use crate::support::foreign::compile;
use crate::support::hostile::answers;
use crate::support::{Client, Server, module};

/// Why an answer differs.
const SAME: &str = "";
const HOLDS_TOKENS: &str =
    "redis-cell stores a time, which another limit turns into other tokens; here the tokens stay";
const RATE: &str =
    "redis-cell's interval is whole microseconds there: more is left than the limit, all is there at once";

/// Arguments, redis-cell's answer, ours, and why they differ. All are sent at once, in this order.
const CALLS: [(&str, [i64; 5], [i64; 5], &str); COUNT] = [
    ("user123 15 30 60", [0, 16, 15, -1, 2], [0, 16, 15, -1, 2], SAME),
    ("a 2 1 3600", [0, 3, 2, -1, 3600], [0, 3, 2, -1, 3600], SAME),
    ("a 2 1 3600", [0, 3, 1, -1, 7200], [0, 3, 1, -1, 7200], SAME),
    ("a 2 1 3600", [0, 3, 0, -1, 10800], [0, 3, 0, -1, 10800], SAME),
    ("a 2 1 3600", [1, 3, 0, 3600, 10800], [1, 3, 0, 3600, 10800], SAME),
    ("a 2 1 3600 2", [1, 3, 0, 7200, 10800], [1, 3, 0, 7200, 10800], SAME),
    ("a 2 1 3600 3", [1, 3, 0, 10800, 10800], [1, 3, 0, 10800, 10800], SAME),
    ("a 2 1 3600 4", [1, 3, 0, -1, 10800], [1, 3, 0, -1, 10800], SAME),
    ("a 2 1 3600 0", [0, 3, 0, -1, 10800], [0, 3, 0, -1, 10800], SAME),
    ("b 0 1 3600", [0, 1, 0, -1, 3600], [0, 1, 0, -1, 3600], SAME),
    ("b 0 1 3600", [1, 1, 0, 3600, 3600], [1, 1, 0, 3600, 3600], SAME),
    ("b 0 1 3600 0", [0, 1, 0, -1, 3600], [0, 1, 0, -1, 3600], SAME),
    ("b 0 1 3600 2", [1, 1, 0, -1, 3600], [1, 1, 0, -1, 3600], SAME),
    ("c 9 10 3600 10", [0, 10, 0, -1, 3600], [0, 10, 0, -1, 3600], SAME),
    ("c 9 10 3600 1", [1, 10, 0, 360, 3600], [1, 10, 0, 360, 3600], SAME),
    ("c 9 10 3600 10", [1, 10, 0, 3600, 3600], [1, 10, 0, 3600, 3600], SAME),
    ("c 9 10 3600 11", [1, 10, 0, -1, 3600], [1, 10, 0, -1, 3600], SAME),
    ("d 4 1 60 6", [1, 5, 5, -1, 0], [1, 5, 5, -1, 0], SAME),
    ("d 4 1 60 5", [0, 5, 0, -1, 300], [0, 5, 0, -1, 300], SAME),
    ("e 4 1 60 0", [0, 5, 5, -1, 0], [0, 5, 5, -1, 0], SAME),
    ("e 4 1 60 1", [0, 5, 4, -1, 60], [0, 5, 4, -1, 60], SAME),
    ("e 4 1 60 0", [0, 5, 4, -1, 60], [0, 5, 4, -1, 60], SAME),
    ("e 4 1 60 0", [0, 5, 4, -1, 60], [0, 5, 4, -1, 60], SAME),
    ("f 99 100 86400 30", [0, 100, 70, -1, 25920], [0, 100, 70, -1, 25920], SAME),
    ("f 99 100 86400 30", [0, 100, 40, -1, 51840], [0, 100, 40, -1, 51840], SAME),
    ("f 99 100 86400 30", [0, 100, 10, -1, 77760], [0, 100, 10, -1, 77760], SAME),
    ("f 99 100 86400 30", [1, 100, 10, 17280, 77760], [1, 100, 10, 17280, 77760], SAME),
    ("f 99 100 86400 10", [0, 100, 0, -1, 86400], [0, 100, 0, -1, 86400], SAME),
    ("f 99 100 86400 1", [1, 100, 0, 864, 86400], [1, 100, 0, 864, 86400], SAME),
    ("g 15 30 60", [0, 16, 15, -1, 2], [0, 16, 15, -1, 2], SAME),
    ("g 15 30 60 1", [0, 16, 14, -1, 4], [0, 16, 14, -1, 4], SAME),
    ("g 15 30 60 14", [0, 16, 0, -1, 32], [0, 16, 0, -1, 32], SAME),
    ("g 15 30 60", [1, 16, 0, 2, 32], [1, 16, 0, 2, 32], SAME),
    ("h 10 7 3600 11", [0, 11, 0, -1, 5658], [0, 11, 0, -1, 5658], SAME),
    ("h 10 7 3600 1", [1, 11, 0, 515, 5658], [1, 11, 0, 515, 5658], SAME),
    ("h 10 7 3600 3", [1, 11, 0, 1543, 5658], [1, 11, 0, 1543, 5658], SAME),
    ("i 4 1 3600 5", [0, 5, 0, -1, 18000], [0, 5, 0, -1, 18000], SAME),
    ("i 9 1 3600 1", [0, 10, 4, -1, 21600], [1, 10, 0, 3600, 36000], HOLDS_TOKENS),
    ("i 9 1 3600 6", [1, 10, 4, 7200, 21600], [1, 10, 0, 21600, 36000], HOLDS_TOKENS),
    ("j 9 1 3600 2", [0, 10, 8, -1, 7200], [0, 10, 8, -1, 7200], SAME),
    ("j 4 1 3600 1", [0, 5, 2, -1, 10800], [0, 5, 4, -1, 3600], HOLDS_TOKENS),
    ("j 4 1 3600 5", [1, 5, 2, 10800, 10800], [1, 5, 4, 3600, 3600], HOLDS_TOKENS),
    ("k 4 1 60 3", [0, 5, 2, -1, 180], [0, 5, 2, -1, 180], SAME),
    ("k 4 1 3600 1", [0, 5, 3, -1, 3780], [0, 5, 1, -1, 14400], HOLDS_TOKENS),
    ("l 999999 1000000 86400 1", [0, 1000000, 999999, -1, 1], [0, 1000000, 999999, -1, 1], SAME),
    ("l 999999 1000000 86400 500000", [0, 1000000, 499999, -1, 43201], [0, 1000000, 499999, -1, 43201], SAME),
    ("l 999999 1000000 86400 499999", [0, 1000000, 0, -1, 86400], [0, 1000000, 0, -1, 86400], SAME),
    ("l 999999 1000000 86400 1", [1, 1000000, 0, 1, 86400], [1, 1000000, 0, 1, 86400], SAME),
    ("m 99 100 2592000 100", [0, 100, 0, -1, 2592000], [0, 100, 0, -1, 2592000], SAME),
    ("m 99 100 2592000 1", [1, 100, 0, 25920, 2592000], [1, 100, 0, 25920, 2592000], SAME),
    ("n 5999 6000 1 1", [0, 6000, 6023, -1, 0], [0, 6000, 5999, -1, 1], RATE),
    ("o 699999 700000 1 1", [0, 700000, 999598, -1, 0], [0, 700000, 699999, -1, 1], RATE),
    ("p 0 10 1", [0, 1, 0, -1, 1], [0, 1, 0, -1, 1], SAME),
    ("p 0 10 1", [1, 1, 0, 1, 1], [1, 1, 0, 1, 1], SAME),
];
const COUNT: usize = 54;

fn server() -> Server {
    Server::loaded_with(&["cl-throttle", "yes"], &[])
}

fn throttle(client: &mut Client, arguments: &str) -> [i64; 5] {
    client.five(&format!("CL.THROTTLE {arguments}"))
}

#[test]
fn answers_as_redis_cell_does_but_where_that_is_wrong() {
    let server = server();
    let mut pipeline = redis::pipe();
    for (arguments, ..) in CALLS {
        pipeline.cmd("CL.THROTTLE").arg(arguments.split(' ').collect::<Vec<_>>());
    }
    let told = answers(&mut server.connect(), &pipeline);
    for ((arguments, theirs, ours, why), told) in CALLS.into_iter().zip(told) {
        assert_eq!(told, Value::Array(ours.map(Value::Int).to_vec()), "{arguments}");
        assert_eq!(theirs == ours, why == SAME, "{arguments}");
    }
    assert!(CALLS.iter().filter(|(.., why)| *why == SAME).count() >= 40);
}

/// Where redis-cell answers, crashes or words an error of its own, and what is answered here.
#[test]
fn bad_arguments_are_told_what_is_wrong() {
    const BURST: &str = "ERR max_burst must be an integer from 0 to 9007199254740990 tokens";
    const COUNT: &str = "ERR count must be an integer from 1 to 9007199254740991 tokens";
    const PERIOD: &str = "ERR period must be an integer from 1 to 9007199254 seconds";
    const QUANTITY: &str = "ERR quantity must be an integer from 0 to 9007199254740991 tokens";
    const ARITY: &str = "ERR wrong number of arguments for 'CL.THROTTLE' command";
    let server = server();
    let mut client = server.connect();
    for (arguments, error) in [
        ("-1 1 60", BURST),
        ("x 1 60", BURST),
        ("4.5 1 60", BURST),
        (" 1 60", BURST),
        ("9007199254740991 1 60", BURST),
        ("9223372036854775807 1 60", BURST),
        ("4 -1 60", COUNT),
        ("4 0 60", COUNT),
        ("4 x 60", COUNT),
        ("4 9223372036854775807 60", COUNT),
        ("4 1 -60", PERIOD),
        ("4 1 0", PERIOD),
        ("4 1 1.5", PERIOD),
        ("4 1 60s", PERIOD),
        ("4 1 9007199255", PERIOD),
        ("4 1 60 -1", QUANTITY),
        ("4 1 60 x", QUANTITY),
        ("4 1 60 9223372036854775807", QUANTITY),
        ("4 1", ARITY),
        ("4 1 60 1 1", ARITY),
    ] {
        let words: Vec<&str> = ["CL.THROTTLE", "key"].into_iter().chain(arguments.split(' ')).collect();
        assert_eq!(client.error(&words), error, "{arguments}");
    }
    assert!(!client.exists("key"));
    assert_eq!(
        throttle(&mut client, "key 9007199254740990 9007199254740991 9007199254"),
        [0, 9_007_199_254_740_991, 9_007_199_254_740_990, -1, 1]
    );
}

#[test]
fn a_key_of_another_type_is_an_error_and_stays() {
    let server = server();
    let mut client = server.connect();
    for line in ["SET text text", "SET number 12", "RPUSH list a"] {
        let _: Value = client.line(line);
        let key = line.split(' ').nth(1).unwrap();
        let refused = client.error(&["CL.THROTTLE", key, "4", "1", "60"]);
        assert!(refused.starts_with("WRONGTYPE "), "{key}: {refused}");
    }
    assert_eq!(client.line::<String>("GET number"), "12");
}

#[test]
fn is_a_bucket_like_any_other() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(throttle(&mut client, "key 9 1 3600 4")[..3], [0, 10, 6]);
    assert_eq!(client.line::<String>("TYPE key"), "rl-bucket");
    assert_eq!(client.five("RL.TAKE key 10 1/h 2")[..2], [1, 4]);
    assert_eq!(client.five("RL.GIVE key 1")[..2], [1, 5]);
    assert_eq!(throttle(&mut client, "key 9 1 3600 6"), [1, 10, 5, 3_600, 18_000]);
    assert_eq!(server.info("rl", "rl_throttle").unwrap(), "calls=2,allowed=1,denied=1,errors=0");
}

#[test]
fn is_not_there_unless_it_is_asked_for() {
    let server = Server::start();
    let refused = server.connect().error(&["CL.THROTTLE", "key", "4", "1", "60"]);
    assert!(refused.starts_with("ERR unknown command"), "{refused}");
    assert_eq!(server.info("rl", "rl_throttle"), None);
}

#[test]
fn a_module_that_has_the_name_already_keeps_it_and_ours_is_loaded_without() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = compile("foreign_command", folder.path());
    let ours = module();
    let server = Server::bare(&["--loadmodule", &theirs, "--loadmodule", ours.to_str().unwrap(), "cl-throttle", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.line::<i64>("CL.THROTTLE key 4 1 60"), 42);
    assert_eq!(client.five("RL.TAKE key 10 0")[..2], [1, 9]);
    let log = server.log();
    assert!(log.contains("librl could not register CL.THROTTLE: the name is taken; it is left out"), "{log}");
}
