//! The measured programs: what `tidemark bench` runs under every contender.
//!
//! They are one hidden subcommand of the command, so that each contender runs the same code
//! with the same allocator. A workload prints one line of JSON: how long its measured phase took,
//! as it saw it itself, and a checksum of all it read, by which the contenders are compared.

pub mod array;
pub mod faults;
pub mod heap;
pub mod outcome;
pub mod pattern;
pub mod programs;
mod random;
mod team;

use std::ffi::OsString;
use std::path::PathBuf;

use self::array::{Contents, PAGE_BYTES, follow_on_file, follow_on_heap};
use self::outcome::WorkloadOutcome;
use self::pattern::{Pattern, Shape};

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Touch everything, then scan it forward and backward (3 times).
    Sheep,
    /// Touch everything, then read it once forward.
    Scan,
    /// Touch everything, then read it forward again and again (5 times).
    Loop,
    /// Touch everything, then as many uniformly random pages, half of them written.
    Random,
    /// Touch everything, then twice as many pages by a Zipf law, half of them written.
    Zipf,
    /// Touch everything, then work at random in eight overlapping quarters, one after the other.
    Phases,
    /// Compile a template-heavy C++ program with g++ -O2.
    Compile,
    /// Sort a generated text in memory with GNU sort.
    Sort,
    /// Run the program that is named, in a copy of the scratch folder.
    #[value(hide = true)]
    Program,
    /// Take faults of each kind and tell what they took.
    #[value(hide = true)]
    Faults,
}

/// Run one of the measured workloads by itself
#[derive(Clone, Debug, clap::Args)]
#[command(hide = true)]
pub struct Order {
    /// The workload.
    pub workload: Workload,
    /// Bytes of the array of each process, or of the sort buffer.
    #[arg(long, default_value_t = 0)]
    pub bytes: u64,
    /// The number of processes that work at the same time, each on an array of its own.
    #[arg(long, default_value_t = 1)]
    pub procs: u32,
    /// Passes over the array, or accesses as a multiple of its pages.
    #[arg(long)]
    pub laps: Option<u32>,
    /// The seed of random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The contents of the array.
    #[arg(long, default_value = Contents::Random.name())]
    pub contents: Contents,
    /// The folder of input and output files.
    #[arg(long)]
    pub scratch: Option<PathBuf>,
    /// Use a mapped file in the scratch folder in place of allocated memory.
    #[arg(long, requires = "scratch")]
    pub mapped: bool,
    /// Says `ready`, then starts when a line comes on standard input.
    #[arg(long)]
    pub on_signal: bool,
    /// The options of `faults` alone.
    #[command(flatten)]
    pub faults: faults::Options,
    /// The program to run, and its arguments.
    #[arg(last = true)]
    pub words: Vec<OsString>,
}

impl Workload {
    /// The reference pattern, or `None` for the real programs.
    pub fn shape(self) -> Option<Shape> {
        match self {
            Workload::Sheep => Some(Shape::Sheep),
            Workload::Scan => Some(Shape::Scan),
            Workload::Loop => Some(Shape::Loop),
            Workload::Random => Some(Shape::Random),
            Workload::Zipf => Some(Shape::Zipf),
            Workload::Phases => Some(Shape::Phases),
            Workload::Compile | Workload::Sort | Workload::Program | Workload::Faults => None,
        }
    }

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Sheep => "sheep",
            Workload::Scan => "scan",
            Workload::Loop => "loop",
            Workload::Random => "random",
            Workload::Zipf => "zipf",
            Workload::Phases => "phases",
            Workload::Compile => "compile",
            Workload::Sort => "sort",
            Workload::Program => "program",
            Workload::Faults => "faults",
        }
    }

    /// The pattern of one process over `bytes` bytes, or `None` for the real programs.
    pub fn pattern(self, bytes: u64, laps: Option<u32>, seed: u64) -> Option<Pattern> {
        let shape = self.shape()?;
        let pages = u32::try_from(bytes / PAGE_BYTES).expect("sizes are checked when they come in");
        Some(Pattern {
            shape,
            pages,
            laps: laps.unwrap_or(shape.laps_default()),
            seed,
        })
    }
}

/// Runs a workload in this process, or in a team of processes.
///
/// # Errors
/// The line that says what failed.
pub fn measure(order: &Order) -> Result<WorkloadOutcome, String> {
    if order.procs > 1 {
        return team::measure(order);
    }
    let folder = match (order.workload, &order.scratch) {
        (Workload::Program, Some(scratch)) => Some(programs::prepare_copy(scratch, order.seed)?),
        _ => None,
    };
    if order.on_signal {
        team::wait_for_signal()?;
    }
    if let Some(folder) = folder {
        return programs::program(&folder, &order.words);
    }
    if let Some(pattern) = order.workload.pattern(order.bytes, order.laps, order.seed) {
        let array_run = match &order.scratch {
            Some(scratch) if order.mapped => {
                let path = scratch.join(format!("array-{}", order.seed));
                follow_on_file(pattern, order.contents, &path)?
            }
            _ => follow_on_heap(pattern, order.contents),
        };
        return Ok(WorkloadOutcome::of_array_run(&array_run));
    }
    let scratch = order
        .scratch
        .as_deref()
        .ok_or("this workload needs a folder for scratch files")?;
    match order.workload {
        Workload::Compile => programs::compile(scratch),
        _ => programs::sort(scratch, order.bytes),
    }
}
