//! stress-ng: every way to use memory, each read back and verified, in a small budget.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::trial::Statistics;
use super::{child, needs};

#[test]
fn verified_stress_finds_nothing_wrong() {
    if !needs::are_met(&["stress-ng"]) {
        return;
    }
    let scratch = Scratch::new("stress");
    let seconds = needs::size(5, 60);
    let statistics = scratch.join("statistics.json");
    let mut command = Command::new(needs::tidemark());
    command
        .args(["run", "--memory", "256M", "--stats"])
        .arg(&statistics);
    command.args("-- stress-ng --vm 4 --vm-bytes 512M --vm-method all --verify".split(' '));
    command.args("--mmap 4 --mmap-bytes 256M --fork 4 --mremap 2 --madvise 2 --page-in".split(' '));
    command
        .args(["--timeout", &format!("{seconds}s"), "--temp-path"])
        .arg(scratch.path());
    command.current_dir(scratch.path());
    // It ends by itself; paging its exit out of a small budget takes a while.
    let limit = Duration::from_secs(seconds * 4 + 260);
    let outcome = child::run(command, &scratch.join("out"), limit);
    outcome.expect_success("stress-ng");
    let said = outcome.output_text() + &outcome.errors_text();
    for line in said.lines() {
        assert!(
            !line.contains("fail:"),
            "stress-ng found something wrong: {line}"
        );
    }
    assert!(
        said.contains("successful run completed"),
        "stress-ng did not finish:\n{said}"
    );
    let total = Statistics::read(&statistics, "stress-ng", &outcome);
    total.check("stress-ng");
    assert!(
        total.field("page_outs") > 0,
        "nothing was paged; is it managed at all?"
    );
}
