//! Backing: which slots of the swap store are in use, and by how many owners.
//!
//! Which slot a page gets is for [`placement`](crate::vm::kernels::in_place) to say; where each
//! page's slot is stands in its object's page table ([`object`](crate::memory::object)).

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

/// Slots that only this memory uses.
pub struct LocalSlots {
    free: Bitmap,
    owners: Vec<u16>,
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
            searched: (0, 0),
        }
    }
}

impl Slots for LocalSlots {
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)> {
        let (first, length) = self.free.take_run(want as usize)?;
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
        }
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
