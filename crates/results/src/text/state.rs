//! The state of a run that goes on, as a table of its tasks.

use tidemark_core::counters::Counter;

use super::{bytes, hanging, table};
use crate::control::{JobsState, RunState, Task};

/// The state of a run: what it has in all, and a table of tasks; at most `width` columns wide, if
/// there is one.
pub fn state(state: &RunState, width: Option<usize>) -> String {
    let mut text = hanging(&format!("run {}: ", state.pid), &headline(state), width);
    if state.tasks.is_empty() {
        text.push_str("no managed process is there\n");
        return text;
    }
    let head = [
        "task",
        "state",
        "waits for",
        "memory",
        "budget",
        "unmanaged",
        "faults/s",
        "page-ins/s",
        "page-outs/s",
        "waited",
        "page-ins",
        "page-outs",
    ];
    let mut tasks = table(&head, 3);
    for task in &state.tasks {
        tasks.add_row(row(task));
    }
    if let Some(width) = width {
        tasks
            .set_content_arrangement(comfy_table::ContentArrangement::Dynamic)
            .set_width(width.try_into().unwrap_or(u16::MAX));
    }
    text.push_str(&format!("{tasks}\n"));
    text
}

fn headline(state: &RunState) -> String {
    let memory = &state.memory;
    let mut parts = vec![
        format!(
            "{} of {} in use",
            bytes(memory.resident_bytes),
            bytes(memory.budget_bytes)
        ),
        format!("{} unmanaged", bytes(memory.unmanaged_bytes)),
        format!(
            "{} of {} of swap",
            bytes(state.swap.used_bytes),
            bytes(state.swap.bytes)
        ),
        format!("policy {}", state.policy),
        format!("store {}", state.store),
        format!("{:.1} s", state.elapsed_s),
    ];
    if let Some(jobs) = &state.jobs {
        let JobsState {
            slots,
            allowed,
            at_work,
        } = jobs;
        parts.push(format!("{at_work} jobs, {allowed} of {slots} allowed"));
    }
    if memory.budget_bytes_max > memory.budget_bytes {
        parts[0].push_str(&format!(" (at most {})", bytes(memory.budget_bytes_max)));
    }
    parts.join(" · ")
}

fn row(task: &Task) -> Vec<String> {
    let rate = |counter| format!("{:.0}", task.rates.get(counter));
    vec![
        format!("{} {}", task.pid, task.program),
        task.state.name().into(),
        task.waits_for.map_or("", |wait| wait.name()).into(),
        bytes(task.resident_bytes),
        bytes(task.budget_bytes),
        bytes(task.unmanaged_bytes),
        format!("{:.0}", task.rates.faults()),
        rate(Counter::PageIns),
        rate(Counter::PageOuts),
        format!("{:.0} %", task.rates.get(Counter::StallNs) * 100.0),
        super::count(task.counts.get(Counter::PageIns)),
        super::count(task.counts.get(Counter::PageOuts)),
    ]
}
