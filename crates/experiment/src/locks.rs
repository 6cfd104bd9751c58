//! Experiments of kind `locks`: processors that want the same locks.

use std::path::Path;

use tidemark_lab::contention::{Charges, Reads, Setup, Work};
use tidemark_lab::study::locks::measure_locks;
use tidemark_lab::systems::machines;
use tidemark_lab::systems::plain::TIDEMARK;
use tidemark_results::experiment::ExperimentRecord;
use tidemark_results::{Refusal, refuse};

use crate::file::{File, Run};
use crate::plan::Plan;
use crate::reading::read;

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
