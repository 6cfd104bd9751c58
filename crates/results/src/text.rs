//! Text views of a record: tables for people.

mod amounts;
mod state;
mod width;

pub use amounts::{bytes, count, processors};
pub use state::{memory_map, state};
pub use width::{broken, folded, hanging, has_room, trimmed, wrap_last};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::basis::{SAMPLED_MARK, SAMPLED_MEANING};
use crate::locks::{LockCounts, Locks};
use crate::record::{Ending, Jobs, PAGE_BYTES, ProcessRecord, RunRecord, Statistics};
use crate::suspension::Suspension;

/// The head of the column of memory that is not managed, which is sampled.
const UNMANAGED: &str = "≈ unmanaged";

/// The number of processes that the table shows one by one; the rest are summed up in one line.
const PROCESSES_SHOWN: usize = 12;

/// Rules around the head of a table, and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The summary of a run: one line of what it was, a table of processes, and the rest of the total;
/// at most `width` columns wide, if there is one. `time` are lines on its time, each with its name.
pub fn summary(
    record: &RunRecord,
    time: Vec<(&'static str, String)>,
    width: Option<usize>,
) -> String {
    let mut text = hanging("tidemark: ", &headline(record), width);
    text.push_str(&format!("{}\n", processes(record, width)));
    let suspended = suspended_line(&record.suspensions);
    for (name, value) in details(&record.total)
        .into_iter()
        .chain(time)
        .chain(record.jobs.map(|jobs| ("jobs", jobs_line(jobs))))
        .chain(suspended.map(|told| ("suspended", told)))
        .chain([("≈", SAMPLED_MEANING.to_owned())])
    {
        text.push_str(&hanging(&format!("  {name:<12} "), &value, width));
    }
    if let Some(measured) = &record.locks {
        text.push_str(&format!("{}\n", locks(measured, width)));
    }
    for note in &record.notes {
        text.push_str(&hanging("note: ", note, width));
    }
    text
}

/// A table with rules between head and body, whose columns other than the first few
/// (`columns_left`) hold numbers.
pub fn table(columns: &[&str], columns_left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(columns);
    for column in table.column_iter_mut().skip(columns_left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn headline(record: &RunRecord) -> String {
    format!(
        "{} · {} · policy {} · {} · {:.2} s",
        shortened(&record.command.join(" "), 60),
        bytes(record.memory_bytes),
        record.policy,
        ending(record.ending),
        record.total.elapsed_s,
    )
}

fn processes(record: &RunRecord, width: Option<usize>) -> String {
    let head = [
        "process",
        "end",
        "elapsed s",
        "waited s",
        "page-ins",
        "page-outs",
        "peak",
        "last budget",
        UNMANAGED,
        "soft faults",
        "zero fills",
        "copies",
    ];
    let mut shown: Vec<&ProcessRecord> = record.processes.iter().collect();
    // The processes that paged most are the ones worth a line; among equals the first that came.
    shown.sort_by_key(|process| {
        std::cmp::Reverse((process.statistics.page_ins, process.statistics.frames_peak))
    });
    let mut rows = vec![];
    for process in shown.iter().take(PROCESSES_SHOWN) {
        let name = format!("{} {}", process.pid, shortened(&process.program, 20));
        rows.push(row(name, ending(process.ending), &process.statistics));
    }
    let rest = shown.get(PROCESSES_SHOWN..).unwrap_or_default();
    let mut others = record.others.clone();
    rest.iter().for_each(|process| others.add(process));
    if !others.is_none() {
        let name = format!("{} more", count(others.processes));
        rows.push(row(name, String::new(), &others.statistics));
    }
    rows.push(row("total".into(), String::new(), &record.total));
    folded(&head, &rows, 2, 1, width)
}

fn locks(locks: &Locks, width: Option<usize>) -> String {
    let head = ["lock", "taken", "contended", "waited ms", "held ms"];
    let row = |(name, counts): (&str, LockCounts)| {
        vec![
            name.into(),
            count(counts.taken),
            count(counts.contended),
            format!("{:.3}", counts.waited_ns.seconds() * 1000.0),
            format!("{:.3}", counts.held_ns.seconds() * 1000.0),
        ]
    };
    let rows: Vec<Vec<String>> = locks.named().into_iter().map(row).collect();
    folded(&head, &rows, 1, 1, width)
}

fn row(name: String, end: String, statistics: &Statistics) -> Vec<String> {
    vec![
        name,
        end,
        format!("{:.2}", statistics.elapsed_s),
        format!("{:.2}", statistics.stall_ns.seconds()),
        count(statistics.page_ins),
        count(statistics.page_outs),
        bytes(statistics.frames_peak * PAGE_BYTES),
        bytes(statistics.frames_budget * PAGE_BYTES),
        bytes(statistics.unmanaged_bytes_peak),
        count(statistics.soft_faults),
        count(statistics.zero_fills),
        count(statistics.cow_faults),
    ]
}

/// The rest of a total: counts with their names. Zero counts are left out.
fn details(total: &Statistics) -> Vec<(&'static str, String)> {
    let mut lines = transfers(total);
    for (name, latency) in [
        ("soft fault", &total.latency.soft),
        ("zero fill", &total.latency.zero_fill),
        ("page-in", &total.latency.page_in),
    ] {
        let us = latency.percentiles_us;
        if us.p999 > 0.0 {
            let percentiles = format!(
                "half within {:.1} µs, 90 % {:.1}, 99 % {:.1}, 99.9 % {:.1}",
                us.p50, us.p90, us.p99, us.p999,
            );
            lines.push((name, percentiles));
        }
    }
    lines.extend(files(total).map(|told| ("files", told)));
    let engine = bytes(total.engine_bytes);
    lines.push(("engine", format!("{SAMPLED_MARK} {engine} of memory")));
    if total.refusals + total.setbacks > 0 {
        let rejected = count(total.refusals);
        let retried = count(total.setbacks);
        let told = format!("{rejected} victims rejected, {retried} operations retried");
        lines.push(("eviction", told));
    }
    if total.pinned_pages_peak > 0 {
        let pinned = format!(
            "{} at most, {} over the budget",
            bytes(total.pinned_pages_peak * PAGE_BYTES),
            bytes(total.over_budget_pages_peak * PAGE_BYTES),
        );
        lines.push(("pinned", pinned));
    }
    lines
}

/// The line of mapped files, if any were to be managed.
fn files(total: &Statistics) -> Option<String> {
    let (managed, passed) = (total.file_mappings, total.file_mappings_passed);
    let read = bytes(total.file_ins * PAGE_BYTES);
    let mut told = format!("{} mappings managed, {read} read", count(managed));
    if total.file_outs > 0 {
        told += &format!(", {} written", bytes(total.file_outs * PAGE_BYTES));
    }
    let left = format!(
        "; {} ({}) left as they were",
        count(passed),
        bytes(total.file_bytes_passed)
    );
    match (managed, passed) {
        (0, 0) => None,
        (_, 0) => Some(told),
        _ => Some(told + &left),
    }
}

/// Lines of what was moved from and to the store, and of what did not have to be.
fn transfers(total: &Statistics) -> Vec<(&'static str, String)> {
    let moved = |size: u64, requests: u64, mean: f64| match requests {
        0 => "nothing".to_owned(),
        _ => format!(
            "{} in {} requests, {mean:.1} pages each",
            bytes(size),
            count(requests)
        ),
    };
    let read = moved(
        total.bytes_read,
        total.page_in_requests,
        total.page_in_cluster_mean(),
    );
    let moved_in = format!(
        "{} requests, {:.1} pages each, from memory and disk",
        count(total.page_in_requests),
        total.page_in_cluster_mean()
    );
    let written = moved(
        total.bytes_written,
        total.page_out_requests,
        total.page_out_cluster_mean(),
    );
    let mut lines = match total.decompressed_pages {
        0 => vec![("read", read)],
        // Most requests are answered from memory.
        _ => vec![("read", bytes(total.bytes_read)), ("page-ins", moved_in)],
    };
    lines.push(("written", written));
    lines.extend(read_ahead(total).map(|told| ("read-ahead", told)));
    if total.compressed_pages > 0 {
        let told = format!(
            "{} pages to {:.0} % of their size, {} came back; {} at most",
            count(total.compressed_pages),
            100.0 * total.compressed_bytes as f64 / (total.compressed_pages * PAGE_BYTES) as f64,
            count(total.decompressed_pages),
            bytes(total.compressed_memory_peak * PAGE_BYTES),
        );
        lines.push(("compressed", told));
    }
    if total.clean_drops + total.zero_pages > 0 {
        let (clean, zero) = (count(total.clean_drops), count(total.zero_pages));
        let told = format!("{clean} pages not modified, {zero} all zeros");
        lines.push(("not written", told));
    }
    lines
}

/// The fate of pages read ahead, in counts that add up; `None` if none were.
fn read_ahead(total: &Statistics) -> Option<String> {
    let counts = [
        (total.read_ahead_used, "used"),
        (total.read_ahead_wasted, "left unused"),
        (total.read_ahead_unknown, "not known"),
    ];
    let all: u64 = counts.iter().map(|(pages, _)| pages).sum();
    let each = counts.map(|(pages, what)| format!("{} {what}", count(pages)));
    let mut told = format!("{} pages: {}", count(all), each.join(", "));
    if total.read_ahead_unknown > 0 {
        told.push_str(" (mapped before their use, which can't be seen then, or still in memory");
        if total.read_ahead_passed > 0 {
            let passed = count(total.read_ahead_passed);
            told.push_str(&format!(
                "; a walk went past {passed}, which it has probably used"
            ));
        }
        told.push(')');
    }
    (all > 0).then_some(told)
}

/// Suspensions in one phrase: how many they were, of how many tasks, and how long the longest was
/// of those that are over; `None` if there were none.
fn suspended_line(suspensions: &[Suspension]) -> Option<String> {
    let mut tasks: Vec<u64> = suspensions.iter().map(|it| it.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let spans = suspensions
        .iter()
        .filter_map(|it| Some(it.until_s? - it.from_s));
    let longest_s = spans.fold(0.0, f64::max);
    let times = count(suspensions.len() as u64);
    (!tasks.is_empty()).then(|| {
        format!(
            "{times} times, {} tasks; {longest_s:.1} s at the longest",
            count(tasks.len() as u64)
        )
    })
}

fn jobs_line(jobs: Jobs) -> String {
    let Jobs {
        slots,
        at_work_peak,
        ..
    } = jobs;
    format!("{at_work_peak} at a time, of {slots} that were asked for")
}

fn ending(ending: Ending) -> String {
    match ending {
        Ending::Status(status) => format!("exit {status}"),
        Ending::Signal(signal) => format!("signal {signal}"),
        Ending::Replaced => "exec".into(),
        Ending::Gone => "gone".into(),
        Ending::Running => "running".into(),
    }
}

/// The beginning of `text`, on one line.
fn shortened(text: &str, characters_max: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= characters_max {
        return text;
    }
    let head: String = text.chars().take(characters_max - 1).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(processes: usize) -> RunRecord {
        let process = |pid: usize| ProcessRecord {
            pid: pid as u32,
            parent: None,
            program: "sheep".into(),
            ending: Ending::Gone,
            locks: None,
            statistics: Statistics {
                page_ins: pid as u64,
                ..Statistics::default()
            },
        };
        let total = Statistics {
            page_ins: 1_234_567,
            page_in_requests: 100_000,
            elapsed_s: 2.5,
            ..Statistics::default()
        };
        let command = vec!["sheep".into(), "4".into()];
        RunRecord {
            policy: "mach3".into(),
            mode: "thread".into(),
            memory_bytes: 256 << 20,
            notes: vec!["the swap file is read through the page cache".into()],
            processes: (1..=processes).map(process).collect(),
            ..RunRecord::of(command, Ending::Status(3), total)
        }
    }

    #[test]
    fn a_summary_says_how_often_and_how_long_tasks_waited_for_their_turn() {
        let of = |task, from_s, until_s| Suspension {
            task,
            from_s,
            until_s,
        };
        let mut record = record(1);
        assert!(!summary(&record, vec![], None).contains("suspended"));
        record.suspensions = vec![
            of(40, 1.0, Some(3.0)),
            of(30, 1.5, Some(2.0)),
            of(30, 3.5, None),
        ];
        let told = summary(&record, vec![], None);
        let line = "  suspended    3 times, 2 tasks; 2.0 s at the longest\n";
        assert!(told.contains(line), "{told}");
    }

    #[test]
    fn a_summary_says_what_ran_how_it_ended_and_what_it_cost() {
        let text = summary(&record(1), vec![], None);
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "tidemark: sheep 4 · 256 MiB · policy mach3 · exit 3 · 2.50 s"
        );
        assert!(text.contains("1,234,567"));
        assert!(text.contains("12.3 pages each"));
        assert!(text.contains("note: the swap file is read through the page cache"));
    }

    #[test]
    fn found_n9_a_summary_keeps_to_the_width_and_leaves_out_what_did_not_happen() {
        let mut record = record(3);
        record.notes.push("a note of many words ".repeat(9));
        record.total.frames_peak = 1024;
        record.total.latency.page_in.percentiles_us.p999 = 9.5;
        let text = summary(&record, vec![], Some(80));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
        assert!(
            text.contains("4 MiB") && text.contains("99.9 % 9.5"),
            "{text}"
        );
        for absent in ["soft fault ", "zero fill ", "eviction", "pinned", "p50"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }

    #[test]
    fn many_processes_are_summed_up_after_those_that_paged_most() {
        let text = summary(&record(20), vec![], None);
        assert!(text.contains("20 sheep") && text.contains("9 sheep"));
        assert!(!text.contains(" 8 sheep"));
        let rest = text.lines().find(|line| line.contains("8 more")).unwrap();
        assert!(rest.contains("36"), "1 + … + 8 page-ins: {rest}");
    }

    #[test]
    fn processes_without_a_record_count_among_the_rest() {
        let mut record = record(14);
        let others = |processes| ProcessRecord {
            statistics: Statistics {
                page_ins: 1_000,
                ..Statistics::default()
            },
            ..self::record(processes).processes.remove(0)
        };
        (0..1_500).for_each(|_| record.others.add(&others(1)));
        let text = summary(&record, vec![], None);
        let rest = text.lines().find(|line| line.contains(" more")).unwrap();
        assert!(rest.contains("1,502 more"), "{rest}");
        assert!(rest.contains("1,500,003"), "{rest}");
    }

    #[test]
    fn locks_have_a_table_if_they_were_measured() {
        let mut record = record(1);
        assert!(!summary(&record, vec![], None).contains("contended"));
        let mut locks = Locks::default();
        locks.engine.taken = 1_234;
        locks.engine.waited_ns.0 = 5_250_000;
        record.locks = Some(locks);
        let text = summary(&record, vec![], Some(80));
        let line = text.lines().rfind(|line| line.contains("engine ")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["engine", "1,234", "0", "5.250", "0.000"], "{text}");
    }

    #[test]
    fn an_unmanaged_run_has_a_summary_too() {
        let text = summary(&record(0), vec![], None);
        assert!(text.contains("total"));
    }
}
