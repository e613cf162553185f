//! Commands as they are sent to replicas and written to the AOF.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rl_core::codec::{Record, decode_record};

use super::Server;

/// A command, word by word.
pub type Words = Vec<Vec<u8>>;

/// What a server sends to a replica, as bare as it comes.
pub struct Stream(BufReader<UnixStream>);

impl Stream {
    /// Becomes a replica of `server`, past the dataset.
    pub fn of(server: &Server) -> Self {
        let mut socket = UnixStream::connect(server.folder().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.write_all(b"PSYNC ? -1\r\n").unwrap();
        let mut stream = Self(BufReader::new(socket));
        assert!(stream.line_after_newlines().starts_with("+FULLRESYNC "));
        let len = stream.line_after_newlines();
        let len = len.strip_prefix('$').and_then(|len| len.parse().ok()).unwrap_or_else(|| panic!("{len}"));
        stream.0.read_exact(&mut vec![0; len]).unwrap();
        stream
    }

    /// The server keeps a waiting replica awake with newlines.
    fn line_after_newlines(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if line != "\n" {
                return line.trim_end().to_owned();
            }
        }
    }

    /// All that was sent since the last call, but the pings.
    pub fn since(&mut self, server: &Server) -> Vec<Words> {
        let _: () = server.connect().ask(&["PUBLISH", "end", "of-what-was-sent"]);
        let mut commands = Vec::new();
        loop {
            let words = next(&mut self.0).expect("the server goes on sending");
            match words[0].as_slice() {
                b"PUBLISH" => return commands,
                b"PING" | b"ping" => {}
                _ => commands.push(words),
            }
        }
    }
}

/// The commands in the server's append-only files whose names end in `ending`: `.incr.aof`, `.base.aof`.
pub fn in_aof(server: &Server, ending: &str) -> Vec<Words> {
    let bytes = aof(server, ending);
    let mut reader = bytes.as_slice();
    std::iter::from_fn(|| next(&mut reader)).collect()
}

/// The bytes of those files, in their order.
pub fn aof(server: &Server, ending: &str) -> Vec<u8> {
    let entries = fs::read_dir(server.folder().join("appendonlydir")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    assert!(!paths.is_empty(), "no {ending}");
    paths.into_iter().flat_map(|path| fs::read(path).unwrap()).collect()
}

/// The next command, or `None` at the end.
pub fn next(reader: &mut impl BufRead) -> Option<Words> {
    let count = number(reader, '*')?;
    let word = |_| {
        let len = number(reader, '$').expect("a word");
        let mut word = vec![0; len + 2];
        reader.read_exact(&mut word).unwrap();
        word.truncate(len);
        word
    };
    Some((0..count).map(word).collect())
}

fn number(reader: &mut impl BufRead, mark: char) -> Option<usize> {
    let mut line = String::new();
    (reader.read_line(&mut line).unwrap() > 0).then(|| {
        let number = line.trim_end().strip_prefix(mark).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{line:?} where {mark} and a number should be"))
    })
}

/// The names of the commands, without the `SELECT` that the server puts before them as it sees fit.
pub fn names(commands: &[Words]) -> Vec<String> {
    let names = commands.iter().map(|words| String::from_utf8(words[0].to_ascii_uppercase()).unwrap());
    names.filter(|name| name != "SELECT").collect()
}

/// Key and record of every `RL.RESTORE`.
pub fn records(commands: &[Words]) -> Vec<(String, Record)> {
    let restores = commands.iter().filter(|words| words[0] == b"RL.RESTORE");
    restores
        .map(|words| {
            let [_, key, payload] = words.as_slice() else { panic!("{words:?}") };
            (String::from_utf8_lossy(key).into_owned(), decode_record(payload).unwrap())
        })
        .collect()
}
