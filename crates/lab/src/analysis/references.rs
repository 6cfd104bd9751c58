//! A trace in memory, in the form the analyses take: columns with dense page numbers.
//!
//! Pages of a process that ends, or executes another program, depart: their frames are free.
//!
//! Pages are numbered from 0 in the order of their first appearance, over all chosen processes. A
//! page is distinguished by its process and its virtual page number, and by the program it belongs
//! to: after an exec the same addresses are other pages. Where that is asked for, what processes
//! have in common is one page (`sharing` says what that is).
//!
//! # Invariants
//! 1. Every number in `pages` is below `page_count`, and each number's first appearance comes after
//!    that of every smaller one.
//! 2. `times` is empty, or as long as `pages` and never falls.
//! 3. `names` is as long as `page_count`.
//! 4. `departures` are in order; no page departs twice, or is referenced after it departed.

use std::collections::BTreeMap;
use std::io::Read;

use tidemark_trace::{
    Block, Error, Event, FileEvent, Granularity, Header, LifeEvent, MappingEvent, Placed, Reader,
    TimeUnit,
};

use super::sharing::{FilePage, Sharing, Space, accesses};

/// The references of a trace, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// The page of each reference.
    pub pages: Vec<u32>,
    /// Virtual time after each reference, in [`time`](Self::time) units. Empty when the unit is
    /// references: then the time after the reference at place i is i + 1.
    ///
    /// It counts the time of the chosen processes alone, one after the other as their blocks come.
    pub times: Vec<u64>,
    /// The number of different pages.
    pub page_count: u32,
    /// The name of each page in the trace.
    pub names: Vec<Name>,
    /// The pages that left memory for good, and the times.
    pub departures: Vec<Departure>,
    /// The places of the first references of visits, rising; empty where the trace has none.
    pub visits: Vec<u64>,
    /// The size of each page's object, in bytes; empty if the trace has none, 0 if it has none for
    /// this page.
    pub sizes: Vec<u64>,
    /// The pages that are files' as others have them, too, if sharing was asked for.
    pub common: BTreeMap<u32, FilePage>,
    /// The most pages that were there at one time: touched, and not departed.
    pub alive_max: u32,
    /// The size of a page, in bytes.
    pub page_bytes: u64,
    /// The repeats that the recorder kept.
    pub granularity: Granularity,
    /// The unit of times.
    pub time: TimeUnit,
}

/// Pages that leave memory for good: their process ended, or executes another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The number of references that came before, of the whole string. They leave as the next one
    /// comes.
    pub before: u64,
    /// The pages, rising.
    pub pages: Vec<u32>,
}

/// A page as the trace knows it. One that several processes have is called as in the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The process, by its number in the trace.
    pub process: u32,
    /// The number of pages that the process has left to others there before.
    pub copy: u32,
    /// The virtual page number: address divided by the page size.
    pub page: u64,
}

impl References {
    /// Reads what is left of a trace. A file that was cut off gives what comes before the cut;
    /// the reader's ending tells.
    ///
    /// # Errors
    /// If the trace can't be read or is damaged.
    pub fn read<R: Read>(reader: &mut Reader<R>, choice: Choice) -> Result<References, Error> {
        let mut loading = Loading::new(reader.header(), choice);
        let mut block = Block::default();
        while reader.next_block(&mut block)? {
            loading.take(&block);
        }
        Ok(loading.finish())
    }

    /// Numbers pages that came as plain words, for traces that are made rather than read: one
    /// process, 4 KiB pages, a unit of time each.
    pub fn from_pages(pages: impl IntoIterator<Item = u64>) -> References {
        let mut loading = Loading::new(
            &Header {
                page_bytes: 4096,
                granularity: Granularity::Exact,
                time: TimeUnit::References,
                source: String::new(),
                command: Vec::new(),
                speed: None,
            },
            Choice::All,
        );
        loading.select(0);
        for page in pages {
            loading.refer(page, 0);
        }
        loading.finish()
    }

    /// The number of references.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The whole virtual time of the trace, in its unit.
    pub fn duration(&self) -> u64 {
        match self.time {
            TimeUnit::References => self.pages.len() as u64,
            TimeUnit::Instructions | TimeUnit::Nanoseconds => {
                self.times.last().copied().unwrap_or(0)
            }
        }
    }
}

/// The processes whose references to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The references of every process.
    All,
    /// The references of the processes with these numbers in the trace.
    Only(Vec<u32>),
}

impl Choice {
    fn takes(&self, process: u32) -> bool {
        match self {
            Choice::All => true,
            Choice::Only(chosen) => chosen.contains(&process),
        }
    }
}

/// [`References`] in the making: takes blocks in the order of the trace.
pub struct Loading {
    references: References,
    choice: Choice,
    processes: Vec<Process>,
    /// The process of the block at hand, by its place in `processes`.
    current: usize,
    /// The owners of pages, if they are asked for.
    sharing: Option<Sharing>,
    clock: Clock,
    /// The sizes of objects, by process and page.
    sizes: BTreeMap<(u32, u64), u64>,
    /// The number of references handed over.
    handed: u64,
    /// The number of pages.
    alive: u32,
}

impl Loading {
    /// Starts with a trace's header, to load the chosen processes. A page that several have in
    /// common is one page.
    pub fn of(header: &Header, choice: Choice, processes: usize) -> Loading {
        match processes {
            0 | 1 => Loading::new(header, choice),
            _ => Loading::shared(header, choice),
        }
    }

    /// Returns true if an event may change what is loaded.
    pub fn heeds(event: &Event) -> bool {
        event.ends_program() || is_of_memory(event)
    }

    /// Starts with a trace's header. What processes have in common is one page.
    pub(crate) fn shared(header: &Header, choice: Choice) -> Loading {
        Loading {
            sharing: Some(Sharing::new(header.page_bytes)),
            ..Loading::new(header, choice)
        }
    }

    /// Starts with a trace's header. Each process's pages are its own.
    pub(crate) fn new(header: &Header, choice: Choice) -> Loading {
        Loading {
            references: References {
                pages: Vec::new(),
                times: Vec::new(),
                page_count: 0,
                names: Vec::new(),
                departures: Vec::new(),
                visits: Vec::new(),
                sizes: Vec::new(),
                common: BTreeMap::new(),
                alive_max: 0,
                page_bytes: header.page_bytes,
                granularity: header.granularity,
                time: header.time,
            },
            choice,
            processes: Vec::new(),
            current: 0,
            sharing: None,
            clock: Clock::default(),
            sizes: BTreeMap::new(),
            handed: 0,
            alive: 0,
        }
    }

    /// Takes the next block of the trace.
    ///
    /// # Panics
    /// If there are more than 2^32 - 1 pages.
    pub fn take(&mut self, block: &Block) {
        if !self.choice.takes(block.process) {
            return;
        }
        self.references.granularity = self.references.granularity.after(block);
        self.select(block.process);
        self.clock.begin(block.process, block.time_start);
        let mut start = 0;
        for placed in &block.events {
            self.note_object(block.process, start, placed);
            let is_end = placed.event.ends_program();
            if is_end || self.sharing.is_some() && is_of_memory(&placed.event) {
                self.refer_all(block, start, placed.after as usize);
                start = placed.after as usize;
                self.happen(&placed.event);
            }
        }
        self.refer_all(block, start, block.pages.len());
    }

    /// Moves the references loaded since this was last asked to `columns`, whose memory serves for
    /// the next, with the departures among them. Those behind the last go with the next.
    pub(crate) fn hand_over(&mut self, columns: &mut Columns) {
        columns.pages.clear();
        columns.times.clear();
        std::mem::swap(&mut self.references.pages, &mut columns.pages);
        std::mem::swap(&mut self.references.times, &mut columns.times);
        self.handed += columns.pages.len() as u64;
        let departures = &mut self.references.departures;
        let among = departures.partition_point(|departure| departure.before < self.handed);
        columns.departures.clear();
        columns.departures.extend(departures.drain(..among));
    }

    /// The number of pages that have been numbered.
    pub(crate) fn page_count(&self) -> u32 {
        self.references.page_count
    }

    /// Hands over what has been loaded.
    pub fn finish(mut self) -> References {
        if let Some(sharing) = &mut self.sharing {
            self.references.common = sharing.take_common();
        }
        if !self.sizes.is_empty() {
            let size = |name: &Name| self.sizes.get(&(name.process, name.page));
            let sizes = self.references.names.iter().map(size);
            self.references.sizes = sizes.map(|size| size.copied().unwrap_or(0)).collect();
        }
        self.references.pages.shrink_to_fit();
        self.references.times.shrink_to_fit();
        self.references
    }

    /// Takes in the visits and objects of an event of `process`. The records of its block
    /// have been taken up to the one at `start`.
    fn note_object(&mut self, process: u32, start: usize, placed: &Placed) {
        match placed.event {
            Event::Visit => {
                let taken = self.handed + self.references.pages.len() as u64;
                let visit = taken + (placed.after as usize - start) as u64;
                self.references.visits.push(visit);
            }
            Event::Size { page, bytes } => _ = self.sizes.insert((process, page), bytes.max(1)),
            _ => {}
        }
    }

    fn select(&mut self, process: u32) {
        let known = self.processes.iter().position(|p| p.process == process);
        self.current = known.unwrap_or_else(|| {
            self.processes.push(Process {
                process,
                pid: 0,
                space: Space::new(),
            });
            self.processes.len() - 1
        });
    }

    fn refer_all(&mut self, block: &Block, start: usize, end: usize) {
        if self.references.time != TimeUnit::References {
            let mut now = self.clock.now;
            self.references
                .times
                .extend(block.gaps[start..end].iter().map(|&gap| {
                    now = now.saturating_add(u64::from(gap));
                    now.min(TIME_MAX)
                }));
            self.clock.pass(now - self.clock.now);
        }
        self.references.pages.reserve(end - start);
        let pages = &block.pages[start..end];
        match block.kinds.get(start..end) {
            Some(kinds) => pages
                .iter()
                .zip(kinds)
                .for_each(|(&page, &kinds)| self.refer(page, kinds)),
            None => pages.iter().for_each(|&page| self.refer(page, 0)),
        }
    }

    #[inline(always)]
    fn refer(&mut self, page: u64, kinds: u8) {
        let accesses = accesses(kinds);
        let found = self.processes[self.current].space.numbers.find(page);
        let number = match found {
            Some(slot) if slot.watch & accesses == 0 => slot.number,
            Some(_) | None => self.settle(page, accesses),
        };
        self.references.pages.push(number);
    }

    /// The number of a page that the process does not have yet, or may have to leave.
    #[inline(never)]
    fn settle(&mut self, page: u64, accesses: u8) -> u32 {
        let process = &mut self.processes[self.current];
        let fresh = self.references.page_count;
        let left = process.space.numbers.find(page).map(|slot| slot.number);
        let number = match &mut self.sharing {
            Some(sharing) => {
                let settled = sharing.settle(&mut process.space, page, accesses, fresh);
                self.let_go(settled.gone.into_iter().collect());
                settled.number
            }
            None => {
                process.space.numbers.set(page, fresh, 0);
                fresh
            }
        };
        if number == fresh {
            assert!(fresh < u32::MAX, "a trace has fewer than 2^32 - 1 pages");
            self.references.page_count = fresh + 1;
            self.alive += 1;
            self.references.alive_max = self.references.alive_max.max(self.alive);
            let process = self.processes[self.current].process;
            let left = left.map(|left| self.references.names[left as usize]);
            let copy = match left {
                Some(left) if left.process == process => left.copy + 1,
                Some(_) | None => 0,
            };
            self.references.names.push(Name {
                process,
                copy,
                page,
            });
        }
        number
    }

    /// Takes in what happened to the memory of the current process.
    fn happen(&mut self, event: &Event) {
        if event.ends_program() {
            let process = &mut self.processes[self.current];
            if !matches!(event, Event::Life(LifeEvent::Exec { .. })) {
                process.pid = 0;
            }
            let gone = match &mut self.sharing {
                Some(sharing) => sharing.clear(&mut process.space),
                None => std::mem::replace(&mut process.space, Space::new()).into_numbers(),
            };
            self.let_go(gone);
            return;
        }
        let Some(sharing) = &mut self.sharing else {
            return;
        };
        if let &Event::Life(LifeEvent::Start { pid, parent, .. }) = event {
            let is_parent = |process: &Process| process.pid == parent && parent != 0;
            let parent = self.processes.iter_mut().rev().find(|it| is_parent(it));
            let inherited = parent.map(|parent| sharing.fork(&mut parent.space));
            let process = &mut self.processes[self.current];
            process.pid = pid;
            match inherited {
                Some(space) if process.space.is_untouched() => process.space = space,
                // It has something already, and begins once more.
                Some(mut space) => drop(sharing.clear(&mut space)),
                None => {}
            }
            return;
        }
        sharing.happen(&mut self.processes[self.current].space, event);
    }

    /// Has pages depart. What is touched where they were are other pages from here on.
    fn let_go(&mut self, pages: Vec<u32>) {
        if pages.is_empty() {
            return;
        }
        self.alive -= pages.len() as u32;
        self.references.departures.push(Departure {
            before: self.handed + self.references.pages.len() as u64,
            pages,
        });
    }
}

/// Returns true if an event is about mappings, or about their processes.
fn is_of_memory(event: &Event) -> bool {
    matches!(
        event,
        Event::Life(LifeEvent::Start { .. })
            | Event::Mapping(
                MappingEvent::Map { .. } | MappingEvent::Unmap { .. } | MappingEvent::Remap { .. }
            )
            | Event::File(FileEvent::Cut { .. })
    )
}

/// References on their way from a trace to the analyses.
#[derive(Default)]
pub(crate) struct Columns {
    /// The page of each.
    pub(crate) pages: Vec<u32>,
    /// Virtual time after each, as [`References::times`].
    pub(crate) times: Vec<u64>,
    /// The pages that depart among them.
    pub(crate) departures: Vec<Departure>,
}

struct Process {
    process: u32,
    /// Its number in the system; 0 where that is not known, or it has ended.
    pid: u32,
    space: Space,
}

/// The most that times of analyses come to: they are added to, and no sum overflows.
pub(crate) const TIME_MAX: u64 = 1 << 62;

/// The time of several processes, one after the other as their blocks come.
///
/// It is the one place that turns times of processes into the time of a trace. That begins with the
/// first block: times that count from an epoch, or from the beginning of a part that was cut away,
/// do not make a trace longer.
#[derive(Default)]
pub(crate) struct Clock {
    /// The time that has passed.
    pub(crate) now: u64,
    /// Each process's own time where its last block ended, by its number in the trace.
    ended: Vec<Option<u64>>,
    current: usize,
}

impl Clock {
    /// Lets the time pass that lies between a process's blocks, the next of which begins at `time`
    /// of the process. A process's first block starts the process's clock, wherever that stands.
    pub(crate) fn begin(&mut self, process: u32, time: u64) {
        self.current = process as usize;
        if self.current >= self.ended.len() {
            self.ended.resize(self.current + 1, None);
        }
        let ended = &mut self.ended[self.current];
        let before = ended.unwrap_or(time);
        self.now = self.now.saturating_add(time.saturating_sub(before));
        *ended = Some(time.max(before));
    }

    /// Lets `ticks` pass in the process whose block began last.
    pub(crate) fn pass(&mut self, ticks: u64) {
        self.now = self.now.saturating_add(ticks);
        if let Some(Some(ended)) = self.ended.get_mut(self.current) {
            *ended = ended.saturating_add(ticks);
        }
    }
}

/// From virtual page numbers of one process to dense numbers: an open table whose places are
/// grouped, so that neighbouring pages share a line of the processor's cache.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    slots: Vec<Slot>,
    used: usize,
    shift: u32,
}

/// A page's place in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    page: u64,
    pub(crate) number: u32,
    /// Of which accesses more than the number has to be known; 0 of none.
    pub(crate) watch: u8,
}

/// Pages that differ only in the lowest `GROUP_BITS` bits start looking in one line.
const GROUP_BITS: u32 = 2;
const EMPTY: u32 = u32::MAX;

impl Slot {
    pub(crate) fn page(&self) -> u64 {
        self.page
    }
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers::with_bits(10)
    }

    fn with_bits(bits: u32) -> Numbers {
        let empty = Slot {
            page: 0,
            number: EMPTY,
            watch: 0,
        };
        Numbers {
            slots: vec![empty; 1 << bits],
            used: 0,
            shift: 64 - (bits - GROUP_BITS),
        }
    }

    /// The number of `page`, which is `fresh` if it had none.
    pub(crate) fn number(&mut self, page: u64, fresh: u32) -> u32 {
        if let Some(slot) = self.find(page) {
            return slot.number;
        }
        self.set(page, fresh, 0);
        fresh
    }

    /// The place of `page`, if it has a number.
    #[inline(always)]
    pub(crate) fn find(&mut self, page: u64) -> Option<&mut Slot> {
        let at = self.look(page);
        let slot = &mut self.slots[at];
        (slot.number != EMPTY).then_some(slot)
    }

    /// Gives `page` a number, in place of the one that it has.
    pub(crate) fn set(&mut self, page: u64, number: u32, watch: u8) {
        let at = self.look(page);
        self.used += usize::from(self.slots[at].number == EMPTY);
        self.slots[at] = Slot {
            page,
            number,
            watch,
        };
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// The pages that have numbers.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = &mut Slot> {
        let used = self.slots.iter_mut();
        used.filter(|slot| slot.number != EMPTY)
    }

    /// The number of pages that have numbers.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Returns true if no page has a number.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The number of places: what a walk through all of them looks at.
    pub(crate) fn room(&self) -> usize {
        self.slots.len()
    }

    /// The place at which `page` is, or would be.
    #[inline(always)]
    fn look(&self, page: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.place(page);
        loop {
            let slot = &self.slots[at & mask];
            if slot.number == EMPTY || slot.page == page {
                return at & mask;
            }
            at += 1;
        }
    }

    fn place(&self, page: u64) -> usize {
        // Multiplicative hashing: the high bits of a product with 2^64 over the golden ratio.
        let group = (page >> GROUP_BITS).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((group << GROUP_BITS) | (page & ((1 << GROUP_BITS) - 1))) as usize
    }

    fn grow(&mut self) {
        let mut larger = Numbers::with_bits(self.slots.len().trailing_zeros() + 1);
        for slot in self.slots() {
            larger.set(slot.page, slot.number, slot.watch);
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_trace::{Event, Placed};

    fn header(time: TimeUnit) -> Header {
        Header {
            page_bytes: 4096,
            granularity: Granularity::Exact,
            time,
            source: "test".into(),
            command: Vec::new(),
            speed: None,
        }
    }

    fn block(process: u32, time_start: u64, pages: &[u64], gaps: &[u32]) -> Block {
        Block {
            process,
            time_start,
            pages: pages.to_vec(),
            kinds: vec![2; pages.len()],
            gaps: gaps.to_vec(),
            events: Vec::new(),
        }
    }

    #[test]
    fn pages_are_numbered_in_the_order_of_their_first_appearance() {
        let references = References::from_pages([7, 5, 7, u64::MAX, 5, 0]);
        assert_eq!(references.pages, [0, 1, 0, 2, 1, 3]);
        assert_eq!(references.page_count, 4);
        let pages: Vec<u64> = references.names.iter().map(|name| name.page).collect();
        assert_eq!(pages, [7, 5, u64::MAX, 0]);
        assert_eq!((references.duration(), references.len()), (6, 6));
    }

    #[test]
    fn many_pages_keep_their_numbers_while_the_table_grows() {
        let words = (0..50_000_u64).map(|at| (at % 20_000).wrapping_mul(0x1_0000_0001));
        let references = References::from_pages(words);
        assert_eq!(references.page_count, 20_000);
        let expected: Vec<u32> = (0..50_000).map(|at| at % 20_000).collect();
        assert_eq!(references.pages, expected);
    }

    #[test]
    fn two_processes_share_no_page_and_one_clock() {
        let mut loading = Loading::new(&header(TimeUnit::Instructions), Choice::All);
        loading.take(&block(0, 10, &[1, 2], &[1, 2]));
        loading.take(&block(1, 500, &[1], &[4]));
        loading.take(&block(0, 20, &[2], &[5]));
        let references = loading.finish();
        assert_eq!(references.pages, [0, 1, 2, 1]);
        // 7 between the first process's blocks; what was before the first of each does not count.
        assert_eq!(references.times, [1, 3, 7, 19]);
        let names: Vec<u32> = references.names.iter().map(|name| name.process).collect();
        assert_eq!(names, [0, 0, 1]);
        assert_eq!(references.duration(), 19);
    }

    #[test]
    fn processes_that_are_not_chosen_leave_no_reference_and_no_time() {
        let choice = Choice::Only(vec![1]);
        let mut loading = Loading::new(&header(TimeUnit::Nanoseconds), choice);
        loading.take(&block(0, 10, &[1, 2], &[1, 2]));
        loading.take(&block(1, 3, &[1], &[4]));
        let references = loading.finish();
        assert_eq!((references.pages, references.times), (vec![0], vec![4]));
    }

    #[test]
    fn after_an_exec_the_same_addresses_are_other_pages() {
        let mut with_exec = block(0, 0, &[1, 2, 1, 1], &[1; 4]);
        with_exec.events.push(Placed {
            after: 2,
            time: 2,
            event: Event::Life(LifeEvent::Exec {
                program: "true".into(),
            }),
        });
        let mut loading = Loading::new(&header(TimeUnit::Instructions), Choice::All);
        loading.take(&with_exec);
        let references = loading.finish();
        assert_eq!(references.pages, [0, 1, 2, 2]);
        assert_eq!(references.times, [1, 2, 3, 4]);
        assert_eq!(references.names[2], references.names[0]);
        let departed = Departure {
            before: 2,
            pages: vec![0, 1],
        };
        assert_eq!(references.departures, [departed]);
        assert_eq!((references.page_count, references.alive_max), (3, 2));
    }

    #[test]
    fn found_m4_pages_of_processes_that_end_depart() {
        let ending = |process: u32, event: Event| {
            let mut block = block(process, 0, &[1, 2, 3, 1], &[1; 4]);
            let (after, time) = (4, 4);
            block.events.push(Placed { after, time, event });
            block
        };
        let mut loading = Loading::new(&header(TimeUnit::Instructions), Choice::All);
        loading.take(&block(0, 0, &[1], &[1]));
        for process in 1..100 {
            loading.take(&ending(process, Event::Life(LifeEvent::Exit { status: 0 })));
        }
        loading.take(&ending(100, Event::Life(LifeEvent::Killed { signal: 9 })));
        let references = loading.finish();
        assert_eq!((references.page_count, references.alive_max), (301, 4));
        let departures = references.departures.iter();
        let before: Vec<u64> = departures.map(|departure| departure.before).collect();
        assert_eq!(before[..2], [5, 9]);
        assert_eq!(references.departures[99].pages, [298, 299, 300]);
    }
}
