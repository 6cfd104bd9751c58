//! Writing results to stdout.

use std::io::{ErrorKind, Write};

/// Writes `text` to stdout. A reader that has gone away wants no more: that is no error.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("tidemark: stdout: {error}");
        std::process::exit(2);
    }
}
