//! Recording without Valgrind: the program runs under the engine of `tidemark run`, with room for
//! all of its memory, and the engine samples which pages are touched in each window.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tidemark_core::id::PAGE_BYTES;
use tidemark_live::control;
use tidemark_live::engine::{Kept, Windows};
use tidemark_recording::spool::Spool;
use tidemark_recording::{Collector, Settings, Totals};
use tidemark_report::numbers;
use tidemark_results::quantity;
use tidemark_results::text;
use tidemark_supervisor::folder::PrivateFolder;
use tidemark_supervisor::host;
use tidemark_supervisor::loading;
use tidemark_supervisor::program::{self, Obstacle, plain};
use tidemark_supervisor::recorded::{self, Members, Tally};
use tidemark_supervisor::recorder::{ask_end, end_of};
use tidemark_supervisor::room::physical_memory_bytes;
use tidemark_trace::{Granularity, Header, Speed, TimeUnit};

use super::plan::find_page_bytes;
use super::progress::Progress;
use super::window;
use super::writer::Writing;
use super::{Arguments, Sample, Timing};
use crate::exit::{Exit, Refusal, refuse};
use crate::output::say;

/// The first window where none is asked for.
const WINDOW_NS: u64 = 100_000_000;
/// The longest window.
const WINDOW_NS_MOST: u64 = 3_600_000_000_000;
/// The least room where none is asked for.
const ROOM_BYTES: u64 = 1 << 30;
/// The least room a process can be recorded in.
const ROOM_BYTES_MIN: u64 = 4 << 20;
const ROOM_BYTES_MAX: u64 = 8 << 40;

/// A live recording that can begin.
struct Plan {
    output: PathBuf,
    page_bytes: u64,
    windows: Windows,
    room_bytes: u64,
    shim: PathBuf,
    program: PathBuf,
    words: Vec<OsString>,
}

/// Records the program.
pub fn run(arguments: &Arguments) -> Result<Exit, Refusal> {
    let plan = Plan::new(arguments)?;
    // Times on record are of the processor, and hardly longer than those of the program alone.
    let speed = match arguments.time {
        Timing::Always => Some(super::time_always(&plan.program, &plan.words[1..])?),
        Timing::Auto | Timing::Never => None,
    };
    let spool = super::make_spool()?;
    let mut signals = super::catch_signals(&arguments.program)?;
    let folder = PrivateFolder::new()?;
    let (listener, socket) = folder.listen()?;
    let mut members = Members::open(plan.room_bytes, listener)?;
    let mut command = plan.command(&spool, &folder, socket);
    let (writing, sink) = Writing::begin(&plan.output, &plan.header(arguments, speed))?;
    let mut collector = Collector::new(spool, plan.settings(), sink, ask_end);
    let mut progress = Progress::new(arguments.summary);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => refuse!("`{}`: {}", plan.program.display(), plain(&error)),
    };
    let began = Instant::now();
    let pid = Pid::from_child(&child);
    let status = loop {
        let ended = super::try_wait(&mut child)?;
        let newcomers = match ended {
            Some(_) => members.attend_at_last(),
            None => members.attend(),
        };
        for newcomer in newcomers {
            collector.add(newcomer.pid, newcomer.log, newcomer.birth);
        }
        if let Some(status) = ended {
            break status;
        }
        collector.play_round();
        if writing.has_failed() {
            collector.dismiss();
        }
        progress.show(|| {
            let (totals, tally) = (collector.totals(), members.tally());
            line(totals, writing.bytes(), tally, began.elapsed())
        });
        let others: Vec<BorrowedFd<'_>> = members.doors().chain([signals.as_fd()]).collect();
        collector.wait(&others);
        signals.pass_on(pid);
    };
    let tally = members.tally();
    let left = collector.finish((child.id(), end_of(status)));
    let totals = collector.totals();
    drop(collector);
    let written = writing.finish(&plan.output, totals.processes)?;
    if totals.processes == 0 {
        refuse!("the program did not load the engine, and nothing was recorded");
    }
    let line = line(totals, written.bytes, tally, began.elapsed());
    progress.finish(&line, &plan.output, &written, left);
    if progress.is_wanted() {
        notes(&plan, tally)
            .iter()
            .for_each(|note| say!("tidemark: {note}"));
    }
    Ok(Exit::of(status))
}

/// The progress in one line.
fn line(totals: Totals, bytes: u64, tally: Tally, elapsed: Duration) -> String {
    format!(
        "{:.2} s of processor time, {} pages, {} records, {} in {:.1} s; threads waited {:.2} s",
        totals.time as f64 / 1e9,
        numbers::count(totals.pages as f64),
        numbers::count(totals.records as f64),
        numbers::bytes(bytes as f64),
        elapsed.as_secs_f64(),
        tally.stall_ns as f64 / 1e9,
    )
}

/// Remarks that a reader of the trace may need.
fn notes(plan: &Plan, tally: Tally) -> Vec<String> {
    let mut notes = vec![format!(
        "not managed, and so not in the trace: {} resident at most at a time (stacks, shared \
         memory), beside code and files",
        text::bytes(tally.unmanaged_bytes)
    )];
    if tally.page_ins > 0 {
        notes.push(format!(
            "the room of {} was full, and {} pages came back from the store: slower, and no \
             different; `--memory` gives more",
            text::bytes(plan.room_bytes),
            text::count(tally.page_ins)
        ));
    }
    if tally.refused > 0 {
        let refused = text::count(tally.refused);
        notes.push(format!(
            "{refused} processes could not be taken in, and are not in the trace"
        ));
    }
    notes
}

/// The windows that are asked for. By regions, windows have one length, and the number of watched
/// pages adapts.
fn find_windows(arguments: &Arguments) -> Result<Windows, Refusal> {
    let asked = match arguments.window.as_deref() {
        None | Some("auto") => None,
        Some(asked) => Some(window::parse(asked)?),
    };
    let first_ns = asked.unwrap_or(WINDOW_NS);
    let (kept, longer_ns) = match arguments.sample {
        Sample::Pages => (Kept::Pages, WINDOW_NS_MOST),
        Sample::Regions => (Kept::Regions, first_ns),
    };
    Ok(Windows {
        first_ns,
        most_ns: asked.unwrap_or(longer_ns),
        kept,
    })
}

/// The room for each process on a machine of so much memory. Where none is asked for, it is all of
/// that: what fits in memory by itself is to fit here. Room that is not used takes nothing.
fn find_room(asked: Option<&str>, machine_bytes: u64) -> Result<u64, Refusal> {
    let Some(asked) = asked else {
        return Ok(machine_bytes.clamp(ROOM_BYTES, ROOM_BYTES_MAX));
    };
    let room_bytes = quantity::parse("--memory", asked)?;
    if !(ROOM_BYTES_MIN..=ROOM_BYTES_MAX).contains(&room_bytes) {
        refuse!("`--memory {asked}`: takes 4M to 8T");
    }
    Ok(room_bytes)
}

impl Plan {
    fn new(arguments: &Arguments) -> Result<Plan, Refusal> {
        let windows = find_windows(arguments)?;
        let page_bytes = find_page_bytes(&arguments.granularity)?;
        if page_bytes < PAGE_BYTES {
            refuse!(
                "`--granularity {}`: pages are sampled whole; takes 4K or more with `--live`",
                arguments.granularity
            );
        }
        let room_bytes = find_room(arguments.memory.as_deref(), physical_memory_bytes())?;
        let name = &arguments.program[0];
        let program = program::find(name)?;
        match program::find_obstacle(&program) {
            None => {}
            Some(obstacle @ (Obstacle::Static | Obstacle::OtherLinker(_))) => refuse!(
                "`{}` {}; record it without `--live`",
                program.display(),
                obstacle.reason()
            ),
            Some(obstacle) => refuse!("`{}` {}", program.display(), obstacle.reason()),
        }
        if let Some(lack) = host::find_lack(false) {
            refuse!("{lack}");
        }
        Ok(Plan {
            output: arguments.output_path(),
            page_bytes,
            windows,
            room_bytes,
            shim: host::find_shim()?,
            program,
            words: arguments.program.clone(),
        })
    }

    /// The command that runs the program with an engine in it.
    fn command(&self, spool: &Spool, folder: &PrivateFolder, socket: PathBuf) -> Command {
        let mut command = Command::new(&self.program);
        let others = std::env::var_os("LD_PRELOAD");
        let libraries = loading::list(folder, std::slice::from_ref(&self.shim), others);
        command
            .arg0(&self.words[0])
            .args(&self.words[1..])
            .env("LD_PRELOAD", libraries);
        let engine = recorded::environment(self.room_bytes, self.windows, spool, socket);
        command.env_remove(control::POOL).envs(engine);
        command
    }

    fn settings(&self) -> Settings {
        Settings {
            page_shift: self.page_bytes.trailing_zeros(),
            quantum: None,
            is_live: true,
        }
    }

    fn header(&self, arguments: &Arguments, speed: Option<Speed>) -> Header {
        Header {
            page_bytes: self.page_bytes,
            granularity: match self.windows.kept {
                Kept::Pages => Granularity::Window(self.windows.first_ns),
                Kept::Regions => Granularity::Regions(self.windows.first_ns),
            },
            time: TimeUnit::Nanoseconds,
            source: format!("tidemark {}, live sampling", env!("CARGO_PKG_VERSION")),
            command: super::words_of(arguments),
            speed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fits_in_the_machine_has_room_unless_less_is_asked_for() {
        // A program of 1 GiB takes a little more than that.
        assert_eq!(find_room(None, 24 << 30).unwrap(), 24 << 30);
        assert_eq!(find_room(None, 512 << 20).unwrap(), 1 << 30);
        assert_eq!(find_room(Some("64M"), 24 << 30).unwrap(), 64 << 20);
        let told = find_room(Some("1M"), 24 << 30).unwrap_err().to_string();
        assert!(told.contains("takes 4M to 8T"), "{told}");
    }
}
