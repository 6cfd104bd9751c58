//! A run's outcome as a record.

use tidemark_results::replay::{DiskRun, ProcessorUse, ProgramRun, Run, TimeLine};
use tidemark_results::suspension::{self, Suspension};

use crate::world::{DiskUse, Outcome, ProgramOutcome, Sample};

/// The settings that the record of a run has beside its outcome.
pub struct Terms {
    /// The size of memory, in pages.
    pub memory_pages: u32,
    /// The size of a page, in bytes.
    pub page_bytes: u64,
    /// The fewest page-ins any policy could have had.
    pub optimal_page_ins: u64,
    /// True if the run over time is wanted.
    pub has_time_line: bool,
}

/// The record of a run.
pub fn run_record(outcome: &Outcome, terms: &Terms) -> Run {
    let optimal = terms.optimal_page_ins;
    Run {
        system: outcome.system.into(),
        policy: outcome.policy.clone(),
        load: outcome.load.clone(),
        memory_bytes: u64::from(terms.memory_pages) * terms.page_bytes,
        elapsed_s: seconds(outcome.elapsed_ns),
        processor: ProcessorUse {
            user_s: seconds(outcome.user_ns),
            system_s: seconds(outcome.system_ns),
            idle_s: seconds(outcome.idle_ns),
            policy_s: seconds(outcome.policy_ns),
        },
        optimal_page_ins: optimal,
        over_optimal: match (outcome.counters.page_ins, optimal) {
            (0, 0) => Some(1.0),
            (_, 0) => None,
            (page_ins, _) => Some(page_ins as f64 / optimal as f64),
        },
        fairness: fairness(&outcome.programs),
        programs: outcome.programs.iter().map(program_run).collect(),
        suspensions: suspensions(outcome),
        disks: outcome.disks.iter().map(disk_run).collect(),
        time_line: terms.has_time_line.then(|| time_line(outcome)),
        ..Run::of_counts(|counter| outcome.count(counter))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn program_run(program: &ProgramOutcome) -> ProgramRun {
    ProgramRun {
        name: program.name.clone(),
        start_s: seconds(program.start_ns),
        end_s: seconds(program.end_ns),
        user_s: seconds(program.sum(|process| process.user_ns)),
        system_s: seconds(program.sum(|process| process.system_ns)),
        page_wait_s: seconds(program.sum(|process| process.page_wait_ns)),
        think_s: seconds(program.sum(|process| process.think_ns)),
        ready_s: seconds(program.sum(|process| process.ready_ns)),
        suspended_s: seconds(program.sum(|process| process.suspended_ns)),
        faults: program.sum(|process| process.faults),
        waits: program.sum(|process| process.waits),
        records: program.sum(|process| process.records),
        processes: program.processes.len() as u64,
        killed: program.sum(|process| process.was_killed.into()),
    }
}

fn suspensions(outcome: &Outcome) -> Vec<Suspension> {
    let mut all: Vec<Suspension> = Vec::new();
    for change in &outcome.suspensions {
        let (task, at_s) = (change.process as u64, seconds(change.time_ns));
        suspension::note(&mut all, task, change.is_suspended, at_s);
    }
    all
}

fn disk_run(disk: &DiskUse) -> DiskRun {
    DiskRun {
        name: disk.name.into(),
        reads: disk.reads,
        pages_read: disk.pages_read,
        writes: disk.writes,
        pages_written: disk.pages_written,
        busy_s: seconds(disk.busy_ns),
        queued_s: seconds(disk.queued_ns),
        queue_max: disk.queue_max,
    }
}

fn time_line(outcome: &Outcome) -> TimeLine {
    let samples = &outcome.samples;
    let column = |part: fn(&Sample) -> u32| samples.iter().map(part).collect();
    TimeLine {
        time_s: samples
            .iter()
            .map(|sample| seconds(sample.time_ns))
            .collect(),
        free: column(|sample| sample.frames_free),
        laundry: column(|sample| sample.laundry),
        files: column(|sample| sample.external),
        ready: column(|sample| sample.ready),
        resident: (0..outcome.programs.len())
            .map(|program| {
                samples
                    .iter()
                    .map(|sample| sample.resident[program])
                    .collect()
            })
            .collect(),
        queues: (0..outcome.disks.len())
            .map(|disk| samples.iter().map(|sample| sample.queues[disk]).collect())
            .collect(),
    }
}

/// Jain's index of how far the programs came in their time: of processor time over time from start
/// to end.
fn fairness(programs: &[ProgramOutcome]) -> f64 {
    let rates = programs.iter().map(|program| {
        let worked = program.sum(|process| process.user_ns + process.system_ns);
        worked as f64 / (program.end_ns - program.start_ns).max(1) as f64
    });
    let (sum, squares) = rates.fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    match squares > 0.0 {
        true => sum * sum / (programs.len() as f64 * squares),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::ProcessOutcome;

    fn program(worked: u64, until: u64) -> ProgramOutcome {
        ProgramOutcome {
            name: String::new(),
            start_ns: 0,
            end_ns: until,
            processes: vec![ProcessOutcome {
                user_ns: worked,
                ..ProcessOutcome::default()
            }],
        }
    }

    #[test]
    fn programs_that_fare_alike_fare_fairly() {
        assert_eq!(fairness(&[program(10, 100), program(20, 200)]), 1.0);
        assert_eq!(fairness(&[program(100, 100), program(0, 100)]), 0.5);
        assert_eq!(fairness(&[]), 1.0);
    }
}
