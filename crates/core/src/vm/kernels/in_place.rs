//! Placement: which slots of the swap store the pages of an object get, and hence which of them
//! move together.
//!
//! Where pages that leave *together* get slots together, a write is one large request whatever the
//! addresses (NetBSD `uvm_pdaemon.c` collects its swap clusters so). Where pages have their place,
//! the store is cut into blocks as long as a cluster, and so is each object: pages of one cluster
//! of an object share a block, a page that is written again goes where it was, and what is beside a
//! page in its object is beside it on the store (OSF MK's default pager, `dp_backing_store.c`). Its
//! kernel then moves whole clusters: modified neighbours of a page that leaves are written with it
//! and stay (`vm_pageout_cluster`), and a page that is read brings those that the program's advice
//! asks for.
//!
//! There is no map of clusters: what has a slot in an object's page table, or is on its way to one,
//! tells where the block of its cluster is. The block is free when no page has a slot in it.
//!
//! # Invariants
//! 1. A slot that is written again has one owner.
//! 2. No request to the store reaches beyond one cluster of an object, no write beyond a block.
//! 3. A page is kept for want of a slot only if no slot is free, in whatever block.

use crate::kernels::Placement;
use alloc::vec::Vec;

use crate::event::{Access, Service};
use crate::id::{FrameId, PageId, SlotId};
use crate::memory::address_space::Advice;
use crate::memory::frame::State;
use crate::paging::attempt::{Scene, Step};
use crate::seams::arrival::Cause;
use crate::seams::machine::{Machine, Rights};
use crate::seams::pager::{Direction, Place};
use crate::vm::Vm;

/// A page on its way out and the slot it goes to.
#[derive(Clone, Copy)]
struct Placed {
    page: PageId,
    frame: FrameId,
    slot: SlotId,
}

impl Vm {
    /// Takes those modified neighbours of pages that have to leave which are to be written with
    /// them, and to stay. None where pages do not leave by clusters.
    pub(crate) fn take_neighbours(
        &mut self,
        machine: &mut dyn Machine,
        chosen: &[FrameId],
    ) -> Vec<FrameId> {
        let mut taken = Vec::new();
        if !self.has_places() || self.is_store_full {
            return taken;
        }
        let writing = self.transfers.laundry() as usize + chosen.len();
        let room = (self.config.laundry_max as usize).saturating_sub(writing);
        for &frame in chosen {
            let Some(page) = self
                .memory
                .frames()
                .page(frame)
                .filter(|_| self.is_undecided(frame))
            else {
                continue;
            };
            if !self.may_be_modified(machine, frame) {
                continue;
            }
            let (start, end) = self.cluster_of(page);
            let below = (start..page.index).rev();
            self.take_modified_run(machine, page, below, (&mut taken, room));
            self.take_modified_run(machine, page, page.index + 1..end, (&mut taken, room));
        }
        taken
    }

    /// Starts writing pages of internal objects to the places they have, in order of object and
    /// index. Answers those for which there is no slot at all, or `None` where pages have no
    /// places.
    pub(crate) fn launder_in_place(
        &mut self,
        leaving: &[(PageId, FrameId)],
    ) -> Option<Vec<(PageId, FrameId)>> {
        if !self.has_places() {
            return None;
        }
        let mut placed: Vec<Placed> = Vec::with_capacity(leaving.len());
        let mut refused = Vec::new();
        for &(page, frame) in leaving {
            match self.place(page, placed.last()) {
                Some(slot) => placed.push(Placed { page, frame, slot }),
                None => refused.push((page, frame)),
            }
        }
        let mut rest = &placed[..];
        while let Some(first) = rest.first() {
            let follows = |&(number, next): &(usize, &Placed)| {
                self.is_same_cluster(next.page, first.page)
                    && next.slot.0 == first.slot.0 + number as u32
                    && self.block_of(next.slot) == self.block_of(first.slot)
            };
            let length = rest.iter().enumerate().take_while(follows).count();
            let (cluster, others) = rest.split_at(length);
            let place = Place::Swap { first: first.slot };
            let cluster: Vec<_> = cluster.iter().map(|one| (one.page, one.frame)).collect();
            self.log_page_outs(&cluster);
            self.begin_store(&cluster, place);
            rest = others;
        }
        Some(refused)
    }

    /// Starts reading the wanted page, and those of its cluster that advice asks for.
    pub(super) fn start_cluster_in(&mut self, machine: &mut dyn Machine, scene: &Scene) -> Step {
        let PageId { object, index } = scene.found.page;
        let few = self.config.default_cluster_pages;
        let few = few.min(self.config.cluster_pages);
        let (start, end) = self.cluster_of(scene.found.page);
        let (before, from) = ((index - start) as u32, (end - index) as u32);
        let (before, from) = match scene.region.advice {
            Advice::Random => (0, 1),
            Advice::Reverse => (before, 1),
            Advice::Sequential => (0, from),
            Advice::Normal => (0, from.min(few)),
        };
        let run = self.measure_both_ways(scene, before, from).of(object);
        let Some(ticket) = self.start_fetch(machine, scene, run, Some(index), false) else {
            return Step::Stall;
        };
        self.paging_in.push(scene.fault.space);
        Step::Wait(ticket)
    }

    /// The pages on their way to their pagers that the page daemon waits for.
    pub(super) fn laundry_awaited(&self) -> u32 {
        match self.has_places() {
            true => self.transfers.laundry() - self.memory.frames().cleaning(),
            false => self.transfers.laundry(),
        }
    }

    /// Returns true if a page that is being written and stays can be used meanwhile: it can be
    /// read.
    pub(crate) fn is_readable(&self, frame: FrameId, access: Access) -> bool {
        self.has_places() && self.memory.frames().is_cleaning(frame) && !access.is_store()
    }

    /// Lets a page be read that is being written and stays.
    pub(super) fn serve_reading(&mut self, machine: &mut dyn Machine, scene: Scene) -> Step {
        let (fault, found) = (scene.fault, scene.found);
        let frame = found.entry.frame().expect("a page in transit has a frame");
        // It was used: it is no page that may go when it is written.
        self.note_touch(frame);
        self.memory.frames_mut().set_wanted(frame);
        machine.enter(fault.space, fault.at, frame, Rights::Read);
        self.memory.map(frame, fault.space, fault.at);
        self.counters.soft_faults += u64::from(!scene.is_retry);
        Step::Resolved(match scene.is_retry {
            true => Service::Major,
            false => Service::Minor,
        })
    }

    /// The owner of a page gave it up that is being written: takes it from those that read it.
    pub(crate) fn end_reading(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        if !self.is_readable(frame, Access::Read) {
            return;
        }
        let places: Vec<_> = self.memory.reverse().iter(frame).collect();
        self.memory.unmap_all(frame);
        for (space, at) in places {
            machine.leave(space, at, frame);
        }
    }

    /// Checks that no request to the store reaches beyond a cluster, where clusters have places.
    pub(super) fn check_clusters(&self) {
        if !self.has_places() {
            return;
        }
        let cluster_of = |page: &PageId| (page.object, self.cluster_of(*page));
        for transfer in self.transfers.iter() {
            let Place::Swap { first } = transfer.request().place else {
                continue;
            };
            let (pages, last) = (transfer.pages(), first.0 + transfer.request().pages - 1);
            let is_store = transfer.request().direction == Direction::Store;
            assert!(!is_store || self.block_of(first) == self.block_of(SlotId(last)));
            let is_one = pages
                .windows(2)
                .all(|w| cluster_of(&w[0]) == cluster_of(&w[1]));
            assert!(is_one, "{pages:?} in one request");
        }
    }

    /// Returns true if each cluster of an object has its block of the store.
    fn has_places(&self) -> bool {
        self.config.kernel.placement == Placement::InPlace
    }

    /// Takes modified pages from their programs, from the page next to `beside` on, until one is
    /// not modified, not in memory or not free to go.
    fn take_modified_run(
        &mut self,
        machine: &mut dyn Machine,
        beside: PageId,
        indices: impl Iterator<Item = u64>,
        (taken, room): (&mut Vec<FrameId>, usize),
    ) {
        for index in indices {
            let entry = self.memory.objects().entry(PageId { index, ..beside });
            let Some(frame) = entry.frame() else { return };
            // One that leaves with this one anyway.
            if self.is_undecided(frame) {
                continue;
            }
            let is_eligible = self.may_choose(frame)
                && !self.memory.frames().is_ahead(frame)
                && self.may_be_modified(machine, frame);
            if !is_eligible || taken.len() >= room {
                return;
            }
            let was_used = machine.take_referenced(frame);
            let back = if was_used {
                Cause::Kept
            } else {
                Cause::Cleaned
            };
            self.begin_leaving(machine, frame);
            self.memory.frames_mut().set_cleaning(frame, back);
            taken.push(frame);
        }
    }

    fn may_be_modified(&self, machine: &dyn Machine, frame: FrameId) -> bool {
        self.memory.frames().is_dirty(frame) || machine.may_be_modified(frame)
    }

    /// A slot for a page that leaves: its own, that beside its neighbours', one in a new block, or
    /// any. `before` is the page that was placed last.
    fn place(&mut self, page: PageId, before: Option<&Placed>) -> Option<SlotId> {
        if let Some(own) = self.memory.take_slot(page) {
            if self.memory.slots().has_one_owner(own) {
                return Some(own);
            }
            self.memory.release_slot(own);
        }
        let before = before.filter(|before| self.is_same_cluster(before.page, page));
        let before = before.map(|before| (before.page.index, before.slot));
        let (start, end) = self.cluster_of(page);
        let beside = (start..end).filter_map(|index| {
            let slot = self.slot_of(PageId { index, ..page })?;
            Some((index, slot))
        });
        let beside: Vec<_> = before.into_iter().chain(beside).collect();
        for (index, slot) in beside {
            let home = u64::from(slot.0) + page.index;
            let home = home.checked_sub(index).map(|home| SlotId(home as u32));
            let home = home.filter(|&home| self.block_of(home) == self.block_of(slot));
            if let Some(home) = home.filter(|&home| self.memory.slots_mut().claim(home)) {
                return Some(home);
            }
        }
        if let Some(first) = self
            .memory
            .slots_mut()
            .find_block(self.config.cluster_pages)
        {
            let home = SlotId(first.0 + (page.index - start) as u32);
            if self.memory.slots_mut().claim(home) {
                return Some(home);
            }
        }
        self.allocate_slots(1).map(|(slot, _)| slot)
    }

    /// The slot a page has, or is being written to.
    fn slot_of(&self, page: PageId) -> Option<SlotId> {
        let entry = self.memory.objects().entry(page);
        if let Some(slot) = entry.slot() {
            return Some(slot);
        }
        let frame = entry.frame()?;
        if self.memory.frames().state(frame) != State::Leaving {
            return None;
        }
        let transfer = self.transfers.find(self.memory.frames().ticket(frame))?;
        match (transfer.request().direction, transfer.request().place) {
            (Direction::Store, Place::Swap { first }) => {
                let number = transfer.frames().iter().position(|&one| one == frame)?;
                Some(SlotId(first.0 + number as u32))
            }
            _ => None,
        }
    }

    /// The first index of a page's cluster in its object, and the end.
    fn cluster_of(&self, page: PageId) -> (u64, u64) {
        let pages = u64::from(self.config.cluster_pages);
        let start = page.index - page.index % pages;
        (start, start.saturating_add(pages))
    }

    fn is_same_cluster(&self, one: PageId, other: PageId) -> bool {
        one.object == other.object && self.cluster_of(one) == self.cluster_of(other)
    }

    fn block_of(&self, slot: SlotId) -> u32 {
        slot.0 / self.config.cluster_pages
    }
}
