//! The times of the core's own steps that a kernel takes under a lock: moving a page between
//! queues, and looking up one of many.
//!
//!     cargo run --release --example lock_holds -p tidemark-lab
//!
//! Pages come in no order, and there are a million of them, so that most are not in the
//! processor's cache. The best of three runs, for `[locks]` of `bench/experiments/locks.toml`.

mod measure;

use std::hint::black_box;

use tidemark_core::collections::queue::Queues;
use tidemark_model::traces::SplitMix64;

use measure::{fail, rate};

const PAGES: u32 = 1 << 20;
const STEPS: usize = 4_000_000;

fn main() {
    if std::env::args().len() > 1 {
        fail("`lock_holds` takes no arguments");
    }
    let mut queues = Queues::<u8>::new(2, PAGES);
    (0..PAGES).for_each(|page| queues.push_back(0, page));
    let mut random = SplitMix64::new(1);
    let pages: Vec<u32> = (0..STEPS)
        .map(|_| random.below(PAGES.into()) as u32)
        .collect();
    let moved = rate(STEPS, || {
        pages.iter().for_each(|&page| queues.move_to_back(1, page));
    });
    println!("a page moved to another queue: {:.0} ns", 1000.0 / moved);
    let found = rate(STEPS, || {
        pages.iter().for_each(|&page| {
            black_box(queues.list_of(page));
        });
    });
    println!("a page looked up: {:.0} ns", 1000.0 / found);
}
