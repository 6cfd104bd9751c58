//! Processes end as they do without an engine, whose threads are not the program's.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::{child, needs};

/// Ends children, and itself, in the ways its arguments name.
const SOURCE: &str = include_str!("ends.c");
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn found_f13_a_process_ends_when_its_last_thread_exits() {
    let ways = [
        "clone-returns-0",
        "clone-returns-9",
        "clone-forks",
        "clone-shares",
        "vfork",
        "fork-call",
        "exit-call",
        "exit-call-with-memory",
        "thread-leaves",
        "without-list",
        "signal",
    ];
    compare("ends-children", &ways);
}

#[test]
fn found_f13_a_process_outlives_its_first_thread() {
    let ways = [
        "exit-call-then-thread",
        "pthread-exit",
        "joined",
        "thread-executes",
        "thread-executes-beside",
        "orphan",
    ];
    compare("ends-first", &ways);
}

#[test]
fn found_f13_a_process_ends_with_the_status_of_its_last_thread() {
    // Older kernels tell nobody what a thread ended with.
    if needs::has_kernel(6, 15) {
        compare("ends-last", &["exit-call-then-threads"]);
    }
}

#[test]
fn found_f13_a_program_ends_when_its_main_thread_exits() {
    compare("ends-main", &["main"]);
    compare("ends-main-thread", &["main-thread"]);
}

/// Runs the program natively and in less memory than it fills: same output, same status.
fn compare(name: &str, ways: &[&str]) {
    if !needs::are_met(&["cc"]) {
        return;
    }
    let scratch = Scratch::new(name);
    let source = scratch.write("ends.c", SOURCE);
    let program = scratch.join("ends");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-pthread", "-o"]);
    compile.arg(&program).arg(source);
    child::run(compile, &scratch.join("cc"), LIMIT).expect_success("cc");
    let mut native = Command::new(&program);
    native.args(ways);
    let native = child::run(native, &scratch.join("native"), LIMIT);
    for mode in [&[][..], &["--in-thread"]] {
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "8M"]).args(mode).arg("--");
        command.arg(&program).args(ways);
        let outcome = child::run(command, &scratch.join("out"), LIMIT);
        let said = |outcome: &child::Outcome| (outcome.output_text(), outcome.errors_text());
        assert_eq!(said(&outcome), said(&native), "{mode:?}");
        assert_eq!(outcome.status, native.status, "{mode:?}");
    }
}
