//! The sections of `INFO` that the module adds.

use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;

use rl_core::classes::Outcomes;

use crate::server::registration::Command;
use crate::server::report::{Report, Tells};
use crate::stats::{self, Counter, Tally};
use crate::types::Holds;
use crate::{COMMANDS, classes, config};

/// Totals, each command, and if wanted each class of key.
pub struct Sections;

impl Tells for Sections {
    fn tell(report: &Report) {
        let commands = || COMMANDS.iter().filter(|command| !command.is_optional || config::cl_throttle());
        let total = |of: fn(&Tally) -> &Counter| commands().map(|command| of(command.tally).get()).sum::<u64>();
        report.section(None);
        report.number(c"allowed", total(|tally| &tally.allowed));
        report.number(c"denied", total(|tally| &tally.denied));
        report.number(c"errors", total(|tally| &tally.errors));
        report.number(c"refunds", stats::REFUNDS.get());
        report.number(c"buckets", Holds::Bucket.value_type().live());
        report.number(c"windows", Holds::Log.value_type().live());
        report.number(c"counters", Holds::Counter.value_type().live());
        report.number(c"quotas", Holds::Quota.value_type().live());
        report.number(c"limits", stats::LIMITS.load(Ordering::Relaxed));
        commands().for_each(|command| command_row(report, command));
        if let Some((classes, other)) = classes::all() {
            report.section(Some(c"classes"));
            for (number, (class, outcomes)) in classes.into_iter().enumerate() {
                let name = CString::new(format!("class{number}")).unwrap_or_default();
                class_row(report, &name, Some(&CString::new(class).unwrap_or_default()), outcomes);
            }
            class_row(report, c"other", None, other);
        }
    }
}

fn command_row(report: &Report, command: &Command) {
    report.several(command.label, || {
        report.number(c"calls", command.tally.calls.get());
        report.number(c"allowed", command.tally.allowed.get());
        report.number(c"denied", command.tally.denied.get());
        report.number(c"errors", command.tally.errors.get());
    });
}

fn class_row(report: &Report, name: &CStr, class: Option<&CStr>, outcomes: Outcomes) {
    report.several(name, || {
        if let Some(class) = class {
            report.text(c"class", class);
        }
        report.number(c"allowed", outcomes.allowed);
        report.number(c"denied", outcomes.denied);
    });
}
