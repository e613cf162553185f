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
    /// or is wrong is reported (`tracing`, level error), once for each change, and the rules stay.
    ///
    /// Looking beats watching here: editors and orchestrators replace files in ways that watches lose.
    pub async fn follow(self, path: PathBuf, every: Duration) {
        // The file may have changed since whoever calls this has read it: the first look counts, too.
        let mut seen = None;
        loop {
            let found = read(&path).await;
            if seen.as_ref() != Some(&found) {
                self.follow_up(&path, found.as_deref());
                seen = Some(found);
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Puts the rules of a file that was found to be `text` in force, unless they are.
    fn follow_up(&self, path: &Path, text: Result<&str, &String>) {
        match text.map_err(RulesError::new).and_then(Rules::parse) {
            Ok(rules) if rules == *self.now() => {}
            Ok(rules) => {
                self.replace(rules);
                tracing::info!(path = %path.display(), "rules reloaded");
            }
            Err(error) => tracing::error!(path = %path.display(), %error, "the rules stay as they are"),
        }
    }
}

/// What the file holds, or why that is not known.
async fn read(path: &Path) -> Result<String, String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path).map_err(|error| error.to_string()));
    read.await.unwrap_or_else(|error| Err(error.to_string()))
}
