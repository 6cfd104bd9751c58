//! Double paging: modified pages of files go to the swap store while their pagers get no frame.
//!
//! A pager outside needs memory to clean a page. While allocation is
//! [paused](crate::kernels::Passes::is_pausing) it gets none, and a fault that waits for it might
//! wait for ever. GNU Mach then moves the page to a fresh internal object, which the message to the
//! page's own pager names, and has its default pager, which is privileged, write that at once
//! (`vm_page_seg_evict` in vm/vm_page.c, `vm_pageout_setup` in vm/vm_pageout.c). When its own pager
//! gets to the message, the contents are paged in from the default pager, and cleaned at last: a
//! page that is paged twice moves three times.
//!
//! Here the object's page table names the slot that has the page, and messages are kept in order
//! of their pages, which go back one at a time.
//!
//! # Departures
//! Who touches a page that its pager is cleaning waits, and then gets the same frame; GNU Mach's
//! pager answers with another copy. The default pager backs no external objects, which GNU Mach has
//! to exempt, and a store that is full or fails leaves pages to their own pagers.
//!
//! # Invariants
//! 1. A resident page of an external object has no slot.
//! 2. A page that is [owed](Vm::defer_writeback) has a slot, or its owner has given it up.

use alloc::vec::Vec;

use crate::id::{FrameId, PageId, PagerId};
use crate::memory::frame::State;
use crate::memory::object::Backing;
use crate::paging::attempt::Need;
use crate::paging::transfers::Origin;
use crate::seams::machine::Machine;
use crate::seams::pager::Place;
use crate::vm::Vm;

/// A modified page on its way out, and who keeps it.
pub(crate) type Leaving = (PagerId, PageId, FrameId);

impl Vm {
    /// Starts writing modified pages of external objects to the swap store, if their pagers can't
    /// be waited for. Answers those that are to go to their own pagers.
    ///
    /// A page that is written and stays is not one of them: it needs no hurry.
    pub(crate) fn double_page(&mut self, leaving: Vec<Leaving>) -> Vec<Leaving> {
        if !self.is_paging_doubly() {
            return leaving;
        }
        let mut rest = Vec::new();
        for one @ (_, page, frame) in leaving {
            let is_leaving = self.memory.frames().cleaned_as(frame).is_none();
            let Some((first, _)) = is_leaving.then(|| self.allocate_slots(1)).flatten() else {
                rest.push(one);
                continue;
            };
            self.log_page_outs(&[(page, frame)]);
            self.begin_store(&[(page, frame)], Place::Swap { first });
            self.counters.double_paged += 1;
        }
        rest
    }

    /// Notes that a page's own pager is still to get what a slot has, if the swap store was written
    /// to in that pager's place.
    pub(crate) fn defer_writeback(&mut self, page: PageId, frame: FrameId) {
        let object = self.memory.objects().get(page.object);
        if object.is_external() && object.entry(page.index).slot().is_some() {
            let owner = self.memory.frames().owner(frame);
            self.kernel.owed.insert(page, owner);
        }
    }

    /// A page has come to a frame, or stays in it. If the swap store has it in its own pager's
    /// place, it has to be written there one day.
    pub(crate) fn reclaim_copy(&mut self, page: PageId, frame: FrameId) {
        let is_external = self.memory.objects().get(page.object).is_external();
        if !is_external || !self.memory.drop_slot(page) {
            return;
        }
        self.kernel.owed.remove(&page);
        self.memory.frames_mut().set_dirty(frame, true);
    }

    /// Starts to read the first owed page from the swap store, if there is a frame for it. An owed
    /// page is one that the swap store has in place of its own pager.
    pub(crate) fn return_one(&mut self, machine: &mut dyn Machine) {
        if self.kernel.owed.is_empty() || self.is_daemon_pausing() {
            return;
        }
        while let Some((&page, &space)) = self.kernel.owed.first_key_value() {
            if !self.has_copy(page) {
                self.kernel.owed.remove(&page);
                continue;
            }
            let Some(frame) = self.take_frame(machine, Need::Reserve) else {
                return;
            };
            // Making room for it may have changed the rest, but brings no page in.
            self.kernel.owed.remove(&page);
            let origin = Origin {
                space,
                base: 0,
                is_mapped: false,
            };
            let place = self.place_of(page);
            self.begin_return(page, frame, place, origin);
            return;
        }
    }

    /// The pager has read its page: it writes it to where it belongs.
    pub(crate) fn end_return(&mut self, page: PageId, frame: FrameId) {
        self.reclaim_copy(page, frame);
        self.memory.frames_mut().settle(frame);
        self.memory.frames_mut().leave(frame);
        let Backing::External(pager) = self.memory.objects().get(page.object).backing() else {
            unreachable!("pages of external objects alone are owed");
        };
        self.log_page_outs(&[(page, frame)]);
        self.begin_store(&[(page, frame)], Place::External { pager });
    }

    /// Checks that no other part has what the swap store has of external objects: not in memory,
    /// and not with the pager, which is still to get it.
    pub(super) fn check_copies(&self) {
        for (id, object) in self
            .memory
            .objects()
            .iter()
            .filter(|(_, one)| one.is_external())
        {
            for (index, entry) in object.collect(0, u64::MAX) {
                if entry.slot().is_none() {
                    continue;
                }
                let state = entry.frame().map(|frame| self.memory.frames().state(frame));
                assert!(
                    matches!(state, None | Some(State::Filling)),
                    "page {index} of object {} is in memory and on the store",
                    id.0
                );
            }
        }
    }

    /// Returns true if a slot has `page` in place of its own pager, and no read of it runs.
    fn has_copy(&self, page: PageId) -> bool {
        let entry = self.memory.objects().entry(page);
        // The number of an object that is gone may be another's now.
        let is_stored = entry.slot().is_some() && entry.frame().is_none();
        is_stored && self.memory.objects().get(page.object).is_external()
    }
}
