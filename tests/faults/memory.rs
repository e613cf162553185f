//! Many keys come and go, and the memory with them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use crate::support::kinds::KINDS;
use crate::support::{Client, Server, eventually};

const KEYS: u64 = 1_000_000;

fn used(client: &mut Client) -> f64 {
    let memory: String = client.line("INFO memory");
    let line = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.parse().unwrap()
}

/// Has the server carry out a line for each of a million keys, on a connection of its own, whose buffers go with it.
fn for_each_key(server: &Server, line: impl Fn(u64) -> String) {
    server.connect().feed((0..KEYS).map(line));
}

/// Writes a million keys, a quarter of each type.
fn fill(server: &Server) {
    for_each_key(server, |number| KINDS[number as usize % 4].take(&format!("key:{number}"), 10, 1));
    assert_eq!(server.connect().line::<u64>("DBSIZE"), KEYS);
}

#[test]
fn a_million_keys_that_go_give_their_memory_back() {
    let server = Server::start();
    // Once, so that what the server and the module keep for good is there: buffers, and a histogram for each command.
    fill(&server);
    for_each_key(&server, |number| format!("{} key:{number}", ["DEL", "UNLINK"][number as usize % 2]));
    let once = ["PEXPIRE key:3 1", "DBSIZE", "INFO memory", "FLUSHALL SYNC", "FLUSHALL ASYNC"];
    server.connect().feed(once.map(str::to_owned));
    let before = used(&mut server.connect());
    for way in ["DEL", "UNLINK", "PEXPIRE", "FLUSHALL SYNC", "FLUSHALL ASYNC"] {
        fill(&server);
        let full = used(&mut server.connect());
        assert!(full > before + 50.0 * KEYS as f64, "{full}");
        match way {
            "DEL" | "UNLINK" => for_each_key(&server, |number| format!("{way} key:{number}")),
            "PEXPIRE" => for_each_key(&server, |number| format!("PEXPIRE key:{number} 1")),
            _ => server.connect().feed([way.to_owned()]),
        }
        eventually("the keys are gone", || server.connect().line::<u64>("DBSIZE") == 0);
        let (begun, mut after) = (Instant::now(), f64::MAX);
        while after > before * 1.01 && begun.elapsed() < Duration::from_secs(20) {
            after = used(&mut server.connect());
        }
        println!("{way}: {before} bytes before, {full} with the keys, {after} after");
        assert!(after <= before * 1.01, "{way}");
    }
}

#[test]
fn active_defragmentation_moves_values_under_load_and_changes_none() {
    let server = Server::start();
    let mut client = server.connect();
    if client.try_ask::<String>(&["CONFIG", "SET", "activedefrag", "yes"]).is_err() {
        crate::support::not_tested("active defragmentation: the server was built without");
        return;
    }
    for (option, value) in [
        ("active-defrag-threshold-lower", "0"),
        ("active-defrag-ignore-bytes", "1"),
        ("active-defrag-cycle-min", "25"),
        ("active-defrag-cycle-max", "75"),
    ] {
        let _: String = client.line(&format!("CONFIG SET {option} {value}"));
    }
    let take = |number: u64| KINDS[number as usize % 4].take(&format!("key:{number}"), 10, 1);
    // Windows of many charges, too: their values are two pieces.
    client.feed((0..200_000).map(take));
    client.feed((0..50_000).map(|number| format!("RL.WINDOW log:{} 1000 10d", number % 100)));
    // Holes: every second key goes.
    client.feed((0..200_000).filter(|number| number % 8 < 4).map(|number| format!("DEL key:{number}")));
    let hits = || server.info("stats", "active_defrag_hits").unwrap().parse::<u64>().unwrap();
    let (digest, begun) = (client.dataset_digest(), hits());
    eventually("values are moved", || hits() > begun + 10_000);
    assert_eq!(client.dataset_digest(), digest);

    // The same under load: more holes, while other keys of every type are taken from.
    let busy = |number: u64| KINDS[number as usize % 4].take(&format!("busy:{number}"), 100_000, 1);
    let (stop, quiet) = (AtomicBool::new(false), hits());
    let rounds = scope(|scope| {
        let pressing = scope.spawn(|| {
            let (mut client, mut rounds) = (server.connect(), 0);
            while !stop.load(Ordering::Relaxed) {
                client.feed((0..1_000).map(busy));
                rounds += 1;
            }
            rounds
        });
        client
            .feed((0..200_000).filter(|number| matches!(number % 8, 4 | 5)).map(|number| format!("DEL key:{number}")));
        eventually("values are moved", || hits() > quiet + 10_000);
        stop.store(true, Ordering::Relaxed);
        pressing.join().unwrap()
    });
    assert!(rounds > 3, "there was a load: {rounds}");
    for number in 0..1_000 {
        let five = client.five(&format!("RL.PEEK busy:{number}"));
        assert_eq!([five[1], five[4]], [100_000 - rounds, 100_000], "busy:{number}");
    }
    for number in (0..200_000).filter(|number| number % 8 >= 6).step_by(101) {
        assert_eq!(client.five(&take(number))[..2], [1, 8], "key:{number}");
    }
    for log in 0..100 {
        assert_eq!(client.five(&format!("RL.WINDOW log:{log} 1000 10d 500"))[..2], [1, 0], "log:{log}");
        assert_eq!(client.five(&format!("RL.WINDOW log:{log} 1000 10d"))[0], 0, "log:{log}");
    }
    let moved = hits();
    let _: String = client.line("DEBUG RELOAD");
    println!("{} pieces moved, {} of them under a load of {rounds},000 takes", moved - begun, moved - quiet);
}

#[test]
fn decisions_go_on_under_every_policy_when_memory_is_used_up() {
    for policy in ["noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"] {
        let server = Server::with(&["--maxmemory-policy", policy]);
        let mut client = server.connect();
        client.feed((0..20_000).map(|number| KINDS[number as usize % 4].take(&format!("key:{number}"), 10, 1)));
        let most = used(&mut client) + 3_000_000.0;
        let _: String = client.line(&format!("CONFIG SET maxmemory {most:.0}"));
        let (mut allowed, mut refused) = (0, 0);
        for number in 20_000..120_000 {
            let words = KINDS[number % 4].take(&format!("key:{number}"), 10, 1);
            match client.try_ask::<[i64; 5]>(&words.split(' ').collect::<Vec<_>>()) {
                Ok(five) => allowed += five[0],
                Err(error) => {
                    assert_eq!(error.code(), Some("OOM"), "{policy}: {error}");
                    refused += 1;
                }
            }
        }
        let held = used(&mut client);
        assert!(held <= most * 1.05, "{policy}: {held} of {most}");
        // Keys that are there are decided about.
        let key: String = client.line("RANDOMKEY");
        assert_eq!(client.five(&format!("RL.PEEK {key}"))[4], 10, "{policy}");
        assert_eq!(client.five(&format!("RL.GIVE {key} 0"))[4], 10, "{policy}");
        let evicted = server.info("stats", "evicted_keys").unwrap();
        println!("{policy}: {allowed} allowed, {refused} refused, {evicted} evicted");
        assert_eq!(refused > 1_000, policy == "noeviction", "{policy}");
    }
}
