//! The totals of a trace: its processes, kinds of access, mappings and length.

use std::collections::HashMap;
use std::io::Read;

use serde::Serialize;

use crate::container::{Ending, Reader};
use crate::error::Error;
use crate::event::{Event, FileEvent, LifeEvent};
use crate::model::{Block, Header, Kinds, TimeUnit};
use crate::page_set::PageSet;
use crate::regions::Regions;

/// The name of pages that no mapping covers.
pub const UNMAPPED: &str = "[not mapped]";

/// The number of pages that the table of recent ones holds; a power of two.
const RECENT: usize = 1 << 10;

/// The number of mappings that children take over from their parents, all together: a block of a
/// few bytes may start a child of a parent with very many. Later children begin without any.
const INHERITED_MAX: usize = 1 << 22;

/// A trace, added up.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The header of the trace.
    pub header: Header,
    /// True if it has its index, and so was neither cut off nor is still being written.
    pub is_complete: bool,
    /// The bytes that were read of it.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The number of records.
    pub records: u64,
    /// The number of events.
    pub events: u64,
    /// The number of different pages, over all processes.
    pub pages: u64,
    /// The most pages that were there at one time: those of processes that had ended, or ran
    /// another program, were gone.
    pub pages_at_once: u64,
    /// The processes, by their numbers in the trace.
    pub processes: Vec<ProcessSummary>,
    /// The named phases, in the order of the trace.
    pub phases: Vec<Phase>,
}

/// A process, added up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessSummary {
    /// Its number in the trace.
    pub process: u32,
    /// Its number in the system, where that is known.
    pub pid: Option<u32>,
    /// Its parent's number in the system, where that is known.
    pub parent: Option<u32>,
    /// The programs it ran, one after the other.
    pub programs: Vec<String>,
    /// The way it ended, where that is in the trace.
    pub end: Option<End>,
    /// The number of records.
    pub records: u64,
    /// The number of different pages.
    pub pages: u64,
    /// Its time at the beginning, in the header's unit.
    pub time_start: u64,
    /// Its time at the end, in the header's unit.
    pub time_end: u64,
    /// The most threads that were there at a time.
    pub threads: u32,
    /// The number of records that have each kind of access; one may have several.
    pub kinds: KindCounts,
    /// The mappings, those with most records first. Empty where no mapping is in the trace.
    pub regions: Vec<RegionSummary>,
    /// The bytes that went to and from files by system calls.
    pub files: FileCounts,
    /// The longest window, in nanoseconds; absent where all are as long as the header says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
}

/// The bytes that went to and from files by system calls, and so not through mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileCounts {
    /// The number of events of reads; one may be of several calls.
    pub reads: u64,
    /// The bytes read.
    pub bytes_read: u64,
    /// The number of events of writes.
    pub writes: u64,
    /// The bytes written.
    pub bytes_written: u64,
}

impl FileCounts {
    fn note_read(&mut self, bytes: u64) {
        self.reads += 1;
        self.bytes_read = self.bytes_read.saturating_add(bytes);
    }

    fn note_write(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes_written = self.bytes_written.saturating_add(bytes);
    }
}

/// The number of records that have each kind of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindCounts {
    /// An instruction was fetched.
    pub fetch: u64,
    /// Data was loaded.
    pub load: u64,
    /// Data was stored.
    pub store: u64,
    /// The kernel made the access.
    pub kernel: u64,
    /// Records whose kind is not known.
    pub unknown: u64,
}

/// The mappings of one name, added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegionSummary {
    /// The file, or what stands for one.
    pub name: String,
    /// The number of records.
    pub records: u64,
    /// The number of different pages.
    pub pages: u64,
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With this exit status.
    Status(u32),
    /// By this signal.
    Signal(u32),
}

/// A named phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// The process that named it.
    pub process: u32,
    /// The process's time when it began, in the header's unit.
    pub time: u64,
    /// The name.
    pub name: String,
}

/// A process while it is added up.
#[derive(Default)]
struct Account {
    summary: ProcessSummary,
    regions: Regions,
    has_regions: bool,
    threads: u32,
    by_kinds: [u64; 16],
    /// The pages that its program has touched.
    alive: PageSet,
    /// The numbers of the mappings' names.
    names: HashMap<String, u32>,
    /// The mappings' names, in the order of first use.
    uses: Vec<Use>,
    /// The index in `uses` of the last looked-up name, which the next look-up tries first.
    name_last: usize,
}

/// The use made of the mappings of one name.
struct Use {
    name: String,
    records: u64,
    pages: PageSet,
}

/// Pages used last: one table for all processes, since a small trace may have many of them.
struct Recent {
    slots: Vec<Used>,
}

/// A page that was used, and the number of its mapping's name in its process.
#[derive(Clone, Copy)]
struct Used {
    page: u64,
    process: u32,
    name: u32,
}

/// The pages that are there, of all processes.
#[derive(Default)]
struct Living {
    now: u64,
    most: u64,
}

/// The value of pages that no process has.
const UNUSED: Used = Used {
    page: 0,
    process: u32::MAX,
    name: u32::MAX,
};

impl Summary {
    /// Reads a trace to its end and adds it up. Memory: some 90 bytes for each group of 64 pages
    /// that has been used, and some 50 for each further name that it had.
    ///
    /// # Errors
    /// The trace can't be read.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Result<Summary, Error> {
        let mut accounts: Vec<Account> = Vec::new();
        let mut phases = Vec::new();
        let mut recent = Recent::new();
        let mut living = Living::default();
        let mut inherited_max = INHERITED_MAX;
        let mut block = Block::default();
        while reader.next_block(&mut block)? {
            let process = block.process as usize;
            if process == accounts.len() {
                accounts.push(Account::new(&block));
            }
            if let Some(parent) = find_parent(&accounts, &block, inherited_max) {
                let regions = parent.regions.clone();
                inherited_max -= regions.count();
                accounts[process].regions = regions;
                accounts[process].has_regions = true;
                recent.forget();
            }
            accounts[process].add(&block, &mut recent, &mut living, &mut phases);
        }
        let processes: Vec<ProcessSummary> = accounts.into_iter().map(Account::close).collect();
        let index = reader.index();
        Ok(Summary {
            header: reader.header().clone(),
            is_complete: reader.ending() == Ending::Complete,
            bytes: reader.bytes(),
            blocks: index.entries.len() as u64,
            records: index.records(),
            events: index.events(),
            pages: processes.iter().map(|process| process.pages).sum(),
            pages_at_once: living.most,
            processes,
            phases,
        })
    }

    /// The bytes a record takes in the file, header, events and index included.
    pub fn bytes_per_record(&self) -> f64 {
        self.bytes as f64 / self.records.max(1) as f64
    }
}

impl TimeUnit {
    /// The name of the unit, in plain words.
    pub const fn noun(self) -> &'static str {
        match self {
            TimeUnit::Instructions => "instructions",
            TimeUnit::References => "references",
            TimeUnit::Nanoseconds => "nanoseconds",
        }
    }
}

impl Account {
    fn new(block: &Block) -> Account {
        let mut account = Account {
            threads: 1,
            ..Account::default()
        };
        account.summary.process = block.process;
        account.summary.time_start = block.time_start;
        account.summary.threads = 1;
        account
    }

    fn add(
        &mut self,
        block: &Block,
        recent: &mut Recent,
        living: &mut Living,
        phases: &mut Vec<Phase>,
    ) {
        self.summary.records += block.len() as u64;
        self.summary.time_end = block.time_end();
        for &kinds in &block.kinds {
            self.by_kinds[usize::from(kinds & Kinds::ALL.0)] += 1;
        }
        let mut passed = 0;
        for placed in &block.events {
            let after = placed.after as usize;
            self.add_pages(&block.pages[passed..after], recent, living);
            passed = after;
            if let Event::Mark { name } = &placed.event {
                phases.push(Phase {
                    process: block.process,
                    time: placed.time,
                    name: name.clone(),
                });
            }
            let is_change = self.note(&placed.event);
            let is_end = placed.event.ends_program();
            if is_end {
                living.now -= std::mem::take(&mut self.alive).count();
            }
            if is_change || is_end {
                recent.forget();
            }
        }
        self.add_pages(&block.pages[passed..], recent, living);
    }

    fn add_pages(&mut self, pages: &[u64], recent: &mut Recent, living: &mut Living) {
        let process = self.summary.process;
        for &page in pages {
            let used = &mut recent.slots[page as usize & (RECENT - 1)];
            if (used.page, used.process) != (page, process) {
                let name = self.look_up(page);
                let before = self.alive.count();
                self.alive.insert(page);
                living.now += self.alive.count() - before;
                living.most = living.most.max(living.now);
                *used = Used {
                    page,
                    process,
                    name,
                };
            }
            self.uses[used.name as usize].records += 1;
        }
    }

    /// The number of the name of the mapping of `page`; notes its use.
    fn look_up(&mut self, page: u64) -> u32 {
        let found = self.regions.find(page);
        let name = found.map_or(UNMAPPED, |region| &region.name);
        let is_last = |used: &Use| used.name == name;
        if !self.uses.get(self.name_last).is_some_and(is_last) {
            self.name_last = match self.names.get(name) {
                Some(&number) => number as usize,
                None => {
                    let number = self.uses.len();
                    let known = u32::try_from(number).expect("there are fewer names than events");
                    self.names.insert(name.to_owned(), known);
                    self.uses.push(Use {
                        name: name.to_owned(),
                        records: 0,
                        pages: PageSet::default(),
                    });
                    number
                }
            };
        }
        self.uses[self.name_last].pages.insert(page);
        self.name_last as u32
    }

    /// Notes an event; whether it changed any mapping.
    fn note(&mut self, event: &Event) -> bool {
        let is_change = self.regions.apply(event);
        self.has_regions |= is_change;
        let summary = &mut self.summary;
        match event {
            Event::Life(LifeEvent::Start {
                pid,
                parent,
                program,
            }) => {
                summary.pid = Some(*pid);
                summary.parent = (*parent != 0).then_some(*parent);
                if !program.is_empty() {
                    summary.programs.push(program.clone());
                }
            }
            Event::Life(LifeEvent::Exec { program }) => {
                summary.programs.push(program.clone());
                self.threads = 1;
            }
            Event::Life(LifeEvent::ThreadStart { .. }) => {
                self.threads = self.threads.saturating_add(1);
                summary.threads = summary.threads.max(self.threads);
            }
            Event::Life(LifeEvent::ThreadExit { .. }) => {
                self.threads = self.threads.saturating_sub(1)
            }
            Event::Life(LifeEvent::Exit { status }) => summary.end = Some(End::Status(*status)),
            Event::Life(LifeEvent::Killed { signal }) => summary.end = Some(End::Signal(*signal)),
            Event::File(FileEvent::Read { bytes, .. }) => summary.files.note_read(*bytes),
            Event::File(FileEvent::Write { bytes, .. }) => summary.files.note_write(*bytes),
            Event::Mapping(_)
            | Event::Life(
                LifeEvent::ThreadSwitch { .. } | LifeEvent::Fork { .. } | LifeEvent::Wait { .. },
            )
            | Event::Mark { .. }
            | Event::File(FileEvent::Cut { .. })
            | Event::Visit
            | Event::Size { .. } => {}
            Event::Windows { ns } => summary.window_ns = summary.window_ns.max(Some(*ns)),
        }
        is_change
    }

    fn close(self) -> ProcessSummary {
        let mut summary = self.summary;
        // A page may have been in mappings of several names, one after the other.
        summary.pages = match &self.uses[..] {
            [] => 0,
            [used] => used.pages.count(),
            several => {
                let mut pages = PageSet::default();
                several.iter().for_each(|used| pages.unite(&used.pages));
                pages.count()
            }
        };
        let count = |kind: Kinds| {
            let with = self.by_kinds.iter().enumerate();
            with.filter(|(kinds, _)| Kinds(*kinds as u8).has(kind))
                .map(|(_, count)| count)
                .sum()
        };
        summary.kinds = KindCounts {
            fetch: count(Kinds::FETCH),
            load: count(Kinds::LOAD),
            store: count(Kinds::STORE),
            kernel: count(Kinds::KERNEL),
            unknown: self.by_kinds[0],
        };
        if self.has_regions {
            summary.regions = self
                .uses
                .into_iter()
                .map(|used| RegionSummary {
                    name: used.name,
                    records: used.records,
                    pages: used.pages.count(),
                })
                .collect();
        }
        summary
            .regions
            .sort_by(|a, b| (b.records, &a.name).cmp(&(a.records, &b.name)));
        summary
    }
}

impl Recent {
    fn new() -> Recent {
        Recent {
            slots: vec![UNUSED; RECENT],
        }
    }

    /// Forgets them: a page may belong to another mapping now.
    fn forget(&mut self) {
        self.slots.fill(UNUSED);
    }
}

/// The parent whose mappings a process that starts in `block` has, if they are not too many.
fn find_parent<'a>(
    accounts: &'a [Account],
    block: &Block,
    regions_max: usize,
) -> Option<&'a Account> {
    let parent = block.events.iter().find_map(|placed| match placed.event {
        Event::Life(LifeEvent::Start { parent, .. }) if parent != 0 => Some(parent),
        _ => None,
    })?;
    let found = accounts
        .iter()
        .rev()
        .find(|account| account.summary.pid == Some(parent))?;
    (found.has_regions && found.regions.count() <= regions_max).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Writer;
    use crate::event::MappingEvent;
    use crate::import;
    use crate::model::{Placed, Rights};
    use crate::regions::ANONYMOUS;

    fn placed(after: u32, event: Event) -> Placed {
        let time = u64::from(after);
        Placed { after, time, event }
    }

    fn map(start: u64, pages: u64, file: &str) -> Event {
        Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights: Rights::READ,
            is_shared: false,
            memory: file.into(),
            offset: 0,
        })
    }

    fn start(pid: u32, parent: u32) -> Event {
        let program = String::from("/bin/x");
        Event::Life(LifeEvent::Start {
            pid,
            parent,
            program,
        })
    }

    fn summary(blocks: &[Block]) -> Summary {
        let mut writer = Writer::new(Vec::new(), &import::header("a test", 4096)).unwrap();
        blocks.iter().for_each(|block| writer.write(block).unwrap());
        let bytes = writer.finish().unwrap();
        let summary = Summary::read(&mut Reader::new(&bytes[..]).unwrap()).unwrap();
        assert_eq!(summary.bytes, bytes.len() as u64);
        summary
    }

    fn parent_and_child() -> [Block; 2] {
        let mut parent = Block::default();
        parent.push(10, Kinds::FETCH, 1);
        parent.push(20, Kinds::LOAD.with(Kinds::STORE), 1);
        parent.push(99, Kinds::default(), 1);
        parent.push(10, Kinds::STORE.with(Kinds::KERNEL), 1);
        let unmap = Event::Mapping(MappingEvent::Unmap {
            start: 10,
            pages: 5,
        });
        parent.events = vec![
            placed(0, start(100, 0)),
            placed(0, map(10, 5, "/bin/x")),
            placed(0, map(20, 5, "")),
            placed(1, Event::Life(LifeEvent::ThreadStart { thread: 2 })),
            placed(
                2,
                Event::Mark {
                    name: "work".into(),
                },
            ),
            placed(2, Event::Life(LifeEvent::Fork { child: 101 })),
            placed(3, unmap),
            placed(3, map(10, 5, "/lib/y")),
            placed(4, Event::Life(LifeEvent::Exit { status: 3 })),
        ];
        let mut child = Block {
            process: 1,
            ..Block::default()
        };
        child.push(20, Kinds::LOAD, 1);
        child.events = vec![
            placed(0, start(101, 100)),
            placed(1, Event::Life(LifeEvent::Killed { signal: 9 })),
        ];
        [parent, child]
    }

    #[test]
    fn processes_are_told_apart() {
        let summary = summary(&parent_and_child());
        assert_eq!((summary.records, summary.pages, summary.events), (5, 4, 11));
        assert!(summary.is_complete);
        let [parent, child] = &summary.processes[..] else {
            panic!("{summary:?}")
        };
        assert_eq!((parent.pid, parent.parent), (Some(100), None));
        assert_eq!((child.pid, child.parent), (Some(101), Some(100)));
        assert_eq!(
            (parent.end, child.end),
            (Some(End::Status(3)), Some(End::Signal(9)))
        );
        assert_eq!((parent.threads, child.threads), (2, 1));
        assert_eq!((parent.time_start, parent.time_end), (0, 4));
        let expected = KindCounts {
            fetch: 1,
            load: 1,
            store: 2,
            kernel: 1,
            unknown: 1,
        };
        assert_eq!(parent.kinds, expected);
        assert_eq!(summary.phases[0].name, "work");
        assert_eq!(summary.phases[0].time, 2);
    }

    #[test]
    fn found_m4_pages_of_processes_that_ended_are_not_there() {
        let [parent, child] = parent_and_child();
        let summary = summary(&[parent, child]);
        // Three of the parent, who ended; then one of the child.
        assert_eq!((summary.pages, summary.pages_at_once), (4, 3));
    }

    #[test]
    fn records_go_to_the_mapping_of_their_time() {
        let summary = summary(&parent_and_child());
        let names = |process: usize| -> Vec<(String, u64, u64)> {
            let regions = summary.processes[process].regions.iter();
            regions
                .map(|region| (region.name.clone(), region.records, region.pages))
                .collect()
        };
        let row = |name: &str| (name.to_owned(), 1, 1);
        let expected = ["/bin/x", "/lib/y", ANONYMOUS, UNMAPPED].map(row);
        assert_eq!(names(0), expected);
        assert_eq!(names(1), [row(ANONYMOUS)], "it has its parent's mappings");
    }

    #[test]
    fn the_same_page_of_two_processes_belongs_to_the_mapping_of_each() {
        let turn = |process: u32, time_start: u64, events: Vec<Placed>| {
            let mut block = Block {
                process,
                time_start,
                events,
                ..Block::default()
            };
            block.push(10, Kinds::LOAD, 1);
            block
        };
        let summary = summary(&[
            turn(0, 0, vec![placed(0, map(10, 1, "/bin/x"))]),
            turn(1, 0, vec![placed(0, map(10, 1, "/bin/y"))]),
            turn(0, 1, Vec::new()),
            turn(1, 1, Vec::new()),
        ]);
        let name = |process: usize| &summary.processes[process].regions[0];
        assert_eq!((&*name(0).name, name(0).records), ("/bin/x", 2));
        assert_eq!((&*name(1).name, name(1).records), ("/bin/y", 2));
    }

    #[test]
    fn mappings_are_not_taken_over_without_end() {
        let [parent, child] = parent_and_child();
        let mut account = Account::new(&parent);
        account.add(
            &parent,
            &mut Recent::new(),
            &mut Living::default(),
            &mut Vec::new(),
        );
        let accounts = [account];
        assert!(find_parent(&accounts, &child, 2).is_some());
        assert!(find_parent(&accounts, &child, 1).is_none());
    }

    #[test]
    fn a_trace_without_mappings_has_no_regions() {
        let mut block = Block::default();
        block.push(1, Kinds::LOAD, 1);
        let summary = summary(&[block]);
        assert!(summary.processes[0].regions.is_empty());
        assert_eq!(summary.processes[0].pid, None);
    }
}
