//! The store's part in compressed memory: pages that go there, and pages that come from its
//! segments.

use tidemark_core::id::{FrameId, SlotId, Ticket};
use tidemark_core::memory::swap_slots::Slots;
use tidemark_core::seams::pager::Direction;

use super::compressed::{Compressed, Damaged, Put, Waiter, Way, blocks_of};
use super::faults::Injected;
use super::{Cause, SwapStore, Transfer, Work};
use crate::machine::{LiveMachine, ZERO_SUM};
use crate::sys::{Errno, PAGE};
use tidemark_core::compressed::log::{Found, SegmentId};

impl SwapStore {
    /// Has pages stored in compressed memory first, of which frames and compressed pages together
    /// take at most `pages`. What has no room there goes to the file, if that is to be used
    /// (`has_file`), and is not stored otherwise.
    pub fn compress(mut self, pages: u32, has_file: bool) -> Result<SwapStore, Errno> {
        self.compressed = Some(Compressed::new(self.slots(), pages, has_file)?);
        Ok(self)
    }

    /// Compressed memory, if there is any.
    pub fn compressed(&self) -> Option<&Compressed> {
        self.compressed.as_ref()
    }

    /// Compressed memory, if there is any, to take its counts.
    pub fn compressed_mut(&mut self) -> Option<&mut Compressed> {
        self.compressed.as_mut()
    }

    /// The number of segments on their way to the swap file.
    pub fn segments_leaving(&self) -> u32 {
        self.compressed.as_ref().map_or(0, Compressed::leaving)
    }

    /// Returns true if the page of `slot` can be had without the disk.
    #[cfg(test)]
    pub(super) fn is_near(&self, slot: SlotId) -> bool {
        let compressed = self.compressed.as_ref();
        compressed.is_some_and(|it| it.find(slot).is_some_and(|found| found.room.is_some()))
    }

    /// The memory that compressed pages have, in pages.
    pub fn pages_held(&self) -> u32 {
        self.compressed.as_ref().map_or(0, Compressed::pages_held)
    }

    /// Forgets the compressed pages of slots that were let go of. To be called before anything is
    /// stored to slots that may be the same.
    pub fn forget_released(&mut self, slots: &mut dyn Slots) {
        if let Some(compressed) = &mut self.compressed {
            while let Some(slot) = slots.take_released() {
                compressed.tier().remove(slot);
            }
        }
    }

    /// Forgets the compressed page of a slot that was let go of.
    #[cfg(test)]
    pub(super) fn forget(&mut self, slot: SlotId) {
        self.compressed
            .iter_mut()
            .for_each(|it| it.tier().remove(slot));
    }

    /// Learns how many pages of memory compressed ones may take: see
    /// [`allow`](tidemark_core::compressed::tier::Tier::allow).
    pub fn allow(&mut self, pages: u32, is_shrinking: bool) {
        if let Some(compressed) = &mut self.compressed {
            compressed.tier().allow(pages, is_shrinking);
        }
    }

    /// Keeps house in compressed memory, for frames and compressed pages of `pages` together.
    /// Answers whether there is something to [submit](Self::submit).
    pub fn tend(&mut self, slots: &mut dyn Slots, pages: u32) -> bool {
        let Some(compressed) = &mut self.compressed else {
            return false;
        };
        compressed.tier().set_budget(pages);
        let mut has_started = false;
        while let Some((segment, room, bytes)) = self
            .compressed
            .as_mut()
            .and_then(|it| it.tend(slots, !self.is_segment_refused))
        {
            let work = Work::Segment(segment, room);
            self.start_blocks(Direction::Store, work, bytes);
            has_started = true;
        }
        has_started
    }

    /// Starts a transfer of the blocks of compressed pages.
    fn start_blocks(&mut self, direction: Direction, work: Work, bytes: u32) {
        let transfer = self.add_transfer(Ticket(0), direction, SlotId(0), &[]);
        self.transfers[transfer as usize].work = work;
        let blocks = match work {
            Work::Pages | Work::File(_) => unreachable!("pages are started by their requests"),
            Work::Segment(..) => (bytes as usize).div_ceil(PAGE),
            Work::Single(_, found, _) => blocks_of(found).len(),
        };
        let homes: Vec<SlotId> = (0..blocks as u8)
            .map(|block| self.home_of(&self.transfers[transfer as usize], block))
            .collect();
        let mut start = 0;
        for run in homes.chunk_by(|one, next| one.0 + 1 == next.0) {
            self.queue(transfer, start, run.len());
            start += run.len();
        }
    }

    /// The slot whose space a page or a block of a transfer has.
    pub(super) fn home_of(&self, transfer: &Transfer, block: u8) -> SlotId {
        let compressed = self.compressed.as_ref();
        let home = |segment, block| compressed.expect("it has segments").home(segment, block);
        match transfer.work {
            Work::Pages | Work::File(_) => SlotId(transfer.first.0 + u32::from(block)),
            Work::Segment(segment, _) => home(segment, block as usize),
            Work::Single(_, found, _) => {
                home(found.segment, blocks_of(found).start + block as usize)
            }
        }
    }

    /// Stores the page in `frame` in compressed memory, if there is any.
    pub(super) fn store_compressed(
        &mut self,
        slot: usize,
        frame: FrameId,
        machine: &mut LiveMachine,
    ) -> Put {
        let Some(compressed) = &mut self.compressed else {
            return Put::Not;
        };
        let put = compressed.put_unless_zero(SlotId(slot as u32), frame, machine);
        if put == Put::Raw {
            self.sums.set(slot, machine.sum(frame));
            machine.forget_sum(frame);
        }
        if put == Put::Kept {
            self.sums.set(slot, 0);
            // Should the page stay, it is stored again: it has no sum to compare.
            machine.forget_sum(frame);
        }
        put
    }

    /// Has the machine know the sum of a page that was read as it is, unless that is to be
    /// compressed the next time it leaves.
    pub(super) fn keep_sum(&self, slot: SlotId, frame: FrameId, machine: &mut LiveMachine) {
        let sum = self.sums.get(slot.0 as usize);
        let compressed = self.compressed.as_ref().filter(|_| sum != ZERO_SUM);
        match compressed.is_some_and(|it| it.wants(slot)) {
            true => machine.forget_sum(frame),
            false => machine.set_sum(frame, sum),
        }
    }

    /// Notes a read of pages that were never compressed.
    pub(super) fn note_plain(&mut self, first: SlotId, pages: usize) {
        if let Some(compressed) = &mut self.compressed {
            compressed.tier().note_plain(first, pages as u32);
        }
    }

    /// Returns true if the page of `slot` is of zeros, which lie nowhere.
    pub fn is_zero(&self, slot: SlotId) -> bool {
        self.sums.get(slot.0 as usize) == ZERO_SUM
    }

    /// Returns true if the page of `slot` lies in the file as it is: neither compressed, nor of
    /// zeros.
    pub(super) fn is_plain(&self, slot: usize) -> bool {
        !self.is_zero(SlotId(slot as u32)) && !self.is_compressed(slot)
    }

    /// Returns true if the page of `slot` lies compressed in memory.
    pub fn has_in_memory(&self, slot: SlotId) -> bool {
        let compressed = self.compressed.as_ref();
        compressed.is_some_and(|compressed| compressed.has_in_memory(slot))
    }

    pub(super) fn is_compressed(&self, slot: usize) -> bool {
        let compressed = self.compressed.as_ref();
        compressed.is_some_and(|it| it.has(SlotId(slot as u32)))
    }

    /// Fetches a page of a transfer that is compressed, or has it fetched.
    pub(super) fn fetch_compressed(&mut self, transfer: u32, page: u8, machine: &mut LiveMachine) {
        let entry = &self.transfers[transfer as usize];
        let slot = entry.slot(page);
        let waiter = Waiter {
            transfer,
            page,
            slot,
        };
        let compressed = self.compressed.as_mut().expect("the page is compressed");
        match compressed.tier().seek(slot) {
            Way::Here(found) => {
                let injected = self.faults.next(Direction::Fetch);
                if injected == Injected::Flip {
                    compressed.flip(found);
                }
                let sum = self.sums.get(slot.0 as usize);
                let into = machine.pool_mut().bytes_of_mut(entry.frames[page as usize]);
                let mut failure = compressed
                    .take(slot, found, sum, into)
                    .err()
                    .map(Cause::from);
                if injected == Injected::Error {
                    failure = Some(Cause::File(Errno::IO));
                }
                self.note_taken(waiter, failure);
            }
            Way::Coming(segment) => {
                compressed.tier().wait_for(segment, waiter);
                self.transfers[transfer as usize].parts_left += 1;
            }
            Way::Later => {
                compressed.tier().put_off(waiter);
                self.transfers[transfer as usize].parts_left += 1;
            }
            Way::Segment(segment, room, bytes) => {
                if let Err(error) = compressed.open(room) {
                    compressed.tier().end_read(segment, false);
                    return self.note_taken(waiter, Some(Cause::Memory(error)));
                }
                compressed.tier().wait_for(segment, waiter);
                self.transfers[transfer as usize].parts_left += 1;
                self.start_blocks(Direction::Fetch, Work::Segment(segment, room), bytes);
            }
            Way::Single(found, place) => {
                self.transfers[transfer as usize].parts_left += 1;
                self.start_blocks(Direction::Fetch, Work::Single(waiter, found, place), 0);
            }
        }
    }

    /// Notes what has become of a compressed page of a transfer.
    fn note_taken(&mut self, waiter: Waiter, failure: Option<Cause>) {
        let transfer = &mut self.transfers[waiter.transfer as usize];
        match failure {
            None => transfer.moved |= 1 << waiter.page,
            Some(cause) => transfer.failure = Some((waiter.slot, cause)),
        }
    }

    /// Has a page that waited for the blocks of others, or its own, go on.
    fn end_waiting(&mut self, waiter: Waiter, failure: Option<Cause>, machine: &mut LiveMachine) {
        self.note_taken(waiter, failure);
        self.end_part(waiter.transfer, machine);
    }

    /// A part of a transfer is over; makes the reply if it was the last.
    fn end_part(&mut self, transfer: u32, machine: &mut LiveMachine) {
        let entry = &mut self.transfers[transfer as usize];
        entry.parts_left -= 1;
        if entry.parts_left == 0 {
            self.finish(transfer, machine);
        }
    }

    /// A segment has been read or written, or could not be.
    pub(super) fn finish_segment(
        &mut self,
        (segment, direction): (SegmentId, Direction),
        failure: Option<Cause>,
        machine: &mut LiveMachine,
    ) {
        let compressed = self.compressed.as_mut().expect("it has segments");
        if direction == Direction::Store {
            self.is_segment_refused |= failure.is_some();
            return compressed.tier().end_write(segment, failure.is_none());
        }
        compressed.tier().end_read(segment, failure.is_none());
        while let Some(waiter) = self
            .compressed
            .as_mut()
            .and_then(|it| it.tier().take_waiter(segment))
        {
            let failure = failure.or_else(|| self.take_waited(waiter, machine).err());
            self.end_waiting(waiter, failure, machine);
        }
    }

    /// Fetches pages that were put off, as many as there are places for.
    fn fetch_put_off(&mut self, machine: &mut LiveMachine) {
        while let Some(waiter) = self
            .compressed
            .as_mut()
            .and_then(|it| it.tier().take_put_off())
        {
            self.fetch_compressed(waiter.transfer, waiter.page, machine);
            self.end_part(waiter.transfer, machine);
        }
    }

    /// Decompresses a page whose segment has been read.
    fn take_waited(&mut self, waiter: Waiter, machine: &mut LiveMachine) -> Result<(), Cause> {
        let frame = self.transfers[waiter.transfer as usize].frames[waiter.page as usize];
        let compressed = self.compressed.as_mut().expect("it has segments");
        let found = compressed.find(waiter.slot).ok_or(Damaged)?;
        let sum = self.sums.get(waiter.slot.0 as usize);
        let into = machine.pool_mut().bytes_of_mut(frame);
        Ok(compressed.take(waiter.slot, found, sum, into)?)
    }

    /// The blocks of a compressed page have been read, or could not be.
    pub(super) fn finish_single(
        &mut self,
        (waiter, found, place): (Waiter, Found, u8),
        failure: Option<Cause>,
        machine: &mut LiveMachine,
    ) {
        let frame = self.transfers[waiter.transfer as usize].frames[waiter.page as usize];
        let compressed = self.compressed.as_mut().expect("the page is compressed");
        let failure = failure.or_else(|| {
            let into = machine.pool_mut().bytes_of_mut(frame);
            let taken = compressed.take_single(waiter.slot, found, place, into);
            taken.err().map(Cause::from)
        });
        compressed.tier().leave_single(place);
        self.end_waiting(waiter, failure, machine);
        self.fetch_put_off(machine);
    }
}

impl From<Damaged> for Cause {
    fn from(_: Damaged) -> Cause {
        Cause::Differs
    }
}
