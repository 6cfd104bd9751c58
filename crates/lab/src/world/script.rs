//! Scripts: traces in memory, in the form in which the world runs them.
//!
//! A record takes 8 bytes, whatever the trace: the place of its page in the page table of its
//! process, whether it stores, and the time since the record before. Scripts are read-only once
//! made: runs that go on at the same time share one.
//!
//! Pages are numbered in *chunks* of [`CHUNK`] neighbours, so that a page table is a plain array
//! and neighbours share a line of the processor's cache, wherever a program puts its memory.
//!
//! # Invariants
//! 1. The place of every record lies in a chunk that has a base.
//! 2. Events stand in order of their place, which is at most the number of records.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use tidemark_trace::{
    Block, Copied, Error, Event, FileEvent, Granularity, Header, Kinds, LifeEvent, MappingEvent,
    Reader, TimeUnit,
};

use super::files::FILE_PAGES;
use super::order::is_of_process;
use crate::analysis::references::Numbers;

/// The number of neighbouring pages numbered together.
pub(crate) const CHUNK: u64 = 16;
/// The wait, until its next use, of a page that has none.
pub(crate) const NO_USE: u64 = u64::MAX;
/// The bit of a record that tells whether it stores.
const STORES: u32 = 1 << 31;
/// The bit that tells whether it is of the same instruction as the record before.
const SAME: u32 = 1 << 30;
/// Virtual page numbers that fit the core's spaces.
const PAGES_MAX: u64 = 1 << 52;

/// One use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    place: u32,
    /// Time since the record before, in the script's unit.
    pub(crate) gap: u32,
}

impl Record {
    /// The page's place in its process's page table.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.place & !(STORES | SAME)
    }

    /// Returns true if the page is modified.
    #[inline]
    pub(crate) fn is_store(self) -> bool {
        self.place & STORES != 0
    }

    /// Returns true if the instruction has used the page of the record before, too. Told of traces
    /// that keep every change of page and count instructions.
    fn is_of_same(self) -> bool {
        self.place & SAME != 0
    }
}

/// The work of one thread until another goes on, or until something that concerns all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The thread, by its number among those of the course.
    pub(crate) thread: usize,
    /// The numbers of records and events of the process that are over when it begins, and when it
    /// is over.
    pub(crate) record_start: usize,
    pub(crate) record_end: usize,
    pub(crate) event_start: usize,
    pub(crate) event_end: usize,
    /// The thread's next turn.
    pub(crate) next: Option<usize>,
    /// True if it concerns the whole process: all before it must be over, and none after it begun.
    pub(crate) is_alone: bool,
    /// The event that must have happened before: the thread's start, by its number among the
    /// events.
    pub(crate) needs: Option<usize>,
}

/// The course of one process.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// Its number in the recorded system, and its parent's; 0 where that is not known.
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The path of its program.
    pub(crate) program: String,
    /// The process's time before its first record, for a process that is not forked.
    pub(crate) records: Vec<Record>,
    /// The events, each with the number of records before it.
    pub(crate) events: Vec<(u64, Event)>,
    /// Its threads' turns, in order, the first of each thread; and all of it as one.
    pub(crate) turns: Vec<Turn>,
    pub(crate) firsts: Vec<usize>,
    pub(crate) whole: Turn,
    /// The state by which turns are distinguished while the trace is read.
    threads: Threads,
    /// From a chunk's address to its number.
    pub(crate) numbers: Numbers,
    /// The first page of each chunk.
    pub(crate) bases: Vec<u64>,
    /// The pages of each chunk that are used, a bit each.
    used: Vec<u16>,
    /// True if the last record is of an access by the kernel, page by page.
    is_kernel: bool,
    /// For each record how much later its page is used again, once that was asked for.
    waits: OnceLock<Vec<u64>>,
}

impl Course {
    fn new() -> Course {
        Course {
            pid: 0,
            parent: 0,
            program: String::new(),
            records: Vec::new(),
            events: Vec::new(),
            turns: Vec::new(),
            firsts: Vec::new(),
            whole: Turn::default(),
            threads: Threads::default(),
            numbers: Numbers::new(),
            bases: Vec::new(),
            used: Vec::new(),
            is_kernel: false,
            waits: OnceLock::new(),
        }
    }

    /// For each record how much of the process's time passes until its page is used again, in the
    /// script's unit: [`NO_USE`] if it never is. Takes as much memory as the records, from the
    /// first call on.
    pub(crate) fn waits(&self) -> &[u64] {
        self.waits.get_or_init(|| {
            let mut waits = vec![NO_USE; self.records.len()];
            // The time from each page's next use to the end, of those that have one.
            let mut uses = vec![NO_USE; self.bases.len() * CHUNK as usize];
            let mut left = 0;
            for (record, wait) in self.records.iter().zip(&mut waits).rev() {
                let used = std::mem::replace(&mut uses[record.place() as usize], left);
                if used != NO_USE {
                    *wait = left - used;
                }
                left += u64::from(record.gap);
            }
            waits
        })
    }

    /// Begins a turn of the thread with that number on record, after the records so far. Records
    /// before the first turn are that thread's.
    fn switch(&mut self, thread: u32, after: u64) {
        if self.threads.running.is_some() {
            self.end_turn(after as usize);
        }
        self.threads.running = Some(thread);
    }

    /// Ends the turn at hand. One in which nothing happened is none.
    fn end_turn(&mut self, record_end: usize) {
        let event_end = self.events.len();
        let before = self.turns.last().copied().unwrap_or_default();
        if (record_end, event_end) == (before.record_end, before.event_end) {
            return;
        }
        let number = self.turns.len();
        let running = self.threads.running.unwrap_or(0);
        let known = self.threads.known.get_mut(&running);
        let (thread, needs) = match known {
            Some((thread, last)) => {
                self.turns[*last].next = Some(number);
                *last = number;
                (*thread, None)
            }
            None => {
                let thread = self.firsts.len();
                self.firsts.push(number);
                self.threads.known.insert(running, (thread, number));
                (thread, self.threads.starts.get(&running).copied())
            }
        };
        let events = &self.events[before.event_end..];
        self.turns.push(Turn {
            thread,
            record_start: before.record_end,
            record_end,
            event_start: before.event_end,
            event_end,
            next: None,
            is_alone: events.iter().any(|(_, event)| is_of_process(event)),
            needs,
        });
    }

    /// Ends the turns at the end of the script.
    fn end_turns(&mut self) {
        self.end_turn(self.records.len());
        self.threads = Threads::default();
        self.whole = Turn {
            record_end: self.records.len(),
            event_end: self.events.len(),
            ..Turn::default()
        };
        if self.turns.is_empty() {
            self.turns.push(self.whole);
            self.firsts.push(0);
        }
    }

    /// Takes in an event that the world acts upon, after the records so far.
    fn happen(&mut self, event: &Event, after: u64) {
        let is_alone = is_of_process(event);
        if is_alone {
            // It alone is what the others have to do with.
            self.end_turn(after as usize);
        }
        let number = self.events.len();
        if let Event::Life(LifeEvent::ThreadStart { thread }) = event {
            self.threads.starts.insert(*thread, number);
        }
        self.events.push((after, event.clone()));
        if is_alone {
            self.end_turn(after as usize);
        }
    }

    /// The address of a place.
    pub(crate) fn page_at(&self, place: u32) -> u64 {
        self.bases[place as usize / CHUNK as usize] + u64::from(place) % CHUNK
    }

    /// The first record of the instruction that `record` is of.
    pub(crate) fn instruction_start(&self, record: usize) -> usize {
        let same = self.records[..=record].iter().rev();
        record - same.take_while(|record| record.is_of_same()).count()
    }

    fn push(&mut self, page: u64, kinds: Kinds, gap: u32) {
        let fresh = self.bases.len() as u32;
        let chunk = self.numbers.number(page / CHUNK, fresh);
        if chunk == fresh {
            assert!(u64::from(fresh) < u64::from(SAME) / CHUNK);
            self.bases.push(page - page % CHUNK);
            self.used.push(0);
        }
        self.used[chunk as usize] |= 1 << (page % CHUNK);
        let place = chunk * CHUNK as u32 + (page % CHUNK) as u32;
        let is_kernel = kinds.has(Kinds::KERNEL);
        let is_same = gap == 0 && !is_kernel && !self.is_kernel && !self.records.is_empty();
        self.is_kernel = is_kernel;
        let stores = if is_store(kinds) { STORES } else { 0 };
        let same = if is_same { SAME } else { 0 };
        self.records.push(Record {
            place: place | stores | same,
            gap,
        });
    }

    /// Makes the first use of every page a store.
    fn store_first(&mut self) {
        let mut unused = self.used.clone();
        for record in &mut self.records {
            let place = record.place();
            let bit = 1 << (u64::from(place) % CHUNK);
            let chunk = &mut unused[place as usize / CHUNK as usize];
            if *chunk & bit != 0 {
                *chunk &= !bit;
                record.place |= STORES;
            }
        }
    }

    /// Moves chunks to where their numbers are: page numbers that are not addresses need not fit
    /// an address space.
    fn fold(&mut self) {
        self.numbers = Numbers::new();
        for chunk in 0..self.bases.len() as u32 {
            self.bases[chunk as usize] = u64::from(chunk) * CHUNK;
            assert_eq!(self.numbers.number(u64::from(chunk), chunk), chunk);
        }
    }

    pub(super) fn pages(&self) -> u64 {
        let bits = self.used.iter().map(|used| u64::from(used.count_ones()));
        bits.sum()
    }
}

/// The state of a process's threads while its trace is read.
#[derive(Clone, Debug, Default)]
struct Threads {
    /// By their numbers on record: which of the course's each is, and its last turn.
    known: BTreeMap<u32, (usize, usize)>,
    /// The thread of the present turn; unknown until the first switch.
    running: Option<u32>,
    /// The events that start threads.
    starts: BTreeMap<u32, usize>,
}

/// A trace in memory: what the processes of one program do.
///
/// A trace without mappings says nothing of what its pages hold. Each of its processes is given
/// one region of anonymous memory, and the first use of a page is taken for a store, so that its
/// contents have to be kept. So is a use of which the trace doesn't say what it was.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) courses: Vec<Course>,
    /// The files that are mapped, read and written, and how many pages each has at least.
    pub(crate) files: BTreeMap<String, u64>,
    copied_pages: u64,
    time: TimeUnit,
    page_bytes: u64,
    has_maps: bool,
}

impl Script {
    /// Reads what is left of a trace. A file that was cut off gives what comes before the cut;
    /// the reader's ending tells.
    ///
    /// # Errors
    /// If the trace can't be read or is damaged.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Result<Script, Error> {
        let mut writing = Writing::new(reader.header());
        let mut block = Block::default();
        while reader.next_block(&mut block)? {
            writing.take(&block);
        }
        Ok(writing.finish())
    }

    /// Reads the trace in the file at `path`.
    ///
    /// # Errors
    /// If the file can't be read, or is no trace, or a damaged one.
    pub fn open(path: impl AsRef<Path>) -> Result<Script, Error> {
        Script::read(&mut Reader::open(path)?)
    }

    /// A script of one process that uses `pages` in order, each for a unit of time.
    pub fn from_pages(pages: impl IntoIterator<Item = u64>, kinds: Kinds) -> Script {
        let uses = pages.into_iter().map(|page| (page, kinds, 1));
        Script::from_uses(TimeUnit::References, uses)
    }

    /// A script of one process from its uses of pages: page, kinds, time since the use before.
    pub fn from_uses(time: TimeUnit, uses: impl IntoIterator<Item = (u64, Kinds, u32)>) -> Script {
        let mut writing = Writing::new(&Header {
            page_bytes: tidemark_core::id::PAGE_BYTES,
            granularity: Granularity::Exact,
            time,
            source: String::new(),
            command: Vec::new(),
            speed: None,
        });
        let course = writing.course(0);
        for (page, kinds, gap) in uses {
            course.push(page, kinds, gap);
        }
        writing.finish()
    }

    /// The number of uses of pages.
    pub fn len(&self) -> usize {
        self.courses.iter().map(|course| course.records.len()).sum()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.courses.iter().all(|course| course.records.is_empty())
    }

    /// The number of processes.
    pub fn process_count(&self) -> usize {
        self.courses.len()
    }

    /// The number of pages used, those of each process counted apart.
    pub fn pages(&self) -> u64 {
        self.courses.iter().map(Course::pages).sum()
    }

    /// The number of pages of files that system calls read and write, at most: files that are
    /// written anew count once, at their longest.
    pub fn copied_pages(&self) -> u64 {
        self.copied_pages
    }

    /// Returns true if the trace tells the mappings.
    pub fn has_maps(&self) -> bool {
        self.has_maps
    }

    /// The unit of times.
    pub fn time(&self) -> TimeUnit {
        self.time
    }

    /// The time that passes before the last use of a page, that of all processes added up.
    pub fn time_sum(&self) -> u64 {
        let records = self.courses.iter().flat_map(|course| &course.records);
        records.map(|record| u64::from(record.gap)).sum()
    }

    /// The size of a page, in bytes.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The memory that the script takes, in bytes: 8 for each use, and a little for each page.
    pub fn bytes(&self) -> u64 {
        let of = |course: &Course| {
            course.records.len() * size_of::<Record>()
                + course.events.len() * size_of::<(u64, Event)>()
                + course.bases.len() * (size_of::<u64>() + 2 * size_of::<(u64, u32)>())
        };
        self.courses.iter().map(of).sum::<usize>() as u64
    }
}

/// A script in the making: takes blocks in the order of the trace.
pub struct Writing {
    courses: Vec<Course>,
    files: BTreeMap<String, u64>,
    /// The number of pages of each file that are copied, those copied again counted again.
    copied: BTreeMap<String, u64>,
    time: TimeUnit,
    page_bytes: u64,
    has_maps: bool,
}

impl Writing {
    /// Starts with a trace's header.
    pub fn new(header: &Header) -> Writing {
        Writing {
            courses: Vec::new(),
            files: BTreeMap::new(),
            copied: BTreeMap::new(),
            time: header.time,
            page_bytes: header.page_bytes,
            has_maps: false,
        }
    }

    /// Takes the next block of the trace.
    pub fn take(&mut self, block: &Block) {
        let before = self.course(block.process).records.len() as u64;
        let course = self.course(block.process);
        course.records.reserve(block.len());
        for ((&page, &kinds), &gap) in block.pages.iter().zip(&block.kinds).zip(&block.gaps) {
            course.push(page, Kinds(kinds), gap);
        }
        for placed in &block.events {
            self.note(
                block.process,
                before + u64::from(placed.after),
                &placed.event,
            );
        }
    }

    /// Hands over what has been written.
    pub fn finish(mut self) -> Script {
        for course in &mut self.courses {
            course.records.shrink_to_fit();
            course.end_turns();
            if self.has_maps {
                continue;
            }
            course.store_first();
            if course.bases.iter().any(|&base| base >= PAGES_MAX - CHUNK) {
                course.fold();
            }
        }
        let copied = self.copied.iter();
        let copied = copied.map(|(file, &pages)| pages.min(self.files[file]));
        Script {
            copied_pages: copied.fold(0, u64::saturating_add),
            courses: self.courses,
            files: self.files,
            time: self.time,
            page_bytes: self.page_bytes,
            has_maps: self.has_maps,
        }
    }

    fn course(&mut self, process: u32) -> &mut Course {
        while self.courses.len() <= process as usize {
            self.courses.push(Course::new());
        }
        &mut self.courses[process as usize]
    }

    fn note(&mut self, process: u32, after: u64, event: &Event) {
        let course = self.course(process);
        match event {
            Event::Life(LifeEvent::Start {
                pid,
                parent,
                program,
            }) => {
                (course.pid, course.parent) = (*pid, *parent);
                course.program.clone_from(program);
            }
            Event::Life(LifeEvent::ThreadSwitch { thread }) => course.switch(*thread, after),
            Event::Mark { .. } | Event::Windows { .. } | Event::Visit | Event::Size { .. } => {}
            Event::Life(_) | Event::Mapping(_) | Event::File(_) => course.happen(event, after),
        }
        self.measure(event);
    }

    /// Learns of files from an event, and how long each is at least.
    fn measure(&mut self, event: &Event) {
        let (file, pages) = match event {
            Event::Mapping(MappingEvent::Map {
                pages,
                memory,
                offset,
                ..
            }) => {
                self.has_maps = true;
                (
                    memory.name(),
                    (offset / self.page_bytes).saturating_add(*pages),
                )
            }
            Event::File(FileEvent::Cut { file, .. }) => (file.as_str(), 0),
            _ => match event.copied() {
                Some(copied) => (copied.file, self.measure_copied(copied)),
                None => return,
            },
        };
        if is_file(file) {
            let known = self.files.entry(file.to_owned()).or_insert(0);
            *known = (*known).max(pages.min(FILE_PAGES));
        }
    }

    /// Counts the pages that system calls copy, and answers where in pages they end.
    fn measure_copied(&mut self, copied: Copied<'_>) -> u64 {
        let end = copied.offset.saturating_add(copied.bytes);
        let end = end.div_ceil(self.page_bytes);
        if is_file(copied.file) {
            let pages = end - copied.offset / self.page_bytes;
            let known = self.copied.entry(copied.file.to_owned()).or_insert(0);
            *known = known.saturating_add(pages);
        }
        end
    }
}

/// Returns true if a mapping's name is a file's: names in brackets are the kernel's for what is
/// none.
pub(crate) fn is_file(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('[')
}

fn is_store(kinds: Kinds) -> bool {
    kinds.has(Kinds::STORE) || kinds == Kinds(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_place_and_its_address() {
        let script = Script::from_pages([5, 1 << 40, 6, 5], Kinds::LOAD);
        let course = &script.courses[0];
        let places: Vec<u32> = course.records.iter().map(|r| r.place()).collect();
        assert_eq!(places, [5, 16, 6, 5]);
        let pages: Vec<u64> = places.iter().map(|&place| course.page_at(place)).collect();
        assert_eq!(pages, [5, 1 << 40, 6, 5]);
        assert_eq!((script.pages(), script.len()), (3, 4));
    }

    #[test]
    fn without_mappings_the_first_use_of_a_page_is_a_store() {
        let script = Script::from_pages([1, 2, 1, 2], Kinds::LOAD);
        let stores: Vec<bool> = script.courses[0]
            .records
            .iter()
            .map(|record| record.is_store())
            .collect();
        assert_eq!(stores, [true, true, false, false]);
    }

    #[test]
    fn a_use_knows_how_long_its_page_waits_for_the_next() {
        let uses = [(7, 1), (8, 10), (7, 100), (7, 0), (9, 1000)];
        let uses = uses.map(|(page, gap)| (page, Kinds::LOAD, gap));
        let script = Script::from_uses(TimeUnit::Instructions, uses);
        assert_eq!(script.courses[0].waits(), [110, NO_USE, 0, NO_USE, NO_USE]);
    }

    #[test]
    fn page_numbers_that_are_no_addresses_are_folded() {
        let script = Script::from_pages([u64::MAX, 3, u64::MAX - 1], Kinds::STORE);
        let course = &script.courses[0];
        let pages: Vec<u64> = course
            .records
            .iter()
            .map(|r| course.page_at(r.place()))
            .collect();
        assert_eq!(pages, [15, 19, 14]);
    }
}
