//! Linux's swap read-ahead: which other pages are read from the swap store with one that is wanted.
//!
//! There were three. Linux 2.4 reads the aligned block of slots around the wanted one, up to the
//! first that is free (`valid_swaphandles` in mm/swapfile.c). Since 3.14 the block is as large as
//! the last one was of use (`__swapin_nr_pages` in mm/swap_state.c). Since 4.14 what lies around
//! the wanted page by address is read in place of that, on devices that do not seek, and each
//! region has a window of its own (`swap_vma_readahead`).
//!
//! Pages beside each other on the store go in one request; the others are requests of their own,
//! behind the one that is waited for.
//!
//! # Departures
//! Slot 0 is no header here. A page that is in memory, but mapped nowhere, does not tell its
//! region where the program is.
//!
//! # Invariants
//! 1. What is remembered of a slot is believed only if the page named has that very slot.

use crate::kernels::swap_window::Window;
use crate::kernels::{Placement, SwapAhead};
use alloc::vec;
use alloc::vec::Vec;

use crate::id::{PageId, SlotId, VirtPage};
use crate::paging::attempt::{Scene, Step};
use crate::seams::machine::Machine;
use crate::vm::Vm;

/// Pages that one page of page table maps, beyond which no window reaches.
const TABLE_PAGES: u64 = 512;
impl Vm {
    /// Starts reading a page that is on the swap store, and those that go with it.
    pub(super) fn start_swap_in(&mut self, machine: &mut dyn Machine, scene: &Scene) -> Step {
        let wanted = scene.found.page;
        let pages = match self.config.kernel.swap_ahead {
            SwapAhead::Streams => vec![wanted],
            SwapAhead::Block(most) => self.collect_block(wanted, most),
            SwapAhead::Slots(most) => self.collect_slots(wanted, most),
            SwapAhead::Addresses(most) => self.collect_around(scene, most),
        };
        let mut groups = self.divide(&pages);
        let own = match groups.iter().position(|group| group.contains(&wanted)) {
            Some(number) => groups.remove(number),
            None => vec![wanted],
        };
        let Some(ticket) = self.fetch_pages(machine, scene, own, Some(wanted), false) else {
            return Step::Stall;
        };
        self.paging_in.push(scene.fault.space);
        for group in groups {
            if self
                .fetch_pages(machine, scene, group, None, false)
                .is_none()
            {
                break;
            }
        }
        Step::Wait(ticket)
    }

    /// Returns true if pages of external objects, or of others, are read so.
    pub(crate) fn reads_as_linux(&self, is_external: bool) -> bool {
        let kernel = &self.config.kernel;
        kernel.swap_ahead != SwapAhead::Streams
            && kernel.placement == Placement::Together
            && !is_external
    }

    /// Notes whose page a slot holds now, if any.
    pub(crate) fn note_slot(&mut self, page: PageId, slot: Option<SlotId>) {
        if let Some(slot) = slot {
            self.kernel.by_slot.note(slot, page);
        }
    }

    /// Notes that a page is wanted now, and that it `was_ahead`, if its object is read so. Answers
    /// whether it is.
    pub(crate) fn note_swap_hit(&mut self, scene: &Scene, was_ahead: bool) -> bool {
        let object = self.memory.objects().get(scene.found.page.object);
        let is_read_so = self.reads_as_linux(object.is_outside(scene.found.page.index));
        if is_read_so && was_ahead {
            self.count_hit(scene);
        }
        is_read_so
    }

    fn count_hit(&mut self, scene: &Scene) {
        match self.config.kernel.swap_ahead {
            SwapAhead::Slots(_) => self.kernel.by_slot.note_hit(),
            SwapAhead::Addresses(_) => {
                if let Some(window) = self.window_of(scene) {
                    window.note_hit(scene.fault.at.0);
                }
            }
            SwapAhead::Streams | SwapAhead::Block(_) => {}
        }
    }

    fn window_of(&mut self, scene: &Scene) -> Option<&mut Window> {
        self.memory.window_at(scene.fault.space, scene.fault.at)
    }

    fn collect_around(&mut self, scene: &Scene, most: u32) -> Vec<PageId> {
        let VirtPage(at) = scene.fault.at;
        let PageId { object, index } = scene.found.page;
        let window = self.window_of(scene).expect("a fault has its region");
        let (first, end) = window.ask_around(at, most);
        let table = at - at % TABLE_PAGES;
        let (low, high) = scene.reach();
        // From here on by index in the object, like what can be reached.
        let lowest = low.max((index + first.max(table)).saturating_sub(at));
        let highest = high.min(index + (end.min(table + TABLE_PAGES) - at));
        (lowest..highest)
            .map(|index| PageId { object, index })
            .collect()
    }

    fn collect_slots(&mut self, wanted: PageId, most: u32) -> Vec<PageId> {
        let slot = self.own_slot(wanted);
        let (first, end) = self.kernel.by_slot.ask_block(slot, most);
        (first..end)
            .filter_map(|slot| self.holder_of(slot))
            .collect()
    }

    fn collect_block(&self, wanted: PageId, most: u32) -> Vec<PageId> {
        let slot = self.own_slot(wanted);
        let first = slot - slot % u64::from(most);
        (first..first + u64::from(most))
            .map_while(|slot| self.holder_of(slot))
            .collect()
    }

    fn own_slot(&self, page: PageId) -> u64 {
        let slot = self.memory.objects().entry(page).slot();
        slot.expect("a page on the store has a slot").0.into()
    }

    /// The page that a slot holds.
    fn holder_of(&self, slot: u64) -> Option<PageId> {
        let page = self.kernel.by_slot.page_written(slot)?;
        let held = self.memory.objects().entry(page).slot();
        held.is_some_and(|held| u64::from(held.0) == slot)
            .then_some(page)
    }

    /// Divides pages into groups that can each be had in one request, without those in memory.
    fn divide(&self, pages: &[PageId]) -> Vec<Vec<PageId>> {
        let mut groups: Vec<Vec<PageId>> = Vec::new();
        let mut next = None;
        for &page in pages {
            let entry = self.memory.objects().entry(page);
            let slot = entry.slot().filter(|_| self.is_fetchable(entry, false));
            match (slot, groups.last_mut()) {
                (Some(_), Some(group)) if slot == next => group.push(page),
                (Some(_), _) => groups.push(vec![page]),
                (None, _) => {}
            }
            next = slot.map(|slot| SlotId(slot.0 + 1));
        }
        groups
    }
}
