//! Compressed memory in front of the swap file.
//!
//! The core's [tier](tidemark_core::compressed::tier) says where each page lies, which segment
//! leaves next and how a page comes back; here are the bytes. A page is compressed by LZ4 as it is
//! stored, and taken out of the log as it is fetched: from then on its frame is all there is of it.
//! What does not become smaller by a quarter goes to the swap file as it is, by the way of all
//! pages.
//!
//! # Invariants
//! 1. A room that the kernel reads or writes is not touched: its segment is under way.

use lz4_flex::block::{CompressTable, compress_into_with_table};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use tidemark_core::compressed::log::{Found, Room, SEGMENT_BYTES, SegmentId};
use tidemark_core::compressed::tier::{BLOCKS_MAX, Bytes, SINGLES_MAX, Tier, rooms_most};
use tidemark_core::id::{FrameId, SlotId};
use tidemark_core::memory::swap_slots::Slots;

use super::faults::FLIPPED;
use crate::machine::LiveMachine;
use crate::shared::{SIZE_BUCKET_BYTES, SIZE_BUCKETS};
use crate::sys::memory::{Mapping, Table};
use crate::sys::ring::Buffers;
use crate::sys::{Errno, PAGE};

pub use tidemark_core::compressed::tier::Tally;
pub(super) use tidemark_core::compressed::tier::{Way, blocks_of};

/// The most that LZ4 may need for one page.
const SCRATCH_BYTES: usize = SUM_BYTES + lz4_flex::block::get_maximum_output_size(PAGE);
/// Compressed bytes stand behind their XXH3 sum.
const SUM_BYTES: usize = size_of::<u64>();
const SEGMENT: usize = SEGMENT_BYTES as usize;

/// Compressed memory: the tier, and its bytes.
pub struct Compressed {
    tier: Tier<Table<u64>, Waiter>,
    area: Area,
    scratch: Vec<u8>,
    /// The table of the coder, which clears it for each page.
    coder: CompressTable,
    /// The memory that single pages are read to.
    singles: Mapping,
    /// The number of pages in each bucket of sizes since this was last taken.
    sizes: [u32; SIZE_BUCKETS],
    /// The number of pages stored since one was tried: the next that is tried stands for them, too.
    untried: u32,
}

/// The memory of rooms.
struct Area {
    mapping: Mapping,
    /// The number of rooms that have been opened, and the most there may be.
    rooms_opened: u32,
    rooms_most: u32,
}

/// A page of a transfer that waits for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) transfer: u32,
    pub(super) page: u8,
    pub(super) slot: SlotId,
}

/// The fate of a page that was to be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Put {
    /// The page was compressed, and is in compressed memory.
    Kept,
    /// The page is in compressed memory uncompressed, without a checksum.
    Raw,
    /// The page is not put into compressed memory: it goes to the file.
    Not,
    /// The page can't be stored: memory is full, and there is no file.
    NoRoom,
}

/// A page that could not be had from compressed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Damaged;

impl Compressed {
    /// Empty compressed memory for pages of `slots` slots, and at most seven eighths of `pages`.
    /// Without a file all of it stays in memory.
    pub fn new(slots: u32, pages: u32, has_file: bool) -> Result<Compressed, Errno> {
        let tier = Tier::new(Table::new(slots as usize)?, pages);
        let rooms_most = rooms_most(pages);
        Ok(Compressed {
            tier: match has_file {
                true => tier,
                false => tier.without_disk(),
            },
            area: Area {
                mapping: Mapping::closed(rooms_most as usize * SEGMENT)?,
                rooms_opened: 0,
                rooms_most,
            },
            scratch: vec![0; SCRATCH_BYTES],
            coder: CompressTable::small(),
            singles: Mapping::anonymous(SINGLES_MAX * BLOCKS_MAX * PAGE)?,
            sizes: [0; SIZE_BUCKETS],
            untried: 0,
        })
    }

    /// The tier, which decides.
    pub(super) fn tier(&mut self) -> &mut Tier<Table<u64>, Waiter> {
        &mut self.tier
    }

    /// Has all that is in memory leave, and nothing more come, until that is taken back.
    pub fn set_emptying(&mut self, is_emptying: bool) {
        self.tier.set_emptying(is_emptying);
    }

    /// The memory that compressed pages have, in pages.
    pub fn pages_held(&self) -> u32 {
        self.tier.pages_held()
    }

    /// The most that ever was.
    pub fn pages_held_peak(&self) -> u32 {
        self.tier.pages_held_peak()
    }

    /// The number of segments on their way to disk.
    pub fn leaving(&self) -> u32 {
        self.tier.leaving()
    }

    /// Puts the page in `frame`, if it is not of zeros, which take no memory.
    pub(super) fn put_unless_zero(
        &mut self,
        slot: SlotId,
        frame: FrameId,
        machine: &mut LiveMachine,
    ) -> Put {
        self.tier.remove(slot);
        if machine.is_zero(frame) {
            self.sizes[0] += 1;
            return Put::Not;
        }
        match self.put(slot, machine.pool().bytes_of(frame)) {
            Put::NoRoom if !self.tier.is_alone() => Put::Not,
            put => put,
        }
    }

    /// Takes the numbers of pages by compressed size, for [`record_sizes`].
    ///
    /// [`record_sizes`]: crate::shared::Process::record_sizes
    pub fn take_sizes(&mut self) -> [u32; SIZE_BUCKETS] {
        std::mem::take(&mut self.sizes)
    }

    /// The range of compressed pages: the first address, and the one past the last.
    pub fn range(&self) -> (usize, usize) {
        let mapping = &self.area.mapping;
        (mapping.start(), mapping.start() + mapping.bytes())
    }

    /// The work done so far.
    pub fn tally(&self) -> Tally {
        self.tier.tally()
    }

    /// Returns true if the page of `slot` is compressed, in memory or on disk.
    pub fn has(&self, slot: SlotId) -> bool {
        self.tier.find(slot).is_some()
    }

    /// Returns true if the page of `slot` is compressed in memory, on disk as well or not.
    pub fn has_in_memory(&self, slot: SlotId) -> bool {
        self.tier
            .find(slot)
            .is_some_and(|found| found.room.is_some())
    }

    /// Returns true if the page of `slot` is to be compressed the next time it leaves.
    pub(super) fn wants(&self, slot: SlotId) -> bool {
        self.tier.wants(slot)
    }

    /// Compresses a page into memory, unless that gains too little or there is no room.
    fn put(&mut self, slot: SlotId, page: &[u8]) -> Put {
        if !self.tier.is_worth_trying() {
            self.untried += 1;
            self.tier.refuse(slot);
            return Put::NoRoom;
        }
        let into = &mut self.scratch[SUM_BYTES..];
        let packed = compress_into_with_table(page, into, &mut self.coder);
        let bytes = SUM_BYTES + packed.expect("there is room for what can't be compressed");
        self.sizes[(1 + bytes / SIZE_BUCKET_BYTES).min(SIZE_BUCKETS - 1)] +=
            1 + std::mem::take(&mut self.untried);
        // Without a file a page is kept as it is where that takes less.
        let is_raw = self.tier.is_alone() && bytes >= PAGE;
        let kept = if is_raw { PAGE } else { bytes };
        let Some((room, offset)) = self.tier.put(slot, kept as u32, &mut self.area) else {
            return Put::NoRoom;
        };
        if is_raw {
            self.area.part_mut(room, offset, PAGE).copy_from_slice(page);
            return Put::Raw;
        }
        let sum = xxh3_64(&self.scratch[SUM_BYTES..bytes]);
        self.scratch[..SUM_BYTES].copy_from_slice(&sum.to_ne_bytes());
        let packed = &self.scratch[..bytes];
        self.area
            .part_mut(room, offset, bytes)
            .copy_from_slice(packed);
        Put::Kept
    }

    /// Decompresses a page that is in memory into `frame`, and gives its compressed bytes up. `sum`
    /// is that of a page that is kept as it is.
    pub(super) fn take(
        &mut self,
        slot: SlotId,
        found: Found,
        sum: u128,
        frame: &mut [u8],
    ) -> Result<(), Damaged> {
        unpack(self.area.found(found), sum, frame)?;
        self.tier.note_taken(slot);
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
        unpack(self.singles.part(at, found.bytes as usize), 0, frame)?;
        self.tier.note_taken(slot);
        Ok(())
    }

    /// Finds the page of `slot`, if it is in the log.
    pub(super) fn find(&self, slot: SlotId) -> Option<Found> {
        self.tier.find(slot)
    }

    /// Decompresses a page into `frame` and keeps it compressed. If it is on disk, `read` reads a
    /// block of a slot's space.
    pub(super) fn copy_out<Why: From<Damaged>>(
        &mut self,
        found: Found,
        sum: u128,
        frame: &mut [u8],
        mut read: impl FnMut(SlotId, &mut [u8]) -> Result<(), Why>,
    ) -> Result<(), Why> {
        if found.room.is_some() {
            return Ok(unpack(self.area.found(found), sum, frame)?);
        }
        // Nothing else is read now: the last place is free, or what is there is read again.
        let at = single(SINGLES_MAX as u8 - 1);
        for (index, block) in blocks_of(found).enumerate() {
            let into = self.singles.part_mut(at + index * PAGE, PAGE);
            read(self.tier.home(found.segment, block), into)?;
        }
        let at = at + found.offset as usize % PAGE;
        Ok(unpack(
            self.singles.part(at, found.bytes as usize),
            0,
            frame,
        )?)
    }

    /// The memory of a part of a segment: `pages` from `start` on.
    pub(super) fn buffers(&self, room: Room, start: usize, pages: usize) -> Buffers {
        let at = room.0 as usize * SEGMENT + start * PAGE;
        Buffers::of_mapping(&self.area.mapping, at, pages * PAGE)
    }

    /// A block of a segment in memory.
    pub(super) fn block(&self, room: Room, block: usize) -> &[u8] {
        let at = place(room, (block * PAGE) as u32);
        self.area.mapping.part(at, PAGE)
    }

    /// A block of a segment in memory, to write.
    pub(super) fn block_mut(&mut self, room: Room, block: usize) -> &mut [u8] {
        self.area.part_mut(room, (block * PAGE) as u32, PAGE)
    }

    /// A block of what was read for a single page, to write.
    pub(super) fn single_block_mut(&mut self, place: u8, block: usize) -> &mut [u8] {
        self.singles.part_mut(single(place) + block * PAGE, PAGE)
    }

    /// The memory of a part of what is read for a single page.
    pub(super) fn single_buffers(&self, place: u8, start: usize, pages: usize) -> Buffers {
        Buffers::of_mapping(&self.singles, single(place) + start * PAGE, pages * PAGE)
    }

    /// The slot whose space block `block` of a segment has.
    pub(super) fn home(&self, segment: SegmentId, block: usize) -> SlotId {
        self.tier.home(segment, block)
    }

    /// Turns one bit over of a page in memory, as bad memory might.
    pub(super) fn flip(&mut self, found: Found) {
        let room = found.room.expect("it is in memory");
        self.area.part_mut(room, found.offset + found.bytes / 3, 1)[0] ^= FLIPPED;
    }

    /// Flips a bit of a block that has been read, as a bad disk might.
    pub(super) fn flip_block(&mut self, room: Room, block: usize) {
        let at = (block * PAGE + PAGE / 3) as u32;
        self.area.part_mut(room, at, 1)[0] ^= FLIPPED;
    }

    /// Flips a bit of a single page that has been read.
    pub(super) fn flip_single(&mut self, found: Found, place: u8) {
        let at = single(place) + found.offset as usize % PAGE + found.bytes as usize / 3;
        self.singles.part_mut(at, 1)[0] ^= FLIPPED;
    }

    /// Prepares a room to be written to.
    pub(super) fn open(&mut self, room: Room) -> Result<(), Errno> {
        self.tier.open(room, &mut self.area)
    }

    /// Keeps house: see [`Tier::tend`].
    pub(super) fn tend(
        &mut self,
        slots: &mut dyn Slots,
        may_write: bool,
    ) -> Option<(SegmentId, Room, u32)> {
        self.tier.tend(slots, &mut self.area, may_write)
    }
}

impl Area {
    /// The bytes of a page that is in memory.
    fn found(&self, found: Found) -> &[u8] {
        let room = found.room.expect("its bytes are in memory");
        self.mapping
            .part(place(room, found.offset), found.bytes as usize)
    }

    fn part_mut(&mut self, room: Room, offset: u32, bytes: usize) -> &mut [u8] {
        self.mapping.part_mut(place(room, offset), bytes)
    }
}

impl Bytes for Area {
    type Error = Errno;

    fn open(&mut self, room: Room) -> Result<(), Errno> {
        if room.0 >= self.rooms_most {
            return Err(Errno::NOMEM);
        }
        if room.0 >= self.rooms_opened {
            // A few at a time, so that large areas take few calls.
            let more = (self.rooms_opened / 4).max(16) + room.0 + 1;
            let opened = more.min(self.rooms_most);
            let (from, to) = (self.rooms_opened as usize, opened as usize);
            self.mapping.open(from * SEGMENT, (to - from) * SEGMENT)?;
            self.rooms_opened = opened;
        }
        Ok(())
    }

    fn copy(&mut self, from: (Room, u32), to: (Room, u32), bytes: u32) {
        let (from, to) = (place(from.0, from.1), place(to.0, to.1));
        self.mapping.copy_part(from, to, bytes as usize);
    }

    fn close(&mut self, room: Room) {
        let dropped = self.mapping.drop_part(place(room, 0), SEGMENT);
        dropped.expect("the area is plain memory of this process");
    }
}

fn place(room: Room, offset: u32) -> usize {
    room.0 as usize * SEGMENT + offset as usize
}

fn single(place: u8) -> usize {
    place as usize * BLOCKS_MAX * PAGE
}

/// Brings a page back from what it was compressed to, or from itself, whose sum is `raw_sum`.
fn unpack(packed: &[u8], raw_sum: u128, frame: &mut [u8]) -> Result<(), Damaged> {
    if packed.len() == PAGE {
        frame.copy_from_slice(packed);
        return match xxh3_128(frame) == raw_sum {
            true => Ok(()),
            false => Err(Damaged),
        };
    }
    let (sum, packed) = packed.split_at(SUM_BYTES);
    if sum != xxh3_64(packed).to_ne_bytes() {
        return Err(Damaged);
    }
    match lz4_flex::block::decompress_into(packed, frame) {
        Ok(bytes) if bytes == frame.len() => Ok(()),
        Ok(_) | Err(_) => Err(Damaged),
    }
}
