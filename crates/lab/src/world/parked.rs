//! Parking: a memory of a task whose processes wait, and what is brought back when they go on.

use tidemark_core::id::{SlotId, SpaceId, VirtPage};
use tidemark_core::time::Time;
use tidemark_core::vm::recall::RECALL_NS_MAX;

use super::memory::Memory;

/// The state of a memory that is suspended, or has been.
#[derive(Default)]
pub(super) struct Parked {
    pub(super) is_suspended: bool,
    /// The frames that it needed when it was suspended.
    needed: u64,
    /// The number of pages that had come when it was last taken out of memory.
    pub(super) arrivals: u64,
    /// The pages of each space that were in memory, in order of address.
    remembered: Vec<(SpaceId, Vec<VirtPage>)>,
    /// Those that are still to be brought back, the last one first, and until when.
    due: Vec<(SpaceId, Vec<(SlotId, VirtPage)>)>,
    due_until: u64,
}

impl Memory {
    fn spaces(&self) -> Vec<SpaceId> {
        let owners = self.owners.iter().enumerate();
        let owned = owners.filter(|(_, owner)| owner.is_some());
        owned.map(|(space, _)| SpaceId(space as u32)).collect()
    }

    /// Takes its pages out of memory, which needs `needed` frames when it goes on.
    pub(super) fn park(&mut self, now: u64, needed: u64) {
        let spaces = self.spaces();
        let remembered = spaces.iter().map(|&space| {
            let mut pages = self.vm.resident_pages(space);
            let due = self.parked.due.iter().filter(|(of, _)| *of == space);
            pages.extend(due.flat_map(|(_, due)| due.iter().map(|&(_, at)| at)));
            pages.sort_unstable();
            (space, pages)
        });
        self.parked = Parked {
            is_suspended: true,
            needed,
            remembered: remembered.collect(),
            ..Parked::default()
        };
        self.set_emptying(true);
        self.hold_down(now);
    }

    /// Takes out of memory what has come since it was suspended.
    pub(super) fn hold_down(&mut self, now: u64) {
        self.parked.arrivals = self.vm.counters().arrivals();
        for space in self.spaces() {
            self.vm.handle_suspend(Time(now), &mut self.tables, space);
        }
    }

    /// Lets its pages stay again, and has them brought back.
    pub(super) fn unpark(&mut self, now: u64) {
        self.parked.is_suspended = false;
        self.parked.due_until = now + RECALL_NS_MAX;
        self.set_emptying(false);
        let needed = self.parked.needed;
        for (space, pages) in std::mem::take(&mut self.parked.remembered) {
            self.vm.handle_resume(Time(now), &mut self.tables, space);
            let due = self.vm.pages_due(space, &pages, needed);
            self.parked.due.push((space, due));
        }
    }

    /// Brings back more of what was in memory before, as far as there are frames.
    pub(super) fn recall(&mut self, now: u64) {
        if self.parked.is_suspended || self.parked.due.is_empty() {
            return;
        }
        for (space, due) in &mut self.parked.due {
            self.vm
                .handle_recalls(Time(now), &mut self.tables, *space, due);
        }
        self.parked.due.retain(|(_, due)| !due.is_empty());
        if now >= self.parked.due_until {
            self.parked.due.clear();
        }
    }

    fn set_emptying(&mut self, is_emptying: bool) {
        if let Some(compressed) = &mut self.compressed {
            compressed.set_emptying(is_emptying);
        }
    }
}
