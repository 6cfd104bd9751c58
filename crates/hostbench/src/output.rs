//! Messages on stderr about the progress of a benchmark.

use std::io::Write;

/// Writes `text` to stderr. If that is gone, measuring goes on all the same.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// [`tell`] of a formatted line.
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::tell(&format!("{}\n", format_args!($($argument)*))) };
}
pub(crate) use say;
