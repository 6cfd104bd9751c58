//! `tidemark replay`: recorded programs on whole memory systems, in several sizes of memory.

pub mod plan;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use tidemark_lab::names::{unreadable, unrunnable};
use tidemark_lab::study::{Replay, Replayed, Unreadable, Unrunnable};
use tidemark_lab::world::WorldError;
use tidemark_report::{replay, terminal};
use tidemark_trace::private::{self, Extent};

use crate::division::Division;
use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::policies;
use crate::run::plan::parse_files;
use crate::views::Progress;
use crate::{output, traces};
use plan::Plan;

/// Replays recorded programs on whole memory systems, with processors, disks and a clock
#[derive(Debug, Args)]
pub struct Arguments {
    /// The traces, `-` for standard input; several run at the same time
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// The sizes of memory: in pages (`4096`), with a unit (`16M`), or as a share of all the pages
    /// that the programs use (`50%`)
    #[arg(short, long, value_name = "SIZE,…")]
    memory: String,
    /// The memory systems, of those that `tidemark systems` lists, or `all`
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "tidemark"
    )]
    system: Vec<String>,
    /// This policy in place of the systems' own: a name, or a file (.wasm, .wat)
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// This load control in place of the systems' own
    #[arg(long, value_name = "NAME")]
    load_control: Option<String>,
    #[command(flatten)]
    division: Division,
    /// The disk for swap: hdd, ssd and others, or `table:FILE` with what `tidemark doctor
    /// --calibrate --json` measured
    #[arg(long, value_name = "DISK", default_value = "ssd")]
    disk: String,
    /// Another disk for files (default: the same as for swap)
    #[arg(long, value_name = "DISK")]
    file_disk: Option<String>,
    /// Compress evicted pages in memory, and move what does not fit to disk, as `tidemark run`
    /// does: by a ratio (`3`), or as in the run whose `--stats` are FILE
    #[arg(long, value_name = "RATIO|FILE", conflicts_with = "in_step")]
    compressed: Option<String>,
    /// The number of copies of each program
    #[arg(long, value_name = "N", default_value_t = 1)]
    procs: u32,
    /// The number of processors
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: u32,
    /// The scheduler: round-robin or fair
    #[arg(long, value_name = "NAME", default_value = "round-robin")]
    scheduler: String,
    /// Memory that the programs can't use: the kernel's own
    #[arg(long, value_name = "SIZE", default_value = "0")]
    wired: String,
    /// The seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The memory that is replayed: everything, or the anonymous memory that `tidemark run` manages
    #[arg(long, value_name = "WHAT", default_value = "everything")]
    managed: Managed,
    /// The time of an instruction, in picoseconds, in place of that of the system's machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    instruction_ps: Option<u64>,
    /// Count time in faults, and finish each before its program goes on, as
    /// `tidemark run --in-step` does: decisions then depend on the references alone
    #[arg(long, conflicts_with_all = ["managed", "disk", "file_disk"])]
    in_step: bool,
    /// With --in-step: mappings of the files whose absolute paths match GLOB are managed, too, as
    /// by `tidemark run --files`
    #[arg(long, value_name = "GLOB", requires = "in_step")]
    files: Option<OsString>,
    /// Read the intact part of truncated traces
    #[arg(long)]
    partial: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Write a page with the runs over time to this file; JSON then has them, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the memory system's decisions to this file; for one system in one size of memory
    #[arg(long, value_name = "FILE")]
    log_decisions: Option<PathBuf>,
}

/// The part of a program's memory that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Managed {
    /// All that the trace has: code, files and stacks too
    Everything,
    /// Private anonymous memory, as `tidemark run` manages it
    Anonymous,
}

impl Managed {
    fn extent(self) -> Option<Extent> {
        match self {
            Managed::Everything => None,
            Managed::Anonymous => Some(Extent::All),
        }
    }
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        let tables = [Some(&self.disk), self.file_disk.as_ref()];
        let tables = tables.into_iter().flatten();
        let tables = tables.filter_map(|disk| disk.strip_prefix("table:"));
        let words = tables.chain(self.policy.as_deref()).map(PathBuf::from);
        let sizes = self.compressed.as_deref().map(PathBuf::from);
        let words = words.chain(sizes);
        self.traces.iter().cloned().chain(words).collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let html = self.html.iter().map(|path| ("--html", path.clone()));
        let log = self.log_decisions.iter();
        html.chain(log.map(|path| ("--log-decisions", path.clone())))
            .collect()
    }
}

/// Replays the traces.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let plan = Plan::new(&arguments)?;
    let mut progress = Progress::new();
    let extent = match arguments.in_step {
        true => Some(Extent::Large),
        false => arguments.managed.extent(),
    };
    let pattern = arguments.files.as_deref().map(parse_files).transpose()?;
    let files = pattern.map(|glob| move |path: &str| glob.matches(path.as_bytes()));
    let managed = extent.map(|extent| private::Managed {
        files: files.as_ref().map(|files| files as _),
        ..extent.into()
    });
    let partial = arguments.partial;
    let paths = arguments
        .traces
        .iter()
        .map(|path| traces::openable(path).to_owned());
    let paths: Vec<PathBuf> = paths.collect();
    let replay = Replay::read_managed(&paths, partial, managed, &mut |what, part| {
        progress.show(what, part)
    });
    let replay = replay.map_err(|(path, error)| {
        let name = path.display().to_string();
        match &error {
            Unreadable::Trace(error) => traces::refusal(&name, error),
            Unreadable::TooLong { .. } => unreadable(&name, &error),
        }
    })?;
    let order = plan.order(&replay)?;
    let shown = Mutex::new(progress);
    let show = |what: &str, part| {
        if let Ok(mut progress) = shown.lock() {
            progress.show(what, part);
        }
    };
    let replayed = replay.run(&order, &show);
    let replayed = replayed.map_err(|error| refusal(&error, replay.page_bytes()))?;
    drop(shown);
    policies::tell_setbacks(arguments.policy.as_slice());
    give(&arguments, &replayed)
}

fn give(arguments: &Arguments, replayed: &Replayed) -> Result<Exit, Refusal> {
    let record = &replayed.record;
    if let Some(path) = &arguments.log_decisions {
        files::write(path, replayed.decisions[0].as_bytes())?;
    }
    if let Some(path) = &arguments.html {
        files::write(path, replay::page(record).as_bytes())?;
    }
    if arguments.json {
        output::print(&record.to_json());
    } else if arguments.csv {
        output::print(&record.to_csv());
    } else {
        output::print(&terminal::replay(record, output::terminal_width()));
    }
    Ok(Exit::Fine)
}

/// The refusal of a run that can't be made, with the option that remedies it.
fn refusal(error: &Unrunnable, page_bytes: u64) -> Refusal {
    let told = unrunnable(error, page_bytes);
    let remedy = match error {
        Unrunnable::NoMappings { .. } => {
            "; `--managed anonymous` takes all of it for programs' own"
        }
        Unrunnable::Incompressible { .. } => "; leave out `--compressed`",
        Unrunnable::World {
            error: WorldError::LoadOfPages { .. },
            ..
        } => ", or `--managed everything`",
        Unrunnable::World {
            error: WorldError::PageSizesDiffer { .. },
            ..
        } => ", by `record --granularity`",
        Unrunnable::World { .. } | Unrunnable::TooManyPages { .. } => "",
    };
    Refusal::new(format!("{told}{remedy}"))
}

/// Refuses a count of none.
fn check_count(option: &str, number: u32) -> Result<(), Refusal> {
    if number == 0 {
        refuse!("`{option} 0`: needs to be at least 1");
    }
    Ok(())
}
