//! Faults and what becomes of them, and the other things that programs and their scheduler must
//! know.

use crate::id::{SpaceId, VirtPage, Waiter};
use crate::seams::machine::Rights;

/// The kind of access that a program tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// To read, or to fetch an instruction.
    Read,
    /// To write.
    Write,
    /// To write all of the page. Through a [window](crate::vm::Vm::map_window) nothing is read for
    /// it; else the same as `Write`.
    Overwrite,
}

impl Access {
    /// The rights it needs.
    pub fn needed(self) -> Rights {
        match self {
            Access::Read => Rights::Read,
            Access::Write | Access::Overwrite => Rights::Write,
        }
    }

    /// Returns true if the access writes (dirties) the page.
    pub fn is_store(self) -> bool {
        self.needed() == Rights::Write
    }
}

/// A touch that the machine could not carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The space it happened in.
    pub space: SpaceId,
    /// The page that was touched.
    pub at: VirtPage,
    /// The kind of access.
    pub access: Access,
    /// The one that waits; handed back in [`Event`]s.
    pub waiter: Waiter,
}

/// The answer that can be given to a fault at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// The page is mapped; the program may go on.
    Resolved(Service),
    /// The fault waits: an [`Event`] with the same waiter follows.
    Pending(Delay),
    /// There is no region, or its rights do not allow the access.
    Invalid,
}

/// The way a fault was served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// A minor fault: the page was in memory, and is mapped again.
    Minor,
    /// A major fault: the page came, or was kept, while the fault waited.
    Major,
    /// The page is new, and full of zeros.
    ZeroFill,
    /// The page is a private copy of one that others see too.
    Copy,
    /// The page is in memory for a system call to [copy](crate::vm::Vm::handle_copy), and is mapped
    /// nowhere.
    Buffer,
}

/// The first thing that a fault waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delay {
    /// A page-in that is under way.
    PageIn,
    /// A writeback that is under way: the page was on its way out.
    Writeback,
    /// A free frame.
    Frame,
}

/// The reason why a fault can't be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The pager could not deliver the page.
    PagerFailed,
    /// Memory is full, and the store fails to take pages.
    StoreFailed,
    /// Memory is full, and so is the store.
    StoreFull,
}

/// Something a program or its scheduler must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A pending fault is over: the page is mapped.
    Resolved(Fault, Service),
    /// A pending fault can't be served.
    Failed(Fault, Failure),
    /// A pending fault's region changed while it waited: let the program touch again.
    Retry(Fault),
    /// The store has no room for a page that had to leave. Said once until it has room again.
    StoreFull,
    /// The store failed to take pages, which stay in memory.
    StoreFailed,
    /// A page that can't be unmapped is no longer counted: others need its frame. It stays where it
    /// stands, until [`Vm::handle_disowned`](crate::vm::Vm::handle_disowned) takes it back or the
    /// program gives it up.
    Disowned {
        /// The space that has it.
        space: SpaceId,
        /// The page's virtual address.
        at: VirtPage,
    },
    /// Load control: run the space no more until [`Event::Resume`].
    Suspend {
        /// The address space.
        space: SpaceId,
    },
    /// Load control: run the space again.
    Resume {
        /// The address space.
        space: SpaceId,
    },
}
