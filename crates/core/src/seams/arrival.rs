//! Arrivals and departures: how pages come to frames and leave them.

use crate::id::{PageId, SpaceId};

/// The reason for which a page came to its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// First touch of anonymous memory.
    ZeroFill,
    /// Zeroed ahead of its first touch because its neighbours were touched in order.
    ZeroAhead,
    /// Read because a program waits for it; or a page of a file that is about to be written whole.
    Fetched,
    /// Read along with another page, and not touched yet.
    Prefetched,
    /// The private copy a write to a shared page made.
    Copied,
    /// Present before the core knew of it.
    Adopted,
    /// Chosen to leave, and kept after all: touched, pinned, or its store failed.
    Kept,
    /// Written because the policy wanted it [clean](super::policy::Policy::clean). Not mapped.
    Cleaned,
}

impl Cause {
    /// All, by their numbers.
    pub(crate) const ALL: [Cause; 8] = [
        Cause::ZeroFill,
        Cause::ZeroAhead,
        Cause::Fetched,
        Cause::Prefetched,
        Cause::Copied,
        Cause::Adopted,
        Cause::Kept,
        Cause::Cleaned,
    ];
}

/// The use that a system call makes of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelUse {
    /// The one for which the page has come.
    First,
    /// The page was there.
    Again,
}

/// A page's coming, as a policy learns of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The page.
    pub page: PageId,
    /// The reason for which it came.
    pub cause: Cause,
    /// The space whose fault brought it.
    pub space: SpaceId,
    /// True if the page belongs to an external object (a file or a user's pager).
    pub is_external: bool,
}

/// The reason for which a page left its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// The policy chose it. It may be wanted again.
    Evicted,
    /// Its owner gave it up. It will not come back under this name.
    Discarded,
}
