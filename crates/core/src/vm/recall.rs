//! Recalling: bringing back what a space had in memory before it was suspended.
//!
//! A driver that holds programs up remembers what was resident, and asks for it in the order in
//! which it lies with the store: what left together comes back together, in few requests, where
//! the program's own faults would ask for one page after the other.

use alloc::vec::Vec;
use core::cmp::Reverse;

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
    /// The pages of a space that are in memory, in order of address: what is to be remembered of a
    /// program that is held up.
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
            passed + vm.recall(machine, space, &pages[passed..passed + length])
        })
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
        pages: &[(SlotId, VirtPage)],
    ) -> usize {
        let scenes: Vec<Scene> = pages
            .iter()
            .filter_map(|&(_, at)| self.scene_at(space, at))
            .collect();
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
