//! `RESTORE` in a real server that looks at no checksum: refused, or the key holds that state, can be asked all there is to
//! ask, and survives `DUMP` and `RESTORE`, `COPY` and `DEBUG RELOAD`.
//!
//! The first byte chooses the type, and whether the rest is what the module has written, in a frame that is as it should
//! be, or all that follows the type: the server's own opcodes, strings and lengths around it.
#![no_main]

use std::sync::{LazyLock, Mutex, PoisonError};

use libfuzzer_sys::fuzz_target;
use rl_core::codec::decode;
use rl_core::{Counter, Held, Log, Quota};
use rl_fuzz::server::Rig;

static RIG: LazyLock<Mutex<Rig>> = LazyLock::new(Mutex::default);

fuzz_target!(|bytes: &[u8]| {
    let Some((chosen, rest)) = bytes.split_first() else { return };
    let holds = usize::from(*chosen % 4);
    // The fuzzer sees what this does with the bytes, and so finds its way into the decoder, which is the server's as well.
    let is_state = match holds {
        0 => decode::<Held>(rest).is_ok(),
        1 => decode::<Log>(rest).is_ok(),
        2 => decode::<Counter>(rest).is_ok(),
        _ => decode::<Quota>(rest).is_ok(),
    };
    let mut rig = RIG.lock().unwrap_or_else(PoisonError::into_inner);
    if *chosen < 192 {
        rig.value(holds, rest, is_state);
    } else {
        rig.frame(holds, rest);
    }
});
