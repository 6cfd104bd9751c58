//! Makes an experiment's runs and judges its claims.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tidemark_lab::amounts::parse_memory;
use tidemark_lab::names::unrunnable;
use tidemark_lab::study::claims::judge;
use tidemark_lab::study::lifetimes::{Wish, measure_curves};
use tidemark_lab::study::{
    Assumed, Named, Study, Trial, Unrunnable, Wanted, count_peak_pages, run_trials,
};
use tidemark_lab::world::{self, Disks, Scenario, WorldError};
use tidemark_results::analysis::TimeUnit;
use tidemark_results::experiment::{ExperimentRecord, ProgramFacts};
use tidemark_results::text;
use tidemark_results::{Refusal, refuse};

use crate::file::{File, Kind, Program};
use crate::plan::{Draft, Plan, Terms, parse_advice};
use crate::reading::{Read, read};
use crate::workload::Workshop;
use crate::{live, locks};

/// Makes the experiment, its traces first.
pub fn make(name: &str, plan: &Plan, workshop: &Workshop<'_>) -> Result<ExperimentRecord, Refusal> {
    let file = &plan.file;
    let traces = match file.kind {
        Kind::Replay | Kind::Curves | Kind::Locks => file.trace.iter(),
        Kind::Live => [].iter(),
    };
    let traces = traces.map(|trace| workshop.trace(trace));
    let traces: Vec<PathBuf> = traces.collect::<Result<_, _>>()?;
    let mut record = ExperimentRecord {
        name: name.into(),
        title: file.title.clone(),
        source: file.source.clone(),
        claimed: file.claimed.clone(),
        differs: file.differs.clone(),
        pictures: plan.pictures.clone(),
        ..ExperimentRecord::default()
    };
    let progress = Mutex::new((workshop.teller.progress)());
    let show = |what: &str, part: f64| {
        if let Ok(mut progress) = progress.lock() {
            progress(what, part);
        }
    };
    match file.kind {
        Kind::Replay => replay(&mut record, plan, &traces, &show)?,
        Kind::Curves => curves(&mut record, plan, &traces[0], &show)?,
        Kind::Locks => locks::make(&mut record, plan, &traces[0], &show)?,
        Kind::Live => live::make(&mut record, plan, workshop)?,
    }
    let findings = plan.claims.iter();
    record.findings = findings
        .map(|claim| judge(claim, &record.measurements))
        .collect();
    Ok(record)
}

fn replay(
    record: &mut ExperimentRecord,
    plan: &Plan,
    traces: &[PathBuf],
    show: &(dyn Fn(&str, f64) + Sync),
) -> Result<(), Refusal> {
    let file = &plan.file;
    show("reading", 0.0);
    let reads = file
        .trace
        .iter()
        .zip(traces)
        .map(|(trace, path)| read(&trace.name, path));
    let reads: Vec<Read> = reads.collect::<Result<_, _>>()?;
    let Some(page_bytes) = reads.first().map(|read| read.script.page_bytes()) else {
        refuse!("there is no `[[trace]]`");
    };
    show("peak", 0.0);
    let first = plan.trials.iter().find_map(|draft| draft.terms.as_ref());
    let first = first.expect("every replay has terms");
    let programs = programs(&file.usual_programs(), 1, &reads);
    let peak = count_peak_pages(programs, first.processors, first.scheduler);
    let fail = |system, memory_pages, error| {
        unrunnable(
            &Unrunnable::World {
                system,
                memory_pages,
                error,
            },
            page_bytes,
        )
    };
    let peak_pages = peak.map_err(|error| fail("ample memory", 0, error))?;
    let peak_bytes = u64::from(peak_pages) * page_bytes;
    let trials = plan
        .trials
        .iter()
        .map(|draft| trial(draft, file, &reads, peak_bytes));
    let trials: Vec<Trial> = trials.collect::<Result<_, _>>()?;
    let measured = run_trials(&trials, show);
    record.measurements = measured.map_err(|(place, error): (usize, WorldError)| {
        let trial = &trials[place];
        let told = fail(trial.system.name, trial.scenario.memory_pages, error);
        Refusal::new(format!("run `{}` in {}: {told}", trial.run, trial.memory))
    })?;
    let repeats = plan.trials.iter().map(|draft| draft.repeats).max();
    record.machine = machine(file, first, repeats.unwrap_or(1));
    record.peak_bytes = peak_bytes;
    record.programs = reads.into_iter().map(|read| read.facts).collect();
    Ok(())
}

fn curves(
    record: &mut ExperimentRecord,
    plan: &Plan,
    trace: &Path,
    show: &dyn Fn(&str, f64),
) -> Result<(), Refusal> {
    let wanted = Wanted {
        references: true,
        ..Wanted::default()
    };
    let study = Study::read(trace, wanted, &mut |what, part| show(what, part));
    let study = study.map_err(|error| Refusal::new(format!("`{}`: {error}", trace.display())))?;
    let name = |draft: &Draft| -> Named {
        let system = plan
            .file
            .run
            .iter()
            .find(|run| run.name.as_ref() == Some(&draft.run));
        let system = system.map_or(&draft.run, |run| &run.system);
        system.parse().expect("the plan has looked it up")
    };
    let wishes = plan.trials.iter();
    let wishes: Vec<Wish<'_>> = wishes
        .map(|draft| (draft.run.as_str(), name(draft), draft.memory.as_str()))
        .collect();
    // What was claimed is judged at one speed, whatever machine its programs were recorded on.
    let assumed = Assumed {
        time_unit_ns: (study.facts().time_unit == TimeUnit::Instructions).then_some(0.5),
        ..Assumed::default()
    };
    record.measurements = measure_curves(&study, &wishes, &assumed, &mut |what, part| {
        show(what, part)
    });
    let facts = study.facts();
    record.machine = format!(
        "curves of all references; a page-in taken for {} µs",
        assumed.page_in_ns / 1000.0
    );
    record.peak_bytes = facts.bytes(facts.pages);
    record.programs = vec![ProgramFacts {
        name: plan.file.trace[0].name.clone(),
        command: facts.command.clone(),
        records: facts.records,
        pages: facts.pages,
        processes: facts.processes,
        source: facts.source.clone(),
    }];
    Ok(())
}

fn trial(draft: &Draft, file: &File, reads: &[Read], peak_bytes: u64) -> Result<Trial, Refusal> {
    let terms = draft.terms.as_ref().expect("every replay has terms");
    let page_bytes = reads[0].script.page_bytes();
    let pages = |key: &str, text: &str| parse_memory(key, text, page_bytes, peak_bytes);
    let limit_ns = (file.machine.limit_hours * 3.6e12) as u64;
    let programs = programs(&terms.programs, draft.times, reads);
    Ok(Trial {
        run: draft.run.clone(),
        memory: draft.memory.clone(),
        times: draft.times,
        scenario: Scenario {
            wired_pages: pages("wired", &file.machine.wired)?,
            processors: terms.processors,
            scheduler: terms.scheduler,
            disks: Disks {
                swap: terms.swap_disk.model.clone(),
                files: terms.file_disk.as_ref().map(|disk| disk.model.clone()),
            },
            seed: file.machine.seed,
            policy: terms.policy.clone(),
            load: terms.load.clone(),
            load_knobs: terms.load_knobs.clone(),
            clusters: terms.clusters,
            limit_ns: Some(limit_ns),
            ..Scenario::new(pages("memory", &draft.memory)?, programs)
        },
        system: terms.system.clone(),
        repeats: draft.repeats,
    })
}

/// The programs, each as often as it is to run.
fn programs(programs: &[Program], times: u32, reads: &[Read]) -> Vec<world::Program> {
    let each = programs.iter().flat_map(|program| {
        let read = reads.iter().find(|read| read.name == program.trace);
        let read = read.expect("the plan has looked it up");
        let copies = program.copies.saturating_mul(times);
        (0..copies).map(move |copy| {
            let name = match copies {
                1 => read.name.clone(),
                _ => format!("{} {}", read.name, copy + 1),
            };
            let start_s = program.start + program.every * f64::from(copy);
            let advice = program.advice.as_deref().and_then(parse_advice);
            let plain = world::Program::new(name, read.script.clone());
            world::Program {
                start_ns: (start_s * 1e9) as u64,
                weight: program.weight,
                advice: advice.unwrap_or(plain.advice),
                own_files: program.own_files.clone(),
                ..plain
            }
        })
    });
    each.collect()
}

fn machine(file: &File, terms: &Terms, repeats: u32) -> String {
    let machine = &file.machine;
    let processors = text::processors(terms.processors as usize);
    let files = match &machine.file_disk {
        Some(disk) => format!(", files on {disk}"),
        None => String::new(),
    };
    let year = match machine.year.as_str() {
        "present" => String::new(),
        year => format!(" of {year}"),
    };
    let means = match repeats {
        1 => String::new(),
        _ => format!(", means of {repeats} runs"),
    };
    format!(
        "{processors}{year}, {}, swap on {}{files}, runs given up after {} h{means}",
        machine.scheduler, machine.disk, machine.limit_hours
    )
}
