//! RDB files: what is saved is what was there, and what writes nothing leaves nothing to save.

use crate::support::specimens::{Dataset, info};
use crate::support::{Client, Server, eventually, quiet};

/// How many changes there are that no RDB file has.
fn changes(server: &Server) -> u64 {
    server.info("persistence", "rdb_changes_since_last_save").unwrap().parse().unwrap()
}

/// What `write` adds to the changes that there are to save. The counter is asked for without writing.
fn changes_by(server: &Server, write: impl FnOnce(&mut Client)) -> u64 {
    let before = changes(server);
    write(&mut server.connect());
    changes(server) - before
}

#[test]
fn a_save_and_a_restart_carry_every_state() {
    let mut server = Server::start();
    let before = Dataset::written(&mut server.connect());
    let _: () = server.connect().line("SAVE");
    server.restart();
    before.assert_held_by(&mut server.connect(), "after SAVE and a restart");
}

#[test]
fn a_background_save_and_a_crash_carry_every_state() {
    let mut server = Server::start();
    let before = Dataset::written(&mut server.connect());
    let _: String = server.connect().line("BGSAVE");
    eventually("the child has saved", || changes(&server) == 0);
    assert_eq!(server.info("persistence", "rdb_last_bgsave_status").as_deref(), Some("ok"));
    server.crash_and_restart();
    before.assert_held_by(&mut server.connect(), "after BGSAVE and a crash");
}

#[test]
fn a_reload_carries_every_state() {
    let server = Server::start();
    let mut client = server.connect();
    let before = Dataset::written(&mut client);
    for _ in 0..2 {
        let _: () = client.line("DEBUG RELOAD");
        before.assert_held_by(&mut client, "after DEBUG RELOAD");
    }
}

#[test]
fn an_uncompressed_file_without_checksum_carries_every_state() {
    let mut server = Server::with(&["--rdbcompression", "no", "--rdbchecksum", "no"]);
    let before = Dataset::written(&mut server.connect());
    let _: () = server.connect().line("SAVE");
    server.restart();
    before.assert_held_by(&mut server.connect(), "after a restart");
}

#[test]
fn a_bucket_goes_on_after_a_reload() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE key 10 5/h 4").remaining, 6);
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(client.reply("RL.TAKE key 10 5/h 4").remaining, 2);
    assert_eq!(client.reply("RL.TAKE key 10 5/h 4").allowed, 0);
}

#[test]
fn denials_are_neither_saved_nor_digested() {
    let server = Server::start();
    let mut client = server.connect();
    let _: [i64; 5] = client.line("RL.TAKE key 10 5/h 10");
    let before = (client.digest("key"), client.dataset_digest());
    for _ in 0..3 {
        assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    }
    assert_eq!(info(&mut client, "key", "denials"), "3");
    assert_eq!((client.digest("key"), client.dataset_digest()), before);
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(info(&mut client, "key", "denials"), "0");
    assert_eq!(info(&mut client, "key", "last_denial_s"), "-1");
    assert_eq!((client.digest("key"), client.dataset_digest()), before);
}

#[test]
fn an_allowed_take_is_one_change() {
    let server = Server::start();
    assert_eq!(changes_by(&server, |client| assert_eq!(client.reply("RL.TAKE new 10 5/h").allowed, 1)), 1);
    assert_eq!(changes_by(&server, |client| assert_eq!(client.reply("RL.TAKE new 10 5/h").allowed, 1)), 1);
    assert_eq!(changes_by(&server, |client| assert_eq!(client.reply("RL.TAKE new 20 0 8").allowed, 1)), 1);
}

#[test]
fn a_denial_that_changes_the_limit_is_one_change() {
    let server = Server::start();
    let _: [i64; 5] = server.connect().line("RL.TAKE key 10 5/h 10");
    assert_eq!(changes_by(&server, |client| assert_eq!(client.reply("RL.TAKE key 10 6/h").allowed, 0)), 1);
    assert_eq!(changes_by(&server, |client| assert_eq!(client.reply("RL.TAKE key 10 6/h").allowed, 0)), 0);
}

#[test]
fn what_does_not_write_leaves_nothing_to_save() {
    let server = Server::start();
    let mut client = server.connect();
    quiet::prepare(&mut client);
    let before = quiet::seen(&mut client);
    let _: () = client.line("SAVE");
    quiet::run(&mut client);
    assert_eq!(changes(&server), 0);
    assert_eq!(quiet::seen(&mut client), before);
    assert_eq!(client.line::<i64>("EXISTS missing"), 0);
}
