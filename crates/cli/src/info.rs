//! `tidemark info`: what a trace holds.

use std::path::PathBuf;

use clap::Args;
use tidemark_report::numbers;
use tidemark_results::text::{bytes, count, table};
use tidemark_trace::summary::{End, FileCounts, ProcessSummary, Summary};
use tidemark_trace::{Granularity, Speed, TimeUnit};

use crate::exit::{Exit, Refusal};
use crate::output;
use crate::traces::{self, Input, refusal};

/// How many mappings of a process are shown; the rest are one line.
const REGIONS_SHOWN: usize = 12;

/// How many phases are shown; of the rest their number is.
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
    /// Take what is good of a trace that is cut off in the middle
    #[arg(long)]
    partial: bool,
}

/// Shows it.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let (name, mut reader) = traces::open(Input::open(&arguments.input)?)?;
    let summary = Summary::read(&mut reader).map_err(|error| refusal(&name, &error))?;
    traces::check_ending(&name, &reader, arguments.partial)?;
    output::print(&match arguments.json {
        true => json(&summary),
        false => view(&name, &summary),
    });
    Ok(Exit::Fine)
}

fn json(summary: &Summary) -> String {
    let mut value = serde_json::to_value(summary).expect("a summary has nothing JSON can't say");
    value["schema"] = "tidemark.info.v1".into();
    value["bytes_per_record"] = summary.bytes_per_record().into();
    format!("{value:#}\n")
}

fn view(name: &str, summary: &Summary) -> String {
    let mut text = format!("{name}\n");
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<10} {value}\n"));
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
            "{} in {} blocks, {} events, {} pages",
            count(summary.records),
            count(summary.blocks),
            count(summary.events),
            count(summary.pages)
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
    text.push_str(&files(summary));
    text.push_str(&format!("\n{}\n", processes(summary)));
    for process in &summary.processes {
        text.push_str(&regions(process));
    }
    text.push_str(&phases(summary));
    text
}

/// What system calls moved; nothing where there was none.
fn files(summary: &Summary) -> String {
    let sum = |part: fn(&FileCounts) -> u64| -> u64 {
        let parts = summary.processes.iter().map(|process| part(&process.files));
        parts.sum()
    };
    let (reads, writes) = (sum(|files| files.reads), sum(|files| files.writes));
    if reads + writes == 0 {
        return String::new();
    }
    format!(
        "  {:<10} {} read in {} events, {} written in {}, by system calls\n",
        "files",
        bytes(sum(|files| files.bytes_read)),
        count(reads),
        bytes(sum(|files| files.bytes_written)),
        count(writes)
    )
}

/// How fast the program is without the recorder, where that is known.
fn speed(summary: &Summary) -> Option<String> {
    Some(match summary.header.speed? {
        Speed::Measured {
            user_ns,
            system_ns,
            elapsed_ns,
        } => {
            let seconds = |ns: u64| numbers::seconds(ns as f64 / 1e9);
            format!(
                "by itself {}, of which {} in user mode and {} in the kernel",
                seconds(elapsed_ns),
                seconds(user_ns),
                seconds(system_ns)
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
        Granularity::Window(ns) => {
            let longest = summary.processes.iter().filter_map(|it| it.window_ns).max();
            let grown = longest.filter(|&longest| longest > ns);
            let grown = grown.map_or(String::new(), |ns| format!(" up to {} ns", count(ns)));
            let least = 2 * longest.unwrap_or(ns).max(ns);
            format!(
                "pages once in windows of {} ns{grown}, at their first touches: tells of working \
                 sets over {} and more",
                count(ns),
                numbers::seconds(least as f64 / 1e9)
            )
        }
    }
}

fn processes(summary: &Summary) -> String {
    let mut table = table(
        &[
            "process", "program", "end", "records", "pages", "from", "to", "fetch", "load",
            "store", "kernel", "unknown", "threads",
        ],
        3,
    );
    for process in &summary.processes {
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
        table.add_row([
            name,
            process.programs.join(", "),
            end,
            count(process.records),
            count(process.pages),
            count(process.time_start),
            count(process.time_end),
            count(kinds.fetch),
            count(kinds.load),
            count(kinds.store),
            count(kinds.kernel),
            count(kinds.unknown),
            process.threads.to_string(),
        ]);
    }
    table.to_string()
}

fn regions(process: &ProcessSummary) -> String {
    if process.regions.is_empty() {
        return String::new();
    }
    let title = format!("mappings of process {}", process.process);
    let mut table = table(&[&title, "records", "pages"], 1);
    for region in process.regions.iter().take(REGIONS_SHOWN) {
        let row = [
            region.name.clone(),
            count(region.records),
            count(region.pages),
        ];
        table.add_row(row);
    }
    let rest = process.regions.get(REGIONS_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let records = rest.iter().map(|region| region.records).sum();
        let pages = rest.iter().map(|region| region.pages).sum();
        table.add_row([format!("{} more", rest.len()), count(records), count(pages)]);
    }
    format!("\n{table}\n")
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
            count(phase.time),
        ]);
    }
    let rest = summary.phases.len().saturating_sub(PHASES_SHOWN);
    if rest > 0 {
        table.add_row([format!("{rest} more"), String::new(), String::new()]);
    }
    format!("\n{table}\n")
}
