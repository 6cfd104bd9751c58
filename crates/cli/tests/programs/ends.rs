//! Processes end as they do without an engine, whose threads are not the program's.

use super::built;
use super::needs;

/// Ends children, and itself, in the ways its arguments name.
const SOURCE: &str = include_str!("ends.c");

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

fn compare(name: &str, ways: &[&str]) {
    built::compare(name, SOURCE, ways);
}
