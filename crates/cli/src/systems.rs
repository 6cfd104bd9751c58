//! `tidemark systems`: the memory systems there are, as they describe themselves.

use clap::Args;
use serde_json::{Value, json};
use tidemark_lab::names::find_system;
use tidemark_lab::systems;
use tidemark_lab::world::{Costs, MachineKind, System};
use tidemark_results::text;

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;

/// Lists the memory systems that traces can be replayed on
#[derive(Debug, Args)]
pub struct Arguments {
    /// Describe this system in full: its sources, and the costs of its machine
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Files for Arguments {}

/// Prints the systems.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let chosen: Vec<&System> = match &arguments.name {
        Some(name) => vec![find_system(name)?],
        None => systems::entries().iter().collect(),
    };
    output::print(&match (arguments.json, &arguments.name) {
        (true, _) => view_json(&chosen),
        (false, Some(_)) => chosen.into_iter().map(full).collect(),
        (false, None) => list(&chosen, output::terminal_width()),
    });
    Ok(Exit::Fine)
}

/// The systems. Where there is little width, the columns that [`full`] has as well are left out,
/// from the right.
fn list(systems: &[&System], width: Option<usize>) -> String {
    let columns = ["system", "policy", "load", "references by"];
    let of_columns = |kept: usize| {
        let head: Vec<&str> = columns[..kept]
            .iter()
            .copied()
            .chain(["what it is"])
            .collect();
        let mut table = text::table(&head, head.len());
        for system in systems {
            let cells = [system.name, system.policy, system.load, eyes(system.eyes)];
            table.add_row(cells[..kept].iter().copied().chain([system.summary]));
        }
        table
    };
    let fits = |kept: &usize| width.is_none_or(|width| text::has_room(&of_columns(*kept), width));
    let kept = (1..=columns.len()).rev().find(fits).unwrap_or(1);
    let mut table = of_columns(kept);
    text::wrap_last(&mut table, width);
    match columns[kept..].join(", ") {
        left_out if left_out.is_empty() => format!("{}\n", text::trimmed(&table)),
        left_out => {
            let rest = format!("`tidemark systems NAME` has the rest: {left_out}");
            let table = text::trimmed(&table);
            format!("{table}\n{}", text::hanging("", &rest, width))
        }
    }
}

fn full(system: &System) -> String {
    let mut lines = vec![format!("{}: {}", system.name, system.summary)];
    for work in system.lineage {
        lines.push(format!("  after: {work}"));
    }
    let knobs: String = system
        .knobs
        .iter()
        .map(|(name, value)| format!(", {name} {value}"))
        .collect();
    lines.push(format!("  policy: {}{knobs}", system.policy));
    lines.push(format!("  load control: {}", system.load));
    lines.push(format!("  references by: {}", eyes(system.eyes)));
    for (name, cost) in costs(&system.costs) {
        if cost > 0 {
            lines.push(format!("  {}: {cost}", name.replace('_', " ")));
        }
    }
    lines.join("\n") + "\n"
}

fn view_json(systems: &[&System]) -> String {
    let systems: Vec<Value> = systems
        .iter()
        .map(|system| {
            let knobs = system.knobs.iter();
            let knobs = knobs.map(|(name, value)| ((*name).to_owned(), (*value).into()));
            let costs = costs(&system.costs).into_iter();
            let costs = costs.map(|(name, cost)| (name.to_owned(), cost.into()));
            json!({
                "name": system.name, "summary": system.summary, "lineage": system.lineage,
                "policy": system.policy, "load": system.load, "sees": eyes(system.eyes),
                "knobs": Value::Object(knobs.collect()),
                "costs": Value::Object(costs.collect()),
            })
        })
        .collect();
    let all = json!({ "schema": "tidemark.systems.v1", "systems": systems });
    format!("{all:#}\n")
}

fn eyes(eyes: MachineKind) -> &'static str {
    match eyes {
        MachineKind::Bits => "bits",
        MachineKind::SoftFaults => "soft faults",
    }
}

/// The costs of work, by the name of the work and its unit.
fn costs(costs: &Costs) -> [(&'static str, u64); 15] {
    [
        ("instruction_ps", costs.instruction_ps),
        ("reference_ps", costs.reference_ps),
        ("fault_ns", costs.fault_ns),
        ("zero_ns", costs.zero_ns),
        ("copy_ns", costs.copy_ns),
        ("page_table_ns", costs.page_table_ns),
        ("reverse_map_ns", costs.reverse_map_ns),
        ("question_ns", costs.question_ns),
        ("swap_request_ns", costs.swap_request_ns),
        ("file_request_ns", costs.file_request_ns),
        ("message_ns", costs.message_ns),
        (
            "messages_per_swap_request",
            costs.messages_per_swap_request.into(),
        ),
        (
            "messages_per_file_request",
            costs.messages_per_file_request.into(),
        ),
        ("switch_ns", costs.switch_ns),
        ("fork_ns", costs.fork_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<&'static System> {
        systems::entries().iter().collect()
    }

    #[test]
    fn every_system_is_in_every_list_with_its_sources() {
        let (text, json) = (list(&all(), None), view_json(&all()));
        for system in all() {
            assert!(text.contains(system.summary), "{text}");
            assert!(json.contains(system.policy), "{json}");
            let described = full(system);
            for source in system.lineage {
                assert!(described.contains(source), "{described}");
            }
        }
    }

    #[test]
    fn found_n9_the_list_keeps_to_the_width() {
        for width in [60, 80, 100, 200] {
            let text = list(&all(), Some(width));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {text}");
        }
        assert!(list(&all(), Some(200)).contains("references by "));
    }

    #[test]
    fn a_slip_is_answered_with_near_names() {
        let refusal = find_system("gnumach-balance").unwrap_err().to_string();
        let expected = "`gnumach-balance`: no such system; did you mean `gnumach-balanced`?";
        assert_eq!(refusal, expected);
        let refusal = find_system("multics").unwrap_err().to_string();
        assert_eq!(
            refusal,
            "`multics`: no such system; `tidemark systems` lists them"
        );
    }
}
