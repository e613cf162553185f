//! The states that every way of carrying a bucket has to carry, and how to tell that one was carried.
//!
//! All limits are slow, so that time does not blur what is compared.

use rl_core::Held;
use rl_core::codec::{self, Record, RecordedExpiry};

use super::dump::Dump;
use super::{Client, Reply, held};

/// A key, and the commands that lead to its state; `@` stands for the key.
pub struct State {
    pub key: &'static str,
    commands: &'static [&'static str],
}

const MAX: &str = "9007199254740991";

/// What commands can lead to.
pub const STATES: &[State] = &[
    State { key: "fresh", commands: &["RL.TAKE @ 10 5/h"] },
    State { key: "emptied", commands: &["RL.TAKE @ 10 5/h 10"] },
    State { key: "denied", commands: &["RL.TAKE @ 10 5/h 10", "RL.TAKE @ 10 5/h", "RL.TAKE @ 10 5/h 7"] },
    State { key: "once", commands: &["RL.TAKE @ 20 0 7"] },
    State { key: "once:emptied", commands: &["RL.TAKE @ 20 0 20", "RL.TAKE @ 20 0"] },
    State { key: "once:with-expiry", commands: &["RL.TAKE @ 20 0 7", "PEXPIREAT @ 4102444800123", "RL.TAKE @ 20 0"] },
    State { key: "huge", commands: &["RL.TAKE @ MAX 1/9007199254.740991"] },
    State { key: "huge:emptied", commands: &["RL.TAKE @ MAX 1/9007199254.740991 MAX"] },
    State { key: "huge:fast", commands: &["RL.TAKE @ MAX 1000000/d 9007199254740000"] },
    State { key: "raised", commands: &["RL.TAKE @ 10 5/h 8", "RL.TAKE @ 100 50/h"] },
    State { key: "cut", commands: &["RL.TAKE @ 100 50/h 40", "RL.TAKE @ 10 5/d"] },
    State { key: "raised-by-a-denial", commands: &["RL.TAKE @ 10 5/h 10", "RL.TAKE @ 10 6/h"] },
    State { key: "stopped", commands: &["RL.TAKE @ 10 5/h 4", "RL.TAKE @ 10 0"] },
    State { key: "fraction", commands: &["RL.TAKE @ 100000 100/60 99999"] },
    State { key: "thirds", commands: &["RL.TAKE @ 7 1/7d", "RL.TAKE @ 7 1/3d"] },
    State { key: "a\0key\r\nof\u{1}bytes", commands: &["RL.TAKE @ 10 5/h 3"] },
];

/// A key in a state that no command leads to yet: tokens are owed.
const OWING: &str = "owing";
/// A key with a bucket in another database.
const ELSEWHERE: &str = "elsewhere";

impl State {
    /// Brings the key into the state.
    pub fn write(&self, client: &mut Client) {
        for command in self.commands {
            let words: Vec<String> =
                command.split(' ').map(|word| word.replace("MAX", MAX).replace('@', self.key)).collect();
            let _: redis::Value = client.ask(&words);
        }
    }
}

/// Writes every state.
pub fn write_all(client: &mut Client) {
    for state in STATES {
        state.write(client);
    }
    restore(client, OWING, RecordedExpiry::None, &held(10, "5/h", (0, 123_456_789), 1 << 52));
    let _: () = client.line("SELECT 9");
    let _: [i64; 5] = client.line(&format!("RL.TAKE {ELSEWHERE} 10 5/h 2"));
    let _: () = client.line("SELECT 0");
}

/// The keys of database 0 that [`write_all`] has written.
pub fn keys() -> impl Iterator<Item = &'static str> {
    STATES.iter().map(|state| state.key).chain([OWING])
}

/// Puts a state into a key.
pub fn restore(client: &mut Client, key: &str, expiry: RecordedExpiry, state: &Held) {
    let payload = codec::encode_record(&Record { expiry, state: *state });
    let answer: String = client.ask(&[b"RL.RESTORE".as_slice(), key.as_bytes(), payload.as_bytes()]);
    assert_eq!(answer, "OK");
}

/// All that can be seen of a key.
#[derive(Debug, Clone)]
pub struct Sight {
    pub expiry: i64,
    /// Of the value, and of whether there is an expiry.
    digest: String,
    value: Vec<u8>,
    pub peek: Reply,
    /// Type, limit, rate and last change.
    facts: [String; 4],
}

impl Sight {
    pub fn of(client: &mut Client, key: &str) -> Self {
        let [allowed, remaining, retry_after_ms, reset_after_ms, limit]: [i64; 5] = client.ask(&["RL.PEEK", key]);
        Self {
            expiry: client.expiry(key),
            digest: client.digest(key),
            value: Dump::of(client, key).value().to_vec(),
            peek: Reply { allowed, remaining, retry_after_ms, reset_after_ms, limit },
            facts: [
                client.ask(&["TYPE", key]),
                info(client, key, "limit"),
                info(client, key, "rate"),
                info(client, key, "last_change_ms"),
            ],
        }
    }

    /// Panics unless `later` shows the same state. The waits may have become shorter since, the tokens more, as much as
    /// a minute can do to the limits above.
    pub fn assert_seen_in(&self, later: &Self, what: &str) {
        assert_eq!((&self.digest, self.expiry), (&later.digest, later.expiry), "{what}: {self:?} {later:?}");
        self.assert_same_bucket(later, what);
    }

    /// As [`assert_seen_in`](Self::assert_seen_in), whatever the expiry.
    pub fn assert_same_bucket(&self, later: &Self, what: &str) {
        let (before, after) = (self.peek, later.peek);
        assert_eq!((&self.value, &self.facts), (&later.value, &later.facts), "{what}: {self:?} {later:?}");
        assert_eq!(before.limit, after.limit, "{what}: {before:?} {after:?}");
        assert!((0..=100).contains(&(after.remaining - before.remaining)), "{what}: {before:?} {after:?}");
        assert!((0..=60_000).contains(&(before.reset_after_ms - after.reset_after_ms)), "{what}: {before:?} {after:?}");
        if before.allowed == after.allowed {
            let waited = before.retry_after_ms - after.retry_after_ms;
            assert!((0..=60_000).contains(&waited), "{what}: {before:?} {after:?}");
        } else {
            assert!(after.remaining > before.remaining, "{what}: {before:?} {after:?}");
        }
    }
}

/// A field of `RL.INFO`.
pub fn info(client: &mut Client, key: &str, field: &str) -> String {
    let pairs: Vec<(String, String)> = client.ask(&["RL.INFO", key]);
    pairs.into_iter().find(|(name, _)| name == field).unwrap_or_else(|| panic!("no {field} in RL.INFO {key}")).1
}

/// All that can be seen of the dataset that [`write_all`] has written.
pub struct Dataset {
    digest: String,
    sights: Vec<(&'static str, Sight)>,
}

impl Dataset {
    pub fn of(client: &mut Client) -> Self {
        let sights = keys().map(|key| (key, Sight::of(client, key))).collect();
        Self { digest: client.dataset_digest(), sights }
    }

    /// Writes every state, and looks.
    pub fn written(client: &mut Client) -> Self {
        write_all(client);
        Self::of(client)
    }

    /// Panics unless a server holds the same dataset.
    pub fn assert_held_by(&self, client: &mut Client, what: &str) {
        let later = Self::of(client);
        for ((key, before), (_, after)) in self.sights.iter().zip(&later.sights) {
            before.assert_seen_in(after, &format!("{key:?} {what}"));
        }
        assert_eq!(self.digest, later.digest, "digest of the dataset {what}");
    }
}
