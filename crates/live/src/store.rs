//! The swap store: a file of slots, read and written straight from the frame pool, or
//! by way of [bounce buffers](bounces).
//!
//! The sum of every slot is kept in memory. It is recorded when a page is stored and checked when
//! the page comes back: a flipped bit is an error, never silent data. A page of zeros is only
//! recorded; it is neither written nor read.
//!
//! # Invariants
//! 1. Frames in a transfer are held in the machine until its reply is made.
//! 2. A transfer is cut into parts where pages of zeros interrupt it. `parts_left` counts those
//!    that wait or are under way; the last one to end makes the reply.
//! 3. At most [`UNDER_WAY_MAX`] parts are under way, so that completions always find room.

mod bounces;
mod carrier;
mod cipher;
pub mod compressed;
mod encrypting;
pub mod faults;
pub mod file;
pub mod files;
mod now;
pub mod pagers;
mod segments;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use tidemark_core::compressed::log::{Found, Room, SegmentId};
use tidemark_core::id::{FrameId, PAGE_BYTES, PagerId, SlotId, Ticket};
use tidemark_core::seams::machine::Machine;
use tidemark_core::seams::pager::{Direction, Outcome, Reply};
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;

use self::bounces::Bounces;
use self::carrier::{Carrier, Left};
pub use self::carrier::{Means, UNDER_WAY_MAX};
use self::cipher::Cipher;
use self::compressed::{Compressed, Put, Waiter};
use self::faults::{FLIPPED, FaultPlan, Injected};
use self::files::Files;
use self::pagers::{Calls, Contents};
use crate::machine::{LiveMachine, ZERO_SUM};
use crate::sparse::Sparse;
use crate::sys::pool::TRANSFER_MAX;
use crate::sys::ring::{Completion, Wait, Watch};
use crate::sys::{Errno, PAGE, socket};

/// To how many other files one can listen while waiting for the store.
pub const LISTENED_MAX: usize = 3;
/// The number of times that a part is tried again that the kernel refuses for now.
const TRIES_MAX: u8 = 11;
/// The pause before the first of these tries. It doubles with each: they take two seconds together.
const TRY_PAUSE: Duration = Duration::from_millis(1);
/// The time for which the kernel may refuse to be asked for anything.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// The tags of files that are listened to begin here, beyond those of all parts.
const LISTENED_TAG: u64 = u64::MAX - LISTENED_MAX as u64;

/// The reason for which a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The file answered this.
    File(Errno),
    /// The file ended in the middle of a slot.
    Short,
    /// The slot's contents are not what was stored.
    Differs,
    /// There was no memory to read into.
    Memory(Errno),
    /// Compressed memory is full, and there is no file.
    Full,
}

/// A failed transfer, for the message about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The transfer.
    pub ticket: Ticket,
    /// Fetch or store.
    pub direction: Direction,
    /// The first slot concerned, or page of a file. Its place there is [`offset`](Self::offset).
    pub slot: SlotId,
    /// The file of the program that was read, if it was not the swap file.
    pub file: Option<PagerId>,
    /// The cause.
    pub cause: Cause,
}

impl Failure {
    /// The offset at which the slot begins in the file, in bytes.
    pub fn offset(self) -> u64 {
        offset_of(self.slot)
    }
}

/// The counts of the store's work so far, in pages unless the name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Read from the file.
    pub read: u64,
    /// Written to the file.
    pub written: u64,
    /// Fetched without reading: zeros.
    pub zeros_fetched: u64,
    /// Stored without writing: zeros.
    pub zeros_stored: u64,
    /// Calls that read, however many pages each.
    pub read_calls: u64,
    /// Calls that write.
    pub write_calls: u64,
    /// The work of compressed memory.
    pub compressed: compressed::Tally,
}

/// The swap store of one process.
pub struct SwapStore {
    carrier: Carrier,
    file: Contents,
    sums: Sparse,
    transfers: Vec<Transfer>,
    unused: Vec<u32>,
    /// Parts that wait for room. Fetches go first: a program may be waiting.
    fetches: VecDeque<Part>,
    stores: VecDeque<Part>,
    /// Parts that the kernel has refused for now, and when they are tried again.
    refused: Vec<(Part, Instant)>,
    /// The time since which the kernel has taken none of the requests that wait to be submitted.
    stalled_since: Option<Instant>,
    under_way: u32,
    left: Left,
    /// The files whose completions are still to come.
    listened: [Option<RawFd>; LISTENED_MAX],
    /// A bit for each whose completion has come.
    heard: u32,
    replies: VecDeque<Reply>,
    failures: VecDeque<Failure>,
    faults: FaultPlan,
    tally: Tally,
    files: Files,
    calls: Calls,
    /// Compressed memory, if pages are stored there first.
    compressed: Option<Compressed>,
    /// The cipher of what is written to the swap file, if it is encrypted.
    cipher: Option<Cipher>,
    bounces: Bounces,
    /// Segments can't be written: what does not fit in memory goes its own way.
    is_segment_refused: bool,
}

#[derive(Clone, Copy)]
struct Transfer {
    ticket: Ticket,
    direction: Direction,
    first: SlotId,
    frames: [FrameId; TRANSFER_MAX],
    pages: u8,
    parts_left: u8,
    failure: Option<(SlotId, Cause)>,
    work: Work,
    /// A bit for each page that is nowhere but in its frame now.
    moved: u64,
}

/// The subject of a transfer.
#[derive(Clone, Copy)]
enum Work {
    /// Of pages between their frames and their slots: the core waits for the reply.
    Pages,
    /// Of a segment of compressed pages, as a whole.
    Segment(SegmentId, Room),
    /// Of the blocks of one compressed page.
    Single(Waiter, Found, u8),
    /// Of pages of a file of the program: read, or written.
    File(PagerId),
}

/// Consecutive pages of a transfer.
#[derive(Clone, Copy)]
struct Part {
    transfer: u32,
    start: u8,
    pages: u8,
    /// The number of times it was refused.
    tries: u8,
}

impl SwapStore {
    /// Makes a store of `slots` slots in `file`, which must be used by the calling thread alone
    /// from now on.
    pub fn new(
        file: impl Into<Contents>,
        slots: u32,
        means: Means,
        faults: FaultPlan,
    ) -> Result<SwapStore, Errno> {
        Ok(SwapStore {
            carrier: Carrier::at_first(means)?,
            file: file.into(),
            sums: Sparse::new(0, slots),
            transfers: Vec::new(),
            unused: Vec::new(),
            fetches: VecDeque::with_capacity(64),
            stores: VecDeque::with_capacity(64),
            refused: Vec::new(),
            stalled_since: None,
            under_way: 0,
            left: Left::default(),
            listened: [None; LISTENED_MAX],
            heard: 0,
            replies: VecDeque::with_capacity(64),
            failures: VecDeque::new(),
            faults,
            tally: Tally::default(),
            files: Files::default(),
            calls: Calls::default(),
            compressed: None,
            cipher: None,
            bounces: Bounces::new(),
            is_segment_refused: false,
        })
    }

    /// Goes on in a forked child, with its own descriptor of the same file. Nothing may be under
    /// way; the sums of all slots are kept.
    pub fn reopen(&mut self, file: OwnedFd, means: Means) -> Result<(), Errno> {
        assert!(self.is_idle(), "a fork waits for transfers");
        let carrier = Carrier::at_first(means)?;
        // These are the parent's, and their numbers may be files of the program by now.
        std::mem::forget(std::mem::replace(&mut self.carrier, carrier));
        std::mem::forget(std::mem::replace(&mut self.file, file.into()));
        self.listened = [None; LISTENED_MAX];
        self.heard = 0;
        Ok(())
    }

    /// Starts a transfer between `frames` and as many slots from `first` on. It goes on its way
    /// with the next [`submit`](Self::submit); the reply comes through
    /// [`next_reply`](Self::next_reply).
    pub fn start(
        &mut self,
        ticket: Ticket,
        direction: Direction,
        first: SlotId,
        frames: &[FrameId],
        machine: &mut LiveMachine,
    ) {
        assert!(!frames.is_empty() && frames.len() <= TRANSFER_MAX);
        assert!(first.0 as usize + frames.len() <= self.sums.len());
        let transfer = self.add_transfer(ticket, direction, first, frames);
        match direction {
            Direction::Fetch => self.start_fetch(transfer, first, frames, machine),
            Direction::Store => self.start_store(transfer, first, frames, machine),
        }
        machine.hold(frames);
        if self.transfers[transfer as usize].parts_left == 0 {
            self.finish(transfer, machine);
        }
    }

    /// Sends as much on its way as there is room for. What the kernel refuses for now goes with a
    /// later call; an error if it has refused everything for too long.
    pub fn submit(&mut self, machine: &LiveMachine) -> Result<(), Errno> {
        self.requeue_refused();
        self.send_calls(machine)?;
        let is_wanted = !self.fetches.is_empty() || !self.stores.is_empty();
        if is_wanted && matches!(self.carrier, Carrier::Absent) {
            // By now the C library can't be asked for threads.
            self.carrier = Carrier::new(Means::Alone)?;
        }
        let mut is_stalled = false;
        while self.under_way < UNDER_WAY_MAX && !is_stalled {
            let Some(part) = self.next_part() else { break };
            is_stalled = !self.send(part, machine)?;
            if is_stalled {
                self.queue_of(part).push_front(part);
            }
        }
        if let Carrier::Ring(ring) = &mut self.carrier {
            is_stalled = !ring.submit()?;
        }
        if !is_stalled {
            self.stalled_since = None;
            return Ok(());
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        match since.elapsed() < STALL_LIMIT {
            true => Ok(()),
            false => Err(Errno::AGAIN),
        }
    }

    /// Queues again what was refused, as far as it is time.
    fn requeue_refused(&mut self) {
        if self.refused.is_empty() {
            return;
        }
        let now = Instant::now();
        let due = self.refused.extract_if(.., |(_, due)| *due <= now);
        let parts: Vec<Part> = due.map(|(part, _)| part).collect();
        for part in parts {
            self.queue_of(part).push_back(part);
        }
    }

    fn queue_of(&mut self, part: Part) -> &mut VecDeque<Part> {
        if self.has_pager(part) {
            return self
                .calls
                .queue_of(self.transfers[part.transfer as usize].direction);
        }
        match self.transfers[part.transfer as usize].direction {
            Direction::Fetch => &mut self.fetches,
            Direction::Store => &mut self.stores,
        }
    }

    /// Takes in what has finished, makes replies, and sends more on its way.
    pub fn reap(&mut self, machine: &mut LiveMachine) -> Result<(), Errno> {
        while let Some(completion) = self.carrier.take_completion() {
            if completion.tag >= LISTENED_TAG {
                let place = (completion.tag - LISTENED_TAG) as usize;
                self.listened[place] = None;
                self.heard |= 1 << place;
                continue;
            }
            self.under_way -= 1;
            self.handle_completion(completion, machine);
        }
        self.reap_calls(machine);
        self.submit(machine)
    }

    /// The wait, for the thread that uses the store, until something has finished or one of `files`
    /// can be read. `None` where that takes polling: with threads, or an old kernel.
    pub fn wait_with(&mut self, files: [Option<RawFd>; LISTENED_MAX]) -> Option<Wait> {
        let can_hear = self.listen_to(files);
        match &self.carrier {
            Carrier::Ring(ring) if can_hear => ring.waiting(),
            Carrier::Ring(_) | Carrier::Workers(_) | Carrier::AtOnce(_) | Carrier::Absent => None,
        }
    }

    /// Makes a look at the store also report those of `files` that can be read, from the next
    /// [`submit`](Self::submit) or wait on. Returns whether it will.
    pub fn listen_to(&mut self, files: [Option<RawFd>; LISTENED_MAX]) -> bool {
        let Carrier::Ring(ring) = &mut self.carrier else {
            return false;
        };
        if ring.waiting().is_none() {
            return false;
        }
        for (place, file) in files.into_iter().enumerate() {
            if let Some(file) = file
                && self.listened[place] != Some(file)
            {
                if !ring.push_poll(file, LISTENED_TAG + place as u64) {
                    return false;
                }
                self.listened[place] = Some(file);
            }
        }
        true
    }

    /// Takes the set of files that could be read when [`reap`](Self::reap) was last called, since
    /// this was last asked: bit zero is the first's.
    pub fn take_heard(&mut self) -> u32 {
        std::mem::take(&mut self.heard)
    }

    /// Hands over the next reply.
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Hands all replies over to `vm`, whose pages are `machine`'s. Answers whether there were any.
    pub fn reply_to(&mut self, vm: &mut Vm, now: Time, machine: &mut LiveMachine) -> bool {
        let mut has_replied = false;
        while let Some(reply) = self.next_reply() {
            vm.handle_reply(now, machine, reply);
            has_replied = true;
        }
        has_replied
    }

    /// Hands over the next failure. Each failed reply has one.
    pub fn next_failure(&mut self) -> Option<Failure> {
        self.failures.pop_front()
    }

    /// The file that can be read when something has finished; nothing before the first transfer.
    pub fn finished(&self) -> Option<BorrowedFd<'_>> {
        match &self.carrier {
            Carrier::Ring(ring) => Some(ring.as_fd()),
            Carrier::Workers(workers) => Some(workers.as_fd()),
            Carrier::AtOnce(carrier) => Some(carrier.as_fd()),
            Carrier::Absent => None,
        }
    }

    /// Waits until a transfer has finished, at most for `limit_ns`. It may return early.
    pub fn wait(&self, limit_ns: u64) {
        match self.finished() {
            // Whatever the wait answers, who waits looks for itself.
            Some(file) => drop(socket::wait_readable(&[file], Some(limit_ns))),
            None => std::thread::sleep(Duration::from_nanos(limit_ns)),
        }
    }

    /// Returns true if nothing is waiting, under way or unanswered.
    pub fn is_idle(&self) -> bool {
        self.unused.len() == self.transfers.len() && self.replies.is_empty()
    }

    /// Returns true if nothing is waiting or under way: what was asked for is in its frames, or
    /// failed.
    pub fn is_still(&self) -> bool {
        self.unused.len() == self.transfers.len()
    }

    /// Lets any thread see whether something has finished; nothing where threads carry bytes.
    pub fn watch(&self) -> Option<Watch> {
        match &self.carrier {
            Carrier::Ring(ring) => Some(ring.watch()),
            Carrier::Workers(_) | Carrier::AtOnce(_) | Carrier::Absent => None,
        }
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.sums.len() as u32
    }

    /// The counts of its work so far.
    pub fn tally(&self) -> Tally {
        let compressed = self.compressed.as_ref();
        let compressed = compressed.map_or_else(compressed::Tally::default, Compressed::tally);
        Tally {
            compressed,
            ..self.tally
        }
    }

    fn add_transfer(
        &mut self,
        ticket: Ticket,
        direction: Direction,
        first: SlotId,
        frames: &[FrameId],
    ) -> u32 {
        let mut transfer = Transfer {
            ticket,
            direction,
            first,
            frames: [FrameId(0); TRANSFER_MAX],
            pages: frames.len() as u8,
            parts_left: 0,
            failure: None,
            work: Work::Pages,
            moved: 0,
        };
        transfer.frames[..frames.len()].copy_from_slice(frames);
        if let Some(index) = self.unused.pop() {
            self.transfers[index as usize] = transfer;
            return index;
        }
        self.transfers.push(transfer);
        self.transfers.len() as u32 - 1
    }

    fn start_fetch(
        &mut self,
        transfer: u32,
        first: SlotId,
        frames: &[FrameId],
        machine: &mut LiveMachine,
    ) {
        let is_stored = |it: &SwapStore, slot| !it.is_zero(SlotId(slot as u32));
        let runs = self.runs_of(first, frames.len(), is_stored);
        for (start, pages) in runs.collect::<Vec<_>>() {
            let wanted = &frames[start..start + pages];
            if let Err(error) = machine.prepare(wanted) {
                let slot = SlotId(first.0 + start as u32);
                self.transfers[transfer as usize].failure = Some((slot, Cause::Memory(error)));
                continue;
            }
            let from = SlotId(first.0 + start as u32);
            let runs = self.runs_of(from, pages, |it, slot| !it.is_compressed(slot));
            for (at, pages) in runs.collect::<Vec<_>>() {
                self.queue(transfer, start + at, pages);
                self.note_plain(SlotId(from.0 + at as u32), pages);
            }
            for page in start..start + pages {
                if self.is_compressed(first.0 as usize + page) {
                    self.fetch_compressed(transfer, page as u8, machine);
                }
            }
        }
        for (slot, frame) in (first.0 as usize..).zip(frames) {
            if self.sums.get(slot) == ZERO_SUM {
                machine.zero(*frame);
                self.tally.zeros_fetched += 1;
            }
        }
    }

    fn start_store(
        &mut self,
        transfer: u32,
        first: SlotId,
        frames: &[FrameId],
        machine: &mut LiveMachine,
    ) {
        for (slot, frame) in (first.0 as usize..).zip(frames) {
            match self.store_compressed(slot, *frame, machine) {
                Put::Kept | Put::Raw => continue,
                Put::Not => {}
                Put::NoRoom => {
                    let entry = &mut self.transfers[transfer as usize];
                    return entry.failure = Some((SlotId(slot as u32), Cause::Full));
                }
            }
            let sum = machine.sum(*frame);
            self.sums.set(slot, sum);
            machine.set_sum(*frame, sum);
            self.tally.zeros_stored += u64::from(sum == ZERO_SUM);
        }
        let runs = self.runs_of(first, frames.len(), SwapStore::is_plain);
        for (start, pages) in runs.collect::<Vec<_>>() {
            self.queue(transfer, start, pages);
        }
    }

    /// The runs of `pages` slots from `first` on, relative to that, of which all are `chosen`.
    fn runs_of<'a>(
        &'a self,
        first: SlotId,
        pages: usize,
        chosen: impl Fn(&SwapStore, usize) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let is_chosen = move |page: &usize| chosen(self, first.0 as usize + page);
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = (next..pages).find(&is_chosen)?;
            next = (start..pages)
                .find(|page| !is_chosen(page))
                .unwrap_or(pages);
            Some((start, next - start))
        })
    }

    fn queue(&mut self, transfer: u32, start: usize, pages: usize) {
        let entry = &mut self.transfers[transfer as usize];
        entry.parts_left += 1;
        let part = Part {
            transfer,
            start: start as u8,
            pages: pages as u8,
            tries: 0,
        };
        self.queue_of(part).push_back(part);
    }

    fn handle_completion(&mut self, completion: Completion, machine: &mut LiveMachine) {
        let part = Part::from_tag(completion.tag);
        let bounce = self.bounces.of(completion.tag);
        let home = self.home_of(&self.transfers[part.transfer as usize], part.start);
        let transfer = &mut self.transfers[part.transfer as usize];
        let mut result = completion.result;
        match (self.faults.next(transfer.direction), bounce, transfer.work) {
            (Injected::Nothing, ..) => {}
            (Injected::Error, ..) => result = Err(Errno::IO),
            (Injected::Refusal, ..) => result = Err(Errno::AGAIN),
            (Injected::Flip, Some(index), _) => {
                self.bounces.page_mut(index, 0)[PAGE / 3] ^= FLIPPED;
            }
            (Injected::Flip, None, Work::Pages | Work::File(_)) => {
                flip(machine, transfer.frames[part.start as usize]);
            }
            (Injected::Flip, None, Work::Segment(_, room)) => {
                let compressed = self.compressed.as_mut().expect("it has segments");
                compressed.flip_block(room, part.start as usize);
            }
            (Injected::Flip, None, Work::Single(_, found, place)) => {
                let compressed = self.compressed.as_mut().expect("the page is compressed");
                compressed.flip_single(found, place);
            }
        }
        transfer.parts_left -= 1;
        let direction = transfer.direction;
        let due = self.files.bytes_due(transfer.work, home, part.pages);
        match result {
            Ok(bytes) if bytes >= due => self.note_moved(part, (bounce, bytes), machine),
            Ok(bytes) if bytes >= PAGE => self.go_on(part, (bounce, bytes), machine),
            Err(error) if self.is_tried_again(part, error) => self.put_off(part),
            // What is wrong shows when the rest is tried.
            Ok(1..) if direction == Direction::Store && part.tries < TRIES_MAX => {
                self.put_off(part);
            }
            Ok(_) => self.note_failure(part, (home, Cause::Short)),
            Err(error) => self.note_failure(part, (home, Cause::File(error))),
        }
        self.bounces.release(completion.tag);
        if self.transfers[part.transfer as usize].parts_left == 0 {
            self.finish(part.transfer, machine);
        }
    }

    /// Notes what is wrong with a part, of which the last counts.
    fn note_failure(&mut self, part: Part, failure: (SlotId, Cause)) {
        self.transfers[part.transfer as usize].failure = Some(failure);
    }

    /// Notes that a part was moved: `moved` is its buffer, if it has one, and the bytes.
    fn note_moved(&mut self, part: Part, moved: (Option<usize>, usize), machine: &mut LiveMachine) {
        match self.transfers[part.transfer as usize].direction {
            Direction::Fetch => {
                self.take_in(part, moved, machine);
                self.tally.read += u64::from(part.pages);
            }
            Direction::Store => self.tally.written += u64::from(part.pages),
        }
    }

    /// Queues what is left of a part of which only the first pages were moved.
    fn go_on(
        &mut self,
        part: Part,
        (bounce, bytes): (Option<usize>, usize),
        machine: &mut LiveMachine,
    ) {
        let moved = (bytes / PAGE) as u8;
        let first = Part {
            pages: moved,
            ..part
        };
        self.note_moved(first, (bounce, bytes), machine);
        let (start, pages) = (part.start + moved, part.pages - moved);
        self.queue(part.transfer, start as usize, pages as usize);
    }

    /// Makes the reply of a transfer whose parts have all ended.
    fn finish(&mut self, index: u32, machine: &mut LiveMachine) {
        let mut transfer = self.transfers[index as usize];
        let failure = transfer.failure.map(|(_, cause)| cause);
        match transfer.work {
            Work::Pages | Work::File(_) => {}
            Work::Segment(segment, _) => {
                self.unused.push(index);
                return self.finish_segment((segment, transfer.direction), failure, machine);
            }
            Work::Single(waiter, found, place) => {
                self.unused.push(index);
                return self.finish_single((waiter, found, place), failure, machine);
            }
        }
        let frames = &transfer.frames[..transfer.pages as usize];
        machine.release(frames);
        let file = transfer.work.file();
        if let Some(file) = file {
            self.finish_file(file, &transfer, machine);
        } else if transfer.direction == Direction::Fetch && transfer.failure.is_none() {
            transfer.failure = self.verify(&transfer, machine);
        }
        if transfer.failure.is_some() && transfer.direction == Direction::Store {
            frames.iter().for_each(|frame| machine.forget_sum(*frame));
        }
        let outcome = match transfer.failure {
            None => Outcome::Done,
            Some((slot, cause)) => {
                let Transfer {
                    ticket, direction, ..
                } = transfer;
                self.failures.push_back(Failure {
                    ticket,
                    direction,
                    slot,
                    file,
                    cause,
                });
                Outcome::Failed
            }
        };
        self.replies.push_back(Reply {
            ticket: transfer.ticket,
            outcome,
        });
        self.unused.push(index);
    }

    /// Compares what came back with what was stored. What was compressed has been compared, and is
    /// nowhere else any more.
    fn verify(&self, transfer: &Transfer, machine: &mut LiveMachine) -> Option<(SlotId, Cause)> {
        let mut wrong = None;
        let frames = &transfer.frames[..transfer.pages as usize];
        for (page, frame) in (0..).zip(frames) {
            if transfer.moved >> page & 1 > 0 {
                machine.forget_sum(*frame);
                continue;
            }
            let slot = transfer.slot(page).0;
            let stored = self.sums.get(slot as usize);
            if machine.sum(*frame) != stored {
                wrong = wrong.or(Some((SlotId(slot), Cause::Differs)));
            } else {
                self.keep_sum(SlotId(slot), *frame, machine);
            }
        }
        wrong
    }
}

impl Transfer {
    fn slot(&self, page: u8) -> SlotId {
        SlotId(self.first.0 + u32::from(page))
    }
}

fn offset_of(slot: SlotId) -> u64 {
    u64::from(slot.0) * PAGE_BYTES
}

/// Turns one bit of a frame over, as a bad disk might.
fn flip(machine: &mut LiveMachine, frame: FrameId) {
    let mut page = [0; PAGE];
    machine.pool().read(frame, &mut page);
    page[PAGE / 3] ^= FLIPPED;
    machine.pool_mut().write(frame, &page);
}
