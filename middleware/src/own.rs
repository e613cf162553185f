//! Limits of single clients, in the place of a policy's. They are kept in a hash of their own, which does not expire, so they
//! are not lost when the client is idle. Each instance asks for a client's again after [`FRESH`].

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use rl_core::Limit;

use crate::client::Client;
use crate::policy::{PolicyName, limit};

/// How long an instance goes by what it has read of a client's own limits.
pub const FRESH: Duration = Duration::from_secs(5);

/// A client's own limits, by policy.
pub type Own = BTreeMap<PolicyName, Limit>;

struct Known {
    own: Arc<Own>,
    read: Instant,
}

/// What this instance knows of clients' own limits.
pub(crate) struct OwnLimits {
    known: Mutex<LruCache<Client, Known>>,
}

impl OwnLimits {
    /// Room for so many clients.
    pub(crate) fn new(room: NonZeroUsize) -> Self {
        let mut known = LruCache::unbounded();
        known.resize(room);
        Self { known: Mutex::new(known) }
    }

    /// What is known of a client, and whether it is fresh.
    pub(crate) fn known(&self, client: &Client, now: Instant) -> Option<(Arc<Own>, bool)> {
        let mut known = self.lock();
        let entry = known.get(client)?;
        Some((entry.own.clone(), now.saturating_duration_since(entry.read) < FRESH))
    }

    /// Keeps what was read of a client.
    pub(crate) fn keep(&self, client: &Client, own: Own, now: Instant) -> Arc<Own> {
        let own = Arc::new(own);
        self.lock().put(client.clone(), Known { own: own.clone(), read: now });
        own
    }

    /// Reads the client's anew with the next request.
    pub(crate) fn forget(&self, client: &Client) {
        self.lock().pop(client);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Client, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A limit as it stands in the hash: capacity, a blank, the rate.
pub(crate) fn written(limit: &Limit) -> String {
    format!("{} {}", limit.capacity().get(), limit.rate())
}

/// Reads the hash. What somebody else has put there and is none is passed over.
pub(crate) fn read(fields: impl IntoIterator<Item = (String, String)>) -> Own {
    let entry = |(name, text): (String, String)| {
        let (capacity, rate) = text.split_once(' ')?;
        Some((PolicyName::new(&name).ok()?, limit(capacity.parse().ok()?, rate).ok()?))
    };
    fields.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_was_written() {
        for (capacity, rate) in [(10, "10/h"), (0, "0"), (7, "1.6666666666666667"), ((1 << 53) - 1, "1000000")] {
            let limit = limit(capacity, rate).unwrap();
            let own = read([("p".to_owned(), written(&limit))]);
            assert_eq!(own.into_iter().collect::<Vec<_>>(), [(PolicyName::new("p").unwrap(), limit)]);
        }
        for text in ["", "10", "10 often", "-1 1", "x y"] {
            assert!(read([("p".to_owned(), text.to_owned())]).is_empty(), "{text}");
        }
    }

    #[test]
    fn is_fresh_for_a_while() {
        let (limits, client, now) = (OwnLimits::new(NonZeroUsize::MIN), Client::user("1"), Instant::now());
        assert!(limits.known(&client, now).is_none());
        limits.keep(&client, Own::new(), now);
        assert!(limits.known(&client, now + FRESH / 2).is_some_and(|(_, fresh)| fresh));
        assert!(limits.known(&client, now + FRESH).is_some_and(|(_, fresh)| !fresh));
    }
}
