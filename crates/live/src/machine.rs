//! The translation hardware of a live process: pages move between the program and the pool.
//!
//! A frame is a slot of the [`Pool`]. While a page is mapped it stands at its address in the
//! program and its slot is a hole; while it is not, it lies in the slot. `UFFDIO_MOVE` carries it
//! either way, and [`settle`](Machine::settle) makes one call of each run of pages whose addresses
//! and slots both follow each other.
//!
//! Two userfaultfds are needed. The *program's* reports faults and changes. Its ranges and the
//! pool are registered with it, and pages move either way through it: while a change's message
//! is on its way the kernel refuses all of that, since something else may stand by now where a
//! page is believed to be. To drop pages of the pool would leave a message that only the engine
//! can read; so they are moved to the *tip*, which has a userfaultfd without messages.
//!
//! # Invariants
//! 1. A mapped or leaving frame's slot is a hole, and its page stands at `at` or was taken away.
//! 2. `entering`, `leaving` and `deferred` hold exactly the frames in that [`Standing`], once.
//! 3. A slot waiting in `drops` is a hole for everybody; it is emptied before it is used again.
//! 4. The page in a held slot is not moved, dropped or written: a transfer is at work on it.
//!
//! There are no reference bits: see [`take_referenced`](PageBits::take_referenced). There are no
//! write protections either: a mapping allows what the program's own mapping allows.
//!
//! [`store`](crate::store) fills and saves slots; [`moves`] carries out what is queued here,
//! and [`registration`] says of which ranges the missing pages are the engine's business.

mod closed;
mod moves;
mod registration;
mod slot;
mod sums;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

use tidemark_core::collections::column::Column;
use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::seams::machine::{Machine, Modification, PageBits, Rights, Setback};

use crate::hand::Hand;
use crate::ranges::Ranges;
use crate::sparse::Sparse;
use crate::sys::memory::Mapping;
use crate::sys::pagemap::Pagemap;
use crate::sys::pool::Pool;
use crate::sys::uffd::{Faults, Features, Mode, OpenError, Progress, Stop, Uffd};
use crate::sys::{Errno, PAGE, reserve};
use slot::{Contents, NOWHERE, Saved, Slot, Standing};

/// The XXH3-128 sum of a page of zeros.
pub const ZERO_SUM: u128 = xxhash_rust::const_xxh3::xxh3_128(&[0; PAGE]);

/// The number of pages dropped in one go.
const TIP_PAGES: usize = 64;
/// The longest time a parent's engine may take to close what it was sent for a forked child.
const RELEASE_NS_MAX: u64 = 10_000_000_000;
/// The interval at which the child looks.
const RELEASE_PAUSE_NS: u64 = 50_000;

/// The reason why the machine can't be had. The caller makes the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// There is no userfaultfd, or it can't move pages.
    Uffd(OpenError),
    /// The pool can't be mapped or registered.
    Pool {
        /// The number of frames asked for.
        frames: u32,
        /// The kernel's error.
        error: Errno,
    },
    /// The list of this process's pages can't be opened.
    Pages(Errno),
}

/// The state found at an address that the machine believes mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// The page is there; waiting threads have been woken.
    Present,
    /// The page had been removed. A page of zeros is mapped there now, which is not counted.
    Refilled,
    /// The address space is changing: read the messages and ask again.
    Changing,
    /// Nothing registered is there.
    Unknown,
}

/// The counts of the machine's work so far, in pages unless the name says calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Moved from the pool into the program.
    pub moved_in: u64,
    /// Moved from the program into the pool.
    pub moved_out: u64,
    /// Filled with zeros at the program's address.
    pub zero_filled: u64,
    /// Copied in, where the mapping refuses moves.
    pub copied_in: u64,
    /// Calls of the kernel for all of these.
    pub move_calls: u64,
    /// Could not be moved out for now.
    pub busy: u64,
    /// Found taken away.
    pub gone: u64,
    /// Moved by the kernel without a word.
    pub unsaid: u64,
    /// Left to the program, in mappings that pages can't be moved out of.
    pub disowned: u64,
    /// Left in the pool though nothing needs them: the kernel holds them.
    pub kept: u64,
    /// Enters put off because the address space was changing or a page was pinned.
    pub deferred: u64,
}

/// The machine of one process.
pub struct LiveMachine {
    program: Uffd,
    /// A page of ours that is registered and present, to ask the kernel about: see
    /// [`LiveMachine::is_changing`]. Dropped after `program`, which would have to be told of it.
    witness: Mapping,
    tip_uffd: Uffd,
    tip: Mapping,
    pages: Pagemap,
    pool: Pool,
    slots: Column<Slot>,
    /// For each frame the sum of what the page's pager holds, or of what was last asked about;
    /// [`ZERO_SUM`] where none is kept. Where pages are compressed hardly any has one.
    sums: Sparse,
    entering: Vec<FrameId>,
    leaving: Vec<FrameId>,
    deferred: Vec<FrameId>,
    drops: Vec<FrameId>,
    setbacks: VecDeque<(FrameId, Setback)>,
    hand: Option<&'static Hand>,
    /// The ranges that the program may only read, in mappings that are writable.
    closed: Ranges,
    /// The ranges whose pages stay in place: system calls that go on need them.
    kept: Ranges,
    /// The faults of the program that are served.
    faults: Faults,
    /// True if pages that were in the program count as modified, whatever they hold.
    is_suspicious: bool,
    /// True if pages are known to be modified without a sum, where that can be seen.
    skips_sums: bool,
    /// The number of pages in a row that have been waited for in vain.
    waits_in_vain: u32,
    /// The number of pages in a row that were not dropped after all tries.
    drops_in_vain: u32,
    tally: Tally,
}

impl LiveMachine {
    /// Makes a machine of `frames` frames, with the program's userfaultfd in thread mode.
    pub fn new(frames: u32) -> Result<LiveMachine, StartError> {
        LiveMachine::with_features(frames, Features::THREAD_ID.and(Features::CHANGES))
    }

    /// Makes a machine whose userfaultfd for the program serves all faults, and has `features`
    /// besides moving.
    pub fn with_features(frames: u32, features: Features) -> Result<LiveMachine, StartError> {
        LiveMachine::serving(Faults::All, frames, features)
    }

    /// Makes a machine whose userfaultfd for the program serves these faults.
    pub fn serving(
        faults: Faults,
        frames: u32,
        features: Features,
    ) -> Result<LiveMachine, StartError> {
        let pool = Pool::new(frames).map_err(|error| StartError::Pool { frames, error })?;
        let wrong = |error| StartError::Pool { frames, error };
        let tip = Mapping::anonymous(TIP_PAGES * PAGE).map_err(wrong)?;
        let program = open_program(faults, features).map_err(StartError::Uffd)?;
        let tip_uffd = Uffd::open_for(faults, Features::MOVE).map_err(StartError::Uffd)?;
        let pages = Pagemap::open().map_err(StartError::Pages)?;
        let register = || {
            tip_uffd.register(tip.start(), tip.bytes(), Mode::MoveTarget)?;
            program.register(pool.start(), pool.bytes(), Mode::MoveTarget)?;
            Mapping::anonymous(PAGE).and_then(|page| station(&program, &pool, page))
        };
        let witness = register().map_err(wrong)?;
        Ok(LiveMachine {
            program,
            witness,
            tip_uffd,
            tip,
            pages,
            pool,
            slots: Column::new(Slot::BLANK, frames as usize),
            sums: Sparse::new(ZERO_SUM, frames),
            entering: Vec::with_capacity(64),
            leaving: Vec::with_capacity(64),
            deferred: Vec::with_capacity(64),
            drops: Vec::with_capacity(64),
            setbacks: VecDeque::with_capacity(64),
            hand: None,
            closed: Ranges::new(),
            kept: Ranges::new(),
            faults,
            is_suspicious: false,
            skips_sums: false,
            waits_in_vain: 0,
            drops_in_vain: 0,
            tally: Tally::default(),
        })
    }

    /// Works in step if `is_wanted`: who waits for a page is left waiting until
    /// [`wake`](Self::wake), and pages that were in the program count as modified, whatever they
    /// hold.
    pub fn keep_step_if(&mut self, is_wanted: bool) {
        if is_wanted {
            self.program.be_quiet();
            self.is_suspicious = true;
        }
    }

    /// Leaves the pages of these ranges in place, and of no others: those that are to leave stay as
    /// if the kernel held them.
    pub fn keep(&mut self, ranges: Ranges) {
        self.kept = ranges;
    }

    /// Takes no sums of pages that are surely modified, if their store needs none.
    pub fn skip_sums_if(&mut self, is_wanted: bool) {
        self.skips_sums = is_wanted;
    }

    /// Finds out what is at an address that faulted although the machine believes it mapped, and
    /// wakes the threads that wait there.
    pub fn probe(&mut self, at: VirtPage) -> Probe {
        match self.program.copy(address(at), self.pool.zeros(), PAGE) {
            Progress::All | Progress::Part(_) => Probe::Refilled,
            Progress::Nothing(Stop::Present) => {
                self.wake(at);
                Probe::Present
            }
            Progress::Nothing(Stop::Changing) => Probe::Changing,
            Progress::Nothing(_) => Probe::Unknown,
        }
    }

    /// Wakes the threads that wait for the page at `at`, so that they touch it again.
    pub fn wake(&self, at: VirtPage) {
        // Fails only where nothing is registered, and there no thread waits.
        let _ = self.program.wake(address(at), PAGE);
    }

    /// Puts pages under the slots of `frames`, to be filled by a transfer.
    pub fn prepare(&mut self, frames: &[FrameId]) -> Result<(), Errno> {
        self.empty_slots();
        let mut rest = frames;
        while let Some(first) = rest.first() {
            let holes = rest.iter().take_while(|frame| self.is_hole(**frame));
            let count = consecutive(holes.copied());
            if count > 0 {
                self.pool.back(*first, count)?;
            }
            rest = &rest[count.max(1) as usize..];
        }
        for frame in frames {
            let slot = self.writable(*frame);
            slot.set_contents(Contents::Bytes);
            slot.set_sum_current(false);
        }
        Ok(())
    }

    /// Keeps the pages of `frames` in their slots until [`release`](Self::release), because a
    /// transfer reads or writes them. A program that wants one meanwhile gets a copy.
    pub(crate) fn hold(&mut self, frames: &[FrameId]) {
        for frame in frames {
            let slot = self.unmapped(*frame);
            assert!(
                !slot.is_held(),
                "frame {} is in one transfer at most",
                frame.0
            );
            slot.set_held(true);
        }
    }

    /// Ends what [`hold`](Self::hold) began. Slots whose pages were wanted meanwhile are dropped.
    pub(crate) fn release(&mut self, frames: &[FrameId]) {
        for frame in frames {
            let slot = &mut self.slots[frame.index()];
            assert!(slot.is_held(), "frame {} is in a transfer", frame.0);
            slot.set_held(false);
            if slot.contents() == Contents::Hole {
                self.drops.push(*frame);
            }
        }
    }

    /// Unlocks the pool and all else of ours that the program has locked by a system call of its
    /// own, and empties the slots that this has filled: pages can't be moved between memory that is
    /// locked and memory that is not.
    pub fn unlock_own(&mut self) {
        if !reserve::unlock() {
            return;
        }
        let first = self.pool.start();
        let (mut at, end) = (first, first + self.pool.opened() as usize * PAGE);
        let mut runs = Vec::new();
        while at < end {
            let walked = self.pages.find_present(at, end, &mut runs);
            for address in runs
                .iter()
                .flat_map(|(from, to)| (*from..*to).step_by(PAGE))
            {
                let frame = FrameId(((address - first) / PAGE) as u32);
                // The slot of a held frame is emptied when it is released.
                if self.is_hole(frame) && !self.slots[frame.index()].is_held() {
                    self.drops.push(frame);
                }
            }
            at = walked.map_or(end, |walked| walked.max(at + PAGE));
        }
        self.empty_slots();
    }

    /// Tries the enters that were put off once more. Call it after the messages that were there
    /// have been handled, and after a transfer has ended.
    pub fn retry_deferred(&mut self) {
        if self.deferred.is_empty() {
            return;
        }
        for frame in self.deferred.drain(..) {
            self.slots[frame.index()].set_standing(Standing::Entering);
            self.entering.push(frame);
        }
        self.settle();
    }

    /// Leaves the frames out of forked children, which have no engine then.
    pub fn hide_from_children(&mut self) -> Result<(), Errno> {
        self.pool.hide_from_children()?;
        self.tip.hide_from_children()
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The pool, to write into slots.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The pages of this process.
    pub fn pages(&self) -> &Pagemap {
        &self.pages
    }

    /// The program's userfaultfd: to poll, and to read messages from.
    pub fn program(&self) -> &Uffd {
        &self.program
    }

    /// Returns true if enters are put off until the address space has stopped changing.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Returns true if the enter of `frame` was put off: it counts as mapped, and
    /// [`probe`](Self::probe) would put a page of zeros in its place.
    pub fn is_deferred(&self, frame: FrameId) -> bool {
        self.slots[frame.index()].standing() == Standing::Deferred
    }

    /// Returns true if `frame` is mapped, or about to be.
    pub fn is_mapped(&self, frame: FrameId) -> bool {
        self.slots[frame.index()].standing() != Standing::Unmapped
    }

    /// The address of the contents of `frame` in the pool, unless they stand in the program or are
    /// zeros.
    pub fn pooled(&self, frame: FrameId) -> Option<usize> {
        let slot = self.slots[frame.index()];
        match slot.contents() {
            Contents::Bytes => Some(self.pool.address(frame)),
            Contents::Hole | Contents::Zeros => None,
        }
    }

    /// The address at which `frame` is mapped, or about to be.
    pub fn mapped_at(&self, frame: FrameId) -> Option<VirtPage> {
        self.is_mapped(frame)
            .then(|| self.slots[frame.index()].at())
    }

    /// Has `hand` end the sharing of pages that a fork has left.
    pub fn set_hand(&mut self, hand: &'static Hand) {
        self.hand = Some(hand);
    }

    /// The engine's helper, if there is one.
    pub(crate) fn hand(&self) -> Option<&'static Hand> {
        self.hand
    }

    /// Returns true if `thread` is the engine's helper thread, its [`hand`](crate::hand).
    pub(crate) fn is_hand(&self, thread: u32) -> bool {
        self.hand.and_then(Hand::thread) == Some(thread)
    }

    /// The counts of its work so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Panics if the tables contradict each other.
    pub fn check(&self) {
        for (standing, list) in [
            (Standing::Entering, &self.entering),
            (Standing::Leaving, &self.leaving),
            (Standing::Deferred, &self.deferred),
        ] {
            let count = self
                .slots
                .iter()
                .filter(|slot| slot.standing() == standing)
                .count();
            assert_eq!(count, list.len(), "{standing:?}");
            assert!(
                list.iter()
                    .all(|frame| self.slots[frame.index()].standing() == standing)
            );
        }
        for slot in self.slots.iter() {
            let is_outside = matches!(slot.standing(), Standing::Mapped | Standing::Leaving);
            assert!(!is_outside || slot.contents() == Contents::Hole);
            assert_eq!(slot.standing() == Standing::Unmapped, slot.at() == NOWHERE);
        }
        assert!(self.drops.iter().all(|frame| self.is_hole(*frame)));
    }

    fn is_hole(&self, frame: FrameId) -> bool {
        self.slots[frame.index()].contents() == Contents::Hole
    }

    /// The entry of a frame that must not be mapped.
    fn unmapped(&mut self, frame: FrameId) -> &mut Slot {
        let slot = &mut self.slots[frame.index()];
        assert_eq!(
            slot.standing(),
            Standing::Unmapped,
            "frame {} at {:?}",
            frame.0,
            slot.at()
        );
        slot
    }

    /// The entry of a frame whose slot may be written to.
    fn writable(&mut self, frame: FrameId) -> &mut Slot {
        let slot = self.unmapped(frame);
        assert!(!slot.is_held(), "frame {} is in a transfer", frame.0);
        slot
    }

    /// Notes that a frame has no mapping any more.
    fn set_unmapped(&mut self, frame: FrameId) {
        let slot = &mut self.slots[frame.index()];
        slot.set_standing(Standing::Unmapped);
        slot.set_at(NOWHERE);
    }

    /// Takes back an enter that was not carried out. A thread that waits for it must touch it
    /// again.
    fn cancel_enter(&mut self, frame: FrameId) {
        let slot = self.slots[frame.index()];
        let list = match slot.standing() {
            Standing::Entering => &mut self.entering,
            Standing::Deferred => &mut self.deferred,
            Standing::Unmapped | Standing::Mapped | Standing::Leaving => return,
        };
        list.retain(|other| *other != frame);
        self.set_unmapped(frame);
        self.wake(slot.at());
    }

    /// Makes `frame`'s slot a hole; its page goes back to the host at the next settle.
    fn queue_drop(&mut self, frame: FrameId) {
        if !self.is_hole(frame) {
            self.slots[frame.index()].set_contents(Contents::Hole);
            self.drops.push(frame);
        }
    }
}

impl Machine for LiveMachine {
    fn enter(&mut self, _: SpaceId, at: VirtPage, frame: FrameId, rights: Rights) {
        assert_ne!(rights, Rights::None);
        if self.slots[frame.index()].standing() == Standing::Leaving {
            self.settle();
        }
        let slot = &mut self.slots[frame.index()];
        match slot.standing() {
            Standing::Unmapped => {
                slot.set_at(at);
                slot.set_standing(Standing::Entering);
                slot.set_entered(true);
                slot.set_tries(0);
                self.entering.push(frame);
            }
            Standing::Mapped => {
                assert_eq!(slot.at(), at, "frame {} has one mapping at most", frame.0);
                self.wake(at);
            }
            Standing::Entering | Standing::Deferred | Standing::Leaving => {
                assert_eq!(slot.at(), at, "frame {} has one mapping at most", frame.0);
            }
        }
    }

    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        if rights == Rights::Write {
            return;
        }
        // A queued enter is carried out first: a thread may wait for it.
        if self.slots[frame.index()].standing() == Standing::Entering {
            self.settle();
        }
        self.cancel_enter(frame);
        let slot = &mut self.slots[frame.index()];
        if slot.standing() == Standing::Mapped {
            slot.set_standing(Standing::Leaving);
            self.leaving.push(frame);
        }
    }

    fn leave(&mut self, _: SpaceId, at: VirtPage, frame: FrameId) {
        if self.mapped_at(frame) == Some(at) {
            self.restrict(frame, Rights::None);
        }
    }

    fn discard(&mut self, frame: FrameId) {
        self.cancel_enter(frame);
        self.sums.set(frame.index(), ZERO_SUM);
        let slot = &mut self.slots[frame.index()];
        slot.set_sum_current(false);
        slot.set_entered(false);
        match slot.standing() {
            Standing::Leaving => self.leaving.retain(|other| *other != frame),
            Standing::Unmapped | Standing::Mapped => {}
            Standing::Entering | Standing::Deferred => unreachable!("cancelled above"),
        }
        self.set_unmapped(frame);
    }

    fn zero(&mut self, frame: FrameId) {
        self.empty_slots();
        self.sums.set(frame.index(), ZERO_SUM);
        let slot = self.writable(frame);
        slot.set_sum_current(true);
        slot.set_saved(Saved::Unknown);
        slot.set_entered(false);
        if slot.contents() == Contents::Bytes {
            slot.set_contents(Contents::Zeros);
            self.pool.clear(frame);
        }
    }

    fn copy(&mut self, from: FrameId, to: FrameId) {
        let stood_at = self.mapped_at(from);
        if stood_at.is_some() {
            self.restrict(from, Rights::None);
            self.settle();
        }
        if self.prepare(&[to]).is_ok() {
            self.pool.copy(from, to);
        }
        self.sums.set(to.index(), ZERO_SUM);
        let slot = self.unmapped(to);
        slot.set_saved(Saved::Unknown);
        slot.set_entered(false);
        if let Some(at) = stood_at {
            self.enter(SpaceId(0), at, from, Rights::Write);
        }
    }

    fn adopt(&mut self, _: SpaceId, at: VirtPage, frame: FrameId) {
        self.writable(frame);
        self.queue_drop(frame);
        self.sums.set(frame.index(), ZERO_SUM);
        let slot = &mut self.slots[frame.index()];
        slot.set_at(at);
        slot.set_standing(Standing::Mapped);
        slot.set_entered(true);
        slot.set_sum_current(false);
        slot.set_saved(Saved::Unknown);
    }

    fn disown(&mut self, frame: FrameId) -> bool {
        let slot = &mut self.slots[frame.index()];
        let is_mapped = slot.standing() == Standing::Mapped;
        if is_mapped {
            slot.set_entered(false);
            self.set_unmapped(frame);
        }
        is_mapped
    }

    fn relocate(&mut self, _: SpaceId, from: VirtPage, to: VirtPage, frame: FrameId) {
        let slot = &mut self.slots[frame.index()];
        if slot.standing() != Standing::Unmapped {
            assert_eq!(slot.at(), from, "frame {} stands elsewhere", frame.0);
            slot.set_at(to);
            if matches!(slot.standing(), Standing::Entering | Standing::Deferred) {
                // A thread that waits there wants something else by now.
                self.wake(from);
            }
        }
    }

    fn retire(&mut self, frame: FrameId) {
        self.writable(frame).set_entered(false);
        self.queue_drop(frame);
    }

    fn settle(&mut self) {
        self.empty_slots();
        self.carry_out_leaves();
        self.carry_out_enters();
    }

    fn take_setback(&mut self) -> Option<(FrameId, Setback)> {
        self.setbacks.pop_front()
    }
}

impl PageBits for LiveMachine {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.slots[frame.index()].standing() {
            Standing::Unmapped | Standing::Leaving => false,
            // A thread waits for it: it is in use, and can't be unmapped before it is mapped.
            Standing::Deferred => true,
            Standing::Mapped | Standing::Entering => {
                self.restrict(frame, Rights::None);
                true
            }
        }
    }

    fn answers_arrival(&self) -> bool {
        true
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        self.take_modification(frame) != Modification::None
    }

    fn take_modification(&mut self, frame: FrameId) -> Modification {
        if self.slots[frame.index()].standing() == Standing::Leaving {
            self.settle();
        }
        if self.is_mapped(frame) {
            // It could not be unmapped: a setback tells why.
            return Modification::Possible;
        }
        let slot = &mut self.slots[frame.index()];
        let was_entered = slot.was_entered();
        slot.set_entered(false);
        match slot.saved() {
            Saved::Unknown => {}
            Saved::No => return Modification::Possible,
            Saved::Always => return Modification::None,
        }
        if self.skips_sums && self.sums.get(frame.index()) == ZERO_SUM && !self.is_zero(frame) {
            // A page that no pager holds takes no sum to find out about.
            self.forget_sum(frame);
            return Modification::Written;
        }
        let sum = self.sum(frame);
        let is_different = sum != self.sums.get(frame.index());
        self.sums.set(frame.index(), sum);
        self.slots[frame.index()].set_sum_current(true);
        match is_different {
            true => Modification::Written,
            false if self.is_suspicious && was_entered => Modification::Possible,
            false => Modification::None,
        }
    }

    fn may_be_modified(&self, frame: FrameId) -> bool {
        let slot = &self.slots[frame.index()];
        !self.is_suspicious || slot.was_entered() && slot.saved() != Saved::Always
    }
}

/// Registers `page` with `program` and fills it.
fn station(program: &Uffd, pool: &Pool, page: Mapping) -> Result<Mapping, Errno> {
    program.register(page.start(), PAGE, Mode::Missing)?;
    // It can't be present or changing: it is new, and known here alone.
    let _ = program.copy(page.start(), pool.zeros(), PAGE);
    Ok(page)
}

/// Opens a userfaultfd for the program. Where the host does not permit events of forks, it reports
/// the rest.
fn open_program(faults: Faults, features: Features) -> Result<Uffd, OpenError> {
    let features = features.and(Features::MOVE);
    match Uffd::open_for(faults, features) {
        Err(OpenError::Refused { error: Errno::PERM }) => {
            Uffd::open_for(faults, features.without(Features::FORKS))
        }
        other => other,
    }
}

/// The number of `frames` that follow each other, from the first on.
fn consecutive(mut frames: impl Iterator<Item = FrameId>) -> u32 {
    let Some(first) = frames.next() else { return 0 };
    let follows = |(count, frame): &(u32, FrameId)| frame.0 == first.0 + count;
    1 + (1..).zip(frames).take_while(follows).count() as u32
}

fn address(at: VirtPage) -> usize {
    at.0 as usize * PAGE
}
