//! What the tests of this crate share: a naive model, histories to run, times as tables have them, a search for simple
//! fractions, printed floats.

// Every test crate compiles all of it and uses its own part.
#![allow(dead_code)]

pub mod floats;
pub mod generate;
pub mod history;
pub mod mixed;
pub mod model;
pub mod oracle;
pub mod table;
pub mod usage;

use proptest::test_runner::{Config, FileFailurePersistence};

/// Proptest's defaults (`PROPTEST_CASES` sets the number of cases), with the failing seeds kept beside the test: the
/// default place is beside `lib.rs`, which proptest does not find from here.
pub fn config() -> Config {
    Config {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..Config::default()
    }
}
