//! Suites: benchmarks as data, and claims about them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tidemark_results::{Refusal, refuse};

use crate::contender::Rival;
use crate::record::BenchRecord;

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
    /// The number of runs of each contender.
    pub rounds: Option<u32>,
    /// The contenders that are not ours.
    #[serde(default)]
    pub against: Vec<Rival>,
    /// Our policies.
    #[serde(default)]
    pub policy: Vec<String>,
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

/// The cases that the `text` of a file holds and whose names `is_wanted` takes.
pub fn read_cases(
    file: &Path,
    text: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Case>, Refusal> {
    let shown = file.display();
    let mut cases: Vec<Case> = match serde_json::from_str(text) {
        Ok(cases) => cases,
        Err(error) => refuse!("`--suite {shown}`: {error}"),
    };
    cases.retain(|case| is_wanted(&case.name));
    if cases.is_empty() {
        refuse!("`--suite {shown}`: no case to run");
    }
    Ok(cases)
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

fn one() -> u32 {
    1
}
