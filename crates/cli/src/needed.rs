//! The options with assumptions about the memory needed, by ideal policies and under
//! `tidemark run`.

use clap::{Args, ValueEnum};
use tidemark_core::id::PAGE_BYTES;
use tidemark_hostbench::{calibrate, kept};
use tidemark_lab::names::parse_disk;
use tidemark_lab::study::{Assumed, Compression, PagingCosts, Rehearsal, RehearsalOrder, Study};
use tidemark_results::analysis::curve::CurveRecord;
use tidemark_results::analysis::{TimeUnit, UnitSource};
use tidemark_supervisor::management::MEMORY_BYTES_MIN;
use tidemark_supervisor::{host, room};

use crate::exit::{Refusal, refuse};
use crate::views::{Progress, Source};

/// The number of pages of programs that compress to one, where nothing tells.
const RATIO_USUAL: f64 = 3.0;
/// Longer traces are rehearsed only if that is asked for.
const RECORDS_AUTO: u64 = 50_000_000;
/// The assumptions of the answer to how much memory is needed.
#[derive(Debug, Args)]
pub struct Assuming {
    /// The largest slow-down of the program, in percent
    #[arg(
        long,
        value_name = "PERCENT,…",
        value_delimiter = ',',
        default_value = "10,50"
    )]
    slowdown: Vec<f64>,
    /// The time of a page-in under an ideal policy, in microseconds (default: the disk's time for a
    /// page, plus the fault)
    #[arg(long, value_name = "US")]
    page_in_us: Option<f64>,
    /// The time of an instruction (or of a reference, if the trace counts those), in nanoseconds
    /// (default: as recorded; otherwise 0.2, or 50 for a reference)
    #[arg(long, value_name = "NS")]
    unit_ns: Option<f64>,
    /// The disk for swap: `measured` measures it now; other names as for `tidemark replay`
    /// (default: as measured here by `tidemark doctor --calibrate`, otherwise ssd)
    #[arg(long, value_name = "DISK")]
    disk: Option<String>,
    /// The compression of pages under `tidemark run`: a ratio (`2.5`), or the file of a run's
    /// `--stats` that has it (default: 3)
    #[arg(long, value_name = "RATIO|FILE")]
    compressed: Option<String>,
    /// Simulate the program under `tidemark run`, to find the memory that it needs there. `auto`:
    /// for traces of programs with instruction counts and at most 50 M references
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    rehearse: When,
}

/// The condition under which a program is rehearsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// Rehearse if it is quick
    Auto,
    /// In any case
    Always,
    /// Not at all
    Never,
}

impl Assuming {
    /// The assumptions, if they can be.
    pub fn check(&self) -> Result<Assumed, Refusal> {
        let is_amount = |value: &f64| *value > 0.0 && value.is_finite();
        if let Some(wrong) = self.slowdown.iter().find(|value| !is_amount(value)) {
            refuse!("`--slowdown {wrong}`: needs to be above 0 percent");
        }
        if let Some(wrong) = self.page_in_us.filter(|value| !is_amount(value)) {
            refuse!("`--page-in-us {wrong}`: needs to be above 0");
        }
        if let Some(wrong) = self.unit_ns.filter(|value| !is_amount(value)) {
            refuse!("`--unit-ns {wrong}`: needs to be above 0");
        }
        self.compression()?;
        let page_in_ns = self.page_in_us.map(|us| us * 1000.0);
        Ok(Assumed {
            slowdowns_percent: self.slowdown.clone(),
            page_in_ns: match page_in_ns {
                Some(ns) => ns,
                None => self.costs()?.page_in_ns,
            },
            time_unit_ns: self.unit_ns,
            time_unit_source: match self.unit_ns {
                Some(_) => UnitSource::Given,
                None => UnitSource::Assumed,
            },
        })
    }

    /// Adds to `record` how much memory the program needs under `tidemark run`, or why that is not
    /// told.
    pub fn rehearse(
        &self,
        study: &Study,
        source: &Source,
        record: &mut CurveRecord,
        progress: &mut Progress,
    ) -> Result<(), Refusal> {
        let told = match self.rehearse {
            When::Never => return Ok(()),
            // A trace of blocks or of a cache has nothing that could be run.
            When::Auto if !study.is_of_program() => return Ok(()),
            When::Auto if study.facts().time_unit == TimeUnit::References => return Ok(()),
            _ if study.facts().page_bytes != PAGE_BYTES => Err("its pages are of another size"),
            _ if study.facts().records == 0 => return Ok(()),
            when => self.try_rehearsal(study, source, when, record, progress)?,
        };
        if let Err(why) = told {
            record.notes.push(format!(
                "memory needed under `tidemark run` is not told: {why}"
            ));
        }
        Ok(())
    }

    fn try_rehearsal(
        &self,
        study: &Study,
        source: &Source,
        when: When,
        record: &mut CurveRecord,
        progress: &mut Progress,
    ) -> Result<Result<(), &'static str>, Refusal> {
        let records_quick = match when {
            When::Always => u64::MAX,
            When::Auto | When::Never => RECORDS_AUTO,
        };
        let records_held = room::available_bytes() / Rehearsal::RECORD_BYTES;
        let records_max = records_quick.min(records_held);
        let mut show = |what: &str, part| progress.show(what, part);
        let read = Rehearsal::of(study, records_max, &mut show);
        let Some(rehearsal) = read.map_err(|error| source.refusal(&error))? else {
            if records_held < records_quick {
                return Ok(Err(
                    "its references, of 16 bytes each, take more memory than there is",
                ));
            }
            return Ok(Err(
                "the trace has more than 50 M references to memory that is \
                managed; `--rehearse always` takes the time, and 16 bytes a reference",
            ));
        };
        let order = RehearsalOrder::new(
            study,
            &self.check()?,
            self.costs()?,
            self.compression()?,
            (host::processors() as u32, MEMORY_BYTES_MIN / PAGE_BYTES),
        );
        match rehearsal.needs(&order, &mut show) {
            Ok(Some(needs)) => record.run = Some(needs),
            Ok(None) => return Ok(Err("the program uses no memory that is managed")),
            Err(_) => return Ok(Err("the trace can't be replayed")),
        }
        Ok(Ok(()))
    }

    /// The sizes to which pages compress.
    fn compression(&self) -> Result<Compression, Refusal> {
        match &self.compressed {
            Some(text) => Compression::parse("--compressed", text),
            None => Ok(Compression::of_ratio(RATIO_USUAL)),
        }
    }

    /// The costs of paging on the machine that is asked for, or the one that was measured.
    fn costs(&self) -> Result<PagingCosts, Refusal> {
        let latencies = match self.disk.as_deref() {
            None => kept::find(),
            Some("measured") => match calibrate::measure_swap(None) {
                Ok(latencies) => Some(latencies),
                Err(error) => refuse!("`--disk measured`: {error}; name another, like `ssd`"),
            },
            Some(name) => return Ok(PagingCosts::of_disk(parse_disk("--disk", name)?)),
        };
        match latencies.as_deref().and_then(PagingCosts::of_latencies) {
            Some(measured) => Ok(measured),
            None => Ok(PagingCosts::assumed(parse_disk("--disk", "ssd")?)),
        }
    }
}
