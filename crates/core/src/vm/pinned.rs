//! Pinned pages: those that the machine can't unmap, because someone else holds them.
//!
//! A program may have given a page to its operating system: as the target of input or output that
//! is under way, or for good (buffers that are registered with a device or a ring). Such a page is
//! taken from the policy when it is found, and tried again after pauses that grow. One that could
//! not be unmapped several times in a row counts as *lasting*. Lasting pins may fill memory up to
//! what all other pages need at the least; those beyond that are *disowned*: their frames are
//! freed, the pages stay where they are, and the driver learns their addresses, to
//! [bring them back](Vm::handle_disowned) later.
//!
//! # Invariants
//! 1. A pinned frame is resident and wired, and the policy knows nothing of it.
//! 2. One event tries [`ROUND_MAX`] pinned pages again at most, none before its pause is over.
//!
//! [`fault`](crate::vm::faults) takes in what the machine could not do,
//! [`reclaim`](crate::vm::reclaim) and [`trim`](crate::vm::trim) choose the pages that then
//! turn out to be pinned.

use alloc::vec::Vec;

use crate::decision::Decision;
use crate::event::Event;
use crate::id::{FrameId, PageId, SpaceId, Ticket, VirtPage};
use crate::paging::attempt::Need;
use crate::paging::pins::TRIES_LASTING;
use crate::seams::arrival::Cause;
use crate::seams::machine::{Machine, Rights};
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::reclaim::ROUND_MAX;
use crate::vm::served::Served;

/// The share of memory that pinned pages leave to all others, in eighths.
const MOVABLE_EIGHTHS: u32 = 1;
/// A page may need a frame for a copy of it, beside its own.
const MOVABLE_LEAST: u32 = 2;

impl Vm {
    /// The number of pages in memory that could not be unmapped several times in a row, and are not
    /// tried again yet.
    pub fn pinned(&self) -> u32 {
        self.pins.lasting()
    }

    /// Takes back pages that were [disowned](Event::Disowned), if they can be unmapped by now or
    /// there is room for more that can't: `pages` from `at` on, those that are in memory already
    /// or have no region left out. Answers false if there is no frame for all of them now.
    ///
    /// Another event reports those that have to stay disowned: [`Event::Disowned`].
    ///
    /// Work: at most one round of reclaim, and one step a page.
    pub fn handle_disowned(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
        pages: u32,
    ) -> bool {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            vm.take_back(machine, space, at, pages)
        })
    }

    fn take_back(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
        pages: u32,
    ) -> bool {
        let places = (0..u64::from(pages)).map(|offset| at.plus(offset));
        let absent: Vec<VirtPage> = places
            .filter(|&at| self.is_standing(space, at).is_some())
            .collect();
        let frames = self.take_frames(machine, absent.len() as u32, Need::Standing);
        for (&at, &frame) in absent.iter().zip(&frames) {
            let page = self.is_standing(space, at).expect("seen above");
            self.memory.fill(frame, page, Ticket(0));
            self.memory.frames_mut().set_owner(frame, space);
            self.memory.frames_mut().settle(frame);
            self.memory.frames_mut().wire(frame);
            self.pins.set(frame, TRIES_LASTING - 1, self.now);
            self.stand_in(machine, space, at, frame);
        }
        self.try_pinned(machine, &frames);
        frames.len() == absent.len()
    }

    /// The page at `at`, if there is a region and nothing is known of it.
    fn is_standing(&self, space: SpaceId, at: VirtPage) -> Option<PageId> {
        let region = self.memory.spaces().get(space)?.find(at)?;
        let page = PageId {
            object: region.object,
            index: region.index_at(at),
        };
        let entry = self.memory.objects().entry(page);
        (entry.frame().is_none() && entry.slot().is_none()).then_some(page)
    }

    /// Keeps a page in memory that was to leave and can't: out of the policy's reach.
    pub(crate) fn pin(&mut self, frame: FrameId) {
        self.memory.frames_mut().settle(frame);
        self.memory.frames_mut().wire(frame);
        self.pins.note_failure(frame, self.now);
        let page = self.memory.frames().page(frame);
        self.outbox
            .log(Decision::Keep(page.expect("a resident frame has a page")));
    }

    /// Takes in that a page known to be pinned could not be unmapped again.
    pub(crate) fn note_pinned(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        self.pins.note_failure(frame, self.now);
        if self.is_crowded() && self.pins.is_lasting(frame) {
            self.disown(machine, frame);
        }
    }

    /// Puts the next try of a pinned page off: a request to unmap it and others has failed for all
    /// of them.
    pub(crate) fn put_off_pinned(&mut self, frame: FrameId) {
        self.pins.put_off(frame, self.now);
    }

    /// Tries pinned pages again whose pauses are over.
    pub(crate) fn try_due_pins(&mut self, machine: &mut dyn Machine) {
        let due = self.pins.collect_due(self.now, ROUND_MAX);
        self.try_pinned(machine, &due);
    }

    /// Disowns lasting pins until all others have what they need of a limit that was lowered.
    pub(crate) fn disown_excess(&mut self, machine: &mut dyn Machine) {
        if !self.is_crowded() {
            return;
        }
        for frame in self.pins.collect_lasting() {
            if !self.is_crowded() {
                return;
            }
            self.disown(machine, frame);
        }
    }

    /// Unmaps pinned pages that are due; those for which that works are the policy's again.
    fn try_pinned(&mut self, machine: &mut dyn Machine, frames: &[FrameId]) {
        if frames.is_empty() {
            return;
        }
        for &frame in frames {
            machine.restrict(frame, Rights::None);
        }
        self.settle(machine);
        for &frame in frames {
            // A setback has put the others off, or they are gone.
            if self.pins.is_due(frame, self.now) {
                self.unpin(frame);
            }
        }
    }

    fn unpin(&mut self, frame: FrameId) {
        self.pins.remove(frame);
        self.memory.frames_mut().unwire(frame);
        self.memory.frames_mut().set_deactivated(frame, true);
        self.tell_arrival(frame, Cause::Kept);
    }

    /// Returns true if pinned pages leave too few frames to all others.
    fn is_crowded(&self) -> bool {
        let limit = self.memory.frames().limit();
        let least = (limit * MOVABLE_EIGHTHS).div_ceil(8).max(MOVABLE_LEAST);
        self.pins.len() + least + self.config.reserve > limit
    }

    /// Frees the frame of a page that stays in place in a program, if that program alone sees it.
    fn disown(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        let page = self.memory.frames().page(frame);
        let page = page.expect("a pinned frame has a page");
        let object = self.memory.objects().get(page.object);
        let mut places = self.memory.reverse().iter(frame);
        let (Some((space, at)), None) = (places.next(), places.next()) else {
            return;
        };
        if object.has_pager() || object.shadow().is_some() || !object.is_exclusive() {
            return;
        }
        drop(places);
        if !machine.disown(frame) {
            return;
        }
        self.memory.clear_frame(page);
        self.memory.drop_slot(page);
        self.release_frame(machine, frame);
        self.counters.disowned += 1;
        self.outbox.tell(Event::Disowned { space, at });
        self.outbox.log(Decision::Disown(page));
    }

    /// Panics if the pins contradict the frames.
    pub(crate) fn check_pins(&self) {
        self.pins.check();
        for frame in self.pins.iter() {
            assert!(
                self.memory.frames().page(frame).is_some()
                    && !self.memory.frames().may_leave(frame)
            );
        }
    }
}
