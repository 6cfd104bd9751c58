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
use tidemark_hostbench::workload::array::Contents;
use tidemark_lab::names::find_live_policy;
use tidemark_results::experiment::{Ending, ExperimentRecord, Measurement, ProgramFacts};
use tidemark_results::quantity;
use tidemark_results::{Refusal, refuse};
use tidemark_supervisor::load_controls;

use crate::file::{File, Run};
use crate::plan::{Draft, Plan};
use crate::workload::Workshop;

/// The metrics of a contender, and their meanings. Times are of this machine.
pub const METRICS: &[(&str, &str)] = &[
    ("elapsed_s", "until the last program was done, in seconds"),
    ("throughput", "programs done in an hour"),
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
    let times = [&file.times, run.times.as_ref().unwrap_or(&file.times)];
    if let Some(times) = times
        .into_iter()
        .flatten()
        .find(|times| !(1..=256).contains(*times))
    {
        refuse!("`times` is {times}; `live` takes 1 to 256");
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
    let mut settings: Vec<(&str, u32)> = vec![];
    for draft in &plan.trials {
        let setting = (&*draft.memory, draft.times);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    for (memory, times) in settings {
        let is_here = |draft: &&Draft| draft.memory == memory && draft.times == times;
        let drafts = plan.trials.iter().filter(is_here);
        let names: Vec<&str> = drafts.map(|draft| draft.run.as_str()).collect();
        let bytes = quantity::parse("memory", memory)?;
        let bench = bench(&names, bytes, program.copies * times, &prepared)?;
        let interrupt = &workshop.interrupt;
        let found = interrupt
            .holding(|| measure(&bench, interrupt.flag()))
            .map_err(Refusal::new)?;
        for left_out in &found.left_out {
            let (name, reason) = (&left_out.name, &left_out.reason);
            record.notes.push(format!(
                "{name} in {memory}{} is left out: {reason}",
                told(times)
            ));
        }
        if let Some((one, other)) = found.find_mismatch() {
            let (one, other) = (&one.name, &other.name);
            record.notes.push(format!(
                "in {memory}{} the programs of {one} and {other} left different files",
                told(times)
            ));
        }
        for name in names {
            let made = found.contenders.iter().find(|made| made.name == name);
            record
                .measurements
                .push(measurement(name, (memory, times), &bench, made));
        }
    }
    // In the order of the plan, which the claims' places are of.
    let place = |measured: &Measurement| {
        plan.trials.iter().position(|draft| {
            draft.run == measured.run
                && draft.memory == measured.memory
                && draft.times == measured.times
        })
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
        contents: Contents::default(),
        rounds: 1,
        own,
        rivals,
        read_ahead: ReadAhead::Host,
        prepared: Some(prepared.clone()),
        limit: LIMIT,
        folder: PathBuf::from(FOLDER),
    })
}

/// The words for a multiple of the programs.
fn told(times: u32) -> String {
    match times {
        1 => String::new(),
        times => format!(" times {times}"),
    }
}

enum Named {
    Own(Contender),
    Rival(Rival),
}

/// The contender of this name: `tidemark`, `tidemark:POLICY`, each with `+LOAD` behind it or not,
/// or a rival.
fn contender(name: &str) -> Result<Named, Refusal> {
    let (base, load) = match name.split_once('+') {
        Some((base, load)) => (base, Some(load)),
        None => (name, None),
    };
    let policy = match base.strip_prefix("tidemark") {
        Some("") => Some(None),
        Some(rest) => rest.strip_prefix(':').map(Some),
        None => None,
    };
    if let Some(policy) = policy {
        policy.map_or(Ok(()), |policy| find_live_policy(policy).map(|_| ()))?;
        load.map_or(Ok(()), |load| load_controls::find(load).map(|_| ()))?;
        return Ok(Named::Own(Contender::Own(Own {
            policy: policy.map(str::to_owned),
            load_control: load.map(str::to_owned),
            ..Own::default()
        })));
    }
    match Rival::from_str(name, false) {
        Ok(rival @ (Rival::KernelSwap | Rival::Native)) => Ok(Named::Rival(rival)),
        Ok(Rival::Mmap) | Err(_) => refuse!(
            "`{name}`: no such contender; there are tidemark, tidemark:POLICY, both with +LOAD, \
             kernel-swap, native"
        ),
    }
}

fn measurement(
    name: &str,
    (memory, times): (&str, u32),
    bench: &Bench,
    made: Option<&ContenderRecord>,
) -> Measurement {
    let metrics = made.map_or_else(BTreeMap::new, |made| {
        let an_hour = f64::from(bench.procs) * 3600.0 / made.elapsed_s.max(1e-9);
        let counts = [
            ("elapsed_s", made.elapsed_s),
            ("throughput", an_hour),
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
        memory_bytes: bench.memory_bytes,
        times,
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
        let own = [
            "tidemark",
            "tidemark:gnumach",
            "tidemark+task-swapper",
            "tidemark:mach3+none",
        ];
        for name in own.into_iter().chain(["kernel-swap", "native"]) {
            assert!(contender(name).is_ok(), "{name}");
        }
        for name in [
            "tidemark:opt",
            "tidemark:no-such",
            "tidemark+no-such",
            "tidemark:",
            "tidemarks",
            "kernel-swap+none",
            "mmap",
            "linux",
        ] {
            assert!(contender(name).is_err(), "{name}");
        }
        assert!(quantity::parse("memory", "80%").is_err());
    }
}
