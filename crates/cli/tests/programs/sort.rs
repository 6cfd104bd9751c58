//! GNU sort, with a buffer that holds all of its input.

use std::process::Command;
use std::time::Duration;

use super::built::Built;
use super::scratch::Scratch;
use super::trial::Trial;
use super::{child, material, needs};

/// Runs its arguments without io_uring, `kcmp` and `process_madvise`.
const CONFINED: &str = include_str!("confined.c");
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn sort_gives_the_same_lines_in_less_memory() {
    if !needs::are_met(&["sort"]) {
        return;
    }
    let scratch = Scratch::new("sort");
    let input = scratch.join("lines");
    let bytes = needs::size(14 << 20, 1 << 30);
    material::write_lines(&input, bytes);
    let buffer = format!("--buffer-size={}M", (4 * bytes) >> 20);
    let input = input.display().to_string();
    let arguments = ["sort", "--parallel=2", &buffer, "--output=sorted", &input];
    Trial::new("sort", &scratch, &arguments).compare();
}

/// Threads transfer pages where io_uring is forbidden, and end their work in any order.
#[test]
fn sort_gives_the_same_lines_where_a_container_forbids_io_uring() {
    if !needs::are_met(&["sort"]) {
        return;
    }
    let Some(confined) = Built::new("sort-confined", CONFINED) else {
        return;
    };
    let input = confined.scratch.join("lines");
    material::write_short_lines(&input, 12 << 20);
    let arguments = ["--parallel=2", "--buffer-size=60M"];
    let sort = |words: &[&str], name: &str| {
        let mut command = Command::new(&confined.path);
        command.args(words).arg("sort").args(arguments).arg(&input);
        let outcome = child::run(command, &confined.scratch.join(name), LIMIT);
        outcome.expect_success(name);
        outcome.output
    };
    let native = sort(&[], "native");
    let tidemark = needs::tidemark();
    let tidemark = tidemark.to_str().expect("the build's path is text");
    for number in 0..4 {
        let output = sort(
            &[tidemark, "run", "--memory", "16M", "--"],
            &format!("confined{number}"),
        );
        assert!(output == native, "the lines of run {number} are others");
    }
}
