//! `SIGBUS`, by which threads hear of their faults with `--in-thread`, as programs use it.

use super::built::{self, Built};

const SOURCE: &str = include_str!("actions.c");

#[test]
fn a_program_that_handles_sigbus_itself_is_ended_with_a_reason() {
    let Some(program) = Built::new("actions-handled", SOURCE) else {
        return;
    };
    let outcome = program.run_managed(&["--in-thread"], &["handled"]);
    assert_ne!(outcome.status.code(), Some(0));
    let said = outcome.errors_text();
    assert!(
        said.contains("handles SIGBUS") && said.contains("--in-thread"),
        "{said}"
    );
}

#[test]
fn sigbus_that_is_sent_ends_a_process() {
    built::compare("actions-sent", SOURCE, &["sent"]);
}

#[test]
fn a_program_that_is_started_with_signals_blocked_has_its_memory() {
    built::compare("actions-blocked", SOURCE, &["blocked"]);
}
