//! Studies: a trace from its file to the records that people and programs read.
//!
//! [`Study::read`] loads a trace; its methods run the analyses and answer with the records of
//! `tidemark-results`. [`Replay`] runs traces on whole memory systems. What an analysis takes for
//! granted (how long a page-in lasts, which windows are shown) is an argument here, and stands in
//! the record.

mod ample;
pub mod claims;
mod curves;
pub mod lifetimes;
pub mod locks;
mod order;
mod policies;
mod rehearsal;
mod replay;
mod runs;
mod sampled;
mod simulated;
mod space_time;
mod time;
mod trial;

use std::path::Path;

use tidemark_results::analysis::map::{self, MapRecord};
use tidemark_results::analysis::report::{self, ReportRecord};
use tidemark_results::analysis::{Mark, TimeUnit, TraceFacts, Windows};
use tidemark_trace::container::Ending;
use tidemark_trace::{Block, Error, Granularity, Header, Reader, Speed};

use crate::analysis::map::{AddressMap, Fineness, Mapper};
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::sampler::Sampler;
use crate::analysis::shards::Sampling;
use crate::analysis::sight::Sight;
use crate::analysis::{Choice, Loading, References};

pub use order::{Assumed, CurveOrder, Sizes};
pub use policies::{Named, UnknownPolicy};
pub use rehearsal::{Rehearsal, RehearsalOrder};
pub use replay::{NamedDisk, Replay, ReplayOrder, Replayed, Unreadable, Unrunnable};
pub use trial::{METRICS, Trial, count_peak_pages, run_trials};

/// The version that records are written by.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Is told of progress: what is being done, and the share that is done, from 0 to 1.
pub type Progress<'a> = dyn FnMut(&str, f64) + 'a;

/// What of a trace is wanted. Each part takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The references in order: 12 bytes each.
    pub references: bool,
    /// Samples of the pages, from which LRU's curve is estimated: 100 bytes a page that is kept.
    pub sampling: Option<Sampling>,
    /// The address map.
    pub map: Option<Fineness>,
    /// What is good of a trace that is cut off in the middle, if it is.
    pub partial: bool,
}

impl Wanted {
    /// What is wanted of a trace with this header. Of one that was sampled there are few
    /// references, and they tell what it can't.
    fn of(self, header: &Header) -> Wanted {
        let is_sampled = matches!(header.granularity, Granularity::Window(_));
        Wanted {
            references: self.references || is_sampled,
            ..self
        }
    }
}

/// A trace that has been read.
pub struct Study {
    facts: TraceFacts,
    references: References,
    sampler: Option<Sampler>,
    map: Option<AddressMap>,
    marks: Vec<Mark>,
    /// What the trace can tell of.
    sight: Sight,
    /// How fast the program is by itself.
    speed: Option<Speed>,
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
        let file_bytes = std::fs::metadata(&path).map_or(0, |file| file.len()).max(1);
        let mut reader = Reader::open(path)?;
        let header = reader.header().clone();
        let wanted = wanted.of(&header);
        let mut loading = Loading::new(&header, Choice::All);
        // Without a map, marks and the count of processes still come from one, of the least size.
        let fineness = wanted.map.unwrap_or(Fineness {
            columns_max: 2,
            rows_max: 1,
        });
        let mut mapper = Mapper::new(header.time, fineness);
        let mut sampler = wanted.sampling.as_ref().map(Sampler::new);
        let mut block = Block::default();
        let mut granularity = header.granularity;
        while reader.next_block(&mut block)? {
            granularity = granularity.after(&block);
            if wanted.references {
                loading.take(&block);
            }
            if let Some(sampler) = &mut sampler {
                sampler.take(&block);
            }
            if wanted.map.is_some() {
                mapper.take(&block);
            } else {
                mapper.take_events(&block);
            }
            progress("reading", reader.bytes() as f64 / file_bytes as f64);
        }
        if !wanted.partial {
            reader.check_ending()?;
        }
        let references = loading.finish();
        let map = mapper.finish();
        let touched: u64 = map.regions.iter().map(|region| region.touched).sum();
        let mut facts = facts(&header, granularity);
        facts.records = reader.index().records();
        facts.processes = u64::from(reader.index().processes());
        facts.is_cut = matches!(reader.ending(), Ending::Cut { .. });
        facts.pages = match (wanted.references, wanted.map, &sampler) {
            (true, _, _) => u64::from(references.page_count),
            (false, None, Some(sampler)) => {
                facts.is_pages_estimate = true;
                sampler.pages()
            }
            (false, _, _) => touched,
        };
        let sight = sight_of(&references);
        facts.windows = windows_of(&header, granularity, sight);
        facts.time = match wanted.references {
            true => references.duration(),
            false => map.time,
        };
        Ok(Study {
            facts,
            references,
            sampler,
            marks: map.marks.clone(),
            map: wanted.map.map(|_| map),
            sight,
            speed: header.speed,
        })
    }

    /// What is said of the trace.
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// What is assumed, with what the trace tells of its program's speed.
    pub fn assumed_of(&self, assumed: &Assumed) -> Assumed {
        assumed.informed(self.speed, self.facts.time_unit, self.facts.time)
    }

    /// How long the program took by itself, and how much of a processor in the kernel, where it was
    /// run so.
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

    fn string(&self) -> ReferenceString<'_> {
        ReferenceString::of(&self.references)
    }
}

/// What the header says. `longest` is the granularity with the longest window of all.
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
        },
        time_unit: time_unit(header.time),
        records: 0,
        pages: 0,
        processes: 0,
        time: 0,
        is_cut: false,
        is_pages_estimate: false,
        windows: None,
    }
}

/// What there is an answer for.
fn sight_of(references: &References) -> Sight {
    match references.granularity {
        Granularity::Window(longest) => {
            let string = ReferenceString::of(references);
            Sight::in_windows(string, &references.names, longest)
        }
        Granularity::Exact | Granularity::Quantum(_) => Sight::FULL,
    }
}

fn windows_of(header: &Header, longest: Granularity, sight: Sight) -> Option<Windows> {
    match (header.granularity, longest) {
        (Granularity::Window(first_ns), Granularity::Window(longest_ns)) => Some(Windows {
            first_ns,
            longest_ns,
            pages_touched: sight.pages_min,
        }),
        _ => None,
    }
}

/// The unit as records name it.
fn time_unit(unit: tidemark_trace::TimeUnit) -> TimeUnit {
    match unit {
        tidemark_trace::TimeUnit::Instructions => TimeUnit::Instructions,
        tidemark_trace::TimeUnit::References => TimeUnit::References,
        tidemark_trace::TimeUnit::Nanoseconds => TimeUnit::Nanoseconds,
    }
}
