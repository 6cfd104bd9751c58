//! `tidemark sweep`: many traces by many policies in many sizes of memory, as one table that grows
//! row by row, and can be continued.

mod plan;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use clap::Args;
use tidemark_lab::study::sweep::SweepPart;
use tidemark_report::sweep::sweep;
use tidemark_results::analysis::sweep::{SweepRecord, SweepRow};
use tidemark_results::refusal::plain;
use tidemark_supervisor::{host, room};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::output::{self, say};
use crate::views::{self, Progress};
use plan::Plan;

/// Counts the misses of many traces by many policies in many sizes of memory, as one table
#[derive(Debug, Args)]
pub struct Arguments {
    /// The traces
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,
    /// The policies: lru, ws, vmin, opt, pff, any that `tidemark policies` lists, and any file
    /// (.wasm, .wat)
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "lru,opt"
    )]
    policies: Vec<String>,
    /// The sizes of memory: in pages (`4096`), with a unit (`16M`), or as a share of all the pages
    /// that each program uses (`50%`)
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "25%,50%,75%"
    )]
    memory: Vec<String>,
    /// Keep the table in this file, as JSON if its name ends with .json, otherwise as CSV. Rows
    /// that it already has are not counted again, unless they failed or the trace's size has
    /// changed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The number of traces that are counted side by side (default: the number of processors)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        let named = self.traces.iter().chain(&self.policies);
        named.map(PathBuf::from).collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let output = self.output.iter();
        output.map(|path| ("-o", path.clone())).collect()
    }
}

/// Counts what is not there yet.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if arguments.jobs == Some(0) {
        refuse!("`--jobs 0`: needs at least 1");
    }
    let there = arguments.output.as_deref().map_or(Ok(vec![]), read)?;
    let mut plan = Plan::new(
        &arguments.traces,
        &plan::parse_policies(&arguments.policies)?,
        &plan::parse_memory(&arguments.memory)?,
        there,
    );
    let parts = plan.parts();
    let missing: usize = parts.iter().map(|part| part.memory.len()).sum();
    let mut progress = Progress::new();
    let mut counted = 0;
    let jobs = arguments.jobs.unwrap_or_else(host::processors);
    count(&parts, jobs.min(parts.len()), |rows| {
        counted += rows.len();
        plan.take(rows);
        progress.show("sweep", counted as f64 / missing as f64);
        match &arguments.output {
            Some(path) => write(path, &plan.record()),
            None => Ok(()),
        }
    })?;
    drop(progress);
    let record = plan.record();
    tell(&plan, missing);
    match (arguments.json, arguments.csv) {
        (true, _) => output::print(&record.to_json()),
        (_, true) => output::print(&record.to_csv()),
        _ => output::print(&sweep(&record, views::screen(None))),
    }
    Ok(match plan.failures() {
        0 => Exit::Fine,
        _ => Exit::Found,
    })
}

/// Counts the parts, `jobs` at a time, and hands over the rows of each. Those that don't fit into
/// memory beside others come last, one by one.
fn count(
    parts: &[SweepPart],
    jobs: usize,
    mut done: impl FnMut(Vec<SweepRow>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let bytes_each = room::available_bytes() / jobs.max(1) as u64;
    let next = AtomicUsize::new(0);
    let mut late = vec![];
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..jobs {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if send.send((part, part.rows(bytes_each))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (part, rows) in receive {
            match rows {
                Some(rows) => done(rows)?,
                None => late.push(part),
            }
        }
        Ok::<(), Refusal>(())
    })?;
    for part in late {
        let rows = part.rows(room::available_bytes());
        let beyond = "its references take more memory than there is; `tidemark curve --sample 1%` \
                      estimates";
        done(rows.unwrap_or_else(|| part.failed(beyond)))?;
    }
    Ok(())
}

/// The rows of the table at `path`; none if there is no such file, or an empty one.
fn read(path: &Path) -> Result<Vec<SweepRow>, Refusal> {
    if !path.is_file() {
        return Ok(vec![]);
    }
    let name = path.display();
    let bytes = match std::fs::read(path) {
        Ok(bytes) if bytes.is_empty() => return Ok(vec![]),
        Ok(bytes) => bytes,
        Err(error) => refuse!("`{name}`: {}; name another file", plain(&error)),
    };
    let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned());
    match text.and_then(|text| SweepRecord::from_text(&text)) {
        Ok(record) => Ok(record.rows),
        Err(why) => refuse!("`{name}`: is no table of `tidemark sweep` ({why}); name another file"),
    }
}

fn write(path: &Path, record: &SweepRecord) -> Result<(), Refusal> {
    let is_json = path.extension().is_some_and(|it| it == "json");
    let text = match is_json {
        true => record.to_json(),
        false => record.to_csv(),
    };
    files::write(path, text.as_bytes())
}

/// Says how many rows there are, and of these how many were there already and how many failed.
fn tell(plan: &Plan, counted: usize) {
    let mut told = match plan.asked() {
        1 => "tidemark: 1 row".to_owned(),
        rows => format!("tidemark: {rows} rows"),
    };
    let there = plan.asked() - counted;
    if there > 0 {
        told.push_str(&format!(", {there} of them there already"));
    }
    match plan.failures() {
        0 => {}
        failures => told.push_str(&format!(", {failures} failed")),
    }
    say!("{told}");
}
