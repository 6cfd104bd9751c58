//! `tidemark compare`: in step the lab and a live run decide alike, byte for byte; out of step they
//! come to much the same.

#[path = "../programs/needs.rs"]
#[allow(dead_code)]
mod needs;
#[path = "../recorder/recording.rs"]
#[allow(dead_code)]
mod recording;
#[path = "../support/mod.rs"]
mod support;
#[path = "../recorder/tool.rs"]
#[allow(dead_code)]
mod tool;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Folder, stderr};

const SOURCE: &str = include_str!("walk.c");
const SEES: &str = include_str!("sees.c");
const FILES: &str = include_str!("files.c");
/// As many pages as the program of these tests walks over: twice the least memory there is.
const PAGES: &str = "2048";
/// As many for each of all policies: half as much again as that memory.
const PAGES_FOR_ALL: &str = "1536";

/// Compiles the program, if all is there that it takes to record it and to run it.
fn program(folder: &Folder) -> Option<(&'static Path, String)> {
    compile(folder, "walk", SOURCE)
}

fn compile(folder: &Folder, name: &str, source_text: &str) -> Option<(&'static Path, String)> {
    if !needs::are_met(&["cc", "valgrind"]) {
        return None;
    }
    let recorder = tool::recorder()?;
    let (source, program) = (folder.path(&format!("{name}.c")), folder.path(name));
    std::fs::write(&source, source_text).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-o", &program, &source])
        .status();
    assert!(compiled.unwrap().success());
    Some((recorder, program))
}

fn compare(recorder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(needs::tidemark());
    command
        .args(["compare", "--swap-size", "256M"])
        .args(arguments)
        .env("TIDEMARK_RECORDER", recorder)
        .stdin(Stdio::null());
    command.output().unwrap()
}

fn record_of(output: &Output) -> Value {
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        stderr(output)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The policies that can run live, as the command lists them.
fn live_policies() -> String {
    let listed = tool::finish(Command::new(needs::tidemark()).args(["policies", "--json"]));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let policies = listed["policies"].as_array().unwrap().iter();
    // These see what no program shows.
    let is_shown = |policy: &&Value| policy["sees"] != "references" && policy["sees"] != "future";
    let names: Vec<&str> = policies
        .filter(is_shown)
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    assert!(names.len() > 20, "{names:?}");
    names.join(",")
}

#[test]
fn in_step_every_policy_decides_live_as_in_the_lab() {
    let folder = Folder::new("compare-in-step");
    let Some((recorder, program)) = program(&folder) else {
        return;
    };
    let policies = live_policies();
    let options = [
        "--in-step",
        "--json",
        "--memory",
        "4M",
        "--policy",
        &policies,
    ];
    let record = record_of(&compare(
        recorder,
        &[&options[..], &["--", &program, PAGES_FOR_ALL]].concat(),
    ));
    let cases = record["cases"].as_array().unwrap();
    assert_eq!(cases.len(), policies.split(',').count());
    for case in cases {
        let decisions = &case["decisions"];
        assert_eq!(decisions["first_difference"], Value::Null, "{case}");
        assert_eq!(decisions["predicted"], decisions["live"], "{case}");
        assert!(decisions["live"].as_u64().unwrap() > 4000, "{case}");
        let (predicted, live) = (&case["predicted"], &case["live"][0]);
        for count in ["page_ins", "page_outs", "soft_faults", "zero_fills"] {
            assert_eq!(predicted[count], live[count], "{count}: {case}");
        }
    }
}

/// One policy of each kind: of the core's own, of kernels that walk page tables, and of those that
/// ask whether a page may be modified.
#[test]
fn in_step_pages_of_mapped_files_are_decided_on_live_as_in_the_lab() {
    let folder = Folder::new("compare-files");
    let Some((recorder, program)) = compile(&folder, "files", FILES) else {
        return;
    };
    let (file, trace) = (folder.path("numbers"), folder.path("kept.tide"));
    let bytes: Vec<u8> = (0..4 << 20).map(|at: u32| (at ^ at >> 9) as u8).collect();
    std::fs::write(&file, bytes).unwrap();
    let options = [
        "--in-step",
        "--json",
        "--memory",
        "4M",
        "--files",
        "*/numbers",
        "--policy",
        "2q-faults,fifo,mach86,linux-classzone,freebsd,mglru",
        "--trace",
        &trace,
    ];
    let program = ["--", &program, &file, "1024", "1024"];
    let record = record_of(&compare(recorder, &[&options[..], &program].concat()));
    let cases = record["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let decisions = &case["decisions"];
        assert_eq!(decisions["first_difference"], Value::Null, "{case}");
        assert!(decisions["live"].as_u64().unwrap() > 6000, "{case}");
        let (predicted, live) = (&case["predicted"], &case["live"][0]);
        for count in ["page_ins", "page_outs", "clean_drops", "soft_faults"] {
            assert_eq!(predicted[count], live[count], "{count}: {case}");
        }
        // Of the shared mapping no page is ever written.
        assert!(live["clean_drops"].as_u64().unwrap() > 1000, "{case}");
    }
    // The same by the commands themselves.
    let (lab, live) = (folder.path("lab.log"), folder.path("live.log"));
    let in_step = ["--in-step", "--memory", "4M", "--files", "*/numbers"];
    let replay = ["replay", &trace, "--log-decisions", &lab];
    tool::finish(Command::new(needs::tidemark()).args(replay).args(in_step));
    let run = [
        "run",
        "--malloc",
        "pool",
        "--swap-size",
        "256M",
        "--log-decisions",
        &live,
    ];
    let mut command = Command::new(needs::tidemark());
    tool::finish(command.args(run).args(in_step).args(program));
    let (lab, live) = (std::fs::read(&lab).unwrap(), std::fs::read(&live).unwrap());
    assert!(lab == live && lab.len() > 10_000);
}

#[test]
fn in_step_files_are_managed_by_name_alone() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(needs::tidemark()).args(arguments).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        stderr(&output)
    };
    let told = refused(&[
        "run",
        "--in-step",
        "--memory",
        "4M",
        "--files",
        "--",
        "true",
    ]);
    assert!(told.contains("`--files '*.dat'`"), "{told}");
    let told = refused(&["compare", "--memory", "4M", "--files", "*", "--", "true"]);
    assert!(told.contains("--in-step"), "{told}");
    let named = ["compare", "--in-step", "--memory", "4M", "--files"];
    let told = refused(&[&named[..], &["numbers", "--", "true"]].concat());
    assert!(
        told.contains("`--files numbers`: it is compared with absolute paths"),
        "{told}"
    );
}

#[test]
fn in_step_a_program_sees_the_same_recorded_and_live() {
    let folder = Folder::new("compare-sees");
    let Some((recorder, program)) = compile(&folder, "sees", SEES) else {
        return;
    };
    let seen = folder.path("seen");
    let options = [
        "--in-step",
        "--json",
        "--memory",
        "4M",
        "--",
        &program,
        &seen,
    ];
    record_of(&compare(recorder, &options));
    let seen = std::fs::read_to_string(&seen).unwrap();
    // To learn its layout, recorded, and live.
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines.len(), 3, "{seen}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{seen}");
}

#[test]
fn in_step_a_program_that_executes_another_is_followed_to_its_end() {
    let folder = Folder::new("compare-executes");
    let Some((recorder, program)) = program(&folder) else {
        return;
    };
    let options = ["--in-step", "--json", "--memory", "4M", "--", "env", "A=1"];
    let output = compare(recorder, &[&options[..], &[&program, PAGES]].concat());
    let record = record_of(&output);
    let decisions = &record["cases"][0]["decisions"];
    assert_eq!(decisions["first_difference"], Value::Null, "{decisions}");
    assert!(decisions["live"].as_u64().unwrap() > 4000, "{decisions}");
}

#[test]
fn in_step_pages_are_not_compressed() {
    let store = ["--in-step", "--store", "compressed+file", "--memory", "4M"];
    let output = compare(Path::new("/"), &[&store[..], &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("--store file"), "{told}");
}

#[test]
fn found_n10_a_program_that_fails_is_named() {
    let Some(recorder) = tool::recorder() else {
        return;
    };
    let output = compare(recorder, &["--memory", "50%", "--", "false"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    let last = told.lines().last().unwrap_or_default();
    assert!(
        last.contains("`false` (recording): it ended with"),
        "{told}"
    );
}

#[test]
fn out_of_step_a_prediction_is_near() {
    let folder = Folder::new("compare-near");
    let Some((recorder, program)) = program(&folder) else {
        return;
    };
    let trace = folder.path("kept.tide");
    let options = [
        "--store", "file", "--memory", "60%", "--runs", "3", "--trace", &trace,
    ];
    let arguments = [&options[..], &["--json", "--", &program, PAGES, "map"]].concat();
    let record = record_of(&compare(recorder, &arguments));
    let case = &record["cases"][0];
    assert_eq!(case["live"].as_array().unwrap().len(), 3);
    let page_ins = |counts: &Value| counts["page_ins"].as_f64().unwrap();
    let predicted = page_ins(&case["predicted"]);
    assert!(predicted > 1000.0, "{case}");
    // As fast as it ran natively; and so often, with the one in the middle for all.
    let instruction_ps = record["instruction_ps"].as_u64().unwrap();
    assert!((10..10_000).contains(&instruction_ps), "{record}");
    let predictions = case["predictions"].as_array().unwrap();
    let all: Vec<f64> = predictions.iter().map(page_ins).collect();
    assert!(all.len() == 5 && all.is_sorted(), "{case}");
    assert_eq!(all[2], predicted);
    for live in case["live"].as_array().unwrap() {
        let share = predicted / page_ins(live);
        assert!((0.5..2.0).contains(&share), "{case}");
    }
    assert!(page_ins(&case["predicted"]) >= case["optimal_page_ins"].as_f64().unwrap());
    // The trace is kept, and taken again: nothing is recorded.
    let told = compare(
        recorder,
        &[&options[..], &["--", &program, PAGES, "map"]].concat(),
    );
    assert!(!stderr(&told).contains("recording"), "{}", stderr(&told));
    let text = String::from_utf8_lossy(&told.stdout);
    for part in ["page-ins", "difference", "optimum", "note: "] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn what_comes_back_compressed_is_foreseen_with_the_store_of_run() {
    let folder = Folder::new("compare-compressed");
    let Some((recorder, program)) = program(&folder) else {
        return;
    };
    let arguments = ["--memory", "60%", "--json", "--", &program, PAGES, "map"];
    let output = compare(recorder, &arguments);
    let record = record_of(&output);
    assert!(stderr(&output).contains("learning how well its pages compress"));
    assert_eq!(record["store"], "compressed+file");
    let case = &record["cases"][0];
    assert_eq!(case["policy"], "2q-faults");
    let count = |side: &Value, name: &str| side[name].as_u64().unwrap();
    for side in [&case["predicted"], &case["live"][0]] {
        assert!(count(side, "decompressed_pages") > 1000, "{case}");
        // Its pages compress to next to nothing, and all of them fit.
        let from_disk = count(side, "bytes_read") / 4096;
        assert!(from_disk * 4 < count(side, "decompressed_pages"), "{case}");
    }
    let share = count(&case["predicted"], "decompressed_pages") as f64
        / count(&case["live"][0], "decompressed_pages") as f64;
    assert!((0.5..2.0).contains(&share), "{case}");
}

#[test]
fn another_program_s_trace_shows_where_the_decisions_part() {
    let folder = Folder::new("compare-part");
    let Some((recorder, program)) = program(&folder) else {
        return;
    };
    let trace = folder.path("kept.tide");
    let options = [
        "--in-step",
        "--memory",
        "4M",
        "--policy",
        "fifo",
        "--trace",
        &trace,
        "--",
    ];
    let output = compare(recorder, &[&options[..], &[&program, PAGES]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = compare(recorder, &[&options[..], &[&program, "2000"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "decisions: they part at",
        "    both  ",
        "    lab   ",
        "    live  ",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
