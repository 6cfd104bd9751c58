//! Measuring what the primitives cost here. Small: a second or two in all.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use tidemark_live::sys::measure::{self, Failure, Placement, Touch};
use tidemark_results::host::Latency;
use tidemark_results::text::bytes;
use tidemark_supervisor::swap;

/// Pages touched in each measurement of faults.
const PAGES: usize = 4000;

/// The file that transfers are measured on.
const FILE_BYTES: u64 = 64 << 20;

/// The size of a large transfer: 64 pages, as much as the core asks for at a time.
const CLUSTER_BYTES: usize = 256 << 10;

/// The size of a small transfer.
const PAGE_BYTES: usize = tidemark_core::id::PAGE_BYTES as usize;

/// The number of small reads under way at a time where they are beside each other, and how many
/// each reader makes.
const READERS: usize = 8;
const READS_OF_ONE: usize = 60;

/// The number of small transfers of a kind that are made, all over the file.
const SMALL_TRANSFERS: u64 = 500;

/// Measures everything that can be measured here, with swap in `folder`. What can't be is said.
pub fn measure(folder: Option<&Path>, say: &mut dyn FnMut(&str)) -> Vec<Latency> {
    let mut latencies = vec![];
    let mut add = |name: &str, samples: Result<Vec<u64>, Failure>| match samples {
        Ok(samples) => latencies.extend(Latency::of_samples(name, samples)),
        Err(failure) => say(&format!("{name} can't be measured: {failure:?}")),
    };
    add("zero-fill by the host", measure::host_zero_fills(PAGES));
    for (touch, how) in [(Touch::Write, ""), (Touch::Read, ", reading")] {
        for (placement, place) in [
            (Placement::SameProcessor, "same processor"),
            (Placement::OtherProcessor, "other processor"),
        ] {
            let samples = measure::thread_faults(PAGES, placement, touch);
            add(&format!("soft fault by a thread, {place}{how}"), samples);
        }
        let samples = measure::in_thread_faults(PAGES, touch);
        add(&format!("soft fault in the thread itself{how}"), samples);
    }
    add("move, a page at a time, per page", measure::moves(1, 500));
    add(
        "move, 64 pages at a time, per page",
        measure::moves(64, 200),
    );
    match measure_swap(folder) {
        Ok(transfers) => latencies.extend(transfers),
        Err(error) => say(&format!("transfers can't be measured: {error}")),
    }
    latencies
}

/// Writes and reads a swap file in `folder`: transfers one at a time, and small reads beside each
/// other.
///
/// # Errors
/// If there is no room for such a file, or a transfer fails.
pub fn measure_swap(folder: Option<&Path>) -> std::io::Result<Vec<Latency>> {
    let swap = swap::create(folder, Some(FILE_BYTES), FILE_BYTES)
        .map_err(|refusal| std::io::Error::other(refusal.to_string()))?;
    let file = File::from(swap.file);
    let mut cluster = Aligned::new();
    // Something other than zeros, which some disks do not store.
    let noise = |bytes: &mut [u8], seed: u64| {
        bytes
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = (i as u64 * 31 + seed) as u8);
    };
    let clusters = 0..FILE_BYTES / CLUSTER_BYTES as u64;
    let mut writes = vec![];
    for index in clusters.clone() {
        noise(&mut cluster.0, index);
        writes.push(time(|| {
            file.write_all_at(&cluster.0, index * CLUSTER_BYTES as u64)
        })?);
    }
    let mut reads = vec![];
    for index in clusters {
        reads.push(time(|| {
            file.read_exact_at(&mut cluster.0, index * CLUSTER_BYTES as u64)
        })?);
    }
    let (mut small_writes, mut small_reads) = (vec![], vec![]);
    for index in 0..SMALL_TRANSFERS {
        let page = &mut cluster.0[..PAGE_BYTES];
        small_writes.push(time(|| file.write_all_at(page, offset_of(index)))?);
    }
    for index in 0..SMALL_TRANSFERS {
        let page = &mut cluster.0[..PAGE_BYTES];
        small_reads.push(time(|| file.read_exact_at(page, offset_of(index)))?);
    }
    let beside = read_beside(&file)?;
    let latencies = [
        with_rate("write of 256 KiB", writes, CLUSTER_BYTES),
        with_rate("read of 256 KiB", reads, CLUSTER_BYTES),
        with_rate("write of 4 KiB", small_writes, PAGE_BYTES),
        with_rate("read of 4 KiB", small_reads, PAGE_BYTES),
        Latency::of_samples("read of 4 KiB, 8 at a time", beside),
    ];
    Ok(latencies.into_iter().flatten().collect())
}

/// Measures the time of each of many small reads while others are under way.
fn read_beside(file: &File) -> std::io::Result<Vec<u64>> {
    let read_some = |first: u64| {
        let mut cluster = Aligned::new();
        let indices = (first..).step_by(READERS).take(READS_OF_ONE);
        let samples = indices.map(|index| {
            let page = &mut cluster.0[..PAGE_BYTES];
            time(|| file.read_exact_at(page, offset_of(index)))
        });
        samples.collect::<std::io::Result<Vec<u64>>>()
    };
    std::thread::scope(|scope| {
        let readers = (0..READERS as u64).map(|first| scope.spawn(move || read_some(first)));
        let readers: Vec<_> = readers.collect();
        let mut all = vec![];
        for reader in readers {
            all.extend(reader.join().expect("a reader does not panic")?);
        }
        Ok(all)
    })
}

/// The place of a small transfer: a stride that is prime to the file's pages visits them all over
/// the place.
fn offset_of(index: u64) -> u64 {
    index * 7919 % (FILE_BYTES / PAGE_BYTES as u64) * PAGE_BYTES as u64
}

/// The time of a transfer, in nanoseconds.
fn time(transfer: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<u64> {
    let start = Instant::now();
    transfer().map(|()| start.elapsed().as_nanos() as u64)
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
