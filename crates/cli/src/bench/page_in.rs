//! `tidemark bench page-in`: what each kind of fault costs, beside a bare loop.

use std::path::PathBuf;
use std::time::Duration;

use tidemark_hostbench::page_in::{PageInPlan, measure, table};
use tidemark_hostbench::plan::ROUNDS_DEFAULT;
use tidemark_results::quantity;
use tidemark_supervisor::interrupt::Interrupt;

use super::unfit::unfit;
use crate::exit::{Exit, Refusal, refuse};
use crate::output;

/// The size of the array, and the touches of a lap as a multiple of its pages.
const SIZE_BYTES: u64 = 64 << 20;
const LAPS: u32 = 4;

/// The options that it has.
pub struct Asked<'a> {
    /// The size of the array.
    pub size: Option<&'a str>,
    /// The memory while the program pages.
    pub memory: Option<&'a str>,
    /// The touches of a lap, as a multiple of the pages.
    pub laps: Option<u32>,
    /// The number of times that all is measured.
    pub rounds: Option<u32>,
    /// The seed of random numbers.
    pub seed: u64,
    /// The longest time that a run may take, in seconds.
    pub limit: u64,
    /// True if JSON is to be printed.
    pub is_json: bool,
    /// Options that are not for it, each with true if it was given.
    pub others: &'a [(&'a str, bool)],
}

/// Measures all kinds, and prints them.
pub fn run(asked: &Asked<'_>, folder: PathBuf, interrupt: &Interrupt) -> Result<Exit, Refusal> {
    if let Some((name, _)) = asked.others.iter().find(|(_, is_given)| *is_given) {
        refuse!("`{name}` is not for `page-in`");
    }
    let plan = plan_of(asked, folder)?;
    let record = measure(&plan, interrupt.flag())?;
    output::print(&match asked.is_json {
        true => record.to_json(),
        false => table::text(&record, output::terminal_width()),
    });
    match record.left_out.iter().all(|left_out| left_out.may_be()) {
        true => Ok(Exit::Fine),
        false => Ok(Exit::Found),
    }
}

fn plan_of(asked: &Asked<'_>, folder: PathBuf) -> Result<PageInPlan, Refusal> {
    let size_bytes = match asked.size {
        Some(size) => quantity::parse("--size", size)?,
        None => SIZE_BYTES,
    };
    let memory_bytes = match asked.memory {
        Some(memory) => quantity::parse("--memory", memory)?,
        None => size_bytes / 2,
    };
    let plan = PageInPlan {
        size_bytes,
        memory_bytes,
        laps: asked.laps.unwrap_or(LAPS),
        seed: asked.seed,
        rounds: asked.rounds.unwrap_or(ROUNDS_DEFAULT),
        limit: Duration::from_secs(asked.limit),
        folder,
    };
    plan.check().map_err(unfit)?;
    Ok(plan)
}
