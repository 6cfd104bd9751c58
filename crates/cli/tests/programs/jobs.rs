//! A build whose jobs ask the job server of a run: GNU make, with makes below it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::scratch::{Scratch, files_below};
use super::{child, needs};

const LIMIT: Duration = Duration::from_secs(120);

/// The most jobs at a time.
const SLOTS: usize = 8;

/// Two groups of four jobs.
const MAKEFILE: &str = "
all: a b
a b:
\t+@$(MAKE) --no-print-directory -f group.mk GROUP=$@
.PHONY: all a b
";

/// Each says in `log` when it begins and ends, and sorts lines of its own: some 8 MiB.
const GROUP: &str = "
all: $(addprefix $(GROUP), $(addsuffix .out, 1 2 3 4))
%.out:
\t@printf + >> log; sed s/7/$*/ lines | sort -S 16M --parallel=1 > $@ && printf - >> log
";

/// A folder with the build in it.
fn prepare(scratch: &Scratch, name: &str) -> PathBuf {
    let folder = scratch.folder(name);
    let lines = (0..80_000u64).map(|number| format!("{} {number}\n", number * 7919 % 80_021));
    let lines: String = lines.collect();
    for (file, text) in [
        ("Makefile", MAKEFILE),
        ("group.mk", GROUP),
        ("lines", &lines),
    ] {
        std::fs::write(folder.join(file), text).expect("a folder of the test takes a file");
    }
    folder
}

/// The most jobs that were at work at a time.
fn most_at_work(folder: &Path) -> usize {
    let log = std::fs::read_to_string(folder.join("log")).expect("jobs have written it");
    let (mut now, mut most) = (0, 0);
    for sign in log.chars() {
        now = if sign == '+' { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    assert_eq!((log.len(), now), (16, 0), "{log}");
    most
}

/// The names and contents of what jobs have made.
fn made(folder: &Path) -> Vec<(PathBuf, String)> {
    let files = files_below(folder).into_iter();
    let made = files.filter(|(name, _)| name.extension().is_some_and(|end| end == "out"));
    made.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn a_build_makes_the_same_with_no_more_jobs_than_there_are_tokens() {
    if !needs::are_met(&["make", "sed", "sort"]) {
        return;
    }
    let scratch = Scratch::new("jobs");
    let native = prepare(&scratch, "native");
    let mut command = Command::new("make");
    command.arg(format!("-j{SLOTS}")).current_dir(&native);
    let outcome = child::run(command, &scratch.join("native.out"), LIMIT);
    outcome.expect_success("make by itself");

    let managed = prepare(&scratch, "managed");
    let statistics = scratch.join("statistics.json");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "24M", "--swap-size", "512M"]);
    command.arg(format!("--jobserver={SLOTS}"));
    command.arg("--stats").arg(&statistics).args(["--", "make"]);
    command.current_dir(&managed);
    // As in a build that make itself has begun.
    command.env("MAKEFLAGS", "s -j3 --jobserver-auth=3,4 -- WORD=a");
    let outcome = child::run(command, &scratch.join("managed.out"), LIMIT);
    outcome.expect_success("make with a job server");
    // Make would say that it found none.
    assert_eq!(outcome.errors_text(), "");

    assert_eq!(made(&native).len(), 8);
    assert_eq!(made(&managed), made(&native));
    let most = most_at_work(&managed);
    assert!((1..=SLOTS).contains(&most), "{most} jobs at a time");
    let record = std::fs::read(&statistics).expect("the run leaves it");
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let jobs = &record["jobs"];
    assert_eq!(jobs["slots"], SLOTS, "{jobs}");
    assert_eq!(jobs["tokens_missing"], 0, "{jobs}");
    assert!(jobs["at_work_peak"].as_u64() >= Some(most as u64), "{jobs}");
}

#[test]
fn what_has_no_job_server_leaves_variables_alone() {
    if !needs::are_met(&["printenv"]) {
        return;
    }
    let scratch = Scratch::new("jobs-none");
    let mut command = Command::new(needs::tidemark());
    command.args(["run", "--memory", "16M", "--", "printenv", "MAKEFLAGS"]);
    command.env("MAKEFLAGS", "k -j3");
    let outcome = child::run(command, &scratch.join("out"), LIMIT);
    assert_eq!(outcome.output_text(), "k -j3\n");
}
