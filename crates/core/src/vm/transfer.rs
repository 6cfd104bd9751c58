//! Transfers: pages between memory and their pagers, from request to reply.
//!
//! # Invariants
//! 1. A transfer's frames are filling or leaving, and name its ticket.
//! 2. Its pages' owner may give them up while it runs. The page table then no longer names the
//!    frame, and the frame and the slot are freed when the reply comes, not before: a slot that is
//!    still being written gets no other page.

use crate::paging::transfers::{Origin, Transfer};
use alloc::vec::Vec;

use crate::decision::Decision;
use crate::event::{Event, Failure, Fault, Service};
use crate::id::{FrameId, PageId, SlotId, Ticket, VirtPage};
use crate::paging::attempt::Step;
use crate::readahead::fates::Fate;
use crate::seams::arrival::{Arrival, Cause};
use crate::seams::machine::{Machine, Rights};
use crate::seams::pager::{Direction, Outcome, Place, Reply};
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::served::Served;

impl Vm {
    /// The pages of a request that has not been answered, in the order of its frames. The pages
    /// of a store to the swap store need not be consecutive; their slots are.
    pub fn pages_of(&self, ticket: Ticket) -> &[PageId] {
        self.transfers.get(ticket).pages()
    }

    /// The frames of a request that has not been answered.
    pub fn frames_of(&self, ticket: Ticket) -> &[FrameId] {
        self.transfers.get(ticket).frames()
    }

    /// Takes in the answer to a request.
    ///
    /// Work: its pages, the faults that waited for them, and at most one round of reclaim for those
    /// that wait for a frame.
    pub fn handle_reply(&mut self, now: Time, machine: &mut dyn Machine, reply: Reply) {
        self.handle(now, Served::Released, machine, |vm, machine| {
            vm.end_transfer(machine, reply);
        });
    }

    fn end_transfer(&mut self, machine: &mut dyn Machine, reply: Reply) {
        let transfer = self.transfers.end(reply.ticket);
        transfer
            .orphaned_slots()
            .iter()
            .for_each(|&slot| self.memory.release_slot(slot));
        if let Some(origin) = transfer.origin() {
            self.pass_clock(origin.space);
        }
        let direction = transfer.request().direction;
        match direction {
            Direction::Fetch => self.end_fetch(machine, &transfer, reply.outcome),
            Direction::Store => self.end_store(machine, &transfer, reply.outcome),
        }
        let failure = (reply.outcome == Outcome::Failed && direction == Direction::Fetch)
            .then_some(Failure::PagerFailed);
        for fault in transfer.into_waiters() {
            match failure {
                Some(failure) => self.outbox.tell(Event::Failed(fault, failure)),
                None => self.serve_again(machine, fault),
            }
        }
        // The faults just served are over before room is made for others: a policy that asks
        // whether their pages are used must not find them not yet mapped.
        machine.settle();
        self.serve_stalled(machine);
    }

    /// Serves a fault that has waited, and says what became of it.
    pub(crate) fn serve_again(&mut self, machine: &mut dyn Machine, fault: Fault) {
        match self.serve(machine, fault, true) {
            Step::Resolved(service) => self.end_wait(fault, service),
            Step::Wait(ticket) => self.transfers.wait_for(ticket, fault),
            Step::Stall => {
                self.waiting.stall(fault);
                self.hold_page(fault);
            }
            Step::Invalid => self.outbox.tell(Event::Retry(fault)),
        }
    }

    /// Serves the faults that wait for a frame, in order, until one has to wait on.
    pub(crate) fn serve_stalled(&mut self, machine: &mut dyn Machine) {
        self.waiting.try_held(self.memory.frames_mut());
        while let Some(fault) = self.waiting.next_stalled() {
            match self.serve(machine, fault, true) {
                Step::Resolved(service) => self.end_wait(fault, service),
                Step::Wait(ticket) => self.transfers.wait_for(ticket, fault),
                Step::Invalid => self.outbox.tell(Event::Retry(fault)),
                Step::Stall => {
                    self.waiting.stall_on(fault);
                    self.hold_page(fault);
                    break;
                }
            }
        }
        self.fail_if_stuck();
    }

    /// From here on the pages of faults that have been served may leave again.
    pub(crate) fn release_served(&mut self) {
        self.waiting.release_served(self.memory.frames_mut());
    }

    /// Keeps the page of a stalled fault in memory, if it is there, for one fault at a time.
    pub(crate) fn hold_page(&mut self, fault: Fault) {
        if self.waiting.has_held() {
            return;
        }
        if let Some(frame) = self.frame_at(fault.space, fault.at) {
            self.waiting.hold(self.memory.frames_mut(), fault, frame);
        }
    }

    /// Says that a fault that has waited is served, and keeps its page until room has been made.
    fn end_wait(&mut self, fault: Fault, service: Service) {
        self.outbox.tell(Event::Resolved(fault, service));
        self.keep_served(fault);
    }

    /// Keeps the page of a fault that has been served until room has been made for others, if its
    /// owner has not given it up already.
    pub(crate) fn keep_served(&mut self, fault: Fault) {
        if let Some(frame) = self.frame_at(fault.space, fault.at) {
            self.waiting.keep_served(self.memory.frames_mut(), frame);
        }
    }

    pub(crate) fn begin_fetch(
        &mut self,
        pages: Vec<PageId>,
        frames: Vec<FrameId>,
        place: Place,
        wanted: Option<PageId>,
        origin: Origin,
    ) -> Ticket {
        let ticket = self.transfers.take_ticket();
        for (&page, &frame) in pages.iter().zip(&frames) {
            self.memory.fill(frame, page, ticket);
        }
        let request = self
            .transfers
            .begin_fetch(ticket, (pages, frames), place, wanted, origin);
        self.outbox.ask(request);
        self.counters.page_ins += u64::from(request.pages);
        self.counters.page_in_requests += 1;
        ticket
    }

    /// Starts reading a page from the swap store for its own pager.
    pub(crate) fn begin_return(
        &mut self,
        page: PageId,
        frame: FrameId,
        place: Place,
        origin: Origin,
    ) {
        let ticket = self.begin_fetch(Vec::from([page]), Vec::from([frame]), place, None, origin);
        self.transfers.mark_return(ticket);
    }

    pub(crate) fn begin_store(&mut self, leaving: &[(PageId, FrameId)], place: Place) {
        let request = self.transfers.begin_store(leaving, place);
        for &(_, frame) in leaving {
            self.memory.frames_mut().set_ticket(frame, request.ticket);
        }
        self.outbox.ask(request);
        self.counters.page_outs += u64::from(request.pages);
        self.counters.page_out_requests += 1;
    }

    fn end_fetch(&mut self, machine: &mut dyn Machine, transfer: &Transfer, outcome: Outcome) {
        if outcome == Outcome::Failed {
            self.counters.store_errors += 1;
        }
        let origin = transfer.origin().expect("a fetch has an origin");
        let marker = self.marker_of(transfer);
        for (&page, &frame) in transfer.pages().iter().zip(transfer.frames()) {
            let is_orphan = self.memory.objects().entry(page).frame() != Some(frame);
            if is_orphan || outcome == Outcome::Failed {
                if !is_orphan {
                    self.memory.clear_frame(page);
                }
                self.release_frame(machine, frame);
                continue;
            }
            if outcome == Outcome::Absent {
                machine.zero(frame);
            }
            self.memory.frames_mut().set_owner(frame, origin.space);
            if transfer.is_return() {
                self.end_return(page, frame);
                continue;
            }
            self.reclaim_copy(page, frame);
            self.memory.frames_mut().settle(frame);
            let is_wanted = transfer.wanted() == Some(page);
            let cause = if is_wanted || transfer.is_recall() {
                Cause::Fetched
            } else {
                Cause::Prefetched
            };
            self.tell_arrival(frame, cause);
            if transfer.is_recall() {
                if origin.is_mapped {
                    self.map_ahead(machine, origin, page, frame);
                }
            } else if !is_wanted {
                self.note_ahead(frame, marker == Some(page.index));
                if origin.is_mapped && marker != Some(page.index) {
                    self.map_ahead(machine, origin, page, frame);
                }
            }
        }
    }

    /// The page whose soft fault is to tell that the reader has come this far: the first that it
    /// will reach, in a group without a waiting fault.
    fn marker_of(&self, transfer: &Transfer) -> Option<u64> {
        let run = transfer.run();
        // The object may be gone by now.
        let is_external = matches!(transfer.request().place, Place::External { .. });
        if transfer.wanted().is_some() || self.reads_as_linux(is_external) {
            return None;
        }
        let stream = self
            .streams
            .find(run.object, run.first)
            .map(|n| self.streams.get(n));
        match stream.map(|stream| stream.heading) {
            Some(crate::readahead::streams::Heading::Backward) => Some(run.end() - 1),
            Some(crate::readahead::streams::Heading::Forward) | None => Some(run.first),
        }
    }

    /// Maps a page that came ahead of its use, if it would still be seen there.
    fn map_ahead(
        &mut self,
        machine: &mut dyn Machine,
        origin: Origin,
        page: PageId,
        frame: FrameId,
    ) {
        let at = VirtPage(page.index.wrapping_add(origin.base));
        let Some(region) = self
            .memory
            .spaces()
            .get(origin.space)
            .and_then(|space| space.find(at))
        else {
            return;
        };
        if region.object != page.object || region.index_at(at) != page.index {
            return;
        }
        let rights = if region.needs_copy {
            Rights::Read
        } else {
            region.rights
        };
        if rights == Rights::None {
            return;
        }
        machine.enter(origin.space, at, frame, rights);
        self.memory.map(frame, origin.space, at);
        self.memory.frames_mut().change_fate(frame, Fate::mapped);
    }

    fn end_store(&mut self, machine: &mut dyn Machine, transfer: &Transfer, outcome: Outcome) {
        let is_done = outcome == Outcome::Done;
        if is_done {
            self.stores_failed = 0;
            self.is_store_full = false;
        } else {
            self.counters.store_errors += 1;
            self.stores_failed += 1;
            self.outbox.tell(Event::StoreFailed);
        }
        for (number, (&page, &frame)) in transfer.pages().iter().zip(transfer.frames()).enumerate()
        {
            let slot = match transfer.request().place {
                Place::Swap { first } => Some(SlotId(first.0 + number as u32)),
                Place::External { .. } => None,
            };
            if self.memory.objects().entry(page).frame() != Some(frame) {
                slot.into_iter()
                    .for_each(|slot| self.memory.release_slot(slot));
                self.release_frame(machine, frame);
                continue;
            }
            if !is_done {
                slot.into_iter()
                    .for_each(|slot| self.memory.release_slot(slot));
                self.memory.frames_mut().set_dirty(frame, true);
                self.keep(frame);
                continue;
            }
            self.memory.frames_mut().set_dirty(frame, false);
            self.memory.put_slot(page, slot);
            self.note_slot(page, slot);
            if self.memory.frames().is_wanted(frame) {
                self.counters.reactivations += 1;
                self.reclaim_copy(page, frame);
                self.keep(frame);
            } else if let Some(back) = self.memory.frames().cleaned_as(frame) {
                self.put_back(frame, back);
            } else {
                self.defer_writeback(page, frame);
                self.memory.clear_frame(page);
                self.release_frame(machine, frame);
            }
        }
    }

    /// A page that was to leave stays.
    pub(crate) fn keep(&mut self, frame: FrameId) {
        self.put_back(frame, Cause::Kept);
    }

    /// Makes a leaving frame resident again, and says why.
    pub(crate) fn put_back(&mut self, frame: FrameId, cause: Cause) {
        self.memory.frames_mut().settle(frame);
        let page = self.tell_arrival(frame, cause);
        if cause == Cause::Kept {
            self.outbox.log(Decision::Keep(page));
        }
    }

    /// Tells the policy of a page that has come, or that it has been told has left.
    pub(crate) fn tell_arrival(&mut self, frame: FrameId, cause: Cause) -> PageId {
        let page = self
            .memory
            .frames()
            .page(frame)
            .expect("a resident frame has a page");
        let object = self.memory.objects().get(page.object);
        let is_external = object.is_outside(page.index);
        let space = self.memory.frames().owner(frame);
        self.policy.page_entered(
            frame,
            &Arrival {
                page,
                cause,
                space,
                is_external,
            },
        );
        page
    }
}
