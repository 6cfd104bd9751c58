//! Writing results to stdout, and the rest to stderr.

use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use tidemark_supervisor::host;

/// Writes `text` to stdout. A reader that has gone away wants no more: that is no error.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        tell(&format!("tidemark: stdout: {error}\n"));
        std::process::exit(2);
    }
}

/// Writes `text` to stderr. If that is gone, as with a terminal that was closed, the command has
/// its status all the same.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// [Keeps addresses](host::keep_addresses) as they are, or says that they differ.
pub fn keep_addresses() {
    if let Err(told) = host::keep_addresses() {
        tell(&format!("tidemark: {told}\n"));
    }
}

/// [`tell`] of a formatted line.
///
/// The standard library's macros for this end the process with a panic if the line can't be
/// written.
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::tell(&format!("{}\n", format_args!($($argument)*))) };
}
pub(crate) use say;

/// The width of the terminal that stdout is; `None` if it is none, where lines may be any length.
pub fn terminal_width() -> Option<usize> {
    width_of(&std::io::stdout())
}

/// The width of the terminal that `stream` is; `None` if it is none.
pub fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok();
    let width = size.map(|size| usize::from(size.ws_col));
    width.filter(|&width| width > 0).or(Some(80))
}
