//! Replays: traces as programs on whole memory systems.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tidemark_core::id::PAGE_BYTES;
use tidemark_lab::names::{Divider, TASK_BYTES_MIN, find_division};
use tidemark_lab::study::{Compression, NamedDisk, Replay, ReplayOrder, Unreadable, Unrunnable};
use tidemark_lab::systems;
use tidemark_lab::world::disk::presets;
use tidemark_lab::world::{PolicyChoice, Scheduler, System, Watch, WorldError};
use tidemark_trace::private::Extent;

use crate::exceptions::{is_module, no_policy, of_argument, of_trace};
use crate::pool;

/// The longest turn while others wait.
const QUANTUM_NS: u64 = 10_000_000;
/// The first distance between samples; they are thinned out as a run goes on.
const SAMPLE_NS: u64 = 10_000;

/// The settings beside traces and sizes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Machine {
    systems: Vec<String>,
    policy: Option<String>,
    compressed: Option<f64>,
    is_managed: bool,
    division: Option<String>,
    per_task_min: Option<u64>,
    disk: String,
    file_disk: Option<String>,
    copies: u32,
    processors: u32,
    wired_pages: u32,
    seed: u64,
    has_time_lines: bool,
}

/// Replays the traces in memories of these pages, and of these shares of what they use, rising;
/// answers with the record, as JSON.
#[pyfunction]
pub fn replay(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    pages: Vec<u32>,
    shares: Vec<f64>,
    machine: Machine,
) -> PyResult<String> {
    let order = machine.order()?;
    let extent = machine.is_managed.then_some(Extent::All);
    pool::compute(py, || run(&paths, pages, &shares, extent, order))?
}

/// The names of the memory systems and one line about each.
#[pyfunction]
pub fn describe_systems() -> Vec<(&'static str, &'static str, &'static str)> {
    let entries = systems::entries().iter();
    entries
        .map(|system| (system.name, system.summary, system.policy))
        .collect()
}

fn run(
    paths: &[PathBuf],
    pages: Vec<u32>,
    shares: &[f64],
    extent: Option<Extent>,
    mut order: ReplayOrder,
) -> PyResult<String> {
    let replay = Replay::read_managed(paths, false, extent.map(Into::into), &mut |_, _| {});
    let replay = replay.map_err(|(path, error)| match error {
        Unreadable::Trace(error) => of_trace(&path, &error),
        Unreadable::TooLong { references_max } => {
            let needs = format!("fewer than {references_max} references with those before it");
            of_argument("sources", format!("`{}`", path.display()), &needs)
        }
    })?;
    let footprint = replay.footprint_pages(order.copies) as f64;
    order.memory_pages = pages;
    order
        .memory_pages
        .extend(shares.iter().map(|share| (footprint * share) as u32));
    order.memory_pages.sort_unstable();
    order.memory_pages.dedup();
    let replayed = replay.run(&order, &|_, _| {});
    let replayed = replayed.map_err(|error| PyValueError::new_err(told(&error)))?;
    Ok(replayed.record.to_json())
}

impl Machine {
    fn order(&self) -> PyResult<ReplayOrder> {
        if self.copies == 0 {
            return Err(of_argument("copies", 0, "at least 1"));
        }
        let systems: PyResult<Vec<System>> = self.systems.iter().map(|name| find(name)).collect();
        let systems = systems?;
        if let Some(ratio) = self.compressed {
            if !(1.0..=100.0).contains(&ratio) {
                return Err(of_argument("compressed", ratio, "1 to 100"));
            }
            if let Some(other) = systems.iter().find(|system| !system.is_divided) {
                return Err(of_argument(
                    "system",
                    other.name,
                    "`tidemark` with `compressed`",
                ));
            }
        }
        if let Some(policy) = &self.policy {
            is_module(policy)?;
        }
        Ok(ReplayOrder {
            systems,
            memory_pages: vec![],
            wired_pages: self.wired_pages,
            copies: self.copies,
            processors: self.processors,
            scheduler: Scheduler::RoundRobin {
                quantum_ns: QUANTUM_NS,
            },
            swap_disk: find_disk("disk", &self.disk)?,
            file_disk: match &self.file_disk {
                Some(name) => Some(find_disk("file_disk", name)?),
                None => None,
            },
            compression: self.compressed.map(Compression::of_ratio),
            seed: self.seed,
            policy: self.policy.clone().map(|name| PolicyChoice {
                name,
                knobs: vec![],
            }),
            load: None,
            divider: self.divider()?,
            watch: Watch {
                sample_ns: if self.has_time_lines { SAMPLE_NS } else { 0 },
                is_logging: false,
            },
        })
    }
}

impl Machine {
    /// The division of memory among programs, in pages of 4096 bytes: a live run has no others.
    fn divider(&self) -> PyResult<Divider> {
        let mut divider = Divider::default();
        let asked = [
            ("division", self.division.is_some()),
            ("per_task_min", self.per_task_min.is_some()),
        ];
        let asked = asked.iter().find(|(_, is_asked)| *is_asked);
        if let Some((name, _)) = asked.filter(|_| !self.is_managed) {
            let told = format!("`{name}` divides memory as live runs do; needs `managed=True`");
            return Err(PyValueError::new_err(told));
        }
        if let Some(name) = &self.division {
            let rule = find_division(name);
            divider.rule = rule
                .map_err(|refusal| PyValueError::new_err(format!("`division` is {}", refusal)))?;
        }
        if let Some(bytes) = self.per_task_min {
            if bytes < TASK_BYTES_MIN {
                let needs = format!("at least {TASK_BYTES_MIN} bytes");
                return Err(of_argument("per_task_min", bytes, &needs));
            }
            divider.frames_min = bytes / PAGE_BYTES;
        }
        Ok(divider)
    }
}

fn find(name: &str) -> PyResult<System> {
    systems::find(name).cloned().ok_or_else(|| {
        let hint = match systems::near(name).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tidemark.systems()` lists them".into(),
        };
        PyValueError::new_err(format!("no system is called `{name}`; {hint}"))
    })
}

fn find_disk(argument: &str, name: &str) -> PyResult<NamedDisk> {
    let Some(preset) = presets::find(name) else {
        let all: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
        let needs = format!("one of {}", all.join(", "));
        return Err(of_argument(argument, format!("`{name}`"), &needs));
    };
    Ok(NamedDisk {
        name: preset.name.into(),
        model: preset.model.clone(),
    })
}

fn told(error: &Unrunnable) -> String {
    let (system, memory_pages, error) = match error {
        Unrunnable::World {
            system,
            memory_pages,
            error,
        } => (system, memory_pages, error),
        Unrunnable::TooManyPages { pages, pages_max } => {
            return format!("`sources` use {pages} pages; the most is {pages_max}");
        }
        Unrunnable::Incompressible { page_bytes } => {
            return format!("`sources` have pages of {page_bytes} bytes; `compressed` needs 4096");
        }
        Unrunnable::NoMappings { system, trace } => {
            return format!(
                "`{system}` treats files' pages apart, and `{trace}` does not say what is mapped; \
                 `managed=True` takes all of it for programs' own"
            );
        }
    };
    match error {
        WorldError::NoPrograms => "`sources` is empty; needs a trace".into(),
        WorldError::NoProcessors => "`processors` is 0; needs at least 1".into(),
        WorldError::UnknownPolicy { name } => no_policy(name),
        WorldError::UnknownKnob { name } | WorldError::KnobOutOfRange { name, .. } => {
            format!("`{system}` can't have its knob `{name}`")
        }
        WorldError::UnknownLoad { name } => format!("no load control is called `{name}`"),
        WorldError::LoadOfPages { name } => {
            format!("load control `{name}` acts on single pages, and each program has its own")
        }
        WorldError::MemoryTooSmall {
            wired_pages,
            needs_pages,
            ..
        } => {
            let needs = wired_pages.saturating_add(*needs_pages);
            format!("`memory` is {memory_pages} pages; needs {needs}")
        }
        WorldError::PageSizesDiffer { one, other } => {
            format!("`sources` have pages of {one} and {other} bytes; needs one size")
        }
        WorldError::Stuck { .. } => {
            format!("`memory` is {memory_pages} pages; no program can go on under `{system}`")
        }
    }
}
