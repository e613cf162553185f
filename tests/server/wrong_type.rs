//! A key that holds something else: an error, and the key as it was.

use rl_core::codec::{Record, RecordedExpiry, encode_record};

use crate::support::foreign::compile;
use crate::support::{Client, Server, held};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The type as the server names it, and a command that makes one.
const OTHERS: [(&str, &str); 9] = [
    ("string", "SET key 5"),
    ("string", "SETRANGE key 100 raw"),
    ("string", "PFADD key a b c"),
    ("list", "RPUSH key a b c"),
    ("set", "SADD key 1 2 3"),
    ("zset", "ZADD key 1 a 2 b"),
    ("hash", "HSET key tokens 5"),
    ("stream", "XADD key 1-1 field value"),
    ("string", "SET key 9007199254740991"),
];

fn commands() -> Vec<Vec<Vec<u8>>> {
    let lines = [
        "RL.TAKE key 10 5",
        "RL.TAKE key 10 5 0",
        "RL.TAKE key 10 5 11",
        "RL.TAKE key 0 0",
        "RL.PEEK key",
        "RL.PEEK key 10 5",
        "RL.PEEK key 10 5 11",
        "RL.INFO key",
    ];
    let mut commands: Vec<Vec<Vec<u8>>> =
        lines.iter().map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect()).collect();
    for expiry in [RecordedExpiry::Unstated, RecordedExpiry::None] {
        let record = encode_record(&Record { expiry, state: held(10, "5", (3, 0), 1) });
        commands.push(vec![b"RL.RESTORE".to_vec(), b"key".to_vec(), record.as_bytes().to_vec()]);
    }
    commands
}

/// What `key` is, in every respect.
fn look(client: &mut Client) -> (String, Vec<u8>, i64) {
    (client.line("TYPE key"), client.line("DUMP key"), client.expiry("key"))
}

fn refuses_and_leaves(client: &mut Client, kind: &str) {
    for expire in ["PERSIST key", "PEXPIREAT key 9000000000000"] {
        client.line::<i64>(expire);
        let before = look(client);
        assert_eq!(before.0, kind);
        for command in commands() {
            assert_eq!(client.error(&command), WRONG_TYPE, "{kind}: {}", String::from_utf8_lossy(&command.join(&b' ')));
            assert_eq!(look(client), before);
        }
    }
}

#[test]
fn every_command_refuses_every_other_type_and_leaves_it_as_it_was() {
    let server = Server::start();
    let mut client = server.connect();
    for (kind, make) in OTHERS {
        client.line::<redis::Value>(make);
        refuses_and_leaves(&mut client, kind);
        assert_eq!(client.line::<i64>("DEL key"), 1);
    }
}

#[test]
fn every_command_refuses_a_type_of_another_module_and_leaves_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = compile("foreign_type", folder.path());
    let server = Server::with(&["--loadmodule", &foreign]);
    let mut client = server.connect();
    assert_eq!(client.line::<i64>("FOREIGN.SET key 42"), 42);
    refuses_and_leaves(&mut client, "foreign-t");
    assert_eq!(client.line::<i64>("DEL key"), 1);
    assert_eq!(client.five("RL.TAKE key 10 0"), [1, 9, 0, -1, 10]);
}

#[test]
fn commands_of_other_types_refuse_a_bucket_and_leave_it_as_it_was() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h");
    let before = look(&mut client);
    assert_eq!(before.0, "rl-bucket");
    for line in ["GET key", "INCR key", "LPUSH key a", "SADD key a", "ZADD key 1 a", "HGET key a", "XLEN key"] {
        assert_eq!(client.error(&line.split(' ').collect::<Vec<_>>()), WRONG_TYPE, "{line}");
        assert_eq!(look(&mut client), before, "{line}");
    }
    let found: (String, Vec<String>) = client.line("SCAN 0 TYPE rl-bucket");
    assert_eq!(found.1, ["key"]);
}

#[test]
fn a_key_that_was_overwritten_is_what_it_was_overwritten_with() {
    let server = Server::start();
    let mut client = server.connect();
    client.reply("RL.TAKE key 10 1/h 10");
    assert_eq!(client.line::<String>("SET key text"), "OK");
    assert_eq!(client.error(&["RL.TAKE", "key", "10", "1/h"]), WRONG_TYPE);
    assert_eq!(client.line::<String>("GET key"), "text");
    assert_eq!(client.line::<i64>("DEL key"), 1);
    assert_eq!(client.reply("RL.TAKE key 10 1/h 10").allowed, 1);
}
