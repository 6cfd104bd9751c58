//! Compressed memory in front of the swap file.
//!
//! The core's [log](tidemark_core::compressed::log) says where each page lies and which segment
//! leaves next; here are the bytes. A page is compressed by LZ4 as it is stored, and taken out of
//! the log as it is fetched: from then on its frame is all there is of it. What does not become
//! smaller by a quarter goes to the swap file as it is, by the way of all pages.
//!
//! Segments go to the swap file whole, in space made of slots that are taken for it, and come back
//! whole where that has paid of late; where it has not, the blocks of one page are read alone.
//!
//! # Invariants
//! 1. A room that the kernel reads or writes is not touched: its segment is under way.
//! 2. The space of a segment on disk is given back when the log says so, and not before.

use std::collections::VecDeque;

use lz4_flex::block::{CompressTable, compress_into_with_table};
use xxhash_rust::xxh3::xxh3_64;

use tidemark_core::backing::Slots;
use tidemark_core::compressed::division::{Division, Origin, Yield};
use tidemark_core::compressed::log::{
    Found, Freed, Room, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId, SegmentLog,
};
use tidemark_core::id::SlotId;

use crate::sys::memory::{Mapping, Table};
use crate::sys::ring::Buffers;
use crate::sys::{Errno, PAGE};

/// The largest a compressed page may be: of what is larger little would be gained.
const BYTES_MAX: usize = PAGE - PAGE / 4;
/// The most that LZ4 may need for one page.
const SCRATCH_BYTES: usize = SUM_BYTES + lz4_flex::block::get_maximum_output_size(PAGE);
/// Compressed bytes stand behind their XXH3 sum.
const SUM_BYTES: usize = size_of::<u64>();
/// The number of rooms that nothing lies in and that keep their memory, which counts as in use.
const ROOMS_SPARE: u32 = 4;
/// The number of segments written at one time.
const WRITES_MAX: u32 = 8;
/// The number of segments read at one time; of others single pages are.
const READS_MAX: u32 = 8;
/// The number of rooms beyond what the log may have, for those that are yet to be given back.
const ROOMS_BEYOND: u32 = 64;
/// The blocks that a compressed page can lie in.
const BLOCKS_MAX: usize = 2;
/// The number of pages that can be read by themselves at one time.
const SINGLES_MAX: usize = 64;
/// The least that a segment must have brought, in pages, for others to be read whole.
const WORTH_PAGES: u32 = 3;
/// After how many whole reads their use is halved, so that the last ones count most.
const READS_COUNTED: u32 = 64;
/// After how many it is known what they bring.
const READS_KNOWN: u32 = 16;
/// Of the reads of single pages one in so many is of a whole segment, to see whether that pays.
const READS_TRIED: u32 = 32;
const REFUSED_BITS: usize = u64::BITS as usize;
const SEGMENT: usize = SEGMENT_BYTES as usize;
const BLOCKS: usize = SEGMENT_PAGES as usize;

/// The work that compressed memory has done so far, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Compressed and put into memory.
    pub compressed: u64,
    /// Their size, in bytes.
    pub compressed_bytes: u64,
    /// Brought back from compressed memory, or from a segment that was read.
    pub decompressed: u64,
    /// Found to be hardly smaller, and stored as they are.
    pub refused: u64,
}

/// Compressed memory: the log, and its bytes.
pub struct Compressed {
    log: SegmentLog<Table<u64>>,
    /// A bit for each slot: the page stored there last did not compress.
    refused: Table<u64>,
    division: Division,
    /// The number of rooms for which there is memory that no frame has.
    rooms_allowed: u32,
    area: Mapping,
    /// The number of rooms of the area that have been opened.
    rooms_opened: u32,
    /// Those of them that have memory, and their number.
    is_backed: Vec<bool>,
    rooms_backed: u32,
    rooms_backed_peak: u32,
    rooms_most: u32,
    scratch: Vec<u8>,
    /// The table of the coder, which clears it for each page.
    coder: CompressTable,
    /// The segments on disk, or on their way there, by number.
    on_disk: Vec<OnDisk>,
    /// Pages that wait for a segment: with the transfer that they are of.
    waiting: Vec<(SegmentId, Waiter)>,
    /// Pages that are to be asked for again, the first one first.
    put_off: VecDeque<Waiter>,
    /// The memory that single pages are read to, and the places there not in use.
    singles: Mapping,
    singles_unused: Vec<u8>,
    writes: u32,
    reads: u32,
    /// Of the segments read whole of late: how many, and how many of their pages were wanted.
    locality: (u32, u32),
    reads_since_tried: u32,
    live: Vec<(SlotId, Found)>,
    tally: Tally,
}

/// A segment on disk.
#[derive(Clone, Copy)]
struct OnDisk {
    /// The slots whose space it has.
    homes: [SlotId; BLOCKS],
    /// True if it was read whole: its pages are counted as they are fetched.
    is_loaded: bool,
}

/// The note of a segment that is not on disk.
const NOT_ON_DISK: OnDisk = OnDisk {
    homes: [SlotId(0); BLOCKS],
    is_loaded: false,
};

/// A page of a transfer that waits for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) transfer: u32,
    pub(super) page: u8,
    pub(super) slot: SlotId,
}

/// The way to have a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It is in memory, at this place.
    Here(Found),
    /// Its segment is under way already.
    Coming(SegmentId),
    /// Its segment is to be read.
    Segment(SegmentId, Room, u32),
    /// Its blocks are to be read to this place.
    Single(Found, u8),
    /// There is no place to read it to: it is to be asked for again when there is.
    Later,
}

/// A page that could not be had from compressed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Damaged;

impl Compressed {
    /// Empty compressed memory for pages of `slots` slots, and at most seven eighths of `pages`.
    pub fn new(slots: u32, pages: u32) -> Result<Compressed, Errno> {
        let rooms_most = (pages - pages / 8).div_ceil(SEGMENT_PAGES) + ROOMS_BEYOND;
        Ok(Compressed {
            log: SegmentLog::new(Table::new(slots as usize)?),
            refused: Table::new((slots as usize).div_ceil(REFUSED_BITS))?,
            division: Division::new(pages),
            rooms_allowed: 0,
            area: Mapping::closed(rooms_most as usize * SEGMENT)?,
            rooms_opened: 0,
            is_backed: Vec::new(),
            rooms_backed: 0,
            rooms_backed_peak: 0,
            rooms_most,
            scratch: vec![0; SCRATCH_BYTES],
            coder: CompressTable::small(),
            on_disk: Vec::new(),
            waiting: Vec::with_capacity(64),
            put_off: VecDeque::with_capacity(64),
            singles: Mapping::anonymous(SINGLES_MAX * BLOCKS_MAX * PAGE)?,
            singles_unused: (0..SINGLES_MAX as u8).rev().collect(),
            writes: 0,
            reads: 0,
            locality: (1, 8),
            reads_since_tried: 0,
            live: Vec::with_capacity(256),
            tally: Tally::default(),
        })
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

    /// The range of compressed pages: the first address, and the one past the last.
    pub fn range(&self) -> (usize, usize) {
        (self.area.start(), self.area.start() + self.area.bytes())
    }

    /// The work done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Learns how much memory there is for frames and compressed pages together, in pages.
    pub fn set_budget(&mut self, pages: u32) {
        self.division.set_budget(pages);
    }

    /// Learns that `pages` are read that are not compressed.
    pub(super) fn note_plain(&mut self, pages: usize) {
        self.division.note_plain(pages as u32);
    }

    /// Learns how much memory no frame has: compressed pages may take so many pages of it.
    pub fn allow(&mut self, pages: u32) {
        self.rooms_allowed = pages / SEGMENT_PAGES;
    }

    /// The number of rooms that may be in use. Those that are backed and not in use have their
    /// memory.
    fn rooms_max(&self) -> u32 {
        let spare = self.rooms_backed - self.log.rooms().min(self.rooms_backed);
        self.rooms_allowed
            .saturating_sub(spare)
            .min(self.rooms_most)
    }

    /// Returns true if the page of `slot` is compressed, in memory or on disk.
    pub fn has(&self, slot: SlotId) -> bool {
        self.log.find(slot).is_some()
    }

    /// Forgets the page of `slot`.
    pub fn remove(&mut self, slot: SlotId) {
        self.log.remove(slot);
    }

    /// Compresses a page into memory. False if that gains too little, or there is no room.
    pub(super) fn put(&mut self, slot: SlotId, page: &[u8]) -> bool {
        let rooms_max = self.division.rooms_max().min(self.rooms_max());
        let into = &mut self.scratch[SUM_BYTES..];
        let packed = compress_into_with_table(page, into, &mut self.coder);
        let bytes = SUM_BYTES + packed.expect("there is room for what can't be compressed");
        let is_refused = bytes > BYTES_MAX;
        self.note_refused(slot, is_refused);
        if is_refused {
            self.tally.refused += 1;
            return false;
        }
        let Some((room, offset)) = self.log.append(slot, bytes as u32, rooms_max) else {
            return false;
        };
        if self.open(room).is_err() {
            self.log.remove(slot);
            return false;
        }
        let sum = xxh3_64(&self.scratch[SUM_BYTES..bytes]);
        self.scratch[..SUM_BYTES].copy_from_slice(&sum.to_ne_bytes());
        let at = place(room, offset);
        self.area
            .part_mut(at, bytes)
            .copy_from_slice(&self.scratch[..bytes]);
        self.tally.compressed += 1;
        self.tally.compressed_bytes += bytes as u64;
        true
    }

    /// Returns true if the page stored last in `slot` was tried and did not compress.
    pub(super) fn is_refused(&self, slot: SlotId) -> bool {
        let index = slot.0 as usize;
        self.refused[index / REFUSED_BITS] >> (index % REFUSED_BITS) & 1 > 0
    }

    /// Notes whether the page of `slot` did not compress. The table gets no memory for zeros.
    fn note_refused(&mut self, slot: SlotId, is_refused: bool) {
        if is_refused != self.is_refused(slot) {
            let index = slot.0 as usize;
            self.refused[index / REFUSED_BITS] ^= 1 << (index % REFUSED_BITS);
        }
    }

    /// Says what is to be done to have the page of `slot`, which is in the log.
    pub(super) fn seek(&mut self, slot: SlotId) -> Way {
        let found = self.log.find(slot).expect("the caller has asked");
        let segment = found.segment;
        if found.room.is_some() {
            // What has come along from disk would not have been touched there and then by itself.
            let is_loaded = self.is_loaded(segment);
            let origin = match is_loaded {
                true => Origin::Middle,
                false => self.log.origin_of(segment),
            };
            self.division.note(origin);
            self.locality.1 += u32::from(is_loaded);
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
            self.division.note(self.log.origin_of(segment));
            return Way::Single(found, place);
        }
        self.division.note(self.log.origin_of(segment));
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
    pub(super) fn put_off(&mut self, waiter: Waiter) {
        self.put_off.push_back(waiter);
    }

    /// Hands over the next page that is to be asked for again, if there is a place for it.
    pub(super) fn take_put_off(&mut self) -> Option<Waiter> {
        let has_place = !self.singles_unused.is_empty();
        has_place.then(|| self.put_off.pop_front()).flatten()
    }

    /// Has a page wait for a segment that is being read.
    pub(super) fn wait_for(&mut self, segment: SegmentId, waiter: Waiter) {
        self.waiting.push((segment, waiter));
    }

    /// Hands over the next page that waits for a segment.
    pub(super) fn take_waiter(&mut self, segment: SegmentId) -> Option<Waiter> {
        let at = self.waiting.iter().position(|(it, _)| *it == segment)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// Decompresses a page that is in memory into `frame`, and gives its compressed bytes up.
    pub(super) fn take(
        &mut self,
        slot: SlotId,
        found: Found,
        frame: &mut [u8],
    ) -> Result<(), Damaged> {
        let room = found.room.expect("its bytes are in memory");
        let at = place(room, found.offset);
        unpack(self.area.part(at, found.bytes as usize), frame)?;
        self.log.remove(slot);
        self.tally.decompressed += 1;
        Ok(())
    }

    /// Decompresses a page whose blocks have been read to `place`.
    pub(super) fn take_single(
        &mut self,
        slot: SlotId,
        found: Found,
        place: u8,
        frame: &mut [u8],
    ) -> Result<(), Damaged> {
        let at = single(place) + found.offset as usize % PAGE;
        unpack(self.singles.part(at, found.bytes as usize), frame)?;
        self.log.remove(slot);
        self.tally.decompressed += 1;
        Ok(())
    }

    /// Finds the page of `slot`, if it is in the log.
    pub(super) fn find(&self, slot: SlotId) -> Option<Found> {
        self.log.find(slot)
    }

    /// Gives the place of a single page back.
    pub(super) fn leave_single(&mut self, place: u8) {
        self.singles_unused.push(place);
    }

    /// Decompresses a page into `frame` and keeps it compressed. If it is on disk, `read` reads a
    /// block of a slot's space.
    pub(super) fn copy_out<Why: From<Damaged>>(
        &mut self,
        found: Found,
        frame: &mut [u8],
        mut read: impl FnMut(SlotId, &mut [u8]) -> Result<(), Why>,
    ) -> Result<(), Why> {
        let bytes = found.bytes as usize;
        if let Some(room) = found.room {
            return Ok(unpack(
                self.area.part(place(room, found.offset), bytes),
                frame,
            )?);
        }
        // Nothing else is read now: the last place is free, or what is there is read again.
        let at = single(SINGLES_MAX as u8 - 1);
        let homes = self.on_disk[found.segment.0 as usize].homes;
        for (index, block) in blocks_of(found).enumerate() {
            let into = self.singles.part_mut(at + index * PAGE, PAGE);
            read(homes[block], into)?;
        }
        let at = at + found.offset as usize % PAGE;
        Ok(unpack(self.singles.part(at, bytes), frame)?)
    }

    /// The memory of a part of a segment: `pages` from `start` on.
    pub(super) fn buffers(&self, room: Room, start: usize, pages: usize) -> Buffers {
        let at = room.0 as usize * SEGMENT + start * PAGE;
        Buffers::of_mapping(&self.area, at, pages * PAGE)
    }

    /// The memory of a part of what is read for a single page.
    pub(super) fn single_buffers(&self, place: u8, start: usize, pages: usize) -> Buffers {
        Buffers::of_mapping(&self.singles, single(place) + start * PAGE, pages * PAGE)
    }

    /// The slot whose space block `block` of a segment has.
    pub(super) fn home(&self, segment: SegmentId, block: usize) -> SlotId {
        self.on_disk[segment.0 as usize].homes[block]
    }

    /// Turns one bit over of a page in memory, as bad memory might.
    pub(super) fn flip(&mut self, found: Found) {
        let room = found.room.expect("it is in memory");
        let at = place(room, found.offset) + found.bytes as usize / 3;
        self.area.part_mut(at, 1)[0] ^= 0x10;
    }

    /// The same of a block that has been read, as a bad disk might.
    pub(super) fn flip_block(&mut self, room: Room, block: usize) {
        let at = place(room, 0) + block * PAGE + PAGE / 3;
        self.area.part_mut(at, 1)[0] ^= 0x10;
    }

    /// The same of a single page.
    pub(super) fn flip_single(&mut self, found: Found, place: u8) {
        let at = single(place) + found.offset as usize % PAGE + found.bytes as usize / 3;
        self.singles.part_mut(at, 1)[0] ^= 0x10;
    }

    /// Prepares a room to be written to.
    pub(super) fn open(&mut self, room: Room) -> Result<(), Errno> {
        if room.0 >= self.rooms_most {
            return Err(Errno::NOMEM);
        }
        if room.0 >= self.rooms_opened {
            // A few at a time, so that large areas take few calls.
            let more = (self.rooms_opened / 4).max(16) + room.0 + 1;
            let opened = more.min(self.rooms_most);
            let (from, to) = (self.rooms_opened as usize, opened as usize);
            self.area.open(from * SEGMENT, (to - from) * SEGMENT)?;
            self.rooms_opened = opened;
            self.is_backed.resize(opened as usize, false);
        }
        if !std::mem::replace(&mut self.is_backed[room.0 as usize], true) {
            self.rooms_backed += 1;
            self.rooms_backed_peak = self.rooms_backed_peak.max(self.rooms_backed);
        }
        Ok(())
    }

    /// Learns that a segment has been read, or could not be.
    pub(super) fn end_read(&mut self, segment: SegmentId, is_read: bool) {
        self.reads -= 1;
        self.log.end_read(segment, is_read);
    }

    /// Learns that a segment has been written, or could not be.
    pub(super) fn end_write(&mut self, segment: SegmentId, is_written: bool) {
        self.writes -= 1;
        self.log.end_write(segment, is_written);
    }

    /// Keeps house: fills in holes, makes room, and gives back what is free. Answers the next
    /// segment that is to be written, if there is one.
    pub(super) fn tend(
        &mut self,
        slots: &mut dyn Slots,
        may_write: bool,
    ) -> Option<(SegmentId, Room, u32)> {
        if self.division.is_due() {
            let pages = self.log.mark_parts();
            let whole = match self.locality {
                (reads, pages) if reads >= READS_KNOWN => Yield { reads, pages },
                _ => Yield { reads: 1, pages: 1 },
            };
            self.division.adapt(self.log.rooms(), pages, whole);
        }
        self.fill_holes(slots);
        let most = self.division.rooms_max();
        // So much room is kept for what comes next.
        let wanted = most.saturating_sub((most / 16).clamp(1, 8));
        while self.log.rooms() > wanted && self.log.drop_clean() {}
        self.give_back(slots);
        let leaving = self.writes + self.log.rooms_clean();
        if !may_write || self.writes >= WRITES_MAX || self.log.rooms() <= wanted + leaving {
            return None;
        }
        let homes = take_homes(slots)?;
        let Some((segment, room, bytes)) = self.log.begin_write() else {
            homes.into_iter().for_each(|slot| slots.release(slot));
            return None;
        };
        let index = segment.0 as usize;
        if self.on_disk.len() <= index {
            self.on_disk.resize(index + 1, NOT_ON_DISK);
        }
        self.on_disk[index].homes = homes;
        self.writes += 1;
        Some((segment, room, bytes))
    }

    fn fill_holes(&mut self, slots: &mut dyn Slots) {
        let mut live = std::mem::take(&mut self.live);
        while self.log.rooms() < self.rooms_max() && self.log.choose_to_clean(&mut live) {
            for &(slot, found) in &live {
                let from = place(found.room.expect("it is in memory"), found.offset);
                let bytes = found.bytes as usize;
                self.scratch[..bytes].copy_from_slice(self.area.part(from, bytes));
                let Some((room, offset)) = self.log.relocate(slot, found) else {
                    break;
                };
                self.open(room).expect("there are rooms to spare");
                let to = self.area.part_mut(place(room, offset), bytes);
                to.copy_from_slice(&self.scratch[..bytes]);
            }
            // So that the next one finds its room.
            self.give_back(slots);
        }
        self.live = live;
    }

    /// Gives back what nothing lies in any more.
    fn give_back(&mut self, slots: &mut dyn Slots) {
        while let Some(freed) = self.log.take_freed() {
            match freed {
                Freed::Room(_) if self.rooms_backed <= self.log.rooms() + ROOMS_SPARE => {}
                Freed::Room(room) => {
                    if std::mem::take(&mut self.is_backed[room.0 as usize]) {
                        self.rooms_backed -= 1;
                    }
                    let dropped = self.area.drop_part(room.0 as usize * SEGMENT, SEGMENT);
                    dropped.expect("the area is plain memory of this process");
                    self.log.use_last(room);
                }
                Freed::Disk(segment) => {
                    let known = &mut self.on_disk[segment.0 as usize];
                    let gone = std::mem::replace(known, NOT_ON_DISK);
                    gone.homes.into_iter().for_each(|slot| slots.release(slot));
                }
            }
        }
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

/// The blocks of its segment that a page lies in.
pub(super) fn blocks_of(found: Found) -> std::ops::Range<usize> {
    let start = found.offset as usize / PAGE;
    start..((found.offset + found.bytes) as usize).div_ceil(PAGE)
}

fn place(room: Room, offset: u32) -> usize {
    room.0 as usize * SEGMENT + offset as usize
}

fn single(place: u8) -> usize {
    place as usize * BLOCKS_MAX * PAGE
}

fn unpack(packed: &[u8], frame: &mut [u8]) -> Result<(), Damaged> {
    let (sum, packed) = packed.split_at(SUM_BYTES);
    if sum != xxh3_64(packed).to_ne_bytes() {
        return Err(Damaged);
    }
    match lz4_flex::block::decompress_into(packed, frame) {
        Ok(bytes) if bytes == frame.len() => Ok(()),
        Ok(_) | Err(_) => Err(Damaged),
    }
}
