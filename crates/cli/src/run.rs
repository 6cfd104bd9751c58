//! `tidemark run`: a program in bounded memory.
//!
//! [`plan`] turns arguments into everything the run needs, or refuses with one line before
//! anything is started. [`tidemark_supervisor`] starts the program and waits for it while it serves
//! its processes.

pub mod plan;
mod runtimes;
mod time;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use clap::{Args, ValueEnum};
use tidemark_core::id::PAGE_BYTES;
use tidemark_lab::names::choice;
use tidemark_lab::systems::plain::TIDEMARK;
use tidemark_live::control;
use tidemark_results::locks::Locks;
use tidemark_results::{RunRecord, SCHEMA, basis, text};
use tidemark_stores::{Behind, Choice};
use tidemark_supervisor::jobs::JOBS_MAX;
use tidemark_supervisor::load_controls;
use tidemark_supervisor::supervise::{Start, ending_of, supervise};
use tidemark_supervisor::tree::Books;

use crate::division::Division;
use crate::exit::{self, Exit, Refusal};
use crate::files::{Files, OutputFile};
use crate::output;
use plan::Plan;

/// Runs a program, and all it starts, in bounded memory
///
/// The program's private memory is managed: at most SIZE of it is resident at a time, and the rest
/// is in compressed memory or in a swap file that is deleted at the end. Stacks, code and shared
/// memory are not managed, and without --files no mapped files but private mappings to write to, at
/// addresses that the program chooses, of 1M to half of the memory that it may have; their resident
/// part is counted as unmanaged. The program's output, signals and exit status do not change.
///
/// If this user may use userfaultfd for faults in user mode alone, each system call of the program
/// waits until its memory is resident, which is slower. `tidemark doctor` shows how to permit all
/// faults.
///
/// Statistics are written when PROGRAM ends. Processes that outlive it stay managed: a
/// `tidemark keep` in the background serves them until the last of them ends.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: that of PROGRAM, or 2 if it could not be run.")]
pub struct Arguments {
    /// The memory all processes may use together: `512M`, `1.5G`
    #[arg(long, value_name = "SIZE")]
    memory: String,
    /// The largest memory that `tidemark ctl budget` can set during the run [default: --memory]
    #[arg(long, value_name = "SIZE")]
    memory_max: Option<String>,
    /// The replacement policy: a name that `tidemark policies` lists, or a file (.wasm, .wat)
    /// [default: 2q-faults]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The place of the swap file, on a disk: an existing folder, or a new file `*.swap` in one
    /// [default: $TIDEMARK_SWAP_DIR, /var/tmp or the working folder]
    #[arg(long, value_name = "PATH")]
    swap: Option<PathBuf>,
    /// The size of the swap file
    /// [default: 8 times the memory and at least 4G, if the disk has room]
    #[arg(long, value_name = "SIZE")]
    swap_size: Option<String>,
    /// Do not encrypt the pages in the swap file. Without this a key encrypts them that is in
    /// memory alone, until the run ends
    #[arg(long)]
    swap_plain: bool,
    /// The store of evicted pages: `compressed` memory inside the budget (a program that does not
    /// fit is killed), the swap `file`, or both: `compressed+file`. A Redis server can take the
    /// place of the file: `redis://HOST[:PORT]/DATABASE/NAME`, by TLS `rediss://…`, behind
    /// compressed memory `compressed+redis://…`
    /// [default: compressed+file; in step: file]
    #[arg(long, value_name = "KIND", value_parser = Choice::parse)]
    store: Option<Choice>,
    /// Manage mapped files, too: private mappings, and shared ones that are only read, of all
    /// files or of those whose absolute paths match GLOB (`*` matches anything, `/` included). The
    /// program does not see what other programs write to these files later. Each process has its
    /// own copy of their pages, beside the copy in the page cache. Mappings that can't be managed
    /// without changing what the program reads are left to the kernel, and counted
    #[arg(
        long,
        value_name = "GLOB",
        num_args = 0..=1,
        conflicts_with = "in_thread"
    )]
    files: Option<Option<OsString>>,
    /// With --files: manage shared mappings that are written to as well. A modified page is written
    /// to its file when it leaves memory, on `msync`, on `munmap`, and at the program's end, also
    /// if it is killed. Until then other programs that read the file don't see the change, and what
    /// they write to the same page is overwritten. A mapping is left to the kernel as soon as the
    /// program forks, maps the same part twice, or writes to the file by a descriptor
    #[arg(long, conflicts_with_all = ["in_thread", "in_step"])]
    files_write: bool,
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["in_thread", "in_step"],
        help = load_control_help(),
    )]
    load_control: Option<String>,
    /// Offer up to JOBS jobs at a time by GNU make's job server protocol, as many as fit in memory:
    /// `--jobserver=8 -- make`, without `-j` [default: the number of processors]
    #[arg(
        long,
        value_name = "JOBS",
        num_args = 0..=1,
        require_equals = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(JOBS_MAX)),
        conflicts_with = "in_step"
    )]
    jobserver: Option<Option<u32>>,
    #[command(flatten)]
    division: Division,
    /// Write statistics to FILE, in JSON
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Show a table of statistics on stderr at the end
    #[arg(long)]
    summary: bool,
    /// Measure for how long the engines' locks are held and waited for; shown by --summary and
    /// --stats
    #[arg(long)]
    locks: bool,
    /// Write every decision (page-ins, victims, page-outs) to FILE, one a line
    #[arg(long, value_name = "FILE")]
    log_decisions: Option<PathBuf>,
    /// Also take requests of `tidemark ctl` at a socket of this name
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Serve metrics in the OpenMetrics format by HTTP, at a socket of this name or a local port:
    /// 127.0.0.1:9100
    #[arg(long, value_name = "PLACE")]
    metrics: Option<PathBuf>,
    /// Write rates and memory of each task over time to FILE, in Chrome's trace event format
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Let the faulting thread serve its faults: faster, but a system call fails if its buffer is
    /// not resident
    #[arg(long)]
    in_thread: bool,
    /// Pause the program at each fault until the engine is idle, so that decisions are repeatable;
    /// slow, for `compare --in-step`
    #[arg(long, conflicts_with = "in_thread")]
    in_step: bool,
    /// Replace the program's memory allocator
    #[arg(long, value_name = "KIND")]
    malloc: Option<Malloc>,
    /// Pass the budget to language runtimes, which otherwise size their heaps by the machine's
    /// memory: in JAVA_TOOL_OPTIONS (-XX:MaxRAM), NODE_OPTIONS (--max-old-space-size), GOMEMLIMIT
    /// and DOTNET_GCHeapHardLimit, unless these are set
    #[arg(long, conflicts_with = "in_step")]
    tell_runtimes: bool,
    /// Run the program even if it can't be managed
    #[arg(long)]
    allow_unmanaged: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// The help of `--load-control`, with those that there are.
fn load_control_help() -> String {
    let names = choice(&load_controls::names());
    format!(
        "The load control, which suspends some processes when all together don't fit in memory: \
         {names} [default: working-set; in thread and in step: none]"
    )
}

/// The store of pages that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Store {
    /// Compressed memory first, and the swap file when that is full
    #[value(name = "compressed+file")]
    CompressedAndFile,
    /// Compressed memory alone; a program that does not fit is killed
    Compressed,
    /// The swap file alone
    File,
}

impl Store {
    /// The kind of a store that was named, where what is on a server is a file.
    fn of(choice: &Choice) -> Store {
        match (choice.is_compressed, &choice.behind) {
            (_, Behind::Nothing) => Store::Compressed,
            (true, Behind::File | Behind::Server(_)) => Store::CompressedAndFile,
            (false, Behind::File | Behind::Server(_)) => Store::File,
        }
    }

    /// The store that was named, or the default. In step it is the file, because the lab predicts
    /// where each page comes from.
    pub fn or_usual(asked: Option<Store>, is_in_step: bool) -> control::Store {
        match (asked, is_in_step) {
            (Some(Store::Compressed), _) => control::Store::Compressed,
            (Some(Store::File), _) | (None, true) => control::Store::File,
            (Some(Store::CompressedAndFile), _) | (None, false) => {
                control::Store::CompressedAndFile
            }
        }
    }
}

/// An allocator to use in place of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Malloc {
    /// An allocator that takes memory from a fixed pool, which is managed
    Pool,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        // The program reads the files that its words name, and standard input.
        let words = self.program.iter().map(PathBuf::from);
        words
            .chain(["-".into()])
            .chain(self.policy.iter().map(PathBuf::from))
            .collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let stats = self.stats.iter().map(|path| ("--stats", path.clone()));
        let log = self.log_decisions.iter();
        let timeline = self.timeline.iter();
        stats
            .chain(timeline.map(|path| ("--timeline", path.clone())))
            .chain(log.map(|path| ("--log-decisions", path.clone())))
            .collect()
    }
}

impl Arguments {
    /// The store. What is on a server is a file.
    fn store(&self) -> control::Store {
        Store::or_usual(self.store.as_ref().map(Store::of), self.in_step)
    }

    /// The address of the store, if it is on a server.
    fn store_address(&self) -> Option<&str> {
        match &self.store.as_ref()?.behind {
            Behind::Nothing | Behind::File => None,
            Behind::Server(address) => Some(address),
        }
    }

    /// The store's name.
    fn store_name(&self) -> Result<String, Refusal> {
        match &self.store {
            Some(choice) => {
                let shown = choice.shown();
                shown.map_err(|error| Refusal::new(format!("`--store`: {error}")))
            }
            None => Ok(self.store().name().into()),
        }
    }

    /// The policy's name.
    fn policy(&self) -> &str {
        self.policy.as_deref().unwrap_or(TIDEMARK.policy)
    }
}

/// Runs the program.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let plan = Plan::new(&arguments)?;
    if arguments.in_step {
        output::keep_addresses();
    }
    let swap_bytes = plan
        .management
        .as_ref()
        .map_or(0, |management| management.swap.size_bytes);
    let division = plan.management.as_ref().map(|it| it.divider.rule);
    let task_bytes_min = plan
        .management
        .as_ref()
        .map(|it| it.divider.frames_min * PAGE_BYTES);
    let holds_calls = plan.management.as_ref().is_some_and(|it| it.holds_calls);
    let (end, mut books) = match plan.management {
        Some(management) => management.run(plan.command)?,
        None => (
            supervise(plan.command, Start::Plain, None)?,
            Books::default(),
        ),
    };
    if let Some(lender) = plan.lender
        && !books.is_handed_over
    {
        lender.finish();
    }
    books.notes.splice(0..0, plan.notes);
    books.total.elapsed_s = end.elapsed.as_secs_f64();
    if !arguments.summary {
        books
            .notes
            .iter()
            .for_each(|note| output::tell(&format!("tidemark: {note}\n")));
    }
    let locks = books.processes.iter().filter_map(|process| process.locks);
    let record = RunRecord {
        schema: SCHEMA.into(),
        tidemark: env!("CARGO_PKG_VERSION").into(),
        command: arguments
            .program
            .iter()
            .map(|word| word.to_string_lossy().into())
            .collect(),
        policy: plan.policy.into(),
        mode: if holds_calls {
            USER_MODE
        } else {
            mode(&arguments)
        }
        .into(),
        memory_bytes: plan.memory_bytes,
        division: division.map(|rule| rule.name().into()),
        task_bytes_min,
        store: Some(plan.store),
        swap_bytes,
        ending: ending_of(end.status),
        ended_for_room: books.ended_for_room,
        notes: [books.notes, books.told].concat(),
        basis: basis::of_run(),
        total: books.total,
        jobs: books.jobs,
        suspensions: books.suspensions,
        locks: Locks::sum(locks.chain(books.others.locks)),
        processes: books.processes,
        others: books.others,
    };
    render(&arguments, &record, plan.statistics_file);
    Ok(exit_of(end.status, books.files_lost))
}

/// As the program, unless what it changed of mapped files was lost after its end: a line has said
/// so.
fn exit_of(status: ExitStatus, has_lost_files: bool) -> Exit {
    match status.success() && has_lost_files {
        true => Exit::Refused,
        false => Exit::of(status),
    }
}

/// Shows and writes the statistics. The program has run, so a failure here is a message, and the
/// exit status stays the program's.
fn render(arguments: &Arguments, record: &RunRecord, statistics_file: Option<OutputFile>) {
    if arguments.summary {
        let width = output::width_of(&std::io::stderr());
        output::tell(&text::summary(record, time::lines(record), width));
    }
    if let Some(file) = statistics_file
        && let Err(refusal) = file.write(record.to_json().as_bytes())
    {
        exit::tell(&refusal);
    }
}

/// The mode of records of runs that serve faults in user mode alone.
const USER_MODE: &str = "user-mode";

/// The mode in which faults are delivered, in the words of records and of engines.
fn mode(arguments: &Arguments) -> &'static str {
    if arguments.in_thread {
        control::MODE_IN_THREAD
    } else {
        control::MODE_THREAD
    }
}
