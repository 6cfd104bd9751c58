//! Histograms: how often a quantity fell between two bounds.
//!
//! # Invariants
//! 1. Buckets are in rising order and do not overlap.
//! 2. No bucket is empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts by size. What the sizes are in is said by the name of the field that holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    buckets: Vec<Bucket>,
}

/// The number of samples between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The least value counted here.
    pub from: u64,
    /// The least value above that is not.
    pub below: u64,
    /// The number of samples.
    pub count: u64,
}

impl Histogram {
    /// A histogram of `buckets`. Empty ones are left out, equal ones are added up.
    pub fn new(buckets: impl IntoIterator<Item = Bucket>) -> Histogram {
        let mut merged = BTreeMap::new();
        for bucket in buckets {
            assert!(
                bucket.from < bucket.below,
                "a bucket holds at least one value"
            );
            if bucket.count > 0 {
                *merged.entry((bucket.from, bucket.below)).or_insert(0) += bucket.count;
            }
        }
        let buckets =
            merged
                .into_iter()
                .map(|((from, below), count)| Bucket { from, below, count });
        Histogram {
            buckets: buckets.collect(),
        }
    }

    /// Adds the counts of `other`, which was divided at the same bounds.
    pub fn add(&mut self, other: &Histogram) {
        *self = Histogram::new(self.buckets.iter().chain(&other.buckets).copied());
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }

    /// The sum of all samples, each taken to lie in the middle of its bucket.
    pub fn sum(&self) -> f64 {
        let middle = |bucket: &Bucket| (bucket.from + bucket.below) as f64 / 2.0;
        let sums = self.buckets.iter().map(|it| middle(it) * it.count as f64);
        sums.sum()
    }

    /// The buckets, in rising order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The value below which `per_mille` of a thousand samples lie, or `None` without samples.
    ///
    /// Within a bucket the samples are taken to be spread evenly: the answer is exact to the width
    /// of a bucket.
    pub fn quantile(&self, per_mille: u64) -> Option<f64> {
        let wanted = self.count() as f64 * per_mille as f64 / 1000.0;
        let mut seen = 0.0;
        for bucket in &self.buckets {
            let count = bucket.count as f64;
            if seen + count >= wanted {
                let width = (bucket.below - bucket.from) as f64;
                return Some(bucket.from as f64 + width * (wanted - seen) / count);
            }
            seen += count;
        }
        self.buckets.last().map(|bucket| bucket.below as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(from: u64, below: u64, count: u64) -> Bucket {
        Bucket { from, below, count }
    }

    #[test]
    fn empty_buckets_are_left_out_and_equal_ones_added_up() {
        let histogram = Histogram::new([
            bucket(4, 8, 2),
            bucket(0, 4, 0),
            bucket(8, 16, 1),
            bucket(4, 8, 3),
        ]);
        assert_eq!(histogram.buckets(), [bucket(4, 8, 5), bucket(8, 16, 1)]);
        assert_eq!(histogram.count(), 6);
    }

    #[test]
    fn adding_keeps_the_order_of_the_bounds() {
        let mut histogram = Histogram::new([bucket(8, 16, 1)]);
        histogram.add(&Histogram::new([bucket(0, 4, 7), bucket(8, 16, 2)]));
        assert_eq!(histogram.buckets(), [bucket(0, 4, 7), bucket(8, 16, 3)]);
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_that_holds_it() {
        let histogram = Histogram::new([bucket(0, 10, 50), bucket(10, 20, 40), bucket(20, 40, 10)]);
        assert_eq!(histogram.quantile(500), Some(10.0));
        assert_eq!(histogram.quantile(250), Some(5.0));
        assert_eq!(histogram.quantile(700), Some(15.0));
        assert_eq!(histogram.quantile(1000), Some(40.0));
    }

    #[test]
    fn no_samples_have_no_quantile() {
        assert_eq!(Histogram::default().quantile(500), None);
    }
}
