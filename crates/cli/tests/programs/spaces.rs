//! Calls that the kernel permits to processes of one thread: the engine is in no way.

use std::process::Command;

use super::built::{self, LIMIT};
use super::scratch::Scratch;
use super::{child, needs};

/// Fills 12 MiB, and calls `unshare` and `setns` in the ways its arguments name.
const SOURCE: &str = include_str!("spaces.c");

#[test]
fn found_f14_a_program_enters_namespaces_of_its_own() {
    compare(
        "spaces-unshare",
        &[
            "unshare",
            "unshare-call",
            "unshare-processes",
            "unshare-often",
        ],
    );
    compare("spaces-memory", &["unshare-memory", "unshare-nonsense"]);
}

#[test]
fn found_f14_a_program_enters_the_namespaces_of_others() {
    let ways = [
        "setns-neighbour",
        "setns-neighbour-call",
        "setns-neighbour-process",
        "setns-neighbour-last",
        "setns-own",
        "setns-mounts",
        "setns-time",
    ];
    compare("spaces-setns", &ways);
}

#[test]
fn found_f14_a_program_of_several_threads_enters_none() {
    compare("spaces-threads", &["two-threads", "two-threads-setns"]);
}

#[test]
fn found_f14_processes_of_one_number_are_told_apart() {
    compare("spaces-firsts", &["two-firsts"]);
}

#[test]
fn found_f14_unshare_runs_a_command_in_its_own_namespaces() {
    if !needs::are_met(&["unshare"]) {
        return;
    }
    let scratch = Scratch::new("spaces-command");
    let ways = [&["-Ur"][..], &["-Urmpf", "--mount-proc"]];
    for way in ways {
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "64M", "--", "unshare"]);
        command.args(way).args(["id", "-u"]);
        let outcome = child::run(command, &scratch.join("out"), LIMIT);
        outcome.expect_success(&format!("{way:?}"));
        assert_eq!(outcome.output_text(), "0\n", "{way:?}");
    }
}

#[test]
fn found_f14_a_call_after_another_that_leaves_no_threads_to_make_is_made() {
    if needs::is_root() || needs::lacks("not root") {
        compare("spaces-late", &["unshare-late"]);
    }
}

fn compare(name: &str, ways: &[&str]) {
    built::compare(name, SOURCE, ways);
}
