//! The probe: what a policy may ask about frames.

use crate::id::{FrameId, PageId, SpaceId, VirtPage};
use crate::memory::frame::{Frames, State};
use crate::memory::object::Objects;
use crate::memory::reverse_map::{Mapping, ReverseMap};
use crate::readahead::fates::Fate;
use crate::readahead::streams::Streams;
use crate::seams::machine::{Machine, Modification, Rights};
use crate::time::Time;

/// The questions that a policy may ask about frames. Every question is counted and reported as
/// cost.
pub struct Probe<'a> {
    pub(crate) now: Time,
    pub(crate) frames: &'a mut Frames,
    pub(crate) machine: &'a mut dyn Machine,
    pub(crate) questions: &'a mut u64,
    pub(crate) laundry: u32,
    pub(crate) places: Option<&'a mut ReverseMap>,
    pub(crate) protected: Option<SpaceId>,
    pub(crate) wanted: Option<FrameId>,
    pub(crate) objects: Option<&'a Objects>,
    pub(crate) streams: Option<&'a Streams>,
}

impl<'a> Probe<'a> {
    /// Makes a probe for a driver of a policy without a [`Vm`](crate::vm::Vm).
    pub fn new(
        now: Time,
        frames: &'a mut Frames,
        machine: &'a mut dyn Machine,
        questions: &'a mut u64,
        laundry: u32,
    ) -> Probe<'a> {
        Probe {
            now,
            frames,
            machine,
            questions,
            laundry,
            places: None,
            protected: None,
            wanted: None,
            objects: None,
            streams: None,
        }
    }

    /// Lends it the mappings, for a policy that [walks](super::policy::SpacePolicy::walks).
    pub fn with_places(mut self, places: &'a mut ReverseMap) -> Probe<'a> {
        self.places = Some(places);
        self
    }

    /// Has the page in `frame` stay: a program has just waited for it, and has not run since. A
    /// [`Vm`](crate::vm::Vm) wires such a page.
    #[inline]
    pub fn with_wanted(mut self, frame: FrameId) -> Probe<'a> {
        self.wanted = Some(frame);
        self
    }
}

impl Probe<'_> {
    /// The time of the event that is being handled.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns true if `frame` holds a page that is neither wired nor in transit, nor protected by
    /// load control.
    pub fn may_leave(&self, frame: FrameId) -> bool {
        self.frames.may_leave(frame)
            && self.wanted != Some(frame)
            && self
                .protected
                .is_none_or(|space| self.frames.owner(frame) != space)
    }

    /// Reports whether `frame` was used since this was last asked, and forgets it.
    ///
    /// Where there are no reference bits, a mapped frame answers yes and is unmapped.
    pub fn take_referenced(&mut self, frame: FrameId) -> bool {
        *self.questions += 1;
        let was_forced = self.frames.take_forced_reference(frame);
        self.machine.take_referenced(frame) | was_forced
    }

    /// Forgets which frames were used, in one step where the machine has one: as if `count` frames
    /// had been asked about, and the answers ignored. Returns true if it did; if not, nothing has
    /// changed, and each must be asked about.
    pub fn forget_references(&mut self, count: u32) -> bool {
        let is_done = self.machine.forget_references();
        *self.questions += if is_done { count.into() } else { 0 };
        is_done
    }

    /// Answers whether the first answer about a page that has come says nothing of a second use:
    /// see [`PageBits`](super::machine::PageBits::answers_arrival).
    pub fn answers_arrival(&self) -> bool {
        self.machine.answers_arrival()
    }

    /// Unmaps `frame`, which stays resident: its next use is a soft fault, reported through
    /// [`Policy::page_rescued`](super::policy::Policy::page_rescued).
    pub fn unmap(&mut self, frame: FrameId) {
        *self.questions += 1;
        self.machine.restrict(frame, Rights::None);
        self.frames.set_deactivated(frame, true);
    }

    /// Returns `Some(true)` if the page in `frame` must be written before it may be dropped. `None`
    /// if that is not known: only a page that [`unmap`](Self::unmap) has unmapped, in an earlier
    /// call, and that was not touched since, can't change.
    pub fn is_modified(&mut self, frame: FrameId) -> Option<bool> {
        if !self.frames.is_deactivated(frame) {
            return None;
        }
        *self.questions += 1;
        // The same event may have changed other things about the page.
        self.machine.settle();
        let found = self.machine.take_modification(frame);
        if found != Modification::None {
            self.frames.set_dirty(frame, true);
        }
        if found == Modification::Written {
            self.frames.change_fate(frame, Fate::written);
        }
        Some(self.frames.is_dirty(frame))
    }

    /// Returns true if the page in `frame` may have to be written before its frame is free. Where
    /// nothing tells before a page is unmapped, every page may.
    pub fn may_be_modified(&mut self, frame: FrameId) -> bool {
        *self.questions += 1;
        self.frames.is_dirty(frame) || self.machine.may_be_modified(frame)
    }

    /// One step of a walk along the page tables of all programs: the first mapping behind `after`
    /// that this policy has not removed, and whether it was used since this was last asked. Only
    /// for a policy that [walks](super::policy::SpacePolicy::walks).
    pub fn walk(&mut self, after: Option<(SpaceId, VirtPage)>) -> Option<(Mapping, bool)> {
        let places = self.places.as_deref_mut()?;
        let found = places.next_standing(after)?;
        *self.questions += 1;
        let Mapping { space, at, frame } = found;
        Some((found, self.machine.take_referenced_at(space, at, frame)))
    }

    /// Removes one mapping that [`walk`](Self::walk) has found. Its page stays resident, and the
    /// next use there is a soft fault.
    pub fn unmap_at(&mut self, mapping: Mapping) {
        let Mapping { space, at, frame } = mapping;
        let Some(places) = self.places.as_deref_mut() else {
            return;
        };
        *self.questions += 1;
        places.fell(frame, space, at);
        if !places.is_standing(frame) {
            self.machine.restrict(frame, Rights::None);
        } else {
            self.machine.leave(space, at, frame);
        }
    }

    /// Returns true if a mapping of `frame` is left that this policy has not removed. Only for a
    /// policy that [walks](super::policy::SpacePolicy::walks).
    pub fn is_mapped(&self, frame: FrameId) -> bool {
        let places = self.places.as_deref();
        places.is_some_and(|places| places.is_standing(frame))
    }

    /// Returns true if the page in `frame` is a program's: private memory, or of a file that some
    /// program maps now. Not so are files that have only been read and written by system calls.
    /// If that is not known, true.
    pub fn is_in_use(&self, frame: FrameId) -> bool {
        let page = self.frames.page(frame);
        page.zip(self.objects).is_none_or(|(page, objects)| {
            let object = objects.get(page.object);
            !object.is_external() || object.is_mapped()
        })
    }

    /// Returns true if the page in `frame` was read ahead of a walk that has not come to it yet.
    pub fn is_awaited(&self, frame: FrameId) -> bool {
        let page = self
            .frames
            .page(frame)
            .filter(|_| self.frames.is_ahead(frame));
        let awaited =
            |(page, streams): (PageId, &Streams)| streams.is_awaited(page.object, page.index);
        page.zip(self.streams).is_some_and(awaited)
    }

    /// The number of pages that were read ahead of walks, and that those have not come to.
    pub fn awaited(&self) -> u64 {
        self.streams.map_or(0, Streams::awaited)
    }

    /// The number of frames that hold nothing.
    pub fn frames_free(&self) -> u32 {
        self.frames.count(State::Free)
    }

    /// The number of pages that are being written and stay: those that the policy wanted
    /// [clean](super::policy::Policy::clean), or that are written along with one beside them. A
    /// page that its owner gives up meanwhile does not come back, and counts until its write ends.
    pub fn cleaning(&self) -> u32 {
        self.frames.cleaning()
    }

    /// The number of pages that are being written to their pagers at this moment.
    pub fn laundry(&self) -> u32 {
        self.laundry
    }
}
