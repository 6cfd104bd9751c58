//! Forks by every way there is: the child has its parent's memory, also that which is out.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::trial::Statistics;
use super::{child, needs};

/// Fills 12 MiB, forks, and checks and changes all of it on both sides, twice.
const SOURCE: &str = include_str!("forks.c");
const LIMIT: Duration = Duration::from_secs(300);

const BOTH: [&[&str]; 2] = [&[], &["--in-thread"]];

#[test]
fn a_fork_by_the_c_library() {
    compare(&["fork", "_Fork", "clone"], &BOTH);
}

#[test]
fn a_fork_with_threads_whose_stacks_are_out() {
    // In-thread, a signal could not be delivered on such a stack.
    compare(&["fork-threads"], &BOTH[..1]);
}

#[test]
fn a_fork_by_a_system_call_through_the_c_library() {
    compare(&["clone-call", "clone3-call", "fork-call"], &BOTH);
}

#[test]
fn a_fork_by_a_system_call_of_the_programs_own() {
    compare(&["own-call"], &BOTH);
}

#[test]
fn found_rawfork_a_child_gets_pages_of_mappings_that_lie_side_by_side() {
    compare(&["own-call-split"], &BOTH);
}

#[test]
fn found_rawfork_a_child_changes_its_memory_before_it_has_got_all_of_it() {
    compare(&["own-call-change"], &BOTH);
}

#[test]
fn a_child_that_shares_its_parents_memory() {
    compare(&["vfork"], &BOTH);
    // The child of `posix_spawn` has no handlers: in-thread it dies of the first page that is out.
    compare(&["spawn"], &BOTH[..1]);
}

fn compare(ways: &[&str], modes: &[&[&str]]) {
    if !needs::are_met(&["cc"]) {
        return;
    }
    let scratch = Scratch::new(&format!("forks-{}", ways[0]));
    let source = scratch.write("forks.c", SOURCE);
    let program = scratch.join("forks");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-pthread", "-o"]);
    compile.arg(&program).arg(source);
    child::run(compile, &scratch.join("cc"), LIMIT).expect_success("cc");
    for way in ways {
        for mode in modes {
            let what = format!("{way} {mode:?}");
            let statistics = scratch.join("statistics.json");
            let mut command = Command::new(needs::tidemark());
            command.args(["run", "--memory", "8M", "--stats"]);
            command.arg(&statistics).args(*mode).arg("--");
            command.arg(&program).arg(way);
            let outcome = child::run(command, &scratch.join("out"), LIMIT);
            outcome.expect_success(&what);
            let expected = "child status 7, 0 pages wrong\n".repeat(2);
            let said = (outcome.output_text(), outcome.errors_text());
            assert_eq!(said, (expected, String::new()), "{what}");
            let total = Statistics::read(&statistics, &what, &outcome);
            total.check(&what);
            assert!(total.field("page_outs") > 0, "{what}: nothing was paged");
        }
    }
}
