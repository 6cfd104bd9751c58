//! The second seam: two messages to and from the keepers of the contents of memory objects.
//!
//! The core holds no pager, and calls none: stores and simulated disks have little in common but
//! these two messages. It writes down [`Request`]s; a driver collects them from
//! [`Vm::poll_request`](crate::vm::Vm::poll_request), carries them out in any order, and brings
//! each [`Reply`] to [`Vm::handle_reply`](crate::vm::Vm::handle_reply).
//!
//! Pages of internal objects go to the swap store, whose slots the core itself hands out (see
//! [`backing`](crate::memory::swap_slots)): a driver needs only the slot's number to find the
//! bytes. Pages of external objects go to a pager the driver knows by its [`PagerId`].

use crate::id::{PagerId, SlotId, Ticket};

/// The place where the bytes of a transfer live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the swap store: consecutive slots from `first`, one a page, in the order of the pages.
    Swap {
        /// The slot of the first page.
        first: SlotId,
    },
    /// With an external pager, under the pages' own indices, which are consecutive.
    External {
        /// The pager.
        pager: PagerId,
    },
}

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the store into frames.
    Fetch,
    /// From frames to the store.
    Store,
}

/// One piece of work for a pager. The pages and frames it concerns are read from
/// [`Vm::pages_of`](crate::vm::Vm::pages_of) and [`Vm::frames_of`](crate::vm::Vm::frames_of)
/// until its reply has been handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Ties the reply to the request.
    pub ticket: Ticket,
    /// Fetch or store.
    pub direction: Direction,
    /// The place where the bytes live.
    pub place: Place,
    /// The number of pages to be moved.
    pub pages: u32,
    /// True if a program is waiting for it now. Read-ahead and laundry may give way.
    pub is_urgent: bool,
}

/// The way a transfer ended. It holds for all its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All bytes were moved.
    Done,
    /// The pager has nothing for these pages: they read as zeros. Fetches only.
    Absent,
    /// The bytes could not be moved. A failed fetch fails the faults that wait for it; a failed
    /// store leaves its pages in memory.
    Failed,
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The request that is answered.
    pub ticket: Ticket,
    /// The way it ended.
    pub outcome: Outcome,
}
