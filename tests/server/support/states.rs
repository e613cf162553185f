//! States that no clock has to be waited for: put into a key as they are.

use rl_core::codec::{Record, RecordedExpiry, encode_record};
use rl_core::{Bucket, Held, Limit, Rate, Tokens, UnixMicros};

use super::Client;

/// A bucket of `capacity` and `rate` that at `last_change_us` is `short_us` of refill short of holding `tokens`.
pub fn held(capacity: u64, rate: &str, (tokens, short_us): (u64, u64), last_change_us: u64) -> Held {
    let rate = Rate::parse(rate.as_bytes()).unwrap();
    let limit = Limit::new(Tokens::new(capacity).unwrap(), rate);
    let level = limit.shares(Tokens::new(tokens).unwrap()) - i128::from(short_us) * i128::from(rate.tokens());
    Held { bucket: Bucket { level, last_change: UnixMicros::saturating(last_change_us) }, limit }
}

impl Client {
    /// Puts `state` into `key`, without expiry.
    pub fn put(&mut self, key: &str, state: Held) {
        let payload = encode_record(&Record { expiry: RecordedExpiry::None, state });
        let _: () = self.ask(&[b"RL.RESTORE".as_slice(), key.as_bytes(), payload.as_bytes()]);
    }
}
