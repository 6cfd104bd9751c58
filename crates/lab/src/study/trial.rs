//! Trials: single runs of the world, and what is measured of them, by name.

use std::collections::BTreeMap;

use tidemark_core::counters::Counter;
use tidemark_results::experiment::{Ending, Measurement};
use tidemark_results::replay::Run;

use super::ample;
use super::progress::{Told, run_jobs};
use super::runs::{Terms, run_record};
use crate::world::{self, Outcome, Program, Scenario, Scheduler, System, WorldError};

/// At most this many programs have their own times measured.
const PROGRAMS_TOLD: usize = 16;

/// The metrics of a run, and their meanings. Times are simulated.
pub const METRICS: &[(&str, &str)] = &[
    (
        "elapsed_s",
        "from the first start to the last end, in seconds",
    ),
    (
        "turnaround_s",
        "from start to end, the mean over programs, in seconds",
    ),
    ("throughput", "programs that ended in an hour"),
    ("records_per_s", "references done in a second"),
    ("processor_s", "what processors worked, in seconds"),
    ("user_s", "the part of it in programs"),
    ("system_s", "the part of it in the kernel"),
    (
        "policy_s",
        "the part of that which answers the policy's questions",
    ),
    ("page_ins", "pages read"),
    ("page_outs", "pages written"),
    ("page_in_requests", "requests that reads took"),
    ("page_out_requests", "requests that writes took"),
    ("swap_ins", "pages read from swap"),
    ("swap_outs", "pages written to swap"),
    ("file_ins", "pages of files read"),
    ("file_outs", "pages of files written"),
    ("soft_faults", "faults on resident pages"),
    ("zero_fills", "first touches"),
    ("copies", "private copies"),
    ("reactivations", "pages touched on their way out"),
    ("clean_drops", "pages that left without a write"),
    ("read_ahead_used", "pages read ahead and used"),
    ("read_ahead_wasted", "pages read ahead and gone unused"),
    (
        "read_ahead_unknown",
        "pages read ahead of which it is not known whether they were used",
    ),
    (
        "read_ahead_accuracy",
        "the share of pages read ahead that was used",
    ),
    ("questions", "frames the policy asked about"),
    ("refusals", "choices that were turned down"),
    ("stalls", "faults that waited for a frame"),
    ("messages", "messages to pagers"),
    ("switches", "changes of process"),
    ("suspended_s", "time programs were suspended, added up"),
    ("page_wait_s", "time programs waited for pages, added up"),
    ("faults", "faults taken"),
    ("mappings_max", "entries of page tables at one time"),
    (
        "table_pages_max",
        "page tables at one time, each a page of 1,024 entries",
    ),
    (
        "chain_bytes_max",
        "memory of reverse-map chains with the direct pointer, by nodes of 8 bytes",
    ),
    ("chain_share_max", "the same over all memory"),
    (
        "undirected_bytes_max",
        "memory of chains if single mappings took a node of 8 bytes, too",
    ),
    (
        "table_growth",
        "page tables with the chains there are, over page tables alone; tables count whole",
    ),
    (
        "entry_growth",
        "the same over entries that map alone, as if tables had no others",
    ),
    (
        "nodes_per_entry",
        "nodes of chains for each entry of page tables, those that map nothing included",
    ),
    ("fairness", "Jain's index of processor time over time"),
    ("killed", "processes that memory could not serve"),
    (
        "elapsed_spread",
        "of runs that are repeated: the longest over the shortest",
    ),
];

/// Bytes of a chain's node, as it was when reverse maps were new: two pointers of 32 bits.
const NODE_BYTES: f64 = 8.0;
/// Bytes of a page table's entry on the same machines.
const ENTRY_BYTES: f64 = 4.0;
/// Entries of a page table there, which is a page.
const TABLE_ENTRIES: f64 = 1024.0;
/// Bytes of a node of the core's own chains.
const LINK_BYTES: f64 = 16.0;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The name.
    pub run: String,
    /// Its size of memory, as it was asked for.
    pub memory: String,
    /// The number of times as many copies of each program.
    pub times: u32,
    /// The system.
    pub system: System,
    /// The rest.
    pub scenario: Scenario,
    /// The number of times it is made, each time from the next seed and with a page of memory less:
    /// what is measured is the mean.
    ///
    /// Programs that share a disk and too little memory are chaotic: a request that takes a
    /// millisecond longer, and another program runs next. What one run says of two systems that
    /// differ by a few percent is chance. Most disks draw nothing, so the seed alone does not tell.
    pub repeats: u32,
}

/// Makes the trials, on every processor.
///
/// # Errors
/// With the place of a trial that can't be run, and why.
pub fn run_trials(
    trials: &[Trial],
    progress: &Told<'_>,
) -> Result<Vec<Measurement>, (usize, WorldError)> {
    let runs = trials.iter().enumerate().flat_map(|(place, trial)| {
        let repeats = trial.repeats.max(1);
        (0..repeats).map(move |repeat| (place, repeat))
    });
    let runs: Vec<(usize, u32)> = runs.collect();
    let measured = run_jobs(&runs, progress, |_, &(place, repeat)| {
        let made = trials[place].run(repeat).map_err(|error| (place, error))?;
        Ok((place, made))
    })?;
    let means = measured.chunk_by(|one, other| one.0 == other.0);
    Ok(means.map(mean).collect())
}

/// The mean of what a trial's runs measured, and how far apart they were.
fn mean(runs: &[(usize, Measurement)]) -> Measurement {
    let repeats = runs.len();
    let runs = runs.iter().map(|(_, measured)| measured);
    let worst = runs.clone().max_by_key(|measured| gravity(measured.ending));
    let mut mean = worst.expect("a trial is made once at least").clone();
    for (name, value) in &mut mean.metrics {
        let values = runs.clone().filter_map(|run| run.metrics.get(name));
        *value = values.clone().sum::<f64>() / values.count() as f64;
    }
    let elapsed = runs.filter_map(|run| run.metrics.get("elapsed_s").copied());
    let (least, most) = elapsed.fold((f64::MAX, 0.0), |(least, most), elapsed| {
        (elapsed.min(least), elapsed.max(most))
    });
    if repeats > 1 && least > 0.0 && least <= most {
        mean.metrics.insert("elapsed_spread".into(), most / least);
    }
    mean
}

fn gravity(ending: Ending) -> u32 {
    match ending {
        Ending::Complete => 0,
        Ending::Killed => 1,
        Ending::GivenUp => 2,
        Ending::Stuck => 3,
    }
}

/// The most pages these programs have in memory at one time, if there is enough and disks take no
/// time: their own, and those of files that have been used.
///
/// # Errors
/// If they can't be run at all.
pub fn count_peak_pages(
    programs: Vec<Program>,
    processors: u32,
    scheduler: Scheduler,
) -> Result<u32, WorldError> {
    let pages: u64 = programs.iter().map(|program| program.script.pages()).sum();
    let scenario = Scenario {
        processors,
        scheduler,
        ..ample::scenario(pages, programs)
    };
    Ok(world::run(&ample::SYSTEM, &scenario)?.frames_used_max)
}

impl Trial {
    fn run(&self, repeat: u32) -> Result<Measurement, WorldError> {
        let page_bytes = self.scenario.programs.first();
        let page_bytes = page_bytes.map_or(4096, |program| program.script.page_bytes());
        let memory_pages = self.scenario.memory_pages;
        let measurement = |ending, metrics| Measurement {
            run: self.run.clone(),
            memory: self.memory.clone(),
            memory_bytes: u64::from(memory_pages) * page_bytes,
            times: self.times,
            ending,
            metrics,
        };
        let scenario = Scenario {
            seed: self.scenario.seed.wrapping_add(repeat.into()),
            memory_pages: memory_pages.saturating_sub(repeat).max(1),
            ..self.scenario.clone()
        };
        let outcome = match world::run(&self.system, &scenario) {
            Ok(outcome) => outcome,
            Err(WorldError::Stuck { .. }) => {
                return Ok(measurement(Ending::Stuck, BTreeMap::new()));
            }
            Err(error) => return Err(error),
        };
        let run = run_record(
            &outcome,
            &Terms {
                memory_pages,
                page_bytes,
                optimal_page_ins: 0,
                has_time_line: false,
            },
        );
        let killed: u64 = run.programs.iter().map(|program| program.killed).sum();
        let ending = match (outcome.is_complete, killed) {
            (false, _) => Ending::GivenUp,
            (true, 0) => Ending::Complete,
            (true, _) => Ending::Killed,
        };
        Ok(measurement(ending, metrics(&run, &outcome)))
    }
}

fn metrics(run: &Run, outcome: &Outcome) -> BTreeMap<String, f64> {
    let mut metrics: BTreeMap<String, f64> = counts(run)
        .map(|(name, count)| (name.to_owned(), count as f64))
        .collect();
    let sum = |part: fn(&tidemark_results::replay::ProgramRun) -> f64| {
        run.programs.iter().map(part).sum::<f64>()
    };
    let used = &run.processor;
    let elapsed_s = run.elapsed_s.max(1e-9);
    let programs = run.programs.len().max(1) as f64;
    let ended = outcome.programs.iter().filter(|p| p.has_ended()).count() as f64;
    let memory_bytes = run.memory_bytes.max(1) as f64;
    let nodes = run.reverse_map_bytes_max as f64 / LINK_BYTES;
    let chain_bytes = nodes * NODE_BYTES;
    let entries = outcome.mappings_max as f64;
    let table_entries = outcome.table_pages_max as f64 * TABLE_ENTRIES;
    let grown = |entries: f64| 1.0 + chain_bytes / (entries * ENTRY_BYTES).max(1.0);
    let rates = [
        ("elapsed_s", run.elapsed_s),
        ("turnaround_s", sum(|p| p.end_s - p.start_s) / programs),
        ("throughput", ended * 3600.0 / elapsed_s),
        ("records_per_s", sum(|p| p.records as f64) / elapsed_s),
        ("processor_s", used.user_s + used.system_s),
        ("user_s", used.user_s),
        ("system_s", used.system_s),
        ("policy_s", used.policy_s),
        ("suspended_s", sum(|p| p.suspended_s)),
        ("page_wait_s", sum(|p| p.page_wait_s)),
        ("faults", sum(|p| p.faults as f64)),
        ("killed", sum(|p| p.killed as f64)),
        ("mappings_max", entries),
        ("chain_bytes_max", chain_bytes),
        ("chain_share_max", chain_bytes / memory_bytes),
        ("undirected_bytes_max", entries * NODE_BYTES),
        ("table_pages_max", outcome.table_pages_max as f64),
        ("table_growth", grown(table_entries)),
        ("entry_growth", grown(entries)),
        ("nodes_per_entry", nodes / table_entries.max(1.0)),
        ("fairness", run.fairness),
    ];
    metrics.extend(rates.map(|(name, value)| (name.to_owned(), value)));
    let ahead = (run.read_ahead_used + run.read_ahead_wasted) as f64;
    if ahead > 0.0 {
        let accuracy = run.read_ahead_used as f64 / ahead;
        metrics.insert("read_ahead_accuracy".into(), accuracy);
    }
    if run.programs.len() <= PROGRAMS_TOLD {
        for program in &run.programs {
            let own = [
                ("elapsed_s", program.end_s - program.start_s),
                ("page_wait_s", program.page_wait_s),
                ("faults", program.faults as f64),
            ];
            metrics
                .extend(own.map(|(metric, value)| (format!("{metric}.{}", program.name), value)));
        }
    }
    metrics
}

/// The counters that are measured, by their names in the record of a replay.
fn counts(run: &Run) -> impl Iterator<Item = (&'static str, u64)> {
    METRICS.iter().filter_map(|&(name, _)| {
        let mut all = Counter::ALL.into_iter();
        let counter = all.find(|counter| counter.replay_name() == Some(name))?;
        Some((name, run.get(counter)?))
    })
}
