//! The most denied keys, in bounded memory: a Space-Saving sketch.
//!
//! It keeps a fixed number of counters, one a key. A key that has none takes over the smallest counter, and with it, as its
//! possible error, what that had counted. So with `n` counters and `N` denials in all:
//!
//! - every key denied more than `N / n` times has a counter;
//! - a counter is at least the true number, and at most its error above it; a key that never lost its counter has no error.
//!
//! Noting a denial is a look-up and a few steps in a heap; a new key also costs a copy of its name.
//!
//! Source: A. Metwally, D. Agrawal, A. El Abbadi, Efficient Computation of Frequent and Top-k Elements in Data Streams
//! (2005).

use std::collections::HashMap;
use std::mem;

use crate::quantity::UnixMicros;

/// A key and what was counted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// Its name.
    pub key: Box<[u8]>,
    /// How often it was denied, or up to `error` less.
    pub denials: u64,
    /// How much of that may have been another key's.
    pub error: u64,
    /// When it was last denied.
    pub last: UnixMicros,
}

/// The sketch.
#[derive(Debug, Default)]
pub struct Offenders {
    most: usize,
    counters: Vec<Offender>,
    by_key: HashMap<Box<[u8]>, usize>,
    /// The counters' numbers, as a heap with the smallest counter first.
    heap: Vec<usize>,
    /// Where in the heap each counter is.
    places: Vec<usize>,
}

impl Offenders {
    /// A sketch of at most `most` keys; with 0 it notes nothing.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Notes that `key` was denied at `now`.
    pub fn note(&mut self, key: &[u8], now: UnixMicros) {
        if let Some(number) = self.by_key.get(key).copied() {
            self.count(number, now);
        } else if self.counters.len() < self.most {
            let number = self.counters.len();
            self.counters.push(Offender { key: key.into(), denials: 0, error: 0, last: now });
            self.by_key.insert(key.into(), number);
            self.places.push(self.heap.len());
            self.heap.push(number);
            self.rise(number);
            self.count(number, now);
        } else if let Some(number) = self.heap.first().copied() {
            self.take_over(number, key);
            self.count(number, now);
        }
    }

    /// The `count` most denied keys, the most denied first, and of equals the one denied last.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<&Offender> {
        let mut all: Vec<&Offender> = self.counters.iter().collect();
        all.sort_unstable_by(|a, b| (b.denials, b.last, &a.key).cmp(&(a.denials, a.last, &b.key)));
        all.truncate(count);
        all
    }

    /// Keeps at most `most` keys from now on, the most denied of those that are there.
    pub fn resize(&mut self, most: usize) {
        let kept: Vec<Offender> = self.top(most).into_iter().cloned().collect();
        *self = Self::new(most);
        for offender in kept {
            let number = self.counters.len();
            self.by_key.insert(offender.key.clone(), number);
            self.counters.push(offender);
            self.places.push(self.heap.len());
            self.heap.push(number);
            self.rise(number);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self::new(self.most);
    }

    fn take_over(&mut self, number: usize, key: &[u8]) {
        if let Some(counter) = self.counters.get_mut(number) {
            let old = mem::replace(&mut counter.key, key.into());
            counter.error = counter.denials;
            self.by_key.remove(&old);
            self.by_key.insert(key.into(), number);
        }
    }

    fn count(&mut self, number: usize, now: UnixMicros) {
        if let Some(counter) = self.counters.get_mut(number) {
            counter.denials = counter.denials.saturating_add(1);
            counter.last = now;
        }
        self.sink(number);
    }

    fn denials(&self, number: usize) -> u64 {
        self.counters.get(number).map_or(0, |counter| counter.denials)
    }

    /// Moves a counter that has grown down the heap.
    fn sink(&mut self, number: usize) {
        let Some(mut at) = self.places.get(number).copied() else { return };
        loop {
            let first = at.saturating_mul(2).saturating_add(1);
            let child = [first, first.saturating_add(1)]
                .into_iter()
                .filter_map(|place| Some((place, self.denials(*self.heap.get(place)?))))
                .min_by_key(|(_, denials)| *denials);
            match child {
                Some((place, denials)) if denials < self.denials(number) => {
                    self.swap(at, place);
                    at = place;
                }
                _ => return,
            }
        }
    }

    /// Moves a counter that was put at the end up the heap.
    fn rise(&mut self, number: usize) {
        let Some(mut at) = self.places.get(number).copied() else { return };
        while at > 0 {
            let parent = at.saturating_sub(1) / 2;
            let above = self.heap.get(parent).map_or(0, |above| self.denials(*above));
            if above <= self.denials(number) {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        if a < self.heap.len() && b < self.heap.len() {
            self.heap.swap(a, b);
            for place in [a, b] {
                if let Some(number) = self.heap.get(place)
                    && let Some(known) = self.places.get_mut(*number)
                {
                    *known = place;
                }
            }
        }
    }
}
