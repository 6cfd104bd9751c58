//! Predictions: a program is recorded on Linux, the lab replays the recording, and the kernel runs
//! the program. They read and write as many pages, to a few in a hundred. (The recording has some
//! pages more: those of the C library's own.)

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{host_programs, text};
use super::support::{Folder, stderr, tidemark};
use super::{console, is_ready, tool};

/// The difference that counts may have, in a hundred.
const TOLERANCE: u64 = 5;
/// One that sees faults alone, and three that see bits, two of which are kernels'.
const POLICIES: [&str; 4] = ["fifo", "clock", "linux-rmap13b", "netbsd"];

fn counts(run: &Value) -> [u64; 2] {
    ["page_ins", "page_outs"].map(|name| run[name].as_u64().unwrap())
}

fn predicted(trace: &str, policy: &str, frames: u64) -> [u64; 2] {
    let frames = frames.to_string();
    let words = [
        "replay",
        "--json",
        "--managed",
        "anonymous",
        "--disk",
        "instant",
    ];
    let system = [
        "--system", "fifo", "--policy", policy, "--memory", &frames, trace,
    ];
    let output = tidemark(&[&words[..], &system].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{policy}: {}",
        stderr(&output)
    );
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    counts(&record["runs"][0])
}

fn seen(folder: &Folder, policy: &str, frames: u64, line: &str) -> [u64; 2] {
    let bytes = frames * 4096;
    let words = format!(
        "--in-step --pinned --layout demand --memory {bytes} --policy {policy} --stats seen {line}"
    );
    console(folder, &words);
    let record = std::fs::read(folder.path("seen")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    counts(&record["total"])
}

fn expect_as_predicted(folder: &Folder, recorder: &Path, line: &str, frames: u64, with: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let trace = folder.path(&format!("{}.tide", words[0]));
    let program = folder.0.join("host").join(words[0]);
    let mut record = tool::record(recorder, &["--exact", "-o", &trace, "--"]);
    let record: &mut Command = record.arg(program).args(&words[1..]).current_dir(&folder.0);
    let recorded = tool::finish(record);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    for policy in POLICIES {
        let predicted = predicted(&trace, policy, frames);
        let seen = seen(folder, policy, frames, &format!("{with}-- {line}"));
        for (predicted, seen) in predicted.into_iter().zip(seen) {
            let difference = predicted.abs_diff(seen) * 100;
            let told = format!("{line}, {policy}: {predicted} predicted, {seen} seen");
            assert!(seen > 100 && difference <= TOLERANCE * predicted, "{told}");
        }
    }
}

#[test]
fn the_kernel_pages_as_much_as_the_lab_predicts_of_a_recording() {
    if !is_ready() {
        return;
    }
    let Some(recorder) = tool::recorder() else {
        return;
    };
    let folder = Folder::new("kernel-predictions");
    host_programs(&folder);
    std::fs::write(folder.path("text"), text(30_000)).unwrap();
    expect_as_predicted(&folder, recorder, "matrix 240", 200, "");
    expect_as_predicted(&folder, recorder, "sort text quiet", 200, "--with text ");
}
