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

use std::path::Path;

use tidemark_results::analysis::map::{self, MapRecord};
use tidemark_results::analysis::report::{self, ReportRecord};
use tidemark_results::analysis::{Mark, TimeUnit, TraceFacts, Windows};
use tidemark_trace::{
    Block, Blocks, Error, Event, Granularity, Header, MappingEvent, Placed, Speed, Unpacker,
};

use crate::analysis::ageing::working_set_over_time;
use crate::analysis::map::{AddressMap, Fineness, Mapper};
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::references::Columns;
use crate::analysis::sampled_windows::{SampledWindows, WindowsReading};
use crate::analysis::sampler::Sampler;
use crate::analysis::shards::Sampling;
use crate::analysis::sight::Sight;
use crate::analysis::{Choice, Loading, References};

use extent::Extent;
use passing::{Passed, Passer};

pub use chosen::{Known, Unchosen};
pub use compression::Compression;
pub use opened::Opened;
pub use order::{Assumed, CurveOrder, Sizes};
pub use paging_costs::{NamedDisk, PagingCosts};
pub use passing::{Passing, WorkingSets};
pub use policies::{Named, UnknownPolicy};
pub use rehearsal::{Rehearsal, RehearsalOrder};
pub use replay::{Replay, ReplayOrder, Replayed, Unreadable, Unrunnable};
pub use trial::{METRICS, Trial, count_peak_pages, run_trials};

/// The version that records are written by.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Gets the progress: the step at work, and the share that is done, from 0 to 1.
pub type Progress<'a> = dyn FnMut(&str, f64) + 'a;

/// The parts of a trace that are wanted. Each part takes memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The references in order: 12 bytes each.
    pub references: bool,
    /// Their pages in order, without times: 4 bytes each. Enough for policies of a fixed space.
    pub pages: bool,
    /// The counts made in passing.
    pub passing: Passing,
    /// Samples of the pages, from which LRU's curve is estimated: 100 bytes a page that is kept.
    pub sampling: Option<Sampling>,
    /// The address map.
    pub map: Option<Fineness>,
    /// True if the optimum is to be counted: 20 bytes a reference, for as long as that takes.
    pub optimum: bool,
    /// True if the good part of a trace that is cut off in the middle is used.
    pub partial: bool,
}

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

impl Wanted {
    /// The needs of curves of `policies`.
    pub fn curves(policies: &[Named], assumed: &Assumed) -> Wanted {
        let has = |named: &[Named]| policies.iter().any(|policy| named.contains(policy));
        let is_simulated = |policy: &Named| matches!(policy, Named::Simulated(_));
        Wanted {
            references: has(&[Named::Pff]),
            pages: has(&[Named::Opt]) || policies.iter().any(is_simulated),
            passing: Passing {
                depths: has(&[Named::Lru]),
                intervals: has(&[Named::WorkingSet, Named::Vmin]).then(|| assumed.clone()),
                working_sets: None,
            },
            optimum: has(&[Named::Opt]),
            ..Wanted::default()
        }
    }

    /// Returns true if any page is numbered.
    fn has_pages(&self) -> bool {
        self.references || self.pages || self.passing != Passing::default()
    }
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
        facts.granularity = self::facts(header, references.granularity).granularity;
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

/// `wanted`, with the windows that are usual if none are named; and the working sets to be followed
/// when the trace has been read.
///
/// Of a trace that was sampled there are few references, and they tell what it can't: they are
/// held, and nothing is counted in passing.
fn settle(
    mut wanted: Wanted,
    header: &Header,
    facts: &TraceFacts,
) -> (Wanted, Option<WorkingSets>) {
    if header.granularity.window_ns().is_some() {
        let passing = std::mem::take(&mut wanted.passing);
        wanted.references = true;
        return (wanted, passing.working_sets);
    }
    if let Some(sets) = &mut wanted.passing.working_sets
        && sets.windows.is_empty()
    {
        sets.windows = time::usual_windows(facts.time);
    }
    (wanted, None)
}

/// The number of longest intervals that decide how much memory is needed: one more than the
/// bearable page-ins.
fn longest(passing: &Passing, speed: Option<Speed>, facts: &TraceFacts, extent: Extent) -> u64 {
    let Some(assumed) = &passing.intervals else {
        return 0;
    };
    assumed
        .informed(speed, facts.time_unit, facts.time)
        .page_ins_max(extent.end, facts.time_unit)
        .min(extent.references)
        + 1
}

/// A trace that is being read.
struct Reading {
    loading: Loading,
    mapper: Mapper,
    sampler: Option<Sampler>,
    granularity: Granularity,
    /// The windows of a trace that was sampled.
    windows: Option<WindowsReading>,
    has_map: bool,
    has_mappings: bool,
    has_pages: bool,
    keeps_pages: bool,
    keeps_times: bool,
    /// The columns that are kept.
    kept: Columns,
}

impl Reading {
    fn new(header: &Header, wanted: &Wanted, extent: Extent, processes: u64) -> Reading {
        // Without a map, marks still come from one, of the least size.
        let fineness = wanted.map.unwrap_or(Fineness {
            columns_max: 2,
            rows_max: 1,
        });
        let keeps_pages = wanted.references || wanted.pages;
        let keeps_times = wanted.references && header.time != tidemark_trace::TimeUnit::References;
        let room = |is_kept| match is_kept {
            true => usize::try_from(extent.references).expect("an address has 64 bits"),
            false => 0,
        };
        Reading {
            loading: Loading::of(header, Choice::All, processes as usize),
            mapper: Mapper::new(header.time, fineness),
            sampler: wanted.sampling.as_ref().map(Sampler::new),
            granularity: header.granularity,
            windows: header.granularity.window_ns().map(WindowsReading::new),
            has_map: wanted.map.is_some(),
            has_mappings: false,
            // What processes have in common is known by the numbers of pages.
            has_pages: wanted.has_pages() || wanted.map.is_some() && processes > 1,
            keeps_pages,
            keeps_times,
            kept: Columns {
                pages: Vec::with_capacity(room(keeps_pages)),
                times: Vec::with_capacity(room(keeps_times)),
                departures: Vec::new(),
            },
        }
    }

    fn take_all(
        &mut self,
        blocks: &Blocks,
        chosen: Option<&[u32]>,
        passer: &mut Passer<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut unpacker = Unpacker::new()?;
        let mut block = Block::default();
        let entries = &blocks.index().entries;
        let count = entries.len();
        for (number, entry) in entries.iter().enumerate() {
            if chosen.is_some_and(|chosen| !chosen.contains(&entry.process)) {
                continue;
            }
            blocks.read(number, &mut unpacker, &mut block)?;
            self.take(&block, passer);
            progress("reading", (number + 1) as f64 / count as f64);
        }
        Ok(())
    }

    fn take(&mut self, block: &Block, passer: &mut Passer<'_>) {
        self.granularity = self.granularity.after(block);
        if let Some(windows) = &mut self.windows {
            windows.take(block);
        }
        let is_map =
            |placed: &Placed| matches!(placed.event, Event::Mapping(MappingEvent::Map { .. }));
        self.has_mappings = self.has_mappings || block.events.iter().any(is_map);
        if let Some(sampler) = &mut self.sampler {
            sampler.take(block);
        }
        match self.has_map {
            true => self.mapper.take(block),
            false => self.mapper.take_events(block),
        }
        if !self.has_pages {
            return;
        }
        self.loading.take(block);
        passer.take(|columns| {
            self.loading.hand_over(columns);
            if self.keeps_pages {
                self.kept.pages.extend_from_slice(&columns.pages);
                self.kept.departures.extend_from_slice(&columns.departures);
            }
            if self.keeps_times {
                self.kept.times.extend_from_slice(&columns.times);
            }
            self.loading.page_count()
        });
    }

    /// The references that were kept, the map and the samples.
    fn finish(self) -> (References, AddressMap, Option<Sampler>) {
        let mut references = self.loading.finish();
        references.pages = self.kept.pages;
        references.times = self.kept.times;
        references.departures = self.kept.departures;
        references.granularity = self.granularity;
        (references, self.mapper.finish(), self.sampler)
    }
}

/// The facts in the header. `longest` is the granularity with the longest window of all.
fn facts(header: &Header, longest: Granularity) -> TraceFacts {
    TraceFacts {
        source: header.source.clone(),
        command: header.command.clone(),
        page_bytes: header.page_bytes,
        granularity: match (header.granularity, longest) {
            (Granularity::Exact, _) => "exact".into(),
            (Granularity::Quantum(units), _) => format!("quantum {units}"),
            (Granularity::Window(ns), Granularity::Window(most)) if most > ns => {
                format!("window {ns} to {most}")
            }
            (Granularity::Window(ns), _) => format!("window {ns}"),
            (Granularity::Regions(ns), Granularity::Regions(most)) if most > ns => {
                format!("regions {ns} to {most}")
            }
            (Granularity::Regions(ns), _) => format!("regions {ns}"),
        },
        time_unit: time_unit(header.time),
        records: 0,
        pages: 0,
        processes: 0,
        time: 0,
        is_cut: false,
        is_pages_estimate: false,
        windows: None,
        pages_at_once: None,
        chosen: None,
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

fn windows_of(header: &Header, longest: Granularity, sight: Sight) -> Option<Windows> {
    Some(Windows {
        first_ns: header.granularity.window_ns()?,
        longest_ns: longest.window_ns()?,
        pages_touched: sight.pages_min,
    })
}

/// The unit as records name it.
fn time_unit(unit: tidemark_trace::TimeUnit) -> TimeUnit {
    match unit {
        tidemark_trace::TimeUnit::Instructions => TimeUnit::Instructions,
        tidemark_trace::TimeUnit::References => TimeUnit::References,
        tidemark_trace::TimeUnit::Nanoseconds => TimeUnit::Nanoseconds,
    }
}
