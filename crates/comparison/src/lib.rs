//! Comparisons: a prediction beside live runs.
//!
//! [`Order`] is what is asked for. A program is recorded, replayed in the lab on the system
//! `tidemark`, and run live; [`steps`] starts the commands that do so. Their counts make a record.
//!
//! With compressed memory, the default, the prediction takes the sizes of compressed pages from a
//! live run in half of the program's memory.
//!
//! In step ([`Order::is_in_step`]) lab and live see the same: the program has the same allocator in
//! the recording and live, its C library uses the instructions that Valgrind knows, and both
//! sides take one decision after the other. Their logs must be the same then.

#![forbid(unsafe_code)]

mod order;
mod steps;

use std::path::Path;

use tidemark_lab::names::{unreadable, unrunnable};
use tidemark_lab::study::prediction::{INSTRUCTION_PS, Prediction, case_of, instruction_ps};
use tidemark_lab::study::{Compression, Replay};
use tidemark_live::control::Store;
use tidemark_results::Refusal;
use tidemark_results::compare::{Case, CompareRecord, Decisions, SCHEMA};
use tidemark_results::suspension;
use tidemark_supervisor::host;
use tidemark_trace::private::Managed;

use steps::Steps;

pub use order::{NamedFiles, Order};

/// Records, predicts, runs and compares. `say` gets the step at work.
pub fn compare(order: &Order<'_>, say: fn(&str)) -> Result<CompareRecord, Refusal> {
    order.check()?;
    let steps = Steps::new(order, say)?;
    let trace = steps.record()?;
    let read = read_managed(order, &trace)?;
    let sizes = order.memory_pages(&read)?;
    let instruction_ps = match order.is_in_step {
        // Time is counted in faults.
        true => INSTRUCTION_PS,
        false => instruction_ps(&read, steps.time_native()?),
    };
    let compression = match order.store {
        Store::File => None,
        store => Some(Compression {
            is_diskless: !store.has_file(),
            ..steps.sample_sizes(&read)?
        }),
    };
    let prediction = Prediction {
        disk: order.disk.clone(),
        compression,
        processors: host::processors() as u32,
        instruction_ps,
        is_in_step: order.is_in_step,
        load: order.load_control.clone(),
        divider: order.divider,
    };
    let mut cases = vec![];
    let mut facts = None;
    for policy in &order.policies {
        steps.say(&format!("replaying, {policy}"));
        let draws = prediction.draw(&read, policy, &sizes);
        let mut draws = draws.map_err(|error| unrunnable(&error, read.page_bytes()))?;
        for (place, decisions) in draws[0].decisions.iter().enumerate() {
            let mut case = case_of(policy, &draws, place, read.page_bytes());
            let run = &draws[0].record.runs[place];
            let turns = suspension::decisions(&run.suspensions, |task| task);
            run_live(&steps, order, &mut case, (decisions, &turns))?;
            cases.push(case);
        }
        facts = draws.pop().map(|replayed| replayed.record);
    }
    let facts = facts.expect("there is a policy and a size");
    let trace = facts.traces.first().expect("there is one trace");
    Ok(CompareRecord {
        schema: SCHEMA.into(),
        tidemark: env!("CARGO_PKG_VERSION").into(),
        command: order.words(),
        page_bytes: facts.page_bytes,
        records: trace.records,
        footprint_pages: facts.footprint_pages,
        processes: trace.processes,
        disk: order.disk.name.clone(),
        store: order.store.name().into(),
        instruction_ps,
        is_in_step: order.is_in_step,
        cases,
        notes: order.notes(),
    })
}

/// Reads a recording, and leaves what a live run manages.
fn read_managed(order: &Order<'_>, trace: &Path) -> Result<Replay, Refusal> {
    let files = order.files.as_ref();
    let is_named = files.map(|files| |path: &str| files.glob.matches(path.as_bytes()));
    let managed = Managed {
        extent: order.extent(),
        files: is_named.as_ref().map(|is_named| is_named as _),
    };
    let read = Replay::read_managed(&[trace.to_owned()], false, Some(managed), &mut |_, _| ());
    read.map_err(|(path, error)| {
        let name = path.display().to_string();
        unreadable(&name, &error)
    })
}

/// Runs the program live as often as is wanted, and compares the decisions of the first run.
fn run_live(
    steps: &Steps<'_>,
    order: &Order<'_>,
    case: &mut Case,
    (predicted, predicted_turns): (&str, &str),
) -> Result<(), Refusal> {
    for number in 1..=order.runs {
        let lived = steps.run_live(&case.policy, case.memory_bytes, number)?;
        case.live.push(lived.counts);
        if let Some(turns) = lived.turns.filter(|_| number == 1)
            && !(turns.is_empty() && predicted_turns.is_empty())
        {
            case.suspensions = Some(Decisions::of_logs(predicted_turns, &turns));
        }
        if let Some(log) = lived.log
            && case.decisions.is_none()
        {
            case.decisions = Some(Decisions::of_logs(predicted, &log));
        }
    }
    Ok(())
}
