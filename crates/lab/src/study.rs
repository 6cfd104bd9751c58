//! Studies: a trace from its file to the records that people and programs read.
//!
//! [`Study::read`] loads a trace; its methods run the analyses and answer with the records of
//! `tidemark-results`. [`Replay`] runs traces on whole memory systems. The assumptions of an
//! analysis (the time of a page-in, the windows) are arguments here, and are in the record.

mod ample;
mod batch;
mod chosen;
pub mod claims;
mod compression;
mod curves;
mod extent;
mod facts;
pub mod lifetimes;
pub mod locks;
mod opened;
mod order;
mod paging_costs;
mod passing;
pub mod points;
mod policies;
mod portrait;
pub mod prediction;
mod progress;
mod reading;
mod rehearsal;
mod replay;
mod run_costs;
mod runs;
mod sampled;
mod simulated;
mod space_time;
pub mod sweep;
mod time;
mod trial;
mod verdict;
mod wanted;

use std::path::Path;

use tidemark_results::analysis::map::{self, MapRecord};
use tidemark_results::analysis::report::{self, ReportRecord};
use tidemark_results::analysis::{Mark, TraceFacts};
use tidemark_trace::{Block, Blocks, Error, Speed, Unpacker};

use crate::analysis::References;
use crate::analysis::ageing::working_set_over_time;
use crate::analysis::map::AddressMap;
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::sampled_windows::{SampledWindows, WindowsReading};
use crate::analysis::sampler::Sampler;
use crate::analysis::sight::Sight;

use facts::{VERSION, windows_of};
use passing::{Passed, Passer};
use reading::Reading;
use wanted::{longest, settle};

pub use chosen::{Known, Unchosen};
pub use compression::Compression;
pub use opened::Opened;
pub use order::{Assumed, CurveOrder, Sizes};
pub use paging_costs::{NamedDisk, PagingCosts};
pub use passing::{Passing, WorkingSets};
pub use policies::{Named, UnknownPolicy};
pub use progress::Progress;
pub use rehearsal::{Rehearsal, RehearsalOrder};
pub use replay::{Replay, ReplayOrder, Replayed, Unreadable, Unrunnable};
pub use trial::{METRICS, Trial, count_peak_pages, run_trials};
pub use wanted::Wanted;

/// A trace that has been read.
pub struct Study {
    facts: TraceFacts,
    references: References,
    passed: Passed,
    sampler: Option<Sampler>,
    map: Option<AddressMap>,
    marks: Vec<Mark>,
    /// The measures that the trace can show.
    sight: Sight,
    /// The windows it was sampled in, if it was.
    sampled: Option<SampledWindows>,
    /// The speed of the program by itself.
    speed: Option<Speed>,
    /// The processes that are looked at, if not all.
    chosen: Option<Vec<u32>>,
    /// True if the trace tells the mappings.
    has_mappings: bool,
    /// The trace, for what goes through it once more.
    blocks: Blocks,
}

impl Study {
    /// Reads the trace in the file at `path`.
    ///
    /// # Errors
    /// It can't be read, is no trace, or is corrupt.
    pub fn read(
        path: impl AsRef<Path>,
        wanted: Wanted,
        progress: &mut Progress<'_>,
    ) -> Result<Study, Error> {
        Study::of(Opened::open(path, wanted.partial)?, wanted, progress)
    }

    /// Reads a trace that is open.
    ///
    /// # Errors
    /// It can't be read, is corrupt, or takes longer than is counted.
    pub fn of(opened: Opened, wanted: Wanted, progress: &mut Progress<'_>) -> Result<Study, Error> {
        let Opened {
            blocks,
            extent,
            mut facts,
            chosen,
            speed,
        } = opened;
        extent.check()?;
        let header = blocks.header();
        let (wanted, sets) = settle(wanted, header, &facts);
        let mut reading = Reading::new(header, &wanted, extent, facts.processes);
        let has_pages = reading.has_pages;
        let passed = std::thread::scope(|scope| {
            let touch = ReferenceString::touch_of(header.granularity);
            let longest = longest(&wanted.passing, speed, &facts, extent);
            let mut passer = Passer::start(scope, &wanted.passing, touch, extent.end, longest);
            let chosen = chosen.as_deref();
            let read = reading.take_all(&blocks, chosen, &mut passer, progress);
            let passed = passer.finish();
            read.map(|()| passed)
        })?;
        let has_mappings = reading.has_mappings;
        let sampled = reading.windows.take().map(WindowsReading::finish);
        let (references, map, sampler) = reading.finish();
        let touched: u64 = map.regions.iter().map(|region| region.touched).sum();
        facts.granularity = facts::facts(header, references.granularity).granularity;
        facts.pages = match (&sampler, wanted.map) {
            _ if has_pages => u64::from(references.page_count),
            (Some(sampler), None) => {
                facts.is_pages_estimate = true;
                sampler.pages()
            }
            (None | Some(_), _) => touched,
        };
        let sight = sight_of(&references);
        facts.windows = windows_of(header, references.granularity, sight);
        if has_pages && references.alive_max < references.page_count {
            facts.pages_at_once = Some(u64::from(references.alive_max));
        }
        if !has_pages {
            facts.time = map.time;
        }
        let mut study = Study {
            facts,
            references,
            passed,
            sampler,
            marks: map.marks.clone(),
            map: wanted.map.map(|_| map),
            sight,
            sampled,
            speed,
            chosen,
            has_mappings,
            blocks,
        };
        study.follow_sets(sets);
        Ok(study)
    }

    /// Follows the working sets `wanted` of references that are held.
    fn follow_sets(&mut self, wanted: Option<WorkingSets>) {
        let Some(WorkingSets {
            mut windows,
            pieces,
        }) = wanted
        else {
            return;
        };
        if windows.is_empty() {
            windows = self.usual_windows();
        }
        let lines = working_set_over_time(self.string(), &windows, pieces);
        self.passed.working_sets = Some((windows, lines));
    }

    /// The facts about the trace.
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// Returns true if the trace is of a program: it tells what that has mapped.
    pub fn is_of_program(&self) -> bool {
        self.has_mappings
    }

    /// The assumptions, with the trace's facts on its program's speed.
    pub fn assumed_of(&self, assumed: &Assumed) -> Assumed {
        assumed.informed(self.speed, self.facts.time_unit, self.facts.time)
    }

    /// The time the program took by itself, and its time in the kernel, where it was run so.
    pub fn native_ns(&self) -> Option<(u64, u64)> {
        match self.speed? {
            Speed::Measured {
                elapsed_ns,
                system_ns,
                ..
            } => Some((elapsed_ns, system_ns)),
            Speed::Calibrated { .. } => None,
        }
    }

    /// The address map.
    ///
    /// # Panics
    /// If the map was not wanted.
    pub fn map(&self) -> MapRecord {
        let map = self.map.as_ref().expect("the map was wanted");
        MapRecord {
            schema: map::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            columns: map.columns,
            column_time: map.column_time,
            regions: map.regions.clone(),
            marks: map.marks.clone(),
        }
    }

    /// Everything: curves of LRU, WS, VMIN and OPT, working sets, phases, map and space-time.
    ///
    /// # Panics
    /// If references or map were not wanted.
    pub fn report(&self, assumed: &Assumed, progress: &mut Progress<'_>) -> ReportRecord {
        let named = ["lru", "ws", "vmin", "opt"].map(|name| name.parse::<Named>());
        let order = CurveOrder {
            policies: named.map(|named| named.expect("these are known")).into(),
            sizes: Sizes::Spread,
            assumed: assumed.clone(),
        };
        let (curve, wss, phases) = std::thread::scope(|scope| {
            let aside = || {
                let wss = self.working_sets(&self.usual_windows(), 1000);
                (wss, self.phases())
            };
            let aside = scope.spawn(aside);
            let curve = self.curves(&order, progress);
            progress("phases", 0.9);
            let (wss, phases) = aside.join().expect("it follows the trace to its end");
            (curve, wss, phases)
        });
        progress("space-time", 0.0);
        let space_time = self.space_time(&curve, &self.assumed_of(assumed));
        progress("space-time", 1.0);
        ReportRecord {
            schema: report::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            curve,
            wss,
            map: self.map(),
            phases,
            space_time,
        }
    }

    /// Goes through the blocks of the trace once more: of the processes that are looked at. `what`
    /// is said to be done meanwhile.
    fn each_block(
        &self,
        what: &str,
        progress: &mut Progress<'_>,
        mut take: impl FnMut(&Block),
    ) -> Result<(), Error> {
        let mut unpacker = Unpacker::new()?;
        let mut block = Block::default();
        let entries = &self.blocks.index().entries;
        for (number, entry) in entries.iter().enumerate() {
            let chosen = self.chosen.as_ref();
            if chosen.is_some_and(|chosen| !chosen.contains(&entry.process)) {
                continue;
            }
            self.blocks.read(number, &mut unpacker, &mut block)?;
            take(&block);
            progress(what, (number + 1) as f64 / entries.len() as f64);
        }
        Ok(())
    }

    /// The references.
    ///
    /// # Panics
    /// If they were not wanted.
    fn string(&self) -> ReferenceString<'_> {
        let has_all = self.references.len() as u64 == self.facts.records;
        assert!(has_all, "the references were not wanted");
        ReferenceString::of(&self.references)
    }
}

/// The measures for which there is an answer.
fn sight_of(references: &References) -> Sight {
    match references.granularity.window_ns() {
        Some(longest) => {
            let string = ReferenceString::of(references);
            Sight::in_windows(string, &references.names, longest)
        }
        None => Sight::FULL,
    }
}
