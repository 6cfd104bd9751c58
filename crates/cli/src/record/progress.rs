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
