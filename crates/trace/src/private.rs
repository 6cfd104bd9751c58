//! The part of a program's memory that a live engine manages: private anonymous memory, and
//! mappings of the files that were named to it.
//!
//! Recorded are all references: to code, stacks, files, shared memory. [`PrivateMemory`] takes away
//! what is none of an engine's business, so that what is left can be set beside a live run. It
//! follows the rules of `tidemark run`: the small zeroed data at the end of a loaded file and the
//! stacks of threads, known by the guard below them, are left out. A trace does not say how the
//! program has opened a file: what an engine leaves alone for that stays in.
//!
//! # Invariants
//! 1. A block that has been kept tells the same times as before: what passed between two records
//!    that stay is the gap between them (a gap of more than 32 bits is cut to that).

use std::collections::BTreeMap;

use crate::event::{Event, LifeEvent, MappingEvent, Memory};
use crate::model::{Block, Header, Rights};
use crate::spans::Spans;

/// Zeroed data at the end of a loaded file is not managed up to this size.
const FILE_TAIL_BYTES: u64 = 4 << 20;
/// A guard below a stack is at most this large.
const GUARD_BYTES_MAX: u64 = 64 << 10;
/// In step, mappings are managed from this size on: as in the live engine.
pub const LARGE_BYTES_LEAST: u64 = 4 << 20;
/// An engine learns of mappings from this size on, and finds others.
const TOLD_BYTES_LEAST: u64 = 128 << 10;
/// The number of answers remembered for a process.
const RECENT: usize = 1 << 12;

/// The private anonymous memory that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All private memory.
    All,
    /// Memory mapped in pieces of at least 4 MiB. It is all managed memory in step, where time is
    /// counted in faults: an engine learns of such pieces before their first touch, and can do
    /// without finding the others.
    Large,
}

/// The memory that is managed.
#[derive(Clone, Copy)]
pub struct Managed<'a> {
    /// The private anonymous memory.
    pub extent: Extent,
    /// Tells by its path a file whose mappings are managed, too.
    pub files: Option<&'a dyn Fn(&str) -> bool>,
}

impl From<Extent> for Managed<'_> {
    fn from(extent: Extent) -> Self {
        Managed {
            extent,
            files: None,
        }
    }
}

/// Takes a trace's blocks in their order, and takes other memory out of them.
pub struct PrivateMemory<'a> {
    managed: Managed<'a>,
    page_bytes: u64,
    processes: BTreeMap<u32, Process>,
    has_maps: bool,
}

/// The mappings of a process.
#[derive(Debug)]
struct Process {
    /// The mapped spans: what is not listed is not mapped, or not known to be.
    spans: Spans<Kind>,
    /// The bounds of the heap.
    heap: Option<(u64, u64)>,
    /// The heap has just been refused more.
    is_refused: bool,
    /// Answers for pages, by their lowest bits.
    recent: Vec<(u64, bool)>,
    /// Its time at the last record that stayed.
    ended: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Private and anonymous.
    Managed,
    /// Private and anonymous, without any rights yet.
    Reserved,
    /// A file's.
    File,
    /// A file's that is managed.
    Copy,
    /// None of the engine's business for another reason.
    Other,
}

impl Kind {
    fn is_managed(self) -> bool {
        matches!(self, Kind::Managed | Kind::Reserved | Kind::Copy)
    }
}

impl<'a> PrivateMemory<'a> {
    /// Starts with a trace's header.
    pub fn new(header: &Header, managed: impl Into<Managed<'a>>) -> PrivateMemory<'a> {
        PrivateMemory {
            managed: managed.into(),
            page_bytes: header.page_bytes,
            processes: BTreeMap::new(),
            has_maps: false,
        }
    }

    /// Returns true if the blocks so far told the mappings. Without that nothing is taken out.
    pub fn has_maps(&self) -> bool {
        self.has_maps
    }

    /// Takes the records and events of other memory out of `block`, the next of the trace.
    pub fn keep(&mut self, block: &mut Block) {
        let has_maps = |block: &Block| {
            let mut events = block.events.iter();
            events.any(|placed| matches!(placed.event, Event::Mapping(MappingEvent::Map { .. })))
        };
        if !self.has_maps && !has_maps(block) {
            return;
        }
        self.has_maps = true;
        let (managed, page_bytes) = (self.managed, self.page_bytes);
        let process = self.processes.entry(block.process);
        let process = process.or_insert_with(Process::new);
        let mut time = block.time_start;
        let mut last = *process.ended.get_or_insert(time);
        let (mut kept, mut read) = (0, 0);
        let events = std::mem::take(&mut block.events);
        let time_start = last;
        for mut placed in events {
            for at in read..placed.after as usize {
                time += u64::from(block.gaps[at]);
                process.pass(block, at, time, (&mut kept, &mut last));
            }
            read = placed.after as usize;
            let event = process.follow(placed.event, managed, page_bytes);
            if let Some(event) = event {
                (placed.after, placed.event) = (kept as u32, event);
                placed.time = placed.time.max(last);
                block.events.push(placed);
            }
        }
        for at in read..block.len() {
            time += u64::from(block.gaps[at]);
            process.pass(block, at, time, (&mut kept, &mut last));
        }
        block.pages.truncate(kept);
        block.kinds.truncate(kept);
        block.gaps.truncate(kept);
        block.time_start = time_start;
        process.ended = Some(last);
    }
}

impl Process {
    fn new() -> Process {
        Process {
            spans: Spans::default(),
            heap: None,
            is_refused: false,
            recent: vec![(u64::MAX, false); RECENT],
            ended: None,
        }
    }

    /// Moves the record at `at` to the end of those kept, if it is to stay.
    fn pass(
        &mut self,
        block: &mut Block,
        at: usize,
        time: u64,
        (kept, last): (&mut usize, &mut u64),
    ) {
        let page = block.pages[at];
        if !self.is_managed(page) {
            return;
        }
        let gap = u32::try_from(time - *last).unwrap_or(u32::MAX);
        block.pages[*kept] = page;
        block.kinds[*kept] = block.kinds[at];
        block.gaps[*kept] = gap;
        *last += u64::from(gap);
        *kept += 1;
    }

    fn is_managed(&mut self, page: u64) -> bool {
        let slot = page as usize % RECENT;
        let (known, answer) = self.recent[slot];
        if known == page {
            return answer;
        }
        let found = self.spans.find(page);
        let answer = found.is_some_and(|(_, kind)| kind.is_managed());
        self.recent[slot] = (page, answer);
        answer
    }

    /// Takes in what happened; what of it concerns managed memory, or none.
    fn follow(&mut self, event: Event, managed: Managed<'_>, page_bytes: u64) -> Option<Event> {
        match event {
            Event::Mapping(event) => self.change(event, managed, page_bytes),
            // None takes a step.
            Event::Life(LifeEvent::Wait { .. })
            | Event::Windows { .. }
            | Event::Visit
            | Event::Size { .. } => (managed.extent == Extent::All).then_some(event),
            // The system's cache of files is none of an engine's business.
            Event::File(_) => None,
            Event::Life(LifeEvent::Exec { .. }) => {
                self.spans.clear();
                self.heap = None;
                self.forget();
                Some(event)
            }
            Event::Life(_) | Event::Mark { .. } => Some(event),
        }
    }

    fn change(
        &mut self,
        event: MappingEvent,
        managed: Managed<'_>,
        page_bytes: u64,
    ) -> Option<Event> {
        match event {
            MappingEvent::Map { .. } => self.map(&event, managed, page_bytes),
            MappingEvent::Unmap { start, pages } => self.unmap(start, pages),
            MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap((from, from_pages), (to, to_pages)),
            MappingEvent::Protect {
                start,
                pages,
                rights,
            } => self.protect(start, pages, rights, page_bytes),
            MappingEvent::Break { end } => self.set_break(end, managed.extent),
            MappingEvent::StackGrowth { start, pages } => self.unmap(start, pages),
        }
    }

    fn map(
        &mut self,
        event: &MappingEvent,
        managed: Managed<'_>,
        page_bytes: u64,
    ) -> Option<Event> {
        let MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared,
            memory,
            offset,
        } = event
        else {
            return None;
        };
        let (start, pages, extent) = (*start, *pages, managed.extent);
        let is_anonymous = matches!(memory, Memory::Anonymous | Memory::Inner);
        let is_piece = std::mem::take(&mut self.is_refused) && is_anonymous;
        let is_told =
            *memory == Memory::Anonymous && pages.saturating_mul(page_bytes) >= TOLD_BYTES_LEAST;
        let kind = match memory {
            Memory::File(path) if is_copy(managed, path, (*rights, *is_shared)) => Kind::Copy,
            _ if *is_shared => Kind::Other,
            Memory::Heap => heap_kind(extent),
            Memory::Anonymous | Memory::Inner => {
                let is_inner = *memory == Memory::Inner;
                self.judge(start, pages, *rights, is_inner, extent, page_bytes)
            }
            Memory::HeapPiece | Memory::Stack | Memory::Special(_) => Kind::Other,
            Memory::File(_) => Kind::File,
        };
        if *memory == Memory::Heap {
            self.heap = Some((start, start + pages));
        }
        let is_taken = self.put(start, start + pages, kind);
        match kind.is_managed() {
            // An engine leaves rights to the program: to it, all memory can be written but that of
            // files which the program shares.
            true => Some(Event::Mapping(MappingEvent::Map {
                start,
                pages,
                rights: match is_shared {
                    true => Rights::READ,
                    false => Rights(Rights::READ.0 | Rights::WRITE.0),
                },
                is_shared: false,
                memory: match memory {
                    Memory::Heap | Memory::File(_) => memory.clone(),
                    _ if is_piece => Memory::HeapPiece,
                    _ if is_told => Memory::Anonymous,
                    _ => Memory::Inner,
                },
                offset: memory.file().map_or(0, |_| *offset),
            })),
            false => is_taken.then_some(Event::Mapping(MappingEvent::Unmap { start, pages })),
        }
    }

    /// The kind of an anonymous mapping, going by itself and by what is below it.
    fn judge(
        &self,
        start: u64,
        pages: u64,
        rights: Rights,
        is_inner: bool,
        extent: Extent,
        page_bytes: u64,
    ) -> Kind {
        let bytes = pages.saturating_mul(page_bytes);
        let below = start.checked_sub(1).and_then(|last| self.spans.find(last));
        let below = below.filter(|(place, _)| place.end == start);
        // Valgrind maps upwards: what `malloc` maps may lie right above a file by chance.
        let is_tail = !is_inner && matches!(below, Some((_, Kind::File)));
        let is_guard = below.is_some_and(|(place, kind)| {
            *kind == Kind::Reserved && (start - place.start) * page_bytes <= GUARD_BYTES_MAX
        });
        if rights.0 & Rights::EXECUTE.0 != 0
            || is_tail && bytes <= FILE_TAIL_BYTES
            || rights.0 != 0 && is_guard
            || extent == Extent::Large && bytes < LARGE_BYTES_LEAST
        {
            return Kind::Other;
        }
        match rights.0 {
            0 => Kind::Reserved,
            _ => Kind::Managed,
        }
    }

    fn unmap(&mut self, start: u64, pages: u64) -> Option<Event> {
        let is_taken = self.cut(start, start.saturating_add(pages));
        is_taken.then_some(Event::Mapping(MappingEvent::Unmap { start, pages }))
    }

    fn remap(&mut self, from: (u64, u64), to: (u64, u64)) -> Option<Event> {
        let moved = self.spans.find(from.0);
        let kind = moved.map_or(Kind::Other, |(_, kind)| *kind);
        self.cut(from.0, from.0.saturating_add(from.1));
        let is_taken = self.put(to.0, to.0.saturating_add(to.1), kind);
        let (start, pages) = to;
        match kind.is_managed() {
            true => Some(Event::Mapping(MappingEvent::Remap {
                from: from.0,
                from_pages: from.1,
                to: to.0,
                to_pages: to.1,
            })),
            false => is_taken.then_some(Event::Mapping(MappingEvent::Unmap { start, pages })),
        }
    }

    /// A reservation that is opened but for a guard below becomes a thread's stack.
    fn protect(
        &mut self,
        start: u64,
        pages: u64,
        rights: Rights,
        page_bytes: u64,
    ) -> Option<Event> {
        let (place, kind) = self.spans.find(start)?;
        if *kind != Kind::Reserved || rights.0 == 0 {
            return None;
        }
        let guard_bytes = (start - place.start) * page_bytes;
        let end = start.saturating_add(pages);
        let is_stack = (1..=GUARD_BYTES_MAX).contains(&guard_bytes) && end == place.end;
        if !is_stack {
            return None;
        }
        self.put(start, end, Kind::Other);
        Some(Event::Mapping(MappingEvent::Unmap { start, pages }))
    }

    /// The first report about an unmapped heap is its beginning.
    fn set_break(&mut self, end: u64, extent: Extent) -> Option<Event> {
        self.is_refused = self.heap.is_some_and(|(_, before)| before == end);
        let (start, before) = self.heap.unwrap_or((end, end));
        let end = end.max(start);
        self.cut(start, before.max(end));
        self.put(start, end, heap_kind(extent));
        self.heap = Some((start, end));
        (extent == Extent::All).then_some(Event::Mapping(MappingEvent::Break { end }))
    }

    /// Has the pages from `start` to before `end` be of that kind; whether any was managed.
    fn put(&mut self, start: u64, end: u64, kind: Kind) -> bool {
        let was_managed = self.cut(start, end);
        self.spans.insert(start, end, kind);
        was_managed
    }

    /// Takes the pages from `start` to before `end` away from whatever they belong to; whether any
    /// of them was managed.
    fn cut(&mut self, start: u64, end: u64) -> bool {
        self.forget();
        let removed = self.spans.cut(start, end);
        removed.iter().any(|kind| kind.is_managed())
    }

    fn forget(&mut self) {
        self.recent.fill((u64::MAX, false));
    }
}

/// Returns true if an engine manages such a mapping of the file at `path`.
fn is_copy(managed: Managed<'_>, path: &str, (rights, is_shared): (Rights, bool)) -> bool {
    let has = |right: Rights| rights.0 & right.0 != 0;
    let is_left_alone = has(Rights::EXECUTE) || rights.0 == 0 || is_shared && has(Rights::WRITE);
    !is_left_alone && managed.files.is_some_and(|is_named| is_named(path))
}

/// The heap grows in small pieces.
fn heap_kind(extent: Extent) -> Kind {
    match extent {
        Extent::All => Kind::Managed,
        Extent::Large => Kind::Other,
    }
}

#[cfg(test)]
mod tests;
