//! Experiments from the command line: made, told, kept, and refused where they can't be.

use serde_json::Value;

use crate::support::{Folder, stderr, tidemark};

/// An experiment that needs nothing installed.
const SMALL: &str = r#"
title = "A loop in too little memory"
source = "NOWHERE"
claimed = "The clock misses every time; the optimum would not."
memory = ["50%", "75%", "120%"]
systems = ["clock"]

[[trace]]
name = "loop"
generate = ["loop", "--pages", "400", "--references", "4000"]

[[run]]
name = "given up"
system = "clock"
memory = ["50%"]
disk = "hdd"

[machine]
limit_hours = 0.001
repeats = 2

[[claim]]
text = "half the memory costs page-ins"
kind = "at-least"
metric = "page_ins"
of = "clock in 50%"
published = 1000
reason.reproduced = "it is a loop"

[[claim]]
text = "ample memory costs none"
kind = "at-most"
metric = "page_ins"
of = "clock in 120%"
published = 0
strength = "strong"

[[claim]]
text = "on a hard disk it never ends"
kind = "unfinished"
metric = "elapsed_s"
of = "given up"

[[picture]]
title = "Page-ins by memory"
metric = "page_ins"
across = "memory"
"#;

fn folder_with(name: &str, file: &str, text: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(folder.path("experiments")).unwrap();
    std::fs::write(folder.0.join("experiments").join(file), text).unwrap();
    folder
}

fn expect_refusal(arguments: &[&str], parts: &[&str]) {
    let output = tidemark(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    let last = told.lines().last().unwrap_or_default();
    for part in parts {
        assert!(last.contains(part), "`{part}` is not in: {told}");
    }
}

#[test]
fn an_experiment_is_made_told_and_kept() {
    let folder = folder_with("experiment-made", "small.toml", SMALL);
    let names = ["experiments", "traces", "runs", "page.html", "pictures"];
    let paths = names.map(|name| folder.path(name));
    let [experiments, traces, runs, page, pictures] = &paths;
    let make = |more: &[&str]| {
        let common = [
            "experiment",
            "small",
            "--experiments",
            experiments,
            "--traces",
            traces,
        ];
        tidemark(&[&common[..], more].concat())
    };
    let output = make(&["--html", page, "--record", runs, "--pictures", pictures]);
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "A loop in too little memory",
        "because: it is a loop",
        "did not complete",
        "1 experiment: of 3 claims, 3 reproduced, 0 partly, 0 not",
    ] {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<polyline") && html.contains("Page-ins by memory"));
    let picture = folder.0.join("pictures/small-page-ins-by-memory.svg");
    assert!(
        std::fs::read_to_string(picture)
            .unwrap()
            .starts_with("<svg")
    );
    let kept: Vec<_> = std::fs::read_dir(runs)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert_eq!(kept.len(), 1);
    let name = kept[0].file_name().into_string().unwrap();
    assert!(name.ends_with("Z-experiments.json"), "{name}");
    let record: Value = serde_json::from_slice(&std::fs::read(kept[0].path()).unwrap()).unwrap();
    assert_eq!(record["schema"], "tidemark.experiments.v1");
    assert_eq!(record["mode"], "quick");
    let first = &record["experiments"][0]["measurements"][0]["metrics"];
    assert!(first["elapsed_spread"].as_f64().unwrap() >= 1.0, "{first}");

    // What is kept can be shown again.
    let from = kept[0].path().display().to_string();
    let shown = tidemark(&["experiment", "--from", &from]);
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), told);

    // The trace is there now, and the same comes out.
    let made: Vec<_> = std::fs::read_dir(traces).unwrap().collect();
    assert_eq!(made.len(), 1, "nothing is left beside the trace");
    let output = make(&["--json"]);
    assert!(!stderr(&output).contains("made in"), "{}", stderr(&output));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measurements = |record: &Value| record["experiments"][0]["measurements"].clone();
    assert_eq!(measurements(&again), measurements(&record));
    assert_eq!(measurements(&again).as_array().unwrap().len(), 4);
    let csv = make(&["--csv"]);
    assert_eq!(String::from_utf8(csv.stdout).unwrap().lines().count(), 4);
}

#[test]
fn what_there_is_can_be_listed() {
    let output = tidemark(&["experiment", "--list", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = list["experiments"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"fork-storm"), "{names:?}");
    let table = String::from_utf8(tidemark(&["experiment", "--list"]).stdout).unwrap();
    for name in names {
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn what_can_not_be_made_is_refused_before_anything_is_done() {
    expect_refusal(&["experiment"], &["--help"]);
    expect_refusal(
        &["experiment", "--from", "/no/such"],
        &["`--from /no/such`"],
    );
    expect_refusal(
        &["experiment", "fork-strom"],
        &["did you mean `fork-storm`"],
    );
    expect_refusal(
        &["experiment", "--list", "--experiments", "/no/such"],
        &["`--experiments /no/such`"],
    );
    let folder = folder_with(
        "experiment-refused",
        "typo.toml",
        "title = \"t\"\ntilte = 1\n",
    );
    let experiments = folder.path("experiments");
    expect_refusal(
        &["experiment", "typo", "--experiments", &experiments],
        &["typo.toml`, line 2: ", "tilte"],
    );
}

#[test]
fn a_program_that_is_missing_is_told_with_its_package() {
    let recorded = SMALL.replace(
        "generate = [\"loop\", \"--pages\", \"400\", \"--references\", \"4000\"]",
        "record = [\"no-such-program\"]\n\
         needs = [{ program = \"no-such-program\", package = \"some-package\" }]",
    );
    let folder = folder_with("experiment-missing", "lacking.toml", &recorded);
    let (experiments, traces) = (folder.path("experiments"), folder.path("traces"));
    let make = ["--experiments", &experiments, "--traces", &traces];
    expect_refusal(
        &[&["experiment", "lacking"], &make[..]].concat(),
        &[
            "`no-such-program` is not installed",
            "apt-get install some-package",
        ],
    );
    // Among others it is left out.
    std::fs::write(folder.0.join("experiments/small.toml"), SMALL).unwrap();
    let output = tidemark(&[&["experiment", "--all"], &make[..]].concat());
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("lacking was left out: `no-such-program`"),
        "{told}"
    );
}
