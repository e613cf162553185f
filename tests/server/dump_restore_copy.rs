//! `DUMP`, `RESTORE`, `COPY`, `RENAME` and `MOVE`: a bucket is carried from key to key as it is.

use crate::support::Server;
use crate::support::dump::Dump;
use crate::support::specimens::{Sight, info, keys, write_all};

#[test]
fn a_restore_carries_every_state_with_the_expiry_it_is_told() {
    let server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    for key in keys() {
        let before = Sight::of(&mut client, key);
        let dump = Dump::of(&mut client, key);
        let ttl: i64 = client.ask(&["PTTL", key]);
        let mut restore = |name: &str, ttl: i64, options: &[&str]| {
            let ttl = ttl.max(0).to_string();
            let mut words = vec![b"RESTORE".as_slice(), name.as_bytes(), ttl.as_bytes(), dump.bytes()];
            words.extend(options.iter().map(|option| option.as_bytes()));
            assert_eq!(client.ask::<String>(&words), "OK");
            Sight::of(&mut client, name)
        };
        let exact = restore("exact", before.expiry, &["ABSTTL", "REPLACE"]);
        before.assert_seen_in(&exact, &format!("{key:?} with ABSTTL"));

        let relative = restore("relative", ttl, &["REPLACE"]);
        before.assert_same_bucket(&relative, &format!("{key:?} with a TTL"));
        if ttl > 0 {
            assert!((0..60_000).contains(&(relative.expiry - before.expiry)), "{key:?}: {before:?} {relative:?}");
        }
        let bare = restore("bare", 0, &["REPLACE"]);
        before.assert_same_bucket(&bare, &format!("{key:?} without TTL"));
        assert_eq!(bare.expiry, -1, "{key:?}");
        assert_eq!(Dump::of(&mut client, "bare").bytes(), dump.bytes(), "{key:?}");
    }
}

#[test]
fn a_restore_does_not_overwrite_unless_told_to() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE one 10 5/h").remaining, 9);
    assert_eq!(client.reply("RL.TAKE two 20 0 7").remaining, 13);
    let dump = Dump::of(&mut client, "one");
    let refused = client.error(&[b"RESTORE".as_slice(), b"two", b"0", dump.bytes()]);
    assert_eq!(refused, "BUSYKEY Target key name already exists.");
    assert_eq!(client.reply("RL.PEEK two").remaining, 13);
    let _: () = client.ask(&[b"RESTORE".as_slice(), b"two", b"0", dump.bytes(), b"REPLACE"]);
    assert_eq!(client.reply("RL.PEEK two").remaining, 9);
}

#[test]
fn a_bucket_restored_without_expiry_gets_one_with_its_next_take() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE slow 10 5/h").allowed, 1);
    assert_eq!(client.reply("RL.TAKE once 10 0").allowed, 1);
    for key in ["slow", "once"] {
        let dump = Dump::of(&mut client, key);
        let _: i64 = client.ask(&["DEL", key]);
        let _: () = client.ask(&[b"RESTORE".as_slice(), key.as_bytes(), b"0", dump.bytes()]);
        assert_eq!(client.expiry(key), -1, "{key}");
    }
    assert_eq!(client.reply("RL.TAKE slow 10 5/h 10").allowed, 0);
    assert_eq!(client.expiry("slow"), -1, "a denial changes no expiry");
    assert_eq!(client.reply("RL.TAKE once 10 0").remaining, 8);
    assert_eq!(client.expiry("once"), -1, "what never fills has none");

    let taken = client.reply("RL.TAKE slow 10 5/h");
    assert_eq!(taken.remaining, 8);
    let ttl: i64 = client.line("PTTL slow");
    // Until it is full, rounded up, and at most a second and an eighth of the two hours that filling takes more.
    assert!((taken.reset_after_ms - 60_000..=taken.reset_after_ms + 1 + 901_000).contains(&ttl), "{ttl} {taken:?}");
    assert!(client.expiry("slow") > 0);
}

#[test]
fn a_copy_carries_every_state_also_to_another_database() {
    let server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    for key in keys() {
        let before = Sight::of(&mut client, key);
        assert_eq!(client.ask::<i64>(&["COPY", key, "copy", "REPLACE"]), 1);
        before.assert_seen_in(&Sight::of(&mut client, "copy"), &format!("a copy of {key:?}"));
        assert_eq!(client.ask::<i64>(&["COPY", key, "copy", "DB", "1", "REPLACE"]), 1);
        let _: () = client.line("SELECT 1");
        before.assert_seen_in(&Sight::of(&mut client, "copy"), &format!("a copy of {key:?} in database 1"));
        let _: () = client.line("SELECT 0");
    }
}

#[test]
fn a_renamed_and_a_moved_key_carry_every_state() {
    let server = Server::start();
    let mut client = server.connect();
    write_all(&mut client);
    for key in keys() {
        let before = Sight::of(&mut client, key);
        let _: () = client.ask(&["RENAME", key, "renamed"]);
        before.assert_seen_in(&Sight::of(&mut client, "renamed"), &format!("{key:?} renamed"));
        assert_eq!(client.line::<i64>("MOVE renamed 1"), 1);
        let _: () = client.line("SELECT 1");
        before.assert_seen_in(&Sight::of(&mut client, "renamed"), &format!("{key:?} moved"));
        let _: i64 = client.line("DEL renamed");
        let _: () = client.line("SELECT 0");
    }
}

#[test]
fn a_copy_is_a_bucket_of_its_own_and_has_denied_nobody() {
    let server = Server::start();
    let mut client = server.connect();
    let _: [i64; 5] = client.line("RL.TAKE key 10 5/h 8");
    assert_eq!(client.reply("RL.TAKE key 10 5/h 3").allowed, 0);
    assert_eq!(client.line::<i64>("COPY key copy"), 1);
    assert_eq!(client.reply("RL.TAKE copy 10 5/h 2").remaining, 0);
    assert_eq!(client.reply("RL.PEEK key").remaining, 2);
    assert_eq!(info(&mut client, "key", "denials"), "1");
    assert_eq!(info(&mut client, "copy", "denials"), "0");
    let _: i64 = client.line("DEL key");
    assert_eq!(client.reply("RL.PEEK copy").remaining, 0);
}

#[test]
fn a_dump_says_nothing_of_denials() {
    let server = Server::start();
    let mut client = server.connect();
    let _: [i64; 5] = client.line("RL.TAKE key 10 5/h 10");
    let before = Dump::of(&mut client, "key");
    assert_eq!(client.reply("RL.TAKE key 10 5/h").allowed, 0);
    assert_eq!(Dump::of(&mut client, "key").bytes(), before.bytes());
}
