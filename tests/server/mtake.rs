//! `RL.MTAKE`: from all of them or from none.

use redis::Value;

use crate::support::cluster::{pair, slot};
use crate::support::dump::Dump;
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::info;
use crate::support::stream::{Stream, names, records};
use crate::support::{Client, Server};

const HOUR_MS: i64 = 3_600_000;
const KEY_COUNT: &str = "ERR numkeys must be the number of keys, at least 1, followed by as many keys and a capacity, rate \
    and cost for each";
const SAME_KEY: &str = "ERR key must be given once: a bucket cannot be taken from twice in one call";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Allowed, the first that denies, the five integers of each, the longest wait of those that deny.
type Answer = (i64, i64, Vec<[i64; 5]>, i64);

fn error(client: &mut Client, line: &str) -> String {
    client.error(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn takes_from_all_where_all_allow() {
    let server = Server::start();
    let mut client = server.connect();
    let answer: Answer = client.line("RL.MTAKE 3 a b c 10 0 4 5 1/h 5 7 1/h 0");
    assert_eq!(answer, (1, -1, vec![[1, 6, 0, -1, 10], [1, 0, 0, 5 * HOUR_MS, 5], [1, 7, 0, 0, 7]], 0));
    assert!(!client.exists("c"), "a cost of 0 writes nothing");
    let answer: Answer = client.line("RL.MTAKE 1 a 10 0 6");
    assert_eq!(answer, (1, -1, vec![[1, 0, 0, -1, 10]], 0));
}

#[test]
fn takes_from_none_where_one_denies_and_names_the_first() {
    let server = Server::start();
    let mut client = server.connect();
    let _: Answer = client.line("RL.MTAKE 2 a c 10 0 4 3 0 3");
    let rows: [(&str, i64, [[i64; 5]; 3]); 5] = [
        ("10 0 6 5 0 5 3 0 1", 2, [[1, 6, 0, -1, 10], [1, 5, 0, 0, 5], [0, 0, -1, -1, 3]]),
        ("10 0 7 5 0 5 3 0 0", 0, [[0, 6, -1, -1, 10], [1, 5, 0, 0, 5], [1, 0, 0, -1, 3]]),
        ("10 0 1 5 0 6 3 0 1", 1, [[1, 6, 0, -1, 10], [0, 5, -1, 0, 5], [0, 0, -1, -1, 3]]),
        ("10 0 7 5 0 6 3 0 1", 0, [[0, 6, -1, -1, 10], [0, 5, -1, 0, 5], [0, 0, -1, -1, 3]]),
        ("10 0 0 0 0 1 3 0 0", 1, [[1, 6, 0, -1, 10], [0, 0, -1, 0, 0], [1, 0, 0, -1, 3]]),
    ];
    let digest = client.dataset_digest();
    for (limits, first, fives) in rows {
        let answer: Answer = client.line(&format!("RL.MTAKE 3 a b c {limits}"));
        assert_eq!(answer, (0, first, fives.to_vec(), -1), "{limits}");
        assert_eq!(client.dataset_digest(), digest, "{limits}");
    }
    assert!(!client.exists("b"));
}

#[test]
fn each_that_denies_tells_its_own_wait_and_the_last_integer_is_the_longest() {
    let server = Server::start();
    let mut client = server.connect();
    let _: Answer = client.line("RL.MTAKE 2 a b 2 1/h 2 2 1/d 2");
    let (allowed, first, fives, wait_ms): Answer = client.line("RL.MTAKE 3 c a b 9 1/h 1 2 1/h 1 2 1/d 2");
    assert_eq!((allowed, first, fives[0]), (0, 1, [1, 9, 0, 0, 9]));
    for (five, wait_ms) in [(fives[1], HOUR_MS), (fives[2], 48 * HOUR_MS)] {
        assert!(five[0] == 0 && (wait_ms - 60_000..=wait_ms).contains(&five[2]), "{five:?}");
    }
    assert_eq!(wait_ms, fives[2][2], "the longest, not the first");
    let (_, first, fives, wait_ms): Answer = client.line("RL.MTAKE 2 b a 2 1/d 1 2 1/h 1");
    assert_eq!((first, wait_ms), (0, fives[0][2]), "the longest, which is the first");
    let (_, _, _, wait_ms): Answer = client.line("RL.MTAKE 3 a once b 2 1/h 1 3 0 4 2 1/d 1");
    assert_eq!(wait_ms, -1, "waiting does not help with one of them");
    let (_, _, fives, wait_ms): Answer = client.line("RL.MTAKE 2 a c 2 1/h 1 9 1/h 9");
    assert_eq!((fives[1][0], wait_ms), (1, fives[0][2]), "one that allows has no say");
}

#[test]
fn a_denial_writes_nothing_and_is_counted_where_it_was_denied() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    let _: Answer = client.line("RL.MTAKE 2 a b 10 1/h 4 3 1/h 3");
    let seen = |client: &mut Client| (client.dataset_digest(), client.expiry("a"), client.expiry("b"));
    let (before, offset) = (seen(&mut client), sent(&primary));
    for _ in 0..3 {
        assert_eq!(client.line::<Answer>("RL.MTAKE 3 new a b 9 1/h 1 10 1/h 1 3 1/h 1").1, 2);
    }
    assert_eq!((seen(&mut client), sent(&primary)), (before, offset));
    assert_eq!((info(&mut client, "a", "denials"), info(&mut client, "b", "denials")), ("0".into(), "3".into()));
}

#[test]
fn a_denial_brings_a_new_limit_into_force_where_it_denies_and_nowhere_else() {
    let server = Server::start();
    let mut client = server.connect();
    let _: Answer = client.line("RL.MTAKE 2 a b 10 0 4 3 0 3");
    let mut stream = Stream::of(&server);
    for _ in 0..2 {
        let (_, first, fives, _): Answer = client.line("RL.MTAKE 2 a b 20 1/h 1 9 1/h 1");
        assert_eq!((first, fives[0][1], fives[1][1]), (1, 6, 0));
    }
    let sent = records(&stream.since(&server));
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!((sent[0].0.as_str(), sent[0].1.state), ("b", Dump::of(&mut client, "b").state()));
    assert_eq!((info(&mut client, "a", "rate"), info(&mut client, "b", "rate")), ("0".into(), "1/h".into()));
}

#[test]
fn is_one_transaction_for_replicas() {
    let primary = primary();
    let replica = primary.replica();
    let mut client = primary.connect();
    let mut stream = Stream::of(&primary);
    let _: Answer = client.line("RL.MTAKE 3 a b c 10 1/h 1 10 0 1 10 1/h 0");
    let commands = stream.since(&primary);
    assert_eq!(names(&commands), ["MULTI", "RL.RESTORE", "RL.RESTORE", "EXEC"]);
    let states: Vec<_> = records(&commands).into_iter().map(|(key, record)| (key, record.state)).collect();
    let expected = ["a", "b"].map(|key| (key.to_owned(), Dump::of(&mut client, key).state()));
    assert_eq!(states, expected);

    let _: Answer = client.line("RL.MTAKE 1 a 10 1/h 1");
    assert_eq!(names(&stream.since(&primary)), ["RL.RESTORE"]);
    let _: Vec<Answer> = client.transaction(&["RL.MTAKE 2 a b 10 1/h 1 10 0 1", "RL.MTAKE 2 a b 10 1/h 1 10 0 99"]);
    assert_eq!(names(&stream.since(&primary)), ["MULTI", "RL.RESTORE", "RL.RESTORE", "EXEC"]);
    let script = "return redis.call('RL.MTAKE', 2, KEYS[1], KEYS[2], 10, '1/h', 1, 10, 0, 1)";
    let answer: Answer = client.ask(&["EVAL", script, "2", "a", "b"]);
    assert_eq!((answer.0, answer.2[1]), (1, [1, 7, 0, -1, 10]));
    assert_eq!(names(&stream.since(&primary)), ["MULTI", "RL.RESTORE", "RL.RESTORE", "EXEC"]);

    caught_up(&primary, &replica);
    assert_eq!(replica.connect().dataset_digest(), client.dataset_digest());
    for key in ["a", "b"] {
        assert_eq!(replica.connect().expiry(key), client.expiry(key), "{key}");
    }
}

#[test]
fn many_buckets_are_taken_from_at_once() {
    let server = Server::start();
    let mut client = server.connect();
    let keys: Vec<String> = (0..500).map(|number| format!("key:{number}")).collect();
    // A limit of its own for each.
    let limits: Vec<String> = (0..500).map(|number| format!("{} 7/{}h 1", number + 1, number + 1)).collect();
    let line = format!("RL.MTAKE 500 {} {}", keys.join(" "), limits.join(" "));
    let (allowed, first, fives, _): Answer = client.line(&line);
    assert_eq!((allowed, first, fives.len()), (1, -1, 500));
    for (number, five) in fives.into_iter().enumerate() {
        let (left, limit) = (number as i64, number as i64 + 1);
        assert_eq!((five[0], five[1], five[4]), (1, left, limit));
        assert_eq!(client.reply(&format!("RL.PEEK key:{number}")).limit, limit);
    }
    let (allowed, first, _, _): Answer = client.line(&line);
    assert_eq!((allowed, first), (0, 0));
    assert_eq!(client.reply("RL.PEEK key:499").remaining, 499);
}

#[test]
fn a_key_of_another_type_leaves_the_others_uncharged() {
    let server = Server::start();
    let mut client = server.connect();
    let _: Value = client.line("SET string text");
    let _: Answer = client.line("RL.MTAKE 1 a 10 0 4");
    let digest = client.dataset_digest();
    for line in [
        "RL.MTAKE 2 a string 10 0 1 10 0 1",
        "RL.MTAKE 2 string a 10 0 1 10 0 1",
        "RL.MTAKE 3 new a string 1 0 1 9 0 9 1 0 0",
    ] {
        assert_eq!(error(&mut client, line), WRONG_TYPE, "{line}");
        assert_eq!(client.dataset_digest(), digest, "{line}");
    }
}

#[test]
fn where_a_key_would_have_to_be_made_and_memory_is_used_up_none_is_charged() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    let _: Answer = client.line("RL.MTAKE 2 a b 10 0 4 10 0 4");
    let digest = client.dataset_digest();
    assert_eq!(client.line::<String>("CONFIG SET maxmemory 1"), "OK");
    for line in
        ["RL.MTAKE 2 a new 10 0 1 10 0 1", "RL.MTAKE 2 new a 10 0 1 10 0 1", "RL.MTAKE 3 a b new 10 0 1 10 0 1 10 0 1"]
    {
        assert_eq!(error(&mut client, line), OOM, "{line}");
        assert_eq!(client.dataset_digest(), digest, "{line}");
    }
    // None has to be made where one denies, or where nothing is asked of the new one.
    assert_eq!(client.line::<Answer>("RL.MTAKE 2 a new 10 0 7 10 0 1").1, 0);
    assert_eq!(client.line::<Answer>("RL.MTAKE 2 a new 10 0 1 10 0 0").0, 1);
    assert_eq!(client.line::<Answer>("RL.MTAKE 2 a b 10 0 1 10 0 1").0, 1);
    assert!(!client.exists("new"));
}

#[test]
fn the_keys_are_found_by_their_number() {
    let server = Server::start();
    let mut client = server.connect();
    let keys: Vec<String> = client.line("COMMAND GETKEYS RL.MTAKE 3 a b c 10 0 1 10 0 1 10 0 1");
    assert_eq!(keys, ["a", "b", "c"]);
    let keys: Vec<String> = client.line("COMMAND GETKEYS RL.MTAKE 1 a 10 0 1");
    assert_eq!(keys, ["a"]);
    for numkeys in ["0", "-1", "x", "99"] {
        let refused = error(&mut client, &format!("COMMAND GETKEYS RL.MTAKE {numkeys} a 10 0 1"));
        assert!(refused.starts_with("ERR "), "{numkeys}: {refused}");
    }
    let _: () = client.line("ACL SETUSER half on nopass ~a* +@all");
    let _: () = client.line("AUTH half any");
    assert_eq!(client.line::<Answer>("RL.MTAKE 2 a ab 10 0 1 10 0 1").0, 1);
    let refused = error(&mut client, "RL.MTAKE 2 a b 10 0 1 10 0 1");
    assert!(refused.starts_with("NOPERM "), "{refused}");
    assert_eq!(client.reply("RL.PEEK a").remaining, 9);
}

/// Once, Redis up to 8.2 and Valkey up to 9 saw no keys in it: a node took from buckets of slots that were not its
/// own. They ask the module for the keys, and do not look at the key specification.
#[test]
fn in_a_cluster_the_keys_are_sent_to_their_node_and_must_be_in_one_slot() {
    // A slot of the first node, and one of the second.
    let (here, there) = ("tenant:3", "tenant:1");
    let nodes = pair();
    let mut client = nodes[0].client();
    let slot = slot(&mut client, there);
    let moved = nodes[1].redirection("MOVED", slot);
    assert_eq!(error(&mut client, &format!("RL.MTAKE 2 {{{there}}}a {{{there}}}b 10 0 1 10 0 1")), moved);
    let refused = error(&mut client, &format!("RL.MTAKE 2 {here} {there} 10 0 1 10 0 1"));
    assert_eq!(refused, "CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(client.line::<i64>("DBSIZE"), 0);
    let answer: Answer = client.line(&format!("RL.MTAKE 2 {{{here}}}a {{{here}}}b 10 0 1 10 0 1"));
    assert_eq!(answer.0, 1);
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    const ARITY: &str = "ERR wrong number of arguments for 'RL.MTAKE' command";
    const CAPACITY: &str = "ERR capacity must be an integer from 0 to 9007199254740991 tokens";
    const COST: &str = "ERR cost must be an integer from 0 to 9007199254740991 tokens";
    let server = Server::start();
    let mut client = server.connect();
    for line in ["RL.MTAKE", "RL.MTAKE 1", "RL.MTAKE 1 a 10 0", "RL.MTAKE 0 a 10 0"] {
        assert_eq!(error(&mut client, line), ARITY, "{line}");
    }
    let huge =
        ["9007199254740991", "9007199254740992", "4611686018427387905", "18446744073709551617", "99999999999999999999"];
    for numkeys in ["0", "2", "3", "5", "-1", "+1", "01", "1.0", "1e0", "x", "", " 1"].iter().chain(&huge) {
        assert_eq!(client.error(&["RL.MTAKE", numkeys, "a", "10", "0", "1"]), KEY_COUNT, "{numkeys}");
    }
    for (line, text) in [
        ("RL.MTAKE 1 a b 10 0 1 10 0 1", KEY_COUNT),
        ("RL.MTAKE 2 a b 10 0 1", KEY_COUNT),
        ("RL.MTAKE 2 a b 10 0 1 10 0", KEY_COUNT),
        ("RL.MTAKE 2 a b 10 0 1 10 0 1 1", KEY_COUNT),
        ("RL.MTAKE 2 a a 10 0 1 10 0 1", SAME_KEY),
        ("RL.MTAKE 3 a b a 10 0 1 x x x 10 0 1", SAME_KEY),
        ("RL.MTAKE 2 a b x 0 1 10 0 1", CAPACITY),
        ("RL.MTAKE 2 a b 10 0 1 -1 0 1", CAPACITY),
        ("RL.MTAKE 2 a b 10 0 x 10 0 1", COST),
        ("RL.MTAKE 2 a b 10 0 1 10 0 1.5", COST),
    ] {
        assert_eq!(error(&mut client, line), text, "{line}");
    }
    assert!(error(&mut client, "RL.MTAKE 2 a b 10 0 1 10 x 1").starts_with("ERR rate must be "));
    assert_eq!(client.line::<i64>("DBSIZE"), 0);
    // Names that differ in a byte, and the empty name, are names.
    let answer: Answer = client.ask(&[b"RL.MTAKE".as_slice(), b"2", b"", b"\0", b"10", b"0", b"1", b"10", b"0", b"1"]);
    assert_eq!((answer.0, client.line::<i64>("DBSIZE")), (1, 2));
}
