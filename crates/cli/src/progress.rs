//! A progress bar on stderr. It appears after a second, and only on a terminal.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time after which a task counts as long.
const DELAY: Duration = Duration::from_secs(1);
/// The interval at which a bar of shares moves by itself, so that it shows the time.
const TICK: Duration = Duration::from_millis(200);
/// A bar of shares has this many steps.
const STEPS: u64 = 1000;

/// A bar.
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    tick: Option<Duration>,
    is_shown: bool,
}

/// A source whose reading moves a bar.
struct Metered<R> {
    source: R,
    progress: Progress,
}

impl Progress {
    /// A bar of shares of what a command does, which begins now.
    pub fn new() -> Progress {
        let template = "{msg:14} {bar:40} {percent:>3} %  {elapsed}";
        Progress::of(Some(STEPS), template, Some(TICK))
    }

    /// A bar of bytes; the whole is not known of a pipe.
    pub fn bytes(whole: Option<u64>) -> Progress {
        let template = match whole {
            Some(_) => "{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            None => "{spinner} {bytes} {binary_bytes_per_sec}",
        };
        Progress::of(whole, template, None)
    }

    /// A bar of references.
    pub fn references(whole: u64) -> Progress {
        let template = "{wide_bar} {human_pos}/{human_len} references {eta}";
        Progress::of(Some(whole), template, None)
    }

    /// Moves the bar on by `count`.
    pub fn advance(&mut self, count: u64) {
        self.bar.inc(count);
        self.appear();
    }

    /// Shows what is being done, and the share of it that is done, from 0 to 1.
    pub fn show(&mut self, what: &str, part: f64) {
        self.appear();
        if self.is_shown {
            if self.bar.message() != what {
                self.bar.set_message(what.to_owned());
            }
            self.bar
                .set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
    }

    /// A source whose reading moves this bar.
    pub fn meter<R: Read>(self, source: R) -> impl Read {
        Metered {
            source,
            progress: self,
        }
    }

    fn of(whole: Option<u64>, template: &str, tick: Option<Duration>) -> Progress {
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(whole, ProgressDrawTarget::hidden());
        bar.set_style(style);
        Progress {
            bar,
            since: Instant::now(),
            tick,
            is_shown: false,
        }
    }

    fn appear(&mut self) {
        if self.is_shown || self.since.elapsed() < DELAY {
            return;
        }
        self.is_shown = true;
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        if let Some(tick) = self.tick {
            self.bar.enable_steady_tick(tick);
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
