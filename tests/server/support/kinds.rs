//! The types that a key can be of, and what can be done with each: for what must hold of all of them.

use super::Client;

/// A type, and the command that takes from it under a slow limit.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// What `TYPE` says.
    pub name: &'static str,
    /// What `RL.INFO` says.
    pub algorithm: &'static str,
    pub command: &'static str,
    /// What follows the limit.
    pub per: &'static str,
    /// Another one of those.
    pub other_per: &'static str,
    /// How long the key may live after its limit is unused again, in milliseconds.
    pub slack_ms: i64,
}

const DAY_MS: i64 = 86_400_000;

/// All of them. Nothing comes back while a test runs: the periods are days, and the quota's boundaries decades apart.
pub const KINDS: [Kind; 4] = [
    Kind {
        name: "rl-bucket",
        algorithm: "token-bucket",
        command: "RL.TAKE",
        per: "10/10d",
        other_per: "10/20d",
        slack_ms: 1_000 + 10 * DAY_MS / 8,
    },
    Kind {
        name: "rl-window",
        algorithm: "sliding-window-log",
        command: "RL.WINDOW",
        per: "10d",
        other_per: "20d",
        slack_ms: 1_000 + 10 * DAY_MS / 8,
    },
    Kind {
        name: "rl-counts",
        algorithm: "sliding-window-counter",
        command: "RL.COUNTER",
        per: "10d",
        other_per: "20d",
        slack_ms: 1_000 + 10 * DAY_MS / 8,
    },
    Kind {
        name: "rl-quotas",
        algorithm: "fixed-window",
        command: "RL.QUOTA",
        per: "10000d",
        other_per: "20000d",
        slack_ms: 0,
    },
];

/// What was done to a key to bring it into a state: `take` and what follows is the kind's own command.
const STATES: [(&str, &[&str]); 6] = [
    ("fresh", &["take 10 PER 1"]),
    ("spent", &["take 10 PER 4", "take 10 PER 6"]),
    ("denied", &["take 10 PER 10", "take 10 PER 1", "take 10 PER 11"]),
    ("refunded", &["take 10 PER 4", "take 10 PER 4", "RL.GIVE @ 5"]),
    ("raised", &["take 10 PER 8", "take 20 OTHER 7"]),
    ("cut-by-a-denial", &["take 10 PER 8", "take 5 PER 1"]),
];

impl Kind {
    /// The line that takes `cost` of `limit` from `key`.
    pub fn take(&self, key: &str, limit: u64, cost: u64) -> String {
        format!("{} {key} {limit} {} {cost}", self.command, self.per)
    }

    /// The same under a limit that takes twice as long.
    pub fn take_slowly(&self, key: &str, limit: u64, cost: u64) -> String {
        format!("{} {key} {limit} {} {cost}", self.command, self.other_per)
    }

    /// Writes a key in each state, and returns their names.
    pub fn write_states(&self, client: &mut Client) -> Vec<String> {
        let write = |(state, lines): &(&str, &[&str])| {
            let key = format!("{}:{state}", self.name);
            for line in *lines {
                let line = line.replace("take", &format!("{} @", self.command));
                let line = line.replace("PER", self.per).replace("OTHER", self.other_per).replace('@', &key);
                client.five(&line);
            }
            key
        };
        STATES.iter().map(write).collect()
    }
}

/// Writes every state of every kind, and returns the keys.
pub fn write_all(client: &mut Client) -> Vec<String> {
    KINDS.iter().flat_map(|kind| kind.write_states(client)).collect()
}

/// All that can be seen of a key but its denials, which are not carried.
#[derive(Debug, PartialEq, Eq)]
pub struct Sight {
    kind: String,
    dump: Vec<u8>,
    digest: String,
    expiry: i64,
    /// Allowed, remaining and limit.
    peek: [i64; 3],
    info: Vec<(String, String)>,
}

impl Sight {
    pub fn of(client: &mut Client, key: &str) -> Self {
        let [allowed, remaining, _, _, limit] = client.five(&format!("RL.PEEK {key}"));
        let mut info: Vec<(String, String)> = client.ask(&["RL.INFO", key]);
        info.retain(|(name, _)| !["level", "denials", "last_denial_s", "ttl_ms"].contains(&name.as_str()));
        Self {
            kind: client.ask(&["TYPE", key]),
            dump: client.ask(&["DUMP", key]),
            digest: client.digest(key),
            expiry: client.expiry(key),
            peek: [allowed, remaining, limit],
            info,
        }
    }

    /// Those of many keys.
    pub fn of_all(client: &mut Client, keys: &[String]) -> Vec<Self> {
        keys.iter().map(|key| Self::of(client, key)).collect()
    }
}
