//! Experiments: published measurements made again, and how ours compare.
//!
//! An [`ExperimentRecord`] has [`Measurement`]s, each a set of named numbers of one run, and
//! [`Finding`]s: claims with what was published, what was found, and a [`Verdict`] by one rule for
//! all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::{csv_field, csv_option, from_json, to_json};
use crate::dated::Machine;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.experiments.v1";

/// The findings of `tidemark experiment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentsRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The date on which it began: `2026-11-21T07:30Z`.
    pub date: String,
    /// The commit of the working folder, where it is one.
    pub commit: Option<String>,
    /// The machine on which it ran.
    pub machine: Machine,
    /// `quick` or `full`.
    pub mode: String,
    /// The experiments, in the order they were asked for.
    pub experiments: Vec<ExperimentRecord>,
    /// The experiments that could not be made here.
    pub left_out: Vec<LeftOut>,
}

/// An experiment that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The reason, and the remedy.
    pub reason: String,
}

/// One experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Its name on the command line.
    pub name: String,
    /// The title, in a line.
    pub title: String,
    /// The publication of the measurement.
    pub source: String,
    /// The published claim.
    pub claimed: String,
    /// The differences from the published experiment.
    pub differs: Vec<String>,
    /// The programs that ran.
    pub programs: Vec<ProgramFacts>,
    /// The machine on which it ran, in words.
    pub machine: String,
    /// The memory in use at one time at most, where there is enough of it, in bytes.
    pub peak_bytes: u64,
    /// The measurements.
    pub measurements: Vec<Measurement>,
    /// The claims, and the findings.
    pub findings: Vec<Finding>,
    /// The pictures drawn of the measurements.
    pub pictures: Vec<PictureOrder>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
    /// The time it took here, in seconds of real time.
    pub took_s: f64,
}

/// A program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// The experiment's name for it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// References on record.
    pub records: u64,
    /// Pages used, those of each process counted apart.
    pub pages: u64,
    /// Its processes.
    pub processes: u64,
    /// The version of the tool and the way it was recorded.
    pub source: String,
}

/// The numbers of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The claims' name for the run.
    pub run: String,
    /// The size of memory as the experiment names it.
    pub memory: String,
    /// The size of memory in bytes.
    pub memory_bytes: u64,
    /// The number of copies, as a multiple of those that the experiment names.
    pub times: u32,
    /// The way it ended.
    pub ending: Ending,
    /// The numbers by name. Those of a run that did not come to its end are of what it did until
    /// then.
    pub metrics: BTreeMap<String, f64>,
}

/// The way a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Every program came to its end.
    #[default]
    Complete,
    /// The run was given up at its limit of simulated time.
    GivenUp,
    /// No program could go on.
    Stuck,
    /// Processes were ended because memory could not serve them.
    Killed,
}

/// A claim, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The claim, in a line.
    pub claim: String,
    /// `strong`, `weak` or `qualitative`.
    pub strength: String,
    /// By which rule the two are compared.
    pub form: Form,
    /// The metric compared, of each run.
    pub metric: String,
    /// The number that was published: a ratio, a value, a slope or a bound. Of [`Form::Equal`] the
    /// factor within which it holds.
    pub published: Option<f64>,
    /// The number that was found in its place; none where there is nothing to divide by.
    pub ours: Option<f64>,
    /// The direction in which the number may be off, since a run did not come to its end.
    pub bound: Bound,
    /// The measured values, in the order of the claim.
    pub values: Vec<Value>,
    /// The comparison.
    pub verdict: Verdict,
    /// The reason that was found.
    pub reason: Option<String>,
}

/// By which rule a claim is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One value over another.
    #[default]
    Ratio,
    /// Values that rise.
    Order,
    /// Two values that are the same, but for a factor.
    Equal,
    /// A value, but for a factor.
    Value,
    /// The exponent by which values follow the size of memory.
    Slope,
    /// A value, or the ratio of two values, that is at most the published one.
    AtMost,
    /// A value, or the ratio of two values, that is at least the published one.
    AtLeast,
    /// A run that does not come to its end.
    Unfinished,
}

impl Form {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Form::Ratio => "ratio",
            Form::Order => "order",
            Form::Equal => "equal",
            Form::Value => "value",
            Form::Slope => "slope",
            Form::AtMost => "at-most",
            Form::AtLeast => "at-least",
            Form::Unfinished => "unfinished",
        }
    }
}

/// The direction in which a number may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The number is exact.
    #[default]
    Exact,
    /// The number would be more, had the run come to its end.
    AtLeast,
    /// The number would be less, had the run come to its end.
    AtMost,
}

/// One measured value of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The run, and where in it, in words.
    pub of: String,
    /// The value; none where the run has none.
    pub value: Option<f64>,
    /// The way the run ended.
    pub ending: Ending,
}

/// The way a finding compares with its claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The direction is that of the claim, and so is the size, but for a factor of 3.2 at most.
    Reproduced,
    /// The direction is that of the claim, or most of an order.
    Partly,
    /// Neither.
    Not,
    /// The finding could not be computed.
    #[default]
    Unknown,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Partly => "partly",
            Verdict::Not => "not reproduced",
            Verdict::Unknown => "not measured",
        }
    }
}

/// A picture to be drawn of measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureOrder {
    /// The title of the picture.
    pub title: String,
    /// The metric that stands upwards.
    pub metric: String,
    /// The horizontal axis: `runs`, `memory` or `times`.
    pub across: String,
    /// The runs shown; all if none is named.
    pub runs: Vec<String>,
}

impl ExperimentsRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<ExperimentsRecord, String> {
        from_json(text, SCHEMA)
    }

    /// The findings of all experiments, a line each.
    pub fn to_csv(&self) -> String {
        let mut text =
            String::from("experiment,claim,strength,form,metric,published,ours,verdict\n");
        for experiment in &self.experiments {
            for finding in &experiment.findings {
                let words = [&experiment.name, &finding.claim, &finding.strength];
                text.push_str(&format!(
                    "{},{},{},{},{},{}\n",
                    words.map(|word| csv_field(word)).join(","),
                    finding.form.word(),
                    csv_field(&finding.metric),
                    csv_option(finding.published),
                    csv_option(finding.ours),
                    finding.verdict.word(),
                ));
            }
        }
        text
    }
}

impl ExperimentRecord {
    /// The number of findings that have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let findings = self.findings.iter();
        findings.filter(|found| found.verdict == verdict).count()
    }

    /// The runs, in the order they stand in.
    pub fn runs(&self) -> Vec<&str> {
        let mut runs: Vec<&str> = vec![];
        for measurement in &self.measurements {
            if !runs.contains(&measurement.run.as_str()) {
                runs.push(&measurement.run);
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_a_line_has_every_column() {
        let finding = Finding {
            claim: "page-ins, one over the other".into(),
            published: Some(12.37),
            verdict: Verdict::Partly,
            ..Finding::default()
        };
        let record = ExperimentsRecord {
            schema: SCHEMA.into(),
            tidemark: "0.1.0".into(),
            date: "2026-11-21T07:30Z".into(),
            commit: None,
            machine: Machine::default(),
            mode: "quick".into(),
            experiments: vec![ExperimentRecord {
                name: "x".into(),
                findings: vec![finding],
                measurements: vec![Measurement {
                    metrics: [("page_ins".into(), 7.0)].into(),
                    ..Measurement::default()
                }],
                ..ExperimentRecord::default()
            }],
            left_out: vec![],
        };
        assert_eq!(
            record.to_csv().lines().last(),
            Some("x,\"page-ins, one over the other\",,ratio,,12.37,,partly")
        );
        assert_eq!(ExperimentsRecord::from_json(&record.to_json()), Ok(record));
    }
}
