//! The messages of a recording about itself: a line on a terminal while it runs, and one at its
//! end.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::writer::Written;
use crate::output::say;

/// The interval at which the line changes.
const PERIOD: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    is_wanted: bool,
    shown: Option<Instant>,
}

impl Progress {
    /// Begins. The line at the end is shown if there is a terminal, or if it `is_wanted`.
    pub fn new(is_wanted: bool) -> Progress {
        let bar = ProgressBar::no_length();
        bar.set_style(
            ProgressStyle::with_template("tidemark: {msg}").expect("the template is well formed"),
        );
        Progress {
            bar,
            is_wanted: is_wanted || std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Shows how far it has come, if it is time to.
    pub fn show(&mut self, so_far: impl FnOnce() -> String) {
        if self.bar.is_hidden() || self.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        self.shown = Some(Instant::now());
        self.bar.set_message(so_far());
        self.bar.tick();
    }

    /// Says what has become of it. `left` processes have outlived the recording.
    pub fn finish(&self, line: &str, path: &Path, written: &Written, left: usize) {
        self.bar.finish_and_clear();
        if !self.is_wanted {
            return;
        }
        say!("tidemark: `{}`: {line}", path.display());
        if let Some(old) = &written.old {
            say!(
                "tidemark: the trace that was there is now `{}`",
                old.display()
            );
        }
        if left > 0 {
            say!("tidemark: {left} processes outlive the program, and go on unrecorded");
        }
    }

    /// Returns true if there is a message for the end.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }
}

/// Three digits and a unit.
pub fn number(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, unit) in units {
        if value >= size {
            let scaled = value / size;
            let digits = if scaled < 10.0 {
                2
            } else {
                usize::from(scaled < 100.0)
            };
            return format!("{scaled:.digits$} {unit}");
        }
    }
    format!("{value:.0} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let said = [7.0, 1234.0, 56_780.0, 912_345_678.0, 2.5e12].map(number);
        assert_eq!(said, ["7 ", "1.23 k", "56.8 k", "912 M", "2.50 T"]);
    }
}
