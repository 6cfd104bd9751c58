//! Filters of system calls that programs set for themselves leave the engine alone.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::child::{self, Outcome};
use super::scratch::Scratch;
use super::{needs, trial};

/// Fills 12 MiB, and sets filters in the ways its arguments name.
const SOURCE: &str = include_str!("filters.c");
const LIMIT: Duration = Duration::from_secs(120);

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
    compare("filters-fork", &["forks"]);
}

#[test]
fn found_f15_a_filtered_program_executes_another() {
    let scratch = Scratch::new("filters-exec");
    let Some(program) = compile(&scratch) else {
        return;
    };
    let outcome = run(&scratch, &program, &["executes"]);
    outcome.expect_success("executes");
    let expected = "executes: 0, 0 pages wrong\nexecuted\nstatus: 0, 0 pages wrong\n";
    assert_eq!(outcome.output_text(), expected);
}

#[test]
fn found_f15_a_filter_for_several_threads_is_refused_with_a_reason() {
    let scratch = Scratch::new("filters-threads");
    let Some(program) = compile(&scratch) else {
        return;
    };
    let outcome = run(&scratch, &program, &["threads"]);
    outcome.expect_success("threads");
    let expected = "threads: -1, 0 pages wrong\nstatus: 3, 0 pages wrong\n";
    let complaint = "tidemark: a filter for all threads at once is refused: the engine's are among \
                     them\n";
    let said = (outcome.output_text(), outcome.errors_text());
    assert_eq!(said, (expected.into(), complaint.into()));
}

/// Runs the program natively and in less memory than it fills: same output, same status.
fn compare(name: &str, ways: &[&str]) {
    let scratch = Scratch::new(name);
    let Some(program) = compile(&scratch) else {
        return;
    };
    let mut native = Command::new(&program);
    native.args(ways);
    let native = child::run(native, &scratch.join("native"), LIMIT);
    let outcome = run(&scratch, &program, ways);
    let said = |outcome: &Outcome| (outcome.output_text(), outcome.errors_text());
    assert_eq!(said(&outcome), said(&native));
    assert_eq!(outcome.status, native.status);
}

fn run(scratch: &Scratch, program: &PathBuf, ways: &[&str]) -> Outcome {
    let statistics = scratch.join("statistics.json");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "8M", "--stats"]);
    command.arg(&statistics).arg("--");
    command.arg(program).args(ways);
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    let what = format!("{ways:?}");
    let total = trial::Statistics::read(&statistics, &what, &outcome);
    assert!(total.field("page_outs") > 0, "{what}: nothing was paged");
    outcome
}

fn compile(scratch: &Scratch) -> Option<PathBuf> {
    if !needs::are_met(&["cc"]) {
        return None;
    }
    let source = scratch.write("filters.c", SOURCE);
    let program = scratch.join("filters");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-pthread", "-o"]);
    compile.arg(&program).arg(source);
    child::run(compile, &scratch.join("cc"), LIMIT).expect_success("cc");
    Some(program)
}
