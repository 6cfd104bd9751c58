//! Frames: the fixed table of memory slots and what each holds.
//!
//! Frames are opened from the lowest number up, when none of those that are open will do. Of the
//! others it is only known how many are free and how many are retired, and they take no memory in
//! any table: the cost of a memory follows its used frames, and not its limit.
//!
//! # Invariants
//! 1. A frame is in exactly one [`State`]; the counts per state add up to the table's size.
//! 2. A frame has a page exactly when it is filling, resident or leaving.
//! 3. The free set holds every free frame; the arrival list every resident frame once, in the
//!    order of arrival.
//! 4. A bit for each frame says whether it is resident and not wired.
//! 5. Frames from `opened` on hold nothing: the first `unopened_free` of them are free, and the
//!    others retired.
//!
//! [`reclaim`](crate::vm::reclaim) moves frames out, [`fault`](crate::vm::faults) brings
//! pages in.

use alloc::vec;
use alloc::vec::Vec;

use crate::collections::bitmap::Bitmap;
use crate::collections::bits::Bits;
use crate::collections::column::Column;
use crate::collections::field::Field;
use crate::id::{FrameId, ObjectId, PageId, SpaceId, Ticket};
use crate::readahead::fates::Fate;
use crate::seams::arrival::Cause;

/// The state of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Holds nothing and may be taken.
    Free,
    /// Waits for its contents to come from a pager.
    Filling,
    /// Holds a page that programs can use.
    Resident,
    /// Holds a page that is being written to its pager, to be freed afterwards.
    Leaving,
    /// Beyond the memory limit: holds nothing and may not be taken.
    Retired,
}

impl State {
    const ALL: [State; STATES] = [
        State::Free,
        State::Filling,
        State::Resident,
        State::Leaving,
        State::Retired,
    ];
}

const STATES: usize = 5;
/// Frames are opened while fewer than this share of those that are open are free.
const OPEN_FREE_PART: u32 = 8;
const NONE: u32 = u32::MAX;
/// In place of the object of a page where there is none.
const NOBODY: ObjectId = ObjectId(NONE);

/// The part of a frame's entry that policies ask about: their questions go all over memory, and
/// what they look at should be near. In four bytes, so that a cache line has the entries of sixteen
/// frames.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Frame {
    /// The page may not leave while this is not zero.
    wires: u16,
    /// The state, a bit for each [`Mark`], the fate, and the cause for which a page is cleaned.
    packed: u16,
}

/// A property of a frame and its page that holds or does not: the number of its bit.
#[derive(Clone, Copy)]
enum Mark {
    External = 3,
    /// Known to differ from the store, whatever the machine says.
    Dirty,
    /// Unmapped by the policy, and not mapped since.
    Deactivated,
    /// Came ahead of its use, and has not been seen touched.
    Ahead,
    /// A soft fault here tells a stream that its reader has come this far.
    Marker,
    /// Touched while it was leaving: to be kept once the store has answered.
    Wanted,
}

/// The fields of [`Frame::packed`] that have more than one bit.
const STATE: Field = Field::new(0, 3);
const FATE: Field = Field::new(9, 3);
const CLEANING: Field = Field::new(12, 4);

impl Mark {
    const fn field(self) -> Field {
        Field::new(self as u32, 1)
    }
}

impl Frame {
    const BLANK: Frame = Frame {
        wires: 0,
        packed: State::Retired as u16,
    };

    #[inline]
    fn get(self, field: Field) -> usize {
        field.get(self.packed.into()) as usize
    }

    #[inline]
    fn put(&mut self, field: Field, value: u64) {
        self.packed = field.put(self.packed.into(), value) as u16;
    }

    #[inline]
    fn state(self) -> State {
        State::ALL[self.get(STATE)]
    }

    #[inline]
    fn set_state(&mut self, state: State) {
        self.put(STATE, state as u64);
    }

    #[inline]
    fn has(self, mark: Mark) -> bool {
        self.get(mark.field()) != 0
    }

    #[inline]
    fn set(&mut self, mark: Mark, is_so: bool) {
        self.put(mark.field(), is_so.into());
    }

    /// The knowledge of the use of a page that came ahead of it, for counting.
    fn fate(self) -> Fate {
        Fate::ALL[self.get(FATE)]
    }

    fn set_fate(&mut self, fate: Fate) {
        self.put(FATE, fate as u64);
    }

    /// Leaving to be written, and to stay afterwards: as what the page then comes back.
    fn cleaning(self) -> Option<Cause> {
        let number = self.get(CLEANING).checked_sub(1)?;
        Some(Cause::ALL[number])
    }

    fn set_cleaning(&mut self, back: Option<Cause>) {
        self.put(CLEANING, back.map_or(0, |cause| cause as u64 + 1));
    }
}

/// The page that a frame holds, and its neighbours in the order of arrival. In 24 bytes: the parts
/// of a page's name are separate fields, and some fields have two uses.
#[derive(Clone, Copy)]
struct Held {
    index: u64,
    object: ObjectId,
    /// Of a resident frame the next newer and the next older one; of one in transit the two halves
    /// of the ticket that it waits for.
    newer: u32,
    older: u32,
    /// The space whose fault last brought or mapped the page.
    owner: SpaceId,
}

// These are most of what the core's memory costs: see `bench/results/compressed-memory.md`.
const _: () = assert!(size_of::<Frame>() == 4 && size_of::<Held>() == 24);

impl Held {
    fn page(&self) -> Option<PageId> {
        let (object, index) = (self.object, self.index);
        (object != NOBODY).then_some(PageId { object, index })
    }

    fn set_page(&mut self, page: PageId) {
        (self.object, self.index) = (page.object, page.index);
    }

    fn ticket(&self) -> Ticket {
        Ticket(u64::from(self.older) << 32 | u64::from(self.newer))
    }

    fn set_ticket(&mut self, ticket: Ticket) {
        (self.older, self.newer) = ((ticket.0 >> 32) as u32, ticket.0 as u32);
    }
}

/// The frame table.
pub struct Frames {
    table: Column<Frame>,
    held: Column<Held>,
    /// A small copy of what is asked most: which frames may leave.
    may_leave: Bits,
    /// Frames whose pages count as referenced, whatever the machine says: load control asks for it.
    is_reference_forced: Bits,
    /// The open ones that are free.
    free: Bitmap,
    opened: u32,
    unopened_free: u32,
    counts: [u32; STATES],
    external: u32,
    /// Resident frames by owner, in the order of the spaces' numbers.
    owned: Vec<u32>,
    cleaning: u32,
    limit: u32,
    newest: u32,
    oldest: u32,
}

impl Frames {
    /// Makes a table of `frames_max` frames, of which the first `frames_limit` are free and the
    /// others retired.
    pub fn new(frames_max: u32, frames_limit: u32) -> Frames {
        assert!(frames_limit <= frames_max);
        let nothing = Held {
            index: 0,
            object: NOBODY,
            newer: NONE,
            older: NONE,
            owner: SpaceId(0),
        };
        let mut counts = [0; STATES];
        counts[State::Free as usize] = frames_limit;
        counts[State::Retired as usize] = frames_max - frames_limit;
        let (newest, oldest) = (NONE, NONE);
        Frames {
            table: Column::new(Frame::BLANK, frames_max as usize),
            held: Column::new(nothing, frames_max as usize),
            may_leave: Bits::new(frames_max as usize),
            is_reference_forced: Bits::new(frames_max as usize),
            free: Bitmap::new(frames_max as usize),
            opened: 0,
            unopened_free: frames_limit,
            counts,
            external: 0,
            owned: Vec::new(),
            cleaning: 0,
            limit: frames_limit,
            newest,
            oldest,
        }
    }

    /// Takes consecutive free frames, at least one and at most `want`, for pages still to be named.
    pub(crate) fn take_run(&mut self, want: u32) -> Option<(FrameId, u32)> {
        let (first, length) = self.find_run(want)?;
        for frame in first..first + length {
            let entry = &mut self.table[frame];
            for mark in [Mark::Ahead, Mark::Marker, Mark::Dirty, Mark::Wanted] {
                entry.set(mark, false);
            }
            entry.set_fate(Fate::Settled);
            self.held[frame].set_ticket(Ticket(0));
            self.set_state(FrameId(frame as u32), State::Filling);
        }
        Some((FrameId(first as u32), length as u32))
    }

    /// Puts a taken frame to `page`, to be filled under `ticket`.
    pub(super) fn fill(&mut self, frame: FrameId, page: PageId, is_external: bool, ticket: Ticket) {
        let entry = &mut self.table[frame.index()];
        let held = &mut self.held[frame.index()];
        assert!(entry.state() == State::Filling && held.page().is_none());
        entry.set(Mark::External, is_external);
        held.set_page(page);
        held.set_ticket(ticket);
    }

    /// Makes a filling or leaving frame resident, as the newest arrival.
    pub(crate) fn settle(&mut self, frame: FrameId) {
        assert!(matches!(self.state(frame), State::Filling | State::Leaving));
        assert!(self.held[frame.index()].page().is_some());
        self.set_state(frame, State::Resident);
        let entry = &mut self.table[frame.index()];
        entry.set(Mark::Wanted, false);
        entry.set(Mark::Deactivated, false);
        self.is_reference_forced.set(frame.index(), false);
        self.end_cleaning(frame);
        self.external += u32::from(self.table[frame.index()].has(Mark::External));
        self.link(frame);
    }

    /// Marks a resident frame as on its way out.
    pub(crate) fn leave(&mut self, frame: FrameId) {
        assert!(self.may_leave(frame));
        self.unlink(frame);
        self.external -= u32::from(self.table[frame.index()].has(Mark::External));
        self.set_state(frame, State::Leaving);
    }

    /// Names the transfer a leaving frame waits for.
    pub(crate) fn set_ticket(&mut self, frame: FrameId, ticket: Ticket) {
        assert!(self.state(frame) == State::Leaving);
        self.held[frame.index()].set_ticket(ticket);
    }

    /// Frees a frame, or retires it if more frames are in use than the limit allows. Returns
    /// whether it was retired.
    pub(super) fn free(&mut self, frame: FrameId) -> bool {
        if self.state(frame) == State::Resident {
            self.unlink(frame);
            self.external -= u32::from(self.table[frame.index()].has(Mark::External));
        }
        self.end_cleaning(frame);
        let is_over = self.usable() > self.limit;
        let entry = &mut self.table[frame.index()];
        assert!(!matches!(entry.state(), State::Free | State::Retired));
        entry.wires = 0;
        self.held[frame.index()].object = NOBODY;
        if is_over {
            self.set_state(frame, State::Retired);
        } else {
            self.set_state(frame, State::Free);
            self.free.insert(frame.index());
        }
        is_over
    }

    /// Sets how many frames may be in use.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        assert!(limit as usize <= self.table.len());
        self.limit = limit;
    }

    /// Takes free frames out of use as far as there are more than the limit allows: those that
    /// were never used at once, and then one of the others.
    pub(crate) fn retire_one(&mut self) -> Option<FrameId> {
        let unused = self.usable().saturating_sub(self.limit);
        let unused = unused.min(self.unopened_free);
        self.unopened_free -= unused;
        self.counts[State::Free as usize] -= unused;
        self.counts[State::Retired as usize] += unused;
        if self.usable() <= self.limit {
            return None;
        }
        let (frame, _) = self.free.take_run(1)?;
        let frame = FrameId(frame as u32);
        self.set_state(frame, State::Retired);
        Some(frame)
    }

    /// Puts retired frames back into use as far as the limit allows: one that was used before,
    /// searching from `from`, or if there is none all at once that never were.
    pub(crate) fn reinstate_one(&mut self, from: usize) -> Option<FrameId> {
        if self.usable() >= self.limit {
            return None;
        }
        let unopened = self.table.len() as u32 - self.opened - self.unopened_free;
        let was_used = |&frame: &usize| self.table[frame].state() == State::Retired;
        if self.count(State::Retired) > unopened
            && let Some(found) = (from..self.opened as usize).find(was_used)
        {
            let frame = FrameId(found as u32);
            self.set_state(frame, State::Free);
            self.free.insert(found);
            return Some(frame);
        }
        let unused = unopened.min(self.limit - self.usable());
        self.unopened_free += unused;
        self.counts[State::Free as usize] += unused;
        self.counts[State::Retired as usize] -= unused;
        None
    }

    pub(crate) fn set_ahead(&mut self, frame: FrameId, is_marker: bool) {
        let entry = &mut self.table[frame.index()];
        entry.set(Mark::Ahead, true);
        entry.set(Mark::Marker, is_marker);
        entry.set_fate(Fate::Untouched);
    }

    /// Reports whether `frame` came ahead of its use and was not seen used, and forgets it.
    pub(crate) fn take_ahead(&mut self, frame: FrameId) -> bool {
        let entry = &mut self.table[frame.index()];
        let is_ahead = entry.has(Mark::Ahead);
        entry.set(Mark::Ahead, false);
        entry.set(Mark::Marker, false);
        is_ahead
    }

    /// Notes what has happened to a page that may have come ahead of its use.
    pub(crate) fn change_fate(&mut self, frame: FrameId, change: fn(Fate) -> Fate) {
        let entry = &mut self.table[frame.index()];
        let fate = entry.fate();
        if fate != Fate::Settled {
            entry.set_fate(change(fate));
        }
    }

    /// The fate of the page in `frame`, to be counted: it is settled now.
    pub(crate) fn take_fate(&mut self, frame: FrameId) -> Fate {
        let entry = &mut self.table[frame.index()];
        let fate = entry.fate();
        entry.set_fate(Fate::Settled);
        fate
    }

    /// Settles what is known of every page: another memory counts it.
    pub(crate) fn forget_fates(&mut self) {
        for frame in (0..self.opened).map(FrameId) {
            self.change_fate(frame, |_| Fate::Settled);
        }
    }

    pub(crate) fn set_dirty(&mut self, frame: FrameId, is_dirty: bool) {
        self.table[frame.index()].set(Mark::Dirty, is_dirty);
    }

    pub(crate) fn set_wanted(&mut self, frame: FrameId) {
        assert!(self.state(frame) == State::Leaving);
        self.table[frame.index()].set(Mark::Wanted, true);
    }

    /// Notes whether the policy has unmapped the page of `frame`, and it has not been mapped since.
    pub(crate) fn set_deactivated(&mut self, frame: FrameId, is_deactivated: bool) {
        self.table[frame.index()].set(Mark::Deactivated, is_deactivated);
    }

    /// Makes the policy's next question about `frame` answer that it was used.
    pub(crate) fn force_reference(&mut self, frame: FrameId) {
        self.is_reference_forced.set(frame.index(), true);
    }

    /// Reports whether a reference of `frame` was forced, and forgets it.
    pub(crate) fn take_forced_reference(&mut self, frame: FrameId) -> bool {
        self.is_reference_forced.take(frame.index())
    }

    /// Has a leaving page stay when it is written, and come back as `back` says.
    pub(crate) fn set_cleaning(&mut self, frame: FrameId, back: Cause) {
        assert!(self.state(frame) == State::Leaving && !self.is_cleaning(frame));
        self.table[frame.index()].set_cleaning(Some(back));
        self.cleaning += 1;
    }

    /// Says whose fault brought the page of `frame`, or mapped it again.
    pub(crate) fn set_owner(&mut self, frame: FrameId, owner: SpaceId) {
        let is_resident = self.state(frame) == State::Resident;
        let before = core::mem::replace(&mut self.held[frame.index()].owner, owner);
        if owner.0 as usize >= self.owned.len() {
            self.owned.resize(owner.0 as usize + 1, 0);
        }
        if is_resident {
            self.owned[before.0 as usize] -= 1;
            self.owned[owner.0 as usize] += 1;
        }
    }

    /// Gives a frame's page another name: its object was merged into another.
    pub(super) fn rename(&mut self, frame: FrameId, page: PageId) {
        self.held[frame.index()].set_page(page);
    }

    pub(crate) fn wire(&mut self, frame: FrameId) {
        self.table[frame.index()].wires += 1;
        self.note_may_leave(frame);
    }

    pub(crate) fn unwire(&mut self, frame: FrameId) {
        self.table[frame.index()].wires -= 1;
        self.note_may_leave(frame);
    }

    /// Puts `frame` into `state`, past every rule: for a driver of a policy without a
    /// [`Vm`](crate::vm::Vm), and needs frames that may leave and frames that may not.
    #[doc(hidden)]
    #[inline]
    pub fn force(&mut self, frame: FrameId, state: State, is_wired: bool) {
        if frame.0 >= self.opened {
            self.open(frame.0 + 1 - self.opened);
        }
        let entry = &mut self.table[frame.index()];
        entry.set(Mark::Deactivated, false);
        entry.set(Mark::Dirty, false);
        // Where one page follows another nothing else changes.
        let before = entry.state();
        if (before, entry.wires) != (state, is_wired.into()) {
            entry.set_state(state);
            entry.wires = is_wired.into();
            self.counts[before as usize] -= 1;
            self.counts[state as usize] += 1;
            let may_leave = state == State::Resident && !is_wired;
            self.may_leave.set(frame.index(), may_leave);
        }
    }

    /// The number of frames in all.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns true if there are no frames at all.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of frames that may be in use.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The number of frames that are not retired.
    pub fn usable(&self) -> u32 {
        self.table.len() as u32 - self.count(State::Retired)
    }

    /// The number of frames that hold a page or will hold one.
    pub fn in_use(&self) -> u32 {
        self.usable() - self.count(State::Free)
    }

    /// The number of frames in `state`.
    pub fn count(&self, state: State) -> u32 {
        self.counts[state as usize]
    }

    /// The number of resident frames that hold pages of external objects.
    pub fn resident_external(&self) -> u32 {
        self.external
    }

    /// The state of `frame`.
    pub fn state(&self, frame: FrameId) -> State {
        if frame.0 >= self.opened && frame.0 - self.opened < self.unopened_free {
            return State::Free;
        }
        self.table[frame.index()].state()
    }

    /// The page in `frame`, if it has one.
    pub fn page(&self, frame: FrameId) -> Option<PageId> {
        self.held[frame.index()].page()
    }

    /// Returns true if `frame` holds a page that is neither wired nor in transit.
    pub fn may_leave(&self, frame: FrameId) -> bool {
        self.may_leave.get(frame.index())
    }

    /// The space whose fault last brought the page of `frame`, or mapped it again.
    pub fn owner(&self, frame: FrameId) -> SpaceId {
        self.held[frame.index()].owner
    }

    /// The number of resident pages `space` owns. One that several spaces share has one owner.
    pub fn resident_of(&self, space: SpaceId) -> u32 {
        self.owned.get(space.0 as usize).copied().unwrap_or(0)
    }

    /// The number of leaving frames that hold pages that are written and stay.
    pub fn cleaning(&self) -> u32 {
        self.cleaning
    }

    /// The frame whose page came first, of those that may leave.
    pub fn find_oldest(&self) -> Option<FrameId> {
        self.iter_oldest()
            .map(|(frame, _)| frame)
            .find(|&frame| self.may_leave(frame))
    }

    /// The resident frames and their pages, the oldest first.
    pub fn iter_oldest(&self) -> impl Iterator<Item = (FrameId, PageId)> + '_ {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let held = (at != NONE).then(|| &self.held[at as usize])?;
            let here = FrameId(at);
            at = held.newer;
            Some((here, held.page()?))
        })
    }

    /// The transfer that a frame in transit waits for; zero of all others.
    pub(crate) fn ticket(&self, frame: FrameId) -> Ticket {
        match self.state(frame) {
            State::Filling | State::Leaving => self.held[frame.index()].ticket(),
            State::Free | State::Resident | State::Retired => Ticket(0),
        }
    }

    /// Returns true if the page in `frame` is known to differ from the store, whatever the machine
    /// says.
    pub fn is_dirty(&self, frame: FrameId) -> bool {
        self.table[frame.index()].has(Mark::Dirty)
    }

    pub(crate) fn is_deactivated(&self, frame: FrameId) -> bool {
        self.table[frame.index()].has(Mark::Deactivated)
    }

    pub(crate) fn is_cleaning(&self, frame: FrameId) -> bool {
        self.cleaned_as(frame).is_some()
    }

    /// As what a page comes back that is written and stays; `None` for all others.
    pub(crate) fn cleaned_as(&self, frame: FrameId) -> Option<Cause> {
        self.table[frame.index()].cleaning()
    }

    pub(crate) fn is_wanted(&self, frame: FrameId) -> bool {
        self.table[frame.index()].has(Mark::Wanted)
    }

    pub(crate) fn is_ahead(&self, frame: FrameId) -> bool {
        self.table[frame.index()].has(Mark::Ahead)
    }

    pub(crate) fn is_marker(&self, frame: FrameId) -> bool {
        self.table[frame.index()].has(Mark::Marker)
    }

    /// Panics if the table contradicts itself.
    pub fn check(&self) {
        let mut counts = [0; STATES];
        let mut external = 0;
        let mut owned = vec![0; self.owned.len()];
        let unopened = self.len() as u32 - self.opened;
        counts[State::Free as usize] += self.unopened_free;
        counts[State::Retired as usize] += unopened - self.unopened_free;
        assert_eq!(self.free.find_block(1, self.opened as usize), None);
        let mut cleaning = 0;
        for (number, entry) in self.table.iter().take(self.opened as usize).enumerate() {
            let state = entry.state();
            counts[state as usize] += 1;
            cleaning += u32::from(entry.cleaning().is_some());
            assert_eq!(self.free.contains(number), state == State::Free);
            let may_leave = state == State::Resident && entry.wires == 0;
            assert_eq!(self.may_leave.get(number), may_leave);
            if matches!(state, State::Free | State::Retired) {
                assert!(self.held[number].page().is_none() && entry.wires == 0);
            }
            if state == State::Resident {
                assert!(self.held[number].page().is_some());
                external += u32::from(entry.has(Mark::External));
                owned[self.held[number].owner.0 as usize] += 1;
            }
        }
        assert_eq!((owned, cleaning), (self.owned.clone(), self.cleaning));
        assert_eq!((counts, external), (self.counts, self.external));
        let mut length = 0;
        let (mut at, mut older) = (self.oldest, NONE);
        while at != NONE {
            assert_eq!(self.held[at as usize].older, older);
            assert_eq!(self.table[at as usize].state(), State::Resident);
            (older, at) = (at, self.held[at as usize].newer);
            length += 1;
        }
        assert_eq!((length, older), (self.count(State::Resident), self.newest));
    }

    /// Takes a run of free frames out of the free set. One that is shorter than wanted only if
    /// enough of those are free that are open: the tables would grow for what is in pieces.
    fn find_run(&mut self, want: u32) -> Option<(usize, usize)> {
        let unopened = want.min(self.unopened_free);
        let is_scarce = self.free.len() < (self.opened / OPEN_FREE_PART).max(want) as usize;
        if unopened == 0 || !is_scarce || self.free.has_run(want as usize) {
            return self.free.take_run(want as usize);
        }
        let first = self.opened as usize;
        self.open(unopened);
        let length = unopened as usize;
        (first..first + length).for_each(|frame| self.free.remove(frame));
        Some((first, length))
    }

    /// Opens `count` frames more.
    #[cold]
    fn open(&mut self, count: u32) {
        for frame in self.opened..self.opened + count {
            if self.unopened_free > 0 {
                self.unopened_free -= 1;
                self.table[frame as usize].set_state(State::Free);
                self.free.insert(frame as usize);
            }
        }
        self.opened += count;
    }

    /// Marks the page in `frame`, which is leaving, as one that is written and stays, or no longer:
    /// for a driver of a policy without a [`Vm`](crate::vm::Vm).
    #[doc(hidden)]
    pub fn force_cleaning(&mut self, frame: FrameId, is_cleaning: bool) {
        if is_cleaning {
            self.set_cleaning(frame, Cause::Cleaned);
        } else {
            self.end_cleaning(frame);
        }
    }

    fn end_cleaning(&mut self, frame: FrameId) {
        let entry = &mut self.table[frame.index()];
        self.cleaning -= u32::from(entry.cleaning().is_some());
        entry.set_cleaning(None);
    }

    #[inline]
    fn set_state(&mut self, frame: FrameId, state: State) {
        let entry = &mut self.table[frame.index()];
        let before = entry.state();
        if before != state {
            entry.set_state(state);
            self.counts[before as usize] -= 1;
            self.counts[state as usize] += 1;
        }
        self.note_may_leave(frame);
    }

    #[inline]
    fn note_may_leave(&mut self, frame: FrameId) {
        let entry = self.table[frame.index()];
        let may_leave = entry.state() == State::Resident && entry.wires == 0;
        self.may_leave.set(frame.index(), may_leave);
    }

    fn link(&mut self, frame: FrameId) {
        let owner = self.held[frame.index()].owner.0 as usize;
        if owner >= self.owned.len() {
            self.owned.resize(owner + 1, 0);
        }
        self.owned[owner] += 1;
        self.held[frame.index()].older = self.newest;
        self.held[frame.index()].newer = NONE;
        match self.newest {
            NONE => self.oldest = frame.0,
            newest => self.held[newest as usize].newer = frame.0,
        }
        self.newest = frame.0;
    }

    fn unlink(&mut self, frame: FrameId) {
        let owner = self.held[frame.index()].owner;
        self.owned[owner.0 as usize] -= 1;
        let Held { newer, older, .. } = self.held[frame.index()];
        match older {
            NONE => self.oldest = newer,
            older => self.held[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.held[newer as usize].older = older,
        }
        self.held[frame.index()].set_ticket(Ticket(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_an_entry_keeps_its_value_beside_the_others() {
        let mut entry = Frame::BLANK;
        entry.wires = u16::MAX;
        for state in State::ALL {
            entry.set_state(state);
            entry.set(Mark::Wanted, true);
            for fate in Fate::ALL {
                entry.set_fate(fate);
                entry.set(Mark::External, false);
                for back in Cause::ALL.map(Some).into_iter().chain([None]) {
                    entry.set_cleaning(back);
                    let found = (entry.state(), entry.fate(), entry.cleaning(), entry.wires);
                    assert_eq!(found, (state, fate, back, u16::MAX));
                    assert!(entry.has(Mark::Wanted) && !entry.has(Mark::External));
                }
            }
        }
    }
}
