//! Experiments: published measurements, made again.
//!
//! [`catalog`] has the experiments, [`mod@file`] the format of their files, [`plan`] looks up the
//! names in one, [`workload`] makes its traces, `run` makes its runs and has its claims judged;
//! `locks` and `live` make those that are no replays.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod file;
mod live;
mod locks;
mod once;
pub mod plan;
mod reading;
mod run;
pub mod workload;

use std::time::Instant;

use tidemark_results::experiment::{ExperimentRecord, LeftOut};
use tidemark_results::{Refusal, refuse};

use crate::plan::Plan;
use crate::workload::Workshop;

/// The results of experiments.
#[derive(Debug, Default)]
pub struct Made {
    /// The experiments that were made.
    pub experiments: Vec<ExperimentRecord>,
    /// The experiments that could not be made.
    pub left_out: Vec<LeftOut>,
}

/// Makes the experiments of these plans, each with its name.
pub fn make_all(plans: &[(&str, Plan)], workshop: &Workshop<'_>) -> Result<Made, Refusal> {
    let say = workshop.teller.say;
    let mut record = Made::default();
    let mut number = 0;
    // What is measured live has the machine to itself.
    for group in plans.chunk_by(|(_, one), (_, other)| one.is_live() == other.is_live()) {
        let recorded = group.iter().filter(|(_, plan)| !plan.is_live());
        let traces: Vec<_> = recorded.flat_map(|(_, plan)| &plan.file.trace).collect();
        let made: Result<(), Refusal> = workshop.ahead(&traces, || {
            for (name, plan) in group {
                number += 1;
                let runs = plan.trials.len();
                say(&format!("{number} of {}: {name}, {runs} runs", plans.len()));
                match make(name, plan, workshop) {
                    Ok(made) => record.experiments.push(made),
                    Err(refusal) if plans.len() == 1 => refuse!("experiment `{name}`: {refusal}"),
                    Err(refusal) => {
                        say(&format!("{name} is left out: {refusal}"));
                        record.left_out.push(LeftOut {
                            name: (*name).to_owned(),
                            reason: refusal.to_string(),
                        });
                    }
                }
            }
            Ok(())
        });
        made?;
    }
    match record.experiments.is_empty() {
        true => refuse!("no experiment could be made; each says why above"),
        false => Ok(record),
    }
}

fn make(name: &str, plan: &Plan, workshop: &Workshop<'_>) -> Result<ExperimentRecord, Refusal> {
    let begin = Instant::now();
    let mut record = run::make(name, plan, workshop)?;
    record.took_s = begin.elapsed().as_secs_f64();
    Ok(record)
}
