//! The state of one attempt to serve a fault: the fault's region and object, its outcome, the pages
//! that move along, and the purpose of frames.

use crate::event::{Fault, Service};
use crate::id::{ObjectId, PageId, Ticket};
use crate::memory::address_space::Region;
use crate::memory::object::Entry;
use crate::memory::page_run::PageRun;

/// The result of the search for a page.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) page: PageId,
    pub(crate) entry: Entry,
    /// True if the page shows through from below the region's own object.
    pub(crate) is_below: bool,
}

/// The result of one attempt to serve a fault.
pub(crate) enum Step {
    Resolved(Service),
    Wait(Ticket),
    Stall,
    Invalid,
}

/// A fault's surroundings: the region it fell in and where its page is.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) fault: Fault,
    pub(crate) region: Region,
    pub(crate) found: Found,
    pub(crate) is_retry: bool,
}

impl Scene {
    /// The part of the found object that the region shows, as first index and end.
    pub(crate) fn reach(&self) -> (u64, u64) {
        let before = self.fault.at.0 - self.region.start;
        let first = self.found.page.index - before.min(self.found.page.index);
        (
            first,
            self.found.page.index + (self.region.end() - self.fault.at.0),
        )
    }
}

/// Pages that move in one request.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) first: u64,
    pub(crate) pages: u32,
}

impl Group {
    pub(crate) fn of(self, object: ObjectId) -> PageRun {
        let Group { first, pages } = self;
        PageRun {
            object,
            first,
            pages,
        }
    }
}

/// The purpose for which frames are needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// For a page that a fault waits for.
    Awaited,
    /// For adopting a page that is already mapped.
    Standing,
    /// For pages that will be wanted soon.
    Ahead,
    /// For the next faults.
    Reserve,
}
