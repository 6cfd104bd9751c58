//! Suites: benchmarks as data, and claims about them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tidemark_results::dated::Machine;
use tidemark_results::{Refusal, quantity, refuse};

use crate::contender::{Contender, Rival};
use crate::dated;
use crate::plan::{Plan, ROUNDS_DEFAULT, ReadAhead};
use crate::record::BenchRecord;
use crate::workload::Workload;
use crate::workload::array::Contents;

/// The options beside a suite's file.
pub struct Options {
    /// Run only what has one of these in its name; everything if there are none.
    pub only: Vec<String>,
    /// The number of runs of each contender, in place of that of the cases.
    pub rounds: Option<u32>,
    /// The longest time that one run may take.
    pub limit: Duration,
    /// The folder of swap files and scratch files.
    pub folder: PathBuf,
}

/// One benchmark of a suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The workload.
    pub workload: String,
    /// The memory.
    pub memory: String,
    /// The memory that the workload uses.
    pub size: Option<String>,
    /// The number of processes.
    #[serde(default = "one")]
    pub procs: u32,
    /// The number of times it goes through its memory.
    pub laps: Option<u32>,
    /// The contents of the arrays.
    #[serde(default)]
    pub contents: Contents,
    /// The number of runs of each contender.
    pub rounds: Option<u32>,
    /// The contenders that are not ours.
    #[serde(default)]
    pub against: Vec<Rival>,
    /// Our policies.
    #[serde(default)]
    pub policy: Vec<String>,
    /// Our load controls, beside the default one.
    #[serde(default)]
    pub load_control: Vec<String>,
    /// Our divisions of memory, beside the usual one.
    #[serde(default)]
    pub division: Vec<String>,
    /// True if faults are served in the thread that faults, too.
    #[serde(default)]
    pub in_thread: bool,
    /// The claims that it must show.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

/// Something a case must show: `measure` of `of` is at most `at_most` times that of `against`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    measure: Measure,
    of: String,
    against: String,
    at_most: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    ElapsedS,
    AccessS,
    PageIns,
}

/// A claim and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The claim.
    pub claim: String,
    /// The ratio that was found; `None` if it could not be measured.
    pub ratio: Option<f64>,
    /// The most that it may be.
    pub at_most: f64,
    /// True if it is.
    pub holds: bool,
}

/// A case that ran.
#[derive(Serialize)]
pub struct CaseRecord {
    /// Its name.
    pub name: String,
    /// Its claims, and what was found.
    pub findings: Vec<Finding>,
    /// The measurement.
    pub bench: BenchRecord,
}

/// A dated run of a suite.
#[derive(Serialize)]
pub struct SuiteRecord {
    /// The name and the version of the form.
    pub schema: &'static str,
    /// The moment at which it ended.
    pub date: String,
    /// The commit of the working folder.
    pub commit: Option<String>,
    /// The machine it ran on.
    pub machine: Machine,
    /// The cases that ran.
    pub cases: Vec<CaseRecord>,
}

/// The cases that the `text` of a file holds and whose names `is_wanted` takes.
pub fn read_cases(
    file: &Path,
    text: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Case>, Refusal> {
    let shown = file.display();
    let mut cases: Vec<Case> = match serde_json::from_str(text) {
        Ok(cases) => cases,
        Err(error) => refuse!("`{shown}`: {error}"),
    };
    cases.retain(|case| is_wanted(&case.name));
    if cases.is_empty() {
        refuse!("`{shown}`: no case to run");
    }
    Ok(cases)
}

impl Options {
    /// Tells if a part of this name is to run.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only))
    }
}

impl Case {
    /// Its plan, with these contenders of ours.
    pub fn plan(&self, options: &Options, own: Vec<Contender>) -> Result<Plan, Refusal> {
        let Ok(workload) = Workload::from_str(&self.workload, false) else {
            refuse!("case `{}`: `{}` is no workload", self.name, self.workload);
        };
        let size = self.size.as_deref();
        let plan = Plan {
            workload,
            memory_bytes: quantity::parse("memory", &self.memory)?,
            size_bytes: size.map_or(Ok(0), |size| quantity::parse("size", size))?,
            procs: self.procs,
            laps: self.laps,
            seed: 1,
            contents: self.contents,
            rounds: options.rounds.or(self.rounds).unwrap_or(ROUNDS_DEFAULT),
            own,
            rivals: self.against.clone(),
            read_ahead: ReadAhead::Best,
            prepared: None,
            limit: options.limit,
            folder: options.folder.clone(),
        };
        plan.check()
            .map_err(|unfit| Refusal::new(format!("case `{}`: {unfit}", self.name)))?;
        Ok(plan)
    }

    /// The record of what was measured, and of what its claims come to.
    pub fn record(&self, bench: BenchRecord) -> CaseRecord {
        CaseRecord {
            name: self.name.clone(),
            findings: self.claims.iter().map(|one| one.check(&bench)).collect(),
            bench,
        }
    }
}

impl SuiteRecord {
    /// The record of `cases` that ran now, on this machine.
    pub fn new(cases: Vec<CaseRecord>) -> SuiteRecord {
        SuiteRecord {
            schema: "tidemark.suite.v1",
            date: dated::now(),
            commit: dated::commit(),
            machine: dated::machine(),
            cases,
        }
    }
}

impl Claim {
    /// Holds it against what was measured.
    pub fn check(&self, bench: &BenchRecord) -> Finding {
        let ratio = self
            .value(bench, &self.of)
            .zip(self.value(bench, &self.against));
        let ratio = ratio.map(|(of, against)| of / against);
        let measure = match self.measure {
            Measure::ElapsedS => "elapsed time",
            Measure::AccessS => "time after the first touch",
            Measure::PageIns => "page-ins",
        };
        Finding {
            claim: format!("{measure} of {} against {}", self.of, self.against),
            ratio,
            at_most: self.at_most,
            // What could not be measured is not shown.
            holds: ratio.is_some_and(|ratio| ratio <= self.at_most),
        }
    }

    fn value(&self, bench: &BenchRecord, name: &str) -> Option<f64> {
        if name == "optimum" {
            return bench.optimal_page_ins.map(|count| count as f64);
        }
        let contender = bench.contender(name)?;
        Some(match self.measure {
            Measure::ElapsedS => contender.elapsed_s,
            Measure::AccessS => contender.access_s,
            Measure::PageIns => contender.page_ins as f64,
        })
    }
}

impl Finding {
    /// Its line for people.
    fn line(&self) -> String {
        let verdict = if self.holds { "holds" } else { "FAILS" };
        let ratio = self
            .ratio
            .map_or("not measured".to_owned(), |ratio| format!("{ratio:.3}"));
        format!(
            "{verdict}: {}: {ratio}, at most {:.3}\n",
            self.claim, self.at_most
        )
    }
}

/// One line for each finding.
pub fn lines(findings: &[Finding]) -> String {
    findings.iter().map(Finding::line).collect()
}

fn one() -> u32 {
    1
}
