//! Predictions: a program is recorded on Linux, the lab replays the recording, and the kernel runs
//! the program. The programs are the same code on both, and a recording has their pages alone.
//!
//! Of one program the decisions are the same, one by one, but for a policy that goes by ticks of
//! the clock: in step that runs by faults on the kernel, and by instructions in the lab. Several
//! programs take turns where they yield or wait, and have pages of files as well: the kernel reads
//! the first page of a program that it is to run, and Linux does not tell of that. There the
//! counts agree to a few in a hundred.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{host_programs, text};
use super::support::{Folder, stderr, tidemark};
use super::{console, is_ready, tool};

/// The difference that counts may have where decisions may differ, in a hundred.
const TOLERANCE: u64 = 5;
/// The policy that ages pages at ticks.
const BY_TICKS: &str = "linux-rmap13b";
const POLICIES: [&str; 7] = [
    "fifo",
    "clock",
    "mach3",
    "gnumach",
    "linux-rmap13b",
    "netbsd",
    "tidemark",
];

/// A program that was recorded.
struct Recorded<'a> {
    folder: &'a Folder,
    line: &'a str,
    trace: String,
    frames: u64,
}

impl<'a> Recorded<'a> {
    fn new(folder: &'a Folder, recorder: &Path, line: &'a str, frames: u64) -> Recorded<'a> {
        let words: Vec<&str> = line.split(' ').collect();
        let trace = folder.path(&format!("{}.tide", words[0]));
        let program = folder.0.join("host").join(words[0]);
        let mut record = tool::record(recorder, &["--exact", "-o", &trace, "--"]);
        let record: &mut Command = record.arg(program).args(&words[1..]).current_dir(&folder.0);
        let recorded = tool::finish(record);
        assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
        Recorded {
            folder,
            line,
            trace,
            frames,
        }
    }

    /// Replays it, with these words. Answers the counts, and the decisions if they are logged.
    fn predict(&self, policy: &str, words: &[&str]) -> Value {
        let frames = self.frames.to_string();
        let all = ["replay", "--json", "--disk", "instant", "--system", "fifo"];
        let some = ["--policy", policy, "--memory", &frames, &self.trace];
        let output = tidemark(&[&all[..], words, &some].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{policy}: {told}");
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        record["runs"][0].clone()
    }

    /// Runs it on the kernel, a page at a time and in step. Answers the counts.
    fn run(&self, policy: &str, words: &str) -> Value {
        let (bytes, line) = (self.frames * 4096, self.line);
        let plain = format!("--in-step --layout demand --memory {bytes} --policy {policy}");
        console(
            self.folder,
            &format!("{plain} --stats seen {words} -- {line}"),
        );
        let record = std::fs::read(self.folder.path("seen")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        record["total"].clone()
    }
}

fn count(run: &Value, name: &str) -> u64 {
    run[name].as_u64().unwrap()
}

/// The lines of a log, with memory objects numbered in the order in which they appear.
fn decisions(path: &str) -> Vec<String> {
    let mut numbers = BTreeMap::new();
    let log = std::fs::read_to_string(path).unwrap();
    let renumber = |line: &str| {
        let (what, page) = line.split_once(' ').unwrap();
        let (object, rest) = page.split_once(':').unwrap();
        let next = numbers.len();
        let number = numbers.entry(object.to_owned()).or_insert(next);
        format!("{what} {number}:{rest}")
    };
    log.lines().map(renumber).collect()
}

/// Holds page-ins and page-outs to the prediction.
fn expect_counts_near(named: &str, predicted: &Value, seen: &Value) {
    for name in ["page_ins", "page_outs"] {
        let (predicted, seen) = (count(predicted, name), count(seen, name));
        let difference = predicted.abs_diff(seen) * 100;
        let told = format!("{named}, {name}: {predicted} predicted, {seen} seen");
        assert!(seen > 100 && difference <= TOLERANCE * predicted, "{told}");
    }
}

fn expect_decisions_as_predicted(program: &Recorded<'_>, with: &str) {
    let [taken, foreseen] = ["taken", "foreseen"].map(|name| program.folder.path(name));
    for policy in POLICIES {
        let words = ["--managed", "anonymous", "--log-decisions", &foreseen];
        let predicted = program.predict(policy, &words);
        let words = format!("--pinned --log-decisions taken {with}");
        let seen = program.run(policy, &words);
        let named = format!("{}, {policy}", program.line);
        expect_counts_near(&named, &predicted, &seen);
        if policy == BY_TICKS {
            continue;
        }
        let (foreseen, taken) = (decisions(&foreseen), decisions(&taken));
        let differ = foreseen
            .iter()
            .zip(&taken)
            .position(|(one, two)| one != two);
        assert_eq!(differ, None, "{named}: the first line that differs");
        assert_eq!(foreseen.len(), taken.len(), "{named}");
    }
}

#[test]
fn the_kernel_decides_as_the_lab_predicts_of_a_recording() {
    if !is_ready() {
        return;
    }
    let Some(recorder) = tool::recorder() else {
        return;
    };
    let folder = Folder::new("kernel-predictions");
    host_programs(&folder);
    std::fs::write(folder.path("text"), text(20_000)).unwrap();
    let matrix = Recorded::new(&folder, recorder, "matrix 200", 150);
    expect_decisions_as_predicted(&matrix, "");
    let sort = Recorded::new(&folder, recorder, "sort text quiet", 140);
    expect_decisions_as_predicted(&sort, "--with text");
}

#[test]
fn programs_that_take_turns_page_as_much_as_the_lab_predicts_of_them() {
    if !is_ready() {
        return;
    }
    let Some(recorder) = tool::recorder() else {
        return;
    };
    let folder = Folder::new("kernel-turns");
    host_programs(&folder);
    let sheep = Recorded::new(&folder, recorder, "sheep 4 1024", 400);
    for policy in POLICIES {
        let (predicted, seen) = (sheep.predict(policy, &[]), sheep.run(policy, ""));
        expect_counts_near(&format!("sheep, {policy}"), &predicted, &seen);
    }
}
