//! The buckets of latency histograms.

use super::LATENCY_BUCKETS;

/// The histogram bucket that `ns` falls in: four to each doubling, from 64 ns up.
pub fn bucket_of(ns: u64) -> usize {
    let ns = ns.max(64);
    let doubling = 63 - ns.leading_zeros() as usize;
    let quarter = (ns >> (doubling - 2)) as usize & 3;
    ((doubling - 6) * 4 + quarter).min(LATENCY_BUCKETS - 1)
}

/// The least number of nanoseconds that falls in `bucket`. (The first takes all below, too.)
pub fn bucket_floor_ns(bucket: usize) -> u64 {
    (4 + bucket as u64 % 4) << (bucket / 4 + 4)
}

/// The latency that the given share (in thousandths) of a histogram's entries do not exceed, to
/// the accuracy of a bucket; zero if it has none.
pub fn percentile_ns(counts: &[u64], thousandths: u64) -> u64 {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return 0;
    }
    let wanted = (total * thousandths).div_ceil(1000).max(1);
    let mut seen = 0;
    let bucket = counts.iter().position(|&count| {
        seen += count;
        seen >= wanted
    });
    // The middle of the bucket stands for all of it.
    let bucket = bucket.expect("the counts add up to the total");
    (bucket_floor_ns(bucket) + bucket_floor_ns(bucket + 1)) / 2
}
