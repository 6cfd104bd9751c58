//! The simulated translation hardware: page tables with reference and modify bits.
//!
//! Each space has one table, a plain array in chunks of neighbours (see [`script`](super::script)),
//! so that a hit is one look-up and stays out of the core. Bits are kept per mapping, as hardware
//! does, and are folded into the frame when a mapping goes.
//!
//! # Invariants
//! 1. A table entry is mapped exactly when the chain of its frame has a link for it.
//! 2. `mapped` of a table counts its mapped entries.

use std::collections::{BTreeSet, VecDeque};

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::seams::machine::{Machine, Modification, PageBits, Rights, Setback};

use crate::analysis::references::Numbers;
use crate::analysis::simulate::MachineKind;

use super::script::{CHUNK, Course, Record};

/// The frame's number is in the lowest bits.
const FRAME_BITS: u32 = 28;
const FRAME: u32 = (1 << FRAME_BITS) - 1;
/// The entry maps.
const PRESENT: u32 = 1 << 28;
/// Stores are allowed. With `PRESENT` only.
const WRITABLE: u32 = 1 << 29;
/// Used since this was last taken.
const REFERENCED: u32 = 1 << 30;
/// Stored to since this was last taken.
const MODIFIED: u32 = 1 << 31;
/// The value of an entry in place of a frame whose page the core knows nothing of. It has no link.
const STANDING: u32 = FRAME;
/// No link.
const NONE: u32 = u32::MAX;
/// Entries of one page table of a 32-bit machine, a page of them.
const TABLE_ENTRIES: u64 = 1024;

/// The way a run over records ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// All records are done.
    End,
    /// The time is up, within the gap before the next record.
    Time,
    /// The next record's page can't be used as it asks.
    Fault,
}

/// The result of a run over records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ran {
    /// Records done.
    pub(super) records: usize,
    /// Time spent since the start of the first gap, in the records' unit.
    pub(super) units: u64,
    /// The part of it that belongs to the gap before the next record.
    pub(super) gap_spent: u64,
    pub(super) stop: Stop,
}

/// One space's page table.
pub(super) struct Table {
    entries: Vec<u32>,
    numbers: Numbers,
    chunks: u32,
    mapped: u32,
    /// The page tables that have had an entry, by what they cover: a table stays until its space
    /// ends.
    pages: BTreeSet<u64>,
}

impl Table {
    fn new(course: &Course) -> Table {
        let chunks = course.bases.len();
        Table {
            entries: vec![0; chunks * CHUNK as usize],
            numbers: course.numbers.clone(),
            chunks: chunks as u32,
            mapped: 0,
            pages: BTreeSet::new(),
        }
    }

    /// Uses pages as `records` say, until `units_max` units of time have passed since the start of
    /// the gap before the first, or a page can't be used. `seen` learns the frame of each use, and
    /// how much time has passed.
    #[inline]
    pub(super) fn run(
        &mut self,
        records: &[Record],
        units_max: u64,
        mut seen: impl FnMut(FrameId, u64),
    ) -> Ran {
        let mut units = 0;
        for (number, record) in records.iter().enumerate() {
            let next = units + u64::from(record.gap);
            if next > units_max {
                return Ran {
                    records: number,
                    units: units_max,
                    gap_spent: units_max - units,
                    stop: Stop::Time,
                };
            }
            units = next;
            let (wanted, marks) = marks_of(*record);
            let entry = &mut self.entries[record.place() as usize];
            if *entry & wanted != wanted {
                return Ran {
                    records: number,
                    units,
                    gap_spent: u64::from(record.gap),
                    stop: Stop::Fault,
                };
            }
            *entry |= marks;
            seen(FrameId(*entry & FRAME), units);
        }
        Ran {
            records: records.len(),
            units,
            gap_spent: 0,
            stop: Stop::End,
        }
    }

    /// Uses one page after a fault, if it can be used. A bit does not show the fault that brought
    /// the page: it shows whether the page is used *again*.
    pub(super) fn run_again(&mut self, record: Record, was_resident: bool) -> Option<FrameId> {
        let (wanted, mut marks) = marks_of(record);
        let entry = &mut self.entries[record.place() as usize];
        if *entry & wanted != wanted {
            return None;
        }
        if !was_resident {
            marks &= !REFERENCED;
        }
        *entry |= marks;
        Some(FrameId(*entry & FRAME))
    }

    /// The first record of the instruction of `record`, before that one, whose page can't be used
    /// any more.
    pub(super) fn find_lost(&self, course: &Course, record: usize) -> Option<usize> {
        let mut before = course.instruction_start(record)..record;
        before.find(|&number| {
            let record = course.records[number];
            let (wanted, _) = marks_of(record);
            self.entries[record.place() as usize] & wanted != wanted
        })
    }

    /// The number of pages mapped.
    pub(super) fn mapped(&self) -> u32 {
        self.mapped
    }

    fn place_of(&mut self, at: VirtPage) -> u32 {
        let chunk = self.numbers.number(at.0 / CHUNK, self.chunks);
        if chunk == self.chunks {
            self.chunks += 1;
            self.entries
                .resize(self.chunks as usize * CHUNK as usize, 0);
        }
        chunk * CHUNK as u32 + (at.0 % CHUNK) as u32
    }
}

#[inline]
fn marks_of(record: Record) -> (u32, u32) {
    match record.is_store() {
        true => (PRESENT | WRITABLE, REFERENCED | MODIFIED),
        false => (PRESENT, REFERENCED),
    }
}

#[derive(Clone, Copy)]
struct Link {
    space: u32,
    place: u32,
    next: u32,
}

/// The work the tables were made to do, for their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Mappings entered and removed.
    pub(super) mappings: u64,
    /// Frames filled with zeros.
    pub(super) zeros: u64,
    /// Frames copied.
    pub(super) copies: u64,
}

/// The page tables of all spaces.
pub(super) struct Tables {
    kind: MachineKind,
    tables: Vec<Option<Table>>,
    /// The mappings of each frame.
    heads: Vec<u32>,
    links: Vec<Link>,
    spare: u32,
    /// The reference bits of mappings that are gone, by frame.
    was_referenced: Vec<bool>,
    was_modified: Vec<bool>,
    /// Pages that no slot holds any more, though they are not modified, by frame.
    is_unsaved: Vec<bool>,
    /// True if pages mapped for writing count as modified.
    is_suspicious: bool,
    setbacks: VecDeque<(FrameId, Setback)>,
    work: Work,
    /// Entries there are, and the most there have been.
    mapped: u64,
    mapped_max: u64,
    /// The page tables there are, and the most there have been, each a page of entries.
    table_pages: u64,
    table_pages_max: u64,
}

impl Tables {
    pub(super) fn new(kind: MachineKind, frames: u32, is_suspicious: bool) -> Tables {
        assert!(frames < STANDING);
        let frames = frames as usize;
        Tables {
            kind,
            tables: Vec::new(),
            heads: vec![NONE; frames],
            links: Vec::new(),
            spare: NONE,
            was_referenced: vec![false; frames],
            was_modified: vec![false; frames],
            is_unsaved: vec![false; frames],
            is_suspicious,
            setbacks: VecDeque::new(),
            work: Work::default(),
            mapped: 0,
            mapped_max: 0,
            table_pages: 0,
            table_pages_max: 0,
        }
    }

    /// Makes a table for `space`, with room for the pages of `course`.
    pub(super) fn create(&mut self, space: SpaceId, course: &Course) {
        let number = space.0 as usize;
        if self.tables.len() <= number {
            self.tables.resize_with(number + 1, || None);
        }
        assert!(self.tables[number].is_none());
        self.tables[number] = Some(Table::new(course));
    }

    /// Ends the table of `space`, which maps nothing.
    pub(super) fn destroy(&mut self, space: SpaceId) {
        let table = self.tables[space.0 as usize].take();
        let table = table.expect("a space has a table until it ends");
        assert_eq!(table.mapped, 0);
        self.table_pages -= table.pages.len() as u64;
    }

    pub(super) fn table(&mut self, space: SpaceId) -> &mut Table {
        let table = self.tables[space.0 as usize].as_mut();
        table.expect("a running process has a page table")
    }

    /// The number of pages that `space` maps.
    pub(super) fn mapped(&self, space: SpaceId) -> u32 {
        self.tables[space.0 as usize]
            .as_ref()
            .map_or(0, Table::mapped)
    }

    /// The most entries there have been at one time, in all tables together.
    pub(super) fn mapped_max(&self) -> u64 {
        self.mapped_max
    }

    /// The most page tables there have been at one time, of all spaces together, each a page of
    /// 1,024 entries as on 32-bit machines.
    pub(super) fn table_pages_max(&self) -> u64 {
        self.table_pages_max
    }

    /// Takes the work done since the last call.
    pub(super) fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// Panics if tables and chains contradict each other.
    pub(super) fn check(&self) {
        let mut linked = vec![0; self.tables.len()];
        for (frame, &head) in self.heads.iter().enumerate() {
            let mut at = head;
            while at != NONE {
                let link = self.links[at as usize];
                let table = self.tables[link.space as usize].as_ref();
                let entry = table.expect("links lead to tables").entries[link.place as usize];
                assert!(entry & PRESENT != 0);
                assert_eq!((entry & FRAME) as usize, frame);
                linked[link.space as usize] += 1;
                at = link.next;
            }
        }
        for (table, linked) in self.tables.iter().zip(linked) {
            let Some(table) = table else { continue };
            let is_mapped = |entry: &&u32| **entry & PRESENT != 0 && **entry & FRAME != STANDING;
            let mapped = table.entries.iter().filter(is_mapped);
            assert_eq!((table.mapped, mapped.count()), (linked, linked as usize));
        }
    }

    /// Notes of the page in `frame` whether it is nowhere else.
    pub(super) fn mark_unsaved(&mut self, frame: FrameId, is_unsaved: bool) {
        self.is_unsaved[frame.index()] = is_unsaved;
    }

    /// Lets a page stand that the host has filled, and the core knows nothing of.
    pub(super) fn let_stand(&mut self, space: SpaceId, at: VirtPage) {
        let place = self.table(space).place_of(at);
        let entry = self.entry(space.0, place);
        assert_eq!(*entry & PRESENT, 0, "two pages at {at:?}");
        *entry = PRESENT | WRITABLE | STANDING;
    }

    /// Takes away a page that stands.
    pub(super) fn remove_standing(&mut self, space: SpaceId, at: VirtPage) {
        let place = self.table(space).place_of(at);
        let entry = std::mem::take(self.entry(space.0, place));
        assert_eq!(entry & FRAME, STANDING);
    }

    fn entry(&mut self, space: u32, place: u32) -> &mut u32 {
        let table = self.tables[space as usize].as_mut();
        &mut table.expect("mappings stand in tables").entries[place as usize]
    }

    /// Counts an entry that has been made.
    fn count_entry(&mut self, space: SpaceId, at: VirtPage) {
        let table = self.table(space);
        table.mapped += 1;
        if table.pages.insert(at.0 / TABLE_ENTRIES) {
            self.table_pages += 1;
            self.table_pages_max = self.table_pages_max.max(self.table_pages);
        }
        self.mapped += 1;
        self.mapped_max = self.mapped_max.max(self.mapped);
        self.work.mappings += 1;
    }

    /// Removes the mapping of `frame` at `place` from its table, keeping what its bits say.
    fn clear(&mut self, frame: FrameId, space: u32, place: u32) {
        let entry = std::mem::take(self.entry(space, place));
        assert!(entry & PRESENT != 0 && entry & FRAME == frame.0);
        self.was_referenced[frame.index()] |= entry & REFERENCED != 0;
        self.was_modified[frame.index()] |= entry & MODIFIED != 0;
        let table = self.tables[space as usize].as_mut();
        table.expect("just used").mapped -= 1;
        self.mapped -= 1;
        self.work.mappings += 1;
    }

    fn unmap_all(&mut self, frame: FrameId) -> bool {
        let mut at = std::mem::replace(&mut self.heads[frame.index()], NONE);
        let was_mapped = at != NONE;
        while at != NONE {
            let Link { space, place, next } = self.links[at as usize];
            self.clear(frame, space, place);
            self.give_link(at);
            at = next;
        }
        was_mapped
    }

    fn unmap_one(&mut self, frame: FrameId, space: u32, place: u32) -> bool {
        let (mut before, mut at) = (NONE, self.heads[frame.index()]);
        while at != NONE {
            let link = self.links[at as usize];
            if (link.space, link.place) == (space, place) {
                match before {
                    NONE => self.heads[frame.index()] = link.next,
                    before => self.links[before as usize].next = link.next,
                }
                self.clear(frame, space, place);
                self.give_link(at);
                return true;
            }
            (before, at) = (at, link.next);
        }
        false
    }

    fn link(&mut self, frame: FrameId, space: u32, place: u32) {
        let next = self.heads[frame.index()];
        let link = Link { space, place, next };
        self.heads[frame.index()] = match self.spare {
            NONE => {
                self.links.push(link);
                self.links.len() as u32 - 1
            }
            spare => {
                self.spare = std::mem::replace(&mut self.links[spare as usize], link).next;
                spare
            }
        };
    }

    fn give_link(&mut self, at: u32) {
        self.links[at as usize].next = self.spare;
        self.spare = at;
    }

    /// Applies `change` to each entry that maps `frame`.
    fn each_entry(&mut self, frame: FrameId, mut change: impl FnMut(&mut u32)) {
        let mut at = self.heads[frame.index()];
        while at != NONE {
            let Link { space, place, next } = self.links[at as usize];
            change(self.entry(space, place));
            at = next;
        }
    }

    fn forget_page(&mut self, frame: FrameId) {
        self.was_referenced[frame.index()] = false;
        self.was_modified[frame.index()] = false;
    }
}

impl Machine for Tables {
    fn enter(&mut self, space: SpaceId, at: VirtPage, frame: FrameId, rights: Rights) {
        let place = self.table(space).place_of(at);
        let bits = match rights {
            Rights::None => unreachable!("what is entered can be used"),
            Rights::Read => PRESENT | frame.0,
            Rights::Write if self.is_suspicious => PRESENT | WRITABLE | MODIFIED | frame.0,
            Rights::Write => PRESENT | WRITABLE | frame.0,
        };
        let entry = *self.entry(space.0, place);
        if entry & PRESENT != 0 && entry & FRAME == STANDING {
            // The host refuses to put a page where one stands.
            self.setbacks.push_back((frame, Setback::Gone));
            return;
        }
        if entry & PRESENT != 0 {
            let held = entry & FRAME;
            assert_eq!(held, frame.0, "a mapping leaves before another comes");
            *self.entry(space.0, place) = bits | (entry & (REFERENCED | MODIFIED));
            return;
        }
        *self.entry(space.0, place) = bits;
        self.count_entry(space, at);
        self.link(frame, space.0, place);
    }

    fn restrict(&mut self, frame: FrameId, rights: Rights) {
        match rights {
            Rights::None => {
                self.unmap_all(frame);
            }
            Rights::Read => self.each_entry(frame, |entry| *entry &= !WRITABLE),
            Rights::Write => {}
        }
    }

    fn leave(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        let place = self.table(space).place_of(at);
        self.unmap_one(frame, space.0, place);
    }

    fn discard(&mut self, frame: FrameId) {
        self.unmap_all(frame);
        self.forget_page(frame);
    }

    fn zero(&mut self, frame: FrameId) {
        self.forget_page(frame);
        self.is_unsaved[frame.index()] = false;
        self.work.zeros += 1;
    }

    fn copy(&mut self, _from: FrameId, to: FrameId) {
        self.forget_page(to);
        self.is_unsaved[to.index()] = false;
        self.work.copies += 1;
    }

    fn adopt(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) {
        let place = self.table(space).place_of(at);
        let entry = self.entry(space.0, place);
        assert!(*entry & PRESENT != 0 && *entry & FRAME == STANDING);
        *entry = PRESENT | WRITABLE | REFERENCED | MODIFIED | frame.0;
        self.is_unsaved[frame.index()] = false;
        self.count_entry(space, at);
        self.link(frame, space.0, place);
    }

    fn relocate(&mut self, space: SpaceId, from: VirtPage, to: VirtPage, frame: FrameId) {
        let (old, new) = {
            let table = self.table(space);
            (table.place_of(from), table.place_of(to))
        };
        let entry = *self.entry(space.0, old);
        if entry & PRESENT == 0 || entry & FRAME != frame.0 {
            return;
        }
        assert!(self.unmap_one(frame, space.0, old));
        *self.entry(space.0, new) = entry;
        self.count_entry(space, to);
        self.link(frame, space.0, new);
    }

    fn retire(&mut self, frame: FrameId) {
        self.forget_page(frame);
    }

    fn settle(&mut self) {}

    fn take_setback(&mut self) -> Option<(FrameId, Setback)> {
        self.setbacks.pop_front()
    }
}

impl PageBits for Tables {
    fn take_referenced(&mut self, frame: FrameId) -> bool {
        match self.kind {
            MachineKind::SoftFaults => self.unmap_all(frame),
            MachineKind::Bits => {
                let mut found = std::mem::take(&mut self.was_referenced[frame.index()]);
                self.each_entry(frame, |entry| {
                    found |= *entry & REFERENCED != 0;
                    *entry &= !REFERENCED;
                });
                found
            }
        }
    }

    fn take_referenced_at(&mut self, space: SpaceId, at: VirtPage, frame: FrameId) -> bool {
        let place = self.table(space).place_of(at);
        if self.kind == MachineKind::SoftFaults {
            return self.unmap_one(frame, space.0, place);
        }
        let entry = self.entry(space.0, place);
        if *entry & PRESENT == 0 || *entry & FRAME != frame.0 {
            return false;
        }
        let was_referenced = *entry & REFERENCED != 0;
        *entry &= !REFERENCED;
        was_referenced
    }

    fn answers_arrival(&self) -> bool {
        self.kind == MachineKind::SoftFaults
    }

    fn take_modified(&mut self, frame: FrameId) -> bool {
        self.take_modification(frame) != Modification::None
    }

    fn take_modification(&mut self, frame: FrameId) -> Modification {
        assert_eq!(self.heads[frame.index()], NONE, "asked of unmapped frames");
        let was_modified = self.was_modified[frame.index()];
        let is_unsaved = self.is_unsaved[frame.index()];
        self.forget_page(frame);
        match (was_modified, is_unsaved) {
            (false, false) => Modification::None,
            // In step every page that can be written to counts as modified; and a live engine
            // takes no sum of what no store holds.
            (true, false) if !self.is_suspicious => Modification::Written,
            (true, _) | (false, true) => Modification::Possible,
        }
    }

    fn may_be_modified(&self, frame: FrameId) -> bool {
        let mut at = self.heads[frame.index()];
        let mut found = self.was_modified[frame.index()] || self.is_unsaved[frame.index()];
        while at != NONE {
            let Link { space, place, next } = self.links[at as usize];
            let table = self.tables[space as usize].as_ref();
            let entry = table.expect("links lead to tables").entries[place as usize];
            found |= entry & MODIFIED != 0;
            at = next;
        }
        found
    }
}
