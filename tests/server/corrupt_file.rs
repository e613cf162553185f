//! Damaged RDB files, and links that break while a dataset comes over them: the server refuses the file and says so, or
//! goes on with what it had. It never crashes in our code.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rl_core::Held;
use rl_core::codec::decode;

use crate::support::dump::{Dump, assert_no_crash};
use crate::support::stream::next;
use crate::support::{Server, eventually, log_of_refused_start};

/// A file whose bytes the server does not check by itself.
const PLAIN: [&str; 4] = ["--rdbcompression", "no", "--rdbchecksum", "no"];

/// An RDB file with a bucket, and where in it the bucket's value stands.
struct File {
    bytes: Vec<u8>,
    value: std::ops::Range<usize>,
}

impl File {
    fn saved() -> Self {
        let server = Server::with(&PLAIN);
        let mut client = server.connect();
        let _: [i64; 5] = client.line("RL.TAKE key 10 5/h 3");
        let dump = Dump::of(&mut client, "key");
        let _: () = client.line("SAVE");
        let bytes = std::fs::read(server.folder().join("dump.rdb")).unwrap();
        let len = dump.value().len();
        let start = bytes.windows(len).position(|window| window == dump.value()).unwrap();
        Self { bytes, value: start..start + len }
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.value.clone()]
    }

    fn with_flipped_bit(&self, bit: usize) -> Self {
        let mut bytes = self.bytes.clone();
        bytes[self.value.start + bit / 8] ^= 1 << (bit % 8);
        Self { bytes, value: self.value.clone() }
    }

    /// The last byte of the type's number, which stands before the value's length and the mark of a string, counts
    /// the encoding's versions.
    fn with_encoding_version(&self, version: u8) -> Self {
        let mut bytes = self.bytes.clone();
        bytes[self.value.start - 3] = version;
        Self { bytes, value: self.value.clone() }
    }

    fn refusal(&self) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("dump.rdb"), &self.bytes).unwrap();
        log_of_refused_start(folder.path(), &PLAIN)
    }
}

#[test]
fn a_flipped_bit_stops_the_start_with_a_line_in_the_log_or_is_another_state() {
    let file = File::saved();
    let bits = file.value().len() * 8;
    let (mut refused, mut loaded) = (0, 0);
    // Each field is hit, and each bit of a byte.
    for bit in (0..bits).step_by(11) {
        let damaged = file.with_flipped_bit(bit);
        let log = if decode::<Held>(damaged.value()).is_ok() {
            loaded += 1;
            let server = Server::on(&[("dump.rdb", &damaged.bytes)], &PLAIN);
            let mut client = server.connect();
            assert_eq!(Dump::of(&mut client, "key").value(), damaged.value(), "bit {bit}");
            let peek: [i64; 5] = client.line("RL.PEEK key");
            assert!((0..=peek[4]).contains(&peek[1]), "bit {bit}: {peek:?}");
            server.log()
        } else {
            refused += 1;
            let log = damaged.refusal();
            assert!(log.contains("cannot load: a bucket's state "), "bit {bit}:\n{log}");
            log
        };
        assert_no_crash(&log);
    }
    assert!(refused > 3 && loaded > 3, "{refused} refused, {loaded} loaded");
}

#[test]
fn a_file_of_a_newer_version_stops_the_start_with_a_line_in_the_log() {
    let file = File::saved();
    let mut newer = file.with_flipped_bit(0);
    newer.bytes[file.value.start] = 2;
    for (file, why) in [
        (newer, "a bucket's state has version 2, and 1 is the newest known"),
        (file.with_encoding_version(2), "it was written by a newer version of librl"),
    ] {
        let log = file.refusal();
        assert!(log.contains(&format!("cannot load: {why}")), "{log}");
        assert_no_crash(&log);
    }
}

#[test]
fn a_file_that_ends_within_a_value_stops_the_start_with_a_line_in_the_log() {
    let file = File::saved();
    // Not right behind the value: the checker that Redis 7.0 runs then never ends.
    for len in [file.value.start, file.value.start + 1, file.value.end - 1] {
        let cut = File { bytes: file.bytes[..len].to_vec(), value: file.value.clone() };
        let log = cut.refusal();
        assert!(log.contains("cannot load: the file could not be read"), "cut at {len}:\n{log}");
        assert_no_crash(&log);
    }
}

/// A primary that sends `sent` for a dataset of `announced` bytes, and hangs up; how often it has.
fn broken_primary(sent: Vec<u8>, announced: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let times = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&times);
    thread::spawn(move || {
        for socket in listener.incoming() {
            answer_replica(&socket.unwrap(), &sent, announced);
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, times)
}

fn answer_replica(mut socket: &TcpStream, sent: &[u8], announced: usize) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    while let Some(words) = next(&mut reader) {
        let done = match words[0].to_ascii_uppercase().as_slice() {
            b"PING" => socket.write_all(b"+PONG\r\n"),
            b"PSYNC" => {
                let head = format!("+FULLRESYNC {} 0\r\n${announced}\r\n", "0".repeat(40));
                let _ = socket.write_all(&[head.as_bytes(), sent].concat());
                return;
            }
            _ => socket.write_all(b"+OK\r\n"),
        };
        if done.is_err() {
            return;
        }
    }
}

/// A server with a bucket of its own, that loads what its primary sends as it comes.
fn replica_of(port: u16) -> Server {
    let server = Server::with(&["--repl-diskless-load", "swapdb"]);
    let mut client = server.connect();
    assert_eq!(client.reply("RL.TAKE own 10 0 3").remaining, 7);
    let _: () = client.ask(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
    server
}

#[test]
fn a_link_that_breaks_within_a_value_fails_the_load_and_not_the_process() {
    let file = File::saved();
    let middle = file.value.start + file.value.len() / 2;
    let (port, times) = broken_primary(file.bytes[..middle].to_vec(), file.bytes.len());
    let mut server = replica_of(port);
    eventually("the replica comes again", || times.load(Ordering::SeqCst) >= 2);
    let mut client = server.connect();
    let _: () = client.line("REPLICAOF NO ONE");
    assert_eq!(client.reply("RL.PEEK own").remaining, 7);
    assert_eq!(client.line::<i64>("DBSIZE"), 1);
    assert!(server.log().contains("cannot load: the file could not be read"));
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}

/// The server ends in an orderly way when a value cannot be loaded; that is its choice. It must not be a crash.
#[test]
fn a_damaged_value_from_a_primary_is_refused_with_a_line_in_the_log() {
    let file = File::saved();
    let (port, _) = broken_primary(file.with_flipped_bit(8).bytes, file.bytes.len());
    let server = replica_of(port);
    let why = "cannot load: a bucket's state is of the unknown kind 0";
    eventually("the value is refused", || server.log().contains(why));
    assert_no_crash(&server.log());
}
