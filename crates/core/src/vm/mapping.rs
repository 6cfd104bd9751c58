//! Mapping: spaces and their regions, advice, copy-on-write, and what happens to pages whose owner
//! lets them go.
//!
//! [`space`](crate::memory::address_space) and [`object`](crate::memory::object) hold the tables
//! this module changes.

use alloc::vec::Vec;

use crate::id::{FrameId, ObjectId, PageId, PagerId, SpaceId, VirtPage};
use crate::memory::address_space::{Advice, Inherit, MapError, Region};
use crate::memory::frame::State;
use crate::memory::object::{Entry, Keeper};
use crate::seams::machine::{Machine, Rights};
use crate::vm::Vm;

/// A virtual address has at most this many page-number bits.
const PAGE_NUMBER_BITS: u32 = 52;

impl Vm {
    /// Makes a space with nothing in it.
    pub fn create_space(&mut self) -> SpaceId {
        self.spaces.create()
    }

    /// Unmaps everything in `space` and forgets it. Faults still waiting there end as
    /// [`Event::Retry`](crate::event::Event::Retry) when what they wait for has come.
    pub fn destroy_space(&mut self, machine: &mut dyn Machine, space: SpaceId) {
        self.unmap(machine, space, VirtPage(0), 1 << PAGE_NUMBER_BITS);
        self.spaces.destroy(space);
        self.forget_space(space);
    }

    /// Maps anonymous memory, which reads as zeros until it is written.
    ///
    /// Extends the region that ends at `at` if that is alike and nobody shares its object (Mach
    /// `vm_object_coalesce`): a heap that grows step by step stays one object.
    pub fn map_anonymous(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.check_vacant(space, at, pages)?;
        if !self.extend_region(space, at, pages, rights) {
            self.insert_apart(space, at, pages, rights);
        }
        Ok(())
    }

    /// The same as an object of its own, whatever it is beside: what a program maps in pieces is
    /// then the same wherever the pieces come to lie.
    pub fn map_apart(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.check_vacant(space, at, pages)?;
        self.insert_apart(space, at, pages, rights);
        Ok(())
    }

    /// Maps pages of an external object of its own, from the pager's page `first` on. A fork
    /// shares them.
    pub fn map_external(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        pager: PagerId,
        first: u64,
        rights: Rights,
    ) -> Result<ObjectId, MapError> {
        self.check_vacant(space, at, pages)?;
        let object = self.objects.create(Keeper::External(pager));
        self.map_object(space, at, pages, object, first, rights)?;
        Ok(object)
    }

    /// Maps pages of an object that is mapped somewhere already, from its page `first` on.
    pub fn map_object(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        object: ObjectId,
        first: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.check_vacant(space, at, pages)?;
        self.insert_region(
            space,
            Region {
                inherit: Inherit::Share,
                ..Region::private(at, pages, (object, first), rights)
            },
        );
        Ok(())
    }

    /// Makes an external object that is kept though no program maps it: the cache of a file. `at`
    /// in `space` names it to whoever keeps it, for as long as that stays mapped.
    pub fn keep_external(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        pager: PagerId,
    ) -> Result<ObjectId, MapError> {
        self.check_vacant(space, at, pages)?;
        let object = self.objects.create(Keeper::External(pager));
        self.map_window(space, at, pages, object)?;
        Ok(object)
    }

    /// Opens a window on the first pages of an external object that is kept or mapped somewhere:
    /// faults there are the kernel's, which copies bytes for a system call. It maps nothing, a
    /// fault is over when its page is in memory, and the object counts as no more in use for it.
    pub fn map_window(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        object: ObjectId,
    ) -> Result<(), MapError> {
        self.check_vacant(space, at, pages)?;
        assert!(self.objects.get(object).is_external());
        self.insert_region(
            space,
            Region {
                inherit: Inherit::Share,
                is_window: true,
                ..Region::private(at, pages, (object, 0), Rights::Write)
            },
        );
        Ok(())
    }

    /// Lets the pages of an external object go, from `first` on: the file was cut there, and what
    /// they hold need not be written.
    ///
    /// Work: the pages that go.
    pub fn cut_external(&mut self, machine: &mut dyn Machine, object: ObjectId, first: u64) {
        assert!(self.objects.get(object).is_external());
        for (index, _) in self.objects.get(object).collect(first, u64::MAX) {
            self.remove_page(machine, PageId { object, index });
        }
        self.settle(machine);
    }

    /// Maps a private copy of pages of an object that is mapped somewhere already, from its page
    /// `first` on: what is written here is seen nowhere else. A fork copies them.
    pub fn map_private(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        object: ObjectId,
        first: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.check_vacant(space, at, pages)?;
        self.insert_region(
            space,
            Region {
                needs_copy: true,
                ..Region::private(at, pages, (object, first), rights)
            },
        );
        Ok(())
    }

    /// Maps anonymous memory that a fork shares.
    pub fn map_shared(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> Result<ObjectId, MapError> {
        self.check_vacant(space, at, pages)?;
        let object = self.objects.create(Keeper::Swap);
        self.map_object(space, at, pages, object, 0, rights)?;
        Ok(object)
    }

    /// Removes every mapping in the range, wherever regions begin and end. Pages that nobody else
    /// can see are given up.
    ///
    /// Work: the resident and stored pages of the range.
    pub fn unmap(&mut self, machine: &mut dyn Machine, space: SpaceId, at: VirtPage, pages: u64) {
        for region in self.carve(space, at, pages) {
            self.give_up_pages(machine, space, &region);
            self.regions_of(space).remove(&region.start);
            self.objects.get_mut(region.object).windows -= u32::from(region.is_window);
            if self.objects.let_go(region.object, space) {
                self.destroy_object(machine, region.object);
            } else {
                self.try_collapse_above(machine, region.object);
            }
        }
        self.settle(machine);
    }

    /// Gives up the contents of the range, which stays mapped: private memory reads as zeros from
    /// now on, pages of external objects are mapped again when they are touched.
    ///
    /// Work: the resident and stored pages of the range.
    pub fn discard(&mut self, machine: &mut dyn Machine, space: SpaceId, at: VirtPage, pages: u64) {
        let first = at.0;
        let end = first.saturating_add(pages);
        let Some(found) = self.spaces.get(space) else {
            return;
        };
        for region in found.collect_overlaps(first, end) {
            let start = region.start.max(first);
            let pages = region.end().min(end) - start;
            let offset = region.offset + (start - region.start);
            let part = Region {
                start,
                pages,
                offset,
                ..region
            };
            let shows_through = self.objects.get(region.object).shadow.is_some();
            self.give_up_pages(machine, space, &part);
            if region.inherit == Inherit::Copy && (region.needs_copy || shows_through) {
                self.replace_with_empty(machine, space, part);
            }
        }
        self.settle(machine);
    }

    /// Moves mappings from one range to another, which is unmapped first. Pages stay the pages of
    /// their objects, wherever they are.
    ///
    /// Work: the resident pages of the range.
    pub fn remap(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        from: VirtPage,
        to: VirtPage,
        pages: u64,
    ) {
        let moved = self.carve(space, from, pages);
        for region in &moved {
            self.regions_of(space).remove(&region.start);
        }
        self.unmap(machine, space, to, pages);
        for region in moved {
            let start = to.0 + (region.start - from.0);
            self.regions_of(space)
                .insert(start, Region { start, ..region });
            for (frame, old) in self.collect_mapped(space, &region) {
                let new = VirtPage(start + (old.0 - region.start));
                self.reverse.remove(frame, space, old);
                self.reverse.insert(frame, space, new);
                machine.relocate(space, old, new, frame);
            }
        }
        self.settle(machine);
    }

    /// Changes what programs may do in the range.
    ///
    /// Work: the resident pages of the range.
    pub fn protect(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) {
        for region in self.carve(space, at, pages) {
            self.regions_of(space)
                .insert(region.start, Region { rights, ..region });
            if rights < region.rights {
                self.lower_mappings(machine, space, &region, rights);
            }
        }
        self.settle(machine);
    }

    /// Notes how the range will be used.
    pub fn advise(&mut self, space: SpaceId, at: VirtPage, pages: u64, advice: Advice) {
        for region in self.carve(space, at, pages) {
            self.regions_of(space)
                .insert(region.start, Region { advice, ..region });
        }
    }

    /// Makes a space that sees copies of `space`'s private regions and shares the others.
    ///
    /// Work: the resident pages of private regions, each of which becomes read-only.
    pub fn fork(&mut self, machine: &mut dyn Machine, space: SpaceId) -> SpaceId {
        let child = self.spaces.create();
        let Some(parent) = self.spaces.get(space) else {
            return child;
        };
        let regions: Vec<Region> = parent.regions.values().copied().collect();
        for region in regions {
            let needs_copy = region.inherit == Inherit::Copy;
            self.insert_region(
                child,
                Region {
                    needs_copy,
                    ..region
                },
            );
            if needs_copy {
                self.regions_of(space).insert(
                    region.start,
                    Region {
                        needs_copy,
                        ..region
                    },
                );
                self.lower_mappings(machine, space, &region, Rights::Read);
            }
        }
        self.settle(machine);
        child
    }

    /// A write is about to happen in a region whose object the other side of a fork may see too:
    /// puts an empty object of its own over it, unless nobody else is left.
    pub(crate) fn shadow_region(&mut self, space: SpaceId, region: Region) -> Region {
        let mut region = Region {
            needs_copy: false,
            ..region
        };
        // What a file holds is never ours alone, even if nobody else maps it.
        let below = self.objects.get(region.object);
        if !below.is_exclusive() || below.is_external() {
            let above = self.objects.create(Keeper::Swap);
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

    fn regions_of(&mut self, space: SpaceId) -> &mut alloc::collections::BTreeMap<u64, Region> {
        &mut self
            .spaces
            .get_mut(space)
            .expect("a space in use exists")
            .regions
    }

    fn insert_apart(&mut self, space: SpaceId, at: VirtPage, pages: u64, rights: Rights) {
        let object = self.objects.create(Keeper::Swap);
        self.insert_region(space, Region::private(at, pages, (object, 0), rights));
    }

    fn check_vacant(&self, space: SpaceId, at: VirtPage, pages: u64) -> Result<(), MapError> {
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

    fn extend_region(&mut self, space: SpaceId, at: VirtPage, pages: u64, rights: Rights) -> bool {
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
        let is_alone = !object.is_external() && object.shadow.is_none() && object.has_one_region();
        if !is_alike || !is_alone {
            return false;
        }
        // Pages past the end were given up when the region was cut there, so they read as zeros.
        let pages = region.pages + pages;
        self.regions_of(space)
            .insert(region.start, Region { pages, ..region });
        true
    }

    fn insert_region(&mut self, space: SpaceId, region: Region) {
        self.objects.hold(region.object, space);
        self.objects.get_mut(region.object).windows += u32::from(region.is_window);
        self.regions_of(space).insert(region.start, region);
    }

    /// Cuts regions at the ends of the range, and answers those that lie in it.
    fn carve(&mut self, space: SpaceId, at: VirtPage, pages: u64) -> Vec<Region> {
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

    /// Unmaps a part of a region, and drops its pages if nobody else can see them.
    fn give_up_pages(&mut self, machine: &mut dyn Machine, space: SpaceId, part: &Region) {
        let end = part.offset + part.pages;
        let object = self.objects.get(part.object);
        let is_ours =
            object.is_exclusive() && part.inherit == Inherit::Copy && !object.is_external();
        let pages = object.collect(part.offset, end);
        if is_ours {
            for (index, _) in pages {
                self.remove_page(
                    machine,
                    PageId {
                        object: part.object,
                        index,
                    },
                );
            }
        } else {
            self.leave_chain(machine, space, part);
        }
        if self.objects.get(part.object).shadow.is_some() {
            self.leave_chain(machine, space, part);
        }
    }

    /// Removes `space`'s mappings of a region's pages, those of objects below included.
    fn leave_chain(&mut self, machine: &mut dyn Machine, space: SpaceId, part: &Region) {
        for (frame, at) in self.collect_mapped(space, part) {
            self.reverse.remove(frame, space, at);
            machine.leave(space, at, frame);
        }
    }

    /// Where `space` maps a region's pages, those of objects below included.
    fn collect_mapped(&self, space: SpaceId, part: &Region) -> Vec<(FrameId, VirtPage)> {
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
            let Some((below, further)) = here.shadow else {
                return mapped;
            };
            (object, offset) = (below, offset + further);
        }
    }

    /// Gives a part of a region that shares its object an empty object of its own.
    fn replace_with_empty(&mut self, machine: &mut dyn Machine, space: SpaceId, part: Region) {
        for region in self.carve(space, VirtPage(part.start), part.pages) {
            self.leave_chain(machine, space, &region);
            let object = self.objects.create(Keeper::Swap);
            self.insert_region(
                space,
                Region {
                    object,
                    offset: 0,
                    needs_copy: false,
                    ..region
                },
            );
            if self.objects.let_go(region.object, space) {
                self.destroy_object(machine, region.object);
            } else {
                self.try_collapse_above(machine, region.object);
            }
        }
    }

    /// Lowers `space`'s mappings of a region's resident pages. Where a page is mapped elsewhere
    /// too, the mapping is removed, to be entered again with fewer rights when it is touched.
    fn lower_mappings(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        region: &Region,
        rights: Rights,
    ) {
        for (frame, at) in self.collect_mapped(space, region) {
            // What the owner takes from its own space cannot be refused, unlike `restrict`.
            if rights != Rights::None && self.reverse.iter(frame).count() == 1 {
                machine.restrict(frame, rights);
            } else {
                self.reverse.remove(frame, space, at);
                machine.leave(space, at, frame);
            }
        }
    }

    /// Ends an object that nobody holds, and those below it that only it held.
    fn destroy_object(&mut self, machine: &mut dyn Machine, object: ObjectId) {
        let mut next = Some(object);
        while let Some(object) = next.take() {
            for (index, _) in self.objects.get(object).collect(0, u64::MAX) {
                self.remove_page(machine, PageId { object, index });
            }
            if let Some((below, is_unheld)) = self.objects.end_shadow(object) {
                if is_unheld {
                    next = Some(below);
                } else {
                    self.try_collapse_above(machine, below);
                }
            }
            self.streams.forget(object);
            self.objects.destroy(object);
        }
    }

    /// If one object shadows `below` and nothing else holds it, merges it into that one: its pages
    /// move up where they show, and are dropped where they do not (Mach `vm_object_collapse`).
    /// Not done while pages of it are in transit; then the chain stays one longer.
    fn try_collapse_above(&mut self, machine: &mut dyn Machine, below: ObjectId) {
        if !self.objects.has_one_shadow_only(below) || self.objects.get(below).is_external() {
            return;
        }
        let found = self
            .objects
            .iter()
            .find_map(|(id, object)| match object.shadow {
                Some((shadowed, offset)) if shadowed == below => Some((id, offset)),
                _ => None,
            });
        let (above, offset) = found.expect("a shadowed object has a shadow");
        let pages = self.objects.get(below).collect(0, u64::MAX);
        let is_moving = |frame| self.frames.state(frame) != State::Resident;
        if pages
            .iter()
            .any(|&(_, entry)| entry.frame().is_some_and(is_moving))
        {
            return;
        }
        let size = self.objects.get(above).size;
        for (index, entry) in pages {
            let target = index.checked_sub(offset).filter(|&target| target < size);
            let target = target.filter(|&target| self.objects.get(above).is_absent(target));
            match target {
                Some(target) => self.move_up(
                    PageId {
                        object: below,
                        index,
                    },
                    entry,
                    above,
                    target,
                ),
                None => self.remove_page(
                    machine,
                    PageId {
                        object: below,
                        index,
                    },
                ),
            }
        }
        self.objects.end_shadow(above);
        if let Some((further, more)) = self.objects.get(below).shadow {
            self.objects.cast_shadow(above, further, offset + more);
            self.objects.end_shadow(below);
        }
        self.streams.forget(below);
        self.objects.destroy(below);
    }

    fn move_up(&mut self, from: PageId, entry: Entry, above: ObjectId, target: u64) {
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
        if let Some(slot) = entry.slot() {
            self.by_slot.note(slot, page);
        }
        if let Some(frame) = entry.frame() {
            self.frames.rename(frame, page);
        }
    }
}
