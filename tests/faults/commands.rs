//! A million commands of every sort on keys of every type, and frames that are none.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::rounds;
use crate::support::dump::assert_no_crash;
use crate::support::random::Random;
use crate::support::replicas::{caught_up, primary};
use crate::support::{Client, Server};

const BATCH: u64 = 1_000;
const KEYS: u64 = 60;

/// What is filled in: `K` a key, `N` a number or what is none, `R` a rate, `W` a duration or a period, `J` any bytes, `P` a
/// payload.
const SHAPES: [&str; 64] = [
    "RL.TAKE K N R",
    "RL.TAKE K N R N",
    "RL.TAKE K 10 5/h",
    "RL.TAKE K 10 0 N",
    "RL.TAKE K N 1000000",
    "RL.PEEK K",
    "RL.PEEK K N R",
    "RL.PEEK K N R N",
    "RL.GIVE K N",
    "RL.LEASE K N R N",
    "RL.RESERVE K N R N W",
    "RL.INFO K",
    "RL.MTAKE 2 K K N R N N R N",
    "RL.MTAKE 1 K N R N",
    "RL.MTAKE N K K N R N",
    "RL.WINDOW K N W",
    "RL.WINDOW K N W N",
    "RL.WINDOW K 100 1h",
    "RL.WINDOW K 50 1ms N",
    "RL.COUNTER K N W",
    "RL.COUNTER K N W N",
    "RL.COUNTER K 100 1m",
    "RL.QUOTA K N W",
    "RL.QUOTA K N W N",
    "RL.QUOTA K 100 month",
    "CL.THROTTLE K N N N",
    "CL.THROTTLE K N N N N",
    "RL.TOP",
    "RL.TOP COUNT N",
    "RL.TOP RESET",
    "RL.RESTORE K P",
    "RL.RESTORE K P",
    "RL.RESTORE K J",
    "RL.TAKE J J J J",
    "RL.WINDOW J J J",
    "RL.TAKE",
    "RL.MTAKE J J J J J",
    "DEL K",
    "UNLINK K",
    "EXPIRE K N",
    "PEXPIRE K 1",
    "PERSIST K",
    "RENAME K K",
    "COPY K K REPLACE",
    "SET K J",
    "INCR K",
    "RPUSH K J",
    "SADD K J",
    "ZADD K N J",
    "HSET K J J",
    "XADD K * J J",
    "GET K",
    "TYPE K",
    "DUMP K",
    "OBJECT ENCODING K",
    "MEMORY USAGE K",
    "DEBUG DIGEST-VALUE K",
    "SCAN 0 TYPE rl-window",
    "MULTI",
    "EXEC",
    "DISCARD",
    "TOUCH K",
    "CONFIG SET rl.window-limit N",
    "CONFIG SET rl.key-classes N",
];

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "10",
    "100",
    "1000000",
    "9007199254740991",
    "9007199254740992",
    "-1",
    "",
    "x",
    "1e3",
    "1.5",
    "01",
    "99999999999999999999",
];
const RATES: [&str; 12] = [
    "0",
    "5",
    "0.5",
    "100/60",
    "5/15m",
    "1000000/d",
    "1.6666666666666667",
    "1/0",
    "x",
    "9007199254740991/ms",
    "5/",
    "-5",
];
const DURATIONS: [&str; 14] = [
    "1",
    "1ms",
    "0.000001",
    "10",
    "1h",
    "200d",
    "month",
    "week+02:00",
    "year-23:59",
    "0",
    "x",
    "104249d",
    "1d+25:00",
    "",
];

fn command(random: &mut Random, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shape = SHAPES[random.index(SHAPES.len())];
    let mut words: Vec<Vec<u8>> = shape.split(' ').map(|word| filled(word, random, payloads)).collect();
    // Now and then a word too many or too few.
    match random.below(200) {
        0 => words.truncate(1 + random.index(words.len())),
        1 => words.push(junk(random)),
        _ => {}
    }
    words
}

fn filled(word: &str, random: &mut Random, payloads: &[Vec<u8>]) -> Vec<u8> {
    let pick = |from: &[&str], random: &mut Random| from[random.index(from.len())].as_bytes().to_vec();
    match word {
        "K" => format!("key:{}", random.below(KEYS)).into_bytes(),
        "N" => pick(&NUMBERS, random),
        "R" => pick(&RATES, random),
        "W" => pick(&DURATIONS, random),
        "J" => junk(random),
        "P" => payload(random, payloads),
        _ => word.as_bytes().to_vec(),
    }
}

fn junk(random: &mut Random) -> Vec<u8> {
    (0..random.below(20)).map(|_| random.below(256) as u8).collect()
}

/// A record that was once sent to a replica, as it was or with a byte or two of it changed.
fn payload(random: &mut Random, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = payloads[random.index(payloads.len())].clone();
    for _ in 0..random.below(3) {
        let at = random.index(payload.len());
        payload[at] = random.below(256) as u8;
    }
    payload
}

/// Records of every kind, as a server writes them.
fn recorded() -> Vec<Vec<u8>> {
    use crate::support::stream::Stream;
    let server = Server::start();
    let mut stream = Stream::of(&server);
    let mut client = server.connect();
    for line in [
        "RL.TAKE a 10 5/h",
        "RL.RESERVE a 10 5/h 20 99h",
        "RL.WINDOW b 10 1h 3",
        "RL.GIVE b 1",
        "RL.COUNTER c 10 1h",
        "RL.QUOTA d 10 month+02:00",
        "RL.TAKE e 9007199254740991 1/9007199254.740991 9007199254740991",
    ] {
        client.five(line);
    }
    let sent = stream.since(&server);
    sent.into_iter().filter(|words| words[0] == b"RL.RESTORE").map(|words| words[2].clone()).collect()
}

/// Every key of ours says what can be true.
fn assert_sane(client: &mut Client) {
    for key in (0..KEYS).map(|number| format!("key:{number}")) {
        let kind: String = client.ask(&["TYPE", &key]);
        if !kind.starts_with("rl-") {
            continue;
        }
        let Some([allowed, remaining, retry, reset, limit]) = client.ask::<Option<[i64; 5]>>(&["RL.PEEK", &key]) else {
            continue;
        };
        let sane = (0..=1).contains(&allowed) && (0..=limit).contains(&remaining) && retry >= -1 && reset >= -1;
        assert!(sane, "{key} {kind}: {allowed} {remaining} {retry} {reset} {limit}");
        assert_eq!(allowed == 1, remaining >= 1, "{key} {kind}");
        assert!(allowed == 1 || retry != 0, "{key} {kind}");
    }
}

/// Sends commands, and reads until all of them are answered. What is answered may be any bytes, in errors as well.
fn answer_to_all(socket: &mut UnixStream, packed: &[u8], batch: u64) {
    let end = format!("the end of batch {batch}");
    let last = [redis::cmd("DISCARD").get_packed_command(), redis::cmd("ECHO").arg(&end).get_packed_command()].concat();
    let mut writing = socket.try_clone().unwrap();
    std::thread::scope(|scope| {
        // Reading and writing at once, or both sides wait for the other to read.
        scope.spawn(move || {
            writing.write_all(packed).unwrap();
            writing.write_all(&last).unwrap();
        });
        let (mut seen, mut piece) = (Vec::new(), [0; 1 << 16]);
        while !seen.ends_with(format!("{end}\r\n").as_bytes()) {
            let len = socket.read(&mut piece).unwrap();
            assert!(len > 0, "the server has hung up in batch {batch}");
            seen.extend_from_slice(&piece[..len]);
            seen.drain(..seen.len().saturating_sub(1 << 16));
        }
    });
}

#[test]
fn a_million_commands_leave_the_server_up_and_every_key_sane() {
    let mut random = Random::seeded();
    let payloads = recorded();
    let mut primary = primary();
    let mut replica = primary.replica();
    let mut client = primary.connect();
    let mut raw = UnixStream::connect(primary.folder().join("socket")).unwrap();
    raw.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let batches = rounds(1_000_000) / BATCH;
    for batch in 0..batches {
        let mut packed = Vec::new();
        for _ in 0..BATCH {
            let mut one = redis::Cmd::new();
            command(&mut random, &payloads).iter().for_each(|word| {
                one.arg(word);
            });
            packed.extend(one.get_packed_command());
        }
        answer_to_all(&mut raw, &packed, batch);
        if batch % 20 == 0 {
            assert_sane(&mut client);
            caught_up(&primary, &replica);
            assert_eq!(replica.connect().dataset_digest(), client.dataset_digest(), "after {batch} batches");
        }
        if batch % 100 == 99 {
            // On the replica: a primary drops what has expired when it loads, and does not tell, as it expects to have none.
            let _: String = replica.connect().line("DEBUG RELOAD");
            assert_eq!(replica.connect().dataset_digest(), client.dataset_digest(), "after {batch} batches, reloaded");
            let _: () = client.line("CONFIG SET rl.window-limit 100000");
        }
    }
    assert!(primary.is_alive() && replica.is_alive());
    assert_no_crash(&primary.log());
    assert_no_crash(&replica.log());
    println!("{} commands", batches * BATCH);
}

#[test]
fn frames_that_are_none_leave_the_server_up() {
    let mut random = Random::seeded();
    let mut server = Server::start();
    let whole = b"*4\r\n$7\r\nRL.TAKE\r\n$3\r\nkey\r\n$2\r\n10\r\n$3\r\n5/h\r\n";
    for _ in 0..rounds(5_000) {
        let mut frame = whole.repeat(1 + random.index(3));
        for _ in 0..=random.below(4) {
            let at = random.index(frame.len());
            match random.below(3) {
                0 => frame[at] = random.below(256) as u8,
                1 => frame.truncate(at + 1),
                _ => frame.insert(at, random.below(256) as u8),
            }
        }
        let mut socket = UnixStream::connect(server.folder().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let _ = socket.write_all(&frame);
        let _ = socket.read(&mut [0; 512]);
    }
    assert_eq!(server.connect().line::<String>("PING"), "PONG");
    assert!(server.is_alive());
    assert_no_crash(&server.log());
}
