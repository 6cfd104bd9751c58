//! A bar on stderr that shows how far something long has come. It appears after a second, so that
//! what is quick stays quiet, and only where someone is watching.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time after which a task counts as long.
const DELAY: Duration = Duration::from_secs(1);

/// A bar.
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    is_shown: bool,
}

/// A source whose reading moves a bar.
struct Metered<R> {
    source: R,
    progress: Progress,
}

impl Progress {
    /// A bar of bytes; the whole is not known of a pipe.
    pub fn bytes(whole: Option<u64>) -> Progress {
        Progress::new(
            whole,
            "{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            "{spinner} {bytes} {binary_bytes_per_sec}",
        )
    }

    /// A bar of references.
    pub fn references(whole: u64) -> Progress {
        let template = "{wide_bar} {human_pos}/{human_len} references {eta}";
        Progress::new(Some(whole), template, template)
    }

    /// Moves the bar on by `count`.
    pub fn advance(&mut self, count: u64) {
        self.bar.inc(count);
        if !self.is_shown && self.since.elapsed() >= DELAY {
            self.is_shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// A source whose reading moves this bar.
    pub fn meter<R: Read>(self, source: R) -> impl Read {
        Metered {
            source,
            progress: self,
        }
    }

    fn new(whole: Option<u64>, known: &str, unknown: &str) -> Progress {
        let template = if whole.is_some() { known } else { unknown };
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(whole, ProgressDrawTarget::hidden());
        bar.set_style(style);
        Progress {
            bar,
            since: Instant::now(),
            is_shown: false,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(bytes)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}
