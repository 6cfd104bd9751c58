//! Compressed memory in front of the swap disk, as a live engine has it.
//!
//! The core's [tier](tidemark_core::compressed::tier) decides; here are no bytes, but the sizes to
//! which pages compress ([`PageSizes`]), and what the disk is to do. A page that is compressed in
//! memory is there at once, for the cost of decompressing it; others wait for the disk.
//!
//! # Invariants
//! 1. A transfer is answered when no part of it is left; each part is a request to the disk, or a
//!    page that waits for one of another transfer.
//! 2. A page that several have stays in the log when one takes it: each process of a live run has
//!    a log of its own.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use tidemark_core::compressed::log::{Found, Room, SegmentId};
use tidemark_core::compressed::tier::{Bytes, Tally, Tier, Way, blocks_of};
use tidemark_core::id::{FrameId, PAGE_BYTES, PageId, SlotId, Ticket};
use tidemark_core::seams::pager::{Direction, Outcome, Reply};
use tidemark_core::vm::Vm;

use super::sizes::PageSizes;
use super::tables::Tables;

/// Consecutive slots that the disk is to read or write for a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) transfer: u64,
    pub(super) direction: Direction,
    pub(super) first: SlotId,
    pub(super) pages: u32,
}

/// The work of processors since it was last taken, in pages.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Effort {
    /// Pages that were compressed, or tried.
    pub(super) compressed: u64,
    pub(super) decompressed: u64,
}

/// The compressed memory of one memory, and the transfers of its pages.
pub(super) struct Compressed {
    tier: Tier<Vec<u64>, Waiter>,
    sizes: Arc<PageSizes>,
    /// The slots whose pages are nothing but zeros.
    is_zero: Vec<bool>,
    /// The number of pages that were stored: each is another version of its page.
    stored: u64,
    transfers: BTreeMap<u64, Transfer>,
    transfers_made: u64,
    parts: VecDeque<Part>,
    replies: VecDeque<Reply>,
    effort: Effort,
}

struct Transfer {
    ticket: Ticket,
    direction: Direction,
    first: SlotId,
    frames: Vec<FrameId>,
    parts_left: u32,
    /// There was no room for a page of it.
    is_failed: bool,
    work: Work,
    /// The pages of it that are nowhere but in their frames now.
    moved: Vec<usize>,
}

/// The subject of a transfer.
#[derive(Clone, Copy)]
enum Work {
    /// Of pages between their frames and their slots: the core waits for the reply.
    Pages,
    /// Of a segment of compressed pages, as a whole.
    Segment(SegmentId),
    /// Of the blocks of one compressed page.
    Single(Waiter, Found, u8),
}

/// A page of a transfer that waits for another transfer.
#[derive(Clone, Copy)]
struct Waiter {
    transfer: u64,
    page: usize,
    slot: SlotId,
}

/// Bytes of which nothing but the sizes is known.
struct NoBytes;

impl Bytes for NoBytes {
    type Error = Infallible;

    fn open(&mut self, _room: Room) -> Result<(), Infallible> {
        Ok(())
    }

    fn copy(&mut self, _from: (Room, u32), _to: (Room, u32), _bytes: u32) {}

    fn close(&mut self, _room: Room) {}
}

impl Compressed {
    /// Empty compressed memory for pages of `slots` slots, in `pages` of memory.
    pub(super) fn new(sizes: Arc<PageSizes>, slots: u32, pages: u32) -> Compressed {
        let slots = slots as usize;
        Compressed {
            tier: Tier::new(vec![0; slots], pages),
            sizes,
            is_zero: vec![false; slots],
            stored: 0,
            transfers: BTreeMap::new(),
            transfers_made: 0,
            parts: VecDeque::new(),
            replies: VecDeque::new(),
            effort: Effort::default(),
        }
    }

    /// Makes compressed memory one without a disk.
    pub(super) fn without_disk(mut self) -> Compressed {
        self.tier = self.tier.without_disk();
        self
    }

    /// Returns true if there is no disk.
    pub(super) fn is_alone(&self) -> bool {
        self.tier.is_alone()
    }

    /// Has all that is in memory leave: see
    /// [`set_emptying`](tidemark_core::compressed::tier::Tier::set_emptying).
    pub(super) fn set_emptying(&mut self, is_emptying: bool) {
        self.tier.set_emptying(is_emptying);
    }

    /// Forgets the pages of slots that were let go of, and learns how many pages of memory it may
    /// have: see [`allow`](tidemark_core::compressed::tier::Tier::allow).
    pub(super) fn prepare(&mut self, vm: &mut Vm, pages_max: u32, is_shrinking: bool) {
        while let Some(slot) = vm.slots_mut().take_released() {
            self.tier.remove(slot);
        }
        self.tier.allow(pages_max, is_shrinking);
    }

    /// Starts a transfer between the frames of a request and as many slots from `first` on.
    pub(super) fn start(
        &mut self,
        (ticket, direction): (Ticket, Direction),
        first: SlotId,
        vm: &mut Vm,
        tables: &mut Tables,
    ) {
        let frames = vm.frames_of(ticket).to_vec();
        let pages = vm.pages_of(ticket).to_vec();
        let number = self.add(Transfer {
            ticket,
            direction,
            first,
            frames,
            parts_left: 0,
            is_failed: false,
            work: Work::Pages,
            moved: vec![],
        });
        match direction {
            Direction::Store => self.store(number, &pages, tables),
            Direction::Fetch => self.fetch(number, vm),
        }
        self.finish_if_over(number, vm, tables);
    }

    /// Keeps house, for frames and compressed pages of `pages` together. Answers whether there is
    /// something for the disk.
    pub(super) fn tend(&mut self, vm: &mut Vm, pages: u32) -> bool {
        self.tier.set_budget(pages);
        let mut has_started = false;
        while let Some((segment, _, bytes)) = self.tier.tend(vm.slots_mut(), &mut NoBytes, true) {
            let work = Work::Segment(segment);
            self.start_blocks(Direction::Store, work, bytes);
            has_started = true;
        }
        has_started
    }

    /// A part of a transfer is over.
    pub(super) fn end_part(&mut self, transfer: u64, vm: &mut Vm, tables: &mut Tables) {
        let entry = self.transfers.get_mut(&transfer);
        entry.expect("it has parts that are left").parts_left -= 1;
        self.finish_if_over(transfer, vm, tables);
    }

    /// Hands over the next request to the disk.
    pub(super) fn take_part(&mut self) -> Option<Part> {
        self.parts.pop_front()
    }

    /// Hands over the next reply.
    pub(super) fn take_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Takes the work done since this was last asked.
    pub(super) fn take_effort(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    /// The memory that compressed pages have, in pages.
    pub(super) fn pages_held(&self) -> u32 {
        self.tier.pages_held()
    }

    /// The most that ever was.
    pub(super) fn pages_held_peak(&self) -> u32 {
        self.tier.pages_held_peak()
    }

    /// The work done so far.
    pub(super) fn tally(&self) -> Tally {
        self.tier.tally()
    }

    /// Panics if its tables contradict each other.
    pub(super) fn check(&self) {
        self.tier.check();
        let with_parts = self.transfers.values().filter(|it| it.parts_left > 0);
        assert_eq!(with_parts.count(), self.transfers.len());
    }

    fn add(&mut self, transfer: Transfer) -> u64 {
        self.transfers_made += 1;
        self.transfers.insert(self.transfers_made, transfer);
        self.transfers_made
    }

    fn transfer(&mut self, number: u64) -> &mut Transfer {
        let transfer = self.transfers.get_mut(&number);
        transfer.expect("a transfer stays until its parts are over")
    }

    fn store(&mut self, number: u64, pages: &[PageId], tables: &mut Tables) {
        let Transfer { first, frames, .. } = &self.transfers[&number];
        let (first, frames) = (*first, frames.clone());
        let mut plain = vec![];
        for ((slot, page), frame) in (first.0..).zip(pages).zip(frames) {
            self.stored += 1;
            let bytes = self.sizes.size_of(*page, self.stored);
            self.tier.remove(SlotId(slot));
            self.is_zero[slot as usize] = bytes == 0;
            let is_put = bytes > 0 && self.put(SlotId(slot), bytes);
            // Should a page that is compressed stay, it is stored again.
            tables.mark_unsaved(frame, is_put);
            if bytes > 0 && !is_put {
                if self.tier.is_alone() {
                    return self.transfer(number).is_failed = true;
                }
                plain.push(SlotId(slot));
            }
        }
        self.queue(number, &plain);
    }

    /// Compresses a page to `bytes`, if that is worth trying. False if it stays uncompressed.
    fn put(&mut self, slot: SlotId, bytes: u32) -> bool {
        if !self.tier.is_worth_trying() {
            self.tier.refuse(slot);
            return false;
        }
        self.effort.compressed += 1;
        self.tier
            .put(slot, bytes.min(PAGE_BYTES as u32), &mut NoBytes)
            .is_some()
    }

    fn fetch(&mut self, number: u64, vm: &mut Vm) {
        let Transfer { first, frames, .. } = &self.transfers[&number];
        let slots: Vec<SlotId> = (first.0..).take(frames.len()).map(SlotId).collect();
        let is_stored = |slot: &SlotId| !self.is_zero[slot.0 as usize];
        let is_packed = |it: &Compressed, slot| it.tier.find(slot).is_some();
        // By runs of pages that are not zeros, as they lie: the plain ones of each go first.
        let runs: Vec<Vec<SlotId>> = slots
            .split(|slot| !is_stored(slot))
            .map(<[SlotId]>::to_vec)
            .collect();
        for run in runs.into_iter().filter(|run| !run.is_empty()) {
            let (packed, plain): (Vec<SlotId>, Vec<SlotId>) =
                run.into_iter().partition(|slot| is_packed(self, *slot));
            self.queue(number, &plain);
            let reads = plain.chunk_by(|one, next| one.0 + 1 == next.0);
            reads.for_each(|run| self.tier.note_plain(run[0], run.len() as u32));
            for slot in packed {
                let page = (slot.0 - slots[0].0) as usize;
                self.fetch_packed(
                    Waiter {
                        transfer: number,
                        page,
                        slot,
                    },
                    vm,
                );
            }
        }
    }

    /// Fetches a page that is compressed, or has it fetched.
    fn fetch_packed(&mut self, waiter: Waiter, vm: &mut Vm) {
        match self.tier.seek(waiter.slot) {
            Way::Here(_) => return self.take(waiter, vm),
            Way::Coming(segment) => self.tier.wait_for(segment, waiter),
            Way::Later => self.tier.put_off(waiter),
            Way::Segment(segment, room, bytes) => {
                let Ok(()) = self.tier.open(room, &mut NoBytes);
                self.tier.wait_for(segment, waiter);
                self.start_blocks(Direction::Fetch, Work::Segment(segment), bytes);
            }
            Way::Single(found, place) => {
                self.start_blocks(Direction::Fetch, Work::Single(waiter, found, place), 0);
            }
        }
        self.transfer(waiter.transfer).parts_left += 1;
    }

    /// Decompresses a page that is in memory, or whose blocks have been read.
    fn take(&mut self, waiter: Waiter, vm: &mut Vm) {
        self.effort.decompressed += 1;
        if vm.slots_mut().has_one_owner(waiter.slot) {
            self.tier.note_taken(waiter.slot);
            self.transfer(waiter.transfer).moved.push(waiter.page);
        } else {
            self.tier.note_copied();
        }
    }

    /// Starts a transfer of the blocks of compressed pages.
    fn start_blocks(&mut self, direction: Direction, work: Work, bytes: u32) {
        let blocks = match work {
            Work::Pages => unreachable!("pages are started by their requests"),
            Work::Segment(segment) => (segment, 0..u64::from(bytes).div_ceil(PAGE_BYTES) as usize),
            Work::Single(_, found, _) => (found.segment, blocks_of(found)),
        };
        let (segment, blocks) = blocks;
        let homes: Vec<SlotId> = blocks.map(|block| self.tier.home(segment, block)).collect();
        let number = self.add(Transfer {
            ticket: Ticket(0),
            direction,
            first: SlotId(0),
            frames: vec![],
            parts_left: 0,
            is_failed: false,
            work,
            moved: vec![],
        });
        self.queue(number, &homes);
    }

    /// Queues the disk requests of a transfer, one for each run of consecutive slots.
    fn queue(&mut self, number: u64, slots: &[SlotId]) {
        let direction = self.transfer(number).direction;
        for run in slots.chunk_by(|one, next| one.0 + 1 == next.0) {
            self.transfer(number).parts_left += 1;
            self.parts.push_back(Part {
                transfer: number,
                direction,
                first: run[0],
                pages: run.len() as u32,
            });
        }
    }

    fn finish_if_over(&mut self, number: u64, vm: &mut Vm, tables: &mut Tables) {
        if self.transfers[&number].parts_left > 0 {
            return;
        }
        let transfer = self.transfers.remove(&number);
        let transfer = transfer.expect("it was just looked at");
        match transfer.work {
            Work::Pages => self.answer(&transfer, tables),
            Work::Segment(segment) if transfer.direction == Direction::Store => {
                self.tier.end_write(segment, true);
            }
            Work::Segment(segment) => {
                self.tier.end_read(segment, true);
                while let Some(waiter) = self.tier.take_waiter(segment) {
                    self.take(waiter, vm);
                    self.end_part(waiter.transfer, vm, tables);
                }
            }
            Work::Single(waiter, _, place) => {
                self.take(waiter, vm);
                self.tier.leave_single(place);
                self.end_part(waiter.transfer, vm, tables);
                while let Some(waiter) = self.tier.take_put_off() {
                    self.fetch_packed(waiter, vm);
                    self.end_part(waiter.transfer, vm, tables);
                }
            }
        }
    }

    fn answer(&mut self, transfer: &Transfer, tables: &mut Tables) {
        if transfer.direction == Direction::Fetch {
            let slots = (transfer.first.0..).map(SlotId);
            for ((page, frame), slot) in transfer.frames.iter().enumerate().zip(slots) {
                let is_plain = self.tier.find(slot).is_none() && !self.is_zero[slot.0 as usize];
                let is_unsaved = is_plain && self.tier.wants(slot);
                tables.mark_unsaved(*frame, transfer.moved.contains(&page) || is_unsaved);
            }
        }
        self.replies.push_back(Reply {
            ticket: transfer.ticket,
            outcome: match transfer.is_failed {
                true => Outcome::Failed,
                false => Outcome::Done,
            },
        });
    }
}
