//! `tidemark info`: what a trace holds.

use std::path::PathBuf;

use clap::Args;
use tidemark_report::numbers;
use tidemark_results::text::{bytes, count, folded, hanging, table, trimmed};
use tidemark_trace::summary::{End, FileCounts, ProcessSummary, Summary};
use tidemark_trace::{Granularity, Speed, TimeUnit};

use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::output;
use crate::traces::{self, Input, refusal};

/// The number of mappings of a process that are shown; the rest are one line.
const REGIONS_SHOWN: usize = 12;

/// The most characters of a line that the numbers beside a mapping's name take.
const NUMBERS_WIDTH: usize = 36;

/// The number of phases shown; of the rest their number is.
const PHASES_SHOWN: usize = 20;

/// Shows what a trace holds
#[derive(Debug, Args)]
pub struct Arguments {
    /// The trace; `-` for standard input
    #[arg(value_name = "TRACE")]
    input: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Read the intact part of a truncated trace
    #[arg(long)]
    partial: bool,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        vec![self.input.clone()]
    }
}

/// Shows it.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let (name, mut reader) = traces::open(Input::open(&arguments.input)?)?;
    let summary = Summary::read(&mut reader).map_err(|error| refusal(&name, &error))?;
    traces::check_ending(&name, &reader, arguments.partial)?;
    output::print(&match arguments.json {
        true => json(&summary),
        false => view(&name, &summary, output::terminal_width()),
    });
    Ok(Exit::Fine)
}

fn json(summary: &Summary) -> String {
    let mut value = serde_json::to_value(summary).expect("a summary has nothing JSON can't say");
    value["schema"] = "tidemark.info.v1".into();
    value["bytes_per_record"] = summary.bytes_per_record().into();
    format!("{value:#}\n")
}

fn view(name: &str, summary: &Summary, width: Option<usize>) -> String {
    let mut text = format!("{name}\n");
    let mut line = |name: &str, value: String| {
        text.push_str(&hanging(&format!("  {name:<10} "), &value, width));
    };
    let header = &summary.header;
    line("made by", header.source.clone());
    if !header.command.is_empty() {
        line("command", header.command.join(" "));
    }
    line("pages", format!("of {}", bytes(header.page_bytes)));
    line("kept", granularity(summary));
    let time = match header.time {
        TimeUnit::Nanoseconds => "in nanoseconds of processor time".into(),
        other => format!("in {}", other.noun()),
    };
    line("time", time);
    if let Some(speed) = speed(summary) {
        line("speed", speed);
    }
    line(
        "records",
        format!(
            "{} in {} blocks, {} events, {} pages{}",
            count(summary.records),
            count(summary.blocks),
            count(summary.events),
            count(summary.pages),
            match summary.pages_at_once {
                most if most < summary.pages => format!(", at most {} at one time", count(most)),
                _ => String::new(),
            }
        ),
    );
    line(
        "file",
        format!(
            "{}, {:.2} bytes a record, {}",
            bytes(summary.bytes),
            summary.bytes_per_record(),
            if summary.is_complete {
                "complete"
            } else {
                "ends early"
            }
        ),
    );
    text.push_str(&files(summary, width));
    text.push_str(&format!("\n{}\n", processes(summary, width)));
    for process in &summary.processes {
        text.push_str(&regions(process, width));
    }
    text.push_str(&phases(summary));
    text
}

/// The bytes that system calls moved; nothing where there was none.
fn files(summary: &Summary, width: Option<usize>) -> String {
    let sum = |part: fn(&FileCounts) -> u64| -> u64 {
        let parts = summary.processes.iter().map(|process| part(&process.files));
        parts.sum()
    };
    let (reads, writes) = (sum(|files| files.reads), sum(|files| files.writes));
    if reads + writes == 0 {
        return String::new();
    }
    let moved = format!(
        "{} read in {} events, {} written in {}, by system calls",
        bytes(sum(|files| files.bytes_read)),
        count(reads),
        bytes(sum(|files| files.bytes_written)),
        count(writes)
    );
    hanging(&format!("  {:<10} ", "files"), &moved, width)
}

/// The speed of the program without the recorder, where that is known.
fn speed(summary: &Summary) -> Option<String> {
    Some(match summary.header.speed? {
        Speed::Measured {
            user_ns,
            system_ns,
            elapsed_ns,
        } => {
            format!(
                "by itself {}, of which {} in user mode and {} in the kernel",
                duration(elapsed_ns),
                duration(user_ns),
                duration(system_ns)
            )
        }
        Speed::Calibrated { unit_fs } => format!(
            "some {} an instruction, by the recording machine's clock",
            numbers::seconds(unit_fs as f64 / 1e15)
        ),
    })
}

fn granularity(summary: &Summary) -> String {
    let header = &summary.header;
    match header.granularity {
        Granularity::Exact => "every change of page".into(),
        Granularity::Quantum(length) => {
            format!("pages once in {} {}", count(length), header.time.noun())
        }
        Granularity::Window(ns) | Granularity::Regions(ns) => {
            let longest = summary.processes.iter().filter_map(|it| it.window_ns).max();
            let grown = longest.filter(|&longest| longest > ns);
            let grown = grown.map_or(String::new(), |ns| format!(" up to {}", duration(ns)));
            let least = longest.unwrap_or(ns).max(ns).saturating_mul(2);
            let how = match header.granularity {
                Granularity::Regions(_) => {
                    "an estimate by regions, of which some pages were watched"
                }
                Granularity::Exact | Granularity::Quantum(_) | Granularity::Window(_) => {
                    "at their first touches"
                }
            };
            format!(
                "pages once in windows of {}{grown}, {how}: shows working sets over {} and more",
                duration(ns),
                duration(least)
            )
        }
    }
}

fn processes(summary: &Summary, width: Option<usize>) -> String {
    let head = [
        "process", "program", "end", "records", "pages", "from", "to", "fetch", "load", "store",
        "kernel", "unknown", "threads",
    ];
    let rows = summary.processes.iter().map(|process| {
        let name = match process.pid {
            Some(pid) => format!("{} (pid {pid})", process.process),
            None => process.process.to_string(),
        };
        let end = match process.end {
            Some(End::Status(status)) => format!("exit {status}"),
            Some(End::Signal(signal)) => format!("signal {signal}"),
            None => String::new(),
        };
        let kinds = &process.kinds;
        vec![
            name,
            process.programs.join(", "),
            end,
            count(process.records),
            count(process.pages),
            time(process.time_start, summary.header.time),
            time(process.time_end, summary.header.time),
            count(kinds.fetch),
            count(kinds.load),
            count(kinds.store),
            count(kinds.kernel),
            count(kinds.unknown),
            process.threads.to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    folded(&head, &rows, 3, 1, width)
}

/// A time of a process: counted, or a duration.
fn time(amount: u64, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Nanoseconds => duration(amount),
        TimeUnit::Instructions | TimeUnit::References => count(amount),
    }
}

fn duration(ns: u64) -> String {
    numbers::seconds(ns as f64 / 1e9)
}

fn regions(process: &ProcessSummary, width: Option<usize>) -> String {
    if process.regions.is_empty() {
        return String::new();
    }
    let title = format!("mappings of process {}", process.process);
    let shown = process.regions.iter().take(REGIONS_SHOWN);
    let rows = shown.map(|region| {
        let name = region.name.clone();
        vec![name, count(region.records), count(region.pages)]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let rest = process.regions.get(REGIONS_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let records = rest.iter().map(|region| region.records).sum();
        let pages = rest.iter().map(|region| region.pages).sum();
        rows.push(vec![
            format!("{} more", rest.len()),
            count(records),
            count(pages),
        ]);
    }
    if let Some(width) = width {
        // What tells files apart is at the end of their paths.
        let room = width.saturating_sub(NUMBERS_WIDTH).max(NUMBERS_WIDTH);
        rows.iter_mut()
            .for_each(|row| row[0] = end_of(&row[0], room));
    }
    let table = folded(&[&title, "records", "pages"], &rows, 1, 1, width);
    format!("\n{table}\n")
}

/// The last `length` characters of `text`.
fn end_of(text: &str, length: usize) -> String {
    let characters = text.chars().count();
    match characters > length {
        true => {
            text.chars()
                .skip(characters + 1 - length)
                .fold("…".into(), |mut cut: String, one| {
                    cut.push(one);
                    cut
                })
        }
        false => text.to_owned(),
    }
}

fn phases(summary: &Summary) -> String {
    if summary.phases.is_empty() {
        return String::new();
    }
    let mut table = table(&["phase", "process", "begins at"], 1);
    for phase in summary.phases.iter().take(PHASES_SHOWN) {
        table.add_row([
            phase.name.clone(),
            phase.process.to_string(),
            time(phase.time, summary.header.time),
        ]);
    }
    let rest = summary.phases.len().saturating_sub(PHASES_SHOWN);
    if rest > 0 {
        table.add_row([format!("{rest} more"), String::new(), String::new()]);
    }
    format!("\n{}\n", trimmed(&table))
}
