//! The memory of one task: what it may use, what that leaves to its core, and its suspension. One
//! that is suspended leaves memory, and gets back what it had there.

use alloc::vec::Vec;
use core::mem::take;

use tidemark_core::compressed::division::{Ceded, log_pages_max, next_frames};
use tidemark_core::id::{SlotId, SpaceId, VirtPage};
use tidemark_core::seams::machine::Machine;
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;
use tidemark_core::vm::recall::RECALL_NS_MAX;
use tidemark_partition::{News, Voice};

/// The part of its budget, as a divisor, up to which memory beside a task's frames counts.
pub const BESIDE_PART: u32 = 4;

/// The memory of one task: the frames of a core, compressed pages, and what is beside them. Its
/// driver lends the core, and keeps the threads of a suspended task from running.
#[derive(Debug, Default)]
pub struct TaskMemory {
    budget: u32,
    beside: u32,
    is_compressed: bool,
    /// The pages that are compressed memory's, as the core was last told.
    ceded: Ceded,
    voice: Voice,
    is_parked: bool,
    /// The frames that it needs when it goes on.
    needed: u64,
    /// The number of pages that had come when it was last taken out of memory.
    arrivals: u64,
    /// The pages of each space that were in memory, in order of address.
    remembered: Vec<(SpaceId, Vec<VirtPage>)>,
    /// The pages that are still to be brought back, the last one first.
    due: Vec<(SpaceId, Vec<(SlotId, VirtPage)>)>,
    due_until: Time,
}

impl TaskMemory {
    /// The memory of a task that may use `budget` frames and has `beside` pages beside them, and
    /// compressed ones if it `is_compressed`.
    pub fn new(budget: u32, beside: u32, is_compressed: bool) -> TaskMemory {
        TaskMemory {
            budget,
            beside,
            is_compressed,
            ..TaskMemory::default()
        }
    }

    /// The frames that it may use.
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// The pages beside its frames, as far as they count.
    pub fn beside(&self) -> u32 {
        self.beside.min(self.budget / BESIDE_PART)
    }

    /// The pages that frames and compressed pages may have together.
    pub fn shared_pages(&self) -> u32 {
        self.budget - self.beside()
    }

    /// Returns true if it is suspended.
    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Returns true if a suspension leaves something to do.
    pub fn is_busy(&self, vm: &Vm) -> bool {
        self.is_filling(vm) || !self.due.is_empty()
    }

    /// The pages that compressed ones may have, which have `held` now, and whether they and the
    /// frames have too many: see [`log_pages_max`].
    pub fn log_pages(&self, vm: &Vm, held: u32, is_alone: bool) -> (u32, bool) {
        if self.is_parked {
            return (0, false);
        }
        let (pages, frames) = (self.shared_pages(), vm.frames().in_use());
        let most = log_pages_max(pages, frames, held, is_alone);
        (most, frames + held > pages)
    }

    /// The report of a task whose frames and compressed pages are `in_use`.
    pub fn poll_news(&mut self, vm: &Vm, in_use: u32) -> News {
        let used = (in_use + self.beside()).into();
        let arrivals = vm.counters().arrivals();
        let mut news = self.voice.news(self.budget.into(), used, arrivals);
        news.asks = news.asks.filter(|_| !self.is_parked);
        news
    }

    /// Learns how many frames it may use.
    pub fn handle_budget(
        &mut self,
        now: Time,
        frames: u32,
        vm: &mut Vm,
        machine: &mut dyn Machine,
    ) {
        if frames != self.budget {
            self.voice.note_given(self.budget.into(), frames.into());
            self.budget = frames;
            vm.handle_limit(now, machine, self.limit(vm));
        }
    }

    /// Learns how many pages are beside its frames.
    pub fn handle_beside(&mut self, now: Time, pages: u32, vm: &mut Vm, machine: &mut dyn Machine) {
        if pages != self.beside {
            self.beside = pages;
            vm.handle_limit(now, machine, self.limit(vm));
        }
    }

    /// Learns that compressed pages have `held`. Answers whether the core may use another number of
    /// frames.
    pub fn handle_held(
        &mut self,
        now: Time,
        held: u32,
        vm: &mut Vm,
        machine: &mut dyn Machine,
    ) -> bool {
        let has_stored = vm.counters().page_outs > 0;
        let is_other = self.ceded.follow(held, self.shared_pages(), has_stored);
        let limit = self.limit(vm);
        let is_told = is_other || limit < vm.frames().limit();
        if is_told {
            vm.handle_limit(now, machine, limit);
        }
        is_told
    }

    /// Takes the pages of the task's `spaces` out of memory, which needs `needed` frames when it
    /// goes on.
    pub fn handle_suspend(
        &mut self,
        (now, needed): (Time, u64),
        vm: &mut Vm,
        machine: &mut dyn Machine,
        spaces: &[SpaceId],
    ) {
        let due = take(&mut self.due);
        let remembered = spaces.iter().map(|&space| {
            let due = due.iter().filter(|(of, _)| *of == space);
            let mut pages = vm.resident_pages(space);
            pages.extend(due.flat_map(|(_, due)| due.iter().map(|&(_, at)| at)));
            pages.sort_unstable();
            (space, pages)
        });
        self.remembered = remembered.collect();
        (self.is_parked, self.needed, self.arrivals) = (true, needed, u64::MAX);
        self.handle_arrivals(now, vm, machine, spaces);
    }

    /// Takes out of memory what has come to the `spaces` of a task since it was suspended: it was
    /// on its way. Answers whether there was anything.
    pub fn handle_arrivals(
        &mut self,
        now: Time,
        vm: &mut Vm,
        machine: &mut dyn Machine,
        spaces: &[SpaceId],
    ) -> bool {
        let is_filling = self.is_filling(vm);
        if is_filling {
            self.arrivals = vm.counters().arrivals();
            for &space in spaces {
                vm.handle_suspend(now, machine, space);
            }
        }
        is_filling
    }

    /// Lets its pages stay again, and has them [brought back](Self::handle_room).
    pub fn handle_resume(&mut self, now: Time, vm: &mut Vm, machine: &mut dyn Machine) {
        self.is_parked = false;
        self.due_until = now.after_ns(RECALL_NS_MAX);
        for (space, pages) in take(&mut self.remembered) {
            vm.handle_resume(now, machine, space);
            let due = vm.pages_due(space, &pages, self.needed);
            self.due.push((space, due));
        }
    }

    /// Brings back more of what was in memory before, as far as there are frames.
    pub fn handle_room(&mut self, now: Time, vm: &mut Vm, machine: &mut dyn Machine) {
        for (space, due) in &mut self.due {
            vm.handle_recalls(now, machine, *space, due);
        }
        let until = self.due_until;
        self.due.retain(|(_, due)| !due.is_empty() && now < until);
    }

    /// The number of frames that the core may use next.
    fn limit(&self, vm: &Vm) -> u32 {
        let left = self.shared_pages().saturating_sub(self.ceded.pages());
        let left = left.max(vm.config().reserve + 1);
        match self.is_compressed && !self.is_parked {
            true => next_frames(left, vm.frames().in_use()),
            false => left,
        }
    }

    fn is_filling(&self, vm: &Vm) -> bool {
        self.is_parked && vm.counters().arrivals() != self.arrivals
    }
}
