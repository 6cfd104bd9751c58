//! Experiments of kind `locks`: what they say of processors and locks, and making them.

use std::path::Path;

use serde::Deserialize;
use tidemark_lab::contention::{Charges, Reads, Setup, Work};
use tidemark_lab::study::locks::measure_locks;
use tidemark_lab::systems::machines;
use tidemark_lab::systems::plain::TIDEMARK;
use tidemark_results::experiment::ExperimentRecord;

use super::file::{File, Run};
use super::plan::Plan;
use super::run::read;
use crate::exit::{Refusal, refuse};

/// `[locks]`: what there is to be done, and what steps take.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Locks {
    /// The number of processors that have work at a time.
    pub workers: u32,
    /// The number of times that the recorded jobs are done.
    pub times: u32,
    /// Windows of files that every job reads.
    pub reads_shared: u32,
    /// Windows that a job alone reads.
    pub reads_own: u32,
    /// A cache line's way within a socket, in nanoseconds.
    pub line_ns: u64,
    /// Its way to the other socket.
    pub far_line_ns: u64,
    /// Taking a page from a list or putting it there.
    pub list_ns: u64,
    /// Looking up a page or a window.
    pub search_ns: u64,
    /// Telling one other processor that a mapping is gone.
    pub shootdown_ns: u64,
    /// The time that an idle processor spends between two looks at a lock.
    pub idle_ns: u64,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            workers: 1,
            times: 1,
            reads_shared: 0,
            reads_own: 0,
            line_ns: 45,
            far_line_ns: 130,
            list_ns: 55,
            search_ns: 15,
            shootdown_ns: 1500,
            idle_ns: 1000,
        }
    }
}

/// `locks` of a run: how a system shares what processors share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunLocks {
    /// The number of windows through which files are read.
    pub windows: u32,
    /// Into how many parts they are divided.
    pub window_parts: u32,
    /// True if idle processors fill free pages with zeros.
    pub idle_zeroing: bool,
    /// True if locks have cache lines of their own.
    pub aligned: bool,
    /// The number of pages that go under one taking of a lock.
    pub batch: u32,
    /// True if programs have free pages and queues of their own, as under Tidemark.
    pub own_queues: bool,
    /// In place of the experiment's.
    pub shootdown_ns: Option<u64>,
}

impl Default for RunLocks {
    fn default() -> RunLocks {
        RunLocks {
            windows: 1024,
            window_parts: 1,
            idle_zeroing: false,
            aligned: true,
            batch: 1,
            own_queues: false,
            shootdown_ns: None,
        }
    }
}

/// Checks what belongs together.
pub fn check(file: &File, run: &Run) -> Result<(), Refusal> {
    let (locks, own) = (&file.locks, run.locks.unwrap_or_default());
    let processors = file.machine.cpus;
    if !(1..=1024).contains(&processors) || !(1..=processors).contains(&locks.workers) {
        refuse!(
            "`workers` is {} and `cpus` {processors}; takes 1 to 1024 processors, and no more \
             workers",
            locks.workers
        );
    }
    if !(1..=1000).contains(&locks.times) || !(1..=1 << 16).contains(&own.batch) {
        refuse!(
            "`times` is {} and `batch` {}; they take 1 to 1000 and 1 to 65536",
            locks.times,
            own.batch
        );
    }
    if own.window_parts == 0 || own.windows < own.window_parts || own.windows > 1 << 24 {
        refuse!(
            "`windows` is {} in {} `window_parts`; each takes one, and all 16777216 at most",
            own.windows,
            own.window_parts
        );
    }
    Ok(())
}

/// Makes the runs.
pub fn make(
    record: &mut ExperimentRecord,
    plan: &Plan,
    trace: &Path,
    show: &dyn Fn(&str, f64),
) -> Result<(), Refusal> {
    let file = &plan.file;
    let locks = &file.locks;
    show("reading", 0.0);
    let read = read(&file.trace[0].name, trace)?;
    let costs = machines::of_year(&file.machine.year).expect("the plan has looked it up");
    let reads = Reads {
        shared: locks.reads_shared,
        own: locks.reads_own,
    };
    let work = Work::of(&read.script, &costs);
    let work = work.repeat(locks.times).with_reads(reads);
    for (done, draft) in plan.trials.iter().enumerate() {
        show("contending", done as f64 / plan.trials.len() as f64);
        let run = file
            .run
            .iter()
            .find(|run| run.name.as_ref() == Some(&draft.run));
        let own = run.and_then(|run| run.locks).unwrap_or_default();
        let setup = Setup {
            processors: file.machine.cpus,
            workers: locks.workers,
            windows: own.windows,
            window_parts: own.window_parts,
            has_idle_zeroing: own.idle_zeroing,
            is_aligned: own.aligned,
            batch: own.batch,
            has_own_queues: own.own_queues,
        };
        let charges = Charges {
            costs,
            line_ns: locks.line_ns,
            far_line_ns: locks.far_line_ns,
            list_ns: locks.list_ns,
            search_ns: locks.search_ns,
            shootdown_ns: own.shootdown_ns.unwrap_or(locks.shootdown_ns),
            idle_ns: locks.idle_ns,
            own_fault_ns: TIDEMARK.costs.fault_ns,
        };
        let measured = measure_locks(&draft.run, &work, &setup, &charges);
        record.measurements.push(measured);
    }
    record.machine = format!(
        "{} processors of which {} work, {} jobs, files in memory",
        file.machine.cpus,
        locks.workers,
        work.jobs()
    );
    record.programs = vec![read.facts];
    Ok(())
}
