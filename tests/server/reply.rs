//! The five integers: what stands in each, and how it is rounded.

use redis::Value;

use crate::support::{Client, Server, held, integers};

/// A last change in the year 2200 is a clock that was set back by so much: until it is rewritten, time stands still.
const FAR_AHEAD_US: u64 = 7_258_118_400_000_000;

#[test]
fn an_answer_of_a_fresh_key_is_exact() {
    const ANSWERS: [(&str, [i64; 5]); 23] = [
        ("10 5", [1, 9, 0, 200, 10]),
        ("10 5 10", [1, 0, 0, 2_000, 10]),
        ("10 3", [1, 9, 0, 334, 10]),
        ("10 1000", [1, 9, 0, 1, 10]),
        ("10 1001", [1, 9, 0, 1, 10]),
        ("10 999", [1, 9, 0, 2, 10]),
        ("10 300000 7", [1, 3, 0, 1, 10]),
        ("1 1000000", [1, 0, 0, 1, 1]),
        ("1 1/d", [1, 0, 0, 86_400_000, 1]),
        ("5 5/15m", [1, 4, 0, 180_000, 5]),
        ("1000000 1000000/d 1000", [1, 999_000, 0, 86_400, 1_000_000]),
        ("100 1.6666666666666667 3", [1, 97, 0, 1_800, 100]),
        ("100 0.3333333333333333 1", [1, 99, 0, 3_000, 100]),
        ("5 5.787037037037037e-05", [1, 4, 0, 17_280_000, 5]),
        ("10 0", [1, 9, 0, -1, 10]),
        ("9007199254740991 1", [1, 9_007_199_254_740_990, 0, 1_000, 9_007_199_254_740_991]),
        ("9007199254740991 1 9007199254740991", [1, 0, 0, 9_007_199_254_740_991, 9_007_199_254_740_991]),
        ("9007199254740991 9007199254740991 1", [1, 9_007_199_254_740_990, 0, 1, 9_007_199_254_740_991]),
        // To the millisecond up to 2^53-1, and no further.
        ("9007199254740991 1000 9007199254740990", [1, 1, 0, 9_007_199_254_740_990, 9_007_199_254_740_991]),
        ("9007199254740991 1000 9007199254740991", [1, 0, 0, 9_007_199_254_740_991, 9_007_199_254_740_991]),
        ("9007199254740991 1/d 9007199254740991", [1, 0, 0, 9_007_199_254_740_991, 9_007_199_254_740_991]),
        ("1 1/9007199254.740991s", [1, 0, 0, 9_007_199_254_741, 1]),
        ("9007199254740991 0 9007199254740991", [1, 0, 0, -1, 9_007_199_254_740_991]),
    ];
    let server = Server::start();
    let mut client = server.connect();
    for (row, (arguments, answer)) in ANSWERS.iter().enumerate() {
        assert_eq!(client.five(&format!("RL.TAKE key:{row} {arguments}")), *answer, "{arguments}");
    }
}

#[test]
fn what_remains_rounds_down_and_waits_round_up() {
    // Capacity, rate; tokens and microseconds short of them; cost; the answer.
    type Row = (u64, &'static str, (u64, u64), u64, [i64; 5]);
    const ANSWERS: [Row; 17] = [
        (10, "1", (3, 0), 3, [1, 3, 0, 7_000, 10]),
        (10, "1", (3, 1), 3, [0, 2, 1, 7_001, 10]),
        (10, "1", (3, 1), 2, [1, 2, 0, 7_001, 10]),
        (10, "1", (3, 999), 3, [0, 2, 1, 7_001, 10]),
        (10, "1", (3, 1_000), 3, [0, 2, 1, 7_001, 10]),
        (10, "1", (3, 1_001), 3, [0, 2, 2, 7_002, 10]),
        (10, "1", (3, 999_999), 3, [0, 2, 1_000, 8_000, 10]),
        (10, "1", (3, 1_000_000), 3, [0, 2, 1_000, 8_000, 10]),
        (10, "1", (3, 1_000_000), 10, [0, 2, 8_000, 8_000, 10]),
        (10, "1", (3, 0), 11, [0, 3, -1, 7_000, 10]),
        (10, "1", (3, 1), 0, [1, 2, 0, 7_001, 10]),
        (10, "1/d", (1, 1), 1, [0, 0, 1, 777_600_001, 10]),
        (10, "1/d", (10, 1), 10, [0, 9, 1, 1, 10]),
        (10, "1/d", (10, 0), 10, [1, 10, 0, 0, 10]),
        (10, "3", (1, 1), 1, [0, 0, 1, 3_001, 10]),
        (100_000, "1000000", (2_000, 1_999), 2_000, [0, 1, 2, 100, 100_000]),
        (10, "0", (4, 0), 5, [0, 4, -1, -1, 10]),
    ];
    let server = Server::start();
    let mut client = server.connect();
    for row @ (capacity, rate, level, cost, answer) in ANSWERS {
        client.put("key", held(capacity, rate, level, FAR_AHEAD_US));
        assert_eq!(client.five(&format!("RL.PEEK key {capacity} {rate} {cost}")), answer, "{row:?}");
    }
}

#[test]
fn a_bucket_that_is_owed_has_nothing_left() {
    let server = Server::start();
    let mut client = server.connect();
    client.put("key", held(10, "1", (0, 5_000_000), FAR_AHEAD_US));
    assert_eq!(client.five("RL.PEEK key 10 1 1"), [0, 0, 6_000, 15_000, 10]);
    assert_eq!(client.five("RL.PEEK key 10 1 0"), [1, 0, 0, 15_000, 10]);
    assert_eq!(client.five("RL.TAKE key 10 1 1"), [0, 0, 6_000, 15_000, 10]);
}

#[test]
fn both_protocols_get_the_same_integers() {
    let server = Server::start();
    for (mut client, key) in [(server.connect(), "resp2"), (server.connect_resp3(), "resp3")] {
        let ask = |client: &mut Client, line: &str| client.line::<Value>(line);
        assert_eq!(ask(&mut client, &format!("RL.TAKE {key} 2 0")), integers([1, 1, 0, -1, 2]), "{key}");
        assert_eq!(ask(&mut client, &format!("RL.PEEK {key}")), integers([1, 1, 0, -1, 2]), "{key}");
        assert_eq!(ask(&mut client, &format!("RL.TAKE {key} 2 0 2")), integers([0, 1, -1, -1, 2]), "{key}");
        assert_eq!(ask(&mut client, &format!("RL.PEEK {key} 2 0 2")), integers([0, 1, -1, -1, 2]), "{key}");
        assert_eq!(ask(&mut client, "RL.PEEK nothing"), Value::Nil, "{key}");
        assert_eq!(ask(&mut client, "RL.INFO nothing"), Value::Nil, "{key}");
    }
}
