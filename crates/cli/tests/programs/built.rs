//! Programs in C that are part of these tests: built, and run natively and managed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::child::{self, Outcome};
use super::needs;
use super::scratch::Scratch;

/// The longest time that one may take.
pub const LIMIT: Duration = Duration::from_secs(120);
/// The headers that a source may include.
const HEADERS: [(&str, &str); 2] = [
    ("filled.h", include_str!("filled.h")),
    ("own_call.h", include_str!("own_call.h")),
];
/// Both ways to serve faults, as options of `tidemark run`.
pub const BOTH: [&[&str]; 2] = [&[], &["--in-thread"]];

/// A program that was built.
pub struct Built {
    /// The folder that it is in.
    pub scratch: Scratch,
    /// The program.
    pub path: PathBuf,
}

impl Built {
    /// Builds `source` in a folder whose name begins with `name`. `None` where there is no
    /// compiler, or nothing can be managed.
    pub fn new(name: &str, source: &str) -> Option<Built> {
        Built::with_flags(name, source, &[])
    }

    /// The same with more flags for the compiler. `None`, too, where it does not take them.
    pub fn with_flags(name: &str, source: &str, flags: &[&str]) -> Option<Built> {
        if !needs::are_met(&["cc"]) {
            return None;
        }
        let scratch = Scratch::new(name);
        for (name, text) in HEADERS {
            scratch.write(name, text);
        }
        let source = scratch.write("program.c", source);
        let path = scratch.join("program");
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-pthread", "-o"]);
        compile.arg(&path).arg(source).args(flags);
        let outcome = child::run(compile, &scratch.join("cc"), LIMIT);
        if !flags.is_empty() && !outcome.status.success() {
            return None;
        }
        outcome.expect_success("cc");
        Some(Built { scratch, path })
    }

    /// Runs it natively.
    pub fn run_natively(&self, ways: &[&str]) -> Outcome {
        let mut command = Command::new(&self.path);
        command.args(ways).current_dir(self.scratch.path());
        child::run(command, &self.scratch.join("native"), LIMIT)
    }

    /// Runs it in 8 MiB, with these options of `tidemark run`, which may say otherwise.
    pub fn run_managed(&self, options: &[&str], ways: &[&str]) -> Outcome {
        let mut command = Command::new(needs::tidemark());
        command.arg("run");
        if !options.contains(&"--memory") {
            command.args(["--memory", "8M"]);
        }
        command.args(options);
        command.arg("--").arg(&self.path).args(ways);
        command.current_dir(self.scratch.path());
        child::run(command, &self.scratch.join("out"), LIMIT)
    }

    /// Runs it natively, and managed in each of `modes`: same output, same status.
    pub fn compare(&self, modes: &[&[&str]], ways: &[&str]) {
        let native = self.run_natively(ways);
        for mode in modes {
            let outcome = self.run_managed(mode, ways);
            expect_same(&outcome, &native, &format!("{ways:?} {mode:?}"));
        }
    }
}

/// Builds `source` and [compares](Built::compare) it in both modes.
pub fn compare(name: &str, source: &str, ways: &[&str]) {
    if let Some(program) = Built::new(name, source) {
        program.compare(&BOTH, ways);
    }
}

/// Panics unless both have said the same and ended alike.
pub fn expect_same(outcome: &Outcome, native: &Outcome, what: &str) {
    let said = |outcome: &Outcome| (outcome.output_text(), outcome.errors_text());
    assert_eq!(said(outcome), said(native), "{what}");
    assert_eq!(outcome.status, native.status, "{what}");
}
