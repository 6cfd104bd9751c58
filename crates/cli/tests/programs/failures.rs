//! A store that is full, fails to read or fails to write: one clear line, no hang, and never wrong
//! data. The access that can't be served ends the program.

use std::process::Command;
use std::time::Duration;

use super::child::{self, Outcome};
use super::needs;
use super::scratch::Scratch;

const LIMIT: Duration = Duration::from_secs(90);

/// Fills 64 MiB with bytes that do not repeat, reads them twice, and says whether they are right.
const FILL: &str = "
import hashlib, random
numbers = random.Random(1978)
blocks, sums = [], []
for _ in range(64 * 16):
    block = numbers.randbytes(1 << 16)
    blocks.append(block)
    sums.append(hashlib.md5(block).digest())
for _ in range(2):
    for block, known in zip(blocks, sums):
        if hashlib.md5(block).digest() != known:
            print('wrong', flush=True)
print('right', flush=True)
";

#[test]
fn a_full_store_ends_the_program_with_a_reason() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("full", &["--swap-size", "16M"], None);
    expect_ended(&outcome, &["swap", "full"]);
}

#[test]
fn memory_without_a_file_ends_the_program_that_does_not_fit() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("no-file");
    let outcome = run_without_file(&scratch, FILL);
    expect_ended(
        &outcome,
        &["compressed has no room", "--store compressed+file"],
    );
    // What repeats within a page fits, and nothing is written.
    let repeating = FILL.replace(
        "numbers.randbytes(1 << 16)",
        "numbers.randbytes(8) * (1 << 13)",
    );
    let outcome = run_without_file(&scratch, &repeating);
    outcome.expect_code(0, "it fits");
    assert_eq!(outcome.output_text(), "right\n");
    let record = std::fs::read_to_string(scratch.join("stats.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let total = &record["total"];
    assert!(
        total["decompressed_pages"].as_u64() > Some(10_000),
        "{total}"
    );
    assert_eq!(
        (
            total["bytes_written"].as_u64(),
            total["bytes_read"].as_u64()
        ),
        (Some(0), Some(0))
    );
}

#[test]
fn a_page_that_cannot_be_read_ends_the_program_with_a_reason() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("read", &[], Some(&every("read", 20..400)));
    expect_ended(&outcome, &["swap", "read"]);
}

#[test]
fn a_page_that_reads_back_wrongly_is_never_given_out() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("flip", &[], Some(&every("flip", 20..400)));
    expect_ended(&outcome, &["swap", "read"]);
}

#[test]
fn a_store_that_takes_no_more_ends_the_program_with_a_reason() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("broken", &[], Some("writes-from:5"));
    expect_ended(&outcome, &["swap", "writ"]);
}

#[test]
fn a_page_that_cannot_be_written_stays() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("write", &[], Some("write:5"));
    outcome.expect_code(0, "one write fails of many");
    assert_eq!(outcome.output_text(), "right\n");
    let lines = lines_of_ours(&outcome);
    assert!(
        lines.len() <= 1,
        "one line is enough:\n{}",
        lines.join("\n")
    );
}

#[test]
fn without_a_fault_the_same_program_is_right() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let outcome = run("sound", &[], None);
    outcome.expect_code(0, "no fault");
    assert_eq!(
        (
            outcome.output_text().as_str(),
            outcome.errors_text().as_str()
        ),
        ("right\n", "")
    );
}

fn run(name: &str, options: &[&str], fault: Option<&str>) -> Outcome {
    let scratch = Scratch::new(name);
    let script = scratch.write("fill.py", FILL);
    let mut command = Command::new(needs::tidemark());
    command
        .args(["run", "--memory", "16M", "--swap"])
        .arg(scratch.folder("swap"));
    command
        .args(options)
        .args(["--", needs::python()])
        .arg(script);
    if let Some(fault) = fault {
        command.env("TIDEMARK_FAULT", fault);
    }
    child::run(command, &scratch.join("out"), LIMIT)
}

/// Runs a script in 16 MiB with `--store compressed`.
fn run_without_file(scratch: &Scratch, script: &str) -> Outcome {
    let script = scratch.write("fill.py", script);
    let mut command = Command::new(needs::tidemark());
    command
        .args(["run", "--memory", "16M", "--store", "compressed", "--stats"])
        .arg(scratch.join("stats.json"))
        .args(["--", needs::python()])
        .arg(script);
    child::run(command, &scratch.join("out"), LIMIT)
}

/// A plan in which each of these transfers goes wrong: a single one may be tried again.
fn every(kind: &str, numbers: std::ops::Range<u32>) -> String {
    let entries: Vec<String> = numbers.map(|number| format!("{kind}:{number}")).collect();
    entries.join(",")
}

/// The program ended early, not well, and one line says why in these words.
fn expect_ended(outcome: &Outcome, words: &[&str]) {
    let (said, errors) = (outcome.output_text(), outcome.errors_text());
    assert!(!said.contains("wrong"), "wrong data was given out");
    assert!(!said.contains("right"), "the fault never came");
    assert!(
        !outcome.status.success(),
        "it must not look as if all were well"
    );
    let lines = lines_of_ours(outcome);
    assert_eq!(lines.len(), 1, "one line says why; it wrote:\n{errors}");
    for word in words {
        assert!(
            lines[0].contains(word),
            "`{}` does not speak of `{word}`",
            lines[0]
        );
    }
}

fn lines_of_ours(outcome: &Outcome) -> Vec<String> {
    let errors = outcome.errors_text();
    errors
        .lines()
        .filter(|line| line.starts_with("tidemark"))
        .map(str::to_owned)
        .collect()
}
