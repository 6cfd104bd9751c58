//! `tidemark compare`: a prediction beside what comes of it.
//!
//! [`plan`] is what is asked for. A program is recorded, replayed in the lab on the system that our
//! live engine is, and run live; [`steps`] starts the commands that do so. What they come to makes
//! a record, which the report draws.
//!
//! In step ([`Plan::is_in_step`]) lab and live see the same: the program has the same allocator in
//! the recording and live, its C library uses the instructions that Valgrind knows, and both
//! sides take one decision after the other. Their logs must be the same then.

mod plan;
mod steps;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tidemark_lab::study::{Replay, Replayed};
use tidemark_lab::systems::plain::TIDEMARK;
use tidemark_report::terminal;
use tidemark_results::compare::{Case, CompareRecord, Counts, Decisions, SCHEMA};

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::{output, replay};
use plan::{MEASURED, Plan};
use steps::Steps;

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
    /// The amounts of memory: in pages (`4096`), with a unit (`16M`), or as a share of all the
    /// managed memory that the program uses (`50%`)
    #[arg(short, long, value_name = "SIZE,…")]
    memory: String,
    /// The policies, of those that can run live
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = crate::run::plan::POLICY_DEFAULT
    )]
    policy: Vec<String>,
    /// Keep the trace in FILE; if it is there already, it is taken in place of a recording
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record every change of page, not a page once in 1000 instructions
    #[arg(long)]
    exact: bool,
    /// Run the lab and the program in step, and compare their decisions one by one; for programs
    /// of one thread
    #[arg(long)]
    in_step: bool,
    /// The number of times each live run is made; medians are compared
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// The disk that the prediction assumes: `measured`, which is the one that live runs swap to,
    /// tried out first; or as for `tidemark replay`
    #[arg(long, value_name = "DISK", default_value = MEASURED)]
    disk: String,
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
    let plan = Plan::new(&arguments)?;
    let steps = Steps::new(&plan)?;
    let trace = steps.record()?;
    let read = Replay::read_managed(
        std::slice::from_ref(&trace),
        false,
        Some(plan.extent()),
        &mut |_, _| (),
    );
    let read = read.map_err(|(path, error)| {
        let name = path.display().to_string();
        replay::unreadable(&name, &error)
    })?;
    let sizes = plan.memory_pages(&read)?;
    let instruction_ps = match plan.is_in_step {
        // Time goes by faults.
        true => TIDEMARK.costs.instruction_ps,
        false => instruction_ps(&read, steps.time_native()?),
    };
    let mut cases = vec![];
    let mut facts = None;
    for policy in &plan.policies {
        steps.say(&format!("replaying, {policy}"));
        let mut draws = vec![];
        for seed in plan.seeds() {
            let order = plan.order(policy, &sizes, instruction_ps, seed);
            let replayed = read.run(&order, &|_, _| ());
            draws.push(replayed.map_err(|error| replay::unrunnable(&error, read.page_bytes()))?);
        }
        for (place, decisions) in draws[0].decisions.iter().enumerate() {
            let mut case = predict(policy, &draws, place, read.page_bytes());
            run_live(&steps, &plan, &mut case, decisions)?;
            cases.push(case);
        }
        facts = draws.pop().map(|replayed| replayed.record);
    }
    let facts = facts.expect("there is a policy and a size");
    let trace = facts.traces.first().expect("there is one trace");
    let record = CompareRecord {
        schema: SCHEMA.into(),
        tidemark: env!("CARGO_PKG_VERSION").into(),
        command: plan.words(),
        page_bytes: facts.page_bytes,
        records: trace.records,
        footprint_pages: facts.footprint_pages,
        processes: trace.processes,
        disk: plan.disk.name.clone(),
        instruction_ps,
        is_in_step: plan.is_in_step,
        cases,
        notes: plan.notes(),
    };
    match arguments.json {
        true => output::print(&record.to_json()),
        false => output::print(&terminal::compare(&record)),
    }
    Ok(exit_of(&record))
}

/// The prediction for the case at `place` of each replay.
fn predict(policy: &str, draws: &[Replayed], place: usize, page_bytes: u64) -> Case {
    let found = &draws[0].record.runs[place];
    let counts = draws.iter().map(|replayed| {
        let found = &replayed.record.runs[place];
        Counts::of_replay(found, page_bytes)
    });
    let mut predictions: Vec<Counts> = counts.collect();
    predictions.sort_by_key(|counts| counts.page_ins);
    Case {
        policy: policy.into(),
        memory_bytes: found.memory_bytes,
        optimal_page_ins: found.optimal_page_ins,
        predicted: predictions[predictions.len() / 2],
        predictions,
        live: vec![],
        decisions: None,
    }
}

/// The time that an instruction on record takes natively, in picoseconds; the lab's own guess if
/// that can't be told.
fn instruction_ps(read: &Replay, native_ns: Option<u64>) -> u64 {
    match (native_ns, read.instructions()) {
        (Some(ns), Some(count @ 1..)) => {
            let ps = u128::from(ns) * 1000 / u128::from(count);
            (ps as u64).max(1)
        }
        _ => TIDEMARK.costs.instruction_ps,
    }
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

/// Runs the program live as often as is wanted, and compares the decisions of the first run.
fn run_live(
    steps: &Steps<'_>,
    plan: &Plan<'_>,
    case: &mut Case,
    predicted: &str,
) -> Result<(), Refusal> {
    for number in 1..=plan.runs {
        let (counts, log) = steps.run_live(&case.policy, case.memory_bytes, number)?;
        case.live.push(counts);
        if let Some(log) = log
            && case.decisions.is_none()
        {
            case.decisions = Some(Decisions::of_logs(predicted, &log));
        }
    }
    Ok(())
}
