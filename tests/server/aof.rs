//! The append-only file: it holds states, never requests, so that replaying it reads no clock.

use std::thread::sleep;
use std::time::Duration;

use rl_core::codec::RecordedExpiry;

use crate::support::dump::Dump;
use crate::support::specimens::{Dataset, keys, write_all};
use crate::support::stream::{aof, in_aof, names, records};
use crate::support::{Client, Server, eventually, quiet};

/// Everything is in the file when a command is answered.
const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn server(options: &[&str]) -> Server {
    Server::with(&[&ALWAYS[..], options].concat())
}

fn rewrite(server: &Server) {
    let _: String = server.connect().line("BGREWRITEAOF");
    until_rewritten(server);
}

fn until_rewritten(server: &Server) {
    eventually("the file is rewritten", || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| server.info("persistence", field).as_deref() == Some("0"))
    });
    assert_eq!(server.info("persistence", "aof_last_bgrewrite_status").as_deref(), Some("ok"));
}

/// What a record of `key` must say now.
fn recorded(client: &mut Client, key: &str) -> (RecordedExpiry, rl_core::Held) {
    let expiry = match u128::try_from(client.expiry(key)) {
        Ok(millis) => RecordedExpiry::At(rl_core::UnixMillis::saturating(millis)),
        Err(_) => RecordedExpiry::None,
    };
    (expiry, Dump::of(client, key).state())
}

#[test]
fn a_crash_and_a_replay_carry_every_state() {
    let mut server = server(&[]);
    let before = Dataset::written(&mut server.connect());
    server.crash_and_restart();
    before.assert_held_by(&mut server.connect(), "after a replay of the AOF");
}

#[test]
fn a_rewrite_with_rdb_preamble_carries_every_state() {
    let mut server = server(&["--aof-use-rdb-preamble", "yes"]);
    let before = Dataset::written(&mut server.connect());
    rewrite(&server);
    server.restart();
    before.assert_held_by(&mut server.connect(), "after a rewrite of the AOF as RDB");
}

#[test]
fn a_rewrite_as_commands_carries_every_state() {
    let mut server = server(&["--aof-use-rdb-preamble", "no"]);
    let before = Dataset::written(&mut server.connect());
    rewrite(&server);
    server.restart();
    before.assert_held_by(&mut server.connect(), "after a rewrite of the AOF as commands");
}

#[test]
fn a_reload_of_the_file_carries_every_state() {
    let server = server(&[]);
    let mut client = server.connect();
    let before = Dataset::written(&mut client);
    let _: () = client.line("DEBUG LOADAOF");
    before.assert_held_by(&mut client, "after DEBUG LOADAOF");
}

#[test]
fn a_file_that_is_turned_on_later_carries_every_state() {
    let server = Server::with(&["--aof-use-rdb-preamble", "no"]);
    let mut client = server.connect();
    let before = Dataset::written(&mut client);
    let _: () = client.line("CONFIG SET appendonly yes");
    until_rewritten(&server);
    let _: () = client.line("DEBUG LOADAOF");
    before.assert_held_by(&mut client, "after the file was turned on and loaded");
}

#[test]
fn an_allowed_take_is_one_record_of_the_state_it_led_to() {
    let server = server(&[]);
    let mut client = server.connect();
    let mut expected = Vec::new();
    for line in ["RL.TAKE key 10 5/h 4", "RL.TAKE key 10 5/h 6", "RL.TAKE key 10 5/h", "RL.TAKE once 10 0 3"] {
        let [_, key, ..] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        // Not within the millisecond for which the module remembers an expiry, which is then not stated.
        sleep(Duration::from_millis(2));
        if client.reply(line).allowed == 1 {
            expected.push((key.to_owned(), recorded(&mut client, key)));
        }
    }
    let written = in_aof(&server, ".incr.aof");
    assert_eq!(names(&written), ["RL.RESTORE", "RL.RESTORE", "RL.RESTORE"]);
    let written: Vec<_> =
        records(&written).into_iter().map(|(key, record)| (key, (record.expiry, record.state))).collect();
    assert_eq!(written, expected);
}

#[test]
fn a_rewritten_record_leaves_the_expiry_to_the_server() {
    let server = server(&["--aof-use-rdb-preamble", "no"]);
    let mut client = server.connect();
    write_all(&mut client);
    rewrite(&server);
    let commands = in_aof(&server, ".base.aof");
    let rewritten = records(&commands);
    for key in keys() {
        let at = rewritten.iter().position(|(name, _)| name == key).unwrap_or_else(|| panic!("no {key:?}"));
        assert_eq!(rewritten[at].1.expiry, RecordedExpiry::Unstated, "{key:?}");
        assert_eq!(rewritten[at].1.state, Dump::of(&mut client, key).state(), "{key:?}");

        let expiry = client.expiry(key);
        let appended = commands.iter().find(|words| words[0] == b"PEXPIREAT" && words[1] == key.as_bytes());
        let appended = appended.map(|words| String::from_utf8(words[2].clone()).unwrap());
        assert_eq!(appended, (expiry >= 0).then(|| expiry.to_string()), "{key:?}");
    }
    // One key more, in another database.
    assert_eq!(rewritten.len(), keys().count() + 1);
}

#[test]
fn what_does_not_write_leaves_the_file_as_it_is() {
    let server = server(&[]);
    let mut client = server.connect();
    quiet::prepare(&mut client);
    let before = aof(&server, ".aof");
    quiet::run(&mut client);
    assert_eq!(aof(&server, ".aof"), before);
}
