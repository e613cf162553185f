//! The denials of late that this instance has seen, for people who ask why.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::verdict::Incident;

/// How many are kept.
pub const KEPT: usize = 1000;

/// The last denials, in the order in which they came.
#[derive(Default)]
pub(crate) struct Incidents(Mutex<VecDeque<Incident>>);

impl Incidents {
    /// Adds one; the oldest goes where there are too many.
    pub(crate) fn add(&self, incident: Incident) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(incident);
    }

    /// The last `count` that fit, the newest first.
    pub(crate) fn latest(&self, count: usize, fits: impl Fn(&Incident) -> bool) -> Vec<Incident> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().filter(|incident| fits(incident)).take(count).cloned().collect()
    }
}
