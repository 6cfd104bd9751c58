//! The budget: following what the supervisor gives, and asking it for more.
//!
//! An engine that uses most of its frames takes of those that nobody has, as much again as it has.
//! If there are none it says that it is short while it still has some, so that the program need not
//! wait for the answer. It does so once for a budget: the supervisor knows from then on, and forgets
//! it when it gives more, or at its intervals. It also says when it is down to a budget that was
//! lowered, as others may wait for what it had.
//!
//! A child that is about to be forked gets what it needs of what nobody has, or of what its parent
//! does not use. Only where there is too little of either the two share what the parent had.

use std::os::fd::AsFd;

use tidemark_core::share;

use super::{Engine, now};
use crate::control;
use crate::shared::ProcessIndex;
use crate::sys::socket;

/// How long an engine waits for the frames that a child needs. The supervisor has them at once, or
/// has to take them from another engine, or has none.
const ANSWER_NS_MAX: u64 = 4_000_000;

/// What there is to be said to the supervisor.
#[derive(Default)]
pub(super) struct Asking {
    voice: share::Voice,
    /// The supervisor is to be poked.
    has_news: bool,
}

impl Engine {
    /// Takes over the budget that the supervisor has set.
    pub(super) fn follow_budget(&mut self) {
        let record = self.record();
        let least = self.vm.config().reserve + 1;
        let limits = (least, self.vm.config().frames_max);
        let wanted = self
            .shared
            .process(record)
            .follow_budget(self.budget, limits);
        if wanted != self.budget {
            let (before, after) = (self.budget.into(), wanted.into());
            self.asking.voice.note_given(before, after);
            self.budget = wanted;
            self.vm.handle_limit(self.now, &mut self.machine, wanted);
        }
    }

    /// Notes in the record whether frames are short. What is published must be current.
    pub(super) fn look_for_shortage(&mut self) {
        // What is recorded has room for all of it.
        if self.control.is_none() || self.sampling.is_some() {
            return;
        }
        let resident = self.vm.frames().in_use();
        let arrivals = self.vm.counters().arrivals();
        let voice = &mut self.asking.voice;
        let news = voice.news(self.budget.into(), resident.into(), arrivals);
        let record = self.shared.process(self.record());
        let is_asking = news.asks.is_some_and(|frames| record.ask(frames));
        self.asking.has_news |= is_asking || news.has_given_up;
    }

    /// Takes of the frames that nobody has, before this process is short of its own.
    pub(super) fn take_unassigned(&mut self) {
        if self.control.is_none() || self.sampling.is_some() {
            return;
        }
        let in_use = self.vm.frames().in_use();
        let most = share::takes(self.budget.into(), in_use.into());
        // No more than half of them: others may need some at the same moment.
        let most = most.min(self.shared.unassigned().div_ceil(2)) as u32;
        let record = self.shared.process(self.record());
        if most > 0 && record.take_unassigned(1, most) > 0 {
            self.follow_budget();
        }
    }

    /// Sees to it before a fork that two processes can hold what this one does: where neither what
    /// nobody has nor what is not used here suffices for a child, lowers the budget to a half,
    /// having asked for as much as two need. Answers what is left. The record follows when there is
    /// one for the child: [`split_budget`](Self::split_budget).
    pub(super) fn make_way(&mut self) -> u32 {
        // Alone, nobody would give anything back; and what is recorded has room for all of it.
        if self.control.is_none() || self.sampling.is_some() {
            return self.budget;
        }
        let in_use = u64::from(self.vm.frames().in_use());
        let is_enough = self.shared.unassigned() >= share::needs_at_fork(in_use)
            || share::left_at_fork(self.budget.into(), in_use).is_some();
        if is_enough {
            return self.budget;
        }
        self.ask_for_two();
        let least = self.vm.config().reserve + 1;
        self.budget = (self.budget / 2).max(least);
        self.vm.handle_limit(now(), &mut self.machine, self.budget);
        self.budget
    }

    /// Gives a child that is about to be forked what it needs: of what nobody has, of what this
    /// process does not use, or half of what it has. The supervisor holds it back from when it
    /// stands in the child's record.
    pub(super) fn split_budget(&mut self, child: ProcessIndex) {
        if self.control.is_none() || self.sampling.is_some() {
            return;
        }
        let (parent, child) = (
            self.shared.process(self.record()),
            self.shared.process(child),
        );
        let in_use = u64::from(self.vm.frames().in_use());
        let needed = share::needs_at_fork(in_use).min(u32::MAX.into()) as u32;
        if child.take_unassigned(needed, needed) > 0 {
            return child.set_understood(needed);
        }
        loop {
            let before = parent.budget();
            let Some(left) = share::left_at_fork(before.into(), in_use) else {
                break;
            };
            child.set_budget(needed);
            child.set_understood(needed);
            if parent.change_budget(before, left as u32) {
                return self.follow_budget();
            }
        }
        // The child starts with what this engine goes by, which may be more than its half: the
        // supervisor may have lowered the whole meanwhile.
        child.set_understood(self.budget);
        loop {
            let before = parent.budget();
            let half = before / 2;
            child.set_budget(half);
            if parent.change_budget(before, before - half) {
                return;
            }
        }
    }

    /// Asks for as many frames as this process and a child use together, and waits for them: for a
    /// short while, as there may be none.
    fn ask_for_two(&mut self) {
        let wanted = share::asks(self.vm.frames().in_use().into());
        let record = self.shared.process(self.record());
        let before = record.budget();
        let is_all = u64::from(before) >= self.shared.frames_total();
        if is_all || wanted <= before.into() || !record.ask(wanted) {
            return;
        }
        self.asking.has_news = true;
        self.speak_up();
        let end = now().after_ns(ANSWER_NS_MAX);
        while self.shared.process(self.record()).budget() == before && now() < end {
            let Some(control) = &self.control else { return };
            // Whatever the wait answers, the loop looks for itself.
            let _ = socket::wait_readable(&[control.as_fd()], Some(ANSWER_NS_MAX / 4));
            self.hear_supervisor();
        }
        self.now = now();
        self.follow_budget();
    }

    /// Tells the supervisor what there is to say. On the engine's own thread: no other has the
    /// connection.
    pub(super) fn speak_up(&mut self) {
        if !std::mem::take(&mut self.asking.has_news) {
            return;
        }
        if let Some(control) = &self.control {
            // If it is gone, that shows when it is next heard.
            let _ = control::poke(control.as_fd());
        }
    }
}
