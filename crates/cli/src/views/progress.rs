//! A progress bar that comes up only when somebody has waited for a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The time of tasks too short for a bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// A bar of so many steps.
const STEPS: u64 = 1000;

/// Progress on stderr; nothing where that is no terminal.
pub struct Progress {
    begin: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress of a command that begins now.
    pub fn new() -> Progress {
        Progress {
            begin: Instant::now(),
            bar: None,
        }
    }

    /// Shows what is being done, and the share of it that is done, from 0 to 1.
    pub fn show(&mut self, what: &str, part: f64) {
        if self.begin.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{msg:14} {bar:40} {percent:>3} %  {elapsed}");
            let bar = ProgressBar::new(STEPS);
            bar.set_style(style.expect("the template is well formed"));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.message() != what {
            bar.set_message(what.to_owned());
        }
        bar.set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
