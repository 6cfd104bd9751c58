//! Writing results to stdout.

use std::io::{ErrorKind, IsTerminal, Write};

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

/// The width of the terminal that stdout is; `None` if it is none, where lines may be any length.
pub fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let width = size.map(|size| usize::from(size.ws_col));
    width.filter(|&width| width > 0).or(Some(80))
}
