//! Replays: traces as programs on whole memory systems, for several systems and sizes of memory at
//! a time, beside the optimum.
//!
//! # The optimum
//! The fewest page-ins any policy could have had are the misses of Belady's rule that are no first
//! uses, and the page-ins that no memory avoids: those of files, at first use. The latter are
//! counted by a run in ample memory. Pages are counted for each process apart, one page at a time.
//! Several programs are taken *in step*: each as far along in its own time as the others. Copies
//! have equal shares of memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use tidemark_core::id::PAGE_BYTES;
use tidemark_partition::Divider;
use tidemark_results::basis;
use tidemark_results::replay::{ReplayMachine, ReplayRecord, ReplayTrace, SCHEMA};
use tidemark_trace::container::Ending;
use tidemark_trace::private::{Extent, Managed, PrivateMemory};
use tidemark_trace::{Block, Error, Header, Reader, TimeUnit};

use super::ample;
use super::compression::Compression;
use super::facts::{VERSION, time_unit};
use super::order::Assumed;
use super::paging_costs::NamedDisk;
use super::progress::{Progress, Told, run_jobs};
use super::runs::{Terms, run_record};
use crate::analysis::optimum::{collect_next_uses, count_misses};
use crate::analysis::{Choice, FilePage, Loading, References};
use crate::systems;
use crate::world::script::Writing;
use crate::world::{
    self, DiskModel, Disks, Outcome, PolicyChoice, Program, Scenario, Scheduler, Script, System,
    Watch, WorldError,
};

/// The most references whose optimum is counted.
const REFERENCES_MAX: usize = 1 << 30;
/// The most references of copies that are written out side by side: 8 bytes each.
const REFERENCES_APART_MAX: usize = 1 << 27;
/// More pages than this do not fit a swap store.
const PAGES_MAX: u64 = 1 << 30;

/// Traces that were read, to be run on any system.
pub struct Replay {
    traces: Vec<ReplayTrace>,
    scripts: Vec<Arc<Script>>,
    /// The references of all programs in step.
    merged: Merged,
    page_bytes: u64,
    /// The memory that is managed; `None`: everything.
    extent: Option<Extent>,
    notes: Vec<String>,
}

/// The runs wanted.
#[derive(Clone, Debug)]
pub struct ReplayOrder {
    /// The systems, in the order of the record.
    pub systems: Vec<System>,
    /// The sizes of memory.
    pub memory_pages: Vec<u32>,
    /// The pages of it that programs can't have.
    pub wired_pages: u32,
    /// The number of copies of each program that run; at least one.
    pub copies: u32,
    /// The number of processors.
    pub processors: u32,
    /// The rule by which the next program is chosen.
    pub scheduler: Scheduler,
    /// The disk for swap.
    pub swap_disk: NamedDisk,
    /// The disk for files, if that is another.
    pub file_disk: Option<NamedDisk>,
    /// The sizes to which pages compress, if those that leave are compressed first, in memory.
    pub compression: Option<Compression>,
    /// The seed of random numbers.
    pub seed: u64,
    /// A policy in place of the systems' own.
    pub policy: Option<PolicyChoice>,
    /// A load control in place of the systems' own.
    pub load: Option<String>,
    /// The way in which memory is divided where each program has a memory of its own.
    pub divider: Divider,
    /// The measures kept of each run beside its sums.
    pub watch: Watch,
}

/// The way a trace is read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    is_partial: bool,
    has_others: bool,
    managed: Option<Managed<'a>>,
}

/// The results of runs.
#[derive(Debug)]
pub struct Replayed {
    /// The record of all.
    pub record: ReplayRecord,
    /// The decisions of each of its runs, a line each, if they were wanted.
    pub decisions: Vec<String>,
}

/// A trace that can't be replayed.
#[derive(Debug)]
pub enum Unreadable {
    /// The trace can't be read, is no trace, or is corrupt.
    Trace(Error),
    /// The trace has more references than the optimum is counted for, together with those before
    /// it.
    TooLong {
        /// The most there may be.
        references_max: usize,
    },
}

/// A run that can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unrunnable {
    /// The world refuses.
    World {
        /// The system that was to be run.
        system: &'static str,
        /// The size of memory, in pages.
        memory_pages: u32,
        /// The error.
        error: WorldError,
    },
    /// There are more pages than a swap store holds.
    TooManyPages {
        /// The number of pages that all programs and copies use.
        pages: u64,
        /// The most there may be.
        pages_max: u64,
    },
    /// Pages have another size than those that are compressed.
    Incompressible {
        /// The size of a page, in bytes.
        page_bytes: u64,
    },
    /// A system treats files' pages apart, and a trace does not say which are files'.
    NoMappings {
        /// The system.
        system: &'static str,
        /// The trace's name.
        trace: String,
    },
}

impl Replay {
    /// Reads the traces at `paths`. One that is cut off is refused unless `is_partial`.
    ///
    /// # Errors
    /// With the path of a trace that can't be replayed, and why.
    pub fn read(
        paths: &[PathBuf],
        is_partial: bool,
        progress: &mut Progress<'_>,
    ) -> Result<Replay, (PathBuf, Unreadable)> {
        Replay::read_managed(paths, is_partial, None, progress)
    }

    /// Reads the traces at `paths`: of each the memory that a live engine would manage, as
    /// `managed` says, or all memory without it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_managed(
        paths: &[PathBuf],
        is_partial: bool,
        managed: Option<Managed<'_>>,
        progress: &mut Progress<'_>,
    ) -> Result<Replay, (PathBuf, Unreadable)> {
        let mut replay = Replay {
            traces: vec![],
            scripts: vec![],
            merged: Merged::default(),
            page_bytes: 4096,
            extent: managed.map(|managed| managed.extent),
            notes: vec![],
        };
        let mut strings: Vec<References> = vec![];
        for path in paths {
            // Alone, the order of references is all there is to their time.
            let reading = Reading {
                is_partial,
                has_others: paths.len() > 1,
                managed,
            };
            let string = replay.read_one(path, reading, progress);
            let string = string.map_err(|error| (path.clone(), Unreadable::Trace(error)))?;
            let references: usize = strings.iter().chain([&string]).map(References::len).sum();
            if references > REFERENCES_MAX {
                let references_max = REFERENCES_MAX;
                return Err((path.clone(), Unreadable::TooLong { references_max }));
            }
            strings.push(string);
        }
        progress("in step", 0.0);
        replay.merged = in_step(strings);
        Ok(replay)
    }

    /// The number of pages that `copies` of all programs use; shared ones count once.
    pub fn footprint_pages(&self, copies: u32) -> u64 {
        let common = self.merged.common.len() as u64;
        (u64::from(self.merged.page_count) - common) * u64::from(copies) + common
    }

    /// Returns true if runs are in step: see [`Scenario::is_in_step`].
    fn is_in_step(&self) -> bool {
        self.extent == Some(Extent::Large)
    }

    /// The size of a page, in bytes.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The number of instructions that the programs take, all added up; `None` where a trace has
    /// another measure of time.
    pub fn instructions(&self) -> Option<u64> {
        let of = |script: &Arc<Script>| {
            let is_known = script.time() == TimeUnit::Instructions;
            is_known.then(|| script.time_sum())
        };
        self.scripts.iter().map(of).sum()
    }

    /// Makes the runs, on every processor.
    ///
    /// # Errors
    /// If one of them can't be made.
    pub fn run(&self, order: &ReplayOrder, progress: &Told<'_>) -> Result<Replayed, Unrunnable> {
        let pages = u64::from(self.merged.page_count_apart) * u64::from(order.copies);
        if pages > PAGES_MAX {
            let pages_max = PAGES_MAX;
            return Err(Unrunnable::TooManyPages { pages, pages_max });
        }
        if order.compression.is_some() && self.page_bytes != PAGE_BYTES {
            let page_bytes = self.page_bytes;
            return Err(Unrunnable::Incompressible { page_bytes });
        }
        self.check_mappings(order)?;
        let outcomes = self.run_all(order, progress)?;
        progress("optimum", 0.0);
        let unavoidable = self.unavoidable_page_ins(order)?;
        let best = self.merged.best(order.copies);
        let optima: Vec<u64> = order
            .memory_pages
            .par_iter()
            .map(|pages| best.returns(*pages - order.wired_pages) + unavoidable)
            .collect();
        let sizes = order.memory_pages.iter().zip(&optima).cycle();
        let runs = outcomes.iter().zip(sizes);
        let runs = runs.map(|(outcome, (&memory_pages, &optimal_page_ins))| {
            let terms = Terms {
                memory_pages,
                page_bytes: self.page_bytes,
                optimal_page_ins,
                has_time_line: order.watch.sample_ns > 0,
            };
            run_record(outcome, &terms)
        });
        Ok(Replayed {
            record: ReplayRecord {
                schema: SCHEMA.into(),
                tidemark: VERSION.into(),
                traces: self.traces.clone(),
                copies: order.copies,
                page_bytes: self.page_bytes,
                footprint_pages: self.footprint_pages(order.copies),
                machine: order.machine(self.page_bytes),
                basis: basis::of_replay(),
                runs: runs.collect(),
                optimum: self.optimum_in_words(order.copies),
                notes: self.notes.clone(),
            },
            decisions: outcomes.iter().map(decisions_in_words).collect(),
        })
    }

    /// Reads a trace once, for its script and for the optimum.
    fn read_one(
        &mut self,
        path: &Path,
        reading: Reading<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<References, Error> {
        let file_bytes = std::fs::metadata(path).map_or(0, |file| file.len()).max(1);
        let mut reader = Reader::open(path)?;
        let header = reader.header().clone();
        let time = match reading.has_others {
            true => header.time,
            false => TimeUnit::References,
        };
        let mut writing = Writing::new(&header);
        let timed = Header {
            time,
            ..header.clone()
        };
        // A live process has frames of its own for all that it uses.
        let mut loading = match self.extent {
            None => Loading::shared(&timed, Choice::All),
            Some(_) => Loading::new(&timed, Choice::All),
        };
        let mut block = Block::default();
        let mut private = reading
            .managed
            .map(|managed| PrivateMemory::new(&header, managed));
        while reader.next_block(&mut block)? {
            if let Some(private) = &mut private {
                private.keep(&mut block);
            }
            writing.take(&block);
            loading.take(&block);
            progress("reading", reader.bytes() as f64 / file_bytes as f64);
        }
        if !reading.is_partial {
            reader.check_ending()?;
        }
        let (script, string) = (writing.finish(), loading.finish());
        let name = path.file_stem().unwrap_or(path.as_os_str());
        let trace = ReplayTrace {
            name: name.to_string_lossy().into_owned(),
            command: header.command,
            records: script.len() as u64,
            pages: string.page_count.into(),
            processes: script.process_count() as u64,
            has_mappings: script.has_maps(),
        };
        if matches!(reader.ending(), Ending::Cut { .. }) {
            self.notes
                .push(format!("{}: the recording was cut short", trace.name));
        }
        let taken = match (trace.has_mappings, reading.managed) {
            (true, None) => None,
            (true, Some(Managed { files: None, .. })) => {
                Some("private anonymous memory alone, as a live run manages it")
            }
            (true, Some(Managed { files: Some(_), .. })) => Some(
                "private anonymous memory and mappings of the named files alone, as a live run \
                 manages them",
            ),
            (false, _) => Some("does not say what is mapped; taken as one piece of private memory"),
        };
        let note = taken.map(|what| format!("{}: {what}", trace.name));
        self.notes.extend(note);
        self.page_bytes = header.page_bytes;
        self.traces.push(trace);
        self.scripts.push(Arc::new(script));
        Ok(string)
    }

    /// Refuses systems for which a trace says too little. Where private memory alone was asked for,
    /// a trace that tells nothing else is all of that.
    fn check_mappings(&self, order: &ReplayOrder) -> Result<(), Unrunnable> {
        let silent = self.traces.iter().find(|trace| !trace.has_mappings);
        let Some(trace) = silent.filter(|_| self.extent.is_none()) else {
            return Ok(());
        };
        let policy = order.policy.as_ref().map(|choice| choice.name.as_str());
        let telling = |system: &&System| systems::tells_files(policy.unwrap_or(system.policy));
        match order.systems.iter().find(telling) {
            None => Ok(()),
            Some(system) => Err(Unrunnable::NoMappings {
                system: system.name,
                trace: trace.name.clone(),
            }),
        }
    }

    /// Every system in every memory, systems first.
    fn run_all(
        &self,
        order: &ReplayOrder,
        progress: &Told<'_>,
    ) -> Result<Vec<Outcome>, Unrunnable> {
        let sizes = &order.memory_pages;
        let jobs = order
            .systems
            .iter()
            .flat_map(|system| sizes.iter().map(move |size| (system, *size)));
        let jobs: Vec<(&System, u32)> = jobs.collect();
        run_jobs(&jobs, progress, |_, (system, memory_pages)| {
            self.run_one(system, order, *memory_pages)
        })
    }

    fn run_one(
        &self,
        system: &System,
        order: &ReplayOrder,
        memory_pages: u32,
    ) -> Result<Outcome, Unrunnable> {
        let disks = match self.is_in_step() {
            true => Disks {
                swap: DiskModel::INSTANT,
                files: None,
            },
            false => Disks {
                swap: order.swap_disk.model.clone(),
                files: order.file_disk.as_ref().map(|disk| disk.model.clone()),
            },
        };
        let system = match self.is_in_step() {
            true => system.in_step(),
            false => system.clone(),
        };
        let scenario = Scenario {
            wired_pages: order.wired_pages,
            processors: order.processors,
            scheduler: order.scheduler,
            disks,
            compressed: order.compression.as_ref().map(|it| it.sizes.clone()),
            is_diskless: order.compression.as_ref().is_some_and(|it| it.is_diskless),
            beside_pages: order.compression.as_ref().map_or(0, |it| it.beside_pages),
            seed: order.seed,
            policy: order.policy.clone(),
            load: order.load.clone(),
            divider: order.divider,
            watch: order.watch,
            is_apart: self.extent.is_some(),
            are_threads_overlapping: self.extent == Some(Extent::All) && system.is_divided,
            is_divided: self.extent.is_some() && system.is_divided,
            is_in_step: self.is_in_step(),
            ..Scenario::new(memory_pages, self.programs(order.copies))
        };
        world::run(&system, &scenario).map_err(|error| Unrunnable::World {
            system: system.name,
            memory_pages,
            error,
        })
    }

    /// The copies of each program, one beside the other.
    fn programs(&self, copies: u32) -> Vec<Program> {
        let traces = self.traces.iter().zip(&self.scripts);
        let several = traces.flat_map(|(trace, script)| {
            (1..=copies).map(move |copy| {
                let name = match copies {
                    1 => trace.name.clone(),
                    _ => format!("{} {copy}", trace.name),
                };
                Program::new(name, script.clone())
            })
        });
        several.collect()
    }

    /// The page-ins that remain in ample memory, one page at a time.
    fn unavoidable_page_ins(&self, order: &ReplayOrder) -> Result<u64, Unrunnable> {
        // Of pages that are stored to by some, the world may have more than count as used.
        let pages = u64::from(self.merged.page_count_apart) * u64::from(order.copies);
        let scenario = ample::scenario(pages, self.programs(order.copies));
        let outcome = world::run(&ample::SYSTEM, &scenario);
        let outcome = outcome.map_err(|error| Unrunnable::World {
            system: ample::SYSTEM.name,
            memory_pages: scenario.memory_pages,
            error,
        })?;
        Ok(outcome.counters.page_ins)
    }

    fn optimum_in_words(&self, copies: u32) -> String {
        let mut words = String::from(match self.extent {
            None => {
                "the page-ins of Belady's rule, a page at a time, where what processes share \
                 counts once"
            }
            Some(_) => {
                "the page-ins of Belady's rule, a page at a time, with each process's pages apart"
            }
        });
        if self.traces.len() > 1 || copies > 1 {
            words.push_str(
                ", if all programs go on in step, each as far along in its time as the others; a \
                 system that has one wait while another goes on may do with fewer",
            );
        } else {
            words.push_str(": no policy has fewer");
        }
        words
    }
}

fn decisions_in_words(outcome: &Outcome) -> String {
    let mut decisions = String::new();
    let written = outcome.write_decisions(&mut decisions);
    written.expect("memory takes every line");
    decisions
}

impl ReplayOrder {
    fn machine(&self, page_bytes: u64) -> ReplayMachine {
        let (scheduler, quantum_ns) = match self.scheduler {
            Scheduler::RoundRobin { quantum_ns } => ("round-robin", quantum_ns),
            Scheduler::Fair { quantum_ns } => ("fair", quantum_ns),
        };
        ReplayMachine {
            processors: self.processors,
            scheduler: scheduler.into(),
            quantum_ms: quantum_ns / 1_000_000,
            swap_disk: self.swap_disk.name.clone(),
            file_disk: self.file_disk.as_ref().map(|disk| disk.name.clone()),
            compressed: self.compression.as_ref().map(|it| it.name.clone()),
            wired_bytes: u64::from(self.wired_pages) * page_bytes,
            seed: self.seed,
        }
    }
}

/// The references of several programs, each as far along in its own time as the others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Merged {
    pages: Vec<u32>,
    /// The number of different pages.
    page_count: u32,
    /// The number of different pages, if a page that programs have in common counted once in each.
    page_count_apart: u32,
    /// The pages of files, which all copies of the programs have in common.
    common: BTreeSet<u32>,
}

/// The optimum of a number of copies.
struct Best {
    next_uses: Vec<u32>,
    page_count: u64,
    /// The copies that were not written out: their shares of memory.
    shares: u32,
    /// The pages of each such share.
    common: u32,
}

impl Merged {
    /// The facts from which the optimum of a number of copies follows for any memory. Their
    /// references are written out side by side. Of too many, each copy has an equal share of what
    /// is not common.
    fn best(&self, copies: u32) -> Best {
        let length = self.pages.len().saturating_mul(copies as usize);
        let is_written_out = copies > 1 && length <= REFERENCES_APART_MAX;
        let common = self.common.len() as u32;
        if !is_written_out {
            return Best {
                next_uses: collect_next_uses(&self.pages, self.page_count),
                page_count: self.page_count.into(),
                shares: copies,
                common,
            };
        }
        let mut pages = Vec::with_capacity(length);
        for &page in &self.pages {
            match self.common.contains(&page) {
                true => pages.push(page * copies),
                false => pages.extend((0..copies).map(|copy| page * copies + copy)),
            }
        }
        Best {
            next_uses: collect_next_uses(&pages, self.page_count * copies),
            page_count: u64::from(self.page_count - common) * u64::from(copies) + u64::from(common),
            shares: 1,
            common: 0,
        }
    }
}

impl Best {
    /// The misses of the optimum that are no first uses, in `frames`.
    fn returns(&self, frames: u32) -> u64 {
        let beside = u64::from(self.common) * u64::from(self.shares - 1);
        let each = (u64::from(frames) + beside) / u64::from(self.shares);
        let each = u32::try_from(each).unwrap_or(u32::MAX).max(1);
        let returns = match u64::from(each) < self.page_count {
            true => count_misses(&self.next_uses, each) - self.page_count,
            false => 0,
        };
        returns * u64::from(self.shares)
    }
}

/// The references of several programs, each as far along in its own time as the others. A page of a
/// file is the same in all.
fn in_step(mut strings: Vec<References>) -> Merged {
    if strings.len() == 1 {
        let string = strings.remove(0);
        return Merged {
            pages: string.pages,
            page_count: string.page_count,
            page_count_apart: string.page_count,
            common: string.common.into_keys().collect(),
        };
    }
    let assumed = Assumed::default();
    let units: Vec<f64> = strings
        .iter()
        .map(|string| assumed.time_unit_ns(time_unit(string.time)))
        .collect();
    let ns = |program: usize, at: usize| {
        let string = &strings[program];
        let ticks = string.times.get(at).copied().unwrap_or(at as u64 + 1);
        (ticks as f64 * units[program]) as u64
    };
    let mut merged = Merged::default();
    let mut known: BTreeMap<&FilePage, u32> = BTreeMap::new();
    let mut numbers: Vec<Vec<u32>> = vec![];
    for string in &strings {
        let number = |page| {
            let file = string.common.get(&page);
            if let Some(number) = file.and_then(|file| known.get(file)) {
                return *number;
            }
            let fresh = merged.page_count;
            merged.page_count += 1;
            if let Some(file) = file {
                merged.common.insert(fresh);
                known.insert(file, fresh);
            }
            fresh
        };
        numbers.push((0..string.page_count).map(number).collect());
        merged.page_count_apart += string.page_count;
    }
    let mut places = vec![0; strings.len()];
    let all = strings.iter().map(References::len).sum();
    let mut pages = Vec::with_capacity(all);
    let next = |places: &[usize]| {
        let waiting =
            (0..strings.len()).filter(|&program| places[program] < strings[program].len());
        waiting.min_by_key(|&program| ns(program, places[program]))
    };
    while let Some(program) = next(&places) {
        let page = strings[program].pages[places[program]];
        pages.push(numbers[program][page as usize]);
        places[program] += 1;
    }
    merged.pages = pages;
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_step_take_turns_by_their_own_time() {
        let slow = References::from_pages([1, 2, 1]);
        let mut fast = References::from_pages([5, 6, 5, 7]);
        fast.time = TimeUnit::Nanoseconds;
        fast.times = vec![10, 20, 60, 400];
        // A reference of the other counts as 50 ns.
        let merged = in_step(vec![slow, fast]);
        assert_eq!(
            (merged.pages, merged.page_count),
            (vec![2, 3, 0, 2, 1, 0, 4], 5)
        );
    }

    /// One program: a page of a file, and one of its own, in turns.
    fn with_a_file() -> References {
        let mut string = References::from_pages([7, 1, 7, 1, 7, 1]);
        let file = FilePage {
            file: "/lib/libc.so".into(),
            index: 7,
        };
        string.common.insert(0, file);
        string
    }

    #[test]
    fn found3_b5_what_copies_share_counts_once_in_the_optimum() {
        let merged = in_step(vec![with_a_file()]);
        let best = merged.best(3);
        // The file's page and one of each copy.
        assert_eq!(best.page_count, 4);
        assert_eq!(best.returns(4), 0);
        assert!(best.returns(3) > 0);
        // The last copy's page stays into the next round, for which the file's goes once.
        assert_eq!(best.returns(2), 5);
        // Where copies are not written out, each sees the file's page beside its share.
        let apart = Best {
            shares: 3,
            common: 1,
            ..merged.best(1)
        };
        assert_eq!(apart.returns(4), 0);
    }

    #[test]
    fn found3_b5_a_page_of_a_file_is_the_same_in_all_programs() {
        let merged = in_step(vec![with_a_file(), with_a_file()]);
        assert_eq!((merged.page_count, merged.page_count_apart), (3, 4));
        assert_eq!(merged.common, BTreeSet::from([0]));
    }
}
