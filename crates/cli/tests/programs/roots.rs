//! Programs that change their root, from where nothing of the run can be found by its path.

use super::built::{BOTH, Built, expect_same};
use super::needs;

/// Fills 12 MiB, changes its root, and forks.
const SOURCE: &str = include_str!("roots.c");

#[test]
fn a_child_forked_under_another_root_is_managed() {
    if !(needs::is_root() || needs::lacks("not root")) {
        return;
    }
    let Some(program) = Built::new("roots", SOURCE) else {
        return;
    };
    let root = program.scratch.folder("root");
    let ways = [
        root.to_str().expect("the test's own path is text"),
        "with-proc",
    ];
    program.compare(&BOTH, &ways);
}

#[test]
fn a_child_forked_where_there_is_no_proc_has_its_memory_and_says_that_it_is_not_managed() {
    if !(needs::is_root() || needs::lacks("not root")) {
        return;
    }
    let Some(program) = Built::new("roots-bare", SOURCE) else {
        return;
    };
    let root = program.scratch.folder("root");
    let ways = [root.to_str().expect("the test's own path is text"), "bare"];
    let native = program.run_natively(&ways);
    for mode in BOTH {
        let mut outcome = program.run_managed(mode, &ways);
        let said = outcome.errors_text();
        assert_eq!(said.lines().count(), 2, "{said}");
        let is_reason = |line: &str| line.ends_with("a forked process runs unmanaged");
        assert!(said.lines().all(is_reason), "{said}");
        outcome.errors.clear();
        expect_same(&outcome, &native, &format!("{mode:?}"));
    }
}
