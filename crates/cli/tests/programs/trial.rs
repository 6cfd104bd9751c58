//! The comparison: one program natively, then in shares of the memory it needs.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::child::{self, Outcome};
use super::needs;
use super::scratch::{Scratch, files_below};

/// The shares of its native peak that a program of full size runs in, in percent, unless
/// `TIDEMARK_ACCEPTANCE_SHARES=50,25` names others ...
const SHARES: &str = "100,50,25";
/// The shares of a small program, which pages next to nothing at full size.
const SHARES_SMALL: &str = "50,25";
/// The least budget that is tried: below it, one system call's buffers and a few clusters fill it.
const LEAST_BYTES: u64 = 4 << 20;

/// One program, what it is given, and how it is compared.
pub struct Trial<'a> {
    name: &'a str,
    arguments: Vec<String>,
    scratch: &'a Scratch,
    limit: Duration,
    must_page: bool,
}

impl<'a> Trial<'a> {
    /// A trial of `arguments`, the first of which is the program.
    pub fn new<S: AsRef<str>>(name: &'a str, scratch: &'a Scratch, arguments: &[S]) -> Self {
        let minutes = needs::size(5, 120);
        Self {
            name,
            arguments: arguments
                .iter()
                .map(|part| part.as_ref().to_owned())
                .collect(),
            scratch,
            limit: Duration::from_secs(60 * minutes),
            must_page: true,
        }
    }

    /// Says that even a quarter of its need may hold what of the program is managed.
    pub fn may_fit(mut self) -> Self {
        self.must_page = false;
        self
    }

    /// Runs the program natively and in every share, and compares.
    pub fn compare(self) {
        let native = self.run_native();
        for share in shares() {
            self.run_share(share, &native);
        }
    }

    fn run_native(&self) -> Outcome {
        let folder = self.working_folder("native");
        let mut command = Command::new(&self.arguments[0]);
        command.args(&self.arguments[1..]);
        Self::dress(&mut command, &folder);
        let outcome = child::run(command, &self.scratch.join("native.out"), self.limit);
        outcome.expect_success(&format!("{} natively", self.name));
        let (peak, took) = (outcome.peak_bytes >> 20, outcome.elapsed);
        println!(
            "{:12} native            {peak:6} MiB {took:8.2?}",
            self.name
        );
        assert!(
            outcome.peak_bytes > 0,
            "{}: its memory was never seen",
            self.name
        );
        outcome
    }

    fn run_share(&self, share: u64, native: &Outcome) {
        let what = format!("{} in {share} % of its memory", self.name);
        let folder = self.working_folder(&format!("share{share}"));
        let statistics = self.scratch.join(&format!("share{share}.json"));
        let kibibytes = (native.peak_bytes * share / 100).max(LEAST_BYTES) >> 10;
        let mut command = Command::new(needs::tidemark());
        command
            .args(["run", "--memory", &format!("{kibibytes}K"), "--stats"])
            .arg(&statistics);
        command.arg("--").args(&self.arguments);
        Self::dress(&mut command, &folder);
        let outcome = child::run(
            command,
            &self.scratch.join(&format!("share{share}.out")),
            self.limit,
        );

        let total = Statistics::read(&statistics, &what, &outcome);
        println!(
            "{:12} {share:3} % {:10} KiB {:8.2?} page-ins {} page-outs {} soft {} unmanaged {} KiB",
            self.name,
            kibibytes,
            outcome.elapsed,
            total.field("page_ins"),
            total.field("page_outs"),
            total.field("soft_faults"),
            total.field("unmanaged_bytes") >> 10,
        );
        assert_eq!(
            outcome.status,
            native.status,
            "{what}: it wrote:\n{}\nin all: {}",
            outcome.errors_text(),
            total.record["total"]
        );
        assert_same(
            &native.output,
            &outcome.output,
            &format!("{what}: standard output"),
        );
        assert_same(
            &native.errors,
            &without_notes(&outcome.errors),
            &format!("{what}: standard error"),
        );
        assert_same_files(&self.scratch.join("native"), &folder, &what);
        total.check(&what);
        if share == 25 && self.must_page {
            assert!(
                total.field("page_outs") > 0,
                "{what}: nothing was paged; is it managed at all?"
            );
        }
        fs::remove_dir_all(&folder).expect("the test made it");
    }

    fn working_folder(&self, name: &str) -> PathBuf {
        self.scratch.folder(name)
    }

    fn dress(command: &mut Command, folder: &Path) {
        command.current_dir(folder).env("LC_ALL", "C");
        // An interpreter that is ended by its own fault says where it was.
        command.env("PYTHONFAULTHANDLER", "1");
    }
}

/// The shares to run in.
pub fn shares() -> Vec<u64> {
    let named = env::var("TIDEMARK_ACCEPTANCE_SHARES");
    let parse = |share: &str| {
        share
            .parse()
            .expect("shares are percents with commas between")
    };
    named
        .as_deref()
        .unwrap_or(needs::size(SHARES_SMALL, SHARES))
        .split(',')
        .map(parse)
        .collect()
}

/// The statistics of a run.
pub struct Statistics {
    record: serde_json::Value,
}

impl Statistics {
    /// Reads the statistics that a run left at `path`.
    pub fn read(path: &Path, what: &str, outcome: &Outcome) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| {
            let (status, errors) = (outcome.status, outcome.errors_text());
            panic!("{what}: no statistics ({error}); {status}; it wrote:\n{errors}")
        });
        let record = serde_json::from_str(&text);
        Self {
            record: record.unwrap_or_else(|error| panic!("{what}: {error} in {text}")),
        }
    }

    /// A count of the whole run.
    pub fn field(&self, name: &str) -> u64 {
        let value = &self.record["total"][name];
        value
            .as_u64()
            .unwrap_or_else(|| panic!("`total.{name}` is {value}, not a count"))
    }

    /// The processes that were managed.
    pub fn processes(&self) -> usize {
        self.record["processes"]
            .as_array()
            .expect("`processes` is a list")
            .len()
    }

    /// Panics if a number contradicts what the command promises.
    pub fn check(&self, what: &str) {
        assert!(
            !self.record["schema"].is_null(),
            "{what}: the statistics name no schema"
        );
        let (peak, budget) = (self.field("frames_peak"), self.field("frames_budget"));
        assert!(
            peak <= budget,
            "{what}: {peak} frames at once; the budget is {budget}"
        );
        assert!(self.processes() > 0, "{what}: no process was managed");
    }
}

/// Standard error without what the engine says of memory that can't be managed: true of any large
/// runtime in little memory.
fn without_notes(errors: &[u8]) -> Vec<u8> {
    let lines = errors.split_inclusive(|byte| *byte == b'\n');
    let is_note = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        line.starts_with("tidemark: ") && line.contains("can't be managed")
    };
    lines
        .filter(|line| !is_note(line))
        .flatten()
        .copied()
        .collect()
}

/// Panics, showing the first difference, unless both are equal.
fn assert_same(native: &[u8], ours: &[u8], what: &str) {
    if native == ours {
        return;
    }
    let at = native
        .iter()
        .zip(ours)
        .take_while(|(left, right)| left == right)
        .count();
    let mut text = format!(
        "{what} differs from byte {at} of {} ({}):\n",
        native.len(),
        ours.len()
    );
    for (name, bytes) in [("native", native), ("ours", ours)] {
        let part = &bytes[at.saturating_sub(80).min(bytes.len())..(at + 200).min(bytes.len())];
        writeln!(text, "{name}: {}", String::from_utf8_lossy(part)).expect("text takes text");
    }
    panic!("{text}");
}

/// Panics unless both folders hold the same files with the same contents.
fn assert_same_files(native: &Path, ours: &Path, what: &str) {
    let (native, ours) = (files_below(native), files_below(ours));
    let names = |files: &std::collections::BTreeMap<PathBuf, PathBuf>| {
        files
            .keys()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&native), names(&ours), "{what}: other files");
    for (name, path) in &native {
        let read = |path: &Path| fs::read(path).expect("the program has written it");
        let label = format!("{what}: {}", name.display());
        assert_same(&read(path), &read(&ours[name]), &label);
    }
}
