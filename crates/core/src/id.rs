//! The names of things: frames, objects, pages, spaces, and the marks that tie answers to
//! questions.
//!
//! Every identifier is a newtype over an index, so that an index into one table cannot be used in
//! another. None of them is a pointer: the same run gives the same numbers.

/// The number of bytes in a page. All machines of this core use the same page size.
pub const PAGE_BYTES: u64 = 4096;

/// A slot of memory, numbered from zero up to the size of the frame table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u32);

impl FrameId {
    /// The position of this frame in tables that have one entry a frame.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A memory object: a sequence of pages with one pager behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

/// One page of one object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId {
    /// The object that holds the page.
    pub object: ObjectId,
    /// The page's place in the object, in pages from its start.
    pub index: u64,
}

/// An address space: what one program sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpaceId(pub u32);

/// A virtual page: an address divided by [`PAGE_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VirtPage(pub u64);

impl VirtPage {
    /// The page that many pages further up.
    pub fn plus(self, pages: u64) -> VirtPage {
        VirtPage(self.0 + pages)
    }
}

/// A place on the swap store, one page long, numbered from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(pub u32);

/// Ties a [`Reply`](crate::seams::pager::Reply) to its [`Request`](crate::seams::pager::Request).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// The waiter for a fault: chosen by the caller, handed back when the fault is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Waiter(pub u64);

/// An external pager, as numbered by the driver that serves it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PagerId(pub u32);
