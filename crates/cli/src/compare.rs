//! `tidemark compare`: a prediction beside live runs, made by [`tidemark_comparison`]; [`plan`] has
//! what is asked for.

mod plan;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tidemark_comparison::compare;
use tidemark_report::terminal;
use tidemark_results::compare::CompareRecord;

use crate::division::Division;
use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output::{self, say};
use crate::run;
use plan::MEASURED;

/// Simulates a program under memory limits, runs it under them, compares the counts
///
/// PROGRAM is recorded under Valgrind, replayed in the lab, and run live in each amount of memory
/// with each policy. It gets no input, and its output is thrown away.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0, or 1 if decisions were compared and differ, or 2 if it could \
    not be done."
)]
pub struct Arguments {
    /// The sizes of memory: in pages (`4096`), with a unit (`16M`), or as a share of the managed
    /// memory that the program uses (`50%`)
    #[arg(short, long, value_name = "SIZE,…")]
    memory: String,
    /// The policies, of those that can run live [default: 2q-faults]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<String>,
    /// The store of pages that leave, as for `tidemark run` [default: compressed+file; in step:
    /// file]
    #[arg(long, value_name = "KIND")]
    store: Option<run::Store>,
    /// Keep the trace in FILE; if FILE exists, use it in place of a recording
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record every change of page, in place of each page once in 1000 instructions
    #[arg(long)]
    exact: bool,
    /// Run the lab and the program in step, and compare their decisions one by one; for programs
    /// of one thread
    #[arg(long)]
    in_step: bool,
    /// With --in-step: manage mappings of the files whose absolute paths match GLOB, too, as
    /// `tidemark run --files` does
    #[arg(long, value_name = "GLOB", requires = "in_step")]
    files: Option<OsString>,
    /// The number of live runs of each kind; their medians are compared
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// The disk of the prediction: `measured`, the disk that live runs swap to, measured first; or
    /// as for `tidemark replay`
    #[arg(long, value_name = "DISK", default_value = MEASURED)]
    disk: String,
    /// The load control, as for `tidemark run`
    #[arg(long, value_name = "NAME")]
    load_control: Option<String>,
    #[command(flatten)]
    division: Division,
    /// The folder for the swap file of live runs, as for `tidemark run`
    #[arg(long, value_name = "PATH")]
    swap: Option<PathBuf>,
    /// The size of the swap file of live runs, as for `tidemark run`
    #[arg(long, value_name = "SIZE")]
    swap_size: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

// What it writes, its own `tidemark record` does.
impl Files for Arguments {}

/// Records, predicts, runs and compares.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let sizes = |whole_bytes| plan::sizes(&arguments.memory, Some(whole_bytes));
    let order = plan::order(&arguments, &sizes)?;
    let record = compare(&order, |line| say!("tidemark: {line}"))?;
    match arguments.json {
        true => output::print(&record.to_json()),
        false => output::print(&terminal::compare(&record)),
    }
    Ok(exit_of(&record))
}

fn exit_of(record: &CompareRecord) -> Exit {
    let mut all = record
        .cases
        .iter()
        .filter_map(|case| case.decisions.as_ref());
    match all.any(|decisions| decisions.first_difference.is_some()) {
        true => Exit::Found,
        false => Exit::Fine,
    }
}
