//! Trimming: pages that go, or are written, though their frames are not needed.
//!
//! A policy that gives each program the memory it needs, and no more, takes pages away when they
//! are not needed, not when others want their frames. It is asked at each tick, and when a fault is
//! over. Pages of spaces that are to be swapped out whole go the same way, at replies too.
//!
//! # Invariants
//! 1. One event trims [`ROUND_MAX`] pages at most, and writes no more than the laundry takes.
//! 2. The page of the fault that has just been answered stays.

use alloc::vec::Vec;

use crate::id::FrameId;
use crate::seams::arrival::{Cause, Departure};
use crate::seams::machine::{Machine, Rights};
use crate::seams::policy::Policy;
use crate::seams::probe::Probe;
use crate::vm::Vm;
use crate::vm::reclaim::ROUND_MAX;

impl Vm {
    /// Gives up the pages that the policy trims, then writes those that it names to be cleaned.
    pub(crate) fn trim(&mut self, machine: &mut dyn Machine) {
        // No modified page could go, and repeated tries would only remove mappings.
        if self.is_store_full {
            return;
        }
        let asked = self.counters.questions;
        let unwanted = self.collect_answers(machine, None, |policy, probe| policy.trim(probe));
        let has_sent = !unwanted.is_empty();
        if has_sent {
            self.send_out(machine, unwanted);
        }
        let back = Some(Cause::Cleaned);
        let unclean = self.collect_answers(machine, back, |policy, probe| policy.clean(probe));
        let is_cleaning = !unclean.is_empty();
        if is_cleaning {
            self.send_out(machine, unclean);
        }
        if has_sent || is_cleaning || self.counters.questions != asked {
            self.settle_all(machine);
        }
    }

    /// Lets go the pages of spaces that load control wants out of memory.
    pub(crate) fn swap_out_whole(&mut self, machine: &mut dyn Machine) {
        if self.is_store_full {
            return;
        }
        let whole = self.choose_suspended(self.trim_max(), true);
        if whole.is_empty() {
            return;
        }
        whole
            .iter()
            .for_each(|&frame| self.begin_leaving(machine, frame));
        self.send_out(machine, whole);
        self.settle_all(machine);
    }

    fn settle_all(&mut self, machine: &mut dyn Machine) {
        self.settle(machine);
        // What was found to be gone has been discarded.
        machine.settle();
    }

    fn trim_max(&self) -> usize {
        let room = self
            .config
            .laundry_max
            .saturating_sub(self.transfers.laundry());
        room.min(ROUND_MAX) as usize
    }

    /// Asks until there is no more answer, and takes each frame that is named from its page: for
    /// good, or until the page has been written and comes `back`.
    fn collect_answers(
        &mut self,
        machine: &mut dyn Machine,
        back: Option<Cause>,
        ask: fn(&mut dyn Policy, &mut Probe<'_>) -> Option<FrameId>,
    ) -> Vec<FrameId> {
        let most = self.trim_max();
        let mut named = Vec::new();
        while named.len() < most {
            let Some(frame) = self.ask_policy(machine, ask) else {
                break;
            };
            if !self.may_choose(frame) {
                self.counters.refusals += 1;
                break;
            }
            self.begin_leaving(machine, frame);
            if let Some(back) = back {
                self.memory.frames_mut().set_cleaning(frame, back);
            }
            named.push(frame);
        }
        named
    }

    /// Removes `frame` from its users. What becomes of its page is decided when that has
    /// settled.
    pub(crate) fn begin_leaving(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        let page = self.memory.frames().page(frame);
        let page = page.expect("a resident frame has a page");
        self.policy.page_left(frame, page, Departure::Evicted);
        self.memory.frames_mut().leave(frame);
        machine.restrict(frame, Rights::None);
    }
}
