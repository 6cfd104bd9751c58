//! Memory: the tables of frames, objects, address spaces, the reverse map and the
//! slots of the swap store.
//!
//! [`Memory`] owns them all. What concerns one table is that table's own affair; what concerns
//! several changes here, and in [`regions`], and nowhere else.
//!
//! # Invariants
//! 1. A frame that has a page is named by that page's entry, unless the page's owner has given it
//!    up; an entry that names a frame names one that has its page.
//! 2. A frame that is freed is mapped nowhere.
//! 3. A slot that an entry names has an owner, and is released when the entry no longer does, or
//!    handed to the caller.

use alloc::boxed::Box;

use crate::id::{FrameId, PageId, SlotId, SpaceId, Ticket, VirtPage};
use address_space::{Space, Spaces};
use frame::Frames;
use object::Objects;
use reverse_map::ReverseMap;
use swap_slots::Slots;

pub mod address_space;
pub mod frame;
pub mod object;
pub mod page_run;
mod page_tables;
pub(crate) mod regions;
pub mod reverse_map;
pub mod swap_slots;

/// All tables of what is where.
pub(crate) struct Memory {
    frames: Frames,
    reverse: ReverseMap,
    objects: Objects,
    spaces: Spaces,
    slots: Box<dyn Slots>,
}

impl Memory {
    /// No spaces and no pages.
    pub(crate) fn new(frames: Frames, reverse: ReverseMap, slots: Box<dyn Slots>) -> Memory {
        Memory {
            frames,
            reverse,
            objects: Objects::new(),
            spaces: Spaces::new(),
            slots,
        }
    }

    /// Makes a space with nothing in it.
    pub(crate) fn create_space(&mut self) -> SpaceId {
        self.spaces.create()
    }

    /// Ends a space in which nothing is mapped.
    pub(crate) fn destroy_space(&mut self, space: SpaceId) {
        self.spaces.destroy(space);
    }

    /// Puts a taken frame to `page`, to be filled under `ticket`.
    pub(crate) fn fill(&mut self, frame: FrameId, page: PageId, ticket: Ticket) {
        let object = self.objects.get_mut(page.object);
        let is_outside = object.is_outside(page.index);
        self.frames.fill(frame, page, is_outside, ticket);
        object.set_frame(page.index, Some(frame));
    }

    /// Takes `page` out of its table; its frame is released next, or when its transfer ends.
    pub(crate) fn clear_frame(&mut self, page: PageId) {
        let object = self.objects.get_mut(page.object);
        object.set_frame(page.index, None);
    }

    /// Frees a frame whose page is out of its table, or retires it if there are too many. Answers
    /// whether it was retired.
    pub(crate) fn release(&mut self, frame: FrameId) -> bool {
        self.reverse.clear(frame);
        self.frames.free(frame)
    }

    /// Notes that `at` in `space` may reach `frame`.
    #[inline]
    pub(crate) fn map(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        self.reverse.insert(frame, space, at);
    }

    /// Notes that `at` in `space` no longer reaches `frame`. Answers whether it may have.
    pub(crate) fn unmap(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) -> bool {
        self.reverse.remove(frame, space, at)
    }

    /// Notes that nothing reaches `frame` any more.
    pub(crate) fn unmap_all(&mut self, frame: FrameId) {
        self.reverse.clear(frame);
    }

    /// Notes which slot has `page`, if any.
    pub(crate) fn put_slot(&mut self, page: PageId, slot: Option<SlotId>) {
        let object = self.objects.get_mut(page.object);
        object.set_slot(page.index, slot);
    }

    /// Takes the slot of `page` out of its table, for the caller to release.
    pub(crate) fn take_slot(&mut self, page: PageId) -> Option<SlotId> {
        let slot = self.objects.entry(page).slot()?;
        self.put_slot(page, None);
        Some(slot)
    }

    /// Releases the slot of `page`, if it has one. Answers whether it had.
    pub(crate) fn drop_slot(&mut self, page: PageId) -> bool {
        let slot = self.take_slot(page);
        slot.map(|slot| self.slots.release(slot)).is_some()
    }

    /// Releases a slot that no table names.
    pub(crate) fn release_slot(&mut self, slot: SlotId) {
        self.slots.release(slot);
    }

    /// Lends the tables that a policy's probe looks at and changes.
    #[inline]
    pub(crate) fn lend(&mut self) -> (&mut Frames, &mut ReverseMap, &Objects) {
        (&mut self.frames, &mut self.reverse, &self.objects)
    }

    /// The frame table, to change what concerns it alone.
    #[inline]
    pub(crate) fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Lends the counts and the state of a space, to be changed.
    pub(crate) fn space_mut(&mut self, space: SpaceId) -> Option<&mut Space> {
        self.spaces.get_mut(space)
    }

    pub(crate) fn slots_mut(&mut self) -> &mut dyn Slots {
        &mut *self.slots
    }

    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    #[inline]
    pub(crate) fn reverse(&self) -> &ReverseMap {
        &self.reverse
    }

    #[inline]
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    #[inline]
    pub(crate) fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    pub(crate) fn slots(&self) -> &dyn Slots {
        &*self.slots
    }
}
