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

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{PageId, SlotId, VirtPage};
use crate::paging::fault::{Scene, Step};
use crate::seams::machine::Machine;
use crate::vm::Vm;

/// Pages that one page of page table maps, beyond which no window reaches.
const TABLE_PAGES: u64 = 512;
/// What a window begins with: it is wide at first.
const FIRST_HITS: u32 = 4;

/// What is read from the swap store with a page that is wanted. Counts are powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapAhead {
    /// What a detected walk is about to come to, or
    /// [`default_cluster_pages`](crate::vm::Config::default_cluster_pages) around the page.
    Streams,
    /// The aligned block of so many slots, up to the first that is free.
    Block(u32),
    /// An aligned block of at most so many slots, as large as the last was of use.
    Slots(u32),
    /// At most so many pages around the wanted one by address, as many as the last were of use in
    /// this region.
    Addresses(u32),
}

impl SwapAhead {
    /// The same with other sizes: of the largest power of two that is not above `pages`.
    pub fn resized(self, pages: u32) -> SwapAhead {
        let size = 1 << pages.max(1).ilog2();
        match self {
            SwapAhead::Streams => SwapAhead::Streams,
            SwapAhead::Block(_) => SwapAhead::Block(size),
            SwapAhead::Slots(_) => SwapAhead::Slots(size),
            SwapAhead::Addresses(_) => SwapAhead::Addresses(size),
        }
    }

    /// The most pages of one reading; `None` if that is for others to say.
    pub fn pages_max(self) -> Option<u32> {
        match self {
            SwapAhead::Streams => None,
            SwapAhead::Block(most) | SwapAhead::Slots(most) | SwapAhead::Addresses(most) => {
                Some(most)
            }
        }
    }
}

/// How much the last reading brought, and how much of it was of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// Where the last wanted page was: a slot or an address.
    last: u64,
    pages: u32,
    hits: u32,
}

impl Window {
    pub(crate) const NEW: Window = Window {
        last: 0,
        pages: 0,
        hits: FIRST_HITS,
    };

    /// How many pages to read for one that is wanted at `place`.
    fn size(&self, place: u64, most: u32) -> u32 {
        let pages = match self.hits {
            0 if place.abs_diff(self.last) == 1 => 2,
            0 => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        };
        pages.min(most).max(self.pages / 2)
    }

    /// The places to read with `at`, by address.
    fn ask_around(&mut self, at: u64, most: u32) -> (u64, u64) {
        let pages = self.size(at, most);
        let (last, length) = (self.last, u64::from(pages));
        (self.last, self.pages, self.hits) = (at, pages, 0);
        let first = match () {
            () if at == last + 1 => at,
            () if last == at + 1 => (at + 1).saturating_sub(length),
            () => at.saturating_sub((length - 1) / 2),
        };
        (first, first + length)
    }

    /// The slots to read with `slot`.
    fn ask_block(&mut self, slot: u64, most: u32) -> (u64, u64) {
        let pages = self.size(slot, most);
        if self.hits == 0 {
            self.last = slot;
        }
        (self.pages, self.hits) = (pages, 0);
        let first = slot - slot % u64::from(pages);
        (first, first + u64::from(pages))
    }
}

/// What reading by slots goes by.
pub(crate) struct BySlot {
    window: Window,
    /// The page that each slot was last written for; empty if nobody reads so.
    pages: Vec<Option<PageId>>,
}

impl BySlot {
    pub(crate) fn new(swap_ahead: SwapAhead, slots: u32) -> BySlot {
        let slots = match swap_ahead {
            SwapAhead::Block(_) | SwapAhead::Slots(_) => slots,
            SwapAhead::Streams | SwapAhead::Addresses(_) => 0,
        };
        BySlot {
            window: Window::NEW,
            pages: vec![None; slots as usize],
        }
    }

    /// Notes whose page a slot holds now.
    pub(crate) fn note(&mut self, slot: SlotId, page: PageId) {
        if let Some(holder) = self.pages.get_mut(slot.0 as usize) {
            *holder = Some(page);
        }
    }
}

impl Vm {
    /// Starts reading a page that is on the swap store, and those that go with it.
    pub(crate) fn start_swap_in(&mut self, machine: &mut dyn Machine, scene: &Scene) -> Step {
        let wanted = scene.found.page;
        let pages = match self.config.swap_ahead {
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

    /// A page that was read so is wanted now.
    pub(crate) fn note_swap_hit(&mut self, scene: &Scene) {
        match self.config.swap_ahead {
            SwapAhead::Slots(_) => self.by_slot.window.hits += 1,
            SwapAhead::Addresses(_) => {
                if let Some(window) = self.window_of(scene) {
                    (window.last, window.hits) = (scene.fault.at.0, window.hits + 1);
                }
            }
            SwapAhead::Streams | SwapAhead::Block(_) => {}
        }
    }

    fn window_of(&mut self, scene: &Scene) -> Option<&mut Window> {
        let VirtPage(at) = scene.fault.at;
        let space = self.spaces.get_mut(scene.fault.space)?;
        let (_, region) = space.regions.range_mut(..=at).next_back()?;
        (at < region.end()).then_some(&mut region.around)
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
        let (first, end) = self.by_slot.window.ask_block(slot, most);
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
        let slot = self.objects.entry(page).slot();
        slot.expect("a page on the store has a slot").0.into()
    }

    /// Whose page is in a slot.
    fn holder_of(&self, slot: u64) -> Option<PageId> {
        let page = (*self.by_slot.pages.get(slot as usize)?)?;
        let held = self.objects.entry(page).slot();
        held.is_some_and(|held| u64::from(held.0) == slot)
            .then_some(page)
    }

    /// Divides pages into groups that can each be had in one request, without those in memory.
    fn divide(&self, pages: &[PageId]) -> Vec<Vec<PageId>> {
        let mut groups: Vec<Vec<PageId>> = Vec::new();
        let mut next = None;
        for &page in pages {
            let entry = self.objects.entry(page);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_wide_at_first_and_narrows_by_half_while_nothing_is_of_use() {
        let mut window = Window::NEW;
        assert_eq!(window.ask_block(100, 8), (96, 104));
        assert_eq!(window.ask_block(203, 8), (200, 204));
        assert_eq!(window.ask_block(303, 8), (302, 304));
        assert_eq!(window.ask_block(403, 8), (403, 404));
        // The next slot is a beginning of something.
        assert_eq!(window.ask_block(404, 8), (404, 406));
    }

    #[test]
    fn a_window_grows_with_what_was_of_use() {
        let mut window = Window::NEW;
        for place in [10, 20, 30, 40] {
            window.ask_block(place, 8);
        }
        for (hits, pages) in [(1, 4), (2, 4), (3, 8), (7, 8)] {
            window.hits = hits;
            assert_eq!(window.size(500, 8), pages);
        }
    }

    #[test]
    fn by_address_a_window_goes_the_way_the_program_goes() {
        let mut window = Window::NEW;
        assert_eq!(window.ask_around(1000, 8), (997, 1005));
        (window.last, window.hits) = (1004, 7);
        assert_eq!(window.ask_around(1005, 8), (1005, 1013));
        (window.last, window.hits) = (1006, 7);
        assert_eq!(window.ask_around(1005, 8), (998, 1006));
    }

    #[test]
    fn sizes_are_powers_of_two() {
        let sizes = [1, 2, 3, 8, 9].map(|pages| SwapAhead::Slots(8).resized(pages));
        let sizes = sizes.map(|size| size.pages_max().unwrap());
        assert_eq!(sizes, [1, 2, 2, 8, 8]);
        assert_eq!(SwapAhead::Streams.resized(4), SwapAhead::Streams);
    }
}
