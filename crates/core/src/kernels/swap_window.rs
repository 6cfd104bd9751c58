//! The state of Linux's swap read-ahead: how much the last reading brought, how much of it was of
//! use, and whose page each slot was written for.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{PageId, SlotId};
use crate::kernels::SwapAhead;

/// The hits that a window begins with: it is wide at first.
const FIRST_HITS: u32 = 4;

/// The pages that the last read brought, and how much of it was of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// The place of the last wanted page: a slot or an address.
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

    /// The number of pages to read for one that is wanted at `place`.
    fn size(&self, place: u64, most: u32) -> u32 {
        let pages = match self.hits {
            0 if place.abs_diff(self.last) == 1 => 2,
            0 => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        };
        pages.min(most).max(self.pages / 2)
    }

    /// The places to read with `at`, by address.
    pub(crate) fn ask_around(&mut self, at: u64, most: u32) -> (u64, u64) {
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

    /// Notes that a page that was read so was of use, at `at`.
    pub(crate) fn note_hit(&mut self, at: u64) {
        (self.last, self.hits) = (at, self.hits + 1);
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

/// The state of reading by slots.
pub(crate) struct BySlot {
    window: Window,
    /// The page that each slot was last written for; empty if no system reads so.
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

    /// Notes that a page that was read so was of use.
    pub(crate) fn note_hit(&mut self) {
        self.window.hits += 1;
    }

    /// The slots to read with `slot`.
    pub(crate) fn ask_block(&mut self, slot: u64, most: u32) -> (u64, u64) {
        self.window.ask_block(slot, most)
    }

    /// The page that `slot` was last written for.
    pub(crate) fn page_written(&self, slot: u64) -> Option<PageId> {
        *self.pages.get(slot as usize)?
    }

    /// Notes whose page a slot holds now.
    pub(crate) fn note(&mut self, slot: SlotId, page: PageId) {
        if let Some(holder) = self.pages.get_mut(slot.0 as usize) {
            *holder = Some(page);
        }
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
}
