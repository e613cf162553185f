//! `MULTI` and `WATCH`.

use redis::Value;

use crate::support::{Server, held, integers, now_us};

#[test]
fn several_takes_are_decided_one_after_the_other() {
    let server = Server::start();
    let mut client = server.connect();
    let lines = ["RL.TAKE a 2 0", "RL.TAKE b 5 0 5", "RL.TAKE a 2 0", "RL.TAKE a 2 0", "RL.PEEK b", "RL.TAKE b 5 0"];
    let replies: Vec<[i64; 5]> = client.transaction(&lines);
    assert_eq!(
        replies,
        [[1, 1, 0, -1, 2], [1, 0, 0, -1, 5], [1, 0, 0, -1, 2], [0, 0, -1, -1, 2], [0, 0, -1, -1, 5], [0, 0, -1, -1, 5]]
    );
}

#[test]
fn a_discarded_take_charges_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.line::<String>("MULTI"), "OK");
    assert_eq!(client.line::<String>("RL.TAKE key 2 0"), "QUEUED");
    assert_eq!(client.line::<String>("DISCARD"), "OK");
    assert!(!client.exists("key"));
}

#[test]
fn a_bad_argument_is_that_commands_error_alone() {
    let server = Server::start();
    let mut client = server.connect();
    client.queue(&["RL.TAKE key 2 0", "RL.TAKE key -1 0", "RL.TAKE key 2 0"]);
    let error = "ERR capacity must be an integer from 0 to 9007199254740991 tokens";
    assert_eq!(client.exec(), [Ok(integers([1, 1, 0, -1, 2])), Err(error.to_owned()), Ok(integers([1, 0, 0, -1, 2]))]);
}

#[test]
fn an_arity_error_aborts_the_transaction() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.line::<String>("MULTI"), "OK");
    assert_eq!(client.line::<String>("RL.TAKE key 2 0"), "QUEUED");
    assert_eq!(client.error(&["RL.TAKE", "key", "2"]), "ERR wrong number of arguments for 'RL.TAKE' command");
    assert_eq!(client.error(&["EXEC"]), "EXECABORT Transaction discarded because of previous errors.");
    assert!(!client.exists("key"));
}

#[test]
fn time_stands_still_in_a_transaction_where_the_server_says_so() {
    let server = Server::start();
    if !server.has("a clock that stands still in MULTI", (7, 2)) {
        return;
    }
    let mut client = server.connect();
    let take = "RL.TAKE key 1000000 1000000 1000000";
    let (first, _, second): ([i64; 5], String, [i64; 5]) = client.transaction(&[take, "DEBUG SLEEP 0.02", take]);
    assert_eq!(first, [1, 0, 0, 1_000, 1_000_000]);
    assert_eq!(second, [0, 0, 1_000, 1_000, 1_000_000]);
}

/// Whether a transaction on `watched` is carried out if, in between, somebody else sends `line`.
fn survives(server: &Server, watched: &str, line: &str) -> bool {
    let (mut watcher, mut other) = (server.connect(), server.connect());
    assert_eq!(watcher.ask::<String>(&["WATCH", watched]), "OK");
    other.ask::<Value>(&line.split(' ').collect::<Vec<_>>());
    watcher.transaction::<Option<Vec<String>>>(&["PING"]).is_some()
}

#[test]
fn a_denial_does_not_break_anothers_watch() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 0 2");
    for line in ["RL.TAKE key 2 0", "RL.TAKE key 2 0 3", "RL.TAKE key 2 0 0", "RL.PEEK key", "RL.INFO key"] {
        assert!(survives(&server, "key", line), "{line}");
    }
    for line in ["RL.TAKE new 2 0 3", "RL.TAKE new 0 0", "RL.TAKE new 2 0 0", "RL.PEEK new 2 0"] {
        assert!(survives(&server, "new", line), "{line}");
    }
    assert!(survives(&server, "other", "RL.TAKE new 2 0"));
}

#[test]
fn a_take_breaks_anothers_watch() {
    let server = Server::start();
    assert!(!survives(&server, "key", "RL.TAKE key 2 0"));
    assert!(!survives(&server, "key", "RL.TAKE key 2 0"));
    assert!(survives(&server, "key", "RL.TAKE key 2 0"));
}

#[test]
fn a_denial_that_changes_the_key_breaks_anothers_watch() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 2 0 2");
    // The limit comes into force, once.
    assert!(!survives(&server, "key", "RL.TAKE key 2 1/h"));
    assert!(survives(&server, "key", "RL.TAKE key 2 1/h"));
    // The bucket moves to the clock that was set back, once.
    client.put("key", held(2, "1/h", (0, 0), now_us() + 3_600_000_000));
    assert!(!survives(&server, "key", "RL.TAKE key 2 1/h"));
    assert!(survives(&server, "key", "RL.TAKE key 2 1/h"));
}
