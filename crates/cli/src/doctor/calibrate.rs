//! Measuring what the primitives cost here. Small: a second or two in all.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use tidemark_live::sys::measure::{self, Failure, Placement};
use tidemark_results::host::Latency;
use tidemark_results::text::bytes;

use crate::run::swap;

/// Pages touched in each measurement of faults.
const PAGES: usize = 4000;

/// The file that transfers are measured on.
const FILE_BYTES: u64 = 64 << 20;

/// The size of a large transfer: 64 pages, as much as the core asks for at a time.
const CLUSTER_BYTES: usize = 256 << 10;

/// How many small transfers are made, all over the file.
const SMALL_READS: u64 = 500;

/// Measures everything that can be measured here, with swap in `folder`.
pub fn measure(folder: Option<&Path>) -> Vec<Latency> {
    let mut latencies = vec![];
    let mut add = |name: &str, samples: Result<Vec<u64>, Failure>| match samples {
        Ok(samples) => latencies.extend(Latency::of_samples(name, samples)),
        Err(failure) => eprintln!("tidemark: {name} can't be measured: {failure:?}"),
    };
    add("zero-fill by the host", measure::host_zero_fills(PAGES));
    let same = measure::thread_faults(PAGES, Placement::SameProcessor);
    add("soft fault by a thread, same processor", same);
    let other = measure::thread_faults(PAGES, Placement::OtherProcessor);
    add("soft fault by a thread, other processor", other);
    add(
        "soft fault in the thread itself",
        measure::in_thread_faults(PAGES),
    );
    add("move, a page at a time, per page", measure::moves(1, 500));
    add(
        "move, 64 pages at a time, per page",
        measure::moves(64, 200),
    );
    match measure_transfers(folder) {
        Ok(transfers) => latencies.extend(transfers),
        Err(error) => eprintln!("tidemark: transfers can't be measured: {error}"),
    }
    latencies
}

/// Writes and reads a swap file, one transfer at a time.
fn measure_transfers(folder: Option<&Path>) -> std::io::Result<Vec<Latency>> {
    let swap = swap::create(folder, Some(FILE_BYTES), FILE_BYTES)
        .map_err(|refusal| std::io::Error::other(refusal.to_string()))?;
    let file = File::from(swap.file);
    let mut cluster = Aligned::new();
    let mut time = |transfer: &mut dyn FnMut(&mut [u8]) -> std::io::Result<()>| {
        let start = Instant::now();
        transfer(&mut cluster.0).map(|()| start.elapsed().as_nanos() as u64)
    };
    let clusters = 0..FILE_BYTES / CLUSTER_BYTES as u64;
    let at = |cluster: u64| cluster * CLUSTER_BYTES as u64;
    // Something other than zeros, which some disks do not store.
    let noise = |bytes: &mut [u8], seed: u64| {
        bytes
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = (i as u64 * 31 + seed) as u8);
    };
    let mut writes = vec![];
    for index in clusters.clone() {
        writes.push(time(&mut |bytes| {
            noise(bytes, index);
            file.write_all_at(bytes, at(index))
        })?);
    }
    let mut reads = vec![];
    for index in clusters {
        reads.push(time(&mut |bytes| file.read_exact_at(bytes, at(index)))?);
    }
    let mut small = vec![];
    for index in 0..SMALL_READS {
        // A stride that is prime to the file's pages visits them all over the place.
        let page = index * 7919 % (FILE_BYTES / 4096);
        small.push(time(&mut |bytes| {
            file.read_exact_at(&mut bytes[..4096], page * 4096)
        })?);
    }
    let latencies = [
        with_rate("write of 256 KiB", writes, CLUSTER_BYTES),
        with_rate("read of 256 KiB", reads, CLUSTER_BYTES),
        with_rate("read of 4 KiB", small, 4096),
    ];
    Ok(latencies.into_iter().flatten().collect())
}

fn with_rate(name: &str, samples_ns: Vec<u64>, transfer_bytes: usize) -> Option<Latency> {
    let total_ns: u64 = samples_ns.iter().sum();
    let total_bytes = samples_ns.len() * transfer_bytes;
    let latency = Latency::of_samples(name, samples_ns)?;
    let rate = total_bytes as f64 / (total_ns.max(1) as f64 / 1e9);
    Some(Latency {
        rate: Some(format!("{}/s", bytes(rate as u64))),
        ..latency
    })
}

/// Memory for one large transfer, aligned as direct transfers must be.
#[repr(align(4096))]
struct Aligned([u8; CLUSTER_BYTES]);

impl Aligned {
    fn new() -> Box<Aligned> {
        Box::new(Aligned([0; CLUSTER_BYTES]))
    }
}
