//! The budget: following what the supervisor gives, and asking it for more.
//!
//! An engine that uses most of its frames takes unassigned ones, as many again as it has.
//! If there are none it says that it is short while it still has some, so that the program need not
//! wait for the answer. It does so once for a budget: the supervisor knows from then on, and
//! forgets it when it gives more, or at its intervals. It also says when it is down to a budget
//! that was lowered, as others may wait for what it had.
//!
//! What a process has in memory beside its frames counts against the budget, too, but for a little
//! that every process has: the tables of its engine, and what is not managed. As many frames are
//! not used, up to a quarter of the budget.
//!
//! A program that the supervisor has suspended is [parked](super::parking).
//!
//! A child that is about to be forked gets what it needs from unassigned frames, or from those that
//! its parent does not use. Only where there is too little of either the two share what the parent
//! had: then the parent gives up pages first, until each may have as many as are left.
//!
//! # Invariants
//! 1. When a process forks it has in use no more than either of the two may use. What does not
//!    leave in time is the exception: it is shared, and charged to neither.
//! 2. From then on until the fork is over the core's limit does not change: pages would begin to
//!    leave, in both processes.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_partition as share;

use tidemark_core::compressed::division::SHRINKING_ROOM;
use tidemark_core::time::Time;
use tidemark_tasks::BESIDE_PART;

use super::Engine;
use crate::parts::units::now;
use crate::shared::{Counter, ProcessIndex};

/// The time for which an engine waits for more memory before it ends a program for want of it.
const MORE_NS_MAX: u64 = 2_000_000_000;

/// The time for which an engine that forks waits for unassigned frames while they are divided anew.
pub(super) const DIVIDING_NS_MAX: u64 = 100_000_000;

/// The memory that every process has beside its frames, in pages: its engine at rest, and its
/// stack.
const BESIDE_FREE: u64 = 512;
/// The step, in frames, in which memory beside the frames counts.
const BESIDE_STEP: u64 = 64;

impl Engine {
    /// Takes over the budget that the supervisor has set.
    pub(super) fn follow_budget(&mut self) {
        self.follow_budget_to(u32::MAX);
    }

    /// Takes over the budget that the supervisor has set, or `most` frames of it.
    fn follow_budget_to(&mut self, most: u32) {
        let config = self.vm.config();
        let least = config.reserve + 1;
        let limits = (least, most.clamp(least, config.frames_max));
        let wanted = self.line.process().follow_budget(limits);
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        self.task.handle_budget(self.now, wanted, vm, machine);
        self.store.read_in_one_piece(wanted);
    }

    /// Learns how much memory of no file this process has in all, and has the core use fewer frames
    /// by what is beside them.
    pub(super) fn charge_beside(&mut self, anonymous_pages: u64) {
        if self.has_own_memory() {
            return;
        }
        let in_use = self.in_use();
        let found = anonymous_pages.saturating_sub(u64::from(in_use) + BESIDE_FREE);
        let beside = self.addresses.adoption_mut().note_beside(found);
        let most = u64::from(self.task.budget() / BESIDE_PART);
        let beside = beside.min(most) / BESIDE_STEP * BESIDE_STEP;
        self.telemetry.set(Counter::FramesBeside, beside);
        let (vm, machine) = (&mut self.vm, &mut self.machine);
        self.task
            .handle_beside(self.now, beside as u32, vm, machine);
    }

    /// The number of pages that frames and compressed pages have.
    pub(super) fn in_use(&self) -> u32 {
        self.vm.frames().in_use() + self.store.pages_held()
    }

    /// The number of pages that count as in use: while those are more than the budget, what
    /// compressed pages may take then, too.
    pub(super) fn claimed(&self) -> u32 {
        let in_use = self.in_use();
        if in_use <= self.task.shared_pages() || self.store.compressed().is_none() {
            return in_use;
        }
        in_use + self.charged().saturating_sub(in_use).min(SHRINKING_ROOM)
    }

    /// The number of pages that were last said to be in use, with those that are charged to neither
    /// side of a fork.
    fn charged(&self) -> u32 {
        let record = self.line.process();
        let charged = record.counter(Counter::FramesResident).load(Relaxed);
        charged as u32 + self.intake.freeze().shared()
    }

    /// The number of pages of memory that this process has, with what counts as such.
    fn used(&self) -> u32 {
        self.in_use() + self.task.beside()
    }

    /// Lets compressed pages take what no frame has. Nothing else takes it before this is said
    /// again.
    pub(super) fn allow_compressed(&mut self) {
        let is_parked = self.task.is_parked();
        if let Some(compressed) = self.store.compressed_mut() {
            compressed.set_emptying(is_parked);
        }
        let (held, is_alone) = (self.store.pages_held(), !self.setup.store.has_file());
        let (most, is_shrinking) = self.task.log_pages(&self.vm, held, is_alone);
        // What is over the budget has been charged, and not a page more.
        let most = match is_shrinking && !is_alone {
            true => most.min(self.charged().saturating_sub(self.vm.frames().in_use())),
            false => most,
        };
        self.store.allow(most, is_shrinking);
    }

    /// Keeps house in compressed memory, and has the core use what that leaves. Answers whether
    /// anything follows from it.
    pub(super) fn tend_compressed(&mut self) -> bool {
        if self.store.compressed().is_none() {
            return false;
        }
        self.allow_compressed();
        let pages = self.task.shared_pages();
        let has_started = self.store.tend(self.vm.slots_mut(), pages);
        let (held, vm) = (self.store.pages_held(), &mut self.vm);
        let machine = &mut self.machine;
        self.task.handle_held(self.now, held, vm, machine) || has_started
    }

    /// Notes in the record whether frames are short. What is published must be current.
    pub(super) fn look_for_shortage(&mut self) {
        // What is recorded has room for all of it.
        if self.has_own_memory() {
            return;
        }
        let in_use = self.in_use();
        let news = self.task.poll_news(&self.vm, in_use);
        let record = self.line.process();
        let is_asking = news.asks.is_some_and(|frames| record.ask(frames));
        if is_asking || news.has_given_up {
            self.line.note_news();
        }
    }

    /// Takes unassigned frames, before this process is short of its own with `coming` more.
    ///
    /// Without a supervisor that is what it has left.
    pub(super) fn take_unassigned(&mut self, coming: u32) {
        if self.telemetry.is_recording() || self.task.is_parked() {
            return;
        }
        let most = share::takes(self.task.budget().into(), (self.used() + coming).into());
        // No more than half of them: others may need some at the same moment.
        let most = most.min(self.line.shared().unassigned().div_ceil(2)) as u32;
        let record = self.line.process();
        if most > 0 && record.take_unassigned(1, most) > 0 {
            self.follow_budget();
        }
    }

    /// Sees to it before a fork that two processes can hold what this one does: where neither
    /// unassigned nor unused frames suffice for a child, asks for as many as two need.
    pub(super) fn make_way(&mut self) {
        let record = self.line.process();
        if self.has_own_memory() || record.can_endow(self.used()) {
            return;
        }
        self.ask_for_two();
        self.now = now();
    }

    /// Limits the frames to the pages that this process may have when it forks, and returns their
    /// number: all that it may use, or half of that if the child [is to share](Self::make_way) it.
    /// The supervisor may change either at any time.
    ///
    /// `None` until `end`, while it divides unassigned frames: nothing is given up for want of
    /// those.
    pub(super) fn keep_way(&mut self, end: Time) -> Option<u32> {
        if self.has_own_memory() {
            return Some(self.task.shared_pages());
        }
        let record = self.line.process();
        let whole = record.budget();
        if record.can_endow(self.used()) {
            self.follow_budget_to(whole);
        } else if self.used() <= whole / 2 || !self.line.shared().is_dividing() || self.now > end {
            self.follow_budget_to(whole / 2);
        } else {
            return None;
        }
        Some(self.task.shared_pages())
    }

    /// Gives a child that is about to be forked what it may use, and says what it begins with: see
    /// [`endow`](crate::shared::Process::endow). False if this process has to give up pages first,
    /// and it is not too late for that.
    pub(super) fn split_budget(&mut self, child: ProcessIndex, is_late: bool) -> bool {
        if self.has_own_memory() {
            return true;
        }
        let record = self.line.process();
        let child = self.line.shared().process(child);
        let used = self.used();
        let Some(part) = record.endow(&child, used, is_late) else {
            return false;
        };
        self.intake
            .freeze_mut()
            .note_shared(used.saturating_sub(part));
        true
    }

    /// Returns true if no other process gives anything back: there is none, or what is recorded has
    /// room for all.
    fn has_own_memory(&self) -> bool {
        !self.line.has_supervisor() || self.telemetry.is_recording()
    }

    /// Asks for as many frames as this process and a child use together, and waits for them: for a
    /// short while, as there may be none.
    fn ask_for_two(&mut self) {
        let wanted = share::asks(self.used().into());
        let record = self.line.process();
        let before = record.budget();
        if self.line.has_all_memory() || wanted <= before.into() || !record.ask(wanted) {
            return;
        }
        self.line.poke();
        self.wait_for_answer(before);
    }

    /// Waits for another budget than `before`: see [`Line::await_budget`].
    ///
    /// [`Line::await_budget`]: crate::parts::line::Line::await_budget
    fn wait_for_answer(&mut self, before: u32) {
        if self.line.await_budget(before) {
            self.now = now();
            self.follow_budget();
        }
    }

    /// Asks for more where the program would be ended for want of memory, while others have some:
    /// after many forks they do not use it yet, or have ended and not been missed yet. Answers
    /// whether there is more now.
    pub(super) fn gets_more(&mut self) -> bool {
        let may_ask = !self.has_own_memory() && self.line.has_supervisor();
        let (had, end) = (self.task.budget(), now().after_ns(MORE_NS_MAX));
        // It may have been given more since it last looked.
        self.follow_budget();
        while self.task.budget() <= had {
            if !may_ask || self.line.has_all_memory() || now() > end {
                return false;
            }
            let record = self.line.process();
            let before = record.budget();
            record.ask(share::asks(before.into()));
            self.line.poke();
            self.wait_for_answer(before);
        }
        true
    }

    /// Tells the supervisor what there is to say. On the engine's own thread: no other has the
    /// connection. While most of memory is not in use, who is short waits for what it is given:
    /// else it would give up pages for want of a word.
    pub(super) fn send_reports(&mut self) {
        if !self.line.take_news() {
            return;
        }
        self.line.poke();
        let record = self.line.process();
        let before = record.budget();
        if record.asked() > before.into()
            && !self.line.has_all_memory()
            && self.line.is_mostly_free()
        {
            self.wait_for_answer(before);
        }
    }
}
