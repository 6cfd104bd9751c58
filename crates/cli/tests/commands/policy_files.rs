//! Policies read from files: in the lab and around a running program, the good and the bad.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::needs;
use crate::support::{Folder, quiet_text as text, stderr, tidemark};

const CLOCK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/policies/clock.wat"
);
const SQLITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/tests/traces/sqlite3.tide"
);
/// A policy whose every choice goes on for ever.
const ENDLESS: &str = r#"(module
    (func (export "tidemark_policy_v1") (result i32) (i32.const 1))
    (func (export "page_entered") (param i32 i32 i64 i32 i32 i32))
    (func (export "page_left") (param i32 i32 i64 i32))
    (func (export "choose") (result i32) (loop $again (br $again)) unreachable))"#;
const GIVEN_UP: &str = "16 calls were stopped, 0 trapped";

/// Expects the command to be refused with one line that has `parts`.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = tidemark(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty());
    assert_eq!(told.lines().count(), 1, "{told}");
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

#[test]
fn a_file_is_described_like_any_other_policy() {
    let full = text(&["policies", CLOCK]);
    assert!(
        full.contains("second chance") && full.contains("needs: reference bits"),
        "{full}"
    );
    assert!(full.contains("after: Corbató 1968"), "{full}");
}

#[test]
fn a_replay_takes_the_same_decisions_as_with_the_policy_built_in() {
    let folder = Folder::new("policy-files-replay");
    let log = |name: &str, policy: &str| {
        let path = folder.path(name);
        let arguments = ["replay", "--memory", "30%", "--policy", policy];
        text(&[&arguments[..], &["--log-decisions", &path, SQLITE]].concat());
        std::fs::read(&path).unwrap()
    };
    let (ours, theirs) = (log("ours", CLOCK), log("theirs", "clock"));
    assert!(ours.len() > 1000);
    assert!(ours == theirs, "the decisions differ");
}

#[test]
fn a_curve_has_a_file_beside_names() {
    let policies = format!("clock,{CLOCK}");
    let curves = [
        "curve",
        SQLITE,
        "--policies",
        &policies,
        "--at",
        "150,300",
        "--json",
    ];
    let record: Value = serde_json::from_str(&text(&curves)).unwrap();
    let [theirs, ours] = &record["curves"].as_array().unwrap()[..] else {
        panic!("{record}");
    };
    assert_eq!(ours["policy"], CLOCK);
    assert!(
        theirs["points"]
            .as_array()
            .is_some_and(|points| points.len() == 2),
        "{record}"
    );
    assert_eq!(ours["points"], theirs["points"]);
}

#[test]
fn a_policy_that_goes_on_for_ever_is_slow_and_told() {
    let folder = Folder::new("policy-files-endless");
    let path = folder.path("endless.wat");
    std::fs::write(&path, ENDLESS).unwrap();
    let counted = |policy: &str| {
        let output = tidemark(&[
            "replay", "--memory", "30%", "--policy", policy, "--json", SQLITE,
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        (record["runs"][0]["page_ins"].clone(), stderr(&output))
    };
    let (theirs, silence) = counted("fifo");
    let (ours, told) = counted(&path);
    assert_eq!((ours, silence.as_str()), (theirs, ""));
    assert!(
        told.contains(GIVEN_UP) && told.contains("called no more"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_file_that_can_t_serve_is_refused_everywhere() {
    let folder = Folder::new("policy-files-refused");
    let (empty, text) = (folder.path("empty.wasm"), folder.path("text.wat"));
    std::fs::write(&empty, "(module)").unwrap();
    std::fs::write(&text, "(module\n  (func").unwrap();
    for (path, part) in [
        (empty.as_str(), "no function `tidemark_policy_v1`"),
        (text.as_str(), "is no WebAssembly module"),
        ("/no/such/file.wasm", "can't be read"),
    ] {
        let parts = [path, part];
        refused(&["policies", path], &parts);
        refused(&["curve", "--policies", path, SQLITE], &parts);
        refused(
            &["replay", "--memory", "1M", "--policy", path, SQLITE],
            &parts,
        );
        refused(
            &["run", "--memory", "64M", "--policy", path, "--", "true"],
            &parts,
        );
    }
    let all = folder.path("all.wat");
    let references = ENDLESS.replace("(i32.const 1)", "(i32.const 2)").replace(
        "(module",
        "(module (func (export \"page_referenced\") (param i32))",
    );
    std::fs::write(&all, references).unwrap();
    refused(
        &["run", "--memory", "64M", "--policy", &all, "--", "true"],
        &["must see every reference"],
    );
}

#[test]
fn a_program_runs_on_a_policy_from_a_file() {
    if !needs::are_met(&["sort"]) {
        return;
    }
    let folder = Folder::new("policy-files-run");
    let (lines, endless) = (folder.path("lines"), folder.path("endless.wat"));
    let mut all = String::new();
    (0..400_000u64).for_each(|line| _ = writeln!(all, "{:016x}", line.wrapping_mul(0x9e37_79b9)));
    std::fs::write(&lines, all).unwrap();
    std::fs::write(&endless, ENDLESS).unwrap();
    let sort = ["sort", "-r", "--parallel=1", "-S", "64M", &lines];
    let native = Command::new("sort").args(&sort[1..]).output().unwrap();
    for (policy, told) in [("clock", ""), (CLOCK, ""), (&endless, GIVEN_UP)] {
        let stats = folder.path("stats.json");
        let run = [
            "run", "--memory", "8M", "--policy", policy, "--stats", &stats, "--",
        ];
        let output = tidemark(&[&run[..], &sort].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{policy}: {}",
            stderr(&output)
        );
        assert!(output.stdout == native.stdout, "{policy}");
        assert!(
            stderr(&output).contains(told),
            "{policy}: {}",
            stderr(&output)
        );
        assert_eq!(
            stderr(&output).is_empty(),
            told.is_empty(),
            "{}",
            stderr(&output)
        );
        let stats: Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        assert_eq!(stats["policy"], policy);
        assert!(
            stats["total"]["page_ins"].as_u64().unwrap() > 500,
            "{stats}"
        );
    }
}
