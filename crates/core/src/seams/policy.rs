//! The third seam: who decides which resident page leaves next.
//!
//! A policy holds opinions, not frames. The core checks each choice, so a wrong policy can make a
//! program slow and cannot make it wrong. Each policy has a file of its own and is listed in
//! [`policies`](crate::policies).

use alloc::vec::Vec;

use crate::id::{FrameId, PageId, SpaceId, VirtPage};
use crate::memory::frame::{Frames, State};
use crate::memory::object::Objects;
use crate::memory::reverse_map::{Mapping, ReverseMap};
use crate::seams::machine::{Machine, Rights};
use crate::time::Time;

/// Decides which resident page leaves next.
pub trait Policy: Send {
    /// Describes the policy, once, for help texts, reports, bindings and tests.
    fn describe(&self) -> &'static Description;

    /// Learns that a page has come to `frame`.
    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival);

    /// Learns that `page` has left `frame`. A page on its way out to the store has left already.
    /// It may have come under another name: merging objects after a fork moves pages from one to
    /// the other.
    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure);

    /// Learns that a program touched the page in `frame` while it was resident but unmapped: a
    /// soft fault. The page is mapped again when this is called.
    fn page_rescued(&mut self, _frame: FrameId) {}

    /// Learns that a system call copied bytes to or from the page in `frame`, which no program need
    /// map: a page of a file in the kernel's cache. Answers whether that is all it wants to know;
    /// if not, its next question about the frame is answered yes, unless this was the
    /// [first](KernelUse::First) use. For most it is a touch like any other.
    fn page_copied(&mut self, frame: FrameId, kernel_use: KernelUse) -> bool {
        if kernel_use == KernelUse::Again {
            self.page_rescued(frame);
        }
        false
    }

    /// Learns that a program wants `page`, which is not resident, before room is made for it. It
    /// may be told again before the page comes, and the page may never come.
    fn page_missed(&mut self, _page: PageId) {}

    /// Adds to `frames` up to `count` frames that may be chosen next, the first of them first.
    /// Asked by simulations alone, which read ahead in their traces: they then look at what is
    /// known of those frames all at once, and need not wait for memory at each choice. It binds
    /// nobody.
    fn frames_ahead(&self, _count: usize, _frames: &mut Vec<FrameId>) {}

    /// Learns that `wanted` may be missed soon, and that those of
    /// [`frames_ahead`](Self::frames_ahead) hold `leaving`. It changes nothing and tells nothing. A
    /// policy that remembers pages which have left may look here where they are or will be
    /// remembered, all at once, so that it need not wait for memory at each miss.
    fn pages_ahead(&self, _wanted: &[PageId], _leaving: &[PageId]) {}

    /// Learns of one reference to a page that was resident; called by the lab alone, if `sees`
    /// asks for it. The reference that brings a page is told by `page_entered`.
    fn page_referenced(&mut self, _frame: FrameId) {}

    /// Learns when the page in `frame` is used next, in the ticks of its program: `u64::MAX` if
    /// never. Called by the lab alone after each reference, if `sees` asks for the future.
    fn page_foreseen(&mut self, _frame: FrameId, _next: u64) {}

    /// Learns how far the programs of `space` have come in their own time, in ticks: a microsecond
    /// of processor time each, or a reference in a simulation without a clock. Told before
    /// anything else that happened at that time.
    fn clock_moved(&mut self, _space: SpaceId, _ticks: u64) {}

    /// Learns that `space` is no more. Another may get its number. Pages it shared may stay.
    fn space_ended(&mut self, _space: SpaceId) {}

    /// Names the frame to give up, or `None` if nothing it knows of may go.
    ///
    /// Choosing removes nothing: `page_left` follows if the core agrees.
    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId>;

    /// Names a frame to give up although nobody needs it, or `None` if all are to stay for now.
    ///
    /// Asked at each tick, and when a fault that brought or mapped a page is over, again and again
    /// until it answers `None` or a round is full. One call does a bounded amount of work; what is
    /// left over can wait for the next event. `page_left` follows each answer that the core agrees
    /// with.
    fn trim(&mut self, _probe: &mut Probe<'_>) -> Option<FrameId> {
        None
    }

    /// Names a frame whose page is to be written and to stay, or `None`. Asked after
    /// [`trim`](Self::trim), in the same way.
    ///
    /// The page leaves for the time of the write, and enters again: as [`Cause::Cleaned`] when it
    /// has been written or had no need to be, as [`Cause::Kept`] if it was touched meanwhile.
    fn clean(&mut self, _probe: &mut Probe<'_>) -> Option<FrameId> {
        None
    }

    /// How many frames the programs of `space` need, if the policy measures that.
    fn demand(&self, _space: SpaceId) -> Option<u32> {
        None
    }

    /// How many resident pages the policy holds as good as free.
    fn frames_spare(&self) -> u32 {
        0
    }

    /// Learns that time has passed.
    fn tick(&mut self, _probe: &mut Probe<'_>) {}

    /// Whether it walks the page tables of programs: whoever drives it then keeps the standing
    /// mappings (see [`crate::memory::reverse_map`]) and lends them to its probes.
    fn walks(&self) -> bool {
        false
    }

    /// Learns that memory now has `frames` frames.
    fn resize(&mut self, _frames: u32) {}

    /// Panics if the policy's own records contradict each other.
    fn check(&self) {}
}

/// What a policy says of itself.
#[derive(Debug)]
pub struct Description {
    /// The name on the command line and in reports: lower case, hyphens.
    pub name: &'static str,
    /// One line of meaning.
    pub summary: &'static str,
    /// The publications and systems it follows, oldest first.
    pub lineage: &'static [&'static str],
    /// The least it must see.
    pub sees: Sees,
    /// The knobs: name, meaning, range, default.
    pub knobs: &'static [Knob],
}

/// What a policy must be shown. Each includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sees {
    /// Faults, and soft faults on pages it had unmapped.
    Faults,
    /// One bit a page, sampled and cleared when the policy asks.
    Bits,
    /// Every reference, in order. Simulation only.
    References,
    /// The references still to come. Simulation only.
    Future,
}

impl Sees {
    /// Whether a machine that runs programs can show it: no more than a bit a page.
    pub fn is_shown_live(self) -> bool {
        self <= Sees::Bits
    }
}

/// A number that changes how a policy behaves.
#[derive(PartialEq, Eq, Debug)]
pub struct Knob {
    /// The name, lower case with hyphens.
    pub name: &'static str,
    /// What it does and in which unit.
    pub meaning: &'static str,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// The value if nobody sets it.
    pub default: u64,
}

/// How a page came to its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// First touch of anonymous memory.
    ZeroFill,
    /// Zeroed ahead of its first touch because its neighbours were touched in order.
    ZeroAhead,
    /// Read because a program waits for it; or a page of a file that is about to be written whole.
    Fetched,
    /// Read along with another page; nobody has touched it yet.
    Prefetched,
    /// The private copy a write to a shared page made.
    Copied,
    /// Present before the core knew of it.
    Adopted,
    /// Chosen to leave, and kept after all: touched, pinned, or its store failed.
    Kept,
    /// Written because the policy wanted it [clean](Policy::clean). Not mapped.
    Cleaned,
}

/// Which use of a page by a system call this is.
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
    /// How it came.
    pub cause: Cause,
    /// The space whose fault brought it.
    pub space: SpaceId,
    /// Whether the page belongs to an external object (a file or a user's pager).
    pub is_external: bool,
}

/// Why a page left its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// The policy chose it. It may be wanted again.
    Evicted,
    /// Its owner gave it up. It will not come back under this name.
    Discarded,
}

/// What a policy may ask about frames. Every question is counted and reported as cost.
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
}

impl<'a> Probe<'a> {
    /// Makes a probe for whoever drives a policy without a [`Vm`](crate::vm::Vm).
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
        }
    }

    /// Lends it the mappings, for a policy that [walks](Policy::walks).
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

    /// Whether `frame` holds a page that is neither wired nor in transit, nor protected by load
    /// control.
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
        let was_vouched_for = self.frames.take_vouched(frame);
        self.machine.take_referenced(frame) | was_vouched_for
    }

    /// Forgets which frames were used, in one step where the machine has one: as if `count` frames
    /// had been asked about, and nobody had listened. Answers whether it did; if not, nothing has
    /// changed, and each is to be asked about.
    pub fn forget_references(&mut self, count: u32) -> bool {
        let is_done = self.machine.forget_references();
        *self.questions += if is_done { count.into() } else { 0 };
        is_done
    }

    /// Whether the first answer about a page that has come says nothing of a second use: see
    /// [`Machine::answers_arrival`].
    pub fn answers_arrival(&self) -> bool {
        self.machine.answers_arrival()
    }

    /// Unmaps `frame`, which stays resident: its next use is a soft fault, reported through
    /// [`Policy::page_rescued`].
    pub fn unmap(&mut self, frame: FrameId) {
        *self.questions += 1;
        self.machine.restrict(frame, Rights::None);
        self.frames.set_aside(frame, true);
    }

    /// Whether the page in `frame` must be written before it may be dropped. `None` if nobody can
    /// tell: only a page that [`unmap`](Self::unmap) has unmapped, in an earlier call, and that
    /// nobody has touched since, holds still.
    pub fn is_modified(&mut self, frame: FrameId) -> Option<bool> {
        if !self.frames.is_aside(frame) {
            return None;
        }
        *self.questions += 1;
        // The same event may have changed other things about the page.
        self.machine.settle();
        if self.machine.take_modified(frame) {
            self.frames.set_dirty(frame, true);
        }
        Some(self.frames.is_dirty(frame))
    }

    /// Whether the page in `frame` may have to be written before its frame is free. Where nothing
    /// tells before a page is unmapped, every page may.
    pub fn may_be_modified(&mut self, frame: FrameId) -> bool {
        *self.questions += 1;
        self.frames.is_dirty(frame) || self.machine.may_be_modified(frame)
    }

    /// One step of a walk along the page tables of all programs: the first mapping behind `after`
    /// that this policy has not removed, and whether it was used since this was last asked. Only
    /// for a policy that [walks](Policy::walks).
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

    /// Whether a mapping of `frame` is left that this policy has not removed. Only for a policy
    /// that [walks](Policy::walks).
    pub fn is_mapped(&self, frame: FrameId) -> bool {
        let places = self.places.as_deref();
        places.is_some_and(|places| places.is_standing(frame))
    }

    /// Whether the page in `frame` is a program's: private memory, or of a file that some program
    /// maps now. Not so are files that have only been read and written by system calls. Where
    /// nobody knows, yes.
    pub fn is_in_use(&self, frame: FrameId) -> bool {
        let page = self.frames.page(frame);
        page.zip(self.objects).is_none_or(|(page, objects)| {
            let object = objects.get(page.object);
            !object.is_external() || object.is_mapped()
        })
    }

    /// How many frames hold nothing.
    pub fn frames_free(&self) -> u32 {
        self.frames.count(State::Free)
    }

    /// How many pages are being written to their pagers at this moment.
    pub fn laundry(&self) -> u32 {
        self.laundry
    }
}
