//! Flushing: the modified pages of pagers outside are written, and stay in memory.
//!
//! The page of a file that programs write to goes to that file when it leaves memory. Its owner may
//! want it there before. Every page of a range is unmapped for it, since a machine can't show of a
//! mapped one whether it is modified; those that are not are mapped again at once, and the policy
//! does not hear of them.
//!
//! # Invariants
//! 1. One event writes no more than the laundry takes, and looks at [`ROUND_MAX`] pages at most.
//! 2. What is written was not changed after it was taken from its programs.

use alloc::vec::Vec;
use core::ops::Range;

use crate::id::{FrameId, ObjectId, PageId, SpaceId, VirtPage};
use crate::memory::frame::State;
use crate::seams::arrival::Cause;
use crate::seams::machine::{Machine, Rights};
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::reclaim::ROUND_MAX;
use crate::vm::served::Served;

/// The number of pages of an object that are looked up together.
const LOOKED_UP: u64 = 1024;
/// The number of such look-ups in one event.
const LOOK_UPS_MAX: u32 = 64;

impl Vm {
    /// Starts writing the modified pages of a range that are with pagers outside, as far as the
    /// laundry has room, and takes them off the front of `due`. Answers the number of pages that
    /// could not be looked at, because something else holds them just now. To be called again as
    /// requests are answered: the range is written when nothing of it is due and the requests made
    /// until then have been answered.
    ///
    /// Work: at most 64 look-ups of 1024 pages, [`ROUND_MAX`] pages that are unmapped, and the
    /// start of as many requests.
    pub fn handle_flush(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        due: &mut Range<u64>,
    ) -> u32 {
        self.handle(now, Served::Released, machine, |vm, machine| {
            let (found, busy) = vm.find_resident(space, due);
            busy + vm.flush(machine, found)
        })
    }

    /// Takes pages off the front of `due`, and answers the frames of those that are with a pager
    /// outside and may leave, and the number of those that may not.
    fn find_resident(&self, space: SpaceId, due: &mut Range<u64>) -> (Vec<FrameId>, u32) {
        let room = self
            .config
            .laundry_max
            .saturating_sub(self.transfers.laundry());
        let most = room.min(ROUND_MAX) as usize;
        let (mut found, mut busy) = (Vec::new(), 0);
        for _ in 0..LOOK_UPS_MAX {
            let Some((part, object)) = self.next_external(space, due) else {
                due.start = due.end;
                break;
            };
            due.start = part.start;
            let (first, end) = (part.index, part.index + part.pages);
            for (index, entry) in self.memory.objects().get(object).collect(first, end) {
                if found.len() == most {
                    due.start = part.start + (index - first);
                    return (found, busy);
                }
                match entry.frame() {
                    Some(frame) if self.memory.frames().state(frame) == State::Resident => {
                        match self.memory.frames().may_leave(frame) {
                            true => found.push(frame),
                            false => busy += 1,
                        }
                    }
                    Some(_) | None => {}
                }
            }
            due.start = part.start + part.pages;
        }
        (found, busy)
    }

    /// The first part of a range that maps an external object, of a size that is looked up at once.
    fn next_external(&self, space: SpaceId, due: &Range<u64>) -> Option<(Part, ObjectId)> {
        let space = self.memory.spaces().get(space)?;
        let regions = space.collect_overlaps(due.start, due.end);
        let is_external = |object| self.memory.objects().get(object).is_external();
        let region = regions.iter().find(|region| is_external(region.object))?;
        let start = region.start.max(due.start);
        let part = Part {
            start,
            index: region.index_at(VirtPage(start)),
            pages: (region.end().min(due.end) - start).min(LOOKED_UP),
        };
        Some((part, region.object))
    }

    /// Starts writing those of `frames` that are modified. Answers the number of those that could
    /// not be unmapped.
    fn flush(&mut self, machine: &mut dyn Machine, frames: Vec<FrameId>) -> u32 {
        for &frame in &frames {
            machine.restrict(frame, Rights::None);
        }
        machine.settle();
        let mut held = Vec::new();
        while let Some((frame, setback)) = machine.take_setback() {
            held.push(frame);
            self.absorb_setback(machine, frame, setback);
        }
        // Its program may have taken a page away by a call of its own.
        let is_there = |vm: &Vm, frame| vm.memory.frames().state(frame) == State::Resident;
        held.retain(|&frame| is_there(self, frame));
        let mut modified = Vec::new();
        for frame in frames {
            if !is_there(self, frame) || held.contains(&frame) {
                continue;
            }
            if self.take_modified(machine, frame) || self.memory.frames().is_dirty(frame) {
                self.memory.frames_mut().set_dirty(frame, true);
                modified.push(frame);
            } else if !self.memory.frames().is_deactivated(frame) {
                self.map_again(machine, frame);
            }
        }
        for &frame in &modified {
            self.begin_leaving(machine, frame);
            self.memory.frames_mut().set_cleaning(frame, Cause::Cleaned);
        }
        self.send_out(machine, modified);
        held.len() as u32
    }

    /// Maps a page again wherever it was.
    fn map_again(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        let page = self.memory.frames().page(frame);
        let page = page.expect("a resident frame has a page");
        let places: Vec<_> = self.memory.reverse().iter(frame).collect();
        for (space, at) in places {
            let rights = self.rights_at(space, at, page);
            if rights != Rights::None {
                machine.enter(space, at, frame, rights);
            }
        }
    }

    /// The rights to `page` at `at`: to read alone, where a write is to make a copy.
    fn rights_at(&self, space: SpaceId, at: VirtPage, page: PageId) -> Rights {
        let space = self.memory.spaces().get(space);
        let Some(region) = space.and_then(|space| space.find(at)) else {
            return Rights::None;
        };
        match region.needs_copy || region.object != page.object {
            true => region.rights.min(Rights::Read),
            false => region.rights,
        }
    }
}

/// A part of a region, with its first page's index in the object.
struct Part {
    start: u64,
    index: u64,
    pages: u64,
}
