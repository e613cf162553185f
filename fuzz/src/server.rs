//! A server with the module, kept for as long as the target runs, and what must be true of every key in it.

#[path = "../../tests/server/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::process::{Child, Command, Stdio};

use redis::{ConnectionLike, Pipeline, Value};
use rl_core::codec::{State, encode_long};

use support::{Client, Server};

/// The four types: the name, a command that makes a key of it, and the place of its kind in the module's order.
pub const TYPES: [(&str, &str); 4] = [
    ("rl-bucket", "RL.TAKE @ 10 5/h 3"),
    ("rl-window", "RL.WINDOW @ 10 1h 3"),
    ("rl-counts", "RL.COUNTER @ 10 1h 3"),
    ("rl-quotas", "RL.QUOTA @ 10 month 3"),
];

/// What is asked of a key that holds any of the types: first what is true whatever the type, then takes, one of which fits.
const LOOKS: [&str; 2] = ["RL.PEEK @", "RL.INFO @"];
const CALLS: [&str; 8] = [
    "RL.TAKE @ 10 5/h 3",
    "RL.RESERVE @ 9007199254740991 1/m 7 1d",
    "RL.LEASE @ 20 1 5",
    "RL.WINDOW @ 10 1h 3",
    "RL.COUNTER @ 10 1h 3",
    "RL.QUOTA @ 10 month 3",
    "RL.GIVE @ 2",
    "RL.PEEK @",
];
/// How many keys are kept, and how many accepted payloads there are between two reloads of all of them.
const KEPT: u64 = 64;
const RELOAD_EVERY: u64 = 512;

/// A server, and a connection to it.
pub struct Rig {
    server: Server,
    client: Client,
    /// Kills the server when this process ends, however it does.
    _watchdog: Child,
    /// How a `DUMP` of each type begins, up to the value's length; and what follows the value, up to the checksum.
    heads: Vec<Vec<u8>>,
    tail: Vec<u8>,
    accepted: u64,
}

impl Default for Rig {
    fn default() -> Self {
        Self::start()
    }
}

impl Rig {
    /// A server that looks at no checksum, expires nothing by itself and compresses nothing.
    pub fn start() -> Self {
        let server = Server::with(&["--rdbcompression", "no"]);
        let mut client = server.connect();
        let watchdog = watch(&mut client, &server);
        let _: () = client.line("DEBUG SET-ACTIVE-EXPIRE 0");
        let _: () = client.line("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        let mut rig = Self { server, client, _watchdog: watchdog, heads: Vec::new(), tail: Vec::new(), accepted: 0 };
        for (name, command) in TYPES {
            let dump: Vec<u8> = {
                let _: Value = rig.client.line(&command.replace('@', name));
                rig.client.line(&format!("DUMP {name}"))
            };
            let value = value_of(&dump);
            rig.heads.push(dump[..HEAD].to_vec());
            rig.tail = dump[dump.len() - TAIL..dump.len() - CHECKSUM].to_vec();
            assert_eq!(rig.framed(rig.heads.len() - 1, value)[..dump.len() - CHECKSUM], dump[..dump.len() - CHECKSUM]);
        }
        rig
    }

    /// Answers to many commands, errors among them.
    fn answers(&mut self, pipeline: &Pipeline) -> Vec<Value> {
        let packed = pipeline.get_packed_pipeline();
        match self.client.0.req_packed_commands(&packed, 0, pipeline.len()) {
            Ok(answers) => answers,
            Err(error) => panic!("{error}\n{}", self.server.log()),
        }
    }

    /// Puts `record` into a key with `RL.RESTORE` that holds a key of one of the types, or nothing; `expected` is what it
    /// must hold then, or the beginning of the error.
    pub fn record(&mut self, holds: Option<usize>, record: &[u8], expected: impl FnOnce(Option<State>) -> Result<State, &'static str>) {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DEL").arg("key");
        if let Some((_, command)) = holds.and_then(|holds| TYPES.get(holds)) {
            add(&mut pipeline, &command.replace('@', "key"));
        }
        pipeline.cmd("DUMP").arg("key");
        pipeline.cmd("RL.RESTORE").arg("key").arg(record);
        let answers = self.answers(&pipeline);
        let [.., before, restored] = &answers[..] else { panic!("{answers:?}") };
        let before = match before {
            Value::BulkString(dump) => Some(rl_core::codec::decode(value_of(dump)).expect("a state")),
            _ => None,
        };
        match (expected(before), restored) {
            (Ok(state), Value::Okay) => self.accepted(&encode_long(&state)),
            (Err(begins), Value::ServerError(error)) => {
                let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
                assert!(text.starts_with(begins), "{text}, not {begins}");
            }
            (expected, answer) => panic!("{answer:?}, not {expected:?}"),
        }
    }

    /// `value` as a `DUMP` of that type, without a checksum worth the name.
    fn framed(&self, holds: usize, value: &[u8]) -> Vec<u8> {
        [&self.heads[holds][..], &length(value.len()), value, &self.tail, &[0; CHECKSUM]].concat()
    }

    /// `RESTORE` of a payload that is well formed around `value`; it must be refused if that is not a state of the type.
    pub fn value(&mut self, holds: usize, value: &[u8], is_state: bool) {
        let payload = self.framed(holds, value);
        let taken = self.restore(&payload);
        assert_eq!(taken, is_state, "{value:02x?}");
        if taken {
            self.accepted(value);
        }
    }

    /// `RESTORE` of a payload of that type in which all after the type is `rest`.
    pub fn frame(&mut self, holds: usize, rest: &[u8]) {
        let head = &self.heads[holds][..HEAD - 1];
        let version = &self.tail[self.tail.len() - 2..];
        let payload = [head, rest, version, &[0; CHECKSUM]].concat();
        if self.restore(&payload) {
            let dump: Vec<u8> = self.client.line("DUMP key");
            let value = value_of(&dump).to_vec();
            self.accepted(&value);
        }
    }

    fn restore(&mut self, payload: &[u8]) -> bool {
        let mut pipeline = redis::pipe();
        pipeline.cmd("RESTORE").arg("key").arg(0).arg(payload).arg("REPLACE");
        match &self.answers(&pipeline)[0] {
            Value::Okay => true,
            Value::ServerError(error) if error.details() == Some("Bad data format") => false,
            other => panic!("{other:?}"),
        }
    }

    /// Uses the key, which must hold `value` or have expired; keeps a copy of it, and now and then reloads all that is kept.
    fn accepted(&mut self, value: &[u8]) {
        self.accepted += 1;
        let mut pipeline = redis::pipe();
        pipeline.cmd("PERSIST").arg("key");
        pipeline.cmd("DUMP").arg("key");
        let answers = self.answers(&pipeline);
        let Value::BulkString(dump) = &answers[1] else {
            assert_eq!(answers[1], Value::Nil);
            return;
        };
        assert_eq!(value_of(dump), value);
        let kept = format!("kept:{}", self.accepted % KEPT);
        let mut pipeline = redis::pipe();
        pipeline.cmd("RESTORE").arg(&kept).arg(0).arg(dump).arg("REPLACE");
        pipeline.cmd("DEBUG").arg("DIGEST-VALUE").arg("key").arg(&kept);
        LOOKS.iter().chain(&CALLS).for_each(|line| add(&mut pipeline, &line.replace('@', "key")));
        pipeline.cmd("COPY").arg("key").arg("copy").arg("REPLACE");
        pipeline.cmd("MEMORY").arg("USAGE").arg(&kept);
        let answers = self.answers(&pipeline);
        assert_eq!(answers[0], Value::Okay, "what was dumped is taken back");
        assert!(matches!(&answers[1], Value::Array(digests) if digests[0] == digests[1]), "{:?}", answers[1]);
        let looked_at = decision(&answers[2]).expect("a key to look at");
        info(&answers[3], looked_at[4]);
        let decided = answers[4..4 + CALLS.len()].iter().filter_map(decision).count();
        assert!(decided > 0, "{answers:?}");
        assert!(matches!(answers.last(), Some(Value::Int(32..))), "{:?}", answers.last());
        if self.accepted.is_multiple_of(RELOAD_EVERY) {
            self.reload();
        }
    }

    fn reload(&mut self) {
        let _: () = self.client.line("DEL key copy");
        let before: (String, u64) = (self.client.dataset_digest(), self.client.line("DBSIZE"));
        let _: () = self.client.line("DEBUG RELOAD");
        let after = (self.client.dataset_digest(), self.client.line("DBSIZE"));
        assert_eq!(before, after, "all is there after a reload");
        support::dump::assert_no_crash(&self.server.log());
    }
}

/// Kills the server and removes its folder once this process is gone: the fuzzer ends without a word to anyone.
fn watch(client: &mut Client, server: &Server) -> Child {
    let info: String = client.line("INFO server");
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).expect("a process");
    let script = "trap '' HUP INT TERM; read -r _; kill -9 \"$1\"; rm -rf \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "watchdog", pid]).arg(server.folder());
    command.stdin(Stdio::piped()).spawn().expect("a shell")
}

const HEAD: usize = 11;
const TAIL: usize = 11;
const CHECKSUM: usize = 8;

/// The length of a string, as RDB files have it.
fn length(len: usize) -> Vec<u8> {
    match len {
        0..64 => vec![len as u8],
        64..16_384 => vec![0x40 | (len >> 8) as u8, len as u8],
        _ => [&[0x80][..], &(len as u32).to_be_bytes()].concat(),
    }
}

/// What the module has written, in the answer of `DUMP`.
fn value_of(dump: &[u8]) -> &[u8] {
    let skipped = match dump[HEAD] >> 6 {
        0 => 1,
        1 => 2,
        _ => 5,
    };
    &dump[HEAD + skipped..dump.len() - TAIL]
}

fn add(pipeline: &mut Pipeline, line: &str) {
    let mut words = line.split(' ');
    let command = pipeline.cmd(words.next().unwrap_or_default());
    words.for_each(|word| {
        command.arg(word);
    });
}

/// The five integers, if the command fits the key; panics if they cannot be, or if it is refused for another reason.
fn decision(answer: &Value) -> Option<[i64; 5]> {
    match answer {
        Value::ServerError(error) if error.code() == "WRONGTYPE" => None,
        // A gift may have filled the bucket.
        Value::Nil => None,
        Value::Array(fields) => {
            let five = fields.iter().map(|field| if let Value::Int(number) = field { *number } else { panic!("{answer:?}") });
            let five: [i64; 5] = five.collect::<Vec<_>>().try_into().expect("five integers");
            let [granted, remaining, retry_after, reset_after, limit] = five;
            assert!(granted >= 0 && (0..=limit).contains(&remaining), "{five:?}");
            assert!(retry_after >= -1 && reset_after >= -1, "{five:?}");
            Some(five)
        }
        other => panic!("{other:?}"),
    }
}

fn info(answer: &Value, limit: i64) {
    let Value::Array(fields) = answer else { panic!("{answer:?}") };
    assert!(fields.len() == 16 || fields.len() == 18, "{answer:?}");
    assert_eq!(fields[3], Value::Int(limit), "{answer:?}");
}
