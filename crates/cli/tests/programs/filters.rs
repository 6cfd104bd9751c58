//! Filters of system calls that programs set for themselves leave the engine alone.

use super::built::{Built, expect_same};
use super::child::Outcome;
use super::trial;

/// Fills 12 MiB, and sets filters in the ways its arguments name.
const SOURCE: &str = include_str!("filters.c");

#[test]
fn found_f15_a_filter_for_all_threads_leaves_the_engine_alone() {
    compare(
        "filters-all",
        &["for-all", "without-right", "probe", "kills"],
    );
}

#[test]
fn found_f15_a_program_permits_itself_little() {
    compare("filters-one", &["for-one", "prctl", "strict"]);
}

#[test]
fn found_f15_a_filtered_program_forks() {
    compare("filters-fork", &["forks", "forks-refused"]);
}

#[test]
fn found_f15_a_filtered_program_executes_another() {
    let Some(program) = Built::new("filters-exec", SOURCE) else {
        return;
    };
    let outcome = run(&program, &["executes"]);
    outcome.expect_success("executes");
    let expected = "executes: 0, 0 pages wrong\nexecuted\nstatus: 0, 0 pages wrong\n";
    assert_eq!(outcome.output_text(), expected);
}

#[test]
fn found_f15_a_filter_for_several_threads_is_set() {
    compare("filters-threads", &["threads"]);
}

/// Runs the program natively and in less memory than it fills: same output, same status.
fn compare(name: &str, ways: &[&str]) {
    if let Some(program) = Built::new(name, SOURCE) {
        let native = program.run_natively(ways);
        expect_same(&run(&program, ways), &native, &format!("{ways:?}"));
    }
}

fn run(program: &Built, ways: &[&str]) -> Outcome {
    let statistics = program.scratch.join("statistics.json");
    let stats = statistics.to_str().expect("the test's own path is text");
    let outcome = program.run_managed(&["--stats", stats], ways);
    let what = format!("{ways:?}");
    let total = trial::Statistics::read(&statistics, &what, &outcome);
    assert!(total.field("page_outs") > 0, "{what}: nothing was paged");
    outcome
}
