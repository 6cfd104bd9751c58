//! Regions: which ranges of objects address spaces map. What changes them changes who holds the
//! objects, too.
//!
//! # Invariants
//! 1. Each region is one holder of its object.

use alloc::vec::Vec;

use crate::id::{FrameId, ObjectId, PageId, SpaceId, VirtPage};
use crate::kernels::swap_window::Window;
use crate::memory::Memory;
use crate::memory::address_space::{Advice, Inherit, MapError, Region};
use crate::memory::object::{Backing, Entry};
use crate::paging::attempt::Found;
use crate::seams::machine::Rights;

/// A virtual address has at most this many page-number bits.
pub(crate) const PAGE_NUMBER_BITS: u32 = 52;

impl Memory {
    /// Walks down the shadow chain to the page that shows at `index` of `object`.
    pub(crate) fn find_page(&self, object: ObjectId, index: u64) -> Found {
        let top = PageId { object, index };
        let mut page = top;
        loop {
            let here = self.objects.get(page.object);
            let entry = here.entry(page.index);
            let is_here = entry.frame().is_some() || entry.slot().is_some() || here.has_pager();
            if is_here {
                return Found {
                    page,
                    entry,
                    is_below: page.object != object,
                };
            }
            match here.shadow() {
                Some((below, offset)) => {
                    page = PageId {
                        object: below,
                        index: page.index + offset,
                    };
                }
                None => {
                    return Found {
                        page: top,
                        entry,
                        is_below: false,
                    };
                }
            }
        }
    }

    /// The object at the end of the shadow chain, and the offset in it.
    fn find_last(&self, object: ObjectId, offset: u64) -> (ObjectId, u64) {
        let (mut object, mut offset) = (object, offset);
        while let Some((below, more)) = self.objects.get(object).shadow() {
            (object, offset) = (below, offset + more);
        }
        (object, offset)
    }

    pub(crate) fn check_vacant(
        &self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
    ) -> Result<(), MapError> {
        let limit = 1 << PAGE_NUMBER_BITS;
        if pages == 0 || pages > limit || at.0 > limit - pages {
            return Err(MapError::BadLength);
        }
        let found = self.spaces.get(space).ok_or(MapError::NoSpace)?;
        if found.collect_overlaps(at.0, at.0 + pages).is_empty() {
            Ok(())
        } else {
            Err(MapError::Occupied)
        }
    }

    pub(crate) fn insert_region(&mut self, space: SpaceId, region: Region) {
        self.objects.hold(region.object, space);
        self.objects.get_mut(region.object).windows += u32::from(region.is_window);
        self.regions_of(space).insert(region.start, region);
    }

    pub(crate) fn insert_apart(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) {
        let object = self.objects.create(Backing::Swap);
        self.insert_region(space, Region::private(at, pages, (object, 0), rights));
    }

    pub(crate) fn extend_region(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> bool {
        let Some(before) = at.0.checked_sub(1) else {
            return false;
        };
        let found = self
            .spaces
            .get(space)
            .and_then(|space| space.find(VirtPage(before)));
        let Some(&region) = found else { return false };
        let object = self.objects.get(region.object);
        let is_alike = region.rights == rights
            && region.inherit == Inherit::Copy
            && region.advice == Advice::Normal
            && !region.needs_copy;
        let is_alone = !object.has_pager() && object.shadow().is_none() && object.has_one_region();
        if !is_alike || !is_alone {
            return false;
        }
        // Pages past the end were given up when the region was cut there, so they read as zeros.
        let pages = region.pages + pages;
        self.regions_of(space)
            .insert(region.start, Region { pages, ..region });
        true
    }

    /// The window that was read around the last fault of the region at `at`.
    pub(crate) fn window_at(&mut self, space: SpaceId, at: VirtPage) -> Option<&mut Window> {
        let space = self.spaces.get_mut(space)?;
        let (_, region) = space.regions.range_mut(..=at.0).next_back()?;
        (at.0 < region.end()).then_some(&mut region.around)
    }

    /// Puts `region` in the place of the one that begins where it does, which maps the same.
    pub(crate) fn put_region(&mut self, space: SpaceId, region: Region) {
        self.regions_of(space).insert(region.start, region);
    }

    /// Takes a region out that is put elsewhere next.
    pub(crate) fn take_region(&mut self, space: SpaceId, region: &Region) {
        self.regions_of(space).remove(&region.start);
    }

    /// Removes a region. Answers whether its object is unheld now.
    pub(crate) fn remove_region(&mut self, space: SpaceId, region: &Region) -> bool {
        self.regions_of(space).remove(&region.start);
        self.objects.get_mut(region.object).windows -= u32::from(region.is_window);
        self.objects.let_go(region.object, space)
    }

    /// Gives a region an empty object of its own, or, where it is a copy of an external one, that
    /// to be copied again. Answers whether the one before is unheld now.
    pub(crate) fn empty_region(&mut self, space: SpaceId, region: Region) -> bool {
        let (last, offset) = self.find_last(region.object, region.offset);
        let backing = self.objects.get(last).backing();
        let needs_copy = matches!(backing, Backing::External(_));
        let (object, offset) = match backing {
            Backing::External(_) => (last, offset),
            Backing::Copy(_) => (self.objects.create(backing), offset),
            Backing::Swap => (self.objects.create(backing), 0),
        };
        self.insert_region(
            space,
            Region {
                object,
                offset,
                needs_copy,
                ..region
            },
        );
        self.objects.let_go(region.object, space)
    }

    /// Cuts regions at the ends of the range, and answers those that lie in it.
    pub(crate) fn carve(&mut self, space: SpaceId, at: VirtPage, pages: u64) -> Vec<Region> {
        let first = at.0;
        let end = first.saturating_add(pages);
        for cut in [first, end] {
            let found = self
                .spaces
                .get(space)
                .and_then(|s| s.find(VirtPage(cut)))
                .copied();
            let Some(region) = found.filter(|region| region.start < cut) else {
                continue;
            };
            let below = cut - region.start;
            self.regions_of(space).insert(
                region.start,
                Region {
                    pages: below,
                    ..region
                },
            );
            self.insert_region(
                space,
                Region {
                    start: cut,
                    pages: region.pages - below,
                    offset: region.offset + below,
                    ..region
                },
            );
        }
        self.spaces
            .get(space)
            .map_or(Vec::new(), |space| space.collect_overlaps(first, end))
    }

    /// A write is about to happen in a region whose object the other side of a fork may see too:
    /// puts an empty object of its own over it, unless the region is the only user.
    pub(crate) fn shadow_region(&mut self, space: SpaceId, region: Region) -> Region {
        let mut region = Region {
            needs_copy: false,
            ..region
        };
        // A file's contents are never this space's alone, even if no other maps it.
        let below = self.objects.get(region.object);
        if !below.is_exclusive() || below.is_external() {
            let above = self.objects.create(Backing::Swap);
            self.objects.hold(above, space);
            self.objects.get_mut(above).size = region.pages;
            self.objects
                .cast_shadow(above, region.object, region.offset);
            let below = region.object;
            (region.object, region.offset) = (above, 0);
            // The shadow holds the object below now, in the region's stead.
            let is_unheld = self.objects.let_go(below, space);
            assert!(!is_unheld);
        }
        self.regions_of(space).insert(region.start, region);
        region
    }

    /// Makes an object; the caller gives it a region.
    pub(crate) fn create_object(&mut self, backing: Backing) -> ObjectId {
        self.objects.create(backing)
    }

    /// Ends an object's shadowing. Answers which one it shadowed, and whether that is unheld now.
    pub(crate) fn end_shadow(&mut self, object: ObjectId) -> Option<(ObjectId, bool)> {
        self.objects.end_shadow(object)
    }

    /// Ends an object that has no pages and no holders.
    pub(crate) fn destroy_object(&mut self, object: ObjectId) {
        self.objects.destroy(object);
    }

    /// Ends `below`, which has no pages any more: `above`, which alone shadows it, from `offset`
    /// on, shadows what it did.
    pub(crate) fn merge_shadow(&mut self, below: ObjectId, above: ObjectId, offset: u64) {
        self.objects.end_shadow(above);
        if let Some((further, more)) = self.objects.get(below).shadow() {
            self.objects.cast_shadow(above, further, offset + more);
            self.objects.end_shadow(below);
        }
        self.objects.destroy(below);
    }

    /// Moves a page up to the object that shadows its own, and answers its new name.
    pub(crate) fn move_up(
        &mut self,
        from: PageId,
        entry: Entry,
        above: ObjectId,
        target: u64,
    ) -> PageId {
        let source = self.objects.get_mut(from.object);
        source.set_frame(from.index, None);
        source.set_slot(from.index, None);
        let object = self.objects.get_mut(above);
        object.set_frame(target, entry.frame());
        object.set_slot(target, entry.slot());
        let page = PageId {
            object: above,
            index: target,
        };
        if let Some(frame) = entry.frame() {
            self.frames.rename(frame, page);
        }
        page
    }

    /// Collects the pages at which `space` maps those of a region, those of objects below included.
    pub(crate) fn collect_mapped(&self, space: SpaceId, part: &Region) -> Vec<(FrameId, VirtPage)> {
        let mut mapped = Vec::new();
        let (mut object, mut offset) = (part.object, part.offset);
        loop {
            let here = self.objects.get(object);
            for (index, entry) in here.collect(offset, offset + part.pages) {
                let Some(frame) = entry.frame() else { continue };
                let at = VirtPage(part.start + (index - offset));
                if self.reverse.iter(frame).any(|place| place == (space, at)) {
                    mapped.push((frame, at));
                }
            }
            let Some((below, further)) = here.shadow() else {
                return mapped;
            };
            (object, offset) = (below, offset + further);
        }
    }

    fn regions_of(&mut self, space: SpaceId) -> &mut alloc::collections::BTreeMap<u64, Region> {
        &mut self
            .spaces
            .get_mut(space)
            .expect("a space in use exists")
            .regions
    }
}
