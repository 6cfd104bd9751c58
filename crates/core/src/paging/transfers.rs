//! The table of transfers: what is on its way between memory and pagers, and who waits for it.
//!
//! # Invariants
//! 1. The laundry is the number of pages in all stores under way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::event::Fault;
use crate::id::{FrameId, PageId, SlotId, SpaceId, Ticket};
use crate::memory::page_run::PageRun;
use crate::seams::pager::{Direction, Place, Request};

/// The space and the mapping of the fault that started a fetch.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) space: SpaceId,
    /// The number to add to an index in the object to get the virtual page.
    pub(crate) base: u64,
    /// True if pages without a waiting fault are mapped as soon as they are here.
    pub(crate) is_mapped: bool,
}

/// A request under way.
pub(crate) struct Transfer {
    request: Request,
    pages: Vec<PageId>,
    frames: Vec<FrameId>,
    waiters: Vec<Fault>,
    /// The page that was wanted, if any; the others of a fetch come ahead of their use.
    wanted: Option<PageId>,
    origin: Option<Origin>,
    /// True if the request brings a page from the swap store to its own pager.
    is_return: bool,
    /// True if the request brings back pages that were in use when their space was suspended.
    is_recall: bool,
    /// The slots of pages that were given up meanwhile, and that this transfer frees at its end.
    orphaned_slots: Vec<SlotId>,
}

/// The requests under way, by ticket.
pub(crate) struct Transfers {
    table: BTreeMap<Ticket, Transfer>,
    next_ticket: u64,
    laundry: u32,
}

impl Transfer {
    /// The pages as a run. For those of one walk only: others need not be consecutive.
    pub(crate) fn run(&self) -> PageRun {
        let first = self.pages[0];
        PageRun {
            object: first.object,
            first: first.index,
            pages: self.pages.len() as u32,
        }
    }

    /// The slots this transfer holds that no page table names.
    pub(crate) fn slots_held(&self) -> impl Iterator<Item = SlotId> + '_ {
        let stored = match (self.request.direction, self.request.place) {
            (Direction::Store, Place::Swap { first }) => first.0..first.0 + self.request.pages,
            _ => 0..0,
        };
        stored
            .map(SlotId)
            .chain(self.orphaned_slots.iter().copied())
    }

    pub(crate) fn pages(&self) -> &[PageId] {
        &self.pages
    }

    pub(crate) fn frames(&self) -> &[FrameId] {
        &self.frames
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    pub(crate) fn waiters(&self) -> &[Fault] {
        &self.waiters
    }

    pub(crate) fn into_waiters(self) -> Vec<Fault> {
        self.waiters
    }

    pub(crate) fn wanted(&self) -> Option<PageId> {
        self.wanted
    }

    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin
    }

    pub(crate) fn is_return(&self) -> bool {
        self.is_return
    }

    pub(crate) fn is_recall(&self) -> bool {
        self.is_recall
    }

    pub(crate) fn orphaned_slots(&self) -> &[SlotId] {
        &self.orphaned_slots
    }
}

impl Transfers {
    pub(crate) fn new() -> Transfers {
        Transfers {
            table: BTreeMap::new(),
            next_ticket: 1,
            laundry: 0,
        }
    }

    /// The ticket of the next request.
    pub(crate) fn take_ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket - 1)
    }

    /// Notes that `pages` are on their way to `frames`.
    pub(crate) fn begin_fetch(
        &mut self,
        ticket: Ticket,
        (pages, frames): (Vec<PageId>, Vec<FrameId>),
        place: Place,
        wanted: Option<PageId>,
        origin: Origin,
    ) -> Request {
        let request = Request {
            ticket,
            direction: Direction::Fetch,
            place,
            pages: pages.len() as u32,
            is_urgent: wanted.is_some(),
        };
        self.begin(Transfer {
            request,
            pages,
            frames,
            waiters: Vec::new(),
            wanted,
            origin: Some(origin),
            is_return: false,
            is_recall: false,
            orphaned_slots: Vec::new(),
        })
    }

    /// Notes that pages are on their way to their pager.
    pub(crate) fn begin_store(&mut self, leaving: &[(PageId, FrameId)], place: Place) -> Request {
        let request = Request {
            ticket: self.take_ticket(),
            direction: Direction::Store,
            place,
            pages: leaving.len() as u32,
            is_urgent: false,
        };
        self.laundry += request.pages;
        self.begin(Transfer {
            request,
            pages: leaving.iter().map(|&(page, _)| page).collect(),
            frames: leaving.iter().map(|&(_, frame)| frame).collect(),
            waiters: Vec::new(),
            wanted: None,
            origin: None,
            is_return: false,
            is_recall: false,
            orphaned_slots: Vec::new(),
        })
    }

    /// Has a fetch bring its page from the swap store to its own pager.
    pub(crate) fn mark_return(&mut self, ticket: Ticket) {
        self.get_mut(ticket).is_return = true;
    }

    /// Has a fetch bring back pages that were in use when their space was suspended.
    pub(crate) fn mark_recall(&mut self, ticket: Ticket) {
        self.get_mut(ticket).is_recall = true;
    }

    /// Has `fault` wait for a transfer.
    pub(crate) fn wait_for(&mut self, ticket: Ticket, fault: Fault) {
        self.get_mut(ticket).waiters.push(fault);
    }

    /// Leaves a slot to the transfer that still uses it, to be freed when that is over.
    pub(crate) fn orphan_slot(&mut self, ticket: Ticket, slot: SlotId) {
        self.get_mut(ticket).orphaned_slots.push(slot);
    }

    /// Takes a transfer out that has been answered.
    pub(crate) fn end(&mut self, ticket: Ticket) -> Transfer {
        let found = self.table.remove(&ticket);
        let transfer = found.expect("a reply names a request that has not been answered");
        if transfer.request.direction == Direction::Store {
            self.laundry -= transfer.request.pages;
        }
        transfer
    }

    pub(crate) fn get(&self, ticket: Ticket) -> &Transfer {
        self.find(ticket).expect("a ticket names a transfer")
    }

    pub(crate) fn find(&self, ticket: Ticket) -> Option<&Transfer> {
        self.table.get(&ticket)
    }

    /// The transfers under way, in the order in which they began.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Transfer> {
        self.table.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Pages on their way to the store.
    pub(crate) fn laundry(&self) -> u32 {
        self.laundry
    }

    fn begin(&mut self, transfer: Transfer) -> Request {
        let request = transfer.request;
        self.table.insert(request.ticket, transfer);
        request
    }

    fn get_mut(&mut self, ticket: Ticket) -> &mut Transfer {
        let found = self.table.get_mut(&ticket);
        found.expect("a page in transit has a transfer")
    }
}
