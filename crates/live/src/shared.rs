//! The memory shared by the processes of one run: a table of processes with their counters, and the
//! swap slots with who owns them.
//!
//! It lies in a memfd that the supervisor makes and hands to every engine (see
//! [`control`](crate::control)). Engines publish into it as they go, so that nothing is lost when a
//! process is killed; the supervisor reads it, sets budgets, and gives back the slots of the dead.
//!
//! # Layout (bytes)
//! ```text
//! 0                       header: HEADER_BYTES
//! HEADER_BYTES            PROCESSES_MAX records of PROCESS_BYTES each
//! then                    one u16 a swap slot: by how many processes it is used; 0 is free
//! then                    for each process one bitmap of parts, and one of slots: which it uses
//! then                    for each process MAP_BYTES: the map of its memory drawn last
//! ```
//! A part is as many slots as a page has bits. Its bit is set when a slot of it is taken, and
//! stays: who looks for the slots of a process looks at the parts that have had one.
//!
//! # Invariants
//! 1. A slot's count is at least the number of bitmaps with its bit set. A process killed between
//!    the two steps of a change leaves the count too high, never too low: a slot may leak, but is
//!    never given to two owners that don't know of each other.
//! 2. A record's counters are written by its own engine alone; its way from [`State::Ended`] to
//!    [`State::Free`] belongs to the supervisor. Its budget is changed by
//!    [`Process::change_budget`] once its engine runs: by the supervisor, and by an engine that
//!    forks or takes unassigned frames.
//! 3. Unassigned frames are at most the total less what all processes have: see
//!    [`Shared::hold_unassigned`].
//! 4. A fork makes no frames: what a child may use was its parent's, or unassigned, until the
//!    moment at which it is in the child's record, and the child is born with no more: see
//!    [`Process::endow`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::*};

pub use self::buckets::{bucket_floor_ns, bucket_of, percentile_ns};
pub use self::histograms::{Cluster, Latency};
use self::map::MAP_BYTES;
pub use self::map::{CELLS_MAX, Cell, DrawnMap, Wanted};
pub use self::offer::{Loan, Offer};
pub(crate) use self::owned::Owned;
use self::owned::{ones, owned_words};
pub use tidemark_core::counters::Counter;

use crate::meters::{LOCK_COUNTS, LockCounts, Metered};
use crate::sys::shm::Shared as Area;

mod buckets;
mod forks;
mod histograms;
mod map;
mod offer;
mod orphans;
mod owned;
mod places;

/// The first word of the shared memory: "TIDEMARK" in ASCII, least byte first.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TIDEMARK");
/// The version of the layout. Engines refuse any other. The number of counters is a part of it:
/// each new one moves what lies behind.
pub const VERSION: u64 = 15 | (Counter::ALL.len() as u64) << 32;
/// The number of processes that can be known at one time.
pub const PROCESSES_MAX: usize = 1024;
/// The number of buckets a latency histogram has. See [`bucket_of`].
pub const LATENCY_BUCKETS: usize = 128;
/// The number of buckets a histogram of cluster sizes has: the last takes in 128 pages and more.
pub const CLUSTER_BUCKETS: usize = 8;

/// The number of buckets of the histogram of compressed sizes: one for pages of zeros, and others
/// of [`SIZE_BUCKET_BYTES`] each.
pub const SIZE_BUCKETS: usize = 18;
/// The width of one of them.
pub const SIZE_BUCKET_BYTES: usize = 256;

/// In the place of the number of unassigned frames, while they are divided.
const HELD: u64 = u64::MAX;

const HEADER_BYTES: usize = 4096;
/// Whole cache lines. The records together are whole pages.
const PROCESS_BYTES: usize = 4096 + 512;
const COUNTERS_AT: usize = Field::Name as usize + NAME_WORDS;
const LATENCIES_AT: usize = COUNTERS_AT + places::COUNTERS;
const CLUSTERS_AT: usize = LATENCIES_AT + Latency::ALL.len() * LATENCY_BUCKETS;
const SIZES_AT: usize = CLUSTERS_AT + 2 * CLUSTER_BUCKETS;
const LOCKS_AT: usize = SIZES_AT + SIZE_BUCKETS;
const NAME_WORDS: usize = 2;
const _: () = assert!((LOCKS_AT + Metered::ALL.len() * LOCK_COUNTS) * 8 <= PROCESS_BYTES);

/// The fields of the header, by word.
#[derive(Clone, Copy)]
enum Header {
    Magic,
    Version,
    SwapSlots,
    SlotsUsed,
    FramesResident,
    FramesPeak,
    FramesTotal,
    /// One more than the number; zero if there is none.
    DiskProcessor,
    /// Frames that no process has, and that an engine may take; [`HELD`] while they are divided.
    Unassigned,
    /// The number of records that were ever claimed: those below.
    RecordsOpened,
    /// The most that `FramesTotal` can be.
    FramesMax,
}

/// The fields of a process record before its counters, by word.
#[derive(Clone, Copy)]
enum Field {
    State,
    Pid,
    ParentPid,
    Budget,
    StartNs,
    EndNs,
    Ending,
    Asked,
    /// One more than the processor that the process's threads were confined to last.
    Confined,
    /// The processors that confined threads may use otherwise, a bit each.
    ConfinedFrom,
    /// One while the process is to be out of memory, and its program to wait.
    Suspended,
    /// The frames that it needs when it goes on, as far as that is known.
    Needed,
    /// The map that is wanted of it: see [`Wanted`].
    MapWanted,
    /// See [`Process::note_served_at_fork`].
    ServedAtFork,
    /// See [`Offer`].
    Userfaultfd,
    Name,
}

/// The stage of a process record in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Without a process.
    Free,
    /// Claimed, for a process that has not said hello yet.
    Reserved,
    /// Its engine runs.
    Running,
    /// Its process is gone; its counters are final. The supervisor reads them, then calls
    /// [`Shared::release`].
    Ended,
}

/// The way a managed process came to its end, as far as its engine knew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The engine did not say: the process exited, was killed, or called exec.
    Unsaid,
    /// A page could not be read back.
    FetchFailed,
    /// The swap store is full and nothing more could leave.
    StoreFull,
    /// The engine met something it can't go on with.
    EngineFailed,
    /// The program's changes of a mapped file could not be written there.
    FileLost,
}

/// The place of a process in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProcessIndex(pub u32);

/// The shared memory of one run.
pub struct Shared {
    memory: Area,
    slots: usize,
    /// A bit for each process whose bitmap of slots this process has used.
    reached: [AtomicU64; PROCESSES_MAX / 64],
}

impl Shared {
    /// Makes the shared memory for a swap store of `swap_slots` pages, and a tree of processes
    /// that may use `frames_total` frames together.
    pub fn create(swap_slots: u32, frames_total: u64) -> io::Result<Shared> {
        let slots = swap_slots as usize;
        let memory = Area::create("tidemark", bytes_for(slots))?;
        memory.reach(0, ownership_at(slots))?;
        let shared = Shared::new(memory, slots);
        shared.header(Header::Version).store(VERSION, Relaxed);
        shared
            .header(Header::SwapSlots)
            .store(u64::from(swap_slots), Relaxed);
        shared
            .header(Header::FramesTotal)
            .store(frames_total, Relaxed);
        shared
            .header(Header::FramesMax)
            .store(frames_total, Relaxed);
        shared.header(Header::Magic).store(MAGIC, Release);
        Ok(shared)
    }

    /// Maps shared memory that another process made.
    pub fn open(file: OwnedFd) -> io::Result<Shared> {
        let memory = Area::open(file)?;
        let refuse = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if memory.bytes() < HEADER_BYTES {
            return refuse("the shared memory is too short");
        }
        memory.reach(0, HEADER_BYTES)?;
        let mut shared = Shared::new(memory, 0);
        if shared.header(Header::Magic).load(Acquire) != MAGIC {
            return refuse("the shared memory is not Tidemark's");
        }
        if shared.header(Header::Version).load(Relaxed) != VERSION {
            return refuse("the shared memory is of another version");
        }
        shared.slots = shared.header(Header::SwapSlots).load(Relaxed) as usize;
        if shared.slots > u32::MAX as usize || bytes_for(shared.slots) != shared.memory.bytes() {
            return refuse("the shared memory's length doesn't fit its slots");
        }
        shared.memory.reach(0, ownership_at(shared.slots))?;
        Ok(shared)
    }

    fn new(memory: Area, slots: usize) -> Shared {
        let reached = [const { AtomicU64::new(0) }; PROCESSES_MAX / 64];
        Shared {
            memory,
            slots,
            reached,
        }
    }

    /// Claims a free record, in [`State::Reserved`] and zeroed; `None` if all are taken.
    pub fn claim(&self) -> Option<ProcessIndex> {
        (0..PROCESSES_MAX as u32).map(ProcessIndex).find(|&index| {
            let words = self.record(index);
            let is_mine = words[Field::State as usize]
                .compare_exchange(State::Free as u64, State::Reserved as u64, AcqRel, Relaxed)
                .is_ok();
            if is_mine {
                words.iter().skip(1).for_each(|word| word.store(0, Relaxed));
                let opened = u64::from(index.0) + 1;
                self.header(Header::RecordsOpened).fetch_max(opened, SeqCst);
            }
            is_mine
        })
    }

    /// Gives back every slot that a dead process owned, and frees its record.
    ///
    /// - Needs: the process is gone, and it is not released elsewhere at the same time.
    pub fn release(&self, index: ProcessIndex) {
        let refs = self.slot_refs();
        let owned = self.owned(index);
        for word in owned.words_used() {
            for bit in ones(owned.words[word].swap(0, AcqRel)) {
                self.drop_ref(&refs[word * 64 + bit]);
            }
        }
        owned.parts.iter().for_each(|part| part.store(0, Release));
        let process = self.process(index);
        let resident = process.counter(Counter::FramesResident).swap(0, Relaxed);
        self.header(Header::FramesResident)
            .fetch_sub(resident, Relaxed);
        process.set_state(State::Free);
    }

    /// The range at which it is mapped: its first address, and the one just past it.
    pub fn range(&self) -> (usize, usize) {
        self.memory.range()
    }

    /// The record of one process.
    pub fn process(&self, index: ProcessIndex) -> Process<'_> {
        Process {
            words: self.record(index),
            shared: self,
        }
    }

    /// Every record that is not free, in the order of the table.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessIndex, Process<'_>)> {
        let opened = self.header(Header::RecordsOpened).load(SeqCst);
        (0..opened.min(PROCESSES_MAX as u64) as u32)
            .map(|index| (ProcessIndex(index), self.process(ProcessIndex(index))))
            .filter(|(_, process)| process.state() != State::Free)
    }

    /// The size of the swap store in slots.
    pub fn swap_slots(&self) -> u32 {
        self.slots as u32
    }

    /// The number of slots in use, by all processes.
    pub fn slots_used(&self) -> u64 {
        self.header(Header::SlotsUsed).load(Relaxed)
    }

    /// The number of slots in use by one process, those of pages that are in memory as well
    /// included. Supervisor only.
    pub fn slots_of(&self, index: ProcessIndex) -> u64 {
        let owned = self.owned(index);
        let bits = |word: usize| u64::from(owned.words[word].load(Relaxed).count_ones());
        owned.words_used().map(bits).sum()
    }

    /// The number of frames that all processes together may use.
    pub fn frames_total(&self) -> u64 {
        self.header(Header::FramesTotal).load(Relaxed)
    }

    /// Changes the number of frames that all processes together may use, within
    /// [`frames_max`](Self::frames_max). Supervisor only, which then divides them anew.
    pub fn set_frames_total(&self, frames: u64) {
        self.header(Header::FramesTotal).store(frames, Relaxed);
    }

    /// The most frames that all processes together can ever use: the size of their pools.
    pub fn frames_max(&self) -> u64 {
        self.header(Header::FramesMax).load(Relaxed)
    }

    /// Sets that, before any process has been answered. Supervisor only.
    pub fn set_frames_max(&self, frames: u64) {
        self.header(Header::FramesMax).store(frames, Relaxed);
    }

    /// Tells every engine which processor hears from the disk of the swap store. `None` if none
    /// does, or many do: the same as saying nothing.
    pub fn set_disk_processor(&self, processor: Option<u32>) {
        let word = processor.map_or(0, |processor| u64::from(processor) + 1);
        self.header(Header::DiskProcessor).store(word, Relaxed);
    }

    /// The processor that hears from the disk of the swap store.
    pub fn disk_processor(&self) -> Option<u32> {
        let word = self.header(Header::DiskProcessor).load(Relaxed);
        u32::try_from(word.checked_sub(1)?).ok()
    }

    /// The number of frames that all processes together use now.
    pub fn frames_resident(&self) -> u64 {
        self.header(Header::FramesResident).load(Relaxed)
    }

    /// The most frames that were ever in use together.
    pub fn frames_peak(&self) -> u64 {
        self.header(Header::FramesPeak).load(Relaxed)
    }

    fn header(&self, field: Header) -> &AtomicU64 {
        self.memory.at(field as usize * 8)
    }

    fn record(&self, index: ProcessIndex) -> &[AtomicU64] {
        assert!((index.0 as usize) < PROCESSES_MAX);
        let at = HEADER_BYTES + index.0 as usize * PROCESS_BYTES;
        self.memory.slice(at, PROCESS_BYTES / 8)
    }

    /// By how many processes each slot is used.
    pub(crate) fn slot_refs(&self) -> &[AtomicU16] {
        self.memory
            .slice(HEADER_BYTES + PROCESSES_MAX * PROCESS_BYTES, self.slots)
    }

    /// The slots that a process uses, one bit each.
    pub(crate) fn owned(&self, index: ProcessIndex) -> Owned<'_> {
        let (parts, words) = owned_words(self.slots);
        let at = ownership_at(self.slots) + index.0 as usize * (parts + words) * 8;
        let (word, bit) = (index.0 as usize / 64, 1 << (index.0 % 64));
        if self.reached[word].load(Relaxed) & bit == 0 {
            let reached = self.memory.reach(at, (parts + words) * 8);
            reached.expect("the host lets shared memory be used");
            self.reached[word].fetch_or(bit, Relaxed);
        }
        Owned {
            parts: self.memory.slice(at, parts),
            words: self.memory.slice(at + parts * 8, words),
        }
    }

    /// Keeps engines from taking unassigned frames, and returns their number, to be divided. Until
    /// [`release_unassigned`](Self::release_unassigned) sets the rest. Supervisor only.
    ///
    /// An engine that takes some [says so](Process::take_unassigned) first: what is read of budgets
    /// after this has all that was taken before.
    pub fn hold_unassigned(&self) {
        self.header(Header::Unassigned).store(HELD, SeqCst);
    }

    /// Lets engines take `frames`, which no process has. Supervisor only.
    pub fn release_unassigned(&self, frames: u64) {
        self.header(Header::Unassigned).store(frames, SeqCst);
    }

    /// The number of frames that no process has and that an engine may take.
    pub fn unassigned(&self) -> u64 {
        match self.header(Header::Unassigned).load(SeqCst) {
            HELD => 0,
            frames => frames,
        }
    }

    /// Returns true while the supervisor [holds](Self::hold_unassigned) the unassigned frames:
    /// their number shows when they have been divided.
    pub fn is_dividing(&self) -> bool {
        self.header(Header::Unassigned).load(SeqCst) == HELD
    }

    fn take_unassigned(&self, frames: u32) -> bool {
        let take = |left: u64| left.checked_sub(frames.into()).filter(|_| left != HELD);
        self.header(Header::Unassigned)
            .fetch_update(SeqCst, SeqCst, take)
            .is_ok()
    }

    /// Takes the slot behind `count` if it is free.
    pub(crate) fn take_slot(&self, count: &AtomicU16) -> bool {
        let is_taken =
            count.load(Relaxed) == 0 && count.compare_exchange(0, 1, AcqRel, Relaxed).is_ok();
        if is_taken {
            self.header(Header::SlotsUsed).fetch_add(1, Relaxed);
        }
        is_taken
    }

    /// Removes one user from the count of a slot's users, and frees the slot at the last.
    pub(crate) fn drop_ref(&self, count: &AtomicU16) {
        let before = count.fetch_sub(1, AcqRel);
        assert!(before > 0);
        if before == 1 {
            self.header(Header::SlotsUsed).fetch_sub(1, Relaxed);
        }
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.fd().expect("the descriptor is kept")
    }
}

/// One process's record.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    words: &'a [AtomicU64],
    shared: &'a Shared,
}

impl<'a> Process<'a> {
    /// Writes down who runs here, and that it runs.
    pub fn start(&self, pid: u32, parent: u32, name: &str, now_ns: u64) {
        self.field(Field::Pid).store(u64::from(pid), Relaxed);
        self.set_parent(parent);
        let mut bytes = [0; NAME_WORDS * 8];
        let length = name.len().min(bytes.len());
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        for (word, chunk) in bytes.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(chunk.try_into().expect("chunks of 8 bytes"));
            self.words[Field::Name as usize + word].store(value, Relaxed);
        }
        self.field(Field::StartNs).store(now_ns, Relaxed);
        self.set_state(State::Running);
    }

    /// Writes down that the process is gone. Its counters stay readable.
    pub fn end(&self, now_ns: u64) {
        self.field(Field::EndNs).store(now_ns, Relaxed);
        self.set_state(State::Ended);
    }

    /// Writes down why the engine is about to end its process.
    pub fn set_ending(&self, ending: Ending) {
        self.field(Field::Ending).store(ending as u64, Relaxed);
    }

    /// Sets how many frames the process may use. Its engine follows within its next step; poke it
    /// through its control connection if it must be at once.
    pub fn set_budget(&self, frames: u32) {
        self.field(Field::Budget).store(u64::from(frames), Relaxed);
    }

    /// Sets how many frames the process may use if that is still `from`, and says whether it was.
    ///
    /// If that is less than before, [`understood`](Self::understood) says from then on whether the
    /// engine had taken over the more that it had: either it did, and has said so, or it will not.
    pub fn change_budget(&self, from: u32, to: u32) -> bool {
        self.field(Field::Budget)
            .compare_exchange(u64::from(from), u64::from(to), SeqCst, Relaxed)
            .is_ok()
    }

    /// Takes up to `most` unassigned frames for this process, but none if there are fewer than
    /// `least`, and returns how many. Engine only, for its own record or for that of a child that
    /// is about to be forked.
    pub fn take_unassigned(&self, least: u32, most: u32) -> u32 {
        let wanted = self.shared.unassigned().min(most.into()) as u32;
        if wanted < least.max(1) {
            return 0;
        }
        self.add_to_budget(i64::from(wanted));
        // The supervisor may know of them by now, and may have counted them off: in doubt the
        // unassigned number is too small for a moment, and never too large.
        if self.shared.take_unassigned(wanted) {
            return wanted;
        }
        self.add_to_budget(-i64::from(wanted));
        0
    }

    fn add_to_budget(&self, frames: i64) {
        loop {
            let before = self.budget();
            let after = (i64::from(before) + frames).max(0) as u32;
            if self.change_budget(before, after) {
                return;
            }
        }
    }

    /// The budget that an engine observes from now on: what the supervisor has set, within
    /// `limits`. Engine only.
    ///
    /// More than it has said is [said](Self::understood) first, and then looked at again: a
    /// supervisor that lowers it meanwhile either sees that, or is seen. Less is said by
    /// [`set_understood`](Self::set_understood) alone, once what is in use is known: until then all
    /// counts that was said since, though it may have followed a lower one meanwhile.
    pub fn follow_budget(&self, limits: (u32, u32)) -> u32 {
        loop {
            let budget = self.budget().clamp(limits.0, limits.1);
            if self.understood() >= budget.into() {
                return budget;
            }
            self.set_understood(budget);
        }
    }

    /// Says that the process is to leave memory and that its program is to wait, or that it may go
    /// on. Its engine follows within its next step. Supervisor only.
    pub fn set_suspended(&self, is_suspended: bool) {
        let word = u64::from(is_suspended);
        self.field(Field::Suspended).store(word, Release);
    }

    /// Says how many frames the process needs when it goes on. Supervisor only, before
    /// [`set_suspended`](Self::set_suspended).
    pub fn set_needed(&self, frames: u64) {
        self.field(Field::Needed).store(frames, Relaxed);
    }

    /// The number of frames that the process needs when it goes on.
    pub fn needed(&self) -> u64 {
        self.field(Field::Needed).load(Relaxed)
    }

    /// Returns true if the process is to be out of memory.
    pub fn is_suspended(&self) -> bool {
        self.field(Field::Suspended).load(Acquire) == 1
    }

    /// Acknowledges the budget that the engine uses. After its frames in use are published, if it
    /// is lower than the one before.
    pub fn set_understood(&self, frames: u32) {
        self.counter(Counter::FramesBudget)
            .store(u64::from(frames), SeqCst);
    }

    /// The budget that the engine observes. To be read before what it has in use, which is either
    /// not more, or is as it is.
    pub fn understood(&self) -> u64 {
        self.counter(Counter::FramesBudget).load(SeqCst)
    }

    /// Asks for `frames` in all, and returns true if the process had not asked before. Engine only;
    /// the supervisor must be poked then.
    pub fn ask(&self, frames: u64) -> bool {
        self.field(Field::Asked).swap(frames, AcqRel) == 0
    }

    /// Takes back that the process has asked: it was given something, or is to ask anew.
    pub fn forget_asking(&self) {
        self.field(Field::Asked).store(0, Release);
    }

    /// Publishes how many frames are in use, in the record and in the sum over all processes.
    pub fn set_resident(&self, frames: u64) {
        let before = self.counter(Counter::FramesResident).swap(frames, Relaxed);
        let sum = self.shared.header(Header::FramesResident);
        let now = if frames >= before {
            sum.fetch_add(frames - before, Relaxed) + (frames - before)
        } else {
            sum.fetch_sub(before - frames, Relaxed) - (before - frames)
        };
        if frames > before {
            self.shared
                .header(Header::FramesPeak)
                .fetch_max(now, Relaxed);
        }
    }

    /// Adds one to the latency bucket that `ns` falls in. Engine only.
    pub fn record_latency(&self, kind: Latency, ns: u64) {
        let bucket = &self.latency(kind)[bucket_of(ns)];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
    }

    /// Adds one to the bucket of requests of about `pages` pages. Engine only.
    pub fn record_cluster(&self, kind: Cluster, pages: u32) {
        let bucket = (pages.max(1).ilog2() as usize).min(CLUSTER_BUCKETS - 1);
        let bucket = &self.clusters(kind)[bucket];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
    }

    /// Adds to the number of pages whose compressed sizes are in a bucket. Engine only.
    pub fn record_sizes(&self, bucket: usize, pages: u32) {
        let bucket = &self.sizes()[bucket];
        bucket.store(bucket.load(Relaxed) + u64::from(pages), Relaxed);
    }

    /// Publishes the counts of a lock. Engine only.
    pub fn set_lock(&self, lock: Metered, counts: LockCounts) {
        let LockCounts {
            taken,
            contended,
            waited_ns,
            held_ns,
        } = counts;
        let counts = [taken, contended, waited_ns, held_ns];
        for (word, count) in self.lock_words(lock).iter().zip(counts) {
            word.store(count, Relaxed);
        }
    }

    /// The stage of the record in its life.
    pub fn state(&self) -> State {
        match self.field(Field::State).load(Acquire) {
            0 => State::Free,
            1 => State::Reserved,
            2 => State::Running,
            _ => State::Ended,
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.field(Field::Pid).load(Relaxed) as u32
    }

    /// To which processor the process's threads were confined last, if they ever were, and which
    /// they may use otherwise, a bit each.
    pub fn confined(&self) -> Option<(u32, u64)> {
        let number = self.field(Field::Confined).load(Acquire);
        let from = self.field(Field::ConfinedFrom).load(Relaxed);
        Some((number.checked_sub(1)? as u32, from))
    }

    /// Says to which processor threads are confined from now on. Engine only.
    pub fn set_confined(&self, cpu: u32, from: u64) {
        self.field(Field::ConfinedFrom).store(from, Relaxed);
        self.field(Field::Confined)
            .store(u64::from(cpu) + 1, Release);
    }

    /// The parent's process id.
    pub fn parent(&self) -> u32 {
        self.field(Field::ParentPid).load(Relaxed) as u32
    }

    /// The program's short name (as in `/proc/self/comm`).
    pub fn name(&self) -> String {
        let words = &self.words[Field::Name as usize..][..NAME_WORDS];
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        let length = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// The number of frames that the supervisor lets the process use.
    pub fn budget(&self) -> u32 {
        self.field(Field::Budget).load(SeqCst) as u32
    }

    /// The number of frames that the process asks for in all; zero if it does not.
    pub fn asked(&self) -> u64 {
        self.field(Field::Asked).load(Acquire)
    }

    /// The time at which the engine started, on the monotonic clock.
    pub fn start_ns(&self) -> u64 {
        self.field(Field::StartNs).load(Relaxed)
    }

    /// The time at which the process ended, on the monotonic clock; zero while it runs.
    pub fn end_ns(&self) -> u64 {
        self.field(Field::EndNs).load(Relaxed)
    }

    /// The reason for which the engine ended its process, if it did.
    pub fn ending(&self) -> Ending {
        match self.field(Field::Ending).load(Relaxed) {
            0 => Ending::Unsaid,
            1 => Ending::FetchFailed,
            2 => Ending::StoreFull,
            4 => Ending::FileLost,
            _ => Ending::EngineFailed,
        }
    }

    /// One of the counters.
    pub fn counter(&self, counter: Counter) -> &'a AtomicU64 {
        &self.words[COUNTERS_AT + places::place_of(counter)]
    }

    /// One of the latency histograms: how many fell into each bucket.
    pub fn latency(&self, kind: Latency) -> &'a [AtomicU64] {
        &self.words[LATENCIES_AT + kind as usize * LATENCY_BUCKETS..][..LATENCY_BUCKETS]
    }

    /// The number of requests of one page, of two or three, of four to seven, and so on.
    pub fn clusters(&self, kind: Cluster) -> &'a [AtomicU64] {
        &self.words[CLUSTERS_AT + kind as usize * CLUSTER_BUCKETS..][..CLUSTER_BUCKETS]
    }

    /// The number of pages of zeros that were stored, and of those whose compressed sizes are
    /// below [`SIZE_BUCKET_BYTES`], below twice that, and so on.
    pub fn sizes(&self) -> &'a [AtomicU64] {
        &self.words[SIZES_AT..][..SIZE_BUCKETS]
    }

    /// The counts of a lock: all zero, unless locks are measured.
    pub fn lock(&self, lock: Metered) -> LockCounts {
        let word = |at: usize| self.lock_words(lock)[at].load(Relaxed);
        LockCounts {
            taken: word(0),
            contended: word(1),
            waited_ns: word(2),
            held_ns: word(3),
        }
    }

    fn lock_words(&self, lock: Metered) -> &'a [AtomicU64] {
        &self.words[LOCKS_AT + lock as usize * LOCK_COUNTS..][..LOCK_COUNTS]
    }

    pub(crate) fn set_state(&self, state: State) {
        self.field(Field::State).store(state as u64, Release);
    }

    pub(crate) fn set_parent(&self, parent: u32) {
        self.field(Field::ParentPid)
            .store(u64::from(parent), Relaxed);
    }

    fn field(&self, field: Field) -> &'a AtomicU64 {
        &self.words[field as usize]
    }
}

fn ownership_at(slots: usize) -> usize {
    let refs_end = HEADER_BYTES + PROCESSES_MAX * PROCESS_BYTES + slots * 2;
    refs_end.next_multiple_of(4096)
}

fn maps_at(slots: usize) -> usize {
    let (parts, words) = owned_words(slots);
    (ownership_at(slots) + PROCESSES_MAX * (parts + words) * 8).next_multiple_of(4096)
}

/// The size of shared memory for `slots`.
pub fn bytes_for(slots: usize) -> usize {
    maps_at(slots) + PROCESSES_MAX * MAP_BYTES
}

#[cfg(test)]
mod tests;
