//! The record of one benchmark: what was run, and how each contender did.

use serde::Serialize;

use crate::workload::array::Contents;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.bench.v1";

/// One benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRecord {
    /// The layout: [`SCHEMA`].
    pub schema: &'static str,
    /// The version of the command that wrote the record.
    pub tidemark: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// The memory all processes of a contender had together.
    pub memory_bytes: u64,
    /// The size of each process's array, or of the sort buffer; 0 for `compile`.
    pub size_bytes: u64,
    /// The number of processes that ran at the same time.
    pub procs: u32,
    /// Passes over the array, or accesses as a multiple of its pages; 0 for the real programs.
    pub laps: u32,
    /// The seed of random numbers.
    pub seed: u64,
    /// The contents of the arrays.
    pub contents: Contents,
    /// The number of runs of each contender.
    pub rounds: u32,
    /// The fewest page-ins possible with this memory. First touches don't count: a page-in is a
    /// page read back from the store. Several processes are taken to go in step, page by page.
    pub optimal_page_ins: Option<u64>,
    /// The results of contenders, ours first.
    pub contenders: Vec<ContenderRecord>,
    /// Every read-ahead the kernel's swap ran with.
    pub page_clusters: Vec<PageCluster>,
    /// The contenders that could not run, or did not get to the end.
    pub left_out: Vec<LeftOut>,
}

/// The results of one contender: medians over the rounds unless said otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct ContenderRecord {
    /// The name.
    pub name: String,
    /// The kernel's read-ahead, for the kernel's swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cluster: Option<u32>,
    /// The measured phase as the program saw it: allocation, first touch and all accesses.
    pub elapsed_s: f64,
    /// The shortest round.
    pub elapsed_min_s: f64,
    /// The longest round.
    pub elapsed_max_s: f64,
    /// Of the elapsed time, the part up to the end of the first touch.
    pub fill_s: f64,
    /// The part after it.
    pub access_s: f64,
    /// The elapsed time as a multiple of the first contender's.
    pub ratio: f64,
    /// Pages read from the store, its read-ahead included. First touches are not page-ins.
    pub page_ins: u64,
    /// Pages written to the store.
    pub page_outs: u64,
    /// The fewest page-ins possible; for our own contenders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_page_ins: Option<u64>,
    /// Faults on pages that were in memory; for our own contenders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_faults: Option<u64>,
    /// The most memory the contender held in all: code, page cache, kernel memory and our own
    /// tables included. Known when it ran in a control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Folds all that was read; equal for all contenders.
    pub checksum: String,
    /// The elapsed time of every round.
    pub rounds_s: Vec<f64>,
}

/// The kernel's swap at one read-ahead: medians.
#[derive(Clone, Debug, Serialize)]
pub struct PageCluster {
    /// The logarithm of the pages read together.
    pub page_cluster: u32,
    /// The elapsed time.
    pub elapsed_s: f64,
    /// Pages read from swap.
    pub page_ins: u64,
    /// Pages written to swap.
    pub page_outs: u64,
}

/// A contender that failed in some rounds, or in all: then it has no result.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// The name.
    pub name: String,
    /// In how many rounds.
    pub rounds_failed: u32,
    /// The reason, in one line: the first failure.
    pub reason: String,
}

/// One run of one contender.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// See [`ContenderRecord`].
    pub elapsed_s: f64,
    /// See [`ContenderRecord`].
    pub fill_s: f64,
    /// See [`ContenderRecord`].
    pub page_ins: u64,
    /// See [`ContenderRecord`].
    pub page_outs: u64,
    /// See [`ContenderRecord`].
    pub soft_faults: Option<u64>,
    /// See [`ContenderRecord`].
    pub memory_peak_bytes: Option<u64>,
    /// See [`ContenderRecord`].
    pub checksum: String,
}

impl ContenderRecord {
    /// Sums up `samples`, of which there is at least one. The ratio is left at 1.
    pub fn of_samples(name: String, samples: &[Sample]) -> ContenderRecord {
        let each = |value: fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<f64>>();
        let elapsed = each(|sample| sample.elapsed_s);
        ContenderRecord {
            name,
            page_cluster: None,
            elapsed_s: median(elapsed.clone()),
            elapsed_min_s: elapsed.iter().copied().fold(f64::INFINITY, f64::min),
            elapsed_max_s: elapsed.iter().copied().fold(0.0, f64::max),
            fill_s: median(each(|sample| sample.fill_s)),
            access_s: median(each(|sample| sample.elapsed_s - sample.fill_s)),
            ratio: 1.0,
            page_ins: median(each(|sample| sample.page_ins as f64)).round() as u64,
            page_outs: median(each(|sample| sample.page_outs as f64)).round() as u64,
            optimal_page_ins: None,
            soft_faults: samples[0].soft_faults.map(|_| {
                median(each(|sample| sample.soft_faults.unwrap_or(0) as f64)).round() as u64
            }),
            memory_peak_bytes: samples
                .iter()
                .filter_map(|sample| sample.memory_peak_bytes)
                .max(),
            checksum: samples[0].checksum.clone(),
            rounds_s: elapsed,
        }
    }
}

impl PageCluster {
    /// The setting in `record`, if it is one of the kernel's swap.
    pub fn of(record: &ContenderRecord) -> Option<PageCluster> {
        let page_cluster = record.page_cluster?;
        let &ContenderRecord {
            elapsed_s,
            page_ins,
            page_outs,
            ..
        } = record;
        Some(PageCluster {
            page_cluster,
            elapsed_s,
            page_ins,
            page_outs,
        })
    }
}

impl BenchRecord {
    /// The contender of this name.
    pub fn contender(&self, name: &str) -> Option<&ContenderRecord> {
        self.contenders
            .iter()
            .find(|contender| contender.name == name)
    }

    /// The first contender that read something else than the one before it.
    pub fn find_mismatch(&self) -> Option<(&ContenderRecord, &ContenderRecord)> {
        let pairs = self.contenders.iter().zip(self.contenders.iter().skip(1));
        pairs
            .into_iter()
            .find(|(left, right)| left.checksum != right.checksum)
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median needs a value");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![7.0]), 7.0);
    }

    #[test]
    fn samples_are_summed_up() {
        let sample = |elapsed_s, page_ins| Sample {
            elapsed_s,
            fill_s: 1.0,
            page_ins,
            page_outs: 9,
            checksum: "c".to_owned(),
            ..Sample::default()
        };
        let samples = [sample(4.0, 10), sample(2.0, 30), sample(3.0, 20)];
        let record = ContenderRecord::of_samples("x".to_owned(), &samples);
        assert_eq!(
            (record.elapsed_s, record.elapsed_min_s, record.elapsed_max_s),
            (3.0, 2.0, 4.0)
        );
        assert_eq!(
            (record.page_ins, record.page_outs, record.access_s),
            (20, 9, 2.0)
        );
        assert_eq!(record.rounds_s, [4.0, 2.0, 3.0]);
    }
}
