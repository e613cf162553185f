//! The payload of `DUMP`, taken apart and put together again around another value.
//!
//! ```text
//! payload = 7 (a module's value) 0x81 id(8, big-endian) 5 (a string) length value 0 (the end) version(2) crc64(8)
//! id      = nine characters of six bits each, encoding version (10 bits)
//! ```

use rl_core::Held;
use rl_core::codec::decode;

use super::Client;

const HEAD: usize = 11;
const TAIL: usize = 11;

/// A payload.
#[derive(Debug, Clone)]
pub struct Dump(Vec<u8>);

impl Dump {
    /// What `DUMP key` answers. The server is told not to compress, which it else does to repetitive values.
    pub fn of(client: &mut Client, key: &str) -> Self {
        let _: () = client.line("CONFIG SET rdbcompression no");
        Self::read(client.ask(&["DUMP", key]))
    }

    /// A payload, which must be laid out as above.
    pub fn read(bytes: Vec<u8>) -> Self {
        let dump = Self(bytes);
        assert_eq!((dump.0[0], dump.0[1], dump.0[HEAD - 1]), (7, 0x81, 5), "{:02x?}", dump.0);
        assert_eq!(dump.with_value(dump.value()).0, dump.0, "the length, the end and the checksum are understood");
        dump
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the module has written.
    pub fn value(&self) -> &[u8] {
        let length = match self.0[HEAD] >> 6 {
            0 => 1,
            1 => 2,
            _ => 5,
        };
        &self.0[HEAD + length..self.0.len() - TAIL]
    }

    /// The state in it, of a bucket.
    pub fn state(&self) -> Held {
        decode(self.value()).unwrap()
    }

    /// The same around another value.
    pub fn with_value(&self, value: &[u8]) -> Self {
        let tail = &self.0[self.0.len() - TAIL..self.0.len() - 8];
        Self([&self.0[..HEAD], &length(value.len()), value, tail].concat()).sealed()
    }

    /// The same with the bit of that number flipped, checksum aside.
    pub fn with_flipped_bit(&self, bit: usize) -> Self {
        let mut bytes = self.0[..self.0.len() - 8].to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Self(bytes).sealed()
    }

    /// The same, as if the type had that encoding version.
    pub fn with_encoding_version(&self, version: u8) -> Self {
        let mut bytes = self.0[..self.0.len() - 8].to_vec();
        bytes[HEAD - 2] = version;
        Self(bytes).sealed()
    }

    /// How many bits there are before the checksum.
    pub fn bits(&self) -> usize {
        (self.0.len() - 8) * 8
    }

    fn sealed(mut self) -> Self {
        let crc = crc64(&self.0);
        self.0.extend(crc.to_le_bytes());
        self
    }
}

/// A length of 6 or 14 bits behind two that say which, or a byte that says that 32 bits follow; the high ones first.
fn length(len: usize) -> Vec<u8> {
    match len {
        0..64 => vec![len as u8],
        64..16_384 => (0x4000 | len as u16).to_be_bytes().to_vec(),
        _ => [&[0x80], &(len as u32).to_be_bytes()[..]].concat(),
    }
}

/// The checksum that servers use: Jones's polynomial, reflected.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0xad93_d235_94c9_35a9;
    bytes.iter().fold(0, |crc, byte| {
        (0..8)
            .fold(crc ^ u64::from(*byte), |crc, _| (crc >> 1) ^ (POLYNOMIAL.reverse_bits() & (crc & 1).wrapping_neg()))
    })
}

/// `value` with each of its bits flipped in turn, and every beginning of it.
pub fn damaged(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let flipped = (0..value.len() * 8).map(|bit| {
        let mut damaged = value.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    });
    flipped.chain((0..value.len()).map(|len| value[..len].to_vec()))
}

/// Panics if a server that logged this has crashed.
pub fn assert_no_crash(log: &str) {
    for trace in ["REPORT START", "crashed by signal", "ASSERTION FAILED", "panicked", "Guru Meditation"] {
        assert!(!log.contains(trace), "{trace}:\n{log}");
    }
}
