//! `tidemark bench --suite` of real programs, run small: contenders, records, and a host left as
//! it was found.
//!
//! The kernel's contenders need root, control groups and a disk that swap can lie on, ours needs
//! userfaultfd. What is left out is told and skipped; with `REQUIRE_ALL=1` only what not every
//! kernel has, zswap and zram, may be.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidemark_testing::waits;

use crate::KERNEL;
use crate::support::{Folder, TIDEMARK, stderr, tidemark};

/// The longest time that anything here may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The settings that contenders change while they run.
const SETTINGS: [&str; 3] = [
    "/proc/sys/vm/page-cluster",
    "/sys/module/zswap/parameters/enabled",
    "/sys/module/zswap/parameters/max_pool_percent",
];

#[test]
fn every_contender_runs_the_same_program_in_less_memory() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-programs");
    let before = settings();
    let suite = write_suite(
        &folder,
        r#""prepare": "seq 600000 | awk '{ print $1 * 7919 % 600011, $1 }' >in",
           "command": ["sort", "-n", "-S", "64M", "--parallel=1", "in", "-o", "out"],
           "outputs": ["out"]"#,
    );
    let own = format!("tidemark@{TIDEMARK}:--policy=clock");
    let contenders = format!("native,tidemark,{own},kernel-swap,kernel-swap:0,zswap");
    let output = bench(&folder, &suite, &contenders);
    let record = record(&output);
    assert_eq!(settings(), before);
    let skipped = record["skipped"].as_array().unwrap();
    for one in skipped {
        skip(one);
    }
    let program = &record["programs"][0];
    assert_eq!(program["name"], "one");
    assert!(program["native"]["anonymous_peak_bytes"].as_u64().unwrap() > 24 << 20);
    let contenders = program["shares"][0]["contenders"].as_array().unwrap();
    assert_eq!(contenders.len() + skipped.len(), 5, "{record:#}");
    let ended = contenders.iter().filter(|it| is_out_of_memory(it)).count();
    if skipped.is_empty() && ended == 0 {
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for contender in contenders {
        if is_out_of_memory(contender) {
            continue;
        }
        // An output that differs is a failure, and so is memory that did not suffice.
        assert_eq!(
            contender["failures"],
            serde_json::json!([]),
            "{contender:#}"
        );
        assert!(
            contender["elapsed_s"].as_f64().unwrap() > 0.0,
            "{contender:#}"
        );
        let name = contender["name"].as_str().unwrap();
        match name.split_once([':', '@']).map_or(name, |(kind, _)| kind) {
            "tidemark" => assert!(
                contender["page_outs"].as_u64().unwrap() > 0,
                "{contender:#}"
            ),
            "kernel-swap" => {
                assert!(
                    contender["page_outs"].as_u64().unwrap() > 0,
                    "{contender:#}"
                );
                assert!(contender["page_cluster"].is_u64(), "{contender:#}");
            }
            _ => assert!(contender["compressor"].is_string(), "{contender:#}"),
        }
    }
    assert_clean(&folder);
}

/// Returns true if the kernel ended the program for want of memory: it may, of its own means of
/// doing with less, though there is room on swap.
fn is_out_of_memory(contender: &serde_json::Value) -> bool {
    let is_kernels = !contender["name"].as_str().unwrap().starts_with("tidemark");
    let failures = contender["failures"].as_array().unwrap();
    let is_killed = |it: &serde_json::Value| it.as_str().unwrap().contains("found no memory");
    is_kernels && !failures.is_empty() && failures.iter().all(is_killed)
}

#[test]
fn an_interruption_puts_the_settings_back() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-programs-interrupt");
    let before = settings();
    // By itself it ends at once, and under a contender it waits.
    let script = "if test -e seen; then exec sleep 600; fi; touch seen";
    let program = format!(r#""command": ["sh", "-c", "{script}"]"#);
    let suite = write_suite(&folder, &program);
    let mut child = Command::new(TIDEMARK)
        .args(["bench", "--suite", &suite, "--contenders", "zswap"])
        .args(["--folder", folder.0.to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while settings() == before || !has_swap(&folder) {
        if child.try_wait().unwrap().is_some() {
            eprintln!("skipped: zswap can't be used here");
            return;
        }
        assert!(start.elapsed() < LIMIT, "the contender does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(waits::for_end(&mut child, LIMIT).code(), Some(2));
    assert_eq!(settings(), before);
    assert_clean(&folder);
}

#[test]
fn what_belongs_to_programs_is_refused_for_cases() {
    let folder = Folder::new("bench-programs-cases");
    let cases = folder.path("cases.json");
    fs::write(&cases, "[]").unwrap();
    let output = tidemark(&["bench", "--suite", &cases, "--shares", "50"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`--shares` is for a suite of programs"));
}

/// Writes a suite of one program with these keys.
fn write_suite(folder: &Folder, program: &str) -> String {
    let path = folder.path("suite.json");
    let text = format!(
        r#"{{"shares": [50], "contenders": ["tidemark"], "environment": {{"LC_ALL": "C"}},
            "programs": [{{"name": "one", {program}}}]}}"#
    );
    fs::write(&path, text).unwrap();
    path
}

fn bench(folder: &Folder, suite: &str, contenders: &str) -> Output {
    let folder = folder.0.to_str().unwrap();
    let fixed = ["bench", "--json", "--warm", "--suite", suite];
    tidemark(
        &[
            &fixed[..],
            &["--folder", folder, "--contenders", contenders],
        ]
        .concat(),
    )
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

/// Says that a contender is left out; all but those that not every kernel has are required.
fn skip(skipped: &Value) {
    let is_required = std::env::var_os("REQUIRE_ALL").is_some_and(|value| value == "1");
    let is_optional = ["zswap", "zram"]
        .iter()
        .any(|&name| skipped["name"] == name);
    assert!(!is_required || is_optional, "left out: {skipped}");
    eprintln!("skipped: {skipped}");
}

/// The settings that there are.
fn settings() -> Vec<String> {
    let read = |path: &&str| fs::read_to_string(path).unwrap_or_default();
    SETTINGS.iter().map(read).collect()
}

fn has_swap(folder: &Folder) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    swaps.contains(folder.0.to_str().unwrap())
}

fn assert_clean(folder: &Folder) {
    assert!(!has_swap(folder), "a swap file is still in use");
    let names = fs::read_dir(&folder.0).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["suite.json"]);
}
