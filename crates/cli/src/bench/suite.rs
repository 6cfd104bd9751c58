//! A suite: benchmarks as data, claims about them, and a dated record.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use tidemark_results::dated::Machine;

use tidemark_hostbench::measure;
use tidemark_hostbench::plan::{Plan, ReadAhead};
use tidemark_hostbench::record::BenchRecord;
use tidemark_hostbench::suite::{Case, Finding, read_cases};
use tidemark_hostbench::workload::Workload;
use tidemark_supervisor::interrupt::Interrupt;

use super::{ROUNDS_DEFAULT, json, own_contenders, parse_size, render, verdict};
use crate::dated;
use crate::exit::{Exit, Refusal, refuse};
use crate::output;
use crate::output::say;

/// The options beside the file.
pub struct Options {
    /// Run only what has one of these in its name; everything if there are none.
    pub only: Vec<String>,
    /// The number of runs of each contender, in place of that of the cases.
    pub rounds: Option<u32>,
    /// The longest time that one run may take.
    pub limit: Duration,
    /// The folder of swap files and scratch files.
    pub folder: PathBuf,
    /// The folder for the dated record.
    pub record: Option<PathBuf>,
    /// True if JSON is printed.
    pub is_json: bool,
}

#[derive(Serialize)]
struct CaseRecord {
    name: String,
    findings: Vec<Finding>,
    bench: BenchRecord,
}

/// A dated run of a suite.
#[derive(Serialize)]
struct SuiteRecord {
    schema: &'static str,
    date: String,
    commit: Option<String>,
    machine: Machine,
    cases: Vec<CaseRecord>,
}

impl Options {
    /// Tells if a part of this name is to run.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only))
    }
}

/// The text of a suite's file.
pub fn read(file: &Path) -> Result<String, Refusal> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) => refuse!("`--suite {}`: {error}", file.display()),
    }
}

/// Runs the cases of `file` one after the other.
pub fn run(
    file: &Path,
    text: &str,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Exit, Refusal> {
    let cases = read_cases(file, text, |name| options.is_wanted(name))?;
    let plans = cases
        .iter()
        .map(|case| plan_of(case, options))
        .collect::<Result<Vec<Plan>, Refusal>>()?;
    let mut records = Vec::new();
    let mut is_fine = true;
    for (case, plan) in cases.iter().zip(&plans) {
        say!("{}", case.name);
        let bench = measure(plan, interrupt.flag())?;
        is_fine &= matches!(verdict(&bench), Ok(Exit::Fine));
        let findings: Vec<Finding> = case
            .claims
            .iter()
            .map(|claim| claim.check(&bench))
            .collect();
        is_fine &= findings.iter().all(|finding| finding.holds);
        if !options.is_json {
            output::print(&format!(
                "{}: {}{}\n",
                case.name,
                render::text(&bench, output::terminal_width()),
                told(&findings)
            ));
        }
        records.push(CaseRecord {
            name: case.name.clone(),
            findings,
            bench,
        });
    }
    let record = SuiteRecord {
        schema: "tidemark.suite.v1",
        date: dated::now(),
        commit: dated::commit(),
        machine: dated::machine(),
        cases: records,
    };
    if options.is_json {
        output::print(&json(&record));
    }
    if let Some(folder) = &options.record {
        dated::write(folder, &record.date, "", &json(&record))?;
    }
    Ok(if is_fine { Exit::Fine } else { Exit::Found })
}

fn plan_of(case: &Case, options: &Options) -> Result<Plan, Refusal> {
    let Ok(workload) = Workload::from_str(&case.workload, false) else {
        refuse!("case `{}`: `{}` is no workload", case.name, case.workload);
    };
    let plan = Plan {
        workload,
        memory_bytes: parse_size("--memory", &case.memory)?,
        size_bytes: case
            .size
            .as_deref()
            .map_or(Ok(0), |size| parse_size("--size", size))?,
        procs: case.procs,
        laps: case.laps,
        seed: 1,
        rounds: options.rounds.or(case.rounds).unwrap_or(ROUNDS_DEFAULT),
        own: own_contenders(&case.policy, case.in_thread)?,
        rivals: case.against.clone(),
        read_ahead: ReadAhead::Best,
        prepared: None,
        limit: options.limit,
        folder: options.folder.clone(),
    };
    plan.check()
        .map_err(|refusal| Refusal::new(format!("case `{}`: {refusal}", case.name)))?;
    Ok(plan)
}

/// One line for each finding.
fn told(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let verdict = if finding.holds { "holds" } else { "FAILS" };
        let ratio = finding
            .ratio
            .map_or("not measured".to_owned(), |ratio| format!("{ratio:.3}"));
        format!(
            "{verdict}: {}: {ratio}, at most {:.3}\n",
            finding.claim, finding.at_most
        )
    };
    findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_of_the_repository_can_be_planned() {
        let file = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../bench/cases.json"
        ));
        let mut options = Options {
            only: Vec::new(),
            rounds: None,
            limit: Duration::from_secs(1),
            folder: "/var/tmp".into(),
            record: None,
            is_json: false,
        };
        let text = read(file).expect("the file can be read");
        let wanted = |options: &Options| read_cases(file, &text, |name| options.is_wanted(name));
        let cases = wanted(&options).expect("the file is well formed");
        for case in &cases {
            plan_of(case, &options).expect("the case is possible");
        }
        options.only = vec!["no such case".to_owned()];
        assert!(wanted(&options).is_err());
    }
}
