//! A heap of frames: the frame with the greatest key is found at once, and keys change at any time.
//!
//! # Invariants
//! 1. The heap holds each frame once at most, and `places` says where.
//! 2. No key is greater than that of its parent: the greatest is at the top.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::FrameId;

/// In place of the place of a frame that is not in.
const NONE: u32 = u32::MAX;

/// A frame and its key.
#[derive(Clone, Copy)]
struct Member<K> {
    key: K,
    frame: FrameId,
}

/// Frames by key.
pub(crate) struct FrameHeap<K> {
    /// A binary heap: those of place `p` stand below place `(p - 1) / 2`.
    heap: Vec<Member<K>>,
    /// The place of each frame in the heap.
    places: Column<u32>,
}

impl<K: Copy + Ord> FrameHeap<K> {
    /// Makes room for `frames_max` frames.
    pub fn new(frames_max: u32) -> FrameHeap<K> {
        let frames_max = frames_max as usize;
        FrameHeap {
            heap: Vec::with_capacity(frames_max),
            places: Column::new(NONE, frames_max),
        }
    }

    /// Adds `frame`, which is not in.
    pub fn insert(&mut self, frame: FrameId, key: K) {
        assert_eq!(
            self.places[frame.index()],
            NONE,
            "the frame is held already"
        );
        self.places.reach(frame.index());
        let member = Member { key, frame };
        self.heap.push(member);
        self.raise(self.heap.len() - 1, member);
    }

    /// Removes `frame`. Answers its key, if it was in.
    pub fn remove(&mut self, frame: FrameId) -> Option<K> {
        let place = core::mem::replace(&mut self.places[frame.index()], NONE);
        if place == NONE {
            return None;
        }
        let place = place as usize;
        let removed = self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            self.settle(place, moved);
        }
        Some(removed.key)
    }

    /// Gives `frame` another key, if it is in.
    #[inline]
    pub fn set(&mut self, frame: FrameId, key: K) {
        let place = self.places[frame.index()];
        if place == NONE {
            return;
        }
        let place = place as usize;
        let member = Member { key, frame };
        // It goes one way only, and which is known.
        if key >= self.heap[place].key {
            self.raise(place, member);
        } else {
            self.lower(place, member);
        }
    }

    /// The key of `frame`, if it is in.
    #[inline]
    pub fn key(&self, frame: FrameId) -> Option<K> {
        let place = self.places[frame.index()];
        (place != NONE).then(|| self.heap[place as usize].key)
    }

    /// The frame with the greatest key among those that `may_leave`: the first in memory where
    /// several have it.
    pub fn greatest(&self, may_leave: impl Fn(FrameId) -> bool) -> Option<FrameId> {
        let greatest = self.heap.first()?.frame;
        if may_leave(greatest) {
            return Some(greatest);
        }
        let free = self.heap.iter().filter(|member| may_leave(member.frame));
        let greatest = free.max_by_key(|member| (member.key, core::cmp::Reverse(member.frame.0)));
        greatest.map(|member| member.frame)
    }

    /// Panics if the order of the heap is violated, or its table of places is wrong.
    pub fn check(&self) {
        for (place, member) in self.heap.iter().enumerate() {
            assert_eq!(self.places[member.frame.index()], place as u32);
            let above = self.heap[place.saturating_sub(1) / 2];
            assert!(above.key >= member.key, "the heap is no heap");
        }
        let placed = self.places.iter().filter(|&&place| place != NONE).count();
        assert_eq!(placed, self.heap.len());
    }

    /// Puts `member` to `place` or where else it belongs.
    fn settle(&mut self, place: usize, member: Member<K>) {
        let place = self.raise(place, member);
        self.lower(place, member);
    }

    /// Moves `member` from `place` up as far as it must. Answers where it is then.
    fn raise(&mut self, mut place: usize, member: Member<K>) -> usize {
        while place > 0 {
            let above = self.heap[(place - 1) / 2];
            if above.key >= member.key {
                break;
            }
            self.put(place, above);
            place = (place - 1) / 2;
        }
        self.put(place, member);
        place
    }

    /// Moves `member` from `place` down as far as it must.
    fn lower(&mut self, mut place: usize, member: Member<K>) {
        while let Some(left) = self.heap.get(2 * place + 1) {
            let mut below = 2 * place + 1;
            let right = self.heap.get(below + 1);
            below += usize::from(right.is_some_and(|right| right.key > left.key));
            let farther = self.heap[below];
            if farther.key <= member.key {
                break;
            }
            self.put(place, farther);
            place = below;
        }
        self.put(place, member);
    }

    fn put(&mut self, place: usize, member: Member<K>) {
        self.heap[place] = member;
        self.places.written_mut()[member.frame.index()] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_key_is_found_as_keys_come_change_and_go() {
        let mut heap = FrameHeap::new(5);
        for (frame, key) in [3, 9, 4, 7, 1].into_iter().enumerate() {
            heap.insert(FrameId(frame as u32), key);
            heap.check();
        }
        let all = |_: FrameId| true;
        assert_eq!(heap.greatest(all), Some(FrameId(1)));
        assert_eq!(heap.greatest(|frame| frame != FrameId(1)), Some(FrameId(3)));
        heap.set(FrameId(1), 2);
        heap.check();
        assert_eq!(
            (heap.greatest(all), heap.key(FrameId(1))),
            (Some(FrameId(3)), Some(2))
        );
        assert_eq!(heap.remove(FrameId(3)), Some(7));
        heap.check();
        assert_eq!(heap.remove(FrameId(3)), None);
        heap.set(FrameId(3), 100);
        assert_eq!(heap.greatest(all), Some(FrameId(2)));
        assert_eq!(heap.greatest(|_| false), None);
    }
}
