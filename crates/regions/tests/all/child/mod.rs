//! Programs that tests run: this one again, as another process.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time that one may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a program to its end.
pub fn run(program: &mut Command) -> Output {
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let end = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("{program:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}
