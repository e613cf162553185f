//! Takes from Lua scripts and Functions.

use crate::support::{Client, Server};

fn eval<T: redis::FromRedisValue>(client: &mut Client, script: &str) -> T {
    client.ask(&["EVAL", script, "1", "key"])
}

#[test]
fn a_script_gets_the_five_integers() {
    let server = Server::start();
    let mut client = server.connect();
    let take: [i64; 5] = eval(&mut client, "return redis.call('RL.TAKE', KEYS[1], 10, '1/h', 4)");
    assert_eq!(take, [1, 6, 0, 4 * 3_600_000, 10]);
    let kinds: String = eval(
        &mut client,
        "local kinds = {} for place, field in ipairs(redis.call('RL.PEEK', KEYS[1])) do kinds[place] = type(field) end
         return table.concat(kinds, ' ')",
    );
    assert_eq!(kinds, "number number number number number");
    let nothing: bool = eval(&mut client, "return redis.call('RL.PEEK', 'nothing') == false");
    assert!(nothing);
}

/// Lua knows doubles only. A wait of 2^63-1 became one of -2^63 there, a denial for good.
#[test]
fn a_script_gets_the_longest_wait_as_it_is() {
    const LONGEST: i64 = 9_007_199_254_740_991;
    const CALLS: [(&str, [i64; 5]); 4] = [
        ("'RL.TAKE', KEYS[1], '9007199254740991', '1/d', '9007199254740991'", [1, 0, 0, LONGEST, LONGEST]),
        ("'RL.TAKE', KEYS[1], '9007199254740991', '1/d', '9007199254740991'", [0, 0, LONGEST, LONGEST, LONGEST]),
        ("'RL.PEEK', KEYS[1], '9007199254740991', '1/d', '9007199254740991'", [0, 0, LONGEST, LONGEST, LONGEST]),
        ("'CL.THROTTLE', KEYS[1], '9007199254740990', '1', '9007199254', '0'", [0, LONGEST, 0, -1, LONGEST]),
    ];
    let server = Server::loaded_with(&["cl-throttle", "yes"], &[]);
    let mut client = server.connect();
    for (call, answer) in CALLS {
        assert_eq!(eval::<[i64; 5]>(&mut client, &format!("return redis.call({call})")), answer, "{call}");
        let script = format!("local five = redis.call({call}) return five[4] >= -1 and five[5] >= 0");
        assert!(eval::<bool>(&mut client, &script), "{call}");
    }
    let script = "return redis.call('RL.MTAKE', '1', KEYS[1], '9007199254740991', '1/d', '9007199254740991')[4]";
    assert_eq!(eval::<i64>(&mut client, script), LONGEST);
}

#[test]
fn a_script_takes_until_it_is_denied() {
    let server = Server::start();
    let mut client = server.connect();
    let granted: i64 = eval(
        &mut client,
        "local granted = 0 while redis.call('RL.TAKE', KEYS[1], 25, 0)[1] == 1 do granted = granted + 1 end
         return granted",
    );
    assert_eq!(granted, 25);
}

#[test]
fn a_script_can_catch_an_error() {
    let server = Server::start();
    let mut client = server.connect();
    let error: String = eval(&mut client, "return redis.pcall('RL.TAKE', KEYS[1], 'ten', 5).err");
    assert_eq!(error, "ERR capacity must be an integer from 0 to 9007199254740991 tokens");
    assert!(!client.exists("key"));
}

#[test]
fn a_number_of_lua_is_a_rate() {
    let server = Server::start();
    let mut client = server.connect();
    // Lua hands 100 / 60 over with 17 digits.
    let take: [i64; 5] = eval(&mut client, "return redis.call('RL.TAKE', KEYS[1], 10, 100 / 60, 3)");
    assert_eq!(take, [1, 7, 0, 1_800, 10]);
}

#[test]
fn time_stands_still_in_a_script_where_the_server_says_so() {
    let server = Server::start();
    if !server.has("a clock that stands still in scripts", (7, 2)) {
        return;
    }
    let mut client = server.connect();
    let replies: Vec<[i64; 5]> = eval(
        &mut client,
        "local function take() return redis.call('RL.TAKE', KEYS[1], 1000000, 1000000, 1000000) end
         local first = take()
         for i = 1, 1000000 do end
         return {first, take()}",
    );
    assert_eq!(replies, [[1, 0, 0, 1_000, 1_000_000], [0, 0, 1_000, 1_000, 1_000_000]]);
}

#[test]
fn a_function_takes() {
    let server = Server::start();
    let mut client = server.connect();
    let library = "#!lua name=limits
        redis.register_function('take', function(keys, args)
            return redis.call('RL.TAKE', keys[1], args[1], args[2], args[3])
        end)";
    assert_eq!(client.ask::<String>(&["FUNCTION", "LOAD", library]), "limits");
    assert_eq!(client.five("FCALL take 1 key 10 0 4"), [1, 6, 0, -1, 10]);
    assert_eq!(client.five("FCALL take 1 key 10 0 7"), [0, 6, -1, -1, 10]);
}

#[test]
fn a_read_only_script_may_look_and_not_take() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 0");
    let peek: [i64; 5] = client.ask(&["EVAL_RO", "return redis.call('RL.PEEK', KEYS[1])", "1", "key"]);
    assert_eq!(peek, [1, 9, 0, -1, 10]);
    for call in ["'RL.TAKE', KEYS[1], 10, 0", "'RL.RESTORE', KEYS[1], 'payload'"] {
        let error = client.error(&["EVAL_RO", &format!("return redis.call({call})"), "1", "key"]);
        assert!(error.starts_with("ERR Write commands are not allowed from read-only scripts."), "{error}");
    }
    assert_eq!(client.five("RL.PEEK key"), [1, 9, 0, -1, 10]);
}
