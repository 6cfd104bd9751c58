//! The log of compressed pages: segments in memory and on disk, and which page lies where.
//!
//! Pages are found by their slots. A segment is written from its start to its end and not changed
//! after that; it lies in a *room* of memory, on disk, or in both. The driver moves the bytes: it
//! asks for the next move and reports its end.
//!
//! # Invariants
//! 1. A slot has one entry at most; `live` of a segment is the sum of the entries that name it.
//! 2. A segment without live bytes is free unless it is open or under way.
//! 3. The slots in `order` of a segment whose entries name it at that place are its live ones.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::DerefMut;

use super::division::{PARTS, Ranks};
use crate::id::SlotId;

/// The size of a segment, in bytes.
pub const SEGMENT_BYTES: u32 = 64 << 10;
/// A segment in pages.
pub const SEGMENT_PAGES: u32 = SEGMENT_BYTES / 4096;
/// Entries begin at multiples of this many bytes.
const ALIGNMENT: u32 = 8;
/// Holes are filled in when they are more than this part of the memory that the log has.
const HOLES_PART: u64 = 16;
/// The number of segments that are looked at for the one with the most holes: each time the next
/// ones, so that it will be one of the emptiest of all.
const LOOKED_AT: usize = 64;

/// A segment, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SegmentId(pub u32);

/// A place in memory for one segment, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Room(pub u32);

/// The place of a compressed page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its segment.
    pub segment: SegmentId,
    /// The room of that, if its bytes are in memory.
    pub room: Option<Room>,
    /// Its beginning in the segment, in bytes.
    pub offset: u32,
    /// Its compressed size.
    pub bytes: u32,
}

/// The state of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// Being filled.
    Open,
    /// In memory alone.
    Full,
    /// In memory, and on its way to disk.
    Writing,
    /// In memory and on disk.
    Clean,
    /// On disk alone.
    Disk,
    /// On its way from disk.
    Reading,
}

struct Segment {
    state: State,
    room: Option<Room>,
    /// Its place in the order in which segments leave memory.
    stamp: u64,
    /// The order in which its pages came, wherever they have been since.
    born: u64,
    /// The number of bytes of it that are written.
    used: u32,
    /// The number of those that are of live entries.
    live: u32,
    /// The number of live entries.
    count: u32,
    /// The slots whose pages were put here, in their order.
    order: Vec<SlotId>,
}

/// A room or a place on disk that has become free, for the keeper of the bytes. Until it is handed
/// over it has no owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freed {
    /// Nothing lies in this room any more.
    Room(Room),
    /// Nothing of this segment is needed on disk any more.
    Disk(SegmentId),
}

/// The two ends that are written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The end of the log for pages that have just left the frames.
    Young,
    /// Pages that were live in segments with many holes.
    Survivors,
}

/// The log. `Entries` has a number for each slot, all zero at first.
pub struct SegmentLog<Entries> {
    entries: Entries,
    segments: Vec<Segment>,
    unused: Vec<u32>,
    /// Rooms not in use. Those at the end are used first.
    rooms_free: VecDeque<Room>,
    rooms_made: u32,
    rooms_in_use: u32,
    open: [Option<SegmentId>; 2],
    /// Segments in memory alone, by age.
    full: BTreeSet<(u64, SegmentId)>,
    /// Segments in memory and on disk, by age.
    clean: BTreeSet<(u64, SegmentId)>,
    stamps: u64,
    /// Bytes in use in `full` and `clean`, and how many of them are live.
    still_used: u64,
    still_live: u64,
    pages: u64,
    pages_in_memory: u64,
    freed: Vec<Freed>,
    /// The least `born` of each part of the ranks, the youngest first, as they were last counted.
    parts: [u64; PARTS],
    ranks: Ranks,
    /// The number of pages that have come since then.
    uncounted: u64,
    /// The segment at which the next search for holes begins.
    looked_at: usize,
}

impl<Entries: DerefMut<Target = [u64]>> SegmentLog<Entries> {
    /// An empty log for as many slots as `entries` has numbers.
    pub fn new(entries: Entries) -> SegmentLog<Entries> {
        SegmentLog {
            entries,
            segments: Vec::new(),
            unused: Vec::new(),
            rooms_free: VecDeque::new(),
            rooms_made: 0,
            rooms_in_use: 0,
            open: [None; 2],
            full: BTreeSet::new(),
            clean: BTreeSet::new(),
            stamps: 0,
            still_used: 0,
            still_live: 0,
            pages: 0,
            pages_in_memory: 0,
            freed: Vec::new(),
            parts: [0; PARTS],
            ranks: Ranks::default(),
            uncounted: 0,
            looked_at: 0,
        }
    }

    /// Finds the page of `slot`, if it is in the log.
    pub fn find(&self, slot: SlotId) -> Option<Found> {
        let entry = Entry::unpack(self.entries[slot.0 as usize])?;
        Some(Found {
            segment: SegmentId(entry.segment),
            room: self.room_to_read(entry.segment),
            offset: entry.offset,
            bytes: entry.bytes,
        })
    }

    /// The room of a segment whose bytes are all there.
    fn room_to_read(&self, segment: u32) -> Option<Room> {
        let segment = &self.segments[segment as usize];
        segment.room.filter(|_| segment.state != State::Reading)
    }

    /// Puts a page of `bytes` at the young end. Answers where its bytes are to be written; nothing
    /// if that takes a room more than `rooms_max`.
    pub fn append(&mut self, slot: SlotId, bytes: u32, rooms_max: u32) -> Option<(Room, u32)> {
        let place = self.append_at(End::Young, slot, bytes, rooms_max, None)?;
        self.uncounted += 1;
        Some(place)
    }

    fn append_at(
        &mut self,
        end: End,
        slot: SlotId,
        bytes: u32,
        rooms_max: u32,
        source: Option<SegmentId>,
    ) -> Option<(Room, u32)> {
        assert!(bytes > 0 && bytes <= 4096);
        let length = bytes.next_multiple_of(ALIGNMENT);
        let fits = |it: SegmentId| self.segments[it.0 as usize].used + length <= SEGMENT_BYTES;
        let id = match self.open[end as usize] {
            Some(id) if fits(id) => id,
            other => {
                if self.rooms_in_use >= rooms_max {
                    return None;
                }
                if let Some(id) = other {
                    self.seal(id);
                }
                let id = self.open_segment(source);
                self.open[end as usize] = Some(id);
                id
            }
        };
        self.remove(slot);
        let segment = &mut self.segments[id.0 as usize];
        let offset = segment.used;
        segment.used += length;
        segment.live += length;
        segment.count += 1;
        self.pages_in_memory += 1;
        segment.order.push(slot);
        let room = segment.room.expect("an open segment has a room");
        self.entries[slot.0 as usize] = Entry {
            segment: id.0,
            offset,
            bytes,
        }
        .pack();
        self.pages += 1;
        Some((room, offset))
    }

    /// Notes of the page of `slot`, which is not in the log, that it hardly compresses, and when it
    /// leaves the frames, by a count of the caller's. Until the slot is [put to](Self::append) or
    /// [removed](Self::remove).
    pub fn note_refused(&mut self, slot: SlotId, leaves: u64) {
        assert!(self.find(slot).is_none());
        self.entries[slot.0 as usize] = REFUSED | leaves << COUNT_AT & !REFUSED;
    }

    /// Answers when the page leaves, if that was noted.
    pub fn find_refused(&self, slot: SlotId) -> Option<u64> {
        let bits = self.entries[slot.0 as usize];
        let is_refused = bits & REFUSED != 0 && Entry::unpack(bits).is_none();
        is_refused.then_some((bits & !REFUSED) >> COUNT_AT)
    }

    /// Takes the page of `slot` out of the log, if it is there.
    pub fn remove(&mut self, slot: SlotId) -> bool {
        let bits = self.entries[slot.0 as usize];
        if bits == 0 {
            return false;
        }
        self.entries[slot.0 as usize] = 0;
        let Some(entry) = Entry::unpack(bits) else {
            return false;
        };
        let length = entry.bytes.next_multiple_of(ALIGNMENT);
        let segment = &mut self.segments[entry.segment as usize];
        segment.live -= length;
        segment.count -= 1;
        self.pages_in_memory -= u64::from(segment.room.is_some());
        self.pages -= 1;
        if matches!(segment.state, State::Full | State::Clean) {
            self.still_live -= u64::from(length);
        }
        if segment.live == 0 {
            self.free_if_dead(SegmentId(entry.segment));
        }
        true
    }

    /// Frees a segment in which nothing is live, unless it is being filled or under way.
    fn free_if_dead(&mut self, id: SegmentId) {
        let segment = &mut self.segments[id.0 as usize];
        if segment.live > 0 {
            return;
        }
        let state = segment.state;
        match state {
            State::Free | State::Open | State::Writing | State::Reading => return,
            State::Full | State::Clean => self.unlist(id),
            State::Disk => {}
        }
        match state {
            State::Clean | State::Disk => self.freed.push(Freed::Disk(id)),
            _ => self.unused.push(id.0),
        }
        let segment = &mut self.segments[id.0 as usize];
        let room = segment.room.take();
        segment.state = State::Free;
        segment.order = Vec::new();
        if let Some(room) = room {
            self.give_room_back(room);
        }
    }

    fn give_room_back(&mut self, room: Room) {
        self.rooms_in_use -= 1;
        self.freed.push(Freed::Room(room));
    }

    fn take_room(&mut self) -> Room {
        self.rooms_in_use += 1;
        self.rooms_free.pop_back().unwrap_or_else(|| {
            self.rooms_made += 1;
            Room(self.rooms_made - 1)
        })
    }

    /// A segment to be filled: with pages of a `source` that has holes, or with those that come.
    fn open_segment(&mut self, source: Option<SegmentId>) -> SegmentId {
        let (stamp, born) = match source.map(|id| &self.segments[id.0 as usize]) {
            Some(source) => (source.stamp.saturating_sub(1), source.born),
            None => {
                self.stamps += 1;
                (self.stamps, self.stamps)
            }
        };
        let segment = Segment {
            state: State::Open,
            room: Some(self.take_room()),
            stamp,
            born,
            used: 0,
            live: 0,
            count: 0,
            order: Vec::new(),
        };
        match self.unused.pop() {
            Some(number) => {
                self.segments[number as usize] = segment;
                SegmentId(number)
            }
            None => {
                self.segments.push(segment);
                SegmentId(self.segments.len() as u32 - 1)
            }
        }
    }

    /// Ends the filling of a segment.
    fn seal(&mut self, id: SegmentId) {
        self.segments[id.0 as usize].order.shrink_to_fit();
        self.list(id, State::Full);
        self.free_if_dead(id);
    }

    /// Lists a segment among those that are `Full` or `Clean`.
    fn list(&mut self, id: SegmentId, state: State) {
        let segment = &mut self.segments[id.0 as usize];
        segment.state = state;
        self.still_used += u64::from(segment.used);
        self.still_live += u64::from(segment.live);
        let stamp = segment.stamp;
        self.set_of(state).insert((stamp, id));
    }

    /// Takes a segment off that list.
    fn unlist(&mut self, id: SegmentId) {
        let segment = &self.segments[id.0 as usize];
        self.still_used -= u64::from(segment.used);
        self.still_live -= u64::from(segment.live);
        let (state, stamp) = (segment.state, segment.stamp);
        self.set_of(state).remove(&(stamp, id));
    }

    fn set_of(&mut self, state: State) -> &mut BTreeSet<(u64, SegmentId)> {
        match state {
            State::Clean => &mut self.clean,
            _ => &mut self.full,
        }
    }

    /// The segment whose holes are to be filled in, if there are many: its live pages are to be
    /// [moved](Self::relocate), with their places.
    pub fn choose_to_clean(&mut self, into: &mut Vec<(SlotId, Found)>) -> bool {
        into.clear();
        let holes = self.still_used - self.still_live;
        if holes * HOLES_PART < self.still_used || self.full.len() + self.clean.len() < 2 {
            return false;
        }
        let all = self.segments.len();
        let looked_at = (0..all.min(LOOKED_AT)).map(|step| (self.looked_at + step) % all);
        let is_still = |it: &usize| matches!(self.segments[*it].state, State::Full | State::Clean);
        let emptiest = looked_at
            .filter(is_still)
            .min_by_key(|it| self.segments[*it].live);
        self.looked_at = (self.looked_at + LOOKED_AT) % all;
        let Some(id) = emptiest.map(|it| SegmentId(it as u32)) else {
            return false;
        };
        let segment = &self.segments[id.0 as usize];
        // Where it is nearly all live, the holes are elsewhere.
        if u64::from(segment.live) * 16 > u64::from(segment.used) * 15 {
            return false;
        }
        for slot in &segment.order {
            let found = self.find(*slot).filter(|found| found.segment == id);
            let is_new = |found: &Found| into.last().is_none_or(|(_, it)| it.offset < found.offset);
            into.extend(found.filter(is_new).map(|found| (*slot, found)));
        }
        true
    }

    /// Puts the page of `slot`, which lies in memory, among the survivors. Answers where its bytes
    /// are to be copied to.
    pub fn relocate(&mut self, slot: SlotId, found: Found) -> Option<(Room, u32)> {
        // There is a room to come: that of the segment that is being cleaned.
        let rooms_max = self.rooms_in_use + 1;
        self.append_at(
            End::Survivors,
            slot,
            found.bytes,
            rooms_max,
            Some(found.segment),
        )
    }

    /// Returns true if a segment is in memory alone and takes no more pages.
    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Chooses the oldest segment that is in memory alone to be written to disk. Answers it with
    /// its room and how many bytes there are.
    pub fn begin_write(&mut self) -> Option<(SegmentId, Room, u32)> {
        let (_, id) = *self.full.first()?;
        self.unlist(id);
        let segment = &mut self.segments[id.0 as usize];
        segment.state = State::Writing;
        Some((id, segment.room.expect("it is in memory"), segment.used))
    }

    /// Learns that a segment has been written, or could not be.
    pub fn end_write(&mut self, id: SegmentId, is_written: bool) {
        assert_eq!(self.segments[id.0 as usize].state, State::Writing);
        let state = match is_written {
            true => State::Clean,
            false => State::Full,
        };
        self.list(id, state);
        self.free_if_dead(id);
    }

    /// Takes the oldest segment that is on disk as well out of memory.
    pub fn drop_clean(&mut self) -> bool {
        let Some(&(_, id)) = self.clean.first() else {
            return false;
        };
        self.unlist(id);
        let segment = &mut self.segments[id.0 as usize];
        segment.state = State::Disk;
        self.pages_in_memory -= u64::from(segment.count);
        let room = segment.room.take().expect("it was in memory");
        self.give_room_back(room);
        true
    }

    /// Finds a room for a segment that is on disk. Answers it with how many bytes are to be read.
    /// The segment is young again.
    pub fn begin_read(&mut self, id: SegmentId) -> (Room, u32) {
        let room = self.take_room();
        self.stamps += 1;
        let segment = &mut self.segments[id.0 as usize];
        assert_eq!(segment.state, State::Disk);
        segment.state = State::Reading;
        segment.room = Some(room);
        self.pages_in_memory += u64::from(segment.count);
        segment.stamp = self.stamps;
        (room, segment.used)
    }

    /// Learns that a segment has been read, or could not be.
    pub fn end_read(&mut self, id: SegmentId, is_read: bool) {
        let segment = &mut self.segments[id.0 as usize];
        assert_eq!(segment.state, State::Reading);
        if is_read {
            self.list(id, State::Clean);
        } else {
            segment.state = State::Disk;
            self.pages_in_memory -= u64::from(segment.count);
            let room = segment.room.take().expect("it was being read to");
            self.give_room_back(room);
        }
        self.free_if_dead(id);
    }

    /// Returns true if a segment is on its way from disk.
    pub fn is_being_read(&self, id: SegmentId) -> bool {
        self.segments[id.0 as usize].state == State::Reading
    }

    /// The part of a segment's bytes that is live, in sixteenths.
    pub fn sixteenths_live(&self, id: SegmentId) -> u32 {
        let segment = &self.segments[id.0 as usize];
        segment.live * 16 / segment.used.max(1)
    }

    /// The part of the ranks, as they were last [counted](Self::count_ranks), in which the pages of
    /// a segment are. Before that all are in the last one.
    pub fn part_of(&self, id: SegmentId) -> usize {
        let born = self.segments[id.0 as usize].born;
        let part = self.parts.iter().position(|least| *least <= born);
        part.unwrap_or(PARTS - 1)
    }

    /// Returns true if the ranks are to be counted anew: as many pages have come as are in a part.
    pub fn is_count_due(&self) -> bool {
        self.uncounted * PARTS as u64 > self.pages
    }

    /// The ranks as they were last counted.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Counts the pages by their ranks anew: in parts of as many pages each, of whole segments.
    pub fn count_ranks(&mut self) {
        let there = self.segments.iter().filter(|it| it.count > 0);
        let mut all: Vec<(u64, u32)> = there.map(|it| (it.born, it.count)).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let whole = self.pages.max(1);
        self.uncounted = 0;
        let (mut before, mut part) = (0, 0);
        self.ranks = Ranks {
            in_memory: self.pages_in_memory,
            ..Ranks::default()
        };
        for (born, count) in all {
            // Segments of one age, which was split by their survivors, are in one part.
            let due = (before * PARTS as u64 / whole) as usize;
            if due > part && born < self.parts[part] {
                // None is in those that a large segment goes past.
                self.parts[part + 1..=due].fill(u64::MAX);
                part = due.min(PARTS - 1);
            }
            self.parts[part] = born;
            self.ranks.pages[part] += u64::from(count);
            before += u64::from(count);
        }
        self.parts[part..].fill(0);
    }

    /// Hands over the next thing that has become free. It is not used again before.
    pub fn take_freed(&mut self) -> Option<Freed> {
        let freed = self.freed.pop()?;
        match freed {
            Freed::Room(room) => self.rooms_free.push_back(room),
            Freed::Disk(segment) => self.unused.push(segment.0),
        }
        Some(freed)
    }

    /// Has the room that was last handed over as free used after all others: it has no memory.
    pub fn use_last(&mut self, room: Room) {
        let last = self.rooms_free.pop_back();
        assert_eq!(last, Some(room));
        self.rooms_free.push_front(room);
    }

    /// The number of rooms of memory in use.
    pub fn rooms(&self) -> u32 {
        self.rooms_in_use
    }

    /// The number of rooms that are on disk as well, and can be had at once.
    pub fn rooms_clean(&self) -> u32 {
        self.clean.len() as u32
    }

    /// The number of pages in the log, in memory or on disk.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Panics if the tables contradict each other.
    pub fn check(&self) {
        let mut live = alloc::vec![0u32; self.segments.len()];
        for entry in self.entries.iter().filter_map(|bits| Entry::unpack(*bits)) {
            live[entry.segment as usize] += entry.bytes.next_multiple_of(ALIGNMENT);
        }
        for (segment, live) in self.segments.iter().zip(live) {
            let is_free = segment.state == State::Free;
            assert!(is_free || segment.live == live);
            assert!(!is_free || live == 0 && segment.room.is_none());
            assert_eq!(
                segment.room.is_some(),
                !matches!(segment.state, State::Free | State::Disk)
            );
        }
        let in_memory = self.segments.iter().filter(|it| it.room.is_some());
        let pages: u64 = in_memory.map(|it| u64::from(it.count)).sum();
        assert_eq!(pages, self.pages_in_memory);
        let rooms = self.segments.iter().filter(|it| it.room.is_some()).count();
        assert_eq!(rooms, self.rooms_in_use as usize);
        let count = |state| self.segments.iter().filter(|it| it.state == state).count();
        assert_eq!(count(State::Full), self.full.len());
        assert_eq!(count(State::Clean), self.clean.len());
        let ids = self.full.iter().chain(&self.clean).map(|(_, id)| *id);
        let still = ids.map(|id| &self.segments[id.0 as usize]);
        let sums = still.fold((0, 0), |(used, live), it| {
            (used + u64::from(it.used), live + u64::from(it.live))
        });
        assert_eq!(sums, (self.still_used, self.still_live));
    }
}

/// The entry of a page that is not in the log, as it hardly compresses: one of no bytes.
const REFUSED: u64 = 1 << 63;
/// The lowest bit of the count that such an entry has.
const COUNT_AT: u32 = 13;

/// The place of a page, as it is kept: in one number, of no bytes if nowhere.
#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    offset: u32,
    bytes: u32,
}

impl Entry {
    fn pack(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.offset) << 13 | u64::from(self.bytes)
    }

    fn unpack(bits: u64) -> Option<Entry> {
        let bytes = bits as u32 & 0x1fff;
        (bytes > 0).then_some(Entry {
            segment: (bits >> 32) as u32,
            offset: (bits as u32) >> 13,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests;
