//! One program and what it starts, run to its end within a time limit.
//!
//! # Invariants
//! 1. Nothing outlives [`run`]: what is over time is killed, with all it started.
//! 2. No pipe fills up: output goes to files.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::process_tree::{describe, members, resident_bytes};

/// The interval at which the memory of a running tree is looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(4);

/// The end of a program.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status the parent sees.
    pub status: ExitStatus,
    /// From start to end.
    pub elapsed: Duration,
    /// The most memory the whole tree had resident at one moment.
    pub peak_bytes: u64,
    /// Everything written to standard output.
    pub output: Vec<u8>,
    /// Everything written to standard error.
    pub errors: Vec<u8>,
}

impl Outcome {
    /// Standard error as text.
    pub fn errors_text(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }

    /// Standard output as text.
    pub fn output_text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Panics unless the program ended with status 0.
    pub fn expect_success(&self, what: &str) -> &Self {
        assert!(
            self.status.success(),
            "{what}: {}; it wrote:\n{}",
            self.status,
            self.errors_text()
        );
        self
    }

    /// Panics if the program was ended by a signal or with a status of another kind than `code`.
    pub fn expect_code(&self, code: i32, what: &str) -> &Self {
        let (got, signal) = (self.status.code(), self.status.signal());
        assert_eq!(
            got,
            Some(code),
            "{what}: signal {signal:?}; it wrote:\n{}",
            self.errors_text()
        );
        self
    }
}

/// A program under way.
pub struct Running {
    child: Child,
    begun: Instant,
    peak_bytes: u64,
    folder: std::path::PathBuf,
}

/// Starts `command` with its output in files `stdout` and `stderr` of `folder`.
pub fn start(mut command: Command, folder: &Path) -> Running {
    fs::create_dir_all(folder).expect("the test may make folders");
    let file = |name: &str| File::create(folder.join(name)).expect("the test may make files");
    command
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"));
    // A group of its own, so that a time-out ends all of it.
    command.process_group(0);
    let name = command.get_program().to_owned();
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    Running {
        child,
        begun: Instant::now(),
        peak_bytes: 0,
        folder: folder.to_path_buf(),
    }
}

/// Runs `command` to its end; panics if it takes longer than `limit`.
pub fn run(command: Command, folder: &Path, limit: Duration) -> Outcome {
    start(command, folder).finish(limit)
}

impl Running {
    /// The identifier of the started process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `is_true` holds; panics with `what` after `limit`, or if the program ends first.
    pub fn wait_until(&mut self, what: &str, limit: Duration, mut is_true: impl FnMut() -> bool) {
        let deadline = Instant::now() + limit;
        while !is_true() {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                let errors = fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
                panic!("{what} did not happen: the program ended first, {status}:\n{errors}");
            }
            if Instant::now() > deadline {
                self.give_up(&format!("{what} did not happen within {limit:?}"));
            }
            self.sample();
            std::thread::sleep(SAMPLE_EVERY);
        }
    }

    /// Waits for the end; panics, with what every thread was doing, after `limit` from the start.
    pub fn finish(mut self, limit: Duration) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if self.begun.elapsed() > limit {
                self.give_up(&format!("not ended within {limit:?}"));
            }
            self.sample();
            std::thread::sleep(SAMPLE_EVERY);
        };
        let read = |name: &str| fs::read(self.folder.join(name)).expect("it was made at the start");
        Outcome {
            status,
            elapsed: self.begun.elapsed(),
            peak_bytes: self.peak_bytes,
            output: read("stdout"),
            errors: read("stderr"),
        }
    }

    /// Looks at the memory of the tree now; waiting does so by itself.
    pub fn sample(&mut self) {
        let (mut now, mut highest) = (0, 0);
        for process in members(self.child.id()) {
            let (resident, most) = resident_bytes(process);
            now += resident;
            highest = most.max(highest);
        }
        self.peak_bytes = self.peak_bytes.max(now).max(highest);
    }

    fn give_up(&mut self, what: &str) -> ! {
        let root = self.child.id();
        let picture = describe(root);
        kill_tree(root);
        let _ = self.child.wait();
        let errors = fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
        panic!("{what}; its threads:\n{picture}it wrote:\n{errors}");
    }
}

impl Drop for Running {
    /// A test that fails half way leaves no program behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_tree(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// Ends a process by signal 9.
pub fn kill(process: u32) {
    // It may have ended by itself in the meantime.
    let _ = kill_process(id(process), Signal::KILL);
}

/// Returns true if `process` exists and is not a zombie.
pub fn is_alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}

fn kill_tree(root: u32) {
    for process in members(root) {
        kill(process);
    }
    // Whoever was started between the look and the kill.
    let _ = kill_process_group(id(root), Signal::KILL);
}

fn id(process: u32) -> Pid {
    let raw = i32::try_from(process).expect("process identifiers fit");
    Pid::from_raw(raw).expect("process 0 is never a child")
}
