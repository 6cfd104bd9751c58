//! Reclaim: turning resident pages into free frames.
//!
//! Runs when fewer frames than `free_low` are free or on their way, and stops at `free_high`.
//! Each round asks the policy for frames, has the machine revoke their mappings, and then looks at
//! each: what the store has already (or what reads as zeros) is freed at once, the rest is written
//! in clusters. Cleaning and freeing are separate: a page being written is *laundry*, its amount
//! is bounded, and a touch before the write ends keeps the page.
//!
//! # Invariants
//! 1. A modified page is never dropped before its store is answered `Done`.
//! 2. A page-out needs no frame: pages are written from where they are.
//! 3. Frames chosen in one round are at most [`ROUND_MAX`].

use crate::paging::attempt::Need;
use alloc::vec::Vec;

use crate::decision::Decision;
use crate::event::{Event, Failure};
use crate::id::{FrameId, PageId, SlotId, Ticket};
use crate::memory::frame::State;
use crate::memory::object::Backing;
use crate::memory::page_run::PageRun;
use crate::seams::arrival::Departure;
use crate::seams::machine::Machine;
use crate::seams::pager::Place;
use crate::seams::policy::Policy;
use crate::seams::probe::Probe;
use crate::vm::Vm;

/// The most frames one round of reclaim chooses.
pub const ROUND_MAX: u32 = 256;
/// The number of stores that may fail one after the other before the faults that wait for them fail
/// too.
const STORE_FAILURES_MAX: u32 = 8;
/// The number of resident pages asked for their slots when the store is full.
const SLOTS_SEARCHED_MAX: usize = 4096;

impl Vm {
    /// Reclaims if too few frames are free, or fewer than `want`.
    pub(crate) fn make_room(&mut self, machine: &mut dyn Machine, want: u32, need: Need) {
        // A round would most likely unmap all pages, and keep them. Repeated without a waiting
        // fault, that would leave no program two pages at a time.
        if self.is_store_full && need != Need::Awaited {
            return;
        }
        // With a full store, room can be made only of what need not be written: at once, for who
        // waits would else be told that there is none.
        if !self.is_store_full && self.pace(machine) {
            return;
        }
        // Frames beyond the limit leave too: the first to be freed are retired.
        let over = self
            .memory
            .frames()
            .usable()
            .saturating_sub(self.memory.frames().limit());
        let coming = self.memory.frames().count(State::Free) + self.transfers.laundry()
            - self.memory.frames().cleaning();
        let needed = if want > 0 {
            want + self.config.reserve
        } else {
            0
        };
        if coming >= self.config.free_low.max(needed) + over {
            return;
        }
        let short = (self.config.free_high.max(needed) + over - coming).min(ROUND_MAX);
        // A round may come to nothing: every page busy, or the store full and every page modified.
        // Then others are tried, until all have been, or none can leave just now.
        self.is_halted = false;
        for _ in 0..=self.memory.frames().usable() / short.max(1) {
            self.reclaim(machine, short);
            if self.memory.frames().count(State::Free) > 0
                || self.transfers.laundry() > 0
                || self.is_halted
            {
                break;
            }
        }
    }

    /// One frame.
    pub(crate) fn take_frame(&mut self, machine: &mut dyn Machine, need: Need) -> Option<FrameId> {
        self.take_frames(machine, 1, need).first().copied()
    }

    /// Up to `want` frames, in runs as long as can be had. They may be all but the reserve; those
    /// for pages read ahead leave half of the low-water mark to pages that are wanted now.
    pub(crate) fn take_frames(
        &mut self,
        machine: &mut dyn Machine,
        want: u32,
        need: Need,
    ) -> Vec<FrameId> {
        let kept = match need {
            Need::Ahead => self.config.reserve + self.config.free_low / 2,
            Need::Awaited | Need::Standing | Need::Reserve => self.config.reserve,
        };
        // Where there are enough, the others are made up for when this fault's transfer is under
        // way: see [`Vm::handle_idle`].
        if self.memory.frames().count(State::Free) < want + kept {
            self.make_room(machine, want, need);
        }
        let free = self.memory.frames().count(State::Free);
        if self.is_paused(free) {
            return Vec::new();
        }
        let mut left = want.min(free.saturating_sub(kept));
        let mut taken = Vec::with_capacity(left as usize);
        while left > 0 {
            let Some((first, length)) = self.memory.frames_mut().take_run(left) else {
                break;
            };
            taken.extend((first.0..first.0 + length).map(FrameId));
            left -= length;
        }
        let in_use = u64::from(self.memory.frames().in_use());
        self.counters.frames_peak = self.counters.frames_peak.max(in_use);
        taken
    }

    /// Ends the waiting of faults that no frame will come for, because nothing can be written.
    pub(crate) fn fail_if_stuck(&mut self) {
        let is_failing = self.stores_failed >= STORE_FAILURES_MAX;
        let is_full = self.is_store_full && self.transfers.is_empty();
        if !is_failing && !is_full {
            return;
        }
        let why = if is_failing {
            Failure::StoreFailed
        } else {
            Failure::StoreFull
        };
        self.waiting.release_held(self.memory.frames_mut());
        while let Some(fault) = self.waiting.next_stalled() {
            self.outbox.tell(Event::Failed(fault, why));
        }
    }

    /// Takes `page` out of memory and off the store: its owner gave it up.
    pub(crate) fn remove_page(&mut self, machine: &mut dyn Machine, page: PageId) {
        let entry = self.memory.objects().entry(page);
        let mut transit = None;
        if let Some(frame) = entry.frame() {
            self.memory.clear_frame(page);
            match self.memory.frames().state(frame) {
                State::Resident => {
                    if !self.pins.remove(frame) {
                        self.policy.page_left(frame, page, Departure::Discarded);
                    }
                    machine.discard(frame);
                    self.release_frame(machine, frame);
                }
                State::Leaving if self.is_undecided(frame) => {
                    machine.discard(frame);
                    self.release_frame(machine, frame);
                }
                State::Filling => transit = Some(self.memory.frames().ticket(frame)),
                State::Leaving => self.end_reading(machine, frame),
                State::Free | State::Retired => unreachable!("a page table names frames in use"),
            }
        }
        if let Some(slot) = self.memory.take_slot(page) {
            match transit {
                Some(ticket) => self.transfers.orphan_slot(ticket, slot),
                None => self.memory.release_slot(slot),
            }
        }
    }

    /// Frees a frame whose page is out of its table.
    pub(crate) fn release_frame(&mut self, machine: &mut dyn Machine, frame: FrameId) {
        self.waiting.forget(frame);
        self.pins.remove(frame);
        self.note_departure(frame);
        if self.memory.release(frame) {
            machine.retire(frame);
        }
    }

    /// Returns true if `frame` was chosen to leave, but nothing has been done about it yet.
    pub(crate) fn is_undecided(&self, frame: FrameId) -> bool {
        self.memory.frames().state(frame) == State::Leaving
            && self.memory.frames().ticket(frame) == Ticket(0)
    }

    pub(crate) fn ask_policy<Answer>(
        &mut self,
        machine: &mut dyn Machine,
        ask: impl FnOnce(&mut dyn Policy, &mut Probe<'_>) -> Answer,
    ) -> Answer {
        let (frames, places, objects) = self.memory.lend();
        let mut probe = Probe {
            now: self.now,
            frames,
            machine,
            questions: &mut self.counters.questions,
            laundry: self.transfers.laundry(),
            places: Some(places),
            protected: self.protected,
            wanted: None,
            objects: Some(objects),
            streams: Some(&self.streams),
        };
        ask(&mut *self.policy, &mut probe)
    }

    /// One round: chooses up to `want` frames and sends their pages out.
    pub(crate) fn reclaim(&mut self, machine: &mut dyn Machine, want: u32) {
        let want = want.min(
            self.config
                .laundry_max
                .saturating_sub(self.transfers.laundry()),
        );
        // A program that does not run needs no pages.
        let mut chosen = self.choose_suspended(want as usize, false);
        chosen
            .iter()
            .for_each(|&frame| self.begin_leaving(machine, frame));
        while chosen.len() < want as usize {
            let Some(frame) = self.choose_one(machine, chosen.is_empty()) else {
                break;
            };
            self.begin_leaving(machine, frame);
            chosen.push(frame);
        }
        self.send_out(machine, chosen);
    }

    /// Decides what becomes of pages that were just unmapped: dropped, written, or kept.
    pub(crate) fn send_out(&mut self, machine: &mut dyn Machine, mut chosen: Vec<FrameId>) {
        let neighbours = self.take_neighbours(machine, &chosen);
        chosen.extend(neighbours);
        self.settle(machine);
        let mut modified = Vec::new();
        for frame in chosen {
            if !self.is_undecided(frame) {
                continue;
            }
            let page = self
                .memory
                .frames()
                .page(frame)
                .expect("a leaving frame has a page");
            let was_modified = self.take_modified(machine, frame);
            if self.memory.frames().is_ahead(frame) {
                self.memory.frames_mut().take_ahead(frame);
            }
            if was_modified || self.memory.frames().is_dirty(frame) {
                self.memory.frames_mut().set_dirty(frame, true);
                modified.push((page, frame));
            } else if let Some(back) = self.memory.frames().cleaned_as(frame) {
                self.put_back(frame, back);
            } else {
                self.drop_page(machine, page, frame);
            }
        }
        modified.sort_unstable_by_key(|&(page, _)| page);
        self.launder(&modified);
    }

    fn choose_one(&mut self, machine: &mut dyn Machine, is_first: bool) -> Option<FrameId> {
        let choice = self.ask_policy(machine, |policy, probe| policy.choose(probe));
        match choice {
            Some(frame) if self.may_choose(frame) => Some(frame),
            Some(_) => {
                self.counters.refusals += 1;
                self.memory
                    .frames()
                    .iter_oldest()
                    .map(|(frame, _)| frame)
                    .find(|&frame| self.may_choose(frame))
            }
            // A policy may want to wait for its laundry. If there is none, nothing would change
            // by waiting.
            None if is_first && self.transfers.laundry() == 0 => {
                if let Some(protected) = self.protected.take() {
                    let choice = self.choose_one(machine, is_first);
                    self.protected = Some(protected);
                    return choice;
                }
                let oldest = self.memory.frames().find_oldest();
                self.counters.refusals += u64::from(oldest.is_some());
                oldest
            }
            None => None,
        }
    }

    /// Returns true if `frame` holds a page that may leave, and whose space is not protected.
    pub(crate) fn may_choose(&self, frame: FrameId) -> bool {
        let is_protected = |space| self.memory.frames().owner(frame) == space;
        self.memory.frames().may_leave(frame) && !self.protected.is_some_and(is_protected)
    }

    /// Lets a page go that its pager has, or that reads as zeros.
    fn drop_page(&mut self, machine: &mut dyn Machine, page: PageId, frame: FrameId) {
        let object = self.memory.objects().get(page.object);
        let has_copy = object.entry(page.index).slot().is_some() || object.has_pager();
        self.memory.clear_frame(page);
        if has_copy {
            self.counters.clean_drops += 1;
        } else {
            self.counters.zero_pages += 1;
        }
        self.release_frame(machine, frame);
        self.outbox.log(Decision::Drop(page));
    }

    /// Starts writing pages, in order of object and index, in clusters.
    fn launder(&mut self, modified: &[(PageId, FrameId)]) {
        let (mut internal, mut external) = (Vec::new(), Vec::new());
        for &(page, frame) in modified {
            match self.memory.objects().get(page.object).backing() {
                Backing::Swap | Backing::Copy(_) => internal.push((page, frame)),
                Backing::External(pager) => external.push((pager, page, frame)),
            }
        }
        let refused = match self.launder_in_place(&internal) {
            Some(refused) => refused,
            None => self.launder_together(&internal),
        };
        self.keep_refused(&refused);
        let external = self.double_page(external);
        let mut rest = &external[..];
        while let Some(&(pager, first, _)) = rest.first() {
            let follows = |&(number, &(_, page, _)): &(usize, &(_, PageId, FrameId))| {
                page.object == first.object && page.index == first.index + number as u64
            };
            let length = rest.iter().enumerate().take_while(follows).count();
            let length = length.min(self.config.cluster_pages as usize);
            let cluster: Vec<_> = rest[..length]
                .iter()
                .map(|&(_, p, frame)| (p, frame))
                .collect();
            self.log_page_outs(&cluster);
            self.begin_store(&cluster, Place::External { pager });
            rest = &rest[length..];
        }
    }

    /// Starts writing pages of internal objects to fresh slots side by side. Answers those for
    /// which there is none.
    fn launder_together(&mut self, leaving: &[(PageId, FrameId)]) -> Vec<(PageId, FrameId)> {
        for &(page, _) in leaving {
            self.memory.drop_slot(page);
        }
        let mut rest = leaving;
        while !rest.is_empty() {
            let want = rest.len().min(self.config.cluster_pages as usize) as u32;
            let Some((first, got)) = self.allocate_slots(want) else {
                break;
            };
            let (cluster, others) = rest.split_at(got as usize);
            self.log_page_outs(cluster);
            self.begin_store(cluster, Place::Swap { first });
            rest = others;
        }
        rest.to_vec()
    }

    /// Keeps pages that the store had no room for.
    fn keep_refused(&mut self, refused: &[(PageId, FrameId)]) {
        if refused.is_empty() {
            return;
        }
        if !self.is_store_full {
            self.is_store_full = true;
            self.outbox.tell(Event::StoreFull);
        }
        refused.iter().for_each(|&(_, frame)| self.keep(frame));
    }

    /// Slots for pages that leave; if there are none, those of pages in memory, which are copies.
    pub(crate) fn allocate_slots(&mut self, want: u32) -> Option<(SlotId, u32)> {
        if let Some(found) = self.memory.slots_mut().allocate(want) {
            return Some(found);
        }
        let copies: Vec<(FrameId, PageId)> = self
            .memory
            .frames()
            .iter_oldest()
            .take(SLOTS_SEARCHED_MAX)
            .filter(|&(_, page)| self.memory.objects().entry(page).slot().is_some())
            .take(want as usize)
            .collect();
        for (frame, page) in copies {
            self.memory.drop_slot(page);
            self.memory.frames_mut().set_dirty(frame, true);
        }
        self.memory.slots_mut().allocate(want)
    }

    pub(crate) fn log_page_outs(&mut self, cluster: &[(PageId, FrameId)]) {
        if !self.outbox.is_logging() {
            return;
        }
        for run in PageRun::divide(cluster.iter().map(|&(page, _)| page)) {
            self.outbox.log(Decision::PageOut(run));
        }
    }
}
