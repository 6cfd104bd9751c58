//! Backing: which slots of the swap store are in use, and by how many owners.
//!
//! A page that leaves gets a fresh slot, and pages that leave together get consecutive ones: one
//! large write whatever their addresses (NetBSD `uvm_pdaemon.c` collects its swap clusters so).
//! Where each page's slot is stands in its object's page table ([`object`](crate::object)).

use alloc::vec;
use alloc::vec::Vec;

use crate::bitmap::Bitmap;
use crate::id::SlotId;

/// The slots of a swap store. Several owners may share one: processes after a fork.
pub trait Slots: Send {
    /// Takes consecutive free slots, at least one and at most `want`, each with one owner.
    fn allocate(&mut self, want: u32) -> Option<(SlotId, u32)>;

    /// Adds an owner to a slot that has one.
    fn share(&mut self, slot: SlotId);

    /// Takes an owner from a slot, which is free when it has none.
    fn release(&mut self, slot: SlotId);

    /// How many slots are free.
    fn free(&self) -> u32;
}

/// Slots that only this memory uses.
pub struct LocalSlots {
    free: Bitmap,
    owners: Vec<u16>,
}

impl LocalSlots {
    /// A store of `slots` free slots.
    pub fn new(slots: u32) -> LocalSlots {
        let mut free = Bitmap::new(slots as usize);
        (0..slots as usize).for_each(|slot| free.insert(slot));
        LocalSlots {
            free,
            owners: vec![0; slots as usize],
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
        }
    }

    fn free(&self) -> u32 {
        self.free.len() as u32
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
}
