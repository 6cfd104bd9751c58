//! Processors that do made-up work.

use super::work::{Deed, Reads};
use super::*;
use crate::systems::machines::PRESENT;

pub(super) const SETUP: Setup = Setup {
    processors: 4,
    workers: 4,
    windows: 4,
    window_parts: 1,
    has_idle_zeroing: false,
    is_aligned: true,
    batch: 1,
    has_own_queues: false,
};

pub(super) const CHARGES: Charges = Charges {
    costs: PRESENT,
    line_ns: 50,
    far_line_ns: 150,
    list_ns: 20,
    search_ns: 100,
    shootdown_ns: 1000,
    idle_ns: 500,
    own_fault_ns: 7000,
};

fn work(job: Vec<Deed>, jobs: usize) -> Work {
    Work {
        jobs: vec![job; jobs],
        files: 1,
    }
}

fn filling(jobs: usize) -> Work {
    let each = [Deed::Compute(1000), Deed::Fill, Deed::Free(1)];
    work(each.repeat(200), jobs)
}

#[test]
fn one_processor_waits_for_nobody() {
    let setup = Setup {
        processors: 1,
        workers: 1,
        ..SETUP
    };
    let outcome = contend(&filling(2), &setup, &CHARGES);
    assert_eq!(outcome.free.waits + outcome.queue.waits, 0);
    assert_eq!(outcome.lines_moved, 0);
    assert_eq!(outcome.user_ns, 2 * 200 * 1000);
    assert_eq!(outcome.elapsed_ns, outcome.user_ns + outcome.system_ns);
    // A fault, a page from the list and onto one, zeros, an entry; and two lists at the end.
    let each = 500 + 2 * 20 + 250 + 50 + 2 * 20;
    assert_eq!(outcome.system_ns, 400 * each);
}

#[test]
fn many_processors_wait_for_each_other_and_all_is_done() {
    let alone = contend(&filling(8), &SETUP, &CHARGES);
    assert!(alone.queue.waits > 0 && alone.lines_moved > 0);
    assert_eq!(alone.user_ns, 8 * 200 * 1000);
    assert_eq!(alone.free.takes, 8 * 200 * 2);
    assert_eq!(alone, contend(&filling(8), &SETUP, &CHARGES));
}

#[test]
fn a_shared_line_costs_more_than_lines_apart() {
    let shared = Setup {
        is_aligned: false,
        ..SETUP
    };
    let apart = contend(&filling(8), &SETUP, &CHARGES);
    let shared = contend(&filling(8), &shared, &CHARGES);
    assert_eq!(apart.lines_moved_false, 0);
    assert!(shared.lines_moved_false > 0);
    assert!(shared.system_ns > apart.system_ns);
}

#[test]
fn batches_take_locks_less_often() {
    let batched = Setup { batch: 8, ..SETUP };
    let batched = contend(&filling(8), &batched, &CHARGES);
    let single = contend(&filling(8), &SETUP, &CHARGES);
    assert_eq!(single.queue.takes, 8 * batched.queue.takes);
    assert!(batched.elapsed_ns < single.elapsed_ns);
}

#[test]
fn windows_that_are_taken_hold_the_lock_until_all_others_know() {
    // Jobs of different lengths, so that they are not in step.
    let jobs = (1..=4).map(|number| vec![Deed::Compute(7_000 * number); 6]);
    let work = Work {
        jobs: jobs.collect(),
        files: 0,
    };
    let work = work.with_reads(Reads { shared: 6, own: 0 });
    let few = contend(&work, &SETUP, &CHARGES);
    let many = Setup {
        windows: 8,
        ..SETUP
    };
    let many = contend(&work, &many, &CHARGES);
    assert_eq!(many.window_misses, 6);
    assert_eq!(many.window_hits + many.window_misses, 24);
    assert!(few.window_misses > 6);
    assert!(few.windows.spin_ns > many.windows.spin_ns);
}

#[test]
fn idle_processors_fill_what_is_given_back() {
    let setup = Setup {
        workers: 2,
        has_idle_zeroing: true,
        ..SETUP
    };
    let outcome = contend(&filling(4), &setup, &CHARGES);
    assert!(outcome.idle_zeroed > 0 && outcome.idle_zeroed <= 4 * 200);
    let takes = 4 * 200 * 2 + 2 * outcome.idle_zeroed;
    assert!((takes..takes + 4).contains(&outcome.free.takes));
    let off = Setup {
        has_idle_zeroing: false,
        ..setup
    };
    assert_eq!(contend(&filling(4), &off, &CHARGES).idle_zeroed, 0);
}
