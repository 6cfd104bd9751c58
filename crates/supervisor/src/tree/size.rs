//! The size of a task.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, ProcessIndex, Shared};

/// The pages that a task has, in memory or in the store.
pub fn pages_of(shared: &Shared, index: ProcessIndex) -> u64 {
    let process = shared.process(index);
    let count = |counter| process.counter(counter).load(Relaxed);
    let resident = count(Counter::FramesResident);
    // A page that has been fetched keeps its slot.
    let unstored = resident.saturating_sub(count(Counter::PageIns));
    resident.max(shared.slots_of(index) + unstored)
}
