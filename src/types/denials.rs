//! What a node has seen of a key's denials. Its observation: not part of the state, not saved, replicated or digested.

use rl_core::UnixMicros;

/// How many, and when the last one was.
#[derive(Debug, Default)]
pub struct Denials {
    count: u32,
    last_s: u32,
}

impl Denials {
    /// Notes that a call was denied at `now`.
    pub fn note(&mut self, now: UnixMicros) {
        self.count = self.count.saturating_add(1);
        self.last_s = u32::try_from(now.get() / 1_000_000).unwrap_or(u32::MAX);
    }

    /// How many calls this node has denied since the key was created or loaded; stands still at 2^32 - 1.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// When the last of them was, in seconds since the Unix epoch.
    pub fn last_s(&self) -> Option<u32> {
        (self.count > 0).then_some(self.last_s)
    }
}
