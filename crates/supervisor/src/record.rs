//! From the shared memory of a run to its record.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::meters::Metered;
use tidemark_live::shared::{self, Counter, Process};
use tidemark_results::locks::{LockCounts, Locks};
use tidemark_results::{Bucket, Ending, Histogram, Latencies, Latency, ProcessRecord, Statistics};

/// The record of a process that ended as said, or still runs.
pub fn of_process(process: &Process<'_>, ending: Ending, now_ns: u64) -> ProcessRecord {
    let parent = process.parent();
    ProcessRecord {
        pid: process.pid(),
        parent: (parent != 0).then_some(parent),
        program: process.name(),
        ending,
        locks: locks(process),
        statistics: statistics(process, now_ns),
    }
}

/// The locks of a process, if they are measured: then its engine has taken some.
fn locks(process: &Process<'_>) -> Option<Locks> {
    let counts = |lock| {
        let counts = process.lock(lock);
        LockCounts {
            taken: counts.taken,
            contended: counts.contended,
            waited_ns: counts.waited_ns.into(),
            held_ns: counts.held_ns.into(),
        }
    };
    let locks = Locks {
        forks: counts(Metered::Forks),
        engine: counts(Metered::Engine),
        workers: counts(Metered::Workers),
        heap: counts(Metered::Heap),
    };
    (locks != Locks::default()).then_some(locks)
}

/// The last message of the engine before it ended its process, as a note.
pub fn complaint(process: &Process<'_>) -> Option<String> {
    let what = match process.ending() {
        shared::Ending::Unsaid => return None,
        shared::Ending::FetchFailed => "a page could not be read back from the swap file",
        shared::Ending::StoreFull => "the store is full and no page could leave",
        shared::Ending::EngineFailed => "the engine met something it could not go on with",
        shared::Ending::FileLost => {
            return Some(format!(
                "`{}` ({}) changed a mapped file that could not be written: the change is lost",
                process.name(),
                process.pid()
            ));
        }
    };
    Some(format!(
        "`{}` ({}) was ended: {what}",
        process.name(),
        process.pid()
    ))
}

fn statistics(process: &Process<'_>, now_ns: u64) -> Statistics {
    let count = |counter: Counter| process.counter(counter).load(Relaxed);
    let end_ns = if process.end_ns() == 0 {
        now_ns
    } else {
        process.end_ns()
    };
    let latency = |kind| Latency::new(histogram(process, kind));
    Statistics {
        frames_budget: u64::from(process.budget()),
        elapsed_s: end_ns.saturating_sub(process.start_ns()) as f64 / 1e9,
        latency: Latencies {
            soft: latency(shared::Latency::Soft),
            zero_fill: latency(shared::Latency::ZeroFill),
            page_in: latency(shared::Latency::PageIn),
        },
        page_in_cluster_pages: clusters(process, shared::Cluster::In),
        page_out_cluster_pages: clusters(process, shared::Cluster::Out),
        compressed_page_bytes: sizes(process),
        ..Statistics::of_counts(count)
    }
}

fn histogram(process: &Process<'_>, kind: shared::Latency) -> Histogram {
    let counts = process.latency(kind).iter().enumerate();
    Histogram::new(counts.map(|(bucket, count)| Bucket {
        // The first bucket takes in all that lies below its floor, too.
        from: if bucket == 0 {
            0
        } else {
            shared::bucket_floor_ns(bucket)
        },
        below: shared::bucket_floor_ns(bucket + 1),
        count: count.load(Relaxed),
    }))
}

fn clusters(process: &Process<'_>, kind: shared::Cluster) -> Histogram {
    let counts = process.clusters(kind).iter().enumerate();
    Histogram::new(counts.map(|(bucket, count)| Bucket {
        from: 1 << bucket,
        below: 2 << bucket,
        count: count.load(Relaxed),
    }))
}

fn sizes(process: &Process<'_>) -> Histogram {
    const WIDTH: u64 = shared::SIZE_BUCKET_BYTES as u64;
    let counts = (0..).zip(process.sizes());
    // The first bucket is of pages of zeros, and others take up no less than a byte.
    let bounds = |bucket: u64| match bucket {
        0 => (0, 1),
        other => (((other - 1) * WIDTH).max(1), other * WIDTH),
    };
    Histogram::new(counts.map(|(bucket, count)| {
        let ((from, below), count) = (bounds(bucket), count.load(Relaxed));
        Bucket { from, below, count }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_core::counters::Scope;
    use tidemark_live::meters;
    use tidemark_live::shared::Shared;

    #[test]
    fn counters_land_in_their_fields() {
        let shared = Shared::create(64, 100).unwrap();
        let process = shared.process(shared.claim().unwrap());
        process.start(7, 3, "sheep", 1_000_000_000);
        process.set_budget(50);
        let is_live = |counter: &Counter| counter.scope() != Scope::World;
        for counter in Counter::ALL.into_iter().filter(is_live) {
            process
                .counter(counter)
                .store(1000 + counter as u64, Relaxed);
        }
        process.record_latency(shared::Latency::Soft, 3_000);
        process.record_cluster(shared::Cluster::In, 64);
        for (bucket, pages) in [(0, 2), (1, 3), (5, 4)] {
            process.record_sizes(bucket, pages);
        }
        let record = of_process(&process, Ending::Gone, 3_500_000_000);
        assert_eq!(
            (record.pid, record.parent, record.program.as_str()),
            (7, Some(3), "sheep")
        );
        let statistics = record.statistics;
        assert_eq!(statistics.elapsed_s, 2.5);
        for counter in Counter::ALL {
            let is_own = counter != Counter::FramesBudget;
            if let (Some(count), true) = (statistics.get(counter), is_own) {
                assert_eq!(count, 1000 + counter as u64, "{counter:?}");
            }
        }
        assert_eq!(statistics.frames_budget, 50);
        assert_eq!(statistics.latency.soft.histogram_ns.count(), 1);
        let clusters = statistics.page_in_cluster_pages.buckets();
        assert_eq!(
            clusters,
            [Bucket {
                from: 64,
                below: 128,
                count: 1
            }]
        );
        assert!(statistics.page_out_cluster_pages.buckets().is_empty());
        assert_eq!(
            statistics.compressed_page_bytes.buckets(),
            [(0, 1, 2), (1, 256, 3), (1024, 1280, 4)].map(|(from, below, count)| Bucket {
                from,
                below,
                count
            })
        );
        let p50 = statistics.latency.soft.percentiles_us.p50;
        assert!((2.0..4.0).contains(&p50), "{p50}");
    }

    #[test]
    fn locks_are_in_the_record_if_they_were_measured() {
        let shared = Shared::create(64, 100).unwrap();
        let process = shared.process(shared.claim().unwrap());
        process.start(7, 3, "sheep", 0);
        let read = || of_process(&process, Ending::Gone, 1).locks;
        assert_eq!(read(), None);
        for (lock, taken) in Metered::ALL.into_iter().zip(10..) {
            let counts = meters::LockCounts {
                taken,
                contended: taken + 10,
                waited_ns: taken + 20,
                held_ns: taken + 30,
            };
            process.set_lock(lock, counts);
        }
        let locks = read().unwrap();
        let mut total = Locks::default();
        total.add(&locks);
        total.add(&locks);
        for ((_, counts), taken) in total.named().into_iter().zip(10..) {
            let LockCounts {
                waited_ns, held_ns, ..
            } = counts;
            let found = [counts.taken, counts.contended, waited_ns.0, held_ns.0];
            assert_eq!(found, [0, 10, 20, 30].map(|more| 2 * (taken + more)));
        }
        // They lie behind all else.
        assert_eq!(process.sizes().len(), shared::SIZE_BUCKETS);
        assert!(process.sizes().iter().all(|count| count.load(Relaxed) == 0));
    }

    #[test]
    fn an_engine_that_ended_its_process_is_noted() {
        let shared = Shared::create(64, 100).unwrap();
        let process = shared.process(shared.claim().unwrap());
        process.start(7, 3, "sheep", 0);
        assert_eq!(complaint(&process), None);
        process.set_ending(shared::Ending::FetchFailed);
        let told = complaint(&process).unwrap();
        assert_eq!(
            told,
            "`sheep` (7) was ended: a page could not be read back from the swap file"
        );
    }
}
