//! Backing: which slots of the swap store are in use, and by how many owners.
//!
//! `vm::kernels::in_place` chooses a page's slot; the object's page table has the slot of each page
//! ([`object`](crate::memory::object)).

use alloc::vec;
use alloc::vec::Vec;

use crate::collections::bitmap::Bitmap;
use crate::id::SlotId;

/// The slots of a swap store. Several owners may share one: processes after a fork.
pub trait Slots: Send {
    /// Takes consecutive free slots, at least one and at most `want`, each with one owner.
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)>;

    /// Adds an owner to a slot that has one.
    fn share(&mut self, slot: SlotId);

    /// Takes an owner from a slot, which is free when it has none.
    fn release(&mut self, slot: SlotId);

    /// The number of slots that are free.
    fn free(&self) -> u32;

    /// Takes this very slot, with one owner, if it is free. A store whose slots can't be chosen
    /// gives none.
    fn claim(&mut self, _slot: SlotId) -> bool {
        false
    }

    /// Finds `pages` free slots side by side, at a multiple of `pages`, and takes none of them. A
    /// store whose slots can't be chosen finds none.
    fn find_block(&mut self, _pages: u32) -> Option<SlotId> {
        None
    }

    /// Hands over the next slot that this memory has let go of altogether, where that is noted.
    fn take_released(&mut self) -> Option<SlotId> {
        None
    }

    /// Returns true if a slot surely has one owner and no more, who may then write to it again.
    fn has_one_owner(&self, _slot: SlotId) -> bool {
        false
    }
}

/// Slots for compressed pages are looked for among this many times those in use, so that there are
/// runs of free ones: a segment goes to disk by a write for each run that its space has.
const SPREAD: u64 = 2;
/// The number of slots that are looked through in addition.
const SPREAD_LEAST: u64 = 2 << 10;

/// The number of slots among which free ones are looked for, by the number in use: each that was
/// ever used costs memory in tables.
pub fn spread(used: u64) -> u64 {
    used * SPREAD + SPREAD_LEAST
}

/// Slots that only this memory uses.
pub struct LocalSlots {
    free: Bitmap,
    owners: Vec<u16>,
    /// Slots that were let go of, if that is noted.
    released: Option<Vec<SlotId>>,
    /// The slot at which the search goes on in that case.
    next: u32,
    /// The size of the block looked for last, and a slot before which no block of that size is
    /// free.
    searched: (u32, u32),
}

impl LocalSlots {
    /// A store of `slots` free slots.
    pub fn new(slots: u32) -> LocalSlots {
        let mut free = Bitmap::new(slots as usize);
        (0..slots as usize).for_each(|slot| free.insert(slot));
        LocalSlots {
            free,
            owners: vec![0; slots as usize],
            released: None,
            next: 0,
            searched: (0, 0),
        }
    }

    /// Notes from now on which slots are let go of: for [`take_released`](Slots::take_released),
    /// which must be called then. What is free next is taken, however little lies side by side.
    pub fn note_released(mut self) -> LocalSlots {
        self.released = Some(Vec::new());
        self
    }

    /// Takes what is free next.
    fn take_next(&mut self, want: u32) -> Option<(usize, usize)> {
        let used = self.owners.len() as u64 - self.free.len() as u64;
        if u64::from(self.next) > spread(used) {
            self.next = 0;
        }
        let (first, length) = self.free.take_from(self.next as usize, want as usize)?;
        self.next = ((first + length) % self.owners.len()) as u32;
        Some((first, length))
    }
}

impl Slots for LocalSlots {
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)> {
        let (first, length) = match self.released {
            None => self.free.take_run(want as usize)?,
            Some(_) => self.take_next(want)?,
        };
        self.owners[first..first + length].fill(1);
        Some((SlotId(first as u32), length as u32))
    }

    fn share(&mut self, slot: SlotId) {
        assert!(self.owners[slot.0 as usize] > 0);
        self.owners[slot.0 as usize] += 1;
    }

    fn release(&mut self, slot: SlotId) {
        let owners = &mut self.owners[slot.0 as usize];
        assert!(*owners > 0);
        *owners -= 1;
        if *owners == 0 {
            self.free.insert(slot.0 as usize);
            let (pages, before) = self.searched;
            self.searched.1 = before.min(slot.0 - slot.0 % pages.max(1));
            let released = self.released.iter_mut();
            released.for_each(|released| released.push(slot));
        }
    }

    fn take_released(&mut self) -> Option<SlotId> {
        self.released.as_mut()?.pop()
    }

    fn free(&self) -> u32 {
        self.free.len() as u32
    }

    fn claim(&mut self, slot: SlotId) -> bool {
        let is_free = (slot.0 as usize) < self.owners.len() && self.free.contains(slot.0 as usize);
        if is_free {
            self.free.remove(slot.0 as usize);
            self.owners[slot.0 as usize] = 1;
        }
        is_free
    }

    fn find_block(&mut self, pages: u32) -> Option<SlotId> {
        let from = match self.searched {
            (before, from) if before == pages => from,
            _ => 0,
        };
        let found = self.free.find_block(pages as usize, from as usize);
        let end = self.owners.len();
        self.searched = (pages, found.unwrap_or(end) as u32);
        Some(SlotId(found? as u32))
    }

    fn has_one_owner(&self, slot: SlotId) -> bool {
        self.owners[slot.0 as usize] == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_slot_is_free_only_when_its_last_owner_lets_go() {
        let mut slots = LocalSlots::new(4);
        let (slot, got) = slots.allocate(3).expect("four are free");
        assert_eq!((slot, got, slots.free()), (SlotId(0), 3, 1));
        slots.share(slot);
        slots.release(slot);
        assert_eq!(slots.free(), 1);
        slots.release(slot);
        assert_eq!(slots.free(), 2);
    }

    #[test]
    fn slots_that_are_let_go_of_are_told_where_that_is_noted() {
        let mut slots = LocalSlots::new(1 << 20).note_released();
        assert_eq!(slots.allocate(3), Some((SlotId(0), 3)));
        slots.release(SlotId(1));
        assert_eq!(slots.take_released(), Some(SlotId(1)));
        assert_eq!(slots.take_released(), None);
        // The search goes on behind the last, and begins anew when it has come far.
        assert_eq!(slots.allocate(3), Some((SlotId(3), 3)));
        while let Some((first, count)) = slots.allocate(64) {
            if first == SlotId(1) {
                assert_eq!(count, 1);
                return;
            }
            (first.0..first.0 + count).for_each(|slot| slots.release(SlotId(slot)));
        }
        panic!("there are free slots");
    }

    #[test]
    fn a_block_is_found_again_when_all_of_it_is_free() {
        let mut slots = LocalSlots::new(10);
        assert_eq!(slots.find_block(4), Some(SlotId(0)));
        assert!(slots.claim(SlotId(1)) && !slots.claim(SlotId(1)) && slots.claim(SlotId(6)));
        assert_eq!(slots.find_block(4), None);
        assert_eq!(slots.find_block(2), Some(SlotId(2)));
        slots.release(SlotId(1));
        assert_eq!(slots.find_block(4), Some(SlotId(0)));
        assert!(!slots.claim(SlotId(10)));
    }

    #[test]
    fn a_slot_that_is_shared_is_not_one_owner_s() {
        let mut slots = LocalSlots::new(4);
        assert!(slots.claim(SlotId(2)) && slots.has_one_owner(SlotId(2)));
        slots.share(SlotId(2));
        assert!(!slots.has_one_owner(SlotId(2)));
    }
}
