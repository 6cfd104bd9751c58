//! Differences: two versions of a program, or two runs, side by side.
//!
//! Each side is a [`Portrait`]: its amounts, its regions and its curves. Traces are portrayed by
//! the lab, [records] here. A [`DiffRecord`] matches the two: amounts by group, name and
//! place, regions by [what they hold](regions), processes by [what they run](processes).

mod processes;
pub mod records;
mod regions;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::analysis::curve::Point;
use crate::analysis::{TimeUnit, TraceFacts, csv_field, csv_option, from_json, is_false, to_json};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.diff.v1";

/// The findings of `tidemark diff`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiffRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The kind of both inputs.
    pub kind: Kind,
    /// The first input.
    pub before: Subject,
    /// The second input.
    pub after: Subject,
    /// The amounts, in groups.
    pub measures: Vec<Measure>,
    /// The sizes of memory of the misses of regions, in pages.
    pub sizes: Vec<u64>,
    /// The regions: those whose touched pages differ most come first.
    pub regions: Vec<RegionChange>,
    /// The processes, where an input has several: those whose touched pages differ most come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessChange>,
    /// Misses by memory of both sides, for pictures.
    pub curves: Vec<CurvePair>,
    /// The bound that was given, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

/// The kind of thing that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Traces.
    Trace,
    /// Records of `tidemark curve`.
    Curve,
    /// Statistics of `tidemark run`.
    Run,
    /// Records of `tidemark bench`.
    Bench,
}

/// An input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The name of its file.
    pub file: String,
    /// The program and its arguments, or what else it is of.
    pub title: String,
    /// The facts about the trace, where it is one or was made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceFacts>,
}

/// The group of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Memory that was used.
    Memory,
    /// References on record.
    References,
    /// Virtual or real time.
    Time,
    /// The working set; the place is a window.
    WorkingSet,
    /// Misses, by policy; the place is a size of memory in pages.
    Misses,
    /// Phases of the level that tells most of the program.
    Phases,
    /// Memory needed, by policy; the place is a slow-down in percent.
    Needs,
    /// Counters of a run.
    Counts,
    /// Results of the contenders of a benchmark.
    Contenders,
}

/// The unit of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Pages.
    Pages,
    /// Bytes.
    Bytes,
    /// Things that are counted.
    Count,
    /// Virtual time in instructions.
    Instructions,
    /// Virtual time in references.
    References,
    /// Virtual time in nanoseconds.
    Nanoseconds,
    /// Real time in seconds.
    Seconds,
    /// A part of a whole, from 0 to 1.
    Share,
}

/// An amount on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Its group.
    pub group: Group,
    /// Its name in the group.
    pub name: String,
    /// Its place: a window, a size, a slow-down; absent where the group has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Its unit.
    pub unit: Unit,
    /// The amount in the first input; null where that has none.
    pub before: Option<f64>,
    /// The amount in the second.
    pub after: Option<f64>,
    /// True if it differs by more than the threshold.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_beyond: bool,
}

/// A region on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionChange {
    /// Its name: that of the second input, or of the first where it is gone.
    pub name: String,
    /// Its use in the first input; null where it is new.
    pub before: Option<RegionUse>,
    /// Its use in the second; null where it is gone.
    pub after: Option<RegionUse>,
    /// True if its pages differ by more than the threshold, as a share of all pages before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_beyond: bool,
}

/// The use that a program makes of what has one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionUse {
    /// A file's path, `[heap]`, `[stack]`, `anonymous`, or `unnamed` where the trace says nothing.
    pub label: String,
    /// True if it is the file of the program itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_program: bool,
    /// Pages touched. A page counts where it was touched first, so that all regions add up.
    pub pages: u64,
    /// References on record.
    pub references: u64,
    /// Misses under LRU, of the whole program in each of the sizes: first touches included.
    pub misses: Vec<u64>,
}

/// A process on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessChange {
    /// The program that it runs, without folders: that of the second input, or of the first where
    /// it is gone.
    pub name: String,
    /// Its number among the processes of that name on its side, from 1.
    pub nth: u32,
    /// Its use of memory in the first input; null where it is new.
    pub before: Option<ProcessUse>,
    /// Its use in the second; null where it is gone.
    pub after: Option<ProcessUse>,
    /// True if its pages differ by more than the threshold, as a share of all pages before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_beyond: bool,
}

/// The use that a process makes of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Its number in the trace.
    pub process: u32,
    /// Its number in the system, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The last program that it ran; empty where the trace tells none.
    pub program: String,
    /// Pages touched, those included that other processes touch, too.
    pub pages: u64,
    /// References on record.
    pub references: u64,
    /// Its virtual time.
    pub time: u64,
    /// Misses of its references under LRU, with all processes together in each of the sizes.
    pub misses: Vec<u64>,
}

/// One policy's misses by memory on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePair {
    /// The policy's name on the command line.
    pub policy: String,
    /// The points of the first input.
    pub before: Vec<Point>,
    /// The points of the second.
    pub after: Vec<Point>,
}

/// The difference from which `tidemark diff` ends with status 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The most that an amount may differ, in percent of what it was before.
    pub percent: f64,
    /// True if only what grew counts.
    pub is_of_growth: bool,
}

/// One input, portrayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portrait {
    /// The input.
    pub subject: Subject,
    /// Its amounts, in order of their groups.
    pub amounts: Vec<Amount>,
    /// The sizes of memory of the misses of its regions, in pages.
    pub sizes: Vec<u64>,
    /// Its regions.
    pub regions: Vec<RegionUse>,
    /// Its processes, in the order of the trace.
    pub processes: Vec<ProcessUse>,
    /// Its misses by memory: policy and points.
    pub curves: Vec<(String, Vec<Point>)>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// An amount of one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// Its group.
    pub group: Group,
    /// Its name in the group.
    pub name: String,
    /// Its place, where the group has places.
    pub at: Option<u64>,
    /// Its unit.
    pub unit: Unit,
    /// The amount itself.
    pub value: f64,
}

impl Amount {
    /// The amount `value` of that group and name, at its place where the group has places.
    pub fn new(group: Group, name: &str, at: Option<u64>, unit: Unit, value: f64) -> Amount {
        Amount {
            group,
            name: name.into(),
            at,
            unit,
            value,
        }
    }
}

impl DiffRecord {
    /// The differences of two inputs of one kind.
    pub fn new(
        tidemark: &str,
        kind: Kind,
        before: Portrait,
        after: Portrait,
        threshold: Option<Threshold>,
    ) -> DiffRecord {
        let mut notes = before.notes;
        notes.extend(after.notes);
        notes.dedup();
        let mut record = DiffRecord {
            schema: SCHEMA.into(),
            tidemark: tidemark.into(),
            kind,
            before: before.subject,
            after: after.subject,
            measures: paired(&before.amounts, &after.amounts),
            sizes: after.sizes,
            regions: regions::matched(before.regions, after.regions),
            processes: processes::matched(before.processes, after.processes),
            curves: curves(before.curves, after.curves),
            threshold,
            notes,
        };
        if let Some(threshold) = threshold {
            record.judge(threshold);
        }
        record
    }

    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<DiffRecord, String> {
        from_json(text, SCHEMA)
    }

    /// All amounts, a line each, and behind them those of regions and of processes.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("group,name,at,unit,before,after,difference_percent\n");
        let mut line = |group: &str, name: &str, at: Option<u64>, unit: &str, both: Both| {
            text.push_str(&format!(
                "{group},{},{},{unit},{},{},{}\n",
                csv_field(name),
                csv_option(at),
                csv_option(both.0),
                csv_option(both.1),
                csv_option(difference(both).map(|share| share * 100.0)),
            ));
        };
        for measure in &self.measures {
            let (group, unit) = (word(&measure.group), word(&measure.unit));
            let both = (measure.before, measure.after);
            line(&group, &measure.name, measure.at, &unit, both);
        }
        for region in &self.regions {
            let both = |of: fn(&RegionUse) -> u64| region.both(of);
            let name = &region.name;
            line("region", name, None, "pages", both(|it| it.pages));
            line("region", name, None, "references", both(|it| it.references));
            for (place, size) in self.sizes.iter().enumerate() {
                let both = region.both(|it| it.misses.get(place).copied().unwrap_or(0));
                line("region", name, Some(*size), "misses", both);
            }
        }
        let time = self
            .after
            .trace
            .as_ref()
            .map(|trace| Unit::from(trace.time_unit));
        for process in &self.processes {
            let both = |of: fn(&ProcessUse) -> u64| process.both(of);
            let name = &process.label(self);
            line("process", name, None, "pages", both(|it| it.pages));
            line(
                "process",
                name,
                None,
                "references",
                both(|it| it.references),
            );
            // Where time counts references it tells no more than they do.
            if let Some(unit) = time.filter(|unit| *unit != Unit::References) {
                line("process", name, None, &word(&unit), both(|it| it.time));
            }
            for (place, size) in self.sizes.iter().enumerate() {
                let both = process.both(|it| it.misses.get(place).copied().unwrap_or(0));
                line("process", name, Some(*size), "misses", both);
            }
        }
        text
    }

    /// True if anything differs by more than the threshold.
    pub fn is_beyond(&self) -> bool {
        let regions = self.regions.iter().any(|region| region.is_beyond);
        let processes = self.processes.iter().any(|process| process.is_beyond);
        regions || processes || self.measures.iter().any(|measure| measure.is_beyond)
    }

    /// The size of a page, where the inputs have one.
    pub fn page_bytes(&self) -> u64 {
        let trace = self.after.trace.as_ref();
        trace.map_or(crate::record::PAGE_BYTES, |trace| trace.page_bytes)
    }

    fn judge(&mut self, threshold: Threshold) {
        for measure in &mut self.measures {
            let both = (measure.before, measure.after);
            measure.is_beyond = measure.is_judged() && threshold.is_beyond(both, both.0);
        }
        let whole: u64 = self.regions.iter().filter_map(RegionChange::before).sum();
        let is_beyond = |(before, after): (u64, u64)| {
            let both = (Some(before as f64), Some(after as f64));
            threshold.is_beyond(both, Some(whole as f64))
        };
        for region in &mut self.regions {
            region.is_beyond = is_beyond(region.pages());
        }
        for process in &mut self.processes {
            process.is_beyond = is_beyond(process.pages());
        }
    }
}

impl Portrait {
    /// Leaves out misses in memory of other sizes than these, which are among its own.
    pub fn keep_sizes(&mut self, sizes: &[u64]) {
        let is_kept = |size: &u64| sizes.contains(size);
        let misses = |amount: &Amount| amount.group == Group::Misses;
        self.amounts
            .retain(|amount| !misses(amount) || amount.at.as_ref().is_none_or(is_kept));
        let regions = self.regions.iter_mut().map(|it| &mut it.misses);
        let processes = self.processes.iter_mut().map(|it| &mut it.misses);
        for misses in regions.chain(processes) {
            let mut own = self.sizes.iter();
            misses.retain(|_| own.next().is_some_and(is_kept));
        }
        self.sizes.retain(is_kept);
    }
}

/// An amount before and after.
type Both = (Option<f64>, Option<f64>);

impl Measure {
    /// The difference as a share of what was before; `None` where that is nothing, or one side has
    /// no such amount.
    pub fn difference(&self) -> Option<f64> {
        difference((self.before, self.after))
    }

    /// Returns true if more of it is dearer, so that a threshold holds for it. Phases describe a
    /// program, and are not judged.
    pub fn is_judged(&self) -> bool {
        self.group != Group::Phases
    }
}

impl RegionChange {
    /// The pages touched before and after; 0 where the region was not there.
    pub fn pages(&self) -> (u64, u64) {
        pages(self.both(|it| it.pages))
    }

    /// An amount of the region on both sides; none where the region was not there.
    pub fn both(&self, of: impl Fn(&RegionUse) -> u64) -> (Option<f64>, Option<f64>) {
        both([&self.before, &self.after], of)
    }

    fn before(&self) -> Option<u64> {
        self.before.as_ref().map(|it| it.pages)
    }
}

impl ProcessChange {
    /// The pages touched before and after; 0 where the process was not there.
    pub fn pages(&self) -> (u64, u64) {
        pages(self.both(|it| it.pages))
    }

    /// An amount of the process on both sides; none where the process was not there.
    pub fn both(&self, of: impl Fn(&ProcessUse) -> u64) -> (Option<f64>, Option<f64>) {
        both([&self.before, &self.after], of)
    }

    /// Its name, with its number where there are several of that name in `record`.
    pub fn label(&self, record: &DiffRecord) -> String {
        let is_alike = |it: &&ProcessChange| it.name == self.name;
        match record.processes.iter().filter(is_alike).count() {
            0 | 1 => self.name.clone(),
            _ => format!("{} #{}", self.name, self.nth),
        }
    }
}

/// An amount on both sides, none where a side has no such part.
fn both<U>(sides: [&Option<U>; 2], of: impl Fn(&U) -> u64) -> Both {
    let [before, after] = sides.map(|side| side.as_ref().map(|it| of(it) as f64));
    (before, after)
}

/// Pages on both sides, 0 where a side has no such part.
fn pages((before, after): Both) -> (u64, u64) {
    let pages = |side: Option<f64>| side.unwrap_or(0.0) as u64;
    (pages(before), pages(after))
}

/// The order of parts: those whose pages differ most come first, and of them those whose references
/// do.
fn order(pages: (u64, u64), references: Both) -> Reverse<(u64, u64)> {
    let moved = references.1.unwrap_or(0.0) - references.0.unwrap_or(0.0);
    Reverse((pages.0.abs_diff(pages.1), moved.abs() as u64))
}

impl Threshold {
    /// True if the two differ by more than the bound's share of `whole`. What is on one side alone
    /// is not judged.
    fn is_beyond(self, both: Both, whole: Option<f64>) -> bool {
        let ((Some(before), Some(after)), Some(whole)) = (both, whole) else {
            return false;
        };
        let grown = after - before;
        let differs = match self.is_of_growth {
            true => grown.max(0.0),
            false => grown.abs(),
        };
        differs > whole.abs() * self.percent / 100.0
    }
}

impl From<TimeUnit> for Unit {
    fn from(unit: TimeUnit) -> Unit {
        match unit {
            TimeUnit::Instructions => Unit::Instructions,
            TimeUnit::References => Unit::References,
            TimeUnit::Nanoseconds => Unit::Nanoseconds,
        }
    }
}

/// The difference as a share of what was before; `None` where there is no such share.
pub fn difference((before, after): (Option<f64>, Option<f64>)) -> Option<f64> {
    let (before, after) = (before?, after?);
    match before == after {
        true => Some(0.0),
        false => (before != 0.0).then(|| (after - before) / before),
    }
}

/// The amounts of both sides, by group, name and place: in the order of the first side, each group
/// followed by what the second has besides.
fn paired(before: &[Amount], after: &[Amount]) -> Vec<Measure> {
    let key = |amount: &Amount| (amount.group, amount.name.clone(), amount.at);
    let find = |side: &[Amount], wanted: &Amount| {
        let found = side.iter().find(|amount| key(amount) == key(wanted));
        found.map(|amount| amount.value)
    };
    let others = after.iter().filter(|one| find(before, one).is_none());
    let measures = before.iter().chain(others).map(|amount| Measure {
        group: amount.group,
        name: amount.name.clone(),
        at: amount.at,
        unit: amount.unit,
        before: find(before, amount),
        after: find(after, amount),
        is_beyond: false,
    });
    let mut measures: Vec<Measure> = measures.collect();
    measures.sort_by_key(|measure| measure.group);
    measures
}

/// The curves of policies that both sides have.
fn curves(
    before: Vec<(String, Vec<Point>)>,
    mut after: Vec<(String, Vec<Point>)>,
) -> Vec<CurvePair> {
    let pair = |(policy, before): (String, Vec<Point>)| {
        let place = after.iter().position(|(other, _)| *other == policy)?;
        let after = after.swap_remove(place).1;
        Some(CurvePair {
            policy,
            before,
            after,
        })
    };
    before.into_iter().filter_map(pair).collect()
}

/// The word that stands for a value in JSON.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a word can be written");
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
