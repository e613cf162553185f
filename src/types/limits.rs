//! The limits in use, each kept once.
//!
//! Callers send capacity and rate with every command, and send the same few over and over. So a limit is parsed once per
//! spelling, kept once with all that a decision needs worked out, and a bucket refers to it by a number of 31 bits.
//!
//! Bounded: there is a limit for each that a bucket refers to, for each of the [`SPELLINGS`] last spellings, and for
//! those that have fallen out of use since the last sweep, which are at most as many again plus [`SWEEP_MARGIN`]. A
//! caller that sends a new rate with every call does not grow memory.
//!
//! Threads: buckets are freed on background threads too (`FLUSHALL ASYNC`), and a forked child reads limits while it
//! saves. So letting go of a limit, and reading one, takes no lock; everything else happens under the server's lock.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use rl_core::rate::MAX_RATE_LEN;
use rl_core::{Limit, Rate, Tokens};

use crate::error::Error;
use crate::stats;

/// How many spellings of limits are remembered.
const SPELLINGS: usize = 1 << 10;
/// How many limits may fall out of use, beyond as many as were in use, before they are swept.
const SWEEP_MARGIN: usize = 1 << 10;

/// The first block holds 2^10 limits and each one twice as many as the one before, so that 21 of them serve 31 bits and
/// none ever moves.
const FIRST_BLOCK_BITS: u32 = 10;
const BLOCKS: usize = 21;

/// The number of a limit. It stands for the limit as long as something has [`hold`] of it, or until the next limit is
/// looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitId(u32);

impl LimitId {
    /// As many as fit the bits that a bucket has for one.
    pub const BITS: u32 = 31;
    const END: u32 = (1 << Self::BITS) - (1 << FIRST_BLOCK_BITS);

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The limit of that number.
    ///
    /// # Safety
    /// `number` came from [`get`](Self::get).
    pub const unsafe fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Its block, and its place in it.
    const fn place(self) -> (usize, usize) {
        // Counted from the size of the first block, so that the highest bit names the block and the rest the place.
        let position = self.0.saturating_add(1 << FIRST_BLOCK_BITS);
        let highest = position.ilog2();
        (highest.saturating_sub(FIRST_BLOCK_BITS) as usize, (position ^ (1 << highest)) as usize)
    }
}

/// The limit that a command asks for. It stands until the next one is looked up, and for as long as something has [`hold`] of it.
#[derive(Clone, Copy)]
pub struct Asked {
    id: LimitId,
}

impl Asked {
    /// The limit that `capacity` and `rate` spell.
    ///
    /// Errors: as [`spelled`].
    #[inline]
    pub fn parse(capacity: &[u8], rate: &[u8]) -> Result<Self, Error> {
        spelled(capacity, rate).map(|id| Self { id })
    }

    /// The limit, as it is.
    ///
    /// Errors: as [`intern`].
    pub fn of(limit: &Limit) -> Result<Self, Error> {
        intern(limit).map(|id| Self { id })
    }

    /// Its number.
    pub fn id(self) -> LimitId {
        self.id
    }

    /// What it says.
    pub fn limit(&self) -> &Limit {
        // SAFETY: as in `limit`; nobody keeps the reference beyond the next look-up.
        unsafe { (*(*entry(self.id)).limit.get()).assume_init_ref() }
    }
}

struct Entry {
    /// How many buckets and spellings refer to the limit.
    uses: AtomicU64,
    limit: UnsafeCell<MaybeUninit<Limit>>,
}

static TABLE: [AtomicPtr<Entry>; BLOCKS] = [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS];
static INTERNER: LazyLock<Mutex<Interner>> = LazyLock::new(|| Mutex::new(Interner::new()));

fn entry(id: LimitId) -> *const Entry {
    let (block, offset) = id.place();
    let start = TABLE.get(block).map_or(ptr::null_mut(), |block| block.load(Ordering::Acquire));
    start.wrapping_add(offset)
}

/// The limit that `capacity` and `rate` spell.
///
/// Errors: [`Error::Capacity`], [`Error::Rate`]; [`Error::OutOfMemory`] with 2^31 limits in use.
pub fn spelled(capacity: &[u8], rate: &[u8]) -> Result<LimitId, Error> {
    INTERNER.lock().unwrap_or_else(PoisonError::into_inner).spelled(capacity, rate)
}

/// The number of `limit`.
///
/// Errors: [`Error::OutOfMemory`] with 2^31 limits in use.
pub fn intern(limit: &Limit) -> Result<LimitId, Error> {
    INTERNER.lock().unwrap_or_else(PoisonError::into_inner).intern(limit)
}

/// The limit with that number.
pub fn limit(id: LimitId) -> Limit {
    // SAFETY: a number comes from `intern`, which has written the limit; the entry is not written again while it is in
    // use (`sweep`), nor before the next look-up after it was handed out, and blocks that hold such an entry stay.
    unsafe { (*(*entry(id)).limit.get()).assume_init() }
}

/// Keeps the limit from being swept until [`release`] is called as often.
pub fn hold(id: LimitId) {
    // SAFETY: as in `limit`.
    unsafe { (*entry(id)).uses.fetch_add(1, Ordering::Relaxed) };
}

/// Undoes one [`hold`]. From any thread.
pub fn release(id: LimitId) {
    // SAFETY: the use that ends here has kept the entry in its place. This is the last access to it: `sweep` may give the
    // block back as soon as it sees (Acquire) that none is left (Release).
    unsafe { (*entry(id)).uses.fetch_sub(1, Ordering::Release) };
}

/// Capacity, tokens and period: what a limit is.
type Parts = (u64, u64, u64);

fn parts(limit: &Limit) -> Parts {
    (limit.capacity().get(), limit.rate().tokens(), limit.rate().period_us().get())
}

struct Interner {
    by_parts: HashMap<Parts, LimitId>,
    spellings: Box<[Spelling]>,
    /// Numbers below `end` that stand for nothing, the lowest last.
    free: Vec<u32>,
    end: u32,
    sweep_at: usize,
}

impl Interner {
    fn new() -> Self {
        let spellings = (0..SPELLINGS).map(|_| Spelling::EMPTY).collect();
        Self { by_parts: HashMap::new(), spellings, free: Vec::new(), end: 0, sweep_at: SWEEP_MARGIN }
    }

    fn spelled(&mut self, capacity: &[u8], rate: &[u8]) -> Result<LimitId, Error> {
        let outline = (Outline::of(capacity), Outline::of(rate));
        let place = place_of(outline);
        if let Some(id) = self.spellings.get(place).and_then(|spelling| spelling.means(outline, rate)) {
            return Ok(id);
        }
        let limit = Limit::new(
            Tokens::parse(capacity).map_err(|_| Error::Capacity)?,
            Rate::parse(rate).map_err(|_| Error::Rate)?,
        );
        let id = self.intern(&limit)?;
        if let Some(spelling) = self.spellings.get_mut(place) {
            spelling.replace(outline, rate, id);
        }
        Ok(id)
    }

    fn intern(&mut self, limit: &Limit) -> Result<LimitId, Error> {
        if let Some(id) = self.by_parts.get(&parts(limit)) {
            return Ok(*id);
        }
        if self.by_parts.len() >= self.sweep_at {
            self.sweep();
        }
        let id = self.unused()?;
        // SAFETY: the number is free, so nothing reads the entry, and the block is there (`unused`).
        unsafe { (*(*entry(id)).limit.get()).write(*limit) };
        self.by_parts.insert(parts(limit), id);
        stats::LIMITS.store(self.by_parts.len() as u64, Ordering::Relaxed);
        Ok(id)
    }

    /// A number that stands for nothing, in a block that is there.
    fn unused(&mut self) -> Result<LimitId, Error> {
        if let Some(number) = self.free.pop() {
            return Ok(LimitId(number));
        }
        if self.end >= LimitId::END {
            return Err(Error::OutOfMemory);
        }
        let id = LimitId(self.end);
        self.end = self.end.saturating_add(1);
        let (block, _) = id.place();
        if let Some(block_start) = TABLE.get(block)
            && block_start.load(Ordering::Relaxed).is_null()
        {
            block_start.store(new_block(block), Ordering::Release);
        }
        Ok(id)
    }

    /// Forgets the limits that nothing refers to, and gives back the blocks that are empty then.
    fn sweep(&mut self) {
        // SAFETY: the entries are those of known limits, so their blocks are there.
        self.by_parts.retain(|_, id| unsafe { (*entry(*id)).uses.load(Ordering::Acquire) } != 0);
        let mut used: Vec<u32> = self.by_parts.values().map(|id| id.0).collect();
        used.sort_unstable();
        self.end = used.last().map_or(0, |last| last.saturating_add(1));
        let mut used = used.into_iter().peekable();
        self.free = (0..self.end).filter(|number| used.next_if_eq(number).is_none()).collect();
        self.free.reverse();
        for (block, start) in TABLE.iter().enumerate() {
            if LimitId(self.end).place() <= (block, 0) {
                free_block(block, start.swap(ptr::null_mut(), Ordering::AcqRel));
            }
        }
        self.by_parts.shrink_to(self.by_parts.len().saturating_mul(2));
        self.sweep_at = self.by_parts.len().saturating_mul(2).saturating_add(SWEEP_MARGIN);
    }
}

fn block_layout(block: usize) -> Option<Layout> {
    Layout::array::<Entry>(1 << (block as u32).saturating_add(FIRST_BLOCK_BITS)).ok()
}

fn new_block(block: usize) -> *mut Entry {
    let Some(layout) = block_layout(block) else { return ptr::null_mut() };
    // SAFETY: the layout is not empty. Zeros are an entry that is not in use.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        handle_alloc_error(layout);
    }
    start.cast()
}

fn free_block(block: usize, start: *mut Entry) {
    if let Some(layout) = block_layout(block)
        && !start.is_null()
    {
        // SAFETY: made by `new_block` with this layout, and out of the table; no entry in it is in use, so nobody comes
        // for one.
        unsafe { dealloc(start.cast(), layout) };
    }
}

/// Capacity and rate as a caller wrote them, and the limit that they mean.
struct Spelling {
    id: Option<LimitId>,
    outline: (Outline, Outline),
    rate: [u8; MAX_RATE_LEN],
}

impl Spelling {
    const EMPTY: Self = Self { id: None, outline: (Outline::EMPTY, Outline::EMPTY), rate: [0; MAX_RATE_LEN] };

    /// The limit, if this is how `capacity` and `rate` are spelled. A valid capacity is no longer than its outline.
    fn means(&self, outline: (Outline, Outline), rate: &[u8]) -> Option<LimitId> {
        if self.outline != outline {
            return None;
        }
        let same = rate.len() <= Outline::WHOLE || self.rate.get(..rate.len()) == Some(rate);
        same.then_some(self.id).flatten()
    }

    fn replace(&mut self, outline: (Outline, Outline), rate: &[u8], id: LimitId) {
        hold(id);
        if let Some(old) = self.id.replace(id) {
            release(old);
        }
        self.outline = outline;
        if let Some(place) = self.rate.get_mut(..rate.len()) {
            place.copy_from_slice(rate);
        }
    }
}

/// The length of a text and its first and last eight bytes: all of a text of up to [`Outline::WHOLE`] bytes, and enough
/// to tell most others apart.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Outline {
    first: u64,
    last: u64,
    len: usize,
}

impl Outline {
    const EMPTY: Self = Self { first: 0, last: 0, len: 0 };
    const WHOLE: usize = 16;

    fn of(text: &[u8]) -> Self {
        let (first, last) = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (text.first_chunk(), text.last_chunk()) {
                (Some(first), Some(last)) => (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()),
                _ => (text.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)), 0),
            },
        };
        Self { first, last, len: text.len() }
    }

    fn mixed(self) -> u64 {
        self.first.rotate_left(32) ^ self.last ^ self.len as u64
    }
}

/// Where a spelling belongs. Two that collide cost whoever sends them in turn a parse each, nothing else.
fn place_of((capacity, rate): (Outline, Outline)) -> usize {
    // An odd number without pattern (2^64 over the golden ratio) spreads every bit into the high ones, which are used.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (capacity.mixed().wrapping_mul(SPREAD) ^ rate.mixed()).wrapping_mul(SPREAD);
    (hash >> 40) as usize % SPELLINGS
}
