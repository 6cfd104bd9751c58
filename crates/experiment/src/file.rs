//! The files experiments are written in: `docs/formats/experiment-file-v1.md` has every key.
//!
//! Here a text becomes a [`File`], or a line that says where it is wrong. [`plan`](crate::plan)
//! looks up the names in it.

mod locks;

use std::collections::BTreeMap;

use serde::Deserialize;
use tidemark_results::experiment::Form;

pub use locks::{Locks, RunLocks};

/// An experiment as it is written down.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The title, in a line.
    pub title: String,
    /// The publication of the measurement.
    pub source: String,
    /// The published claim.
    pub claimed: String,
    /// The differences from the published experiment.
    #[serde(default)]
    pub differs: Vec<String>,
    /// The kind of measurement.
    #[serde(default)]
    pub kind: Kind,
    /// The machine on which the programs run.
    #[serde(default)]
    pub machine: Machine,
    /// Sizes of memory.
    #[serde(default)]
    pub memory: Vec<String>,
    /// The numbers of copies of each program, as multiples.
    #[serde(default)]
    pub times: Vec<u32>,
    /// The additional measurements of the full mode.
    #[serde(default)]
    pub full: Full,
    /// Of `locks`: what there is to be done, and what steps take.
    #[serde(default)]
    pub locks: Locks,
    /// The sources of traces.
    pub trace: Vec<Trace>,
    /// The programs that run at the same time; one of each trace if none is named.
    #[serde(default)]
    pub program: Vec<Program>,
    /// Systems that are run just as they are, each under its own name.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Runs that need more to be said.
    #[serde(default)]
    pub run: Vec<Run>,
    /// The comparisons with what was published.
    pub claim: Vec<Claim>,
    /// Pictures of the measurements.
    #[serde(default)]
    pub picture: Vec<Picture>,
}

impl File {
    /// The programs that run where a run has none of its own.
    pub fn usual_programs(&self) -> Vec<Program> {
        if !self.program.is_empty() {
            return self.program.clone();
        }
        let each = self.trace.iter().map(|trace| Program {
            trace: trace.name.clone(),
            copies: 1,
            start: 0.0,
            every: 0.0,
            weight: tidemark_lab::world::Program::WEIGHT,
            advice: None,
            own_files: None,
        });
        each.collect()
    }
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Programs on whole memory systems, in the lab's world.
    #[default]
    Replay,
    /// One program's curves, by policy.
    Curves,
    /// Processors that want the same locks.
    Locks,
    /// Programs in limited memory on this machine.
    Live,
}

/// The amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Little: the whole catalogue in minutes.
    Quick,
    /// More: in hours.
    Full,
}

/// The machine on which programs run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// The disk for swap.
    pub disk: String,
    /// The disk for files, if that is another.
    pub file_disk: Option<String>,
    /// The number of processors.
    pub cpus: u32,
    /// The scheduler.
    pub scheduler: String,
    /// Memory programs can't have.
    pub wired: String,
    /// The speed of the machine: `present`, `2002` or `1995`.
    pub year: String,
    /// The simulated time after which a run is given up, in hours.
    pub limit_hours: f64,
    /// The seed of random numbers.
    pub seed: u64,
    /// The number of times that each run is made, each time from the next seed and with a page
    /// less.
    pub repeats: u32,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            disk: "ssd".into(),
            file_disk: None,
            cpus: 1,
            scheduler: "round-robin".into(),
            wired: "0".into(),
            year: "present".into(),
            limit_hours: 6.0,
            seed: 1,
            repeats: 1,
        }
    }
}

/// The settings of the full mode in place of the quick mode's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Full {
    /// Sizes of memory.
    pub memory: Option<Vec<String>>,
    /// The numbers of copies, as multiples.
    pub times: Option<Vec<u32>>,
    /// The number of times that each run is made.
    pub repeats: Option<u32>,
}

/// The source of a trace: a program that is recorded, or a pattern that is generated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The name in this file.
    pub name: String,
    /// The program to record, and its arguments.
    pub record: Option<Vec<String>>,
    /// The pattern to generate: arguments of `tidemark generate`.
    pub generate: Option<Vec<String>>,
    /// Options of `tidemark record`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Commands that run before it, in the same folder, unrecorded.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// Files of `bench/workloads` that are put into that folder.
    #[serde(default)]
    pub files: Vec<String>,
    /// The environment of all these commands, beside what there is.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The programs that must be installed.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// The full mode's settings in place of this.
    pub full: Option<FullTrace>,
}

/// The full mode's settings in place of a trace's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullTrace {
    /// The program to record.
    pub record: Option<Vec<String>>,
    /// The pattern to generate.
    pub generate: Option<Vec<String>>,
    /// Commands that run before it.
    pub prepare: Option<Vec<Vec<String>>>,
}

/// A program or file that must be there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// A program on the path.
    pub program: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// The Debian package that has it.
    pub package: String,
}

/// A program among those that run at the same time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its trace.
    pub trace: String,
    /// The number of copies.
    #[serde(default = "one")]
    pub copies: u32,
    /// The time at which the first starts, in seconds.
    #[serde(default)]
    pub start: f64,
    /// The time between the starts of copies, in seconds.
    #[serde(default)]
    pub every: f64,
    /// Its share of the processors.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// The advice it gives on its use of memory.
    pub advice: Option<String>,
    /// Files with this in their path are each copy's own.
    pub own_files: Option<String>,
}

/// A run: a system, and what is not as it usually is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The name in claims; the system's name if none is given.
    pub name: Option<String>,
    /// The system. Of curves: the policy. Of locks there is none.
    #[serde(default)]
    pub system: String,
    /// A policy in place of the system's.
    pub policy: Option<String>,
    /// The policy's knobs.
    #[serde(default)]
    pub knobs: BTreeMap<String, u64>,
    /// A load control in place of the system's.
    pub load: Option<String>,
    /// The load control's knobs.
    #[serde(default)]
    pub load_knobs: BTreeMap<String, u64>,
    /// Sizes of requests in place of the system's.
    #[serde(default)]
    pub clusters: Clusters,
    /// Costs in place of the machine's, in nanoseconds.
    #[serde(default)]
    pub costs: BTreeMap<String, u64>,
    /// Sizes of memory in place of the experiment's.
    pub memory: Option<Vec<String>>,
    /// The numbers of copies, as multiples, in place of the experiment's.
    pub times: Option<Vec<u32>>,
    /// Programs in place of the experiment's.
    pub program: Option<Vec<Program>>,
    /// The advice that all programs give on their use of memory.
    pub advice: Option<String>,
    /// Another disk for swap.
    pub disk: Option<String>,
    /// Another disk for files.
    pub file_disk: Option<String>,
    /// Another number of processors.
    pub cpus: Option<u32>,
    /// The number of times it is made, in place of the machine's.
    pub repeats: Option<u32>,
    /// Of `locks`: how a system shares what processors share.
    pub locks: Option<RunLocks>,
}

/// The number of pages that go in one request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clusters {
    /// At most.
    pub most: Option<u32>,
    /// Around a fault that belongs to no stream.
    pub around: Option<u32>,
    /// In front of a sequential reader.
    pub ahead: Option<u32>,
}

/// Something that was published, and what to hold against it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim, in a line.
    pub text: String,
    /// The comparison, and its rule.
    pub kind: Form,
    /// The metric compared, of each run.
    pub metric: String,
    /// Of the divisor, if that is another.
    pub over_metric: Option<String>,
    /// The run that is looked at.
    pub of: Option<String>,
    /// The run it is divided by.
    pub over: Option<String>,
    /// Runs with the metric rising.
    pub order: Option<Vec<String>>,
    /// The size of memory, where there are several.
    pub memory: Option<String>,
    /// The number of copies, as a multiple, where there are several.
    pub times: Option<u32>,
    /// The number that was published.
    pub published: Option<f64>,
    /// For `equal` and `value`: how far from it, as a factor.
    pub within: Option<f64>,
    /// The weight of the evidence.
    #[serde(default)]
    pub strength: Strength,
    /// The reasons for the outcome, for each verdict it may come out with.
    #[serde(default)]
    pub reason: Reasons,
}

/// The weight of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// A ratio that a faithful reproduction shows.
    Strong,
    /// One that depends on the hardware of its day.
    #[default]
    Weak,
    /// An ordering or a shape, without a number.
    Qualitative,
    /// A claim of our own: nothing was published, and it does not count as reproduced.
    Own,
}

/// Reasons by verdict.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    /// The reason why it was reproduced.
    pub reproduced: Option<String>,
    /// The reason why it was reproduced in part.
    pub partly: Option<String>,
    /// The reason why it was not.
    pub not: Option<String>,
}

/// A picture of measurements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The title of the picture.
    pub title: String,
    /// The vertical axis.
    pub metric: String,
    /// The horizontal axis.
    #[serde(default)]
    pub across: Across,
    /// The runs shown; all if none is named.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// The horizontal axis of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// The runs: bars.
    #[default]
    Runs,
    /// The size of memory: lines.
    Memory,
    /// The number of copies, as a multiple: lines.
    Times,
}

/// Reads the text of the file `name`, or says in one line where it is wrong.
pub fn parse(name: &str, text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map_or(String::new(), |line| format!(", line {line}"));
        format!("`{name}`{place}: {}", error.message())
    })
}

fn one() -> u32 {
    1
}

fn usual_weight() -> u32 {
    1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = |text: &str| parse("x.toml", text).unwrap_err();
        let head = "title = \"t\"\nsource = \"S\"\nclaimed = \"c\"\n";
        let rest = "[[trace]]\nname = \"a\"\n[[claim]]\ntext = \"t\"\nmetric = \"page_ins\"\n\
                    kind = \"ratio\"\n";
        assert!(parse("x.toml", &format!("{head}{rest}")).is_ok());
        let kind = rest.replace("ratio", "ratoi");
        for (text, line, word) in [
            (format!("{head}titel = 1\n{rest}"), 4, "titel"),
            (format!("{head}{kind}"), 9, "ratoi"),
            (format!("{head}memory = \"50%\"\n{rest}"), 4, "sequence"),
            (format!("{head}memory = 1 2\n{rest}"), 4, ""),
        ] {
            let told = told(&text);
            let place = format!("`x.toml`, line {line}: ");
            assert!(told.starts_with(&place) && told.contains(word), "{told}");
        }
        assert!(told(head).contains("trace"));
    }
}
