//! The compressed tier: which pages go to the log, how one comes back, and when segments leave.
//!
//! A store drives it, live or simulated: it asks, moves bytes or lets time pass as answered, and
//! reports what is over. The tier does not know the pages' contents, only their compressed sizes.
//!
//! Segments go to the disk whole, in space made of slots that are taken for it, and come back whole
//! where that has paid of late. Where it has not, the blocks of one page are read alone.
//!
//! # Invariants
//! 1. A room that is read or written is not touched: its segment is under way.
//! 2. The space of a segment on disk is given back when the log says so, and not before.
//! 3. A segment of which single pages are being read stays on disk alone: in memory its pages could
//!    be moved to another one, and its space be given back beneath those reads.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::{DerefMut, Range};

use super::division::{Division, Yield};
use super::log::{Found, Freed, Room, SEGMENT_PAGES, SegmentId, SegmentLog};
use crate::id::{PAGE_BYTES, SlotId};
use crate::memory::swap_slots::Slots;

/// The largest a compressed page may be: of what is larger little would be gained.
pub const BYTES_MAX: u32 = (PAGE_BYTES - PAGE_BYTES / 4) as u32;
/// The number of rooms that nothing lies in and that keep their memory, which counts as in use.
const ROOMS_SPARE: u32 = 2;
/// The number of segments written at one time.
const WRITES_MAX: u32 = 8;
/// The number of segments read at one time; of others single pages are.
const READS_MAX: u32 = 8;
/// The number of rooms beyond what the log may have, for those that are yet to be given back.
const ROOMS_BEYOND: u32 = 64;
/// The blocks that a compressed page can lie in.
pub const BLOCKS_MAX: usize = 2;
/// The number of pages that can be read by themselves at one time.
pub const SINGLES_MAX: usize = 32;
/// The least that a read of a whole segment must have brought, in pages that were used, for further
/// segments to be read whole.
const WORTH_PAGES: u32 = 3;
/// The number of whole reads after which their counted yield is halved, so that the last ones count
/// most.
const READS_COUNTED: u32 = 64;
/// The number of whole reads from which on their yield is taken as known.
const READS_KNOWN: u32 = 16;
/// One in this many reads of single pages is of a whole segment, to see whether that pays.
const READS_TRIED: u32 = 32;
/// After this many pages in a row that hardly compress, the next ones are taken not to.
const REFUSALS_TOLD: u32 = 32;
/// One in this many pages is compressed all the same, to see whether that pays again.
const REFUSALS_TRIED: u32 = 16;
/// The number of blocks of a segment.
const BLOCKS: usize = SEGMENT_PAGES as usize;

/// The work done so far, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Compressed and put into memory.
    pub compressed: u64,
    /// The size of the compressed pages, in bytes.
    pub compressed_bytes: u64,
    /// Brought back from compressed memory, or from a segment that was read.
    pub decompressed: u64,
    /// Found or taken to be hardly smaller, and stored as they are.
    pub refused: u64,
}

impl Tally {
    /// Adds the work of another tier.
    pub fn add(&mut self, other: Tally) {
        self.compressed += other.compressed;
        self.compressed_bytes += other.compressed_bytes;
        self.decompressed += other.decompressed;
        self.refused += other.refused;
    }
}

/// The keeper of compressed bytes in memory.
pub trait Bytes {
    /// The reason for which there is no memory.
    type Error;

    /// Prepares a room to be written to.
    ///
    /// # Errors
    /// There is no memory for it.
    fn open(&mut self, room: Room) -> Result<(), Self::Error>;

    /// Copies bytes from one room to another: each with the offset there.
    fn copy(&mut self, from: (Room, u32), to: (Room, u32), bytes: u32);

    /// Gives back the memory of a room.
    fn close(&mut self, room: Room);
}

/// The way to have a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The page is in memory, at this place.
    Here(Found),
    /// Its segment is under way already.
    Coming(SegmentId),
    /// Its segment must be read, this many bytes, to a room that must be [opened](Tier::open)
    /// first.
    Segment(SegmentId, Room, u32),
    /// Its blocks are to be read to this place.
    Single(Found, u8),
    /// There is no place to read it to: it is to be asked for again when there is.
    Later,
}

/// A segment on disk.
struct OnDisk {
    /// The slots whose space it has, if it is on disk. Most segments ever written are not there any
    /// more, and have no memory for this.
    homes: Option<Box<[SlotId; BLOCKS]>>,
    /// True if it was read whole: its pages are counted as they are fetched.
    is_loaded: bool,
}

/// The note of a segment that is not on disk.
const NOT_ON_DISK: OnDisk = OnDisk {
    homes: None,
    is_loaded: false,
};

/// The tier. `Entries` has a number for each slot, all zero at first; a `Waiter` is a page that a
/// program waits for.
pub struct Tier<Entries, Waiter> {
    log: SegmentLog<Entries>,
    division: Division,
    /// The number of rooms for which there is memory that no frame has.
    rooms_allowed: u32,
    /// Memory is to become less.
    is_shrinking: bool,
    rooms_most: u32,
    /// The rooms that have memory, and their number.
    is_backed: Vec<bool>,
    rooms_backed: u32,
    rooms_backed_peak: u32,
    /// The segments on disk, or on their way there, by number.
    on_disk: Vec<OnDisk>,
    /// Pages that wait for a segment.
    waiting: Vec<(SegmentId, Waiter)>,
    /// Pages that are to be asked for again, the first one first.
    put_off: VecDeque<Waiter>,
    /// The places not in use that single pages are read to.
    singles_unused: Vec<u8>,
    /// The segments of which pages are read to the other places.
    singles: [Option<SegmentId>; SINGLES_MAX],
    writes: u32,
    reads: u32,
    /// Of the segments read whole of late: how many, and how many of their pages were wanted.
    locality: (u32, u32),
    reads_since_tried: u32,
    /// The pages refused since one was found to compress.
    refused_in_a_row: u32,
    /// The number of pages that have left the frames, those among them that were read and will
    /// leave as they came.
    departures: u64,
    is_emptying: bool,
    /// True if there is no disk: all that leaves stays in memory.
    is_alone: bool,
    live: Vec<(SlotId, Found)>,
    tally: Tally,
}

/// The most rooms there ever are where frames and compressed pages have `pages` together.
pub fn rooms_most(pages: u32) -> u32 {
    (pages - pages / 8).div_ceil(SEGMENT_PAGES) + ROOMS_BEYOND
}

/// The blocks of its segment that a page lies in.
pub fn blocks_of(found: Found) -> Range<usize> {
    let end = u64::from(found.offset + found.bytes).div_ceil(PAGE_BYTES);
    (u64::from(found.offset) / PAGE_BYTES) as usize..end as usize
}

impl<Entries: DerefMut<Target = [u64]>, Waiter> Tier<Entries, Waiter> {
    /// An empty tier for the pages of as many slots as `entries` has numbers. Frames and compressed
    /// pages have at most `pages` together.
    pub fn new(entries: Entries, pages: u32) -> Tier<Entries, Waiter> {
        Tier {
            log: SegmentLog::new(entries),
            division: Division::new(pages),
            rooms_allowed: 0,
            is_shrinking: false,
            rooms_most: rooms_most(pages),
            is_backed: Vec::new(),
            rooms_backed: 0,
            rooms_backed_peak: 0,
            on_disk: Vec::new(),
            waiting: Vec::with_capacity(64),
            put_off: VecDeque::with_capacity(64),
            singles_unused: (0..SINGLES_MAX as u8).rev().collect(),
            singles: [None; SINGLES_MAX],
            writes: 0,
            reads: 0,
            locality: (1, 8),
            reads_since_tried: 0,
            refused_in_a_row: 0,
            departures: 0,
            is_emptying: false,
            is_alone: false,
            live: Vec::with_capacity(256),
            tally: Tally::default(),
        }
    }

    /// Makes the tier one without a disk. Every page is kept, whatever its size, while there is
    /// room.
    pub fn without_disk(mut self) -> Tier<Entries, Waiter> {
        self.is_alone = true;
        self
    }

    /// Returns true if there is no disk.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Learns how much memory there is for frames and compressed pages together, in pages.
    pub fn set_budget(&mut self, pages: u32) {
        self.division.set_budget(pages);
    }

    /// Has all that is in memory leave, and nothing more come, until that is taken back. Without a
    /// disk it stays.
    pub fn set_emptying(&mut self, is_emptying: bool) {
        self.is_emptying = is_emptying && !self.is_alone;
    }

    /// Learns of a read of pages that are not compressed, from `first` on.
    pub fn note_plain(&mut self, first: SlotId, pages: u32) {
        let left = self.log.find_refused(first);
        let rank = left.map(|left| self.departures.saturating_sub(left));
        self.division.note_plain(rank);
        // Nothing tells when a page leaves that has not been modified: it is taken to stay until as
        // many others have left as there are frames.
        self.departures += u64::from(pages);
        let frames = self.division.frames(self.log.rooms());
        let leaves = self.departures + u64::from(frames);
        for slot in (first.0..first.0 + pages).map(SlotId) {
            if self.log.find_refused(slot).is_some() {
                self.log.note_refused(slot, leaves);
            }
        }
    }

    /// Learns how many pages of memory compressed ones may take: those that no frame has. While
    /// memory is to become less (`is_shrinking`), the log takes in what leaves the frames even
    /// where it is to have less: its oldest segments go to the disk, and not what comes.
    pub fn allow(&mut self, pages: u32, is_shrinking: bool) {
        self.rooms_allowed = pages / SEGMENT_PAGES;
        self.is_shrinking = is_shrinking;
    }

    /// The number of rooms that may be in use. Those that are backed and not in use have their
    /// memory.
    fn rooms_max(&self) -> u32 {
        if self.is_emptying {
            return 0;
        }
        let allowed = match (self.is_alone, self.is_shrinking) {
            // What leaves frees as much as it takes.
            (true, false) => u32::MAX,
            (true, true) => self.rooms_allowed,
            (false, _) => {
                let spare = self.rooms_backed - self.log.rooms().min(self.rooms_backed);
                self.rooms_allowed.saturating_sub(spare)
            }
        };
        allowed.min(self.rooms_most)
    }

    /// The number of rooms that the log is to have at most.
    fn rooms_wanted(&self) -> u32 {
        match self.is_alone {
            true => self.division.rooms_most(),
            false => self.division.rooms_max(),
        }
    }

    /// Forgets the page of `slot`.
    pub fn remove(&mut self, slot: SlotId) {
        self.log.remove(slot);
    }

    /// Returns true if the page that is stored next is to be compressed to see how small it
    /// becomes. Where many in a row hardly did, most are [refused](Self::refuse) instead.
    pub fn is_worth_trying(&self) -> bool {
        let row = self.refused_in_a_row;
        self.is_alone || row < REFUSALS_TOLD || row.is_multiple_of(REFUSALS_TRIED)
    }

    /// Learns that the page of `slot` is stored as it is.
    pub fn refuse(&mut self, slot: SlotId) {
        self.tally.refused += 1;
        self.refused_in_a_row = self.refused_in_a_row.wrapping_add(1);
        // One that was read was counted then.
        self.departures += u64::from(self.log.find_refused(slot).is_none());
        self.log.remove(slot);
        self.log.note_refused(slot, self.departures);
    }

    /// Finds a place in memory for the page of `slot`, compressed to `bytes`. Nothing if that gains
    /// too little, or there is no room.
    pub fn put(
        &mut self,
        slot: SlotId,
        bytes: u32,
        memory: &mut impl Bytes,
    ) -> Option<(Room, u32)> {
        if bytes > BYTES_MAX && !self.is_alone {
            self.refuse(slot);
            return None;
        }
        self.refused_in_a_row = 0;
        let rooms_max = match self.is_shrinking {
            true => self.rooms_max(),
            false => self.rooms_wanted().min(self.rooms_max()),
        };
        let (room, offset) = self.log.append(slot, bytes, rooms_max)?;
        if self.open(room, memory).is_err() {
            self.log.remove(slot);
            return None;
        }
        self.departures += 1;
        self.tally.compressed += 1;
        self.tally.compressed_bytes += u64::from(bytes);
        Some((room, offset))
    }

    /// Returns the next step towards the page of `slot`, which is in the log.
    pub fn seek(&mut self, slot: SlotId) -> Way {
        let found = self.log.find(slot).expect("the caller has asked");
        let segment = found.segment;
        if found.room.is_some() {
            self.division.note(self.log.part_of(segment));
            self.locality.1 += u32::from(self.is_loaded(segment));
            return Way::Here(found);
        }
        if self.log.is_being_read(segment) {
            self.locality.1 += 1;
            return Way::Coming(segment);
        }
        if !self.is_worth_reading(segment) {
            let Some(place) = self.singles_unused.pop() else {
                return Way::Later;
            };
            self.singles[place as usize] = Some(segment);
            self.division.note(self.log.part_of(segment));
            return Way::Single(found, place);
        }
        self.division.note(self.log.part_of(segment));
        let (room, bytes) = self.log.begin_read(segment);
        self.reads += 1;
        self.locality.0 += 1;
        self.locality.1 += 1;
        if self.locality.0 >= READS_COUNTED {
            self.locality = (self.locality.0 / 2, self.locality.1 / 2);
        }
        self.on_disk[segment.0 as usize].is_loaded = true;
        Way::Segment(segment, room, bytes)
    }

    /// Returns true if a segment is better read whole than for one page: it is live for the most
    /// part, and those that were read whole of late have brought what was wanted soon.
    fn is_worth_reading(&mut self, segment: SegmentId) -> bool {
        let has_room = self.log.rooms() < self.rooms_max() && self.reads < READS_MAX;
        if !has_room || self.log.sixteenths_live(segment) < 4 {
            return false;
        }
        if self.singles.contains(&Some(segment)) {
            return false;
        }
        let (segments, pages) = self.locality;
        self.reads_since_tried += 1;
        if pages >= segments * WORTH_PAGES || self.reads_since_tried >= READS_TRIED {
            self.reads_since_tried = 0;
            return true;
        }
        false
    }

    fn is_loaded(&self, segment: SegmentId) -> bool {
        let known = self.on_disk.get(segment.0 as usize);
        known.is_some_and(|it| it.is_loaded)
    }

    /// Has a page asked for again when there is a place to read a single one to.
    pub fn put_off(&mut self, waiter: Waiter) {
        self.put_off.push_back(waiter);
    }

    /// Hands over the next page that is to be asked for again, if there is a place for it.
    pub fn take_put_off(&mut self) -> Option<Waiter> {
        let has_place = !self.singles_unused.is_empty();
        has_place.then(|| self.put_off.pop_front()).flatten()
    }

    /// Has a page wait for a segment that is being read.
    pub fn wait_for(&mut self, segment: SegmentId, waiter: Waiter) {
        self.waiting.push((segment, waiter));
    }

    /// Hands over the next page that waits for a segment.
    pub fn take_waiter(&mut self, segment: SegmentId) -> Option<Waiter> {
        let at = self.waiting.iter().position(|(it, _)| *it == segment)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// Takes out the page of `slot`, which has been decompressed to where it is wanted.
    pub fn note_taken(&mut self, slot: SlotId) {
        self.log.remove(slot);
        self.tally.decompressed += 1;
    }

    /// Learns that a page has been decompressed for one of several that have it: it stays.
    pub fn note_copied(&mut self) {
        self.tally.decompressed += 1;
    }

    /// Gives the place of a single page back.
    pub fn leave_single(&mut self, place: u8) {
        self.singles[place as usize] = None;
        self.singles_unused.push(place);
    }

    /// Prepares a room to be written to.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn open<B: Bytes>(&mut self, room: Room, memory: &mut B) -> Result<(), B::Error> {
        memory.open(room)?;
        let index = room.0 as usize;
        if self.is_backed.len() <= index {
            self.is_backed.resize(index + 1, false);
        }
        if !core::mem::replace(&mut self.is_backed[index], true) {
            self.rooms_backed += 1;
            self.rooms_backed_peak = self.rooms_backed_peak.max(self.rooms_backed);
        }
        Ok(())
    }

    /// Learns that a segment has been read, or could not be.
    pub fn end_read(&mut self, segment: SegmentId, is_read: bool) {
        self.reads -= 1;
        self.log.end_read(segment, is_read);
    }

    /// Learns that a segment has been written, or could not be.
    pub fn end_write(&mut self, segment: SegmentId, is_written: bool) {
        self.writes -= 1;
        self.log.end_write(segment, is_written);
    }

    /// Keeps house: fills in holes, makes room, and gives back what is free. Answers the next
    /// segment that is to be written, if there is one.
    pub fn tend(
        &mut self,
        slots: &mut dyn Slots,
        memory: &mut impl Bytes,
        may_write: bool,
    ) -> Option<(SegmentId, Room, u32)> {
        if self.division.is_due() {
            let whole = match self.locality {
                (reads, pages) if reads >= READS_KNOWN => Yield { reads, pages },
                _ => Yield { reads: 1, pages: 1 },
            };
            self.division
                .adapt(self.log.rooms(), self.log.ranks(), whole);
        }
        if self.log.is_count_due() {
            self.log.count_ranks();
        }
        self.fill_holes(slots, memory);
        let most = match self.is_emptying {
            true => 0,
            false => self.rooms_wanted(),
        };
        // So much room is kept for what comes next.
        let wanted = most.saturating_sub((most / 16).clamp(1, 8));
        while self.log.rooms() > wanted && self.log.drop_clean() {}
        self.give_back(slots, memory);
        let leaving = self.writes + self.log.rooms_clean();
        if !may_write
            || self.is_alone
            || self.writes >= WRITES_MAX
            || self.log.rooms() <= wanted + leaving
            || !self.log.has_full()
        {
            return None;
        }
        let homes = take_homes(slots)?;
        let begun = self.log.begin_write();
        let (segment, room, bytes) = begun.expect("a segment is full");
        let index = segment.0 as usize;
        if self.on_disk.len() <= index {
            self.on_disk.resize_with(index + 1, || NOT_ON_DISK);
        }
        self.on_disk[index].homes = Some(Box::new(homes));
        self.writes += 1;
        Some((segment, room, bytes))
    }

    fn fill_holes(&mut self, slots: &mut dyn Slots, memory: &mut impl Bytes) {
        let mut live = core::mem::take(&mut self.live);
        while self.log.rooms() < self.rooms_max() && self.log.choose_to_clean(&mut live) {
            for &(slot, found) in &live {
                let from = found.room.expect("it is in memory");
                let Some((room, offset)) = self.log.relocate(slot, found) else {
                    break;
                };
                let opened = self.open(room, memory);
                assert!(opened.is_ok(), "there are rooms to spare");
                // Nothing is put in the place of a page that has left before what is free has been
                // handed over.
                memory.copy((from, found.offset), (room, offset), found.bytes);
            }
            // So that the next one finds its room.
            self.give_back(slots, memory);
        }
        self.live = live;
    }

    /// Gives back what nothing lies in any more.
    fn give_back(&mut self, slots: &mut dyn Slots, memory: &mut impl Bytes) {
        while let Some(freed) = self.log.take_freed() {
            match freed {
                Freed::Room(_) if self.rooms_backed <= self.log.rooms() + ROOMS_SPARE => {}
                Freed::Room(room) => {
                    let backed = self.is_backed.get_mut(room.0 as usize);
                    if backed.is_some_and(core::mem::take) {
                        self.rooms_backed -= 1;
                        memory.close(room);
                    }
                    self.log.use_last(room);
                }
                Freed::Disk(segment) => {
                    let known = &mut self.on_disk[segment.0 as usize];
                    let gone = core::mem::replace(known, NOT_ON_DISK);
                    let homes = gone.homes.into_iter().flat_map(|homes| *homes);
                    homes.for_each(|slot| slots.release(slot));
                }
            }
        }
    }

    /// Returns true if the page of `slot`, which was stored as it is, is to be compressed the next
    /// time it leaves, whether it is modified or not: there was no room for it. Else it would be
    /// read from disk each time it is wanted.
    pub fn wants(&self, slot: SlotId) -> bool {
        self.log.find_refused(slot).is_none()
    }

    /// Finds the page of `slot`, if it is in the log.
    pub fn find(&self, slot: SlotId) -> Option<Found> {
        self.log.find(slot)
    }

    /// The slot whose space block `block` of a segment has.
    pub fn home(&self, segment: SegmentId, block: usize) -> SlotId {
        let homes = self.on_disk[segment.0 as usize].homes.as_ref();
        homes.expect("a segment on disk has space")[block]
    }

    /// The memory that compressed pages have, in pages.
    pub fn pages_held(&self) -> u32 {
        self.rooms_backed * SEGMENT_PAGES
    }

    /// The most that ever was.
    pub fn pages_held_peak(&self) -> u32 {
        self.rooms_backed_peak * SEGMENT_PAGES
    }

    /// The number of segments on their way to disk.
    pub fn leaving(&self) -> u32 {
        self.writes
    }

    /// The work done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Panics if the tables contradict each other.
    pub fn check(&self) {
        self.log.check();
        let backed = self.is_backed.iter().filter(|is_backed| **is_backed);
        assert_eq!(backed.count(), self.rooms_backed as usize);
        assert!(self.log.rooms() <= self.rooms_backed);
    }
}

/// Takes the space for a segment on disk; nothing if there is too little.
fn take_homes(slots: &mut dyn Slots) -> Option<[SlotId; BLOCKS]> {
    let mut homes = [SlotId(0); BLOCKS];
    let mut taken = 0;
    while taken < BLOCKS {
        let Some((first, count)) = slots.allocate((BLOCKS - taken) as u32) else {
            homes[..taken].iter().for_each(|slot| slots.release(*slot));
            return None;
        };
        for slot in first.0..first.0 + count {
            homes[taken] = SlotId(slot);
            taken += 1;
        }
    }
    Some(homes)
}

#[cfg(test)]
mod tests;
