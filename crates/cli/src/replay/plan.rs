//! The order of the command line, checked as far as that goes before any trace is read.

use tidemark_lab::amounts::{parse_memories, parse_memory};
use tidemark_lab::names::{check_load, find_policy, find_system, parse_disk, parse_scheduler};
use tidemark_lab::study::{Compression, NamedDisk, Replay, ReplayOrder};
use tidemark_lab::systems;
use tidemark_lab::world::{PolicyChoice, Scheduler, System, Watch};

use super::{Arguments, check_count};
use crate::exit::{Refusal, refuse};

/// The first distance between samples; they are thinned out as a run goes on.
const SAMPLE_NS: u64 = 10_000;
/// The most processors, and copies of each program.
const MANY: u32 = 1024;

/// The order.
pub struct Plan<'a> {
    arguments: &'a Arguments,
    systems: Vec<System>,
    scheduler: Scheduler,
    swap_disk: NamedDisk,
    file_disk: Option<NamedDisk>,
    compression: Option<Compression>,
}

impl<'a> Plan<'a> {
    /// The plan, if it can be one.
    pub fn new(arguments: &'a Arguments) -> Result<Plan<'a>, Refusal> {
        check_count("--procs", arguments.procs)?;
        check_count("--cpus", arguments.cpus)?;
        for (option, number) in [("--procs", arguments.procs), ("--cpus", arguments.cpus)] {
            if number > MANY {
                refuse!("`{option} {number}`: the most is {MANY}");
            }
        }
        let mut systems = parse_systems(&arguments.system)?;
        if let Some(ps) = arguments.instruction_ps {
            let each = systems.iter();
            systems = each.map(|system| system.with_instructions_of(ps)).collect();
        }
        if let Some(policy) = &arguments.policy {
            find_policy(policy)?;
        }
        if let Some(name) = arguments.load_control.as_deref() {
            check_load("--load-control", name)?;
        }
        let scheduler = parse_scheduler("--scheduler", &arguments.scheduler)?;
        let swap_disk = parse_disk("--disk", &arguments.disk)?;
        let file_disk = arguments.file_disk.as_deref();
        let file_disk = file_disk.map(|text| parse_disk("--file-disk", text));
        let compressed = arguments.compressed.as_deref();
        let compression = compressed.map(|text| Compression::parse("--compressed", text));
        let is_ours = |system: &System| system.is_divided;
        if let (Some(text), Some(other)) = (compressed, systems.iter().find(|it| !is_ours(it))) {
            refuse!(
                "`--compressed {text}`: `{}` has no compressed memory; `--system tidemark` has",
                other.name
            );
        }
        let plan = Plan {
            arguments,
            systems,
            scheduler,
            swap_disk,
            file_disk: file_disk.transpose()?,
            compression: compression.transpose()?,
        };
        // Whatever the programs use, these must be sizes.
        let sizes = plan.parse_memory(1 << 20, 4096)?;
        plan.parse_wired(1 << 20, 4096)?;
        let divider = arguments.division.divider(4096)?;
        let is_divided = arguments.in_step || arguments.managed.extent().is_some();
        if divider != Default::default() && !is_divided {
            refuse!(
                "`--division {}`, `--per-task-min {}`: all programs share one memory; divide what \
                 `tidemark run` manages: `--managed anonymous`",
                arguments.division.division,
                arguments.division.per_task_min
            );
        }
        let runs = plan.systems.len() * sizes.len();
        if arguments.log_decisions.is_some() && runs != 1 {
            refuse!(
                "`--log-decisions`: is of one run, not of {runs}; name one system and one size"
            );
        }
        Ok(plan)
    }

    /// The lab's order for these traces.
    pub fn order(&self, replay: &Replay) -> Result<ReplayOrder, Refusal> {
        let (arguments, page_bytes) = (self.arguments, replay.page_bytes());
        let whole_bytes = replay.footprint_pages(arguments.procs) * page_bytes;
        if whole_bytes == 0 {
            refuse!("{}", nothing_to_replay(arguments));
        }
        Ok(ReplayOrder {
            systems: self.systems.clone(),
            memory_pages: self.parse_memory(whole_bytes, page_bytes)?,
            wired_pages: self.parse_wired(whole_bytes, page_bytes)?,
            copies: arguments.procs,
            processors: arguments.cpus,
            scheduler: self.scheduler,
            swap_disk: self.swap_disk.clone(),
            file_disk: self.file_disk.clone(),
            compression: self.compression.clone(),
            seed: arguments.seed,
            policy: arguments.policy.as_deref().map(|name| PolicyChoice {
                name: name.into(),
                knobs: vec![],
            }),
            load: arguments.load_control.clone(),
            divider: arguments.division.divider(page_bytes)?,
            watch: Watch {
                sample_ns: arguments.html.as_ref().map_or(0, |_| SAMPLE_NS),
                is_logging: arguments.log_decisions.is_some(),
            },
        })
    }

    /// The sizes of memory, each once, rising.
    fn parse_memory(&self, whole_bytes: u64, page_bytes: u64) -> Result<Vec<u32>, Refusal> {
        let check = |part: &str, pages: u32| match pages {
            0 => refuse!("`--memory {part}`: less than a page; give more"),
            _ => Ok(()),
        };
        let memory = &self.arguments.memory;
        parse_memories("--memory", memory, page_bytes, whole_bytes, check)
    }

    fn parse_wired(&self, whole_bytes: u64, page_bytes: u64) -> Result<u32, Refusal> {
        parse_memory("--wired", &self.arguments.wired, page_bytes, whole_bytes)
    }
}

/// The message for traces that have no memory of the kind that is replayed.
fn nothing_to_replay(arguments: &Arguments) -> String {
    let names: Vec<String> = arguments
        .traces
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    let names = names.join(", ");
    if arguments.in_step {
        return format!(
            "{names}: no memory that is managed in step, which are mappings of 4M or more; \
             `tidemark compare --in-step --trace FILE` records such a trace, or replay without \
             `--in-step`"
        );
    }
    match arguments.managed.extent() {
        Some(_) => format!(
            "{names}: no anonymous memory, or none that the trace tells from other memory; replay \
             with `--managed everything`"
        ),
        None => format!("{names}: no references; record or generate a longer trace"),
    }
}

fn parse_systems(names: &[String]) -> Result<Vec<System>, Refusal> {
    let mut chosen: Vec<System> = vec![];
    for name in names.iter().map(|name| name.trim()) {
        let found: Vec<&System> = match name {
            "all" => systems::entries().iter().collect(),
            _ => vec![find_system(name)?],
        };
        for system in found {
            if !chosen.iter().any(|known| known.name == system.name) {
                chosen.push(system.clone());
            }
        }
    }
    Ok(chosen)
}
