//! The contents of a trace, whatever file they came from.
//!
//! A trace is a [`Header`] and a sequence of [`Block`]s. A block holds records of *one* process, in
//! that process's order; the order of the blocks is the order of the processes among each other. A
//! record is a page, the kinds of access it saw, and the time since the process's record before.
//! [`Event`]s stand between records and give pages meaning.
//!
//! # Invariants
//! [`Block::check`] holds a block to the first four, readers and writers a trace to the fifth.
//! 1. The three columns of a block have one length, at most [`Block::RECORDS_MAX`].
//! 2. Events are in order of their place, which is at most the number of records.
//! 3. An event's time lies between the times of the records around it.
//! 4. No time, and no end of a range of pages, exceeds 64 bits; no text [`Block::TEXT_BYTES_MAX`].
//! 5. A process's time never goes back: a block begins where the process's block before it ended,
//!    or later. Processes are numbered from 0 in the order of their first blocks.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// The facts about a whole trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The size of the pages that records number, in bytes; a power of two.
    pub page_bytes: u64,
    /// The repeated references that the recorder kept.
    pub granularity: Granularity,
    /// The unit of the times of records.
    pub time: TimeUnit,
    /// The program that made the trace, with its version: `tidemark 0.1.0`, `lackey`, `generate
    /// zipf seed 7`.
    pub source: String,
    /// The program and its arguments, where there was one.
    pub command: Vec<String>,
    /// The speed of the program without the recorder, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// The speed of a program without the recorder, on the machine it was recorded on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// The program was run by itself: the mean time of a run.
    Measured {
        /// Processor time in the program, over all its processes and threads.
        user_ns: u64,
        /// Processor time in the kernel.
        system_ns: u64,
        /// From start to end.
        elapsed_ns: u64,
    },
    /// The machine's clock was measured, and ordinary code assumed.
    Calibrated {
        /// The duration of a unit of the trace's time, in femtoseconds.
        unit_fs: u64,
    },
}

/// The repeated references that a recorder kept, and the analyses that the trace therefore keeps
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Every change of page: exact for every policy (repeats of the page before cannot miss).
    Exact,
    /// One record per page, per kind of access, in each quantum of this many time units. Working
    /// sets and stack distances are exact to one quantum.
    Quantum(u64),
    /// Pages touched in each window of this many nanoseconds, found by sampling. In a header, of
    /// the first window; [`Event::Windows`] has the others.
    Window(u64),
    /// Pages touched in each window of this many nanoseconds, as an estimate: some pages of each
    /// region were watched, and the others are taken to be like them.
    Regions(u64),
}

/// The unit of the times of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Instructions the process executed: virtual time.
    Instructions,
    /// Records: each takes one unit. Traces from elsewhere have nothing better.
    References,
    /// Nanoseconds of the process's processor time.
    Nanoseconds,
}

/// The kinds of access a record stands for; several may hold. None: it is not known which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(pub u8);

impl Kinds {
    /// An instruction was fetched.
    pub const FETCH: Kinds = Kinds(1);
    /// Data was loaded.
    pub const LOAD: Kinds = Kinds(2);
    /// Data was stored.
    pub const STORE: Kinds = Kinds(4);
    /// The kernel made the access, for a system call.
    pub const KERNEL: Kinds = Kinds(8);
    /// Every bit with a meaning.
    pub const ALL: Kinds = Kinds(15);

    /// Both together.
    pub const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns true if every kind in `other` holds.
    pub const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Records of one process, and the events among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The process, numbered from 0 in the order of first appearance in the trace.
    pub process: u32,
    /// The process's time before the first record.
    pub time_start: u64,
    /// Virtual page numbers: address divided by the header's page size.
    pub pages: Vec<u64>,
    /// Kinds of access, a byte each, as in [`Kinds`].
    pub kinds: Vec<u8>,
    /// Time since the process's record before (for the first: since `time_start`).
    pub gaps: Vec<u32>,
    /// The events between the records.
    pub events: Vec<Placed>,
}

impl Granularity {
    /// The granularity that holds once `block` has been taken in, too: windows may have grown in
    /// it.
    pub fn after(self, block: &Block) -> Granularity {
        let Some(ns) = self.window_ns() else {
            return self;
        };
        let grown = block.events.iter().filter_map(|placed| match placed.event {
            Event::Windows { ns } => Some(ns),
            _ => None,
        });
        let longest = grown.fold(ns, u64::max);
        match self {
            Granularity::Regions(_) => Granularity::Regions(longest),
            Granularity::Exact | Granularity::Quantum(_) | Granularity::Window(_) => {
                Granularity::Window(longest)
            }
        }
    }

    /// The length of a window in nanoseconds, where pages were sampled in windows.
    pub fn window_ns(self) -> Option<u64> {
        match self {
            Granularity::Window(ns) | Granularity::Regions(ns) => Some(ns),
            Granularity::Exact | Granularity::Quantum(_) => None,
        }
    }
}

impl Block {
    /// The most records a block holds.
    pub const RECORDS_MAX: usize = 1 << 16;
    /// The most events a block holds.
    pub const EVENTS_MAX: usize = 1 << 12;
    /// The longest text in an event, in bytes: the longest path Linux knows.
    pub const TEXT_BYTES_MAX: usize = 4096;

    /// Empties the block for the process's next, which begins where this one ends. Keeps memory.
    pub fn begin_next(&mut self) {
        self.time_start = self.time_end();
        self.clear();
    }

    /// Removes all records and events. Keeps process, start and memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.kinds.clear();
        self.gaps.clear();
        self.events.clear();
    }

    /// Appends a record.
    pub fn push(&mut self, page: u64, kinds: Kinds, gap: u32) {
        self.pages.push(page);
        self.kinds.push(kinds.0);
        self.gaps.push(gap);
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Returns true if there is neither a record nor an event.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.events.is_empty()
    }

    /// The process's time at the last record or event. A walk over the gaps.
    ///
    /// Saturates where [`check`](Self::check) finds a flaw.
    pub fn time_end(&self) -> u64 {
        let gaps: u64 = self.gaps.iter().map(|&gap| u64::from(gap)).sum();
        let records = self.time_start.saturating_add(gaps);
        self.events
            .last()
            .map_or(records, |last| last.time.max(records))
    }

    /// Walks the invariants that one block can keep alone.
    ///
    /// # Errors
    /// The first flaw, where the block breaks one.
    pub fn check(&self) -> Result<(), Flaw> {
        let records = self.pages.len();
        if self.kinds.len() != records || self.gaps.len() != records {
            return Err(Flaw::ColumnsDiffer);
        }
        if records > Self::RECORDS_MAX {
            return Err(Flaw::TooManyRecords { records });
        }
        if self.events.len() > Self::EVENTS_MAX {
            return Err(Flaw::TooManyEvents {
                events: self.events.len(),
            });
        }
        // All at once, without a branch: which one is wrong is looked for if one is.
        if self.kinds.iter().fold(0, |all, kinds| all | kinds) > Kinds::ALL.0 {
            let wrong = |&kinds: &u8| kinds > Kinds::ALL.0;
            let record = self.kinds.iter().position(wrong);
            let record = record.expect("a bit of all is a bit of one");
            return Err(Flaw::UnknownKind { record });
        }
        let gaps: u64 = self.gaps.iter().map(|&gap| u64::from(gap)).sum();
        if self.time_start.checked_add(gaps).is_none() {
            return Err(Flaw::TimeTooLarge);
        }
        self.check_events()
    }

    /// The records in stretches, in order: each with the event that comes behind it; none comes
    /// behind the last. Stretches may be empty.
    pub fn stretches(&self) -> impl Iterator<Item = (Range<usize>, Option<&Event>)> {
        let events = self.events.iter();
        let events = events.map(|placed| (placed.after as usize, Some(&placed.event)));
        let mut from = 0;
        events
            .chain([(self.pages.len(), None)])
            .map(move |(until, event)| {
                let stretch = from..until.clamp(from, self.pages.len());
                from = stretch.end;
                (stretch, event)
            })
    }

    /// The events' share of [`check`](Self::check): walks the records once beside them.
    fn check_events(&self) -> Result<(), Flaw> {
        let mut passed = 0;
        let mut time_records = self.time_start;
        let mut time_least = self.time_start;
        for (event, placed) in self.events.iter().enumerate() {
            let after = placed.after as usize;
            if after < passed || after > self.gaps.len() {
                return Err(Flaw::EventOutOfPlace { event });
            }
            let between = &self.gaps[passed..after];
            time_records += between.iter().map(|&gap| u64::from(gap)).sum::<u64>();
            time_least = time_least.max(time_records);
            let time_next = self.gaps.get(after);
            let is_late = time_next.is_some_and(|&gap| placed.time > time_records + u64::from(gap));
            if placed.time < time_least || is_late {
                return Err(Flaw::EventOutOfTime { event });
            }
            (passed, time_least) = (after, placed.time);
            placed.event.check(event)?;
        }
        Ok(())
    }
}

/// The way a block breaks an invariant. Places are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The columns have different lengths.
    ColumnsDiffer,
    /// There are more records than a block holds.
    TooManyRecords {
        /// The number of records.
        records: usize,
    },
    /// There are more events than a block holds.
    TooManyEvents {
        /// The number of events.
        events: usize,
    },
    /// A record has a kind of access that is none.
    UnknownKind {
        /// The record.
        record: usize,
    },
    /// An event stands before its predecessor, or behind the last record.
    EventOutOfPlace {
        /// The event.
        event: usize,
    },
    /// An event's time is not between those of its neighbours.
    EventOutOfTime {
        /// The event.
        event: usize,
    },
    /// A text is longer than [`Block::TEXT_BYTES_MAX`].
    TextTooLong {
        /// The event it is in.
        event: usize,
    },
    /// A range ends beyond the last page or byte that 64 bits can number, or has rights that are
    /// none.
    RangeTooLarge {
        /// The event it is in.
        event: usize,
    },
    /// The block's time ends beyond 64 bits.
    TimeTooLarge,
    /// The process's time goes back, or its number skips one.
    OutOfOrder,
}

/// An event and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The number of records of the block that came before the event.
    pub after: u32,
    /// The process's time when it happened.
    pub time: u64,
    /// The event.
    pub event: Event,
}

/// The rights of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(pub u8);

impl Rights {
    /// Loads.
    pub const READ: Rights = Rights(1);
    /// Stores.
    pub const WRITE: Rights = Rights(2);
    /// Instruction fetches.
    pub const EXECUTE: Rights = Rights(4);
    /// Every bit with a meaning.
    pub const ALL: Rights = Rights(7);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{LifeEvent, MappingEvent};

    fn block() -> Block {
        let mut block = Block {
            time_start: 10,
            ..Block::default()
        };
        block.push(1, Kinds::LOAD, 5);
        block.push(2, Kinds::FETCH.with(Kinds::LOAD), 7);
        block
    }

    fn with_event(after: u32, time: u64) -> Block {
        let event = Event::Life(LifeEvent::Fork { child: 7 });
        let mut block = block();
        block.events.push(Placed { after, time, event });
        block
    }

    #[test]
    fn a_block_ends_with_its_last_record_or_event() {
        assert_eq!(block().time_end(), 22);
        assert_eq!(with_event(2, 30).time_end(), 30);
        assert_eq!(with_event(1, 16).time_end(), 22);
        let mut next = with_event(2, 30);
        next.begin_next();
        assert_eq!((next.time_start, next.is_empty()), (30, true));
    }

    #[test]
    fn an_event_lies_between_its_neighbours() {
        for (after, time) in [(0, 10), (0, 15), (1, 15), (1, 22), (2, 22), (2, 99)] {
            assert_eq!(with_event(after, time).check(), Ok(()), "{after} at {time}");
        }
        for (after, time) in [(0, 9), (0, 16), (1, 14), (1, 23), (2, 21)] {
            let flaw = Flaw::EventOutOfTime { event: 0 };
            assert_eq!(
                with_event(after, time).check(),
                Err(flaw),
                "{after} at {time}"
            );
        }
        let flaw = Flaw::EventOutOfPlace { event: 0 };
        assert_eq!(with_event(3, 22).check(), Err(flaw));
    }

    #[test]
    fn events_stand_in_order() {
        let mut block = with_event(2, 30);
        block.events.push(Placed {
            after: 2,
            time: 29,
            event: Event::Life(LifeEvent::Exit { status: 0 }),
        });
        assert_eq!(block.check(), Err(Flaw::EventOutOfTime { event: 1 }));
        block.events[1].time = 30;
        assert_eq!(block.check(), Ok(()));
        block.events[1].after = 1;
        assert_eq!(block.check(), Err(Flaw::EventOutOfPlace { event: 1 }));
    }

    #[test]
    fn columns_have_one_bounded_length() {
        let mut block = block();
        block.kinds.pop();
        assert_eq!(block.check(), Err(Flaw::ColumnsDiffer));
        block.kinds.push(16);
        assert_eq!(block.check(), Err(Flaw::UnknownKind { record: 1 }));
        let records = Block::RECORDS_MAX + 1;
        let many = Block {
            pages: vec![0; records],
            kinds: vec![0; records],
            gaps: vec![0; records],
            ..Block::default()
        };
        assert_eq!(many.check(), Err(Flaw::TooManyRecords { records }));
    }

    #[test]
    fn nothing_exceeds_what_64_bits_hold() {
        let mut block = block();
        block.time_start = u64::MAX - 11;
        assert_eq!(block.check(), Err(Flaw::TimeTooLarge));
        let mut block = with_event(2, 30);
        block.events[0].event = Event::Mapping(MappingEvent::Unmap {
            start: u64::MAX,
            pages: 1,
        });
        assert_eq!(block.check(), Err(Flaw::RangeTooLarge { event: 0 }));
        block.events[0].event = Event::Mark {
            name: "x".repeat(Block::TEXT_BYTES_MAX + 1),
        };
        assert_eq!(block.check(), Err(Flaw::TextTooLong { event: 0 }));
    }
}
