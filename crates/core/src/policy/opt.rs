//! The optimum: the page whose next use is farthest away leaves. Nobody can do better in a fixed
//! number of frames, and nobody can do it without knowing the future.
//!
//! # Invariants
//! 1. The heap holds each resident frame once, and `places` says where.
//! 2. No frame's next use is before that of its parent's: the farthest is at the top.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::registry::Settings;
use super::{Arrival, Departure, Description, Policy, Probe, Sees};
use crate::id::{FrameId, PageId};

/// What `opt` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "opt",
    summary: "the page whose next use is farthest away leaves: nobody can do better",
    lineage: &["Belady 1966", "Mattson, Gecsei, Slutz and Traiger 1970"],
    sees: Sees::Future,
    knobs: &[],
};

const NONE: u32 = u32::MAX;

/// When a page that nobody spoke of is used next.
const NEVER: u64 = u64::MAX;

struct Opt {
    /// A binary heap of frames: those of place `p` stand below place `(p - 1) / 2`.
    heap: Vec<u32>,
    /// Where in the heap each frame is.
    places: Vec<u32>,
    /// When the page of each frame is used next.
    next_uses: Vec<u64>,
}

/// Makes an `opt`.
pub fn build(settings: &Settings<'_>) -> Box<dyn Policy> {
    let frames_max = settings.frames_max as usize;
    Box::new(Opt {
        heap: Vec::with_capacity(frames_max),
        places: vec![NONE; frames_max],
        next_uses: vec![NEVER; frames_max],
    })
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
        self.next_uses[frame.index()] = NEVER;
        self.heap.push(frame.0);
        self.raise(self.heap.len() - 1, frame.0);
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

    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        self.next_uses[frame.index()] = next;
        // A page that is on its way out may still be in use.
        if self.places[frame.index()] != NONE {
            self.settle(self.places[frame.index()] as usize, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let farthest = FrameId(*self.heap.first()?);
        if probe.may_leave(farthest) {
            return Some(farthest);
        }
        let frames = self.heap.iter().map(|&frame| FrameId(frame));
        let free = frames.filter(|&frame| probe.may_leave(frame));
        free.max_by_key(|frame| (self.next_uses[frame.index()], core::cmp::Reverse(frame.0)))
    }

    fn check(&self) {
        for (place, &frame) in self.heap.iter().enumerate() {
            assert_eq!(self.places[frame as usize], place as u32);
            let above = self.heap[place.saturating_sub(1) / 2];
            assert!(
                self.next_use(above) >= self.next_use(frame),
                "the heap is no heap"
            );
        }
        let placed = self.places.iter().filter(|&&place| place != NONE).count();
        assert_eq!(placed, self.heap.len());
    }
}

impl Opt {
    fn next_use(&self, frame: u32) -> u64 {
        self.next_uses[frame as usize]
    }

    /// Puts `frame` to `place` or where else it belongs.
    fn settle(&mut self, place: usize, frame: u32) {
        let place = self.raise(place, frame);
        self.lower(place, frame);
    }

    /// Moves `frame` from `place` up as far as it must. Answers where it is then.
    fn raise(&mut self, mut place: usize, frame: u32) -> usize {
        while place > 0 {
            let above = self.heap[(place - 1) / 2];
            if self.next_use(above) >= self.next_use(frame) {
                break;
            }
            self.put(place, above);
            place = (place - 1) / 2;
        }
        self.put(place, frame);
        place
    }

    /// Moves `frame` from `place` down as far as it must.
    fn lower(&mut self, mut place: usize, frame: u32) {
        while let Some(&left) = self.heap.get(2 * place + 1) {
            let mut below = 2 * place + 1;
            let right = self.heap.get(below + 1);
            below += usize::from(right.is_some_and(|&r| self.next_use(r) > self.next_use(left)));
            let farther = self.heap[below];
            if self.next_use(farther) <= self.next_use(frame) {
                break;
            }
            self.put(place, farther);
            place = below;
        }
        self.put(place, frame);
    }

    fn put(&mut self, place: usize, frame: u32) {
        self.heap[place] = frame;
        self.places[frame as usize] = place as u32;
    }
}
