//! When busy keys expire, remembered for a millisecond.
//!
//! A take must know its key's expiry, and the server is the one who knows: `EXPIRE`, `PERSIST`, `RESTORE` and `COPY`
//! change it without us. But asking costs a look-up in the server's tables. So what the server said is remembered for
//! the values touched last, for a millisecond: a key that is taken from more than a thousand times a second is asked
//! about once a millisecond, every other key each time. What somebody else does to a busy key's expiry is thus seen a
//! millisecond later; a key whose value changed in any other way is not recognised, and asked about. What is remembered is
//! never passed on: a record that goes by it tells replicas to keep the expiry that they have.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use rl_core::{UnixMicros, UnixMillis};

const PLACES: usize = 64;
/// Values are 32 bytes long or more, so the bits of an address below that say nothing.
const VALUE_BITS: u32 = 5;
const MEMORY_US: u64 = 1_000;
const NEVER: u64 = u64::MAX;

/// The values, and what was noted of each. Atomic because values are forgotten on background threads, too; for the rest all
/// of it happens under the server's lock.
static NOTES: [Note; PLACES] = [const { Note::new() }; PLACES];

struct Note {
    value: AtomicU64,
    changed_us: AtomicU64,
    expiry_ms: AtomicU64,
}

impl Note {
    const fn new() -> Self {
        Self { value: AtomicU64::new(0), changed_us: AtomicU64::new(0), expiry_ms: AtomicU64::new(NEVER) }
    }

    /// The place for `value`.
    fn of(value: *const c_void) -> Option<&'static Self> {
        NOTES.get((value.addr() >> VALUE_BITS) & (PLACES - 1))
    }
}

/// Notes that the key of `value`, last changed at `changed`, expires at `expiry`.
pub fn note(value: *const c_void, changed: UnixMicros, expiry: Option<UnixMillis>) {
    if let Some(note) = Note::of(value) {
        note.value.store(value.addr() as u64, Ordering::Relaxed);
        note.changed_us.store(changed.get(), Ordering::Relaxed);
        note.expiry_ms.store(expiry.map_or(NEVER, UnixMillis::get), Ordering::Relaxed);
    }
}

/// Forgets what was noted of `value`, whose place may become another's. From any thread.
pub fn forget(value: *const c_void) {
    if let Some(note) = Note::of(value) {
        let address = value.addr() as u64;
        // Only if it is this value's: another may have taken the place.
        let _ = note.value.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What was noted of `value`, if it was within the last millisecond and at the change that is still its last.
pub fn recall(value: *const c_void, changed: UnixMicros, now: UnixMicros) -> Option<Option<UnixMillis>> {
    let note = Note::of(value)?;
    let known = note.value.load(Ordering::Relaxed) == value.addr() as u64
        && note.changed_us.load(Ordering::Relaxed) == changed.get()
        && changed <= now
        && now.since(changed) < MEMORY_US;
    known.then(|| match note.expiry_ms.load(Ordering::Relaxed) {
        NEVER => None,
        millis => Some(UnixMillis::saturating(millis.into())),
    })
}
