//! Rules that can be exchanged while requests are decided.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::{Rules, RulesError};

/// The rules in force. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LiveRules(Arc<ArcSwap<Rules>>);

impl LiveRules {
    /// `rules`, until others come.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(rules)))
    }

    /// The rules in force now. A request asks once, so that it falls under the old ones or the new ones.
    #[must_use]
    pub fn now(&self) -> Arc<Rules> {
        self.0.load_full()
    }

    /// Puts `rules` in force for all requests that come from now on. A bucket whose limit has changed keeps its tokens,
    /// at most the new capacity.
    pub fn replace(&self, rules: Rules) {
        self.0.store(Arc::new(rules));
    }

    /// Puts the rules of a TOML text in force.
    ///
    /// Errors: what is wrong with it, and its line; then the rules stay as they are.
    pub fn reload(&self, text: &str) -> Result<(), RulesError> {
        self.replace(Rules::parse(text)?);
        Ok(())
    }

    /// Looks at the file at `path` again and again, and puts its rules in force when it has changed. A file that cannot be read
    /// or is wrong is reported (`tracing`, level error), once for each change, and the rules stay. A change counts when two looks
    /// in a row have found it: a file that is just being written can be a good one with rules missing, or be empty.
    ///
    /// Looking beats watching here: editors and orchestrators replace files in ways that watches lose.
    pub async fn follow(self, path: PathBuf, every: Duration) {
        let mut looks = Looks::default();
        loop {
            if let Some(found) = looks.found(read(&path).await) {
                self.follow_up(&path, found);
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Puts the rules of a file that was found to be `text` in force, unless they are.
    fn follow_up(&self, path: &Path, found: &Found) {
        match found.as_deref().map_err(RulesError::new).and_then(Rules::parse) {
            Ok(rules) if rules == *self.now() => {}
            Ok(rules) => {
                self.replace(rules);
                tracing::info!(path = %path.display(), "rules reloaded");
            }
            Err(error) => tracing::error!(path = %path.display(), %error, "the rules stay as they are"),
        }
    }
}

/// What a file holds, or why that is not known.
type Found = Result<String, String>;

/// What looks at a file have found.
#[derive(Default)]
pub(super) struct Looks {
    last: Option<Found>,
    /// What was last followed up. Nothing was at first: the file may have changed since whoever follows it has read it.
    followed: Option<Found>,
}

impl Looks {
    /// What to follow up after a look that has found this: what was found twice, if that is new.
    pub(super) fn found(&mut self, found: Found) -> Option<&Found> {
        let before = self.last.replace(found.clone());
        if before.as_ref() != Some(&found) || self.followed.as_ref() == Some(&found) {
            return None;
        }
        Some(self.followed.insert(found))
    }
}

async fn read(path: &Path) -> Found {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path).map_err(|error| error.to_string()));
    read.await.unwrap_or_else(|error| Err(error.to_string()))
}
