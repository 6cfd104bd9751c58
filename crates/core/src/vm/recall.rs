//! Recalling: bringing back what a space had in memory before it was suspended.
//!
//! A driver that holds programs up remembers what was resident, and asks for it in the order in
//! which it lies with the store: what left together comes back together, in few requests, where
//! the program's own faults would ask for one page after the other.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::event::{Access, Fault};
use crate::id::{PageId, SlotId, SpaceId, VirtPage, Waiter};
use crate::memory::frame::State;
use crate::paging::attempt::Scene;
use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::served::Served;
use crate::vm::{Contents, Vm};

/// The most transfers under way for what is brought back: others are to have their turn.
const RECALLS_MAX: usize = 24;

/// The time after which what has found no room yet is left to the program's own faults, in
/// nanoseconds.
pub const RECALL_NS_MAX: u64 = 5_000_000_000;

impl Vm {
    /// The resident pages of a space, in order of address, which are remembered of a suspended
    /// program.
    pub fn resident_pages(&self, space: SpaceId) -> Vec<VirtPage> {
        let mut resident = Vec::new();
        self.visit_pages(space, &mut |at, contents| {
            if matches!(contents, Contents::Frame(_)) {
                resident.push(at);
            }
        });
        resident.sort_unstable();
        resident
    }

    /// The pages to be brought back for a space that goes on, each with its slot, the last one
    /// first: of those that are `remembered`, in order of address, the ones with the store, or all
    /// that are there if the space needs half of that in frames. What was in memory among others
    /// that needed it as well may be little of that.
    pub fn pages_due(
        &self,
        space: SpaceId,
        remembered: &[VirtPage],
        needed: u64,
    ) -> Vec<(SlotId, VirtPage)> {
        let mut stored = Vec::new();
        self.visit_pages(space, &mut |at, contents| {
            if let Contents::Slot(slot) = contents {
                stored.push((slot, at));
            }
        });
        if stored.len() as u64 > needed.saturating_mul(2) {
            stored.retain(|(_, at)| remembered.binary_search(at).is_ok());
        }
        stored.sort_unstable_by_key(|&(slot, _)| Reverse(slot.0));
        stored
    }

    /// Starts reading what is [due](Self::pages_due), as far as there are frames, and takes it off
    /// the end of `due`. To be called again as requests are answered.
    pub fn handle_recalls(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        due: &mut Vec<(SlotId, VirtPage)>,
    ) {
        while self.transfers_pending() < RECALLS_MAX && !due.is_empty() {
            let from = due.len().saturating_sub(self.config.cluster_pages as usize);
            let mut next = due[from..].to_vec();
            next.reverse();
            let done = self.handle_recall(now, machine, space, &next);
            if done == 0 {
                break;
            }
            due.truncate(due.len() - done);
        }
    }

    /// Starts reading the first of `pages`, each with the slot it is thought to be in, together
    /// with those that follow in the next slots. Answers how many of `pages` there is nothing more
    /// to do about: none if there are no frames for them without taking pages away.
    ///
    /// Work: one step a page that is passed over, and the start of one request.
    pub fn handle_recall(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        pages: &[(SlotId, VirtPage)],
    ) -> usize {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            let is_due = |&(slot, at): &(SlotId, VirtPage)| vm.slot_at(space, at) == Some(slot);
            let passed = pages.iter().take_while(|page| !is_due(page)).count();
            let Some(&(first, _)) = pages.get(passed) else {
                return passed;
            };
            let follows = |&(number, page): &(usize, &(SlotId, VirtPage))| {
                page.0.0 == first.0 + number as u32 && is_due(page)
            };
            let rest = pages[passed..].iter().enumerate();
            let length = rest.take_while(follows).count().min(vm.frames_to_spare());
            if length == 0 {
                return passed;
            }
            let pages = pages[passed..passed + length].iter();
            passed + vm.recall(machine, space, pages.map(|&(_, at)| at))
        })
    }

    /// Starts reading those pages of a range that are with pagers outside, as far as there are
    /// frames, and takes them off the front of `due`. To be called again as requests are answered.
    pub fn handle_prefetches(
        &mut self,
        now: Time,
        machine: &mut dyn Machine,
        space: SpaceId,
        due: &mut Range<u64>,
    ) {
        while self.transfers_pending() < RECALLS_MAX && !due.is_empty() {
            let range = due.clone();
            let done = self.handle(now, Served::Kept, machine, |vm, machine| {
                vm.prefetch(machine, space, range)
            });
            if done == 0 {
                break;
            }
            due.start += done;
        }
    }

    /// Starts the request for the first pages of the range that are with a pager outside. Answers
    /// how many pages there is nothing more to do about: none if there are no frames for them
    /// without taking pages away.
    ///
    /// Work: one step a page that is passed over, and the start of one request.
    fn prefetch(&mut self, machine: &mut dyn Machine, space: SpaceId, range: Range<u64>) -> u64 {
        let outside = |at| self.find_outside(space, VirtPage(at));
        let (start, end) = (range.start, range.end);
        let Some((first, page)) = range.clone().find_map(|at| Some((at, outside(at)?))) else {
            return end - start;
        };
        let follows = |&at: &u64| {
            outside(at).is_some_and(|next| {
                next.object == page.object && next.index == page.index + (at - first)
            })
        };
        let length = (first..end)
            .take(self.frames_to_spare())
            .take_while(follows)
            .count() as u64;
        if length == 0 {
            return first - start;
        }
        let pages = (first..first + length).map(VirtPage);
        first - start + self.recall(machine, space, pages) as u64
    }

    /// The page at `at`, if its contents are with a pager outside and not on their way.
    fn find_outside(&self, space: SpaceId, at: VirtPage) -> Option<PageId> {
        let page = self.scene_at(space, at)?.found.page;
        let object = self.memory.objects().get(page.object);
        (object.is_outside(page.index) && object.entry(page.index).frame().is_none())
            .then_some(page)
    }

    /// The number of frames that one request can take without a page having to leave.
    fn frames_to_spare(&self) -> usize {
        let kept = self.config.free_high.max(self.config.reserve) + self.config.free_low;
        let free = self.memory.frames().count(State::Free);
        free.saturating_sub(kept).min(self.config.cluster_pages) as usize
    }

    /// Starts the request for `pages`, of which none is another, as each has a slot of its own.
    fn recall(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        pages: impl Iterator<Item = VirtPage>,
    ) -> usize {
        let scenes: Vec<Scene> = pages.filter_map(|at| self.scene_at(space, at)).collect();
        let Some(&first) = scenes.first() else {
            return 0;
        };
        let wanted: Vec<PageId> = scenes.iter().map(|scene| scene.found.page).collect();
        let is_mapped =
            self.config.is_ahead_mapped && !first.found.is_below && !first.region.is_window;
        let Some(ticket) = self.fetch_pages(machine, &first, wanted, None, is_mapped) else {
            return 0;
        };
        self.transfers.mark_recall(ticket);
        self.transfers.get(ticket).pages().len()
    }

    fn scene_at(&self, space: SpaceId, at: VirtPage) -> Option<Scene> {
        let region = *self.memory.spaces().get(space)?.find(at)?;
        let found = self.memory.find_page(region.object, region.index_at(at));
        let fault = Fault {
            space,
            at,
            access: Access::Read,
            waiter: Waiter(0),
        };
        Some(Scene {
            fault,
            region,
            found,
            is_retry: false,
        })
    }
}
