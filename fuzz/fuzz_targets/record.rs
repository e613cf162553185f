//! `RL.RESTORE key payload` in a real server: refused with the error that the codec gives, or the key holds that state, can be
//! asked all there is to ask, and survives `DUMP` and `RESTORE`, `COPY` and `DEBUG RELOAD`.
//!
//! The first byte says what the key holds before, the rest is the payload.
#![no_main]

use std::sync::{LazyLock, Mutex, PoisonError};

use libfuzzer_sys::fuzz_target;
use rl_core::codec::{DecodeError, State, decode_record};
use rl_fuzz::content::after_record;
use rl_fuzz::server::Rig;

static RIG: LazyLock<Mutex<Rig>> = LazyLock::new(Mutex::default);

fuzz_target!(|bytes: &[u8]| {
    let Some((holds, payload)) = bytes.split_first() else { return };
    let holds = usize::from(*holds % 5).checked_sub(1);
    // The fuzzer sees what this does with the bytes, and so finds its way into the decoder, which is the server's as well.
    let record = decode_record::<State>(payload);
    RIG.lock().unwrap_or_else(PoisonError::into_inner).record(holds, payload, |before| match record {
        Ok(record) => after_record(before.as_ref(), record.state).ok_or("WRONGTYPE "),
        Err(DecodeError::Truncated) => Err("ERR payload must be a whole record of RL.RESTORE: it ends too early"),
        Err(DecodeError::Version(_)) => Err("ERR payload must be of a version that this module knows"),
        Err(DecodeError::Kind(_)) => Err("ERR payload must be of a kind that this module knows"),
        Err(DecodeError::NotCanonical) => Err("ERR payload must be a record of RL.RESTORE: it is malformed"),
        Err(DecodeError::Range) => Err("ERR payload must hold numbers within their ranges"),
    });
});
