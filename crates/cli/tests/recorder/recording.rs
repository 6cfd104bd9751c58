//! A trace, read whole.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tidemark_trace::{Block, Ending, Event, Header, Kinds, LifeEvent, Reader};

/// The longest time until a recording has written what it knows.
const LIMIT: Duration = Duration::from_secs(60);

/// A trace.
pub struct Recording {
    pub header: Header,
    pub processes: Vec<Process>,
    pub ending: Ending,
    /// The process of each block, in the order of the file.
    pub turns: Vec<u32>,
}

/// A process of a trace.
#[derive(Default)]
pub struct Process {
    pub records: Vec<Record>,
    /// Each with the number of records before it, and its time.
    pub events: Vec<(usize, u64, Event)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub page: u64,
    pub kinds: Kinds,
    pub time: u64,
}

impl Recording {
    /// Reads the trace at `path`, as far as it goes.
    pub fn read(path: &str) -> Recording {
        let mut reader = Reader::open(path).unwrap();
        let header = reader.header().clone();
        let mut processes = Vec::new();
        let mut turns = Vec::new();
        let mut block = Block::default();
        while reader.next_block(&mut block).unwrap() {
            assert_eq!(block.check(), Ok(()));
            let number = block.process as usize;
            if processes.len() <= number {
                processes.resize_with(number + 1, Process::default);
            }
            turns.push(block.process);
            processes[number].take(&block);
        }
        Recording {
            header,
            processes,
            ending: reader.ending(),
            turns,
        }
    }

    /// Waits until the trace at `path`, which is being recorded, tells of stores to so many pages.
    pub fn await_stores(path: &str, pages: usize) {
        let began = Instant::now();
        while Recording::stores_so_far(path) < pages {
            assert!(began.elapsed() < LIMIT, "the trace does not grow");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The number of pages stored to, as far as the file at `path` goes by now.
    fn stores_so_far(path: &str) -> usize {
        let Ok(mut reader) = Reader::open(path) else {
            return 0;
        };
        let (mut process, mut block) = (Process::default(), Block::default());
        while reader.next_block(&mut block).is_ok_and(|is_there| is_there) {
            process.take(&block);
        }
        process.pages(Kinds::STORE).len()
    }

    /// The only process.
    pub fn only(&self) -> &Process {
        assert_eq!(self.processes.len(), 1);
        &self.processes[0]
    }

    /// The process whose program's path ends with `name`, at its start.
    pub fn started(&self, name: &str) -> &Process {
        let is_it = |process: &&Process| {
            process.find(|event| {
                matches!(
                    event,
                    Event::Life(LifeEvent::Start { program, .. })
                        if program.ends_with(name)
                )
            })
        };
        self.processes.iter().find(is_it).unwrap()
    }
}

impl Process {
    fn take(&mut self, block: &Block) {
        let before = self.records.len();
        let mut time = block.time_start;
        for index in 0..block.len() {
            time += u64::from(block.gaps[index]);
            self.records.push(Record {
                page: block.pages[index],
                kinds: Kinds(block.kinds[index]),
                time,
            });
        }
        for placed in &block.events {
            let after = before + placed.after as usize;
            self.events.push((after, placed.time, placed.event.clone()));
        }
    }

    /// Returns true if there is such an event.
    pub fn find(&self, is_it: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, _, event)| is_it(event))
    }

    /// The names of its marks, each with the number of records before it.
    pub fn marks(&self) -> Vec<(&str, usize)> {
        let mark = |(after, _, event): &'_ (usize, u64, Event)| match event {
            Event::Mark { name } => Some((name.clone(), *after)),
            _ => None,
        };
        let marks: Vec<_> = self.events.iter().filter_map(mark).collect();
        marks
            .into_iter()
            .map(|(name, after)| (&*name.leak(), after))
            .collect()
    }

    /// The pages with all these kinds of access.
    pub fn pages(&self, kinds: Kinds) -> BTreeSet<u64> {
        let has = self.records.iter().filter(|record| record.kinds.has(kinds));
        has.map(|record| record.page).collect()
    }

    /// Its instructions, as far as its records and events tell.
    pub fn time(&self) -> u64 {
        let record = self.records.last().map_or(0, |record| record.time);
        let event = self.events.last().map_or(0, |&(_, time, _)| time);
        record.max(event)
    }
}
