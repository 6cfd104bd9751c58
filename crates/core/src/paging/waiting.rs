//! Faults that wait for a frame, and frames that stay for the faults they are for.
//!
//! # Invariants
//! 1. A frame that is held or served is wired once for each of these.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::event::Fault;
use crate::id::FrameId;
use crate::memory::frame::Frames;

/// The faults that wait for a frame, and what is kept for faults.
pub(crate) struct Waiting {
    /// In the order they came.
    stalled: VecDeque<Fault>,
    /// A stalled fault whose page is in memory and which needs another frame (for a copy), with
    /// the frame of that page: else two such faults could take each other's for ever.
    held: Option<(Fault, FrameId)>,
    /// Frames of faults that have been served, until room has been made for others: serving the
    /// next fault may not take a page that its program had no chance to touch.
    served: Vec<FrameId>,
}

impl Waiting {
    /// Nothing waits.
    pub(crate) fn new() -> Waiting {
        Waiting {
            stalled: VecDeque::new(),
            held: None,
            served: Vec::new(),
        }
    }

    /// Has `fault` wait behind all others.
    pub(crate) fn stall(&mut self, fault: Fault) {
        self.stalled.push_back(fault);
    }

    /// Has `fault`, which has been tried again, wait before all others.
    pub(crate) fn stall_on(&mut self, fault: Fault) {
        self.stalled.push_front(fault);
    }

    /// Takes out the fault that is to be tried next.
    pub(crate) fn next_stalled(&mut self) -> Option<Fault> {
        self.stalled.pop_front()
    }

    /// Keeps the page of a stalled fault in memory, for one fault at a time.
    pub(crate) fn hold(&mut self, frames: &mut Frames, fault: Fault, frame: FrameId) {
        if self.held.is_none() {
            frames.wire(frame);
            self.held = Some((fault, frame));
        }
    }

    /// Lets the page go that is held for a stalled fault, which is tried next.
    pub(crate) fn try_held(&mut self, frames: &mut Frames) {
        if let Some((fault, frame)) = self.held.take() {
            frames.unwire(frame);
            self.stalled.retain(|&stalled| stalled != fault);
            self.stalled.push_front(fault);
        }
    }

    /// Lets the page go that is held for a stalled fault.
    pub(crate) fn release_held(&mut self, frames: &mut Frames) {
        if let Some((_, frame)) = self.held.take() {
            frames.unwire(frame);
        }
    }

    /// Keeps the page of a fault that has been served until room has been made for others.
    pub(crate) fn keep_served(&mut self, frames: &mut Frames, frame: FrameId) {
        frames.wire(frame);
        self.served.push(frame);
    }

    /// From here on the pages of faults that have been served may leave again.
    #[inline]
    pub(crate) fn release_served(&mut self, frames: &mut Frames) {
        for frame in self.served.drain(..) {
            frames.unwire(frame);
        }
    }

    /// Forgets a frame that is about to be freed, wires and all.
    pub(crate) fn forget(&mut self, frame: FrameId) {
        self.served.retain(|&served| served != frame);
        self.held = self.held.filter(|&(_, held)| held != frame);
    }

    pub(crate) fn has_held(&self) -> bool {
        self.held.is_some()
    }

    pub(crate) fn has_served(&self) -> bool {
        !self.served.is_empty()
    }

    pub(crate) fn has_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// The faults that wait for a frame.
    pub(crate) fn stalled(&self) -> impl Iterator<Item = &Fault> {
        self.stalled.iter()
    }

    pub(crate) fn stalled_count(&self) -> usize {
        self.stalled.len()
    }
}
