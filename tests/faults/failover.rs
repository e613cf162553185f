//! A primary that dies, a link that is cut, and what is left of the state then.

use std::cell::Cell;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis::Value;
use tempfile::TempDir;

use crate::load::{targets, under_load, used};
use crate::support::replicas::{caught_up, primary, primary_with};
use crate::support::{Server, eventually, free_port, server_binary};

/// Sentinels that watch a primary; killed when dropped.
struct Sentinels(Vec<(Child, u16, TempDir)>);

impl Sentinels {
    fn watching(primary: u16) -> Self {
        let start = |_| {
            let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
            let file = folder.path().join("sentinel.conf");
            let lines = format!(
                "port {port}\ndir {}\nsentinel monitor rl 127.0.0.1 {primary} 2\nsentinel down-after-milliseconds rl 700\n\
                 sentinel failover-timeout rl 5000\nsentinel parallel-syncs rl 2\n",
                folder.path().display()
            );
            std::fs::write(&file, lines).unwrap();
            let mut command = Command::new(server_binary());
            let process = command.arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
            (process, port, folder)
        };
        let sentinels = Self((0..3).map(start).collect());
        eventually("the sentinels know each other and the replicas", || {
            sentinels.0.iter().all(|(_, port, _)| {
                let Ok(mut sentinel) = at(*port) else { return false };
                let told: Result<Vec<Vec<Value>>, _> =
                    redis::cmd("SENTINEL").arg("SENTINELS").arg("rl").query(&mut sentinel);
                let replicas: Result<Vec<Vec<Value>>, _> =
                    redis::cmd("SENTINEL").arg("REPLICAS").arg("rl").query(&mut sentinel);
                told.is_ok_and(|told| told.len() == 2) && replicas.is_ok_and(|replicas| replicas.len() == 2)
            })
        });
        sentinels
    }

    /// The port of the primary, as they see it.
    fn primary(&self) -> Option<u16> {
        let mut sentinel = at(self.0[0].1).ok()?;
        let [_, port]: [String; 2] =
            redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg("rl").query(&mut sentinel).ok()?;
        port.parse().ok()
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for (process, ..) in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn at(port: u16) -> redis::RedisResult<redis::Connection> {
    redis::Client::open(format!("redis://127.0.0.1:{port}"))?.get_connection_with_timeout(Duration::from_secs(5))
}

fn replica_of(primary: &Server) -> Server {
    let port = free_port().to_string();
    primary.replica_with(&["--port", &port, "--repl-diskless-sync-delay", "0"])
}

#[test]
fn a_replica_that_sentinel_promotes_has_all_that_was_replicated_and_goes_on() {
    let mut primary = primary();
    let replicas = [replica_of(&primary), replica_of(&primary)];
    let sentinels = Sentinels::watching(primary.port());
    let targets = targets("failover");
    let confirmed = Cell::new(None);
    let pid = primary.pid();
    let logs = under_load(&primary, &targets, || {
        sleep(Duration::from_millis(500));
        // All that is acknowledged by now is on both replicas when this returns.
        let mut client = primary.connect();
        let told: Vec<u64> = targets.iter().map(|target| used(&mut client, target)).collect();
        client.five("RL.TAKE marker 10 0");
        assert_eq!(client.line::<i64>("WAIT 2 10000"), 2);
        confirmed.set(Some(told));
        sleep(Duration::from_millis(200));
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    });
    primary.kill();
    let ports = replicas.each_ref().map(Server::port);
    eventually("a replica is promoted", || {
        sentinels.primary().is_some_and(|port| ports.contains(&port))
            && replicas.iter().any(|replica| replica.info("replication", "role").as_deref() == Some("master"))
    });
    let promoted =
        replicas.iter().position(|replica| replica.info("replication", "role").unwrap() == "master").unwrap();
    let (promoted, other) = (&replicas[promoted], &replicas[1 - promoted]);
    let mut client = promoted.connect();
    for (log, confirmed) in logs.iter().zip(confirmed.take().unwrap()) {
        let (used, all) = (used(&mut client, &log.target), log.acknowledged.len() as u64);
        println!("{}: {all} acknowledged, {confirmed} confirmed, {used} on the promoted", log.target.key);
        assert!(confirmed > 0 && (confirmed..=all + log.under_way).contains(&used), "{log:?}");
    }
    // It goes on, and the other one follows it.
    for target in &targets {
        assert_eq!(client.five(&target.line)[0], 1);
    }
    eventually("the other replica follows the promoted one", || {
        other.info("replication", "master_port").as_deref() == Some(promoted.port().to_string().as_str())
            && other.info("replication", "master_link_status").as_deref() == Some("up")
    });
    caught_up(promoted, other);
    assert_eq!(other.connect().dataset_digest(), client.dataset_digest());
}

#[test]
fn a_link_that_is_cut_again_and_again_is_taken_up_where_it_was() {
    let primary = primary_with(&["--repl-backlog-size", "64mb"]);
    let replica = primary.replica();
    let targets = targets("cut");
    let logs = under_load(&primary, &targets, || {
        for _ in 0..10 {
            sleep(Duration::from_millis(100));
            let _: i64 = primary.connect().line("CLIENT KILL TYPE replica");
        }
    });
    eventually("the link is back", || replica.info("replication", "master_link_status").as_deref() == Some("up"));
    caught_up(&primary, &replica);
    let partial: u64 = primary.info("stats", "sync_partial_ok").unwrap().parse().unwrap();
    assert!(partial >= 3, "{partial} partial synchronisations");
    let (mut here, mut there) = (primary.connect(), replica.connect());
    assert_eq!(there.dataset_digest(), here.dataset_digest());
    for log in &logs {
        assert_eq!(used(&mut there, &log.target), log.acknowledged.len() as u64);
        let peek =
            |client: &mut crate::support::Client| client.five(&format!("RL.PEEK {}", log.target.key))[..2].to_vec();
        assert_eq!(peek(&mut there), peek(&mut here));
    }
}

#[test]
fn a_replica_that_loads_without_a_disk_holds_the_same() {
    for way in ["disabled", "on-empty-db", "swapdb"] {
        let primary = primary_with(&["--repl-diskless-sync", "yes"]);
        let targets = targets("diskless");
        let replica = std::cell::RefCell::new(None);
        under_load(&primary, &targets, || {
            sleep(Duration::from_millis(200));
            let new = primary.replica_with(&["--repl-diskless-load", way]);
            // And once more, with a dataset to replace.
            let _: String = new.connect().line("REPLICAOF NO ONE");
            new.connect().five("RL.TAKE own 10 0");
            let port = primary.port();
            let _: String = new.connect().line(&format!("REPLICAOF 127.0.0.1 {port}"));
            eventually("the link is up", || new.info("replication", "master_link_status").as_deref() == Some("up"));
            *replica.borrow_mut() = Some(new);
        });
        let replica = replica.into_inner().unwrap();
        caught_up(&primary, &replica);
        assert_eq!(replica.connect().dataset_digest(), primary.connect().dataset_digest(), "{way}");
        assert!(!replica.connect().exists("own"), "{way}");
    }
}
