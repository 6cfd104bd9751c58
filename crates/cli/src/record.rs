//! `tidemark record`: the page reference string of a real program.
//!
//! The program runs under a Valgrind tool of our own (`recorder/`), which logs its references as
//! fast as they can be logged, to memory that survives it. This command starts it, and makes a
//! trace of the logs of all its processes ([`tidemark_recording`]) on another processor.
//!
//! [`live`] does without Valgrind: the engine of `tidemark run` writes the logs of its processes,
//! the [members](tidemark_supervisor::recorded).

mod live;
mod plan;
mod progress;
mod window;
mod writer;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rustix::process::Pid;
use tidemark_recording::{Collector, Spool, Totals};
use tidemark_report::numbers;
use tidemark_supervisor::program::plain;
use tidemark_supervisor::recorder::{ask_end, end_of};
use tidemark_supervisor::signals::Signals;
use tidemark_supervisor::speed::{self, Untimed};
use tidemark_trace::{Granularity, Header, Speed, TimeUnit};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output::say;
use plan::Plan;
use progress::Progress;
use writer::Writing;

/// The condition under which a program is run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Timing {
    /// If the program changes nothing outside
    Auto,
    /// In any case
    Always,
    /// Not at all
    Never,
}

/// The pages that are sampled without Valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sample {
    /// All: each has a record in each window that touches it
    Pages,
    /// A few of each region of memory, as DAMON does; the others are taken to be like them: an
    /// estimate, at a price that does not grow with memory
    Regions,
}

/// Records which memory a program refers to, and when
///
/// PROGRAM, and all it starts, runs under Valgrind, 10 to 50 times slower than by itself. Its
/// output, signals and exit status do not change. The trace has a record for each page that is
/// referred to in each quantum, and the program's mappings, forks, executions and waits.
///
/// With --live it runs without Valgrind, at nearly its own speed. The pages of its private memory
/// (not code, stacks, files or shared memory) are unmapped at the end of each window, and each is
/// recorded when it is touched again.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: that of PROGRAM, or 2 if it could not be recorded.")]
pub struct Arguments {
    /// The trace [default: PROGRAM.tide in the working folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The size of pages
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    granularity: String,
    /// Record a page once in each N instructions that refer to it
    #[arg(long, value_name = "N", default_value_t = 1000)]
    quantum: u64,
    /// Record every change of page
    #[arg(long, conflicts_with = "quantum")]
    exact: bool,
    /// Record without Valgrind, by sampling: each page once in each window that touches it
    #[arg(long, conflicts_with_all = ["quantum", "exact"])]
    live: bool,
    /// With --live, the pages that are sampled
    #[arg(long, value_name = "WHICH", requires = "live", default_value = "pages")]
    sample: Sample,
    /// With --live, the length of a window in processor time [default: auto: 100ms, and longer
    /// while sampling costs more than a tenth of the time; with --sample regions, fewer pages are
    /// watched instead]
    #[arg(long, value_name = "TIME", requires = "live")]
    window: Option<String>,
    /// With --live, the resident memory of each process; beyond it, the process pages and gets
    /// slower [default: all of the machine's memory]
    #[arg(long, value_name = "SIZE", requires = "live")]
    memory: Option<String>,
    /// Run the program by itself first to measure its time, which estimates of the memory needed
    /// are based on. `auto`: if the program changes nothing outside, and not with --live; `always`:
    /// in any case, up to six times
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true
    )]
    time: Timing,
    /// Print a summary of the recording on stderr at the end, as is done on a terminal anyway
    #[arg(long)]
    summary: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

impl Arguments {
    /// The file for the trace: in the working folder, where no other name is given.
    fn output_path(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let program = Path::new(&self.program[0]);
            let mut name = program.file_name().unwrap_or_default().to_os_string();
            name.push(".tide");
            name.into()
        })
    }
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        // The program reads the files that its words name, and standard input.
        let words = self.program.iter().map(PathBuf::from);
        words.chain(["-".into()]).collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("-o", self.output_path())]
    }
}

/// Records the program.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if arguments.live {
        return live::run(&arguments);
    }
    let plan = Plan::new(&arguments)?;
    let speed = find_speed(&plan, arguments.time)?;
    let spool = make_spool()?;
    let mut signals = catch_signals(&arguments.program)?;
    let mut command = plan.recorded.command(&spool);
    let (writing, sink) = Writing::begin(&plan.output, &header(&plan, &arguments, speed))?;
    let mut collector = Collector::new(spool, plan.settings, sink, ask_end);
    let mut progress = Progress::new(arguments.summary);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => refuse!("`valgrind`: {}", plain(&error)),
    };
    let began = Instant::now();
    let pid = Pid::from_child(&child);
    let status = loop {
        if let Some(status) = try_wait(&mut child)? {
            break status;
        }
        collector.wait(&[signals.as_fd()]);
        signals.pass_on(pid);
        collector.play_round();
        if writing.has_failed() {
            collector.dismiss();
        }
        progress.show(|| line(collector.totals(), writing.bytes(), began.elapsed()));
    };
    let left = collector.finish((child.id(), end_of(status)));
    let totals = collector.totals();
    for complaint in collector.complaints() {
        say!("tidemark: {complaint}");
    }
    drop(collector);
    let written = writing.finish(&plan.output, totals.processes)?;
    if totals.processes == 0 {
        refuse!("the program did not begin under Valgrind, which tells why above");
    }
    let line = line(totals, written.bytes, began.elapsed());
    progress.finish(&line, &plan.output, &written, left);
    Ok(Exit::of(status))
}

/// The speed of the program by itself: measured, where that is wanted and can be, and else told by
/// the clock.
fn find_speed(plan: &Plan, timing: Timing) -> Result<Speed, Refusal> {
    let (program, words) = (plan.recorded.program(), plan.recorded.words());
    match timing {
        Timing::Always => time_always(program, words),
        Timing::Never => Ok(speed::calibrate()),
        Timing::Auto => Ok(speed::time_confined(program, words).unwrap_or_else(|why| {
            say!(
                "tidemark: not timed by itself first: {why}; its speed is a guess by the \
                 processor's clock; `--time=always` runs it once more as it is, `--time=never` \
                 leaves this out"
            );
            speed::calibrate()
        })),
    }
}

/// The speed of the program by itself, as it is.
fn time_always(program: &Path, words: &[OsString]) -> Result<Speed, Refusal> {
    let name = program.display();
    speed::time(program, words).map_err(|why| {
        Refusal::new(match why {
            Untimed::Failed(status) => {
                format!("`--time=always`: `{name}` by itself ended with {status}; leave it out")
            }
            why => format!("`--time=always`: `{name}`: {why}"),
        })
    })
}

/// The progress in one line.
fn line(totals: Totals, bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rate = totals.time as f64 / seconds;
    format!(
        "{} instructions, {} pages, {} records, {} in {seconds:.1} s; {}/s",
        numbers::count(totals.time as f64),
        numbers::count(totals.pages as f64),
        numbers::count(totals.records as f64),
        numbers::bytes(bytes as f64),
        numbers::count(rate),
    )
}

fn header(plan: &Plan, arguments: &Arguments, speed: Speed) -> Header {
    Header {
        page_bytes: plan.page_bytes,
        granularity: plan
            .settings
            .quantum
            .map_or(Granularity::Exact, Granularity::Quantum),
        time: TimeUnit::Instructions,
        source: format!("tidemark {}", env!("CARGO_PKG_VERSION")),
        command: words_of(arguments),
        speed: Some(speed),
    }
}

fn words_of(arguments: &Arguments) -> Vec<String> {
    let words = arguments.program.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn catch_signals(program: &[OsString]) -> Result<Signals, Refusal> {
    match Signals::catch(program) {
        Ok(signals) => Ok(signals),
        Err(error) => refuse!("signals can't be caught: {}", plain(&error)),
    }
}

/// Makes the folder where recorded processes leave their logs.
fn make_spool() -> Result<Spool, Refusal> {
    match Spool::new() {
        Ok(spool) => Ok(spool),
        Err(error) => refuse!(
            "no folder for the recorder's logs: `{}`: {}; set TMPDIR to one you may write to",
            error.folder.display(),
            plain(&error.why)
        ),
    }
}

fn try_wait(child: &mut Child) -> Result<Option<ExitStatus>, Refusal> {
    match child.try_wait() {
        Ok(status) => Ok(status),
        Err(error) => refuse!("the program can't be waited for: {}", plain(&error)),
    }
}
