//! The machine of the core: real tables of pages, with the processor's accessed and dirty bits.
//!
//! Changes are made in the tables at once. What the processor may still remember of the table in
//! use is noted, and forgotten in one go when the core settles: page by page if it is little, else
//! all. Other tables need nothing, since taking one into use makes the processor forget.
//!
//! # Invariants
//! 1. A present entry leads to a frame, and is in the reverse map of that frame, or leads to a
//!    pinned page that the core does not know.
//! 2. What entries that are gone have said of a page's use is kept with its frame until it is
//!    asked for, or another page comes.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::memory::reverse_map::ReverseMap;
use tidemark_core::seams::machine::{Machine, PageBits, Rights};

use crate::arch::frames::Frames;
use crate::arch::paging::{self, Allow, Entry, KernelTable, PAGE_BYTES, Page, UserTable};

/// With more pages than this to forget, all are forgotten.
const FORGOTTEN_SINGLY_MAX: usize = 32;

/// The work the tables were made to do.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    /// Entries made and changed.
    pub entered: u64,
    /// Entries removed.
    pub removed: u64,
    /// Pages the processor was told to forget.
    pub forgotten_pages: u64,
    /// Times it was told to forget all.
    pub forgotten_all: u64,
}

struct Space {
    table: UserTable,
    /// The pages that may be executed.
    text: Vec<Range<u64>>,
}

/// The tables of all spaces, over the frames.
pub struct PageTables {
    frames: Frames,
    kernel: KernelTable,
    spaces: Vec<Option<Space>>,
    places: ReverseMap,
    was_accessed: Vec<bool>,
    was_dirty: Vec<bool>,
    /// Pages of the table in use that the processor may remember wrongly.
    stale: Vec<u64>,
    work: Work,
}

impl PageTables {
    /// Tables for no space yet.
    pub fn new(frames: Frames, kernel: KernelTable) -> PageTables {
        let count = frames.count() as usize;
        PageTables {
            places: ReverseMap::new(count),
            was_accessed: vec![false; count],
            was_dirty: vec![false; count],
            frames,
            kernel,
            spaces: Vec::new(),
            stale: Vec::new(),
            work: Work::default(),
        }
    }

    /// Makes a table for `space`, which has none.
    pub fn create(&mut self, space: SpaceId) {
        let number = space.0 as usize;
        if self.spaces.len() <= number {
            self.spaces.resize_with(number + 1, || None);
        }
        assert!(self.spaces[number].is_none());
        self.spaces[number] = Some(Space {
            table: UserTable::new(&self.kernel),
            text: Vec::new(),
        });
    }

    /// Ends the table of `space`. The core has unmapped everything there.
    pub fn destroy(&mut self, space: SpaceId) {
        let ended = self.spaces[space.0 as usize].take();
        let ended = ended.expect("a space ends once");
        if ended.table.is_active() {
            self.kernel.activate();
            self.stale.clear();
        }
    }

    /// Uses the table of `space`.
    pub fn activate(&mut self, space: SpaceId) {
        self.space(space).table.activate();
    }

    /// Has pages of `space` be executable.
    pub fn add_text(&mut self, space: SpaceId, pages: Range<u64>) {
        self.space(space).text.push(pages);
    }

    /// Returns true if the page at `at` may be executed.
    pub fn is_text(&self, space: SpaceId, at: VirtPage) -> bool {
        let found = self.spaces[space.0 as usize].as_ref();
        found.is_some_and(|found| found.is_text(at))
    }

    /// Returns true if some of `pages` may be executed.
    pub fn has_text(&self, space: SpaceId, pages: Range<u64>) -> bool {
        let found = self.spaces[space.0 as usize].as_ref();
        let is_among = |text: &Range<u64>| text.start < pages.end && pages.start < text.end;
        found.is_some_and(|found| found.text.iter().any(is_among))
    }

    /// Makes the tables in which the entry of `at` will stand, so that it takes no memory when it
    /// is entered.
    pub fn prepare(&mut self, space: SpaceId, at: VirtPage) {
        self.space(space).table.prepare(at.0);
    }

    /// Has the pages of `child` be executable that are so in `parent`.
    pub fn copy_text(&mut self, parent: SpaceId, child: SpaceId) {
        self.space(child).text = self.space(parent).text.clone();
    }

    /// Maps a page of the kernel's heap into `space`, for as long as the space lives.
    pub fn pin(&mut self, space: SpaceId, at: VirtPage, page: Box<Page>, allow: Allow) {
        self.space(space).table.pin(at.0, page, allow);
    }

    /// The bytes at `at`, for the kernel to read or write on behalf of the program, as far as the
    /// program itself may just now. Counts as a use by the program.
    pub fn reach(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        is_write: bool,
    ) -> Option<&mut [u8; PAGE_BYTES]> {
        let table = &mut self.spaces[space.0 as usize].as_mut()?.table;
        let entry = table.entry(at.0);
        if !entry.is_present() || is_write && !entry.is_writable() {
            return None;
        }
        if table.is_pinned(at.0) {
            return table.pinned_at(at.0);
        }
        table.set_entry(at.0, entry.used(is_write));
        let frame = entry.frame(&self.frames)?;
        Some(self.frames.bytes_mut(frame))
    }

    /// Forgets that `at` was used, so that the bit shows the next use.
    pub fn forget_use(&mut self, space: SpaceId, at: VirtPage) {
        let table = &mut self.space(space).table;
        let entry = table.entry(at.0);
        if entry.is_present() && entry.is_accessed() {
            table.set_entry(at.0, entry.without_accessed());
            self.note_stale(space, at);
        }
    }

    /// The frames' contents.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The frames' contents, to be changed.
    pub fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// The work done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Checks the tables against the reverse map. Panics if they contradict each other.
    pub fn check(&self) {
        for number in 0..self.frames.count() {
            let frame = FrameId(number);
            for (space, at) in self.places.iter(frame) {
                let found = self.spaces[space.0 as usize].as_ref();
                let entry = found.expect("mappings stand in spaces").table.entry(at.0);
                assert_eq!(
                    entry.frame(&self.frames),
                    Some(frame),
                    "at {at:?} of {space:?}"
                );
            }
        }
    }

    fn space(&mut self, space: SpaceId) -> &mut Space {
        let found = self.spaces[space.0 as usize].as_mut();
        found.expect("a space in use has a table")
    }

    fn note_stale(&mut self, space: SpaceId, at: VirtPage) {
        if self.space(space).table.is_active() {
            self.stale.push(at.0);
        }
    }

    /// Removes one mapping, keeping what its bits say.
    fn remove_at(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        let table = &mut self.space(space).table;
        let entry = table.entry(at.0);
        table.set_entry(at.0, Entry::NONE);
        assert_eq!(
            entry.frame(&self.frames),
            Some(frame),
            "at {at:?} of {space:?}"
        );
        self.was_accessed[frame.index()] |= entry.is_accessed();
        self.was_dirty[frame.index()] |= entry.is_dirty();
        self.work.removed += 1;
        self.note_stale(space, at);
    }

    fn remove_all(&mut self, frame: FrameId) {
        let places: Vec<(SpaceId, VirtPage)> = self.places.iter(frame).collect();
        self.places.clear(frame);
        for (space, at) in places {
            self.remove_at(space, at, frame);
        }
    }

    /// Changes the entries that lead to `frame`.
    fn change_all(&mut self, frame: FrameId, change: impl Fn(Entry) -> Entry) {
        let places: Vec<(SpaceId, VirtPage)> = self.places.iter(frame).collect();
        for (space, at) in places {
            let table = &mut self.space(space).table;
            let before = table.entry(at.0);
            let after = change(before);
            if after != before {
                table.set_entry(at.0, after);
                self.note_stale(space, at);
            }
        }
    }

    fn forget_frame(&mut self, frame: FrameId) {
        self.was_accessed[frame.index()] = false;
        self.was_dirty[frame.index()] = false;
    }
}

impl Space {
    fn is_text(&self, at: VirtPage) -> bool {
        self.text.iter().any(|pages| pages.contains(&at.0))
    }
}

impl PageBits for PageTables {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        let mut was_used = core::mem::take(&mut self.was_accessed[frame.index()]);
        for (space, at) in self.places.iter(frame) {
            let found = self.spaces[space.0 as usize].as_ref();
            was_used |= found.is_some_and(|found| found.table.entry(at.0).is_accessed());
        }
        self.change_all(frame, Entry::without_accessed);
        was_used
    }

    fn take_referenced_at(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) -> bool {
        let table = &self.space(space).table;
        let entry = table.entry(at.0);
        let is_used = entry.is_accessed() && entry.frame(&self.frames) == Some(frame);
        if is_used {
            self.forget_use(space, at);
        }
        is_used
    }

    fn may_be_modified(&self, frame: FrameId) -> bool {
        let is_dirty = |(space, at): (SpaceId, VirtPage)| {
            let found = self.spaces[space.0 as usize].as_ref();
            found.is_some_and(|found| found.table.entry(at.0).is_dirty())
        };
        self.was_dirty[frame.index()] || self.places.iter(frame).any(is_dirty)
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        assert!(
            self.places.iter(frame).next().is_none(),
            "asked of unmapped frames"
        );
        let was_dirty = self.was_dirty[frame.index()];
        self.forget_frame(frame);
        was_dirty
    }
}

impl Machine for PageTables {
    fn enter(&mut self, space: SpaceId, at: VirtPage, frame: FrameId, rights: Rights) {
        let found = self.spaces[space.0 as usize].as_mut();
        let found = found.expect("a space in use has a table");
        let allow = match rights {
            Rights::None => unreachable!("what is entered can be used"),
            Rights::Read if found.is_text(at) => Allow::Execute,
            Rights::Read => Allow::Read,
            Rights::Write => Allow::Write,
        };
        let before = found.table.entry(at.0);
        let mut entry = Entry::new(&self.frames, frame, allow);
        if before.is_present() {
            assert_eq!(
                before.frame(&self.frames),
                Some(frame),
                "a mapping leaves before another comes"
            );
            entry = entry.with_use_of(before);
        }
        found.table.set_entry(at.0, entry);
        self.places.insert(frame, space, at);
        self.work.entered += 1;
        if before.is_present() {
            self.note_stale(space, at);
        }
    }

    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        match rights {
            Rights::None => self.remove_all(frame),
            Rights::Read => self.change_all(frame, Entry::read_only),
            Rights::Write => {}
        }
    }

    fn leave(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        if self.places.remove(frame, space, at) {
            self.remove_at(space, at, frame);
        }
    }

    fn discard(&mut self, frame: FrameId) {
        self.remove_all(frame);
        self.forget_frame(frame);
    }

    fn zero(&mut self, frame: FrameId) {
        self.frames.bytes_mut(frame).fill(0);
        self.forget_frame(frame);
    }

    fn copy(&mut self, from: FrameId, to: FrameId) {
        self.frames.copy(from, to);
        self.forget_frame(to);
    }

    fn adopt(&mut self, _space: SpaceId, _at: VirtPage, _frame: FrameId) {
        unreachable!("every page comes through the core");
    }

    fn relocate(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, frame: FrameId) {
        if !self.places.remove(frame, space, from) {
            return;
        }
        let entry = self.space(space).table.entry(from.0);
        self.remove_at(space, from, frame);
        self.space(space).table.set_entry(to.0, entry);
        self.places.insert(frame, space, to);
    }

    fn retire(&mut self, frame: FrameId) {
        self.forget_frame(frame);
    }

    fn settle(&mut self) {
        if self.stale.len() > FORGOTTEN_SINGLY_MAX {
            paging::forget_all();
            self.work.forgotten_all += 1;
        } else {
            self.stale
                .iter()
                .for_each(|&page| paging::forget_page(page));
            self.work.forgotten_pages += self.stale.len() as u64;
        }
        self.stale.clear();
    }
}
