//! The optimum: the page whose next use is farthest away leaves. Nobody can do better in a fixed
//! number of frames, and nobody can do it without knowing the future.
//!
//! # Invariants
//! 1. The heap holds each resident frame once, and `places` says where.
//! 2. No frame's next use is before that of its parent's: the farthest is at the top.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, PageId};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `opt`.
pub static DESCRIPTION: Description = Description {
    name: "opt",
    summary: "the page whose next use is farthest away leaves: nobody can do better",
    lineage: &["Belady 1966", "Mattson, Gecsei, Slutz and Traiger 1970"],
    sees: Sees::Future,
    knobs: &[],
};

const NONE: u32 = u32::MAX;

/// The next use of a page that nobody spoke of.
const NEVER: u64 = u64::MAX;

/// A resident page.
#[derive(Clone, Copy)]
struct Page {
    /// The time of its next use.
    next: u64,
    frame: FrameId,
}

struct Opt {
    /// A binary heap: those of place `p` stand below place `(p - 1) / 2`.
    heap: Vec<Page>,
    /// The place of each frame in the heap.
    places: Column<u32>,
}

/// Makes an `opt`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max as usize;
    Opt {
        heap: Vec::with_capacity(frames_max),
        places: Column::new(NONE, frames_max),
    }
}

impl Policy for Opt {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        assert_eq!(
            self.places[frame.index()],
            NONE,
            "the frame is held already"
        );
        self.places.reach(frame.index());
        // Nobody has spoken of the page yet.
        let page = Page { next: NEVER, frame };
        self.heap.push(page);
        self.raise(self.heap.len() - 1, page);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        let place = core::mem::replace(&mut self.places[frame.index()], NONE);
        if place == NONE {
            return;
        }
        let place = place as usize;
        self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            self.settle(place, moved);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let farthest = self.heap.first()?.frame;
        if probe.may_leave(farthest) {
            return Some(farthest);
        }
        let pages = self.heap.iter();
        let free = pages.filter(|page| probe.may_leave(page.frame));
        let farthest = free.max_by_key(|page| (page.next, core::cmp::Reverse(page.frame.0)));
        farthest.map(|page| page.frame)
    }

    fn check(&self) {
        for (place, page) in self.heap.iter().enumerate() {
            assert_eq!(self.places[page.frame.index()], place as u32);
            let above = self.heap[place.saturating_sub(1) / 2];
            assert!(above.next >= page.next, "the heap is no heap");
        }
        let placed = self.places.iter().filter(|&&place| place != NONE).count();
        assert_eq!(placed, self.heap.len());
    }
}

impl SimulatedPolicy for Opt {
    #[inline]
    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        // A page that is on its way out may still be in use.
        let place = self.places[frame.index()];
        if place == NONE {
            return;
        }
        let place = place as usize;
        let page = Page { next, frame };
        // A page that has just been used is used again later than now: it only goes up.
        if next >= self.heap[place].next {
            self.raise(place, page);
        } else {
            self.settle(place, page);
        }
    }
}

impl SpacePolicy for Opt {}

impl Opt {
    /// Puts `page` to `place` or where else it belongs.
    fn settle(&mut self, place: usize, page: Page) {
        let place = self.raise(place, page);
        self.lower(place, page);
    }

    /// Moves `page` from `place` up as far as it must. Answers where it is then.
    fn raise(&mut self, mut place: usize, page: Page) -> usize {
        while place > 0 {
            let above = self.heap[(place - 1) / 2];
            if above.next >= page.next {
                break;
            }
            self.put(place, above);
            place = (place - 1) / 2;
        }
        self.put(place, page);
        place
    }

    /// Moves `page` from `place` down as far as it must.
    fn lower(&mut self, mut place: usize, page: Page) {
        while let Some(left) = self.heap.get(2 * place + 1) {
            let mut below = 2 * place + 1;
            let right = self.heap.get(below + 1);
            below += usize::from(right.is_some_and(|right| right.next > left.next));
            let farther = self.heap[below];
            if farther.next <= page.next {
                break;
            }
            self.put(place, farther);
            place = below;
        }
        self.put(place, page);
    }

    fn put(&mut self, place: usize, page: Page) {
        self.heap[place] = page;
        self.places.written_mut()[page.frame.index()] = place as u32;
    }
}
