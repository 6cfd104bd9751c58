//! The same decisions: the kernel, with the processor's own accessed and dirty bits, and the lab's
//! replay of the same list of pages give one log.

use std::process::Command;

use tidemark_core::policies;
use tidemark_core::seams::policy::Sees;

use super::support::{Folder, stderr, tidemark};
use super::{console, is_ready, needs, page_list};

/// Some times as many pages as frames.
const PAGES: u64 = 900;
const FRAMES: u64 = 256;
const TOUCHES: u64 = 4000;

/// The decisions of the lab, a line each.
fn predicted(folder: &Folder, policy: &str) -> String {
    let (trace, log) = (folder.path("list.tide"), folder.path("predicted"));
    let frames = FRAMES.to_string();
    let plain = ["--system", "fifo", "--policy", policy, "--memory", &frames];
    let words = [&["replay", "--in-step"], &plain[..]].concat();
    let output = tidemark(&[&words[..], &["--log-decisions", &log, &trace]].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{policy}: {}",
        stderr(&output)
    );
    std::fs::read_to_string(log).unwrap()
}

/// The decisions of the kernel.
fn taken(folder: &Folder, policy: &str) -> String {
    let bytes = FRAMES * 4096;
    let words = format!(
        "--in-step --pinned --layout demand --memory {bytes} --policy {policy} \
         --log-decisions taken --with list -- touch list"
    );
    assert_eq!(console(folder, &words), format!("{TOUCHES} touches\n"));
    std::fs::read_to_string(folder.path("taken")).unwrap()
}

fn expect_same(policies: &[&str], name: &str) {
    let folder = Folder::new(name);
    std::fs::write(folder.path("list"), page_list(PAGES, TOUCHES)).unwrap();
    let (list, trace) = (folder.path("list"), folder.path("list.tide"));
    let made = tidemark(&["import", "--from", "pages", "-o", &trace, &list]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    for policy in policies {
        let (predicted, taken) = (predicted(&folder, policy), taken(&folder, policy));
        assert!(
            predicted.lines().count() > TOUCHES as usize / 4,
            "{policy} hardly pages"
        );
        let differs = predicted
            .lines()
            .zip(taken.lines())
            .position(|(one, other)| one != other);
        assert_eq!(differs, None, "{policy}: the first line that differs");
        assert_eq!(predicted.len(), taken.len(), "{policy}");
    }
}

/// Every policy that needs no more than bits.
fn policies_by_bits() -> Vec<&'static str> {
    let entries = policies::entries().iter();
    let shown = entries.filter(|entry| entry.description.sees <= Sees::Bits);
    shown.map(|entry| entry.description.name).collect()
}

#[test]
fn the_kernel_decides_as_the_lab_predicts_by_every_policy_of_bits() {
    if !is_ready() {
        return;
    }
    let policies = policies_by_bits();
    assert!(policies.len() >= 20, "{policies:?}");
    let halves = policies.split_at(policies.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| expect_same(halves.0, "kernel-decisions-0"));
        scope.spawn(|| expect_same(halves.1, "kernel-decisions-1"));
    });
}

/// The decisions of a live run, in step.
fn taken_live(folder: &Folder, program: &str, policy: &str) -> String {
    let log = folder.path("live");
    let mut run = Command::new(needs::tidemark());
    run.args(["run", "--in-step", "--memory", "4M", "--store", "file"]);
    run.args(["--swap-size", "64M", "--policy", policy]);
    run.args(["--log-decisions", &log, "--", program, &folder.path("list")]);
    let output = run.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{policy}: {}",
        stderr(&output)
    );
    std::fs::read_to_string(log).unwrap()
}

/// A live run has no less than 4 MiB, and moves pages in clusters. Nor has it bits: it takes each
/// page for written. The kernel need not write what was read ahead and left untouched.
#[test]
fn a_live_run_decides_as_the_kernel_but_for_pages_that_nobody_wrote() {
    if !is_ready() || !needs::are_met(&["cc"]) {
        return;
    }
    let folder = Folder::new("kernel-live");
    let in_order: String = (0..1600).map(|page| format!("{page}\n")).collect();
    std::fs::write(folder.path("list"), in_order + &page_list(1600, 4000)).unwrap();
    let (source, program) = (folder.path("touch-live.c"), folder.path("touch-live"));
    std::fs::write(&source, include_str!("touch-live.c")).unwrap();
    let mut compile = Command::new("cc");
    let compiled = compile.args(["-O1", "-o", &program, &source]).status();
    assert!(compiled.unwrap().success());
    for policy in ["random", "fifo"] {
        let live = taken_live(&folder, &program, policy);
        let words = "--in-step --pinned --memory 4M --log-decisions taken --with list --policy";
        console(&folder, &format!("{words} {policy} -- touch list"));
        let taken = std::fs::read_to_string(folder.path("taken")).unwrap();
        assert!(taken.lines().count() > 1000, "{policy}");
        let mut lines = taken.lines().zip(live.lines());
        match lines.find(|(taken, live)| taken != live) {
            Some((first, live)) => assert!(first.starts_with("drop "), "{policy}: {first}, {live}"),
            None => assert_eq!(taken.len(), live.len(), "{policy}"),
        }
    }
}

#[test]
fn in_step_paged_programs_make_the_same_decisions_twice() {
    if !is_ready() {
        return;
    }
    let folder = Folder::new("kernel-twice");
    std::fs::write(folder.path("list"), page_list(PAGES, TOUCHES)).unwrap();
    std::fs::write(folder.path("script"), "sheep 3 640\nforks 20\nmatrix 64\n").unwrap();
    let words = "--in-step --memory 1M --policy tidemark --log-decisions";
    for what in ["--with list -- touch list", "--script script"] {
        let seen =
            ["first", "second"].map(|log| console(&folder, &format!("{words} {log} {what}")));
        assert_eq!(seen[0], seen[1], "{what}");
        let read = |log| std::fs::read(folder.path(log)).unwrap();
        assert!(read("first").len() > 10_000, "{what}");
        assert!(read("first") == read("second"), "{what}: the logs differ");
    }
}
