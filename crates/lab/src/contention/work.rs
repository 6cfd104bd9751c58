//! Work: what recorded programs ask of a memory system that has room for all of it.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_trace::regions::Regions;
use tidemark_trace::{Event, LifeEvent, MappingEvent, TimeUnit};

use crate::world::script::{Course, Record, is_file};
use crate::world::{Costs, Script};

/// Resident pages of a file that are mapped with the one that is asked for: 3 before, 4 after it.
/// [UVM's clustering without advice.]
const AROUND: (u64, u64) = (3, 4);

/// One thing a process asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Computes for this many nanoseconds.
    Compute(u64),
    /// Uses a private page for the first time.
    Fill,
    /// Stores to a page that is not its own yet.
    Copy,
    /// Uses a page of a file for the first time, with which this many are mapped.
    Map {
        /// The file.
        file: u32,
        /// The number of pages.
        pages: u32,
    },
    /// Uses a window of files by a system call.
    Read(u32),
    /// Ends or unmaps, and gives back this many private pages.
    Free(u32),
}

/// The pages that a job reads by system calls, in windows: as was counted, since it is not in the
/// trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Windows that every job reads.
    pub shared: u32,
    /// Windows that it alone reads.
    pub own: u32,
}

/// The requests of processes, in jobs that can be done at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub(super) jobs: Vec<Vec<Deed>>,
    pub(super) files: u32,
}

impl Work {
    /// The requests of the processes of a script. A job is a child of the first process with all
    /// its descendants, one after the other; what the first does itself is a job, too.
    pub fn of(script: &Script, costs: &Costs) -> Work {
        let unit_ps = match script.time() {
            TimeUnit::Instructions => costs.instruction_ps,
            _ => costs.reference_ps,
        };
        let mut reading = Reading {
            unit_ps,
            files: BTreeMap::new(),
            inherited: BTreeMap::new(),
        };
        let courses = &script.courses;
        let deeds: Vec<Vec<Deed>> = courses.iter().map(|course| reading.read(course)).collect();
        let mut jobs: Vec<Vec<Deed>> = vec![];
        // The job of each process, by its place; the first process's children begin one.
        let mut job_of: Vec<usize> = vec![];
        for (place, deeds) in deeds.into_iter().enumerate() {
            let parent = courses[..place]
                .iter()
                .rposition(|other| other.pid == courses[place].parent);
            let job = match parent {
                Some(parent) if parent > 0 => job_of[parent],
                _ => {
                    jobs.push(vec![]);
                    jobs.len() - 1
                }
            };
            job_of.push(job);
            jobs[job].extend(deeds);
        }
        Work {
            jobs,
            files: reading.files.len() as u32,
        }
    }

    /// This work repeated, with the same files each time.
    pub fn repeat(&self, times: u32) -> Work {
        Work {
            jobs: (0..times).flat_map(|_| self.jobs.clone()).collect(),
            files: self.files,
        }
    }

    /// This work with the reads of its jobs added, spread evenly over the time that each job
    /// computes, in the order of the windows.
    pub fn with_reads(&self, reads: Reads) -> Work {
        let mut own_from = reads.shared;
        let jobs = self.jobs.iter().map(|deeds| {
            let own = own_from..own_from + reads.own;
            own_from = own.end;
            spread(deeds, (0..reads.shared).chain(own).collect())
        });
        Work {
            jobs: jobs.collect(),
            files: self.files,
        }
    }

    /// The number of jobs.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

/// Puts the windows that are read between what a job does.
fn spread(deeds: &[Deed], windows: Vec<u32>) -> Vec<Deed> {
    let computed = |deed: &Deed| match deed {
        Deed::Compute(ns) => *ns,
        _ => 0,
    };
    let total: u64 = deeds.iter().map(computed).sum();
    let count = windows.len() as u64;
    let mut windows = windows.into_iter();
    let mut passed = 0;
    let mut mixed = Vec::with_capacity(deeds.len() + count as usize);
    for (done, deed) in deeds.iter().enumerate() {
        mixed.push(*deed);
        passed += computed(deed);
        let is_last = done + 1 == deeds.len();
        let mut due = match is_last {
            true => windows.len() as u64,
            false => (count * passed / total.max(1)).saturating_sub(count - windows.len() as u64),
        };
        while due > 0 {
            mixed.extend(windows.next().map(Deed::Read));
            due -= 1;
        }
    }
    mixed
}

/// The memory that a process has. That a parent, too, copies what it stores to after a fork is
/// left out: the child is mostly gone by then.
#[derive(Clone, Default)]
struct Held {
    regions: Regions,
    /// Pages it can use without a fault.
    mapped: BTreeSet<u64>,
    /// The mapped pages that are its own.
    own: BTreeSet<u64>,
    /// The mapped pages that it shares with its parent since the fork.
    lent: BTreeSet<u64>,
}

struct Reading {
    unit_ps: u64,
    files: BTreeMap<String, u32>,
    /// The memory with which forked processes begin, by their numbers in the system.
    inherited: BTreeMap<u32, Held>,
}

impl Reading {
    fn read(&mut self, course: &Course) -> Vec<Deed> {
        let mut held = self.inherited.remove(&course.pid).unwrap_or_default();
        let mut deeds = Deeds::default();
        let mut events = course.events.iter().peekable();
        for (place, record) in course.records.iter().enumerate() {
            while let Some((_, event)) = events.next_if(|(after, _)| *after <= place as u64) {
                self.take(event, &mut held, &mut deeds);
            }
            deeds.waiting_ps += u64::from(record.gap) * self.unit_ps;
            self.touch(course, *record, &mut held, &mut deeds);
        }
        for (_, event) in events {
            self.take(event, &mut held, &mut deeds);
        }
        deeds.free(held.own.len());
        deeds.done
    }

    fn touch(&mut self, course: &Course, record: Record, held: &mut Held, deeds: &mut Deeds) {
        let page = course.page_at(record.place());
        let is_mapped = held.mapped.contains(&page);
        if is_mapped && (!record.is_store() || held.own.contains(&page)) {
            return;
        }
        let region = held.regions.find(page);
        let file = region.filter(|region| is_file(&region.name));
        match (file, record.is_store()) {
            (Some(file), false) => {
                let number = self.number(&file.name);
                let around = page.saturating_sub(AROUND.0)..page + AROUND.1 + 1;
                let is_there = |page: &u64| {
                    let region = held.regions.find(*page);
                    region.is_some_and(|region| region.name == file.name)
                };
                let before = held.mapped.len();
                held.mapped.extend(around.filter(is_there));
                let pages = (held.mapped.len() - before) as u32;
                deeds.push(Deed::Map {
                    file: number,
                    pages,
                });
            }
            (None, false) if held.lent.contains(&page) => {
                held.mapped.insert(page);
            }
            (Some(_), true) => held.keep(page, deeds, Deed::Copy),
            (None, _) if held.lent.contains(&page) => held.keep(page, deeds, Deed::Copy),
            (None, _) => held.keep(page, deeds, Deed::Fill),
        }
    }

    fn take(&mut self, event: &Event, held: &mut Held, deeds: &mut Deeds) {
        match event {
            Event::Mapping(MappingEvent::Unmap { start, pages }) => {
                held.cut(*start, start + pages, deeds)
            }
            Event::Mapping(MappingEvent::Map { start, pages, .. }) => {
                held.cut(*start, start + pages, deeds)
            }
            Event::Life(LifeEvent::Exec { .. }) => held.cut(0, u64::MAX, deeds),
            Event::Life(LifeEvent::Fork { child }) => {
                let mut lent = held.lent.clone();
                lent.extend(held.own.iter().copied());
                let child_held = Held {
                    regions: held.regions.clone(),
                    lent: lent.clone(),
                    ..Held::default()
                };
                self.inherited.insert(*child, child_held);
            }
            Event::Mapping(MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            }) => held.shift((*from, *from_pages), (*to, *to_pages), deeds),
            _ => {}
        }
        held.regions.apply(event);
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.files.get(name) {
            return number;
        }
        let fresh = self.files.len() as u32;
        self.files.insert(name.to_owned(), fresh);
        fresh
    }
}

impl Held {
    fn keep(&mut self, page: u64, deeds: &mut Deeds, deed: Deed) {
        deeds.push(deed);
        self.mapped.insert(page);
        self.own.insert(page);
    }

    fn cut(&mut self, start: u64, end: u64, deeds: &mut Deeds) {
        let gone: Vec<u64> = self.own.range(start..end).copied().collect();
        for page in &gone {
            self.own.remove(page);
        }
        deeds.free(gone.len());
        for set in [&mut self.mapped, &mut self.lent] {
            let gone: Vec<u64> = set.range(start..end).copied().collect();
            for page in gone {
                set.remove(&page);
            }
        }
    }

    /// Moves what is kept of a range, and gives back the rest of it.
    fn shift(&mut self, from: (u64, u64), to: (u64, u64), deeds: &mut Deeds) {
        let ((from, from_pages), (to, to_pages)) = (from, to);
        let kept = from_pages.min(to_pages);
        self.cut(from + kept, from + from_pages, deeds);
        if from == to {
            return;
        }
        for set in [&mut self.mapped, &mut self.own, &mut self.lent] {
            let moved: Vec<u64> = set.range(from..from + kept).copied().collect();
            for page in moved {
                set.remove(&page);
                set.insert(page - from + to);
            }
        }
    }
}

/// A list of deeds in the making; computing that goes on is one deed.
#[derive(Default)]
struct Deeds {
    done: Vec<Deed>,
    waiting_ps: u64,
}

impl Deeds {
    fn push(&mut self, deed: Deed) {
        let ns = self.waiting_ps / 1000;
        if ns > 0 {
            self.done.push(Deed::Compute(ns));
            self.waiting_ps %= 1000;
        }
        self.done.push(deed);
    }

    fn free(&mut self, pages: usize) {
        if pages > 0 {
            self.push(Deed::Free(pages as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_trace::{Kinds, Rights};

    use super::*;
    use crate::world::Writing;
    use tidemark_trace::{Block, Granularity, Header, Placed};

    fn map(start: u64, pages: u64, file: &str) -> Event {
        Event::Mapping(MappingEvent::Map {
            start,
            pages,
            rights: Rights::ALL,
            is_shared: false,
            memory: file.into(),
            offset: 0,
        })
    }

    fn block(process: u32, pages: &[(u64, Kinds)], events: Vec<(u32, Event)>) -> Block {
        let mut block = Block {
            process,
            ..Block::default()
        };
        for &(page, kinds) in pages {
            block.push(page, kinds, 2000);
        }
        block.events = events
            .into_iter()
            .map(|(after, event)| Placed {
                after,
                time: 0,
                event,
            })
            .collect();
        block
    }

    fn work(blocks: &[Block]) -> Work {
        let mut writing = Writing::new(&Header {
            page_bytes: 4096,
            granularity: Granularity::Exact,
            time: TimeUnit::Instructions,
            source: String::new(),
            command: vec![],
            speed: None,
        });
        blocks.iter().for_each(|block| writing.take(block));
        Work::of(&writing.finish(), &crate::systems::machines::PRESENT)
    }

    fn start(pid: u32, parent: u32) -> Event {
        Event::Life(LifeEvent::Start {
            pid,
            parent,
            program: String::new(),
        })
    }

    #[test]
    fn a_page_is_filled_once_and_given_back_at_the_end() {
        let events = vec![(0, start(1, 0)), (0, map(10, 4, ""))];
        let uses = [(10, Kinds::STORE), (11, Kinds::LOAD), (10, Kinds::STORE)];
        let work = work(&[block(0, &uses, events)]);
        let own = [
            Deed::Compute(1000),
            Deed::Fill,
            Deed::Compute(1000),
            Deed::Fill,
            Deed::Compute(1000),
            Deed::Free(2),
        ];
        assert_eq!(work.jobs, [own.to_vec()]);
    }

    #[test]
    fn a_file_s_page_brings_its_neighbours_and_is_copied_when_stored_to() {
        let events = vec![(0, start(1, 0)), (0, map(10, 6, "/lib"))];
        let uses = [(11, Kinds::LOAD), (15, Kinds::LOAD), (12, Kinds::STORE)];
        let work = work(&[block(0, &uses, events)]);
        let deeds: Vec<Deed> = work.jobs[0]
            .iter()
            .copied()
            .filter(|deed| !matches!(deed, Deed::Compute(_)))
            .collect();
        let map = Deed::Map { file: 0, pages: 6 };
        assert_eq!(deeds, [map, Deed::Copy, Deed::Free(1)]);
    }

    #[test]
    fn what_is_read_is_spread_over_the_time_computed() {
        let deeds = vec![Deed::Compute(10), Deed::Fill, Deed::Compute(30)];
        let work = Work {
            jobs: vec![deeds.clone(), deeds],
            files: 0,
        };
        let work = work.with_reads(Reads { shared: 3, own: 1 });
        let reads = |own| {
            let mut deeds = vec![Deed::Compute(10), Deed::Read(0), Deed::Fill];
            deeds.push(Deed::Compute(30));
            deeds.extend([1, 2, own].map(Deed::Read));
            deeds
        };
        assert_eq!(work.jobs, [reads(3), reads(4)]);
    }

    #[test]
    fn a_child_copies_what_it_has_from_its_parent() {
        let parent = vec![
            (0, start(1, 0)),
            (0, map(10, 4, "")),
            (1, Event::Life(LifeEvent::Fork { child: 2 })),
        ];
        let child = vec![(0, start(2, 1))];
        let uses = [(10, Kinds::LOAD), (10, Kinds::STORE), (11, Kinds::STORE)];
        let work = work(&[
            block(0, &[(10, Kinds::STORE)], parent),
            block(1, &uses, child),
        ]);
        assert_eq!(work.jobs(), 2);
        let deeds = work.jobs[1].iter();
        let deeds: Vec<&Deed> = deeds
            .filter(|deed| !matches!(deed, Deed::Compute(_)))
            .collect();
        assert_eq!(deeds, [&Deed::Copy, &Deed::Fill, &Deed::Free(2)]);
    }
}
