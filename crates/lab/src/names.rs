//! Looks up names as people write them, of policies, systems, disks and the like; and tells what
//! can't be run. A name that is unknown is a [`Refusal`] with those that are near.

use std::path::Path;

use tidemark_core::id::PAGE_BYTES;
use tidemark_core::load;
use tidemark_core::policies;
use tidemark_core::seams::policy::{Description, Sees};
pub use tidemark_partition::Divider;
use tidemark_partition::{FLOOR_FRAMES, Rule};
use tidemark_results::host::Latency;
use tidemark_results::text::{bytes, count};
use tidemark_results::{Refusal, quantity, refuse};

use crate::near::collect_near;
use crate::study::{NamedDisk, Unreadable, Unrunnable};
use crate::systems;
use crate::world::disk::presets;
use crate::world::disk::table::Table;
use crate::world::{DiskModel, Scheduler, System, WorldError};

/// The policy called `name`, or a refusal with the names that are near. The name of a file stands
/// for the module in it.
pub fn find_policy(name: &str) -> Result<&'static Description, Refusal> {
    if tidemark_plugin::is_file(name) {
        return tidemark_plugin::load(name).map_err(|error| Refusal::new(error.to_string()));
    }
    if let Some(entry) = policies::find(name) {
        return Ok(entry.description);
    }
    let known = policies::entries().iter();
    let known = known.map(|entry| entry.description.name);
    let near = collect_near(name, known);
    let hint = hint(&near, "policies");
    Err(Refusal::new(format!("`{name}`: no such policy; {hint}")))
}

/// Returns true if `name` is that of a file with a module in it that can be used; false if it is
/// the name of no file.
pub fn find_module(name: &str) -> Result<bool, Refusal> {
    match tidemark_plugin::is_file(name) {
        true => find_policy(name).map(|_| true),
        false => Ok(false),
    }
}

/// The policy called `name`, if it can decide for a running program.
pub fn find_live_policy(name: &str) -> Result<&'static Description, Refusal> {
    let policy = find_policy(name)?;
    if policy.sees.is_shown_live() {
        return Ok(policy);
    }
    let shown = match policy.sees {
        Sees::Future => "the future",
        Sees::Faults | Sees::Bits | Sees::References => "every reference",
    };
    Err(Refusal::new(format!(
        "`{name}` must see {shown}, which no running program shows; `tidemark curve` simulates it"
    )))
}

/// The system called `name`, or a refusal with the names that are near.
pub fn find_system(name: &str) -> Result<&'static System, Refusal> {
    systems::find(name).ok_or_else(|| {
        let hint = hint(&systems::near(name), "systems");
        Refusal::new(format!("`{name}`: no such system; {hint}"))
    })
}

/// Refuses a load control that there is not. Here and below, `option` is what the name was given
/// to.
pub fn check_load(option: &str, name: &str) -> Result<(), Refusal> {
    if load::registry::find(name).is_some() {
        return Ok(());
    }
    let entries = load::registry::entries().iter();
    let all: Vec<&str> = entries.map(|entry| entry.description.name).collect();
    Err(unknown(option, name, "load control", &all))
}

/// The rule called `name`, by which memory is divided among processes that really run.
pub fn find_division(name: &str) -> Result<Rule, Refusal> {
    Rule::find(name).ok_or_else(|| {
        let all = divisions().join(", ");
        Refusal::new(format!("`{name}`: no such division; there are: {all}"))
    })
}

/// The least that can be left to each process, and that is if no more is asked for.
pub const TASK_BYTES_MIN: u64 = FLOOR_FRAMES * PAGE_BYTES;

/// The division of memory by the rule called `name`, which leaves `least` to each that uses so
/// much, in pages of that size. Each is beside the option it was given to.
pub fn parse_division(
    (rule_option, name): (&str, &str),
    (least_option, least): (&str, &str),
    page_bytes: u64,
) -> Result<Divider, Refusal> {
    let rule = find_division(name);
    let rule = rule.map_err(|refusal| Refusal::new(format!("`{rule_option}`: {refusal}")))?;
    let least_bytes = quantity::parse(least_option, least)?;
    if least_bytes < TASK_BYTES_MIN {
        let floor = bytes(TASK_BYTES_MIN);
        refuse!("`{least_option} {least}`: too small; the least is {floor}");
    }
    Ok(Divider {
        rule,
        frames_min: least_bytes / page_bytes,
    })
}

/// The names of those rules.
pub fn divisions() -> Vec<&'static str> {
    Rule::ALL.map(Rule::name).into()
}

/// The rule by which the next thread is chosen.
pub fn parse_scheduler(option: &str, name: &str) -> Result<Scheduler, Refusal> {
    let quantum_ns = Scheduler::QUANTUM_NS;
    match name {
        "round-robin" => Ok(Scheduler::RoundRobin { quantum_ns }),
        "fair" => Ok(Scheduler::Fair { quantum_ns }),
        _ => {
            let all = ["round-robin", "fair"];
            Err(unknown(option, name, "scheduler", &all))
        }
    }
}

/// The disk that `text` names.
pub fn parse_disk(option: &str, text: &str) -> Result<NamedDisk, Refusal> {
    if let Some(path) = text.strip_prefix("table:") {
        return Ok(NamedDisk {
            name: text.into(),
            model: DiskModel::Table(read_table(Path::new(path))?),
        });
    }
    match presets::find(text) {
        Some(preset) => Ok(NamedDisk {
            name: preset.name.into(),
            model: preset.model.clone(),
        }),
        None => {
            let mut all: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
            all.push("table:FILE");
            Err(unknown(option, text, "disk", &all))
        }
    }
}

/// The disk that `tidemark doctor --calibrate --json` has measured.
fn read_table(path: &Path) -> Result<Table, Refusal> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Refusal::new(format!("`{name}`: can't be read: {error}")))?;
    let table = serde_json::from_str(&text)
        .ok()
        .and_then(|record: serde_json::Value| {
            let latencies = record.get("latencies")?.clone();
            let latencies: Vec<Latency> = serde_json::from_value(latencies).ok()?;
            Table::from_latencies(&latencies)
        });
    table.ok_or_else(|| {
        Refusal::new(format!(
            "`{name}`: has no measured disk; write one with `tidemark doctor --calibrate --json`"
        ))
    })
}

/// The refusal of a trace that can't be replayed.
pub fn unreadable(name: &str, error: &Unreadable) -> Refusal {
    Refusal::new(match error {
        Unreadable::Trace(error) => format!("`{name}`: {error}"),
        Unreadable::TooLong { references_max } => format!(
            "`{name}`: with it there are more than {} references; replay a part of it",
            count(*references_max as u64)
        ),
    })
}

/// The refusal of a run that can't be made.
pub fn unrunnable(error: &Unrunnable, page_bytes: u64) -> Refusal {
    let (system, memory_pages, error) = match error {
        Unrunnable::World {
            system,
            memory_pages,
            error,
        } => (system, *memory_pages, error),
        Unrunnable::TooManyPages { pages, pages_max } => {
            let (pages, most) = (count(*pages), count(*pages_max));
            let told = format!("the programs use {pages} pages; the most is {most}: run fewer");
            return Refusal::new(told);
        }
        Unrunnable::Incompressible { page_bytes } => {
            return Refusal::new(format!(
                "the traces have pages of {page_bytes} bytes; compressed memory takes pages of 4K"
            ));
        }
        Unrunnable::NoMappings { system, trace } => {
            return Refusal::new(format!(
                "`{system}` treats files' pages apart, and `{trace}` does not say what is mapped"
            ));
        }
    };
    let size = |pages: u32| bytes(u64::from(pages) * page_bytes);
    Refusal::new(match error {
        WorldError::NoPrograms => "there is no trace; name one".into(),
        WorldError::NoProcessors => "there is no processor; needs at least 1".into(),
        WorldError::UnknownPolicy { name } => format!("`{name}`: no such policy"),
        WorldError::UnknownKnob { name } => {
            format!("`{system}`: its policy has no knob `{name}`")
        }
        WorldError::KnobOutOfRange {
            name,
            value,
            min,
            max,
        } => format!("`{system}`: its knob {name} is {value}; needs {min} to {max}"),
        WorldError::UnknownLoad { name } => {
            format!("`{system}`: no load control is called `{name}`")
        }
        WorldError::LoadOfPages { name } => format!(
            "`{system}`: load control `{name}` acts on single pages, which processes with a \
             memory each do not share; name another"
        ),
        WorldError::MemoryTooSmall {
            memory_pages,
            wired_pages,
            needs_pages,
        } => format!(
            "memory of {} less {} wired is too little; the least that works is {}",
            size(*memory_pages),
            size(*wired_pages),
            size(wired_pages.saturating_add(*needs_pages)),
        ),
        WorldError::PageSizesDiffer { one, other } => format!(
            "the traces have pages of {} and {}; record them with pages of one size",
            bytes(*one),
            bytes(*other)
        ),
        WorldError::Stuck {
            waiting, suspended, ..
        } => format!(
            "`{system}` in {}: no program can go on ({waiting} wait for memory, {suspended} are \
             suspended); give more memory",
            size(memory_pages)
        ),
    })
}

/// The refusal of a name that `kind` has not, with those that are near.
fn unknown(option: &str, name: &str, kind: &str, all: &[&'static str]) -> Refusal {
    let near = collect_near(name, all.iter().copied());
    let told = match near.is_empty() {
        true => format!("there are {}", all.join(", ")),
        false => hint(&near, kind),
    };
    Refusal::new(format!("`{option} {name}`: no such {kind}; {told}"))
}

/// The remedy for a word that is none of `all`: those that are near, or all.
pub fn near_or_all(word: &str, all: &[&str]) -> String {
    let near = collect_near(word, all.iter().copied());
    match near.is_empty() {
        true => format!("there are {}", all.join(", ")),
        false => format!("did you mean {}?", quoted(&near, " or ")),
    }
}

/// The remedy for a name that is unknown: one of those that are `near`, or the subcommand that
/// lists all.
pub fn hint(near: &[&str], command: &str) -> String {
    match near.is_empty() {
        true => format!("`tidemark {command}` lists them"),
        false => format!("did you mean {}?", quoted(near, " or ")),
    }
}

/// Names to choose from, in words: `a, b or c`.
pub fn choice(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}

fn quoted(names: &[&str], between: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_running_program_shows_is_refused_to_a_run() {
        assert_eq!(find_live_policy("clock").unwrap().name, "clock");
        let refusal = find_live_policy("lru").unwrap_err().to_string();
        assert!(refusal.contains("must see every reference"), "{refusal}");
        let refusal = find_live_policy("opt").unwrap_err().to_string();
        assert!(refusal.contains("must see the future"), "{refusal}");
    }

    #[test]
    fn a_slip_is_answered_with_near_names() {
        let refusal = find_policy("fif").unwrap_err().to_string();
        assert_eq!(refusal, "`fif`: no such policy; did you mean `fifo`?");
        let refusal = find_policy("nothing-like-it").unwrap_err().to_string();
        assert_eq!(
            refusal,
            "`nothing-like-it`: no such policy; `tidemark policies` lists them"
        );
    }
}
