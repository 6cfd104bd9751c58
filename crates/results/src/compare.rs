//! Comparisons: what a recording foretold of a program in given amounts of memory, and what came
//! of it.
//!
//! A [`CompareRecord`] has a [`Case`] for each policy and size of memory, policies first. Counts
//! are of pages of [`CompareRecord::page_bytes`] unless they are called requests.

use serde::{Deserialize, Serialize};
use tidemark_core::counters::Counter;

use crate::analysis::{from_json, to_json};
use crate::record::Statistics;
use crate::replay::Run;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.compare.v1";

/// The findings of `tidemark compare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// References on record, to memory that is managed.
    pub records: u64,
    /// The pages of managed memory that the program uses, those of each process counted apart.
    pub footprint_pages: u64,
    /// The processes on record.
    pub processes: u64,
    /// The disk that the prediction assumes.
    pub disk: String,
    /// The store of pages that leave: `compressed+file` or `file`, as older records have it.
    #[serde(default = "store_before")]
    pub store: String,
    /// The time of an instruction in the prediction, in picoseconds; 0 in older records.
    #[serde(default)]
    pub instruction_ps: u64,
    /// True if lab and live were in step: see `docs/decisions/0046-lab-and-live-in-step.md`.
    pub is_in_step: bool,
    /// The cases.
    pub cases: Vec<Case>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

/// The store of records that do not tell.
fn store_before() -> String {
    "file".into()
}

/// A policy in one size of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The policy.
    pub policy: String,
    /// The size of memory.
    pub memory_bytes: u64,
    /// The fewest page-ins any policy could have had, a page at a time.
    pub optimal_page_ins: u64,
    /// The counts that the lab predicts: of several replays the one in the middle by page-ins.
    pub predicted: Counts,
    /// The counts of each replay, by page-ins. Each has a disk with delays of its own.
    #[serde(default)]
    pub predictions: Vec<Counts>,
    /// The counts of live runs, in their order.
    pub live: Vec<Counts>,
    /// The comparison of the decisions of the two, where they were in step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// The comparison of what load control decided, in the first replay and the first live run,
    /// if it did anything in either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspensions: Option<Decisions>,
}

macro_rules! define_counts {
    ($($name:ident $variant:ident $label:literal)*) => {
        /// The paging counts of one run. Counters are those of the record of a run.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counts {
            $(#[doc = concat!("The counter `", stringify!($name), "`.")] pub $name: u64,)*
            /// The most memory that was resident of what is managed.
            pub peak_bytes: u64,
            /// From start to end, in seconds.
            pub elapsed_s: f64,
        }

        /// Everything there is to compare, in the order of a table.
        pub const ROWS: &[Row] = &[
            $(($label, |counts| counts.$name as f64),)*
            ("peak resident", |counts| counts.peak_bytes as f64),
            ("elapsed", |counts| counts.elapsed_s),
        ];

        impl Counts {
            fn new(
                count: impl Fn(Counter) -> Option<u64>,
                peak_bytes: u64,
                elapsed_s: f64,
            ) -> Counts {
                $(const {
                    assert!(Counter::$variant.run_name().is_some());
                    assert!(Counter::$variant.replay_name().is_some());
                })*
                Counts {
                    $($name: count(Counter::$variant).unwrap_or(0),)*
                    peak_bytes,
                    elapsed_s,
                }
            }
        }
    };
}

// The counters that are compared, by what they are called in a table, in its order. They stand in
// the records of runs and of replays.
define_counts! {
    page_ins PageIns "page-ins"
    page_in_requests PageInRequests "page-in requests"
    decompressed_pages DecompressedPages "decompressed"
    bytes_read BytesRead "read from disk"
    bytes_written BytesWritten "written to disk"
    page_outs PageOuts "page-outs"
    page_out_requests PageOutRequests "page-out requests"
    soft_faults SoftFaults "soft faults"
    zero_fills ZeroFills "zero fills"
    read_ahead ReadAhead "read ahead"
    read_ahead_used ReadAheadUsed "read ahead, used"
    read_ahead_wasted ReadAheadWasted "read ahead, unused"
    read_ahead_unknown ReadAheadUnknown "read ahead, not known"
    clean_drops CleanDrops "clean drops"
}

/// Two logs of decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The number of decisions that the lab took.
    pub predicted: u64,
    /// The number taken live.
    pub live: u64,
    /// The first difference; `None`: nowhere.
    pub first_difference: Option<Difference>,
}

/// A difference of two logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The line, counted from 1.
    pub line: u64,
    /// The lines before it, which are the same.
    pub before: Vec<String>,
    /// The lab's line and those that follow.
    pub predicted: Vec<String>,
    /// The live run's.
    pub live: Vec<String>,
}

/// A row of a comparison: its name, and its field of [`Counts`].
pub type Row = (&'static str, fn(&Counts) -> f64);

impl CompareRecord {
    /// The record as JSON, on one line.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn from_json(text: &str) -> Result<CompareRecord, String> {
        from_json(text, SCHEMA)
    }
}

impl Case {
    /// The median of what live runs came to. Of an even number, the lower of the two in the
    /// middle. Zero if there was none.
    pub fn median(&self, part: fn(&Counts) -> f64) -> f64 {
        let mut all: Vec<f64> = self.live.iter().map(part).collect();
        all.sort_by(f64::total_cmp);
        let middle = all.len().saturating_sub(1) / 2;
        all.get(middle).copied().unwrap_or(0.0)
    }

    /// The least and the most that live runs came to.
    pub fn spread(&self, part: fn(&Counts) -> f64) -> (f64, f64) {
        let all = self.live.iter().map(part);
        all.fold((f64::INFINITY, 0.0), |(least, most), value| {
            (value.min(least), value.max(most))
        })
    }

    /// The distance of the prediction from the median, as a share of that; `None` where that is
    /// nothing and the prediction something.
    pub fn difference(&self, part: fn(&Counts) -> f64) -> Option<f64> {
        let (predicted, live) = (part(&self.predicted), self.median(part));
        match (predicted == live, live == 0.0) {
            (true, _) => Some(0.0),
            (false, true) => None,
            (false, false) => Some((predicted - live) / live),
        }
    }
}

impl Counts {
    /// Of a replay, with pages of `page_bytes`.
    pub fn of_replay(run: &Run, page_bytes: u64) -> Counts {
        let count = |counter| run.get(counter);
        let mut counts = Counts::new(count, run.frames_peak * page_bytes, run.elapsed_s);
        // A live engine's store reads mapped files, too.
        counts.bytes_read += count(Counter::FileIns).unwrap_or(0) * page_bytes;
        counts
    }

    /// Of a live run, all its processes together, of which at most `memory_bytes` were resident.
    pub fn of_live(total: &Statistics, frames_peak: u64, page_bytes: u64) -> Counts {
        let count = |counter| total.get(counter);
        Counts::new(count, frames_peak * page_bytes, total.elapsed_s)
    }
}

impl Decisions {
    /// The number of lines of context that a difference has on either side.
    pub const CONTEXT: usize = 5;

    /// Compares two logs, a decision a line.
    pub fn of_logs(predicted: &str, live: &str) -> Decisions {
        let (lab, fact): (Vec<&str>, Vec<&str>) =
            (predicted.lines().collect(), live.lines().collect());
        let shared = lab
            .iter()
            .zip(&fact)
            .take_while(|(one, other)| one == other);
        let at = shared.count();
        let part = |lines: &[&str], from: usize, to: usize| {
            let to = to.min(lines.len());
            let part = lines.get(from.min(to)..to).unwrap_or_default();
            part.iter().map(|line| (*line).to_owned()).collect()
        };
        let is_same = at == lab.len() && at == fact.len();
        let context = Decisions::CONTEXT;
        let difference = Difference {
            line: at as u64 + 1,
            before: part(&lab, at.saturating_sub(context), at),
            predicted: part(&lab, at, at + context),
            live: part(&fact, at, at + context),
        };
        Decisions {
            predicted: lab.len() as u64,
            live: fact.len() as u64,
            first_difference: (!is_same).then_some(difference),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(predicted: u64, live: &[u64]) -> Case {
        let counts = |page_ins| Counts {
            page_ins,
            ..Counts::default()
        };
        Case {
            policy: "clock".into(),
            memory_bytes: 1 << 20,
            optimal_page_ins: 1,
            predicted: counts(predicted),
            predictions: vec![counts(predicted)],
            live: live.iter().map(|&page_ins| counts(page_ins)).collect(),
            decisions: None,
            suspensions: None,
        }
    }

    #[test]
    fn a_prediction_is_set_beside_the_median() {
        let page_ins = ROWS[0].1;
        let case_of_three = case(95, &[100, 400, 90]);
        assert_eq!(case_of_three.median(page_ins), 100.0);
        assert_eq!(case_of_three.spread(page_ins), (90.0, 400.0));
        assert_eq!(case_of_three.difference(page_ins), Some(-0.05));
        assert_eq!(case(0, &[0]).difference(page_ins), Some(0.0));
        assert_eq!(case(1, &[0]).difference(page_ins), None);
        assert_eq!(case(1, &[3, 1]).median(page_ins), 1.0);
    }

    #[test]
    fn logs_are_the_same_or_part_at_a_line() {
        let same = Decisions::of_logs("a\nb\n", "a\nb\n");
        assert_eq!((same.predicted, same.live), (2, 2));
        assert_eq!(same.first_difference, None);
        let parted = Decisions::of_logs("a\nb\nc\n", "a\nb\n").first_difference;
        let parted = parted.expect("one goes on");
        assert_eq!((parted.line, parted.before.len()), (3, 2));
        assert_eq!(
            (parted.predicted, parted.live),
            (vec!["c".to_owned()], vec![])
        );
        let first = Decisions::of_logs("x", "y").first_difference;
        assert_eq!(first.expect("nothing is shared").line, 1);
    }

    #[test]
    fn a_record_survives_its_text() {
        let record = CompareRecord {
            schema: SCHEMA.into(),
            tidemark: "0".into(),
            command: vec!["sort".into()],
            page_bytes: 4096,
            records: 5,
            footprint_pages: 3,
            processes: 1,
            disk: "ssd".into(),
            store: "compressed+file".into(),
            instruction_ps: 284,
            is_in_step: true,
            cases: vec![case(1, &[1])],
            notes: vec![],
        };
        let text = record.to_json();
        assert_eq!(CompareRecord::from_json(&text), Ok(record));
        assert!(CompareRecord::from_json(&text.replace("compare.v1", "x")).is_err());
    }
}
