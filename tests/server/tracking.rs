//! Client-side caches: told of what changes a key, and of nothing else.

use std::sync::mpsc::{Receiver, channel};

use redis::{PushInfo, PushKind, Value};

use crate::support::{Client, Server};

/// A client that keeps what it reads, and what it is told to forget.
struct Cache {
    client: Client,
    pushes: Receiver<PushInfo>,
}

impl Cache {
    fn with(server: &Server, tracking: &str) -> Self {
        let mut client = server.connect_resp3();
        let (sender, pushes) = channel();
        client.0.set_push_sender(sender);
        assert_eq!(client.line::<String>(tracking), "OK");
        Self { client, pushes }
    }

    /// The keys to forget that have come by now. The server writes them ahead of what it answers later.
    fn told(&mut self) -> Vec<String> {
        assert_eq!(self.client.line::<String>("PING"), "PONG");
        self.pushes.try_iter().filter(|push| push.kind == PushKind::Invalidate).flat_map(keys_of).collect()
    }
}

fn keys_of(push: PushInfo) -> Vec<String> {
    push.data.into_iter().flat_map(redis::from_redis_value::<Vec<String>>).flatten().collect()
}

#[test]
fn a_take_invalidates_what_was_read_and_a_denial_does_not() {
    let server = Server::start();
    let mut other = server.connect();
    other.reply("RL.TAKE key 2 0");
    let mut cache = Cache::with(&server, "CLIENT TRACKING ON");
    cache.client.reply("RL.PEEK key");
    for line in ["RL.TAKE key 2 0 2", "RL.TAKE key 2 0 0", "RL.TAKE key 2 0 3", "RL.PEEK key", "RL.INFO key"] {
        other.line::<Value>(line);
        assert!(cache.told().is_empty(), "{line}");
    }
    assert_eq!(other.reply("RL.TAKE key 2 0").allowed, 1);
    assert_eq!(cache.told(), ["key"]);
}

#[test]
fn what_info_told_is_invalidated_too() {
    let server = Server::start();
    let mut other = server.connect();
    let mut cache = Cache::with(&server, "CLIENT TRACKING ON");
    assert_eq!(cache.client.line::<Value>("RL.INFO key"), Value::Nil);
    assert_eq!(other.reply("RL.TAKE key 2 0").allowed, 1);
    assert_eq!(cache.told(), ["key"]);
}

#[test]
fn a_broadcast_tells_of_takes_and_not_of_denials() {
    let server = Server::start();
    let mut other = server.connect();
    let mut cache = Cache::with(&server, "CLIENT TRACKING ON BCAST PREFIX rl:");
    other.reply("RL.TAKE rl:a 1 0");
    assert_eq!(cache.told(), ["rl:a"]);
    for line in ["RL.TAKE rl:a 1 0", "RL.TAKE rl:b 1 0 2", "RL.TAKE rl:b 1 0 0", "RL.PEEK rl:b 1 0", "RL.TAKE else 1 0"]
    {
        other.reply(line);
        assert!(cache.told().is_empty(), "{line}");
    }
    // A denial that brings a limit into force is a change.
    other.reply("RL.TAKE rl:a 1 1/h");
    assert_eq!(cache.told(), ["rl:a"]);
}
