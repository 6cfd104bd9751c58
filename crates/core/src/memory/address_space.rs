//! Spaces: what one program sees, as regions that map ranges of objects.
//!
//! # Invariants
//! 1. Regions of a space do not overlap and none is empty.
//! 2. Each region is one holder of its object.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{ObjectId, SpaceId, VirtPage};
use crate::kernels::swap_window::Window;
use crate::seams::load_control::Turn;
use crate::seams::machine::Rights;

/// Advice of a program on its use of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Advice {
    /// Nothing said: runs are detected.
    Normal,
    /// Upwards, page after page: read ahead.
    Sequential,
    /// Downwards, page after page: read behind.
    Reverse,
    /// No order: one page at a time.
    Random,
}

/// The reason why memory cannot be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The space does not exist.
    NoSpace,
    /// No pages were asked for, or more than an address space holds.
    BadLength,
    /// Something is mapped there already: unmap it first.
    Occupied,
}

/// The effect of a fork on a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inherit {
    /// The child sees a copy.
    Copy,
    /// Both see the same pages.
    Share,
}

/// A part of a space that maps a range of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) pages: u64,
    pub(crate) object: ObjectId,
    /// The index in the object of the region's first page.
    pub(crate) offset: u64,
    pub(crate) rights: Rights,
    pub(crate) inherit: Inherit,
    pub(crate) advice: Advice,
    /// The object is shared for reading with the other side of a fork: a write shadows it first.
    pub(crate) needs_copy: bool,
    /// No program sees it: through it the kernel copies bytes of a file, or keeps the file.
    pub(crate) is_window: bool,
    /// The window that was read around its last fault.
    pub(crate) around: Window,
}

impl Region {
    /// Pages of an object, from one of them on, that a fork copies, and that are written to
    /// directly.
    pub(crate) fn private(
        at: VirtPage,
        pages: u64,
        (object, offset): (ObjectId, u64),
        rights: Rights,
    ) -> Region {
        Region {
            start: at.0,
            pages,
            object,
            offset,
            rights,
            inherit: Inherit::Copy,
            advice: Advice::Normal,
            needs_copy: false,
            is_window: false,
            around: Window::NEW,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.pages
    }

    /// The index in the object of the page at `at`.
    pub(crate) fn index_at(&self, at: VirtPage) -> u64 {
        self.offset + (at.0 - self.start)
    }
}

pub(crate) struct Space {
    pub(super) regions: BTreeMap<u64, Region>,
    /// Faults taken so far, for load control.
    pub(crate) faults: u64,
    /// Of those, the ones for which a page was fetched.
    pub(crate) page_ins: u64,
    /// The time that its faults have waited, in nanoseconds, as counted at ticks.
    pub(crate) waited_ns: u64,
    /// The virtual time of its programs, if a driver tells it.
    pub(crate) ticks: Option<u64>,
    /// The scheduler's last word of it.
    pub(crate) turn: Turn,
    /// Load control wants it not to run.
    pub(crate) is_suspended: bool,
    /// Load control wants none of its pages in memory.
    pub(crate) is_swapped_out: bool,
}

impl Space {
    pub(crate) fn find(&self, at: VirtPage) -> Option<&Region> {
        let (_, region) = self.regions.range(..=at.0).next_back()?;
        (at.0 < region.end()).then_some(region)
    }

    /// All regions, in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.values()
    }

    /// The regions that overlap `first..end`, in order.
    pub(crate) fn collect_overlaps(&self, first: u64, end: u64) -> Vec<Region> {
        let below = self
            .regions
            .range(..first)
            .next_back()
            .map(|(_, region)| region);
        let below = below.filter(|region| region.end() > first);
        below
            .into_iter()
            .chain(self.regions.range(first..end).map(|(_, r)| r))
            .copied()
            .collect()
    }
}

/// All spaces, by number.
pub(crate) struct Spaces {
    table: Vec<Option<Space>>,
}

impl Spaces {
    pub(crate) fn new() -> Spaces {
        Spaces { table: Vec::new() }
    }

    pub(super) fn create(&mut self) -> SpaceId {
        let blank = Space {
            regions: BTreeMap::new(),
            faults: 0,
            page_ins: 0,
            waited_ns: 0,
            ticks: None,
            turn: Turn::default(),
            is_suspended: false,
            is_swapped_out: false,
        };
        if let Some(number) = self.table.iter().position(Option::is_none) {
            self.table[number] = Some(blank);
            return SpaceId(number as u32);
        }
        self.table.push(Some(blank));
        SpaceId(self.table.len() as u32 - 1)
    }

    pub(super) fn destroy(&mut self, id: SpaceId) {
        let space = self.table[id.0 as usize]
            .take()
            .expect("a space is destroyed once");
        assert!(space.regions.is_empty());
    }

    pub(crate) fn get(&self, id: SpaceId) -> Option<&Space> {
        self.table.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        self.table.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn ids(&self) -> Vec<SpaceId> {
        self.iter().map(|(id, _)| id).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        let numbered = self.table.iter().enumerate();
        numbered.filter_map(|(number, s)| Some((SpaceId(number as u32), s.as_ref()?)))
    }
}
