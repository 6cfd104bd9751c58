//! The assumptions of the answers to how much memory is needed, and those under `tidemark run`.

use clap::{Args, ValueEnum};
use tidemark_core::id::PAGE_BYTES;
use tidemark_hostbench::{calibrate, kept};
use tidemark_lab::names::parse_disk;
use tidemark_lab::study::{Assumed, NamedDisk, Rehearsal, RehearsalOrder, Study};
use tidemark_lab::world::DiskModel;
use tidemark_lab::world::disk::table::Table;
use tidemark_results::analysis::curve::CurveRecord;
use tidemark_results::analysis::{TimeUnit, UnitSource};
use tidemark_results::host::Latency;
use tidemark_supervisor::management::MEMORY_BYTES_MIN;
use tidemark_supervisor::{host, room};

use crate::exit::{Refusal, refuse};
use crate::views::{Progress, Source};

/// Longer traces are rehearsed only if that is asked for.
const RECORDS_AUTO: u64 = 50_000_000;
/// The memory that a reference takes while the program is rehearsed.
const RECORD_BYTES: u64 = 16;
/// A page-in where no disk was measured or named, in nanoseconds.
const PAGE_IN_NS: f64 = 100_000.0;
/// The time of a page-in beyond the disk, in nanoseconds: a fault that is handed to a thread.
const FAULT_NS: u64 = 18_000;
/// `doctor`'s name for a fault that an engine serves for a thread beside it, ...
const FAULT: &str = "soft fault by a thread, same processor";
/// ... and how often as much a fault costs in a run: it finds caches cold, and the engine decides.
const FAULT_IN_A_RUN: f64 = 2.0;

/// The assumptions of the answer to how much memory is needed.
#[derive(Debug, Args)]
pub struct Assuming {
    /// The most that the program may be slowed down, in percent
    #[arg(
        long,
        value_name = "PERCENT,…",
        value_delimiter = ',',
        default_value = "1,10"
    )]
    slowdown: Vec<f64>,
    /// The time of a page-in under an ideal policy, in microseconds (default: what the disk
    /// takes for a page, and the fault)
    #[arg(long, value_name = "US")]
    page_in_us: Option<f64>,
    /// The time of an instruction (or of a reference, if the trace counts those), in nanoseconds
    /// (default: as recorded, or else 0.2, or 50)
    #[arg(long, value_name = "NS")]
    unit_ns: Option<f64>,
    /// The disk that is swapped to: `measured`, now; or as for `tidemark replay` (default: what
    /// `tidemark doctor --calibrate` measured here, or else ssd)
    #[arg(long, value_name = "DISK")]
    disk: Option<String>,
    /// Simulate the program under `tidemark run` for the memory that it needs there; auto: unless
    /// the trace has more than 50 M references, or counts nothing else
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

/// A machine to run on.
struct Machine {
    disk: NamedDisk,
    page_in_ns: f64,
    /// The cost of a fault, where that was measured.
    fault_ns: Option<u64>,
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
        let page_in_ns = self.page_in_us.map(|us| us * 1000.0);
        Ok(Assumed {
            slowdowns_percent: self.slowdown.clone(),
            page_in_ns: match page_in_ns {
                Some(ns) => ns,
                None => self.machine()?.page_in_ns,
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
        let records_held = room::available_bytes() / RECORD_BYTES;
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
        let (facts, machine) = (study.facts(), self.machine()?);
        let assumed = study.assumed_of(&self.check()?);
        let touched = facts.windows.map_or(1, |windows| windows.pages_touched);
        let order = RehearsalOrder {
            slowdowns_percent: self.slowdown.clone(),
            time_unit_ns: assumed.time_unit_ns(facts.time_unit),
            time_unit_source: assumed.time_unit_source,
            native_ns: study.native_ns().filter(|_| self.unit_ns.is_none()),
            disk: machine.disk,
            fault_ns: machine.fault_ns,
            processors: host::processors() as u32,
            pages_min: touched.max(MEMORY_BYTES_MIN / PAGE_BYTES),
        };
        match rehearsal.needs(&order, &mut show) {
            Ok(Some(needs)) => record.run = Some(needs),
            Ok(None) => return Ok(Err("the program uses no memory that is managed")),
            Err(_) => return Ok(Err("the trace can't be replayed")),
        }
        Ok(Ok(()))
    }

    /// The machine that is asked for, or the one that was measured.
    fn machine(&self) -> Result<Machine, Refusal> {
        let latencies = match self.disk.as_deref() {
            None => kept::find(),
            Some("measured") => match calibrate::measure_swap(None) {
                Ok(latencies) => Some(latencies),
                Err(error) => refuse!("`--disk measured`: {error}; name another, like `ssd`"),
            },
            Some(name) => return Ok(Machine::of_disk(parse_disk("--disk", name)?)),
        };
        if let Some(measured) = latencies.as_deref().and_then(Machine::of_latencies) {
            return Ok(measured);
        }
        let disk = parse_disk("--disk", "ssd")?;
        Ok(Machine {
            page_in_ns: PAGE_IN_NS,
            ..Machine::of_disk(disk)
        })
    }
}

impl Machine {
    fn of_disk(disk: NamedDisk) -> Machine {
        Machine {
            page_in_ns: (read_ns(&disk.model) + FAULT_NS) as f64,
            disk,
            fault_ns: None,
        }
    }

    /// The machine that was measured, if there is a disk in it.
    fn of_latencies(latencies: &[Latency]) -> Option<Machine> {
        let disk = NamedDisk {
            name: "measured".into(),
            model: DiskModel::Table(Table::from_latencies(latencies)?),
        };
        let fault = latencies.iter().find(|latency| latency.name == FAULT);
        let fault_ns = fault.map(|fault| (fault.p50_us * 1000.0 * FAULT_IN_A_RUN) as u64);
        Some(Machine {
            page_in_ns: (read_ns(&disk.model) + fault_ns.unwrap_or(FAULT_NS)) as f64,
            disk,
            fault_ns,
        })
    }
}

/// The usual time in which a disk reads a page from anywhere.
fn read_ns(model: &DiskModel) -> u64 {
    match model {
        DiskModel::Fixed {
            request_ns,
            page_ns,
            ..
        } => request_ns + page_ns,
        // A third of the longest way, and half a turn.
        DiskModel::Hdd(hdd) => {
            let seek_ns = hdd.seek_min_ns + (hdd.seek_max_ns - hdd.seek_min_ns) / 3;
            hdd.overhead_ns + seek_ns + hdd.turn_ns / 2
        }
        DiskModel::Ssd(ssd) => ssd.read_ns + ssd.link_page_ns,
        DiskModel::Table(table) => table.reads.first().map_or(0, |point| point.p50_ns),
    }
}
