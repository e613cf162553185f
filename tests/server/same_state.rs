//! Whatever sequence of commands was carried out, by us and by others, a primary, its replica and a server that has
//! loaded what was saved hold the same.

use std::thread::sleep;
use std::time::Duration;

use redis::{ConnectionLike, Pipeline, Value};

use crate::support::random::Random;
use crate::support::replicas::{caught_up, primary_with};
use crate::support::{Client, Server, now_us};

const KEYS: u64 = 8;
const LIMITS: [&str; 8] =
    ["10 5/h", "10 6/h", "10 0", "20 0", "1000 100/60", "3 1/7d", "9007199254740991 1/9007199254.740991", "5 1000"];
/// What others do to a key, `@` and `%` being two keys.
const OTHERS: [&str; 11] = [
    "PERSIST @",
    "PEXPIRE @ 2",
    "PEXPIRE @ 3600000",
    "PEXPIREAT @ 4102444800123",
    "RENAME @ %",
    "COPY @ % REPLACE",
    "DEL @",
    "UNLINK @",
    "SET @ string EX 1000",
    "GETDEL @",
    "SWAPDB 0 0",
];

fn some_key(random: &mut Random) -> String {
    format!("key:{}", random.below(KEYS))
}

fn some_limit(random: &mut Random) -> &'static str {
    LIMITS[random.index(LIMITS.len())]
}

/// A command line about `key`, and perhaps another; one that is refused changes nothing, which is as good a part of a
/// sequence.
fn some_command(random: &mut Random, key: &str, usual_limit: &str) -> String {
    let line = match random.below(10) {
        0..=5 => format!("RL.TAKE @ {usual_limit} {}", random.below(4)),
        6 => format!("RL.TAKE @ {}", some_limit(random)),
        7 => format!("RL.PEEK @ {}", some_limit(random)),
        _ => OTHERS[random.index(OTHERS.len())].to_owned(),
    };
    line.replace('@', key).replace('%', &some_key(random))
}

/// Commands on one key after the other, in transactions and not.
fn some_sequence(random: &mut Random) -> Pipeline {
    let mut pipeline = redis::pipe();
    for _ in 0..100 {
        let (key, limit) = (some_key(random), some_limit(random));
        let whole = random.below(2) == 0;
        let commands = (0..1 + random.below(10)).map(|_| some_command(random, &key, limit));
        let commands: Vec<_> = match whole {
            true => ["MULTI".to_owned()].into_iter().chain(commands).chain(["EXEC".to_owned()]).collect(),
            false => commands.collect(),
        };
        for command in commands {
            let mut words = command.split(' ');
            let first = pipeline.cmd(words.next().unwrap());
            words.for_each(|word| {
                first.arg(word);
            });
        }
    }
    pipeline
}

/// The digest of everything, and when each key expires.
fn seen(client: &mut Client) -> (String, Vec<i64>) {
    let expiries = (0..KEYS).map(|key| client.expiry(&format!("key:{key}"))).collect();
    (client.dataset_digest(), expiries)
}

fn assert_same_everywhere(primary: &Server, replica: &Server, round: usize) {
    let mut client = primary.connect();
    // The shortest expiry runs out, and the keys go where they are asked for.
    sleep(Duration::from_millis(4));
    for key in 0..KEYS {
        let _: i64 = client.ask(&["EXISTS", &format!("key:{key}")]);
    }
    caught_up(primary, replica);
    let there = seen(&mut client);
    assert_eq!(seen(&mut replica.connect()), there, "round {round}: on the replica");
}

#[test]
fn any_sequence_leaves_primary_replica_and_what_is_saved_equal() {
    let primary = primary_with(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let mut client = primary.connect();
    // Nothing expires while it is compared.
    let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
    let replica = primary.replica();
    let mut random = Random::seeded();
    for round in 0..20 {
        let sequence = some_sequence(&mut random);
        let answers = client.0.req_packed_commands(&sequence.get_packed_pipeline(), 0, sequence.len()).unwrap();
        let taken = answers.iter().filter(|answer| matches!(answer, Value::Array(fields) if fields.len() == 5)).count();
        assert!(taken > 5, "round {round}: {taken} decisions in {answers:?}");
        assert_same_everywhere(&primary, &replica, round);
    }
    // What ends soon would be gone after a reload for that alone.
    let soon = i64::try_from(now_us() / 1000).unwrap() + 60_000;
    for key in (0..KEYS).map(|key| format!("key:{key}")) {
        if (0..soon).contains(&client.expiry(&key)) {
            let _: () = client.ask(&["DEL", &key]);
        }
    }
    let there = seen(&mut client);
    let _: () = client.line("DEBUG RELOAD");
    assert_eq!(seen(&mut client), there, "after DEBUG RELOAD");
    let _: () = client.line("DEBUG LOADAOF");
    assert_eq!(seen(&mut client), there, "after DEBUG LOADAOF");
}
