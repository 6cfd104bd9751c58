//! Sending parts of transfers on their way: what goes next, and by what.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use tidemark_core::id::PagerId;
use tidemark_core::seams::pager::Direction;

use super::carrier::Carrier;
use super::{Part, SwapStore, TRIES_MAX, TRY_PAUSE, Work, offset_of};
use crate::machine::LiveMachine;
use crate::sys::ring::Buffers;
use crate::sys::workers::AtOnce;
use crate::sys::{Errno, PAGE};

/// The least that disks write whole.
const BLOCK: usize = 512;

impl SwapStore {
    /// Leaves writes to others from now on, or does not any more: so does every thread before it
    /// uses the store.
    pub fn leave_writes(&mut self, is_wanted: bool) {
        self.left.set(is_wanted);
    }

    /// Returns true, once, if there are writes that were left.
    pub fn has_left_writes(&mut self) -> bool {
        self.left.tell(!self.stores.is_empty())
    }

    /// Ends the process in the midst of a write, as the end of the power might, for tests: blocks
    /// before the middle are written, to the midst of a page.
    pub(super) fn cut_short(&self, (file, offset): (Option<PagerId>, u64), buffers: &Buffers) -> ! {
        let file = match file {
            Some(file) => self.files.get(file).fitting(Direction::Store, offset),
            None => self.file.as_file(),
        };
        let bytes = buffers.bytes() / 2 / PAGE * PAGE + 3 * BLOCK;
        if let Ok(mut carrier) = AtOnce::new()
            && bytes < buffers.bytes()
        {
            let written = buffers.shortened(bytes);
            carrier.push(Direction::Store, file.as_raw_fd(), offset, &written, 0);
        }
        std::process::abort();
    }

    /// Has a part tried again that the kernel has refused for now.
    pub(super) fn put_off(&mut self, part: Part) {
        self.transfers[part.transfer as usize].parts_left += 1;
        let due = Instant::now() + TRY_PAUSE * (1 << part.tries.min(TRIES_MAX - 1));
        let tries = part.tries.saturating_add(1);
        self.refused.push((Part { tries, ..part }, due));
    }

    /// The time at which the next part is due that was refused for now.
    pub fn next_try(&self) -> Option<Instant> {
        self.refused.iter().map(|(_, due)| *due).min()
    }

    /// Hands a part to what carries it. False if the kernel takes nothing for now.
    pub(super) fn send(&mut self, part: Part, machine: &LiveMachine) -> Result<bool, Errno> {
        let bounced = self.bounce(part, machine)?;
        let transfer = &self.transfers[part.transfer as usize];
        let (direction, tag) = (transfer.direction, part.tag());
        let offset = offset_of(self.home_of(transfer, part.start));
        let (start, pages) = (part.start as usize, part.pages as usize);
        let compressed = self.compressed.as_ref();
        let plain = || match transfer.work {
            Work::Pages => Buffers::of_frames(machine.pool(), &transfer.frames[part.range()]),
            Work::File(_) => self.buffers_of_file(transfer, part, machine),
            Work::Segment(_, room) => {
                let compressed = compressed.expect("it has segments");
                compressed.buffers(room, start, pages)
            }
            Work::Single(_, _, place) => {
                let compressed = compressed.expect("the page is compressed");
                compressed.single_buffers(place, start, pages)
            }
        };
        let buffers = bounced.unwrap_or_else(plain);
        let file = transfer.work.file();
        if direction == Direction::Store && self.faults.cuts_next_write() {
            self.cut_short((file, offset), &buffers);
        }
        let is_sent = self.carry(direction, (file, offset), &buffers, tag)?;
        if !is_sent {
            self.bounces.release(part.tag());
        }
        Ok(is_sent)
    }

    /// Hands a transfer to what carries it, likewise.
    fn carry(
        &mut self,
        direction: Direction,
        (file, offset): (Option<PagerId>, u64),
        buffers: &Buffers,
        tag: u64,
    ) -> Result<bool, Errno> {
        let file = match file {
            Some(file) => self.files.get(file).fitting(direction, offset),
            None => self.file.as_file(),
        };
        match &mut self.carrier {
            Carrier::Ring(ring) => {
                while !ring.push(direction, file.as_fd(), offset, buffers, tag) {
                    if !ring.submit()? {
                        return Ok(false);
                    }
                }
            }
            Carrier::Workers(workers) => {
                workers.push(direction, file.as_raw_fd(), offset, buffers, tag);
            }
            Carrier::AtOnce(carrier) => {
                carrier.push(direction, file.as_raw_fd(), offset, buffers, tag);
            }
            Carrier::Absent => unreachable!("made before the first part is sent"),
        }
        self.under_way += 1;
        match direction {
            Direction::Fetch => self.tally.read_calls += 1,
            Direction::Store => self.tally.write_calls += 1,
        }
        Ok(true)
    }

    /// The next part to be sent on its way. Writes may be left to others.
    pub(super) fn next_part(&mut self) -> Option<Part> {
        let fetch = self.fetches.pop_front();
        fetch.or_else(|| match self.left.is_set() || !self.may_write() {
            true => None,
            false => self.stores.pop_front(),
        })
    }
}

impl Part {
    pub(super) fn tag(self) -> u64 {
        let [start, pages, tries] = [self.start, self.pages, self.tries].map(u64::from);
        tries << 48 | u64::from(self.transfer) << 16 | start << 8 | pages
    }

    pub(super) fn from_tag(tag: u64) -> Part {
        Part {
            transfer: (tag >> 16) as u32,
            start: (tag >> 8) as u8,
            pages: tag as u8,
            tries: (tag >> 48) as u8,
        }
    }

    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.pages as usize
    }
}
