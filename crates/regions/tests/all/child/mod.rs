//! Programs that tests run: this one again, as another process.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tidemark_testing::waits;

/// The longest time that one may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a program to its end.
pub fn run(program: &mut Command) -> Output {
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    waits::for_end(&mut child, LIMIT);
    child.wait_with_output().unwrap()
}
