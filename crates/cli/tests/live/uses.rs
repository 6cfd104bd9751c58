//! The results of the other commands on a live recording, and the recordings that can't be made.

use std::process::Output;

use crate::running::{is_permitted, live, recorded};
use crate::support::{Folder, TIDEMARK, stderr, tidemark};
use crate::tool::{compile, finish};

#[test]
fn the_other_commands_take_it() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-uses");
    let numbers = folder.path("numbers");
    let lines: Vec<String> = (0..100_000u64)
        .map(|n| (n * 7919 % 100_003).to_string())
        .collect();
    std::fs::write(&numbers, lines.join("\n")).unwrap();
    let sort = ["sort", "-n", "-o", &folder.path("sorted"), &numbers];
    let options = ["--window", "5ms", "--summary"];
    let (output, _) = recorded(&folder, &[&options[..], &sort].concat());
    let told = stderr(&output);
    assert!(
        told.contains("s of processor time") && told.contains("not managed"),
        "{told}"
    );
    let (trace, page) = (folder.path("trace.tide"), folder.path("report.html"));
    let run = |arguments: &[&str]| {
        let output = finish(std::process::Command::new(TIDEMARK).args(arguments));
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = run(&["info", &trace]);
    for part in [
        "live sampling",
        "windows of 5 ms",
        "processor time",
        "[anonymous]",
    ] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    let json = run(&[
        "curve",
        "--json",
        "--rehearse",
        "never",
        "--policies",
        "lru,ws,opt",
        &trace,
    ]);
    assert!(json.contains(r#""policy":"ws""#));
    run(&["wss", &trace]);
    run(&["map", &trace]);
    run(&["report", &trace, "-o", &page]);
    assert!(std::fs::metadata(&page).unwrap().len() > 10_000);
}

#[test]
fn found_h1_what_windows_do_not_tell_is_not_answered() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-sight");
    let program = compile(&folder, "walk", WALK, &[]);
    recorded(&folder, &["--window", "50ms", &program]);
    let trace = folder.path("trace.tide");
    let curve = ["curve", "--json", "--rehearse", "never", &trace];
    let output = finish(std::process::Command::new(TIDEMARK).args(curve));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let touched = record["trace"]["windows"]["pages_touched"]
        .as_u64()
        .unwrap();
    // All 1,000 pages are walked through some times in a window.
    assert!(touched >= 1000, "{touched}");
    assert_eq!(record["trace"]["windows"]["longest_ns"], 50_000_000);
    for need in record["needs"].as_array().unwrap() {
        let is_fixed = need["window"].is_null();
        let window = need["window"].as_u64().unwrap_or(0);
        assert!(
            !is_fixed || need["pages"].as_u64() >= Some(touched),
            "{need}"
        );
        assert!(is_fixed || window >= 100_000_000, "{need}");
    }
    let lru = &record["curves"][0]["points"];
    let least = lru
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["pages"].as_u64());
    assert_eq!(least.min().unwrap(), Some(touched));
    let said = finish(
        std::process::Command::new(TIDEMARK)
            .args(&curve[..1])
            .args(&curve[2..]),
    );
    let said = String::from_utf8_lossy(&said.stdout).replace("\n  ", " ");
    assert!(
        said.contains("is enough, and less may be; this trace can't tell"),
        "{said}"
    );
    expect_line(
        &tidemark(&["curve", "--at", "64K", &trace]),
        &["`--at`: 64 KiB is less than", "sampling window of 50 ms"],
    );
    expect_line(
        &tidemark(&["wss", "--windows", "60M", &trace]),
        &["`--windows`: 60 ms is less than twice the sampling windows (up to 50 ms)"],
    );
    let output = tidemark(&["wss", "--json", &trace]);
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let windows = record["windows"].as_array().unwrap();
    assert!(!windows.is_empty());
    assert!(
        windows
            .iter()
            .all(|it| it["window"].as_u64() >= Some(100_000_000))
    );
}

/// Walks through 1,000 pages for 0.6 s.
const WALK: &str = r#"
    #include <sys/mman.h>
    #include <time.h>
    int main(void) {
        volatile char *at = mmap(0, 1000 * 4096L, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        while (clock() < CLOCKS_PER_SEC * 6 / 10)
            for (int page = 0; page < 1000; page++) at[page * 4096L] = 1;
        return 0;
    }
"#;

/// Expects a refusal of one line that contains each of `parts`, and no trace.
fn expect_refused(options: &[&str], parts: &[&str]) {
    let folder = Folder::new(&format!("live-refused-{}", options.join("")));
    let trace = folder.path("trace.tide");
    let arguments = [&["record", "--live", "-o", &trace], options].concat();
    expect_line(&tidemark(&arguments), parts);
    assert!(!std::path::Path::new(&trace).exists());
}

fn expect_line(output: &Output, parts: &[&str]) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    expect_refused(&["--window", "0", "true"], &["`--window 0`", "`100ms`"]);
    expect_refused(
        &["--window=0ms", "true"],
        &["`--window 0ms`: takes 100us to"],
    );
    expect_refused(&["--exact", "true"], &["--live", "--exact"]);
    expect_refused(&["--quantum=5", "true"], &["--live", "--quantum"]);
    expect_refused(
        &["--granularity=1K", "true"],
        &["--granularity 1K", "4K or more"],
    );
    expect_refused(&["--memory=1K", "true"], &["`--memory 1K`: takes 4M to"]);
    expect_refused(&["no-such-program-here"], &["no-such-program-here"]);
    expect_line(
        &tidemark(&["record", "--window", "5ms", "true"]),
        &["--live"],
    );
}

#[test]
fn a_static_program_is_refused_with_what_can_be_done() {
    let folder = Folder::new("live-static");
    let program = compile(
        &folder,
        "none",
        "int main(void) { return 0; }",
        &["-static"],
    );
    let output = finish(&mut live(&["-o", &folder.path("trace.tide"), &program]));
    expect_line(
        &output,
        &["statically linked", "record it without `--live`"],
    );
}

#[test]
fn a_program_that_needs_more_room_is_recorded_all_the_same() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-room");
    let program = "BEGIN { for (i = 0; i < 75000; i++) t[i] = i \" text\"; \
        for (k in t) n += (t[k] == k \" text\"); print n }";
    let (output, small) = recorded(&folder, &["--memory", "4M", "--summary", "awk", program]);
    assert_eq!(output.stdout, b"75000\n");
    let told = stderr(&output);
    assert!(told.contains("`--memory` gives more"), "{told}");
    let (_, large) = recorded(&folder, &["awk", program]);
    let pages = |recording: &crate::recording::Recording| {
        recording.only().pages(tidemark_trace::Kinds(0)).len() as f64
    };
    let ratio = pages(&small) / pages(&large);
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}
