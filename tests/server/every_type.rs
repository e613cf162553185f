//! What must hold of every type that a key can be of: written once, and run over the list in `support/kinds.rs`.

use redis::Value;

use crate::support::kinds::{KINDS, Sight, write_all};
use crate::support::replicas::{caught_up, primary, sent};
use crate::support::specimens::info;
use crate::support::stream::{Stream, names};
use crate::support::{Client, Server, eventually};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn error(client: &mut Client, line: &str) -> String {
    client.error(&line.split(' ').collect::<Vec<_>>())
}

fn dirty(server: &Server) -> String {
    server.info("persistence", "rdb_changes_since_last_save").unwrap()
}

#[test]
fn takes_to_the_last_token_denies_and_says_what_it_is() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        assert_eq!(client.five(&kind.take("key", 10, 0))[..2], [1, 10], "{kind:?}");
        assert!(!client.exists("key"), "{kind:?}: a cost of 0 writes nothing");
        for left in (0..10).rev() {
            let [allowed, remaining, retry, _, limit] = client.five(&kind.take("key", 10, 1));
            assert_eq!((allowed, remaining, retry, limit), (1, left, 0, 10), "{kind:?}");
        }
        let [allowed, remaining, retry, reset, limit] = client.five(&kind.take("key", 10, 1));
        assert_eq!((allowed, remaining, limit), (0, 0, 10), "{kind:?}");
        assert!(1 <= retry && retry <= reset, "{kind:?}: {retry} {reset}");
        assert_eq!(client.five(&kind.take("key", 10, 11))[..3], [0, 0, -1], "{kind:?}");
        let fields = ["algorithm", "limit", "level", "denials"].map(|field| info(&mut client, "key", field));
        assert_eq!(fields, [kind.algorithm, "10", "0", "2"], "{kind:?}");
        let found: (String, Vec<String>) = client.line(&format!("SCAN 0 TYPE {} COUNT 100", kind.name));
        assert_eq!(found.1, ["key"], "{kind:?}");
        assert!(client.line::<u64>("MEMORY USAGE key") < 256, "{kind:?}");
        let _: i64 = client.line("DEL key");
        assert_eq!(client.five(&kind.take("key", 10, 10))[..2], [1, 0], "{kind:?}: DEL resets");
        let _: i64 = client.line("UNLINK key");
    }
}

#[test]
fn is_carried_by_a_save_and_a_restart_and_by_a_reload() {
    let mut server = Server::start();
    let mut client = server.connect();
    let keys = write_all(&mut client);
    let (before, digest) = (Sight::of_all(&mut client, &keys), client.dataset_digest());
    let _: String = client.line("DEBUG RELOAD");
    assert_eq!(Sight::of_all(&mut client, &keys), before);
    let _: String = client.line("SAVE");
    server.restart();
    let mut client = server.connect();
    assert_eq!((Sight::of_all(&mut client, &keys), client.dataset_digest()), (before, digest));
}

#[test]
fn is_carried_by_the_append_only_file_and_its_rewrites() {
    for preamble in ["yes", "no"] {
        let mut server =
            Server::with(&["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", preamble]);
        let mut client = server.connect();
        let keys = write_all(&mut client);
        let (before, digest) = (Sight::of_all(&mut client, &keys), client.dataset_digest());
        server.crash_and_restart();
        let mut client = server.connect();
        assert_eq!(Sight::of_all(&mut client, &keys), before, "as it was written, preamble {preamble}");
        let _: String = client.line("BGREWRITEAOF");
        eventually("the file is rewritten", || {
            server.info("persistence", "aof_rewrite_in_progress").as_deref() == Some("0")
                && server.info("persistence", "aof_last_bgrewrite_status").as_deref() == Some("ok")
                && server.info("persistence", "aof_rewrite_scheduled").as_deref() == Some("0")
        });
        // What comes after the rewrite is added to it.
        for kind in KINDS {
            client.five(&kind.take(&format!("{}:fresh", kind.name), 10, 2));
        }
        let after = (Sight::of_all(&mut client, &keys), client.dataset_digest());
        assert_ne!(after.1, digest);
        server.crash_and_restart();
        let mut client = server.connect();
        assert_eq!((Sight::of_all(&mut client, &keys), client.dataset_digest()), after, "preamble {preamble}");
    }
}

#[test]
fn replicas_hold_the_same_whether_they_saw_it_happen_or_not() {
    let primary = primary();
    let early = primary.replica();
    let mut client = primary.connect();
    let keys = write_all(&mut client);
    let late = primary.replica();
    for kind in KINDS {
        client.five(&kind.take(&format!("{}:fresh", kind.name), 10, 2));
        client.five(&format!("RL.GIVE {}:spent 3", kind.name));
        client.five(&kind.take_slowly(&format!("{}:denied", kind.name), 10, 1));
    }
    let (before, digest) = (Sight::of_all(&mut client, &keys), client.dataset_digest());
    for replica in [&early, &late] {
        caught_up(&primary, replica);
        let mut client = replica.connect();
        assert_eq!(Sight::of_all(&mut client, &keys), before);
        assert_eq!(client.dataset_digest(), digest);
    }
    for kind in KINDS {
        let refused = error(&mut late.connect(), &kind.take("new", 10, 1));
        assert!(refused.starts_with("READONLY"), "{refused}");
    }
    // A replica that takes over goes on where the primary was.
    let _: String = early.connect().line("REPLICAOF NO ONE");
    for kind in KINDS {
        let key = format!("{}:fresh", kind.name);
        assert_eq!(early.connect().five(&kind.take(&key, 10, 7))[..2], [1, 0], "{kind:?}");
        assert_eq!(early.connect().five(&kind.take(&key, 10, 1))[0], 0, "{kind:?}");
    }
}

#[test]
fn is_carried_by_dump_restore_copy_rename_and_move() {
    let server = Server::start();
    let mut client = server.connect();
    let keys = write_all(&mut client);
    for key in keys {
        let before = Sight::of(&mut client, &key);
        let dump: Vec<u8> = client.ask(&["DUMP", &key]);
        let at = client.expiry(&key).to_string();
        let _: String = client.ask(&[b"RESTORE".as_slice(), b"restored", at.as_bytes(), &dump, b"REPLACE", b"ABSTTL"]);
        assert_eq!(Sight::of(&mut client, "restored"), before, "{key} restored");
        assert_eq!(client.ask::<i64>(&["COPY", &key, "copied", "REPLACE"]), 1);
        assert_eq!(Sight::of(&mut client, "copied"), before, "{key} copied");
        let _: String = client.line("RENAME copied renamed");
        assert_eq!(Sight::of(&mut client, "renamed"), before, "{key} renamed");
        let _: i64 = client.line("MOVE renamed 1");
        let _: String = client.line("SELECT 1");
        assert_eq!(Sight::of(&mut client, "renamed"), before, "{key} moved");
        let _: String = client.line("FLUSHDB");
        let _: String = client.line("SELECT 0");
        // A copy is a key of its own.
        let _: [i64; 5] = client.ask(&["RL.GIVE", "restored", "1"]);
        assert_eq!(Sight::of(&mut client, &key), before, "{key}");
    }
}

#[test]
fn a_denial_leaves_no_trace() {
    let primary = primary();
    let _replica = primary.replica();
    let mut client = primary.connect();
    for kind in KINDS {
        client.five(&kind.take("key", 10, 8));
        let before = (Sight::of(&mut client, "key"), sent(&primary), dirty(&primary));
        let _: String = client.line("WATCH key missing");
        let mut other = primary.connect();
        for line in [
            kind.take("key", 10, 3),
            kind.take("key", 10, 11),
            kind.take("key", 10, 0),
            kind.take_slowly("key", 20, 21),
            kind.take("missing", 0, 1),
            kind.take("missing", 10, 11),
            "RL.PEEK key".to_owned(),
        ] {
            other.five(&line);
        }
        assert_eq!((Sight::of(&mut client, "key"), sent(&primary), dirty(&primary)), before, "{kind:?}");
        assert_eq!(client.transaction::<Value>(&["PING"]), Value::Array(vec![Value::SimpleString("PONG".into())]));
        assert!(!client.exists("missing"), "{kind:?}");
        assert_eq!(info(&mut client, "key", "denials"), "3", "{kind:?}");
        let _: i64 = client.line("DEL key");
    }
}

#[test]
fn a_denial_under_another_limit_brings_it_into_force_once() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        client.five(&kind.take("key", 10, 10));
        let mut stream = Stream::of(&server);
        for _ in 0..3 {
            assert_eq!(client.five(&kind.take_slowly("key", 5, 1))[..2], [0, 0], "{kind:?}");
        }
        assert_eq!(names(&stream.since(&server)), ["RL.RESTORE"], "{kind:?}");
        assert_eq!(info(&mut client, "key", "limit"), "5", "{kind:?}");
        let _: i64 = client.line("DEL key");
    }
}

#[test]
fn a_take_is_one_record_and_breaks_a_watch() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        let mut stream = Stream::of(&server);
        client.five(&kind.take("key", 10, 1));
        client.five(&kind.take("key", 10, 1));
        assert_eq!(names(&stream.since(&server)), ["RL.RESTORE", "RL.RESTORE"], "{kind:?}");
        let _: String = client.line("WATCH key");
        server.connect().five(&kind.take("key", 10, 1));
        assert_eq!(client.transaction::<Value>(&["PING"]), Value::Nil, "{kind:?}");
        let _: i64 = client.line("DEL key");
    }
}

#[test]
fn works_in_transactions_and_scripts() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        let (take, denied) = (kind.take("key", 10, 6), kind.take("key", 10, 5));
        let answers: Vec<[i64; 5]> = client.transaction(&[&take, &denied, "RL.PEEK key", "RL.GIVE key 2"]);
        let told: Vec<_> = answers.iter().map(|five| (five[0], five[1])).collect();
        assert_eq!(told, [(1, 4), (0, 4), (1, 4), (1, 6)], "{kind:?}");
        let script = "return redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], ARGV[4])";
        let five: [i64; 5] = client.ask(&["EVAL", script, "1", "key", kind.command, "10", kind.per, "6"]);
        assert_eq!(five[..2], [1, 0], "{kind:?}");
        let _: i64 = client.line("DEL key");
    }
}

#[test]
fn a_key_of_another_type_is_left_alone() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        client.five(&kind.take(kind.name, 10, 1));
    }
    for line in ["SET string 1", "RPUSH list a", "SADD set a", "ZADD zset 1 a", "HSET hash a 1", "XADD stream * a 1"] {
        let _: Value = client.line(line);
    }
    let digest = client.dataset_digest();
    for key in ["string", "list", "set", "zset", "hash", "stream"] {
        for line in [format!("RL.PEEK {key}"), format!("RL.GIVE {key} 1"), format!("RL.INFO {key}")] {
            assert_eq!(error(&mut client, &line), WRONG_TYPE, "{line}");
        }
        for kind in KINDS {
            assert_eq!(error(&mut client, &kind.take(key, 10, 1)), WRONG_TYPE, "{kind:?} on {key}");
        }
    }
    for (holding, asking) in KINDS.iter().flat_map(|holding| KINDS.map(|asking| (holding, asking))) {
        if holding.name != asking.name {
            let line = asking.take(holding.name, 10, 1);
            assert_eq!(error(&mut client, &line), WRONG_TYPE, "{line}");
        }
        let get = format!("GET {}", holding.name);
        assert_eq!(error(&mut client, &get), WRONG_TYPE, "{get}");
    }
    for kind in &KINDS[1..] {
        for line in ["RL.PEEK @ 10 5", "RL.LEASE @ 10 5 1", "RL.RESERVE @ 10 5 1 1s", "RL.MTAKE 1 @ 10 5 1"] {
            assert_eq!(error(&mut client, &line.replace('@', kind.name)), WRONG_TYPE, "{line} on {kind:?}");
        }
    }
    assert_eq!(client.dataset_digest(), digest);
}

#[test]
fn a_refund_never_makes_more_than_the_limit_and_neither_makes_nor_revives_a_key() {
    let primary = primary();
    let replica = primary.replica();
    let mut client = primary.connect();
    for kind in KINDS {
        assert_eq!(client.line::<Value>("RL.GIVE key 5"), Value::Nil, "{kind:?}");
        assert!(!client.exists("key"));
        client.five(&kind.take("key", 10, 8));
        assert_eq!(client.five("RL.GIVE key 0")[..2], [1, 2], "{kind:?}");
        assert_eq!(client.five("RL.GIVE key 3")[..2], [1, 5], "{kind:?}");
        let mut stream = Stream::of(&primary);
        assert_eq!(client.five("RL.GIVE key 9007199254740991"), [1, 10, 0, 0, 10], "{kind:?}");
        assert_eq!(names(&stream.since(&primary)), ["DEL"], "{kind:?}");
        assert!(!client.exists("key"), "{kind:?}: a full one says no more than none");
        client.five(&kind.take("key", 10, 8));
        let _: i64 = client.line("PEXPIREAT key 1");
        assert_eq!(client.line::<Value>("RL.GIVE key 5"), Value::Nil, "{kind:?}: an expired one is not revived");
        caught_up(&primary, &replica);
        assert_eq!(replica.connect().line::<i64>("DBSIZE"), 0, "{kind:?}");
    }
}

#[test]
fn the_key_expires_when_nothing_is_used_any_more_and_not_much_later() {
    let server = Server::start();
    let mut client = server.connect();
    for kind in KINDS {
        for cost in [1, 9] {
            let taken = client.timed(&kind.take("key", 10, cost));
            let unused_ms = taken.reply.reset_after_ms + i64::try_from(taken.to_us / 1_000).unwrap();
            let early_ms = taken.reply.reset_after_ms + i64::try_from(taken.from_us / 1_000).unwrap() - 1;
            let expiry = client.expiry("key");
            assert!((early_ms..=unused_ms + kind.slack_ms + 1).contains(&expiry), "{kind:?}: {expiry} {taken:?}");
        }
        let _: i64 = client.line("DEL key");
    }
}

#[test]
fn goes_on_deciding_about_keys_that_exist_when_memory_is_used_up() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    let mut client = server.connect();
    for kind in KINDS {
        client.five(&kind.take(kind.name, 10, 1));
    }
    let _: String = client.line("CONFIG SET maxmemory 1");
    for kind in KINDS {
        assert_eq!(client.five(&kind.take(kind.name, 10, 9))[..2], [1, 0], "{kind:?}");
        assert_eq!(client.five(&kind.take(kind.name, 10, 1))[0], 0, "{kind:?}");
        assert_eq!(error(&mut client, &kind.take("new", 10, 1)), OOM, "{kind:?}");
        assert_eq!(client.five(&kind.take("new", 10, 11))[0], 0, "{kind:?}: a denial makes no key");
        assert_eq!(client.five(&format!("RL.GIVE {} 4", kind.name))[..2], [1, 4], "{kind:?}");
    }
}

#[test]
fn the_values_that_there_are_are_counted() {
    let server = Server::start();
    let mut client = server.connect();
    let counts = || {
        let fields = ["rl_buckets", "rl_windows", "rl_counters", "rl_quotas"];
        fields.map(|field| server.info("rl", field).unwrap().parse::<usize>().unwrap())
    };
    let keys = write_all(&mut client);
    assert_eq!(counts(), [keys.len() / 4; 4]);
    let _: String = client.line("DEBUG RELOAD");
    eventually("the old values are freed", || counts() == [keys.len() / 4; 4]);
    for kind in KINDS {
        let _: i64 = client.line(&format!("UNLINK {}:fresh", kind.name));
        let _: i64 = client.line(&format!("COPY {0}:spent {0}:copy", kind.name));
        let _: i64 = client.line(&format!("DEL {}:raised", kind.name));
    }
    eventually("the values are freed", || counts() == [keys.len() / 4 - 1; 4]);
    let _: String = client.line("FLUSHALL ASYNC");
    eventually("the values are freed", || counts() == [0; 4]);
}

#[test]
fn fifty_clients_at_once_are_admitted_the_limit_and_no_more() {
    let server = Server::start();
    for kind in KINDS {
        let admitted: u64 = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..50)
                .map(|_| {
                    let mut client = server.connect();
                    let line = kind.take("key", 1_000, 1);
                    scope.spawn(move || (0..40).filter(|_| client.five(&line)[0] == 1).count() as u64)
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1_000, "{kind:?}");
        let _: i64 = server.connect().line("DEL key");
    }
}
