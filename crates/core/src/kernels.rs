//! Kernels: the mechanisms that simulated kernels turn on. A live process uses none of them.
//!
//! Their settings, their state and their rules are here. Their steps, which use the tables, are in
//! `vm/kernels`.

pub mod page_daemon;
pub mod pid_controller;
pub(crate) mod swap_window;

/// The mechanisms of a simulated kernel that are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The way the page daemon works and waits; `None`: room is made at once, for the fault that
    /// needs it.
    pub pacing: Option<Pacing>,
    /// The way pages get their slots on the swap store, and whether clusters have places there.
    pub placement: Placement,
    /// The pages read from the swap store with a page that is wanted. Without effect
    /// [in place](Placement::InPlace).
    pub swap_ahead: SwapAhead,
}

impl Kernel {
    /// A live process's.
    pub const NONE: Kernel = Kernel {
        pacing: None,
        placement: Placement::Together,
        swap_ahead: SwapAhead::Streams,
    };
}

/// The way the page daemon works and waits.
///
/// - Needs: `free_low` at least, and `free_high` more than the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// Pass after pass, until [`free_high`](crate::config::Config::free_high) frames are free.
    Passes(Passes),
    /// The number of pages that a controller asks for, once in each interval while less than
    /// [`free_high`](crate::config::Config::free_high) frames are free; and at once when no more
    /// than [`free_low`](crate::config::Config::free_low) are, unless the last time was in vain.
    Controlled(Gains),
}

/// The way passes go. Counts are in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// The most pages one pass gives up.
    pub pass_pages: u32,
    /// The daemon waits after a pass when this many pages are on their way to their pagers, not
    /// counting neighbours that are [written along](Placement::InPlace).
    pub wait_laundry: u32,
    /// The daemon goes on when no more than this many pages are on their way.
    pub resume_laundry: u32,
    /// The daemon goes on after this time at the latest.
    pub wait_ns: u64,
    /// The addition to that time for each page on its way.
    pub wait_page_ns: u64,
    /// True if faults that find no more than the reserve free make all others wait too, until
    /// [`free_high`](crate::config::Config::free_high) are free.
    pub is_pausing: bool,
    /// True if modified pages of external objects go to the swap store while they wait: see
    /// `vm::kernels::double_paging`.
    pub is_double_paging: bool,
}

/// The strength of a controller's answers. FreeBSD's are [`GAINS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gains {
    /// From one interval to the next.
    pub interval_ns: u64,
    /// The divisor of the pages missing now.
    pub error: i64,
    /// The sum of missing frames counts for one in this many.
    pub integral: i64,
    /// The bound of the sum of missing frames, as a multiple of the target.
    pub bound: i64,
    /// The divisor of the pages missing more than an interval before.
    pub derivative: i64,
}

/// FreeBSD's (`pidctrl.h`, `VM_INACT_SCAN_RATE`).
pub const GAINS: Gains = Gains {
    interval_ns: 100_000_000,
    error: 3,
    integral: 4,
    bound: 4,
    derivative: 8,
};

/// The way pages get their slots, and which of them move with the one that has to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Pages that leave together get consecutive slots, each time others. Detected streams tell
    /// what is read along.
    Together,
    /// Each cluster of an object has its block of the store. Modified neighbours in the cluster of
    /// a page that leaves are written too. Advice tells what of a cluster is read along; without
    /// any, as many pages behind the wanted one as
    /// [`default_cluster_pages`](crate::config::Config::default_cluster_pages) leaves.
    InPlace,
}

/// The pages read from the swap store with a page that is wanted. Counts are powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapAhead {
    /// The pages that a detected stream is about to reach, or
    /// [`default_cluster_pages`](crate::config::Config::default_cluster_pages) around the page.
    Streams,
    /// The aligned block of this many slots, up to the first that is free.
    Block(u32),
    /// An aligned block of at most this many slots, as large as the last was of use.
    Slots(u32),
    /// At most this many pages around the wanted one by address, as many as the last were of use in
    /// this region.
    Addresses(u32),
}

impl SwapAhead {
    /// This read-ahead with other sizes: the largest power of two that is not above `pages`.
    pub fn resized(self, pages: u32) -> SwapAhead {
        let size = 1 << pages.max(1).ilog2();
        match self {
            SwapAhead::Streams => SwapAhead::Streams,
            SwapAhead::Block(_) => SwapAhead::Block(size),
            SwapAhead::Slots(_) => SwapAhead::Slots(size),
            SwapAhead::Addresses(_) => SwapAhead::Addresses(size),
        }
    }

    /// The most pages of one reading; `None` if that is for others to say.
    pub fn pages_max(self) -> Option<u32> {
        match self {
            SwapAhead::Streams => None,
            SwapAhead::Block(most) | SwapAhead::Slots(most) | SwapAhead::Addresses(most) => {
                Some(most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two() {
        let sizes = [1, 2, 3, 8, 9].map(|pages| SwapAhead::Slots(8).resized(pages));
        let sizes = sizes.map(|size| size.pages_max().unwrap());
        assert_eq!(sizes, [1, 2, 2, 8, 8]);
        assert_eq!(SwapAhead::Streams.resized(4), SwapAhead::Streams);
    }
}
