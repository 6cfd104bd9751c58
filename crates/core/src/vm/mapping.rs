//! Mapping: spaces and their regions, advice, copy-on-write, and what happens to pages whose owner
//! lets them go.
//!
//! [`space`](crate::memory::address_space) and [`object`](crate::memory::object) hold the tables
//! this module changes.

use alloc::vec::Vec;

use crate::id::{ObjectId, PageId, PagerId, SpaceId, VirtPage};
use crate::memory::address_space::{Advice, Inherit, MapError, Region};
use crate::memory::frame::State;
use crate::memory::object::Backing;
use crate::memory::regions::PAGE_NUMBER_BITS;
use crate::seams::machine::{Machine, Rights};
use crate::vm::Vm;

impl Vm {
    /// Makes a space with nothing in it.
    pub fn create_space(&mut self) -> SpaceId {
        self.memory.create_space()
    }

    /// Unmaps everything in `space` and forgets it. Faults still waiting there end as
    /// [`Event::Retry`](crate::event::Event::Retry) when what they wait for has come.
    pub fn destroy_space(&mut self, machine: &mut dyn Machine, space: SpaceId) {
        self.unmap(machine, space, VirtPage(0), 1 << PAGE_NUMBER_BITS);
        self.memory.destroy_space(space);
        self.forget_space(space);
    }

    /// Maps anonymous memory, which reads as zeros until it is written.
    ///
    /// Extends the region that ends at `at` if that is alike and its object is not shared (Mach
    /// `vm_object_coalesce`): a heap that grows step by step stays one object.
    pub fn map_anonymous(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.memory.check_vacant(space, at, pages)?;
        if !self.memory.extend_region(space, at, pages, rights) {
            self.memory.insert_apart(space, at, pages, rights);
        }
        Ok(())
    }

    /// Maps anonymous memory as an object of its own, whatever region it borders on. The objects of
    /// a program that maps memory in pieces then do not depend on the addresses of the pieces.
    pub fn map_apart(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.memory.check_vacant(space, at, pages)?;
        self.memory.insert_apart(space, at, pages, rights);
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
        self.memory.check_vacant(space, at, pages)?;
        let object = self.memory.create_object(Backing::External(pager));
        self.map_object(space, at, pages, object, first, rights)?;
        Ok(object)
    }

    /// Maps private memory that has what a pager outside has, from the pager's page `first` on.
    /// Pages that are modified go to the swap store, and the pager never hears of them; the others
    /// are asked for again. This needs no mapping that refuses writes, unlike
    /// [`map_private`](Self::map_private), and no second frame for a page.
    pub fn map_copy(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        pager: PagerId,
        first: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.memory.check_vacant(space, at, pages)?;
        let object = self.memory.create_object(Backing::Copy(pager));
        let region = Region::private(at, pages, (object, first), rights);
        self.memory.insert_region(space, region);
        Ok(())
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
        self.memory.check_vacant(space, at, pages)?;
        self.memory.insert_region(
            space,
            Region {
                inherit: Inherit::Share,
                ..Region::private(at, pages, (object, first), rights)
            },
        );
        Ok(())
    }

    /// Makes an external object that is kept though no program maps it: the cache of a file. `at`
    /// in `space` names it to its keeper, for as long as that stays mapped.
    pub fn keep_external(
        &mut self,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
        pager: PagerId,
    ) -> Result<ObjectId, MapError> {
        self.memory.check_vacant(space, at, pages)?;
        let object = self.memory.create_object(Backing::External(pager));
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
        self.memory.check_vacant(space, at, pages)?;
        assert!(self.memory.objects().get(object).is_external());
        self.memory.insert_region(
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
    pub fn truncate_external(&mut self, machine: &mut dyn Machine, object: ObjectId, first: u64) {
        assert!(self.memory.objects().get(object).is_external());
        for (index, _) in self.memory.objects().get(object).collect(first, u64::MAX) {
            self.remove_page(machine, PageId { object, index });
        }
        self.settle(machine);
    }

    /// Lets the pages of external objects go that a range maps: what they hold need not be written.
    ///
    /// Work: the pages that go.
    pub fn forget_external(
        &mut self,
        machine: &mut dyn Machine,
        space: SpaceId,
        at: VirtPage,
        pages: u64,
    ) {
        let Some(found) = self.memory.spaces().get(space) else {
            return;
        };
        let end = at.0.saturating_add(pages);
        for region in found.collect_overlaps(at.0, end) {
            let object = self.memory.objects().get(region.object);
            if !object.is_external() {
                continue;
            }
            let first = region.index_at(VirtPage(region.start.max(at.0)));
            let behind = region.index_at(VirtPage(region.end().min(end) - 1)) + 1;
            for (index, _) in object.collect(first, behind) {
                let object = region.object;
                self.remove_page(machine, PageId { object, index });
            }
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
        self.memory.check_vacant(space, at, pages)?;
        self.memory.insert_region(
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
        self.memory.check_vacant(space, at, pages)?;
        let object = self.memory.create_object(Backing::Swap);
        self.map_object(space, at, pages, object, 0, rights)?;
        Ok(object)
    }

    /// Removes every mapping in the range, wherever regions begin and end. Pages that no other
    /// space sees are given up.
    ///
    /// Work: the resident and stored pages of the range.
    pub fn unmap(&mut self, machine: &mut dyn Machine, space: SpaceId, at: VirtPage, pages: u64) {
        for region in self.memory.carve(space, at, pages) {
            self.give_up_pages(machine, space, &region);
            if self.memory.remove_region(space, &region) {
                self.destroy_object(machine, region.object);
            } else {
                self.try_collapse_above(machine, region.object);
            }
        }
        self.settle(machine);
    }

    /// Gives up the contents of the range, which stays mapped: private memory reads as zeros from
    /// now on, a private copy of an external object as that object, and pages of external objects
    /// are mapped again when they are touched.
    ///
    /// Work: the resident and stored pages of the range.
    pub fn discard(&mut self, machine: &mut dyn Machine, space: SpaceId, at: VirtPage, pages: u64) {
        let first = at.0;
        let end = first.saturating_add(pages);
        let Some(found) = self.memory.spaces().get(space) else {
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
            let shows_through = self.memory.objects().get(region.object).shadow().is_some();
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
        let moved = self.memory.carve(space, from, pages);
        for region in &moved {
            self.memory.take_region(space, region);
        }
        self.unmap(machine, space, to, pages);
        for region in moved {
            let start = to.0 + (region.start - from.0);
            self.memory.put_region(space, Region { start, ..region });
            for (frame, old) in self.memory.collect_mapped(space, &region) {
                let new = VirtPage(start + (old.0 - region.start));
                self.memory.unmap(frame, space, old);
                self.memory.map(frame, space, new);
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
        for region in self.memory.carve(space, at, pages) {
            self.memory.put_region(space, Region { rights, ..region });
            if rights < region.rights {
                self.lower_mappings(machine, space, &region, rights);
            }
        }
        self.settle(machine);
    }

    /// Notes how the range will be used.
    pub fn advise(&mut self, space: SpaceId, at: VirtPage, pages: u64, advice: Advice) {
        for region in self.memory.carve(space, at, pages) {
            self.memory.put_region(space, Region { advice, ..region });
        }
    }

    /// Makes a space that sees copies of `space`'s private regions and shares the others.
    ///
    /// Work: the resident pages of private regions, each of which becomes read-only.
    pub fn fork(&mut self, machine: &mut dyn Machine, space: SpaceId) -> SpaceId {
        let child = self.memory.create_space();
        let Some(parent) = self.memory.spaces().get(space) else {
            return child;
        };
        let regions: Vec<Region> = parent.regions().copied().collect();
        for region in regions {
            let needs_copy = region.inherit == Inherit::Copy;
            self.memory.insert_region(
                child,
                Region {
                    needs_copy,
                    ..region
                },
            );
            if needs_copy {
                self.memory.put_region(
                    space,
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

    /// Unmaps a part of a region, and drops its pages if no other space sees them.
    fn give_up_pages(&mut self, machine: &mut dyn Machine, space: SpaceId, part: &Region) {
        let end = part.offset + part.pages;
        let object = self.memory.objects().get(part.object);
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
        if self.memory.objects().get(part.object).shadow().is_some() {
            self.leave_chain(machine, space, part);
        }
    }

    /// Removes `space`'s mappings of a region's pages, those of objects below included.
    fn leave_chain(&mut self, machine: &mut dyn Machine, space: SpaceId, part: &Region) {
        for (frame, at) in self.memory.collect_mapped(space, part) {
            self.memory.unmap(frame, space, at);
            machine.leave(space, at, frame);
        }
    }

    /// Gives a part of a region that shares its object, or copies one, an object of its own
    /// without pages, or what it copies.
    fn replace_with_empty(&mut self, machine: &mut dyn Machine, space: SpaceId, part: Region) {
        for region in self.memory.carve(space, VirtPage(part.start), part.pages) {
            self.leave_chain(machine, space, &region);
            if self.memory.empty_region(space, region) {
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
        for (frame, at) in self.memory.collect_mapped(space, region) {
            // What the owner takes from its own space cannot be refused, unlike `restrict`.
            if rights != Rights::None && self.memory.reverse().iter(frame).count() == 1 {
                machine.restrict(frame, rights);
            } else {
                self.memory.unmap(frame, space, at);
                machine.leave(space, at, frame);
            }
        }
    }

    /// Ends an object without a holder, and those below it that only it held.
    fn destroy_object(&mut self, machine: &mut dyn Machine, object: ObjectId) {
        let mut next = Some(object);
        while let Some(object) = next.take() {
            for (index, _) in self.memory.objects().get(object).collect(0, u64::MAX) {
                self.remove_page(machine, PageId { object, index });
            }
            if let Some((below, is_unheld)) = self.memory.end_shadow(object) {
                if is_unheld {
                    next = Some(below);
                } else {
                    self.try_collapse_above(machine, below);
                }
            }
            self.streams.forget(object);
            self.memory.destroy_object(object);
        }
    }

    /// If one object shadows `below` and nothing else holds it, merges it into that one: its pages
    /// move up where they show, and are dropped where they do not (Mach `vm_object_collapse`).
    /// Not done while pages of it are in transit; then the chain stays one longer.
    fn try_collapse_above(&mut self, machine: &mut dyn Machine, below: ObjectId) {
        if !self.memory.objects().has_one_shadow_only(below)
            || self.memory.objects().get(below).has_pager()
        {
            return;
        }
        let found = self
            .memory
            .objects()
            .iter()
            .find_map(|(id, object)| match object.shadow() {
                Some((shadowed, offset)) if shadowed == below => Some((id, offset)),
                _ => None,
            });
        let (above, offset) = found.expect("a shadowed object has a shadow");
        let pages = self.memory.objects().get(below).collect(0, u64::MAX);
        let is_moving = |frame| self.memory.frames().state(frame) != State::Resident;
        if pages
            .iter()
            .any(|&(_, entry)| entry.frame().is_some_and(is_moving))
        {
            return;
        }
        let size = self.memory.objects().get(above).size();
        for (index, entry) in pages {
            let target = index.checked_sub(offset).filter(|&target| target < size);
            let target =
                target.filter(|&target| self.memory.objects().get(above).is_absent(target));
            match target {
                Some(target) => {
                    let page = self.memory.move_up(
                        PageId {
                            object: below,
                            index,
                        },
                        entry,
                        above,
                        target,
                    );
                    self.note_slot(page, entry.slot());
                }
                None => self.remove_page(
                    machine,
                    PageId {
                        object: below,
                        index,
                    },
                ),
            }
        }
        self.streams.forget(below);
        self.memory.merge_shadow(below, above, offset);
    }
}
