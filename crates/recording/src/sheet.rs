//! The sheet: records and events of one process on their way into blocks.
//!
//! What is still open (the run of references to one page in exact mode, the quantum at hand in
//! quantum mode) is kept by the [reducer](crate::reduce); what comes here is final and in order.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use tidemark_trace::{Block, Event, MappingEvent, PageSet, Placed};

/// The destination of finished blocks; what comes back is empty blocks to be filled again.
#[derive(Clone, Debug)]
pub struct Sink {
    /// Takes finished blocks.
    finished: SyncSender<Block>,
    /// Holds blocks that have been written.
    pub(crate) empty: Arc<Mutex<Vec<Block>>>,
    /// The number of the process that is next to have a block.
    process_next: Arc<AtomicU32>,
}

impl Sink {
    /// A sink whose blocks go to `finished`.
    pub fn new(finished: SyncSender<Block>) -> Sink {
        Sink {
            finished,
            empty: Arc::default(),
            process_next: Arc::default(),
        }
    }
}

/// The records and events of a process that are not in a finished block yet.
#[derive(Debug)]
pub struct Sheet {
    /// Its number in the trace, where processes count in the order of their first blocks.
    process: Option<u32>,
    /// Its columns have their greatest length until it is finished; `length` counts.
    block: Block,
    length: usize,
    /// The time of the last record, or of the block's start.
    time_last: u64,
    records: u64,
    pages: Pages,
    stack: Stack,
    sink: Sink,
}

/// Room for records at the end of a block.
#[derive(Debug)]
pub struct Room<'a> {
    pages: &'a mut [u64],
    kinds: &'a mut [u8],
    gaps: &'a mut [u32],
    used: Used,
}

/// The used part of a room.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    records: usize,
    time_last: u64,
}

/// The stack of the first thread, which grows by being touched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stack {
    /// The lowest page it may grow to.
    pub floor: u64,
    /// The lowest page it has.
    pub low: u64,
}

/// The pages seen so far.
#[derive(Debug)]
struct Pages {
    seen: PageSet,
    /// Pages seen lately, by their lowest bits: most need no further look.
    lately: Box<[u64; PAGES_LATELY]>,
}

const PAGES_LATELY: usize = 1024;

impl Default for Pages {
    fn default() -> Pages {
        Pages {
            seen: PageSet::default(),
            lately: Box::new([u64::MAX; PAGES_LATELY]),
        }
    }
}

impl Pages {
    /// Adds pages; says whether one of them, not seen lately, makes the stack grow.
    fn add(&mut self, pages: &[u64], stack: Stack) -> bool {
        let mut grows = false;
        for &page in pages {
            let lately = &mut self.lately[page as usize % PAGES_LATELY];
            if *lately != page {
                *lately = page;
                self.seen.insert(page);
                grows |= stack.grows(page);
            }
        }
        grows
    }
}

impl Stack {
    /// Returns true if touching `page` makes it grow.
    #[inline]
    fn grows(self, page: u64) -> bool {
        page.wrapping_sub(self.floor) < self.low - self.floor
    }
}

impl Sheet {
    /// An empty sheet of a process.
    pub fn new(sink: Sink) -> Sheet {
        let mut sheet = Sheet {
            process: None,
            block: Block::default(),
            length: 0,
            time_last: 0,
            records: 0,
            pages: Pages::default(),
            stack: Stack::default(),
            sink,
        };
        sheet.prepare_block();
        sheet
    }

    /// From now on touching a page between `floor` and `low` is growth of the stack.
    pub fn watch_stack(&mut self, stack: Stack) {
        self.insert_growth();
        self.stack = stack;
        // What was seen of the memory before says nothing about this stack.
        self.pages.lately.fill(u64::MAX);
    }

    /// Adds a record. `time` is that of its first reference; one that goes back, as only a damaged
    /// log tells, is that of the record before.
    pub fn record(&mut self, page: u64, kinds: u8, time: u64) {
        let time = time.max(self.time_last);
        if time - self.time_last > u64::from(u32::MAX) {
            // A gap that no record holds lies between two blocks.
            self.finish_block();
            self.time_last = time;
            self.block.time_start = time;
        }
        self.put(page, kinds, time);
    }

    /// Adds an event that comes after the records so far.
    pub fn event(&mut self, event: Event, time: u64) {
        if self.block.events.len() == Block::EVENTS_MAX {
            self.finish_block();
        }
        self.block.events.push(Placed {
            after: self.length as u32,
            time,
            event,
        });
    }

    /// The events that are not in a finished block yet.
    pub fn events(&mut self) -> impl DoubleEndedIterator<Item = &mut Event> {
        self.block.events.iter_mut().map(|placed| &mut placed.event)
    }

    /// Makes sure that the block at hand has room for `records` more. False if no block has.
    #[inline]
    pub fn make_room(&mut self, records: usize) -> bool {
        if self.length + records < Block::RECORDS_MAX {
            return true;
        }
        self.finish_block();
        records < Block::RECORDS_MAX
    }

    /// The room for records that [`make_room`](Self::make_room) has found. Records there count
    /// after [`use_room`](Self::use_room).
    #[inline]
    pub fn room(&mut self, records: usize) -> Room<'_> {
        let range = self.length..self.length + records + 1;
        Room {
            pages: &mut self.block.pages[range.clone()],
            kinds: &mut self.block.kinds[range.clone()],
            gaps: &mut self.block.gaps[range],
            used: Used {
                records: 0,
                time_last: self.time_last,
            },
        }
    }

    /// Counts what was put into the room.
    #[inline]
    pub fn use_room(&mut self, used: Used) {
        self.length += used.records;
        self.time_last = used.time_last;
    }

    /// Hands over what there is, so that other processes' blocks come after it.
    pub fn finish_block(&mut self) {
        // A page that makes the stack grow was not seen since the stack was.
        if self.pages.add(&self.block.pages[..self.length], self.stack) {
            self.insert_growth();
            if self.block.events.len() == Block::EVENTS_MAX {
                // There may have been more growth than room: the next touch tells.
                self.pages.lately.fill(u64::MAX);
            }
        }
        if self.length == 0 && self.block.events.is_empty() {
            return;
        }
        self.block.pages.truncate(self.length);
        self.block.kinds.truncate(self.length);
        self.block.gaps.truncate(self.length);
        let number = || self.sink.process_next.fetch_add(1, Ordering::Relaxed);
        self.block.process = *self.process.get_or_insert_with(number);
        self.records += self.length as u64;
        let time_event = self.block.events.last().map_or(0, |placed| placed.time);
        self.time_last = self.time_last.max(time_event);
        let block = std::mem::take(&mut self.block);
        self.prepare_block();
        // The writer is gone only after an error, which it tells itself.
        let _ = self.sink.finished.send(block);
    }

    /// The number of pages to which the finished blocks refer.
    pub fn pages(&self) -> u64 {
        self.pages.seen.count()
    }

    /// The number of records so far.
    pub fn records(&self) -> u64 {
        self.records + self.length as u64
    }

    fn put(&mut self, page: u64, kinds: u8, time: u64) {
        if self.length == Block::RECORDS_MAX {
            self.finish_block();
        }
        self.block.pages[self.length] = page;
        self.block.kinds[self.length] = kinds;
        self.block.gaps[self.length] = (time - self.time_last) as u32;
        self.time_last = time;
        self.length += 1;
    }

    /// Takes a block that has been written before, or a new one, and makes its columns as long as
    /// they can become.
    fn prepare_block(&mut self) {
        let used = self
            .sink
            .empty
            .lock()
            .ok()
            .and_then(|mut blocks| blocks.pop());
        self.block = used.unwrap_or_default();
        self.block.events.clear();
        self.block.pages.resize(Block::RECORDS_MAX, 0);
        self.block.kinds.resize(Block::RECORDS_MAX, 0);
        self.block.gaps.resize(Block::RECORDS_MAX, 0);
        self.block.time_start = self.time_last;
        self.length = 0;
    }

    /// Puts the growth of the stack among the events: before the records that made it grow.
    fn insert_growth(&mut self) {
        let mut from = 0;
        while self.block.events.len() < Block::EVENTS_MAX {
            let pages = &self.block.pages[from..self.length];
            let Some(found) = pages.iter().position(|&page| self.stack.grows(page)) else {
                return;
            };
            let after = from + found;
            let start = self.block.pages[after];
            let gaps = self.block.gaps[..=after].iter().map(|&gap| u64::from(gap));
            let placed = Placed {
                after: after as u32,
                time: self.block.time_start + gaps.sum::<u64>(),
                event: Event::Mapping(MappingEvent::StackGrowth {
                    start,
                    pages: self.stack.low - start,
                }),
            };
            let events = &mut self.block.events;
            let place = events.partition_point(|event| event.after as usize <= after);
            events.insert(place, placed);
            self.stack.low = start;
            from = after + 1;
        }
    }
}

impl Room<'_> {
    /// Writes a record; counts it if it `is_over`, else the next one takes its place.
    #[inline]
    pub fn put(&mut self, page: u64, kinds: u8, time: u64, is_over: bool) {
        let at = self.used.records;
        self.pages[at] = page;
        self.kinds[at] = kinds;
        self.gaps[at] = (time - self.used.time_last) as u32;
        self.used.records += usize::from(is_over);
        self.used.time_last = if is_over { time } else { self.used.time_last };
    }

    /// The part that is used.
    #[inline]
    pub fn used(self) -> Used {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_no_record_holds_lies_between_two_blocks() {
        let (finished, blocks) = std::sync::mpsc::sync_channel(8);
        let mut sheet = Sheet::new(Sink::new(finished));
        let late = 10 << 32;
        sheet.record(7, 2, 5);
        sheet.event(Event::Mark { name: "x".into() }, 9);
        sheet.record(8, 2, late);
        sheet.record(9, 2, late + 3);
        sheet.finish_block();
        let blocks: Vec<Block> = blocks.try_iter().collect();
        assert!(blocks.iter().all(|block| block.check() == Ok(())));
        let told: Vec<_> = blocks
            .iter()
            .map(|block| (block.time_start, &block.pages[..], &block.gaps[..]))
            .collect();
        let (first, second) = (&[7][..], &[8, 9][..]);
        assert_eq!(told, [(0, first, &[5][..]), (late, second, &[0, 3][..])]);
    }
}
