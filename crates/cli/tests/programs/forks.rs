//! Forks by every way there is: the child has its parent's memory, also that which is out.

use std::cmp::Reverse;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::built::{self, BOTH, Built};
use super::trial::Statistics;
use super::{needs, process_tree};

/// Fills 12 MiB, forks, and checks and changes all of it on both sides, twice.
const SOURCE: &str = include_str!("forks.c");

#[test]
fn a_fork_by_the_c_library() {
    compare(&["fork", "_Fork", "clone"], &BOTH);
}

#[test]
fn a_child_whose_stack_is_not_there() {
    // In-thread, a signal could not be delivered on such a stack.
    compare(&["clone-managed"], &BOTH[..1]);
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

#[test]
fn memory_to_be_wiped_reads_as_zeros_in_forked_children() {
    let source = include_str!("wipes.c");
    built::compare("forks-wipe", source, &["fork", "_Fork", "own-call"]);
}

#[test]
fn a_child_that_another_process_looks_into_before_it_has_an_engine() {
    // The kernel keeps its memory registered where this may trace processes.
    if !(needs::is_root() || needs::lacks("not root")) {
        return;
    }
    let Some(program) = Built::new("forks-peek", include_str!("peeks.c")) else {
        return;
    };
    let ways = ["read", "write", "kill"].repeat(5);
    program.compare(
        &[&[], &["--store", "file"], &["--store", "compressed"]],
        &ways,
    );
}

#[test]
fn nothing_is_kept_for_children_that_are_killed_before_they_have_an_engine() {
    let Some(program) = Built::new("forks-killed", include_str!("peeks.c")) else {
        return;
    };
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "8M", "--"]);
    command.arg(&program.path).args(["kill"; 20]).arg("stay");
    let begun = Instant::now();
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was built");
    let mut lines = BufReader::new(run.stdout.take().expect("it is piped")).lines();
    assert!(lines.any(|line| line.expect("lines are text") == "stay"));
    // Without their memory the program could go on only after a minute.
    assert!(begun.elapsed() < Duration::from_secs(30), "memory is kept");
    let begun = Instant::now();
    let mut engines = process_tree::engines(run.id());
    engines.sort_by_key(|engine| Reverse(count_userfaultfds(*engine)));
    // One for its program, and one for the tip of its pool.
    while count_userfaultfds(engines[0]) > 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "still open");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
}

/// Otherwise the engine of a child that executes another program learns of it by a look, five times
/// a second, and the other program waits for that.
#[test]
fn found_k1_the_engine_of_a_child_of_fork_is_told_when_its_program_leaves() {
    let source = include_str!("lifeline.c");
    let Some(program) = Built::new("forks-lifeline", source) else {
        return;
    };
    assert_eq!(program.run_natively(&[]).output_text(), "nothing\n");
    let managed = program.run_managed(&[], &[]);
    assert_eq!(managed.output_text(), "held\n", "{managed:?}");
}

fn count_userfaultfds(process: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    let links = files.into_iter().flatten().flatten();
    let links = links.filter_map(|file| std::fs::read_link(file.path()).ok());
    links
        .filter(|link| link.as_os_str() == "anon_inode:[userfaultfd]")
        .count()
}

fn compare(ways: &[&str], modes: &[&[&str]]) {
    let Some(program) = Built::new(&format!("forks-{}", ways[0]), SOURCE) else {
        return;
    };
    let statistics = program.scratch.join("statistics.json");
    let stats = statistics.to_str().expect("the test's own path is text");
    for way in ways {
        for mode in modes {
            let what = format!("{way} {mode:?}");
            let options = [&["--stats", stats], *mode].concat();
            let outcome = program.run_managed(&options, &[way]);
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
