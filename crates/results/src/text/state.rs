//! The state of a run that goes on, as a table of its tasks, and a task's memory, as one of parts.

use tidemark_core::counters::Counter;

use super::{UNMANAGED, bytes, folded, hanging, table, trimmed};
use crate::basis::SAMPLED_MARK;
use crate::control::{JobsState, MemoryMap, RunState, Task};
use crate::record::PAGE_BYTES;

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
        UNMANAGED,
        "faults/s",
        "page-ins/s",
        "page-outs/s",
        "waited",
        "page-ins",
        "page-outs",
    ];
    let rows: Vec<Vec<String>> = state.tasks.iter().map(row).collect();
    text.push_str(&format!("{}\n", folded(&head, &rows, 3, 1, width)));
    text
}

/// The map of a task's memory: a line for each part of its address space, and one of all.
pub fn memory_map(map: &MemoryMap) -> String {
    let managed = bytes(map.pages * PAGE_BYTES);
    let mut text = format!("task {} {}: {managed} managed\n", map.pid, map.program);
    let Some(all) = map.shares() else {
        return text;
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let row = |name: String, shares: [f64; 4]| {
        let shares = shares.into_iter().map(percent);
        std::iter::once(name).chain(shares).collect::<Vec<String>>()
    };
    let head = ["from", "in memory", "compressed", "on disk", "empty"];
    let mut parts = table(&head, 0);
    for cell in &map.cells {
        let shares = cell.shares().unwrap_or_default();
        parts.add_row(row(format!("{:#x}", cell.address), shares));
    }
    parts.add_row(row("all".into(), all));
    text.push_str(&format!("{}\n", trimmed(&parts)));
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
        format!("{SAMPLED_MARK}{} unmanaged", bytes(memory.unmanaged_bytes)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Cell;

    #[test]
    fn parts_are_lines_and_all_is_their_mean() {
        let cell = |address, in_memory, on_disk| Cell {
            address,
            in_memory,
            on_disk,
            ..Cell::default()
        };
        let mut map = MemoryMap {
            pid: 7,
            program: "sort".into(),
            pages: 512,
            cells: vec![cell(0x1000, 8, 0), cell(0x2000, 1, 3)],
            ..MemoryMap::default()
        };
        let text = memory_map(&map);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0].join(" "), "task 7 sort: 2 MiB managed");
        assert_eq!(lines[3].join(" "), "0x1000 100 % 0 % 0 % 0 %");
        assert_eq!(lines[4].join(" "), "0x2000 25 % 0 % 75 % 0 %");
        assert_eq!(lines[5].join(" "), "all 62 % 0 % 38 % 0 %");
        map.cells.clear();
        assert_eq!(memory_map(&map).lines().count(), 1);
    }
}
