//! The slots of the swap store, as one process of a run sees them.
//!
//! # Invariants
//! 1. A slot that this process uses has its bit set in the process's bitmap and is counted once in
//!    the shared table, however often the process's own memory shares it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::id::SlotId;
use tidemark_core::memory::swap_slots::{Slots, spread};

use crate::shared::{Owned, ProcessIndex, Shared};

/// Slots in shared memory, taken and given back by one process.
pub struct SharedSlots {
    shared: Arc<Shared>,
    process: Arc<AtomicU32>,
    /// The slot at which the search for free slots goes on: runs stay together, and processes
    /// apart.
    next: u32,
    /// The slot at which it began.
    base: u32,
    /// The most owners, beyond the first, that a slot has within this process.
    extra: BTreeMap<u32, u32>,
    /// Slots that were let go of, if that is noted.
    released: Option<Vec<SlotId>>,
}

impl SharedSlots {
    /// The slots of `shared`, for the process whose record has the number in `process`. (A forked
    /// child puts its own number there.)
    pub fn new(shared: Arc<Shared>, process: Arc<AtomicU32>) -> SharedSlots {
        // Processes start far from each other, so that their runs do not mix.
        let slots = u64::from(shared.swap_slots());
        let next = (u64::from(process.load(Relaxed)) * slots / 16 % slots.max(1)) as u32;
        SharedSlots {
            shared,
            process,
            next,
            base: next,
            extra: BTreeMap::new(),
            released: None,
        }
    }

    /// Notes released slots from now on, if `is_wanted`, for
    /// [`take_released`](Slots::take_released), which must then be called.
    pub fn note_released_if(mut self, is_wanted: bool) -> SharedSlots {
        self.released = is_wanted.then(Vec::new);
        self
    }

    /// Takes up to `want` free slots from `first` on, stopping at the first that is in use.
    fn take_from(&self, first: u32, want: u32) -> u32 {
        let counts = &self.shared.slot_refs()[first as usize..];
        let taken = counts
            .iter()
            .take(want as usize)
            .take_while(|count| self.shared.take_slot(count));
        let taken = taken.count() as u32;
        let owned = self.owned();
        (first..first + taken).for_each(|slot| owned.insert(slot));
        taken
    }

    /// Goes back to where the search began when it has come far beyond what is in use. Each slot
    /// that was ever used costs memory in tables; compressed pages take and leave slots so often
    /// that it would soon be all of them.
    fn turn_back(&mut self) {
        let room = spread(self.shared.slots_used());
        // Past the last slot the search goes on at the first one.
        let slots = u64::from(self.shared.swap_slots());
        let has_come = (u64::from(self.next) + slots - u64::from(self.base)) % slots;
        if self.released.is_some() && has_come > room {
            self.next = self.base;
        }
    }

    fn owned(&self) -> Owned<'_> {
        self.shared.owned(ProcessIndex(self.process.load(Relaxed)))
    }

    /// The first slot in the range that looks free.
    fn find_free(&self, from: u32, to: u32) -> Option<u32> {
        let counts = &self.shared.slot_refs()[from as usize..to as usize];
        let found = counts.iter().position(|count| count.load(Relaxed) == 0)?;
        Some(from + found as u32)
    }
}

impl Slots for SharedSlots {
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)> {
        let slots = self.shared.swap_slots();
        if self.free() == 0 {
            return None;
        }
        self.turn_back();
        for (mut from, to) in [(self.next, slots), (0, self.next)] {
            while let Some(first) = self.find_free(from, to) {
                let taken = self.take_from(first, want.min(to - first));
                if taken > 0 {
                    self.next = if first + taken == slots {
                        0
                    } else {
                        first + taken
                    };
                    return Some((SlotId(first), taken));
                }
                from = first + 1;
            }
        }
        None
    }

    fn share(&mut self, slot: SlotId) {
        *self.extra.entry(slot.0).or_insert(0) += 1;
    }

    fn release(&mut self, slot: SlotId) {
        if let Some(extra) = self.extra.get_mut(&slot.0) {
            *extra -= 1;
            if *extra == 0 {
                self.extra.remove(&slot.0);
            }
            return;
        }
        let was_owned = self.owned().remove(slot.0);
        assert!(was_owned, "slot {} is not this process's", slot.0);
        self.shared
            .drop_ref(&self.shared.slot_refs()[slot.0 as usize]);
        self.released
            .iter_mut()
            .for_each(|released| released.push(slot));
    }

    fn take_released(&mut self) -> Option<SlotId> {
        self.released.as_mut()?.pop()
    }

    fn free(&self) -> u32 {
        u64::from(self.shared.swap_slots()).saturating_sub(self.shared.slots_used()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of(shared: &Arc<Shared>, process: ProcessIndex) -> SharedSlots {
        SharedSlots::new(Arc::clone(shared), Arc::new(AtomicU32::new(process.0)))
    }

    #[test]
    fn runs_are_taken_whole_and_two_processes_never_get_the_same() {
        let shared = Arc::new(Shared::create(64, 1).unwrap());
        let (one, two) = (shared.claim().unwrap(), shared.claim().unwrap());
        let mut one = slots_of(&shared, one);
        let mut two = slots_of(&shared, two);
        let mut seen = std::collections::BTreeSet::new();
        for slots in [&mut one, &mut two] {
            let (first, count) = slots.allocate(16).unwrap();
            assert!(count >= 1);
            assert!((first.0..first.0 + count).all(|slot| seen.insert(slot)));
        }
        while let Some((first, count)) = one.allocate(7) {
            assert!((first.0..first.0 + count).all(|slot| seen.insert(slot)));
        }
        assert_eq!((seen.len(), one.free(), two.free()), (64, 0, 0));
        assert!(two.allocate(1).is_none());
    }

    #[test]
    fn few_slots_are_ever_used_where_few_are_in_use() {
        for (is_noted, is_dense) in [(true, true), (false, false)] {
            let shared = Arc::new(Shared::create(100_000, 1).unwrap());
            let process = shared.claim().unwrap();
            let mut slots = slots_of(&shared, process).note_released_if(is_noted);
            let first = slots.allocate(1).unwrap().0;
            let mut furthest = first;
            for _ in 0..2000 {
                let (start, count) = slots.allocate(30).unwrap();
                furthest = furthest.max(start);
                (start.0..start.0 + count).for_each(|slot| slots.release(SlotId(slot)));
            }
            assert_eq!(furthest.0 - first.0 < 17_000, is_dense);
        }
    }

    #[test]
    fn a_search_that_goes_on_at_the_first_slot_stays_there() {
        let shared = Arc::new(Shared::create(1000, 1).unwrap());
        let processes: Vec<_> = (0..16).map(|_| shared.claim().unwrap()).collect();
        let mut slots = slots_of(&shared, processes[15]).note_released_if(true);
        let first = slots.allocate(1).unwrap().0;
        assert!(first.0 > 900);
        let taken: u32 = (0..10)
            .filter_map(|_| slots.allocate(30))
            .map(|it| it.1)
            .sum();
        assert!(taken > 200);
        let next = slots.next;
        assert!(next < first.0);
        slots.turn_back();
        assert_eq!(slots.next, next);
    }

    #[test]
    fn a_slot_shared_by_a_fork_is_free_when_both_let_go() {
        let shared = Arc::new(Shared::create(8, 1).unwrap());
        let parent = shared.claim().unwrap();
        let mut ours = slots_of(&shared, parent);
        let (slot, _) = ours.allocate(1).unwrap();
        let child = shared.claim_child(parent).unwrap();
        let mut theirs = slots_of(&shared, child);
        ours.release(slot);
        assert_eq!(theirs.free(), 7);
        theirs.share(slot);
        theirs.release(slot);
        assert_eq!(theirs.free(), 7);
        theirs.release(slot);
        assert_eq!(theirs.free(), 8);
    }
}
