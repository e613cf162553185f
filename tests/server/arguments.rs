//! Bad arguments: each gets its exact error, and neither a key nor the server is the worse for it.

use crate::support::{Client, Server};

const CAPACITY: &str = "ERR capacity must be an integer from 0 to 9007199254740991 tokens";
const COST: &str = "ERR cost must be an integer from 0 to 9007199254740991 tokens";
const RATE: &str = "ERR rate must be a number of tokens from 0 to 9007199254740991, per second (5, 0.5) or per period \
    (100/60, 100/m, 5/15m; units ms, s, m, h, d)";
const TAKE_ARITY: &str = "ERR wrong number of arguments for 'RL.TAKE' command";
const PEEK_ARITY: &str = "ERR wrong number of arguments for 'RL.PEEK' command";
const INFO_ARITY: &str = "ERR wrong number of arguments for 'RL.INFO' command";
const RESTORE_ARITY: &str = "ERR wrong number of arguments for 'RL.RESTORE' command";

/// Command lines, words separated by `|`, and what is wrong with them. KEY stands for a key.
const LINES: [(&[u8], &str); 40] = [
    (b"RL.TAKE", TAKE_ARITY),
    (b"RL.TAKE|KEY", TAKE_ARITY),
    (b"RL.TAKE|KEY|10", TAKE_ARITY),
    (b"RL.TAKE|KEY|10|5|1|", TAKE_ARITY),
    (b"RL.TAKE|KEY|10|5|1|1", TAKE_ARITY),
    (b"RL.TAKE|KEY|10|5|x|x", TAKE_ARITY),
    (b"RL.TAKE|KEY|x|x|x|x", TAKE_ARITY),
    (b"RL.TAKE|KEY|10|5|1|1|1|1|1|1|1|1|1|1|1|1|1|1|1|1|1|1", TAKE_ARITY),
    (b"rl.take|KEY", TAKE_ARITY),
    (b"RL.PEEK", PEEK_ARITY),
    (b"RL.PEEK|KEY|10", PEEK_ARITY),
    (b"RL.PEEK|KEY|x", PEEK_ARITY),
    (b"RL.PEEK|KEY|", PEEK_ARITY),
    (b"RL.PEEK|KEY|10|5|1|1", PEEK_ARITY),
    (b"RL.INFO", INFO_ARITY),
    (b"RL.INFO|KEY|KEY", INFO_ARITY),
    (b"RL.INFO|KEY|", INFO_ARITY),
    (b"RL.RESTORE", RESTORE_ARITY),
    (b"RL.RESTORE|KEY", RESTORE_ARITY),
    (b"RL.RESTORE|KEY|x|x", RESTORE_ARITY),
    // The first one that is wrong is named.
    (b"RL.TAKE|KEY|x|x|x", CAPACITY),
    (b"RL.TAKE|KEY|10|x|x", RATE),
    (b"RL.TAKE|KEY|10|5|x", COST),
    (b"RL.PEEK|KEY|x|x|x", CAPACITY),
    (b"RL.PEEK|KEY|10|x|x", RATE),
    (b"RL.PEEK|KEY|10|5|x", COST),
    // What other commands take.
    (b"RL.TAKE|KEY|10|5|COST", COST),
    (b"RL.TAKE|KEY|CAPACITY|10", CAPACITY),
    (b"RL.TAKE|KEY|5/15m|5", CAPACITY),
    (b"RL.TAKE|10|KEY|5", CAPACITY),
    (b"RL.TAKE|KEY|10/s|10/s", CAPACITY),
    (b"RL.TAKE|KEY|10|5|1/s", COST),
    (b"RL.TAKE|KEY|10|5 1", RATE),
    (b"RL.TAKE|KEY|10|5|1e3", COST),
    (b"RL.TAKE|KEY|1e3|5", CAPACITY),
    (b"RL.TAKE|KEY|*|5", CAPACITY),
    (b"RL.TAKE|KEY|$|5", CAPACITY),
    (b"RL.TAKE|KEY|10|5|-", COST),
    (b"RL.TAKE|KEY|10|-", RATE),
    (b"RL.TAKE|KEY|10|%n%s%n", RATE),
];

/// Separated by `|`.
const NOT_INTEGERS: &[u8] = b"\
    | |\t|\0|-1|+1|-0|--1|1e3|1E3|1.5|1.0|1.|.5|1,000|1_000|0x10|0b1|0o7|10h|01|00|007|nan|NaN|inf|-inf|\
    Infinity| 10|10 |10\n|1\x000|10\0|\xff\xfe|\xd9\xa3|ten|9007199254740992|9223372036854775808|\
    18446744073709551616|340282366920938463463374607431768211466";

/// Separated by `|`.
const NOT_RATES: &[u8] = b"\
    | |\t|\0|-1|+1|-0|- 1|nan|NaN|inf|-inf|Infinity|x|ten|0x10|01|00|007.5|1.|.5|.|1.5.5|1,5|1_000| 5|5 |5\n|\
    5\t|5x|5s|5m|m|/|//|5/|/m|/60|5//m|5/m/m|5/m/|5/0|5/0s|5/0.0m|5/0d|0/0|5/-1|5/+1|5/1e3|5/01m|5/.5m|5/1.m|\
    5/ 60|5/60 |5 /60|5/M|5/S|5/MS|5/sec|5/us|5/y|5/w|5/ss|5/m1|5/m\0|5\0/m|5/\xff|\xff\xfe|1e|e5|1e+|1e1.5|\
    1ee5|1e0x5|1e 5|1e400|1e99|9007199254740992|9223372036854775808|18446744073709551616|1/9007199254740992ms|\
    0.00000000000000000000000000000000000000000000001";

const NOT_PAYLOADS: &str = "ERR payload must be ";

/// Asks for `words` with KEY being a key that is not there, and one that is; both are the same afterwards.
fn refuses(client: &mut Client, words: &[&[u8]], error: &str) {
    let held = client.digest("held");
    for key in ["fresh", "held"] {
        let words: Vec<&[u8]> = words.iter().map(|word| if *word == b"KEY" { key.as_bytes() } else { word }).collect();
        assert_eq!(client.error(&words), error, "{:.200}", shown(&words));
        assert_eq!((client.line::<i64>("DBSIZE"), client.digest("held")), (1, held.clone()), "{:.200}", shown(&words));
    }
}

fn words_of(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| *byte == b'|').collect()
}

fn shown(words: &[&[u8]]) -> String {
    words.join(&b'|').escape_ascii().to_string()
}

/// A client of a server on which there is a key `held`.
fn with_held_key(server: &Server) -> Client {
    let mut client = server.connect();
    client.reply("RL.TAKE held 10 1/h");
    client
}

#[test]
fn a_line_that_is_wrong_as_a_whole() {
    let server = Server::start();
    let mut client = with_held_key(&server);
    for (line, error) in LINES {
        refuses(&mut client, &words_of(line), error);
    }
}

#[test]
fn what_is_not_an_integer_is_neither_capacity_nor_cost() {
    let server = Server::start();
    let mut client = with_held_key(&server);
    for text in words_of(NOT_INTEGERS) {
        refuses(&mut client, &[b"RL.TAKE", b"KEY", text, b"5"], CAPACITY);
        refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", b"5", text], COST);
        refuses(&mut client, &[b"RL.PEEK", b"KEY", text, b"5"], CAPACITY);
        refuses(&mut client, &[b"RL.PEEK", b"KEY", b"10", b"5", text], COST);
    }
}

#[test]
fn what_is_not_a_rate_is_none() {
    let server = Server::start();
    let mut client = with_held_key(&server);
    for text in words_of(NOT_RATES) {
        refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", text], RATE);
        refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", text, b"1"], RATE);
        refuses(&mut client, &[b"RL.PEEK", b"KEY", b"10", text], RATE);
    }
}

#[test]
fn a_megabyte_is_no_number_whatever_it_is_made_of() {
    let server = Server::start();
    let mut client = with_held_key(&server);
    for byte in *b"0159.e/ -x\0\xff" {
        let text = vec![byte; 1 << 20];
        refuses(&mut client, &[b"RL.TAKE", b"KEY", &text, b"5"], CAPACITY);
        refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", &text], RATE);
        refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", b"5", &text], COST);
        refuses(&mut client, &[b"RL.PEEK", b"KEY", &text, b"5", b"1"], CAPACITY);
    }
    let digits = [b"0.".as_slice(), &vec![b'3'; 1 << 20]].concat();
    refuses(&mut client, &[b"RL.TAKE", b"KEY", b"10", &digits], RATE);
    let payload = vec![1; 1 << 20];
    let error = client.error(&[b"RL.RESTORE", b"held".as_slice(), &payload]);
    assert!(error.starts_with(NOT_PAYLOADS), "{error}");
}

#[test]
fn ten_thousand_arguments_are_too_many() {
    let server = Server::start();
    let mut client = with_held_key(&server);
    for (command, error) in
        [("RL.TAKE", TAKE_ARITY), ("RL.PEEK", PEEK_ARITY), ("RL.INFO", INFO_ARITY), ("RL.RESTORE", RESTORE_ARITY)]
    {
        let words: Vec<&[u8]> = [command.as_bytes(), b"KEY"].into_iter().chain([b"1".as_slice(); 10_000]).collect();
        refuses(&mut client, &words, error);
    }
}
