//! The law: a read returns what was last written.
//!
//! A [`Memory`] is spaces of pages and nothing else: no frames, no objects, no sharing but that of
//! external pages. Fork copies everything. It is as slow as it looks, and obviously right.

use std::collections::BTreeMap;

use tidemark_core::id::{PagerId, SpaceId, VirtPage};
use tidemark_core::seams::machine::Rights;

use crate::physical::Stamp;

/// The contents that a page shows where its space has not written to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Zeros.
    Anonymous,
    /// A page of an external object; writes go there.
    Shared(PagerId, u64),
    /// A copy of a page that a pager has, and that is not written to.
    Copied(PagerId, u64),
}

#[derive(Clone, Copy, Debug)]
struct Page {
    rights: Rights,
    origin: Origin,
    /// The contents that the space has written, unless it goes to the origin.
    own: Option<Stamp>,
    /// The page has been given up as free: until the next write it may read as zeros instead.
    is_free: bool,
}

/// Spaces of pages, and the external objects they map.
#[derive(Clone, Default, Debug)]
pub struct Memory {
    spaces: BTreeMap<SpaceId, BTreeMap<VirtPage, Page>>,
    externals: BTreeMap<(PagerId, u64), Stamp>,
}

impl Memory {
    /// Makes a memory without spaces.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Learns of a new, empty space.
    pub fn create_space(&mut self, space: SpaceId) {
        let old = self.spaces.insert(space, BTreeMap::new());
        assert!(old.is_none(), "{space:?} lives already");
    }

    /// Forgets a space.
    pub fn destroy_space(&mut self, space: SpaceId) {
        self.spaces
            .remove(&space)
            .expect("only living spaces are destroyed");
    }

    /// Makes `child` a copy of `parent`.
    pub fn fork(&mut self, parent: SpaceId, child: SpaceId) {
        let pages = self.spaces[&parent].clone();
        let old = self.spaces.insert(child, pages);
        assert!(old.is_none(), "{child:?} lives already");
    }

    /// Says what an external page holds before anyone writes to it.
    pub fn preset_external(&mut self, pager: PagerId, index: u64, stamp: Stamp) {
        self.externals.insert((pager, index), stamp);
    }

    /// Maps `pages` pages of which the first shows `first` and the others what follows it.
    pub fn map(&mut self, space: SpaceId, at: VirtPage, pages: u64, rights: Rights, first: Origin) {
        for offset in 0..pages {
            let origin = match first {
                Origin::Anonymous => Origin::Anonymous,
                Origin::Shared(pager, index) => Origin::Shared(pager, index + offset),
                Origin::Copied(pager, index) => Origin::Copied(pager, index + offset),
            };
            let page = Page {
                rights,
                origin,
                own: None,
                is_free: false,
            };
            let old = self.space_mut(space).insert(at.plus(offset), page);
            assert!(old.is_none(), "{:?} is mapped already", at.plus(offset));
        }
    }

    /// Unmaps whatever is mapped there.
    pub fn unmap(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.space_mut(space)
            .retain(|page, _| !is_within(*page, at, pages));
    }

    /// Drops what the space has written there. Shared external pages keep theirs.
    pub fn discard(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.for_each(space, at, pages, |page| {
            page.own = None;
            page.is_free = false;
        });
    }

    /// Lets anonymous pages read as zeros from now on, or not, until they are written again.
    pub fn free(&mut self, space: SpaceId, at: VirtPage, pages: u64) {
        self.for_each(space, at, pages, |page| {
            page.is_free = page.own.is_some() && page.origin == Origin::Anonymous;
        });
    }

    /// Moves whatever is mapped in the one range to the other, where nothing is.
    pub fn remap(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, pages: u64) {
        for offset in 0..pages {
            let Some(page) = self.space_mut(space).remove(&from.plus(offset)) else {
                continue;
            };
            let old = self.space_mut(space).insert(to.plus(offset), page);
            assert!(old.is_none(), "{:?} is mapped already", to.plus(offset));
        }
    }

    /// Sets the rights of whatever is mapped there.
    pub fn protect(&mut self, space: SpaceId, at: VirtPage, pages: u64, rights: Rights) {
        self.for_each(space, at, pages, |page| page.rights = rights);
    }

    /// Writes a page that may be written.
    pub fn write(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp) {
        let page = self
            .space_mut(space)
            .get_mut(&at)
            .expect("only mapped pages are written");
        assert_eq!(page.rights, Rights::Write, "{at:?} may not be written");
        page.is_free = false;
        if let Origin::Shared(pager, index) = page.origin {
            self.externals.insert((pager, index), stamp);
        } else {
            page.own = Some(stamp);
        }
    }

    /// Panics unless `seen` is what a read of that page may return.
    pub fn expect_read(&mut self, space: SpaceId, at: VirtPage, seen: Stamp) {
        let page = self.spaces[&space]
            .get(&at)
            .expect("only mapped pages are read");
        assert_ne!(page.rights, Rights::None, "{at:?} may not be read");
        if page.is_free && seen == Stamp::ZEROS {
            // It has been freed, and stays zeros.
            let page = self.space_mut(space).get_mut(&at).expect("found above");
            page.own = None;
            page.is_free = false;
            return;
        }
        let written = self.contents(space, at).expect("found above");
        assert_eq!(
            seen, written,
            "{space:?} reads {at:?}: not what was last written"
        );
    }

    /// The mapped spaces, in order.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> {
        self.spaces.keys().copied()
    }

    /// The mapped pages of a space, in order, with their rights.
    pub fn pages(&self, space: SpaceId) -> impl Iterator<Item = (VirtPage, Rights)> {
        self.spaces[&space]
            .iter()
            .map(|(at, page)| (*at, page.rights))
    }

    /// The number of pages of all spaces that may need a place on the swap store of their own.
    pub fn swappable_pages(&self) -> usize {
        let is_swappable = |page: &&Page| !matches!(page.origin, Origin::Shared(..));
        self.spaces
            .values()
            .map(|pages| pages.values().filter(is_swappable).count())
            .sum()
    }

    /// The rights at `at`; `None` if nothing is mapped there.
    pub fn rights(&self, space: SpaceId, at: VirtPage) -> Option<Rights> {
        Some(self.spaces.get(&space)?.get(&at)?.rights)
    }

    /// Returns true if any page of the range is mapped.
    pub fn is_any_mapped(&self, space: SpaceId, at: VirtPage, pages: u64) -> bool {
        self.spaces[&space]
            .range(at..at.plus(pages))
            .next()
            .is_some()
    }

    /// Returns true if the page is anonymous memory.
    pub fn is_anonymous(&self, space: SpaceId, at: VirtPage) -> bool {
        self.spaces[&space]
            .get(&at)
            .is_some_and(|page| page.origin == Origin::Anonymous)
    }

    /// Returns true if the page is anonymous memory that has not been written since it was mapped.
    pub fn is_fresh(&self, space: SpaceId, at: VirtPage) -> bool {
        self.spaces[&space]
            .get(&at)
            .is_some_and(|page| page.origin == Origin::Anonymous && page.own.is_none())
    }

    /// Returns true if the page has been given up as free and may read as zeros.
    pub fn is_free(&self, space: SpaceId, at: VirtPage) -> bool {
        self.spaces[&space]
            .get(&at)
            .is_some_and(|page| page.is_free)
    }

    /// The contents last written to the page, if it is mapped.
    pub fn contents(&self, space: SpaceId, at: VirtPage) -> Option<Stamp> {
        let page = self.spaces.get(&space)?.get(&at)?;
        Some(match (page.own, page.origin) {
            (Some(stamp), _) => stamp,
            (None, Origin::Anonymous) => Stamp::ZEROS,
            (None, Origin::Shared(pager, index) | Origin::Copied(pager, index)) => self
                .externals
                .get(&(pager, index))
                .copied()
                .unwrap_or_default(),
        })
    }

    fn for_each(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        mut act: impl FnMut(&mut Page),
    ) {
        for (_, page) in self.space_mut(space).range_mut(at..at.plus(pages)) {
            act(page);
        }
    }

    fn space_mut(&mut self, space: SpaceId) -> &mut BTreeMap<VirtPage, Page> {
        self.spaces.get_mut(&space).expect("the space lives")
    }
}

fn is_within(page: VirtPage, at: VirtPage, pages: u64) -> bool {
    (at..at.plus(pages)).contains(&page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: SpaceId = SpaceId(0);
    const CHILD: SpaceId = SpaceId(1);
    const PAGER: PagerId = PagerId(3);

    fn memory() -> Memory {
        let mut memory = Memory::new();
        memory.create_space(PARENT);
        memory.map(PARENT, VirtPage(10), 4, Rights::Write, Origin::Anonymous);
        memory
    }

    #[test]
    fn a_fresh_page_reads_as_zeros() {
        memory().expect_read(PARENT, VirtPage(10), Stamp::ZEROS);
    }

    #[test]
    #[should_panic(expected = "not what was last written")]
    fn another_stamp_than_the_last_written_is_a_failure() {
        let mut memory = memory();
        memory.write(PARENT, VirtPage(10), Stamp(1));
        memory.write(PARENT, VirtPage(10), Stamp(2));
        memory.expect_read(PARENT, VirtPage(10), Stamp(1));
    }

    #[test]
    fn after_a_fork_neither_side_sees_what_the_other_writes() {
        let mut memory = memory();
        memory.write(PARENT, VirtPage(10), Stamp(1));
        memory.fork(PARENT, CHILD);
        memory.write(PARENT, VirtPage(10), Stamp(2));
        memory.write(CHILD, VirtPage(11), Stamp(3));
        memory.expect_read(CHILD, VirtPage(10), Stamp(1));
        memory.expect_read(PARENT, VirtPage(11), Stamp::ZEROS);
    }

    #[test]
    fn external_pages_are_shared_across_a_fork_and_outlive_a_discard() {
        let mut memory = memory();
        memory.preset_external(PAGER, 0, Stamp(7));
        memory.map(
            PARENT,
            VirtPage(20),
            1,
            Rights::Write,
            Origin::Shared(PAGER, 0),
        );
        memory.fork(PARENT, CHILD);
        memory.expect_read(CHILD, VirtPage(20), Stamp(7));
        memory.write(CHILD, VirtPage(20), Stamp(70));
        memory.discard(CHILD, VirtPage(20), 1);
        memory.expect_read(PARENT, VirtPage(20), Stamp(70));
        memory.expect_read(CHILD, VirtPage(20), Stamp(70));
    }

    #[test]
    fn a_freed_page_reads_as_before_until_it_has_once_read_as_zeros() {
        let mut memory = memory();
        memory.write(PARENT, VirtPage(10), Stamp(1));
        memory.free(PARENT, VirtPage(10), 1);
        memory.expect_read(PARENT, VirtPage(10), Stamp(1));
        memory.expect_read(PARENT, VirtPage(10), Stamp::ZEROS);
        assert_eq!(memory.contents(PARENT, VirtPage(10)), Some(Stamp::ZEROS));
    }

    #[test]
    fn a_moved_page_keeps_its_contents_and_its_rights() {
        let mut memory = memory();
        memory.write(PARENT, VirtPage(11), Stamp(1));
        memory.protect(PARENT, VirtPage(11), 1, Rights::Read);
        memory.remap(PARENT, VirtPage(10), VirtPage(40), 4);
        memory.expect_read(PARENT, VirtPage(41), Stamp(1));
        assert_eq!(memory.rights(PARENT, VirtPage(41)), Some(Rights::Read));
        assert_eq!(memory.rights(PARENT, VirtPage(11)), None);
    }
}
