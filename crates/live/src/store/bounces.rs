//! Bounce buffers: memory by way of which parts of transfers go, in place of straight from or to
//! the pages concerned.
//!
//! - A write that is encrypted is encrypted there, since the program may want its frame back
//!   meanwhile.
//! - A read of many pages comes there in one piece, and is copied to its pages. Pages of a program
//!   lie apart in physical memory. A disk, and most of all a virtual one, takes them one by one,
//!   which took 2 microseconds a page where the copy takes a quarter of one: 256 KiB by
//!   themselves 237 microseconds, and 107 in one piece. All buffers together are one huge page,
//!   which there is while most reads are of many pages: other programs need the memory more.
//!
//! Buffers are memory of the engine, which the budget bounds: there are few. Encrypted writes wait
//! for one, and reads go without if there is none. Those that have rested give their memory back, a
//! huge page when all have.
//!
//! # Invariants
//! 1. A part of a transfer has at most one buffer while it is under way, by its tag.
//! 2. Reads never have the buffers of encrypted writes: each of the two ends without the other.
//! 3. While the buffers are to be another kind of page none is taken: those that are used end, and
//!    then they are.

use std::ops::Range;

use crate::sys::memory::{self, HUGE_PAGE, Mapping};
use crate::sys::pool::TRANSFER_MAX;
use crate::sys::{Errno, PAGE};

/// The number of buffers. Each has room for the largest transfer.
const BUFFERS: usize = HUGE_PAGE / BYTES;
/// The most buffers of encrypted writes: these few keep a disk busy.
const OF_WRITES: usize = 4;
const BYTES: usize = TRANSFER_MAX * PAGE;
/// The least pages of a read for which one piece is worth a copy.
const READ_PAGES_LEAST: u8 = 8;
/// The mean pages of a read from which on they come in one piece, and below which they do not any
/// more.
const MEAN_PAGES: (u32, u32) = (16, 8);
/// The weight of a read in the mean, as a divisor, and the unit of the mean in a page.
const MEAN_PART: u32 = 32;

/// The bounce buffers of a store.
pub(super) struct Bounces {
    room: Option<Mapping>,
    /// The offset of the first buffer in it.
    start: usize,
    /// True if the kernel gives huge pages.
    has_huge_pages: bool,
    /// True if reads may have one.
    is_allowed: bool,
    /// True if the buffers are to be a huge page, for reads; else reads go without.
    is_for_reads: bool,
    /// True if they are.
    is_huge: bool,
    /// The least pages of a read that comes in one piece.
    pages_least: u8,
    /// The mean pages of a read of late, times [`MEAN_PART`].
    mean: u32,
    /// True if forked children do not have the buffers.
    is_hidden: bool,
    /// The number of buffers that reads leave alone.
    of_writes: usize,
    /// The tags of the parts whose buffers they are.
    used: [Option<u64>; BUFFERS],
    /// A bit for each that was written to since its memory was given back.
    has_memory: u8,
}

impl Bounces {
    /// Buffers that have no memory yet, none of which is for reads or kept for writes.
    pub(super) fn new() -> Bounces {
        let mut bounces = Bounces::none();
        bounces.has_huge_pages = memory::gives_huge_pages();
        bounces
    }

    /// In place of buffers that are lent.
    pub(super) const fn none() -> Bounces {
        Bounces {
            has_huge_pages: false,
            room: None,
            start: 0,
            is_allowed: false,
            is_for_reads: false,
            pages_least: READ_PAGES_LEAST,
            mean: 0,
            is_huge: false,
            is_hidden: false,
            of_writes: 0,
            used: [None; BUFFERS],
            has_memory: 0,
        }
    }

    /// Keeps some of the buffers for writes.
    pub(super) fn keep_for_writes(&mut self) {
        self.of_writes = OF_WRITES;
    }

    /// Leaves the buffers out of forked children.
    pub(super) fn hide_from_children(&mut self) {
        self.is_hidden = true;
    }

    /// Allows reads of many pages to come in one piece from now on, or does not any more.
    pub(super) fn allow_reads(&mut self, is_allowed: bool) {
        self.is_allowed = is_allowed && self.has_huge_pages;
        if !self.is_allowed {
            self.is_for_reads = false;
            self.change_pages();
        }
    }

    /// Returns true if a write could have a buffer now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_changing() && self.used[..self.of_writes].contains(&None)
    }

    /// Takes a buffer for a part that is written. The caller has seen that [there is
    /// room](Self::has_room).
    pub(super) fn take_for_write(&mut self, tag: u64) -> Result<usize, Errno> {
        let index = self.take(tag, 0..self.of_writes)?;
        Ok(index.expect("a write waits for room"))
    }

    /// Takes a buffer for a part of `pages` that is read, if it is to have one.
    pub(super) fn take_for_read(&mut self, tag: u64, pages: u8) -> Option<usize> {
        self.note_read(pages.into());
        if !self.is_for_reads || self.is_changing() || pages < self.pages_least {
            return None;
        }
        // Without room for buffers it goes as it is.
        self.take(tag, self.of_writes..BUFFERS).unwrap_or(None)
    }

    fn note_read(&mut self, pages: u32) {
        self.mean = self.mean - self.mean / MEAN_PART + pages;
        let (from, below) = MEAN_PAGES;
        if !self.is_for_reads && self.is_allowed && self.mean >= from * MEAN_PART {
            self.is_for_reads = true;
        } else if self.is_for_reads && (!self.is_allowed || self.mean < below * MEAN_PART) {
            self.is_for_reads = false;
        }
        self.change_pages();
    }

    fn take(&mut self, tag: u64, among: Range<usize>) -> Result<Option<usize>, Errno> {
        let unused = |index: &usize| self.used[*index].is_none();
        let Some(index) = among.into_iter().find(unused) else {
            return Ok(None);
        };
        if self.room.is_none() {
            let mut room = Mapping::closed(2 * HUGE_PAGE)?;
            self.start = room.start().next_multiple_of(HUGE_PAGE) - room.start();
            room.open(self.start, HUGE_PAGE)?;
            if self.is_hidden {
                room.hide_from_children()?;
            }
            self.room = Some(room);
            self.advise();
        }
        self.has_memory |= 1 << index;
        self.used[index] = Some(tag);
        Ok(Some(index))
    }

    /// Returns true if the buffers are to be another kind of page once all are unused.
    fn is_changing(&self) -> bool {
        self.is_for_reads != self.is_huge
    }

    /// Has the buffers be another kind of page, if they are to be, and all are unused.
    fn change_pages(&mut self) {
        if self.is_changing() && self.used == [None; BUFFERS] {
            self.drop_all();
            self.is_huge = self.is_for_reads;
            self.advise();
        }
    }

    /// Asks for the kind of page that the buffers are to be.
    fn advise(&mut self) {
        if let Some(room) = &mut self.room {
            // Where this fails they are the pages that they were.
            let _ = room.advise_huge(self.start, HUGE_PAGE, self.is_huge);
        }
    }

    fn drop_all(&mut self) {
        if let Some(room) = &self.room
            && room.drop_part(self.start, HUGE_PAGE).is_ok()
        {
            self.has_memory = 0;
        }
    }

    /// Has each read that there is a buffer for come by way of it.
    #[cfg(test)]
    pub(super) fn insist(&mut self) {
        (self.is_allowed, self.is_for_reads) = (true, true);
        (self.pages_least, self.mean) = (1, u32::MAX / 2);
        self.change_pages();
    }

    /// The buffer of a part that is under way.
    pub(super) fn of(&self, tag: u64) -> Option<usize> {
        self.used.iter().position(|&used| used == Some(tag))
    }

    /// The mapping of a buffer, and its offset there.
    pub(super) fn place(&self, index: usize) -> (&Mapping, usize) {
        let room = self.room.as_ref().expect("a buffer was taken");
        (room, self.start + index * BYTES)
    }

    /// A page of a buffer: what was read.
    pub(super) fn page(&self, index: usize, page: usize) -> &[u8] {
        let (room, start) = self.place(index);
        room.part(start + page * PAGE, PAGE)
    }

    /// A page of a buffer, to write.
    pub(super) fn page_mut(&mut self, index: usize, page: usize) -> &mut [u8] {
        let at = self.start + index * BYTES + page * PAGE;
        let room = self.room.as_mut().expect("a buffer was taken");
        room.part_mut(at, PAGE)
    }

    /// Has the buffer of a part, if it has one, unused again.
    pub(super) fn release(&mut self, tag: u64) {
        if let Some(index) = self.of(tag) {
            self.used[index] = None;
            self.change_pages();
        }
    }

    /// Gives the memory of unused buffers back to the host; that of a huge page if all are unused.
    pub(super) fn rest(&mut self) {
        if self.is_huge {
            if self.used == [None; BUFFERS] {
                self.drop_all();
            }
            return;
        }
        let Some(room) = &self.room else { return };
        for (index, tag) in self.used.iter().enumerate() {
            let at = self.start + index * BYTES;
            let has_memory = tag.is_none() && self.has_memory >> index & 1 > 0;
            // What can't be given back is used again, or given back the next time.
            if has_memory && room.drop_part(at, BYTES).is_ok() {
                self.has_memory &= !(1 << index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_core::id::FrameId;
    use tidemark_core::seams::pager::{Direction, Outcome};

    use super::*;
    use crate::store::tests::Swapping;
    use crate::store::{Means, SwapStore};

    #[test]
    fn reads_have_buffers_while_most_are_of_many_pages_and_writes_wait_for_the_change() {
        let mut bounces = Bounces::none();
        bounces.has_huge_pages = true;
        bounces.keep_for_writes();
        let read = |bounces: &mut Bounces, tag: u64, pages: u8| {
            let taken = bounces.take_for_read(tag, pages);
            bounces.release(tag);
            taken
        };
        assert!((0..100).all(|tag| read(&mut bounces, tag, 64).is_none()));
        assert!((0..200).all(|tag| read(&mut bounces, tag, 1).is_none()));
        bounces.allow_reads(true);
        assert!((0..100).all(|tag| read(&mut bounces, tag, 15).is_none()));
        let write = bounces.take_for_write(1000).unwrap();
        assert!(write < OF_WRITES && bounces.has_room());
        assert!((0..100).all(|tag| read(&mut bounces, tag, 64).is_none()));
        assert!(!bounces.has_room());
        bounces.release(1000);
        assert!(bounces.has_room());
        let indexes: Vec<_> = (0..5).map(|tag| bounces.take_for_read(tag, 64)).collect();
        assert_eq!(indexes, [Some(4), Some(5), Some(6), Some(7), None]);
        assert_eq!(bounces.page_mut(7, 63).len(), PAGE);
        assert!((10..200).all(|tag| read(&mut bounces, tag, 1).is_none()));
        assert!(!bounces.has_room());
        (0..4).for_each(|tag| bounces.release(tag));
        assert!(bounces.has_room() && bounces.has_memory == 0);
        assert_eq!(bounces.take_for_read(5, 64), None);
    }

    #[test]
    fn writes_wait_for_one_of_few_buffers_which_keep_no_memory_when_they_rest() {
        for means in [Means::Ring, Means::Threads, Means::AtOnce] {
            let Some(mut swapping) = Swapping::new(16, means, "") else {
                return;
            };
            let frames: Vec<FrameId> = (0..16).map(FrameId).collect();
            for frame in &frames {
                swapping.start(Direction::Store, 2 * frame.0, &[*frame]);
            }
            swapping.store.submit(&swapping.world.machine).unwrap();
            let backed = |store: &SwapStore| store.bounces.has_memory.count_ones() as usize;
            assert_eq!(backed(&swapping.store), OF_WRITES);
            // One that is under way keeps its memory.
            swapping.store.rest();
            let replies = swapping.collect(16);
            assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done));
            assert_eq!(backed(&swapping.store), OF_WRITES);
            swapping.store.rest();
            assert_eq!(backed(&swapping.store), 0);
            for frame in &frames {
                swapping.world.machine.pool_mut().clear(*frame);
                let fetched = swapping.transfer(Direction::Fetch, 2 * frame.0, &[*frame]);
                assert_eq!(
                    (fetched, swapping.byte(*frame)),
                    (Outcome::Done, frame.0 as u8 + 1)
                );
            }
        }
    }
}
