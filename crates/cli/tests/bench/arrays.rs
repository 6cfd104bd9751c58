//! `tidemark bench`, run small: its numbers, and that it leaves a host as it found it.
//!
//! The kernel's own swap needs root, control groups and a disk that swap can lie on. Where it is
//! left out, the tests about it say so and skip; with `REQUIRE_ALL=1` that fails them.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidemark_testing::waits;

use crate::KERNEL;
use crate::support::{Folder, TIDEMARK, stderr, tidemark};

/// The longest time that anything here may take.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_array_workload_gives_a_full_record() {
    let folder = Folder::new("bench-record");
    for workload in ["sheep", "scan", "loop", "random", "zipf", "phases"] {
        let output = bench(
            &folder,
            &[workload, "--memory", "2M", "--size", "4M"],
            "native",
        );
        assert!(output.status.success(), "{workload}: {}", stderr(&output));
        let record = record(&output);
        assert_eq!(record["workload"], workload);
        assert_eq!(record["memory_bytes"], 2 << 20);
        assert_eq!(record["size_bytes"], 4 << 20);
        let native = &record["contenders"][0];
        assert_eq!(native["name"], "native");
        for name in ["elapsed_s", "elapsed_min_s", "elapsed_max_s"] {
            assert!(native[name].as_f64().unwrap() > 0.0, "{workload}: {name}");
        }
        assert_eq!(native["page_ins"], 0);
        assert_eq!(native["page_outs"], 0);
        assert!(
            record["optimal_page_ins"].as_u64().unwrap() > 0,
            "{workload}"
        );
    }
}

#[test]
fn the_optimum_of_a_scan_is_what_did_not_fit() {
    let folder = Folder::new("bench-optimum");
    let output = bench(
        &folder,
        &["scan", "--memory", "2M", "--size", "4M"],
        "native",
    );
    // 1024 pages in 512 frames: after the fill 512 are left, one of them the last page. All the
    // others are read back once, and nothing that leaves is needed again.
    assert_eq!(record(&output)["optimal_page_ins"], 512);
}

#[test]
fn several_processes_work_on_arrays_of_their_own() {
    let folder = Folder::new("bench-procs");
    let sheep = ["sheep", "--memory", "2M", "--size", "2M", "--procs", "3"];
    let record = record(&bench(&folder, &sheep, "native"));
    let checksum = record["contenders"][0]["checksum"].as_str().unwrap();
    let each: std::collections::BTreeSet<&str> = checksum.split('-').collect();
    assert_eq!(each.len(), 3, "{checksum}");
}

#[test]
fn the_thrashing_curve_has_a_point_for_each_load_and_is_drawn() {
    let folder = Folder::new("bench-thrash");
    let png = folder.path("thrash.png");
    let sizes = ["thrash", "--memory", "2M", "--size", "1M", "--laps", "1"];
    let output = bench(
        &folder,
        &[&sizes[..], &["--loads", "0.5,2", "--png", &png]].concat(),
        "native",
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let record = record(&output);
    assert_eq!(record["schema"], "tidemark.thrashing.v1");
    let points = record["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{record}");
    for (point, (tasks, load)) in points.iter().zip([(1, 0.5), (4, 2.0)]) {
        assert_eq!(point["contender"], "native");
        assert_eq!(point["tasks"], tasks);
        assert_eq!(point["load"], load);
        // Each of 256 pages is written once and used once more.
        let accesses = point["accesses_per_s"].as_f64().unwrap();
        let elapsed_s = point["elapsed_s"].as_f64().unwrap();
        let counted = (accesses * elapsed_s).round();
        assert_eq!(counted, f64::from(tasks) * 512.0);
    }
    assert!(fs::read(png).unwrap().starts_with(b"\x89PNG"));
    let output = bench(
        &folder,
        &["loop", "--memory", "2M", "--size", "4M", "--png", "x"],
        "native",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`--png` is for `thrash` alone"));
}

#[test]
fn the_kernels_swap_takes_part_and_leaves_nothing_behind() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-kernel");
    let before = page_cluster();
    // On a busy machine the kernel now and then finds nothing that it can reclaim at once, and ends
    // the program: in less memory more often.
    let sheep = ["sheep", "--memory", "48M", "--size", "80M", "--laps", "1"];
    let is_ended = |record: &Value| {
        let left_out = record["left_out"].to_string();
        left_out.contains("the kernel found no memory for it")
    };
    let mut tries = 0;
    let record = loop {
        let output = bench(&folder, &sheep, "kernel-swap,mmap,native");
        assert!(output.status.success(), "{}", stderr(&output));
        tries += 1;
        let record = record(&output);
        if tries == 5 || !is_ended(&record) {
            break record;
        }
    };
    if is_kernel_left_out(&record) {
        return;
    }
    let contenders = record["contenders"].as_array().unwrap();
    let names: Vec<&str> = contenders
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["kernel-swap", "kernel-swap-best", "mmap", "native"],
        "{}",
        record["left_out"]
    );
    // Nothing can do with fewer than the optimum, neither by skill nor by miscounting. The
    // kernel's limit covers its own tables too, so it has even fewer frames.
    let optimum = record["optimal_page_ins"].as_u64().unwrap();
    for kernel in &contenders[..2] {
        assert!(kernel["page_ins"].as_u64().unwrap() >= optimum, "{kernel}");
        assert!(
            kernel["memory_peak_bytes"].as_u64().unwrap() <= 48 << 20,
            "{kernel}"
        );
    }
    assert_eq!(contenders[0]["page_cluster"], before);
    assert_clean(&folder, before);
}

#[test]
fn an_interrupt_puts_everything_back() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-interrupt");
    let before = page_cluster();
    let Some(mut child) = start_endless(&folder) else {
        return;
    };
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(waits::for_end(&mut child, LIMIT).code(), Some(2));
    assert_clean(&folder, before);
}

#[test]
fn what_a_killed_benchmark_left_is_cleared_away_by_the_next() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-killed");
    let before = page_cluster();
    let Some(mut child) = start_endless(&folder) else {
        return;
    };
    child.kill().unwrap();
    waits::for_end(&mut child, LIMIT);
    let scan = ["scan", "--memory", "4M", "--size", "8M"];
    let output = bench(&folder, &scan, "kernel-swap");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_clean(&folder, before);
}

#[test]
fn found_m6_what_was_told_to_end_and_killed_is_cleared_away_though_nothing_is_noted() {
    let _one = KERNEL.lock();
    let folder = Folder::new("bench-told");
    let before = page_cluster();
    let Some(mut child) = start_endless(&folder) else {
        return;
    };
    // Stopped, so that it has no time to put anything back.
    for signal in ["STOP", "TERM", "KILL"] {
        let mut kill = Command::new("kill");
        kill.args(["-s", signal, &child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }
    waits::for_end(&mut child, LIMIT);
    fs::write("/run/tidemark-bench.ledger", "").unwrap();
    fs::write("/proc/sys/vm/page-cluster", before.to_string()).unwrap();
    let scan = ["scan", "--memory", "4M", "--size", "8M"];
    let output = bench(&folder, &scan, "kernel-swap");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!has_group(child.id()), "its control group is still there");
    assert_clean(&folder, before);
}

/// Runs a benchmark without our own contenders, one round.
fn bench(folder: &Folder, arguments: &[&str], against: &str) -> Output {
    let folder = folder.0.to_str().unwrap();
    let fixed = [
        "--rounds",
        "1",
        "--json",
        "--rivals-only",
        "--folder",
        folder,
    ];
    tidemark(&[&["bench"], arguments, &fixed[..], &["--against", against]].concat())
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn is_kernel_left_out(record: &Value) -> bool {
    let left_out = record["left_out"].as_array().unwrap();
    let kernel = left_out.iter().find(|one| one["name"] == "kernel-swap");
    if let Some(kernel) = kernel {
        skip(kernel["reason"].as_str().unwrap());
    }
    kernel.is_some()
}

fn skip(reason: &str) {
    tidemark_testing::skip(&format!("the kernel's swap can't be used: {reason}"));
}

/// Starts a benchmark that would take long, and waits until its swap file is in use and a program
/// runs. `None` if the kernel's swap can't be used here.
fn start_endless(folder: &Folder) -> Option<Child> {
    let mut child = Command::new(TIDEMARK)
        .args([
            "bench", "loop", "--memory", "16M", "--size", "64M", "--laps", "100000",
        ])
        .args([
            "--rounds",
            "1",
            "--rivals-only",
            "--against",
            "kernel-swap",
            "--folder",
        ])
        .arg(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if child.try_wait().unwrap().is_some() {
            skip("the benchmark ended at once");
            return None;
        }
        if has_swap(folder) && has_group(child.id()) {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("no swap file after {LIMIT:?}");
}

fn assert_clean(folder: &Folder, page_cluster_before: u64) {
    assert_eq!(page_cluster(), page_cluster_before);
    assert!(!has_swap(folder), "a swap file is still in use");
    let left: Vec<_> = fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("tidemark-bench-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn page_cluster() -> u64 {
    let text = fs::read_to_string("/proc/sys/vm/page-cluster").unwrap();
    text.trim().parse().unwrap()
}

fn has_swap(folder: &Folder) -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    swaps.contains(folder.0.to_str().unwrap())
}

/// Returns true if a control group of the benchmark `pid` exists, in either version's place.
fn has_group(pid: u32) -> bool {
    let name = format!("tidemark-bench-{pid}-");
    ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"]
        .into_iter()
        .any(|root| {
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            entries
                .into_iter()
                .any(|entry| entry.file_name().to_string_lossy().starts_with(&name))
        })
}
