//! Experiments of kind `live`: their programs under `tidemark run`, and under the kernel's own
//! swap, in the same memory of this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use tidemark_hostbench::contender::{Contender, Own, Rival};
use tidemark_hostbench::measure;
use tidemark_hostbench::plan::{Plan as Bench, Prepared, ReadAhead};
use tidemark_hostbench::record::ContenderRecord;
use tidemark_hostbench::workload::Workload;
use tidemark_lab::names::find_live_policy;
use tidemark_results::experiment::{Ending, ExperimentRecord, Measurement, ProgramFacts};
use tidemark_results::quantity;
use tidemark_results::{Refusal, refuse};

use crate::file::{File, Run};
use crate::plan::Plan;
use crate::workload::Workshop;

/// The metrics of a contender, and their meanings. Times are of this machine.
pub const METRICS: &[(&str, &str)] = &[
    ("elapsed_s", "until the last program was done, in seconds"),
    ("page_ins", "pages read back"),
    ("page_outs", "pages written"),
    ("soft_faults", "faults on resident pages, of ours"),
];

/// The longest time that one run may take.
const LIMIT: Duration = Duration::from_secs(600);
/// The folder of swap files.
const FOLDER: &str = "/var/tmp";

/// Checks what a run names.
pub fn check(file: &File, run: &Run) -> Result<(), Refusal> {
    contender(&run.system)?;
    for memory in &file.memory {
        quantity::parse("memory", memory)?;
    }
    let programs = file.usual_programs();
    match &programs[..] {
        [program] if (1..=64).contains(&program.copies) => {}
        _ => refuse!("`live`: takes one `[[program]]` with 1 to 64 `copies`"),
    }
    match file.trace.iter().all(|trace| trace.environment.is_empty()) {
        true => Ok(()),
        false => refuse!("`live`: takes no `environment`; set it where the command is run"),
    }
}

/// Makes the runs.
pub fn make(
    record: &mut ExperimentRecord,
    plan: &Plan,
    workshop: &Workshop<'_>,
) -> Result<(), Refusal> {
    let file = &plan.file;
    let program = &file.usual_programs()[0];
    let trace = file.trace.iter().find(|trace| trace.name == program.trace);
    let trace = trace.expect("the plan has looked it up");
    let (prepared, _work) = workshop.prepare(trace)?;
    let mut sizes: Vec<&str> = vec![];
    for draft in &plan.trials {
        if !sizes.contains(&draft.memory.as_str()) {
            sizes.push(&draft.memory);
        }
    }
    for memory in sizes {
        let drafts = plan.trials.iter().filter(|draft| draft.memory == memory);
        let names: Vec<&str> = drafts.map(|draft| draft.run.as_str()).collect();
        let bench = bench(
            &names,
            quantity::parse("memory", memory)?,
            program.copies,
            &prepared,
        )?;
        let interrupt = &workshop.interrupt;
        let found = interrupt
            .holding(|| measure(&bench, interrupt.flag()))
            .map_err(Refusal::new)?;
        for left_out in &found.left_out {
            let (name, reason) = (&left_out.name, &left_out.reason);
            record
                .notes
                .push(format!("{name} in {memory} is left out: {reason}"));
        }
        if let Some((one, other)) = found.find_mismatch() {
            let (one, other) = (&one.name, &other.name);
            record.notes.push(format!(
                "in {memory} the programs of {one} and {other} left different files"
            ));
        }
        for name in names {
            let made = found.contenders.iter().find(|made| made.name == name);
            record
                .measurements
                .push(measurement(name, memory, bench.memory_bytes, made));
        }
    }
    // In the order of the plan, which the claims' places are of.
    let place = |measured: &Measurement| {
        plan.trials
            .iter()
            .position(|draft| draft.run == measured.run && draft.memory == measured.memory)
    };
    record.measurements.sort_by_key(place);
    record.machine = format!("this machine, swap in {FOLDER}; one run each");
    record.programs = vec![ProgramFacts {
        name: program.trace.clone(),
        command: prepared.command_line(),
        processes: u64::from(program.copies),
        source: "not recorded".into(),
        ..ProgramFacts::default()
    }];
    Ok(())
}

/// The benchmark in which these contenders run.
fn bench(
    names: &[&str],
    memory_bytes: u64,
    procs: u32,
    prepared: &Prepared,
) -> Result<Bench, Refusal> {
    let (mut own, mut rivals) = (vec![], vec![]);
    for name in names {
        match contender(name)? {
            Named::Own(contender) => own.push(contender),
            Named::Rival(rival) => rivals.push(rival),
        }
    }
    Ok(Bench {
        workload: Workload::Program,
        memory_bytes,
        size_bytes: 0,
        procs,
        laps: None,
        seed: 1,
        rounds: 1,
        own,
        rivals,
        read_ahead: ReadAhead::Host,
        prepared: Some(prepared.clone()),
        limit: LIMIT,
        folder: PathBuf::from(FOLDER),
    })
}

enum Named {
    Own(Contender),
    Rival(Rival),
}

fn contender(name: &str) -> Result<Named, Refusal> {
    let own = |policy| {
        Named::Own(Contender::Own(Own {
            policy,
            ..Own::default()
        }))
    };
    if name == "tidemark" {
        return Ok(own(None));
    }
    if let Some(policy) = name.strip_prefix("tidemark:") {
        find_live_policy(policy)?;
        return Ok(own(Some(policy.to_owned())));
    }
    match Rival::from_str(name, false) {
        Ok(rival @ (Rival::KernelSwap | Rival::Native)) => Ok(Named::Rival(rival)),
        Ok(Rival::Mmap) | Err(_) => refuse!(
            "`{name}`: no such contender; there are tidemark, tidemark:POLICY, kernel-swap, native"
        ),
    }
}

fn measurement(
    name: &str,
    memory: &str,
    memory_bytes: u64,
    made: Option<&ContenderRecord>,
) -> Measurement {
    let metrics = made.map_or_else(BTreeMap::new, |made| {
        let counts = [
            ("elapsed_s", made.elapsed_s),
            ("page_ins", made.page_ins as f64),
            ("page_outs", made.page_outs as f64),
        ];
        let mut metrics: BTreeMap<String, f64> =
            counts.map(|(name, value)| (name.to_owned(), value)).into();
        let soft = made.soft_faults.map(|soft| soft as f64);
        metrics.extend(soft.map(|soft| ("soft_faults".to_owned(), soft)));
        metrics
    });
    Measurement {
        run: name.to_owned(),
        memory: memory.to_owned(),
        memory_bytes,
        times: 1,
        ending: match made {
            Some(_) => Ending::Complete,
            None => Ending::GivenUp,
        },
        metrics,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_are_known_by_their_names() {
        for name in ["tidemark", "tidemark:gnumach", "kernel-swap", "native"] {
            assert!(contender(name).is_ok(), "{name}");
        }
        for name in ["tidemark:opt", "tidemark:no-such", "mmap", "linux"] {
            assert!(contender(name).is_err(), "{name}");
        }
        assert!(quantity::parse("memory", "80%").is_err());
    }
}
