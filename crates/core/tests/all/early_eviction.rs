//! The gain of early eviction, and the cost that it must not have: `eelru` beside `lru` and the
//! optimum.

use tidemark_core::policies::build;
use tidemark_model::cache::{MachineKind, replay};
use tidemark_model::{opt, traces};

fn misses(name: &str, frames: u32, trace: &[u64]) -> u64 {
    let policy = build(name, frames, frames, 1, &[]).expect("it is known");
    replay(policy, frames, MachineKind::Bits, trace).hard
}

#[test]
fn a_loop_up_to_twice_memory_keeps_most_of_what_fits() {
    for pages in [110, 150, 200] {
        let trace = traces::looping(pages, 100);
        let least = opt::count_misses(100, &trace);
        assert_eq!(misses("lru", 100, &trace), pages * 100);
        let found = misses("eelru", 100, &trace);
        // Three pages of a hundred are young, and so the first round in which it is seen.
        assert!(
            found * 4 <= least * 5,
            "{found} of {pages}, {least} at best"
        );
    }
}

#[test]
fn where_lru_does_well_it_is_lru() {
    let trace = traces::phases(5, 40, 80, 2_000);
    assert_eq!(misses("eelru", 100, &trace), misses("lru", 100, &trace));
}

#[test]
fn it_is_never_three_times_as_bad_as_lru() {
    for seed in 0..6 {
        for frames in [1, 7, 33, 100] {
            let mut trace = traces::skewed(seed, 300, 20_000);
            trace.extend(traces::looping(u64::from(frames) * 3 / 2, 20));
            trace.extend(traces::phases(seed, 10, 90, 1_000));
            trace.extend(traces::uniform(seed, 200, 5_000));
            let (lru, found) = (
                misses("lru", frames, &trace),
                misses("eelru", frames, &trace),
            );
            assert!(
                found <= lru * 3,
                "{found} in {frames} frames, {lru} under LRU"
            );
        }
    }
}
