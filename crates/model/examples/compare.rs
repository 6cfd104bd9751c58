//! Compares policies on made-up traces, and on traces read from files.
//!
//! ```text
//! cargo run --release -p tidemark-model --example compare -- clock tidemark:watched=60
//! cargo run --release -p tidemark-model --example compare -- =loop =zipf +FILE:FRAMES clock
//! ```
//!
//! prints a table: for each trace and policy (with knobs, after colons) the page-ins as a ratio to
//! those of the optimum, and the soft faults for each page that came. Where the optimum reads
//! nothing back, the ratio is of all pages that came, the first time included. The machine has no
//! reference bits. `=NAME` picks the traces whose names start so. `+FILE:FRAMES` adds a file of
//! page numbers, 32 bits each, low byte first.

use std::collections::HashSet;
use std::process::ExitCode;

use tidemark_core::policies::build;
use tidemark_core::vm::Config;
use tidemark_model::cache::MachineKind;
use tidemark_model::traces::{self, looping, phases, sheep, uniform, zipf};
use tidemark_model::{demand, opt};

struct Case {
    name: String,
    frames: u32,
    /// As a live process is run, or one page at a time.
    is_clustered: bool,
    pages: Vec<u64>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = traces::golden()
        .into_iter()
        .map(|trace| single(trace.name, trace.frames, trace.pages))
        .collect();
    cases.extend([
        single("loop-1k", 1000, looping(1500, 20)),
        single("loop-64k", 65536, looping(98304, 10)),
        clustered("loop-64k", 65536, looping(98304, 10)),
        clustered("loop-16k", 16384, looping(24576, 20)),
        clustered("loop-1.1-16k", 16384, looping(18022, 20)),
        clustered("loop-3-16k", 16384, looping(49152, 10)),
        single("sweep-4k", 4096, sheep(1, 8192, 10)),
        clustered("sweep-64k", 65536, sheep(1, 131_072, 4)),
        clustered("sheep-4-16k", 16384, sheep(4, 8192, 10)),
        single("zipf-4k", 4096, zipf(5, 16384, 1_000_000)),
        clustered("zipf-4k", 4096, zipf(5, 16384, 1_000_000)),
        single("zipf-64k", 65536, zipf(15, 262_144, 2_000_000)),
        single("uniform-4k", 4096, uniform(6, 8192, 300_000)),
        single("phases-fit-4k", 4096, phases(7, 10, 3500, 200_000)),
        single("phases-big-4k", 4096, phases(8, 6, 5000, 100_000)),
        single("zipf-shift-4k", 4096, shifting()),
        single("zipf-scan-4k", 4096, scanned()),
        single("start-then-work", 4096, started()),
        clustered("filled-zipf-16k", 16384, filled_zipf(65536)),
        clustered("filled-zipf-64k", 65536, filled_zipf(262_144)),
    ]);
    cases
}

/// Zipf's law over a set of pages, half of which changes from time to time.
fn shifting() -> Vec<u64> {
    let part = |part: u64| {
        zipf(9 + part, 8192, 200_000)
            .into_iter()
            .map(move |page| page + part * 4096)
    };
    (0..5).flat_map(part).collect()
}

/// Zipf's law over what just fits, and for every second use a page that is never used again.
fn scanned() -> Vec<u64> {
    let uses = zipf(20, 4000, 300_000);
    let pair = |(at, page)| [page, 10_000 + at as u64 / 2];
    uses.into_iter().enumerate().flat_map(pair).collect()
}

/// More pages than fit are touched once, then others are worked on.
fn started() -> Vec<u64> {
    let work = zipf(21, 3000, 300_000);
    (0..6000)
        .chain(work.into_iter().map(|page| page + 20_000))
        .collect()
}

/// Every page once, upwards; then Zipf's law over all of them, two uses a page.
fn filled_zipf(pages: u64) -> Vec<u64> {
    (0..pages).chain(zipf(22, pages, 2 * pages)).collect()
}

fn single(name: &str, frames: u32, pages: Vec<u64>) -> Case {
    let name = name.to_owned();
    Case {
        name,
        frames,
        is_clustered: false,
        pages,
    }
}

fn clustered(name: &str, frames: u32, pages: Vec<u64>) -> Case {
    Case {
        is_clustered: true,
        ..single(&format!("{name}-clustered"), frames, pages)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let (mut files, mut picked, mut policies) = (Vec::new(), Vec::new(), Vec::new());
    for argument in std::env::args().skip(1) {
        if let Some(file) = argument.strip_prefix('+') {
            files.push(read(file)?);
        } else if let Some(name) = argument.strip_prefix('=') {
            picked.push(name.to_owned());
        } else {
            policies.push(argument);
        }
    }
    let mut all = cases();
    match (picked.is_empty(), files.is_empty()) {
        (true, true) => {}
        (true, false) => all.clear(),
        (false, _) => all.retain(|case| picked.iter().any(|name| case.name.starts_with(name))),
    }
    all.extend(files);
    println!("| trace | optimum | {} |", policies.join(" | "));
    println!("|---|---|{}", "---|".repeat(policies.len()));
    for case in &all {
        print_row(case, &policies)?;
    }
    Ok(())
}

fn read(argument: &str) -> Result<Case, String> {
    let parts = argument.rsplit_once(':');
    let (path, frames) = parts.ok_or(format!("`+{argument}` has no `:FRAMES`"))?;
    let frames = frames
        .parse()
        .map_err(|_| format!("`{frames}` is no number of frames"))?;
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let word = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes")).into();
    let pages = bytes.chunks_exact(4).map(word).collect();
    let name = path.rsplit('/').next().unwrap_or(path);
    Ok(single(&format!("{name}-{frames}"), frames, pages))
}

fn print_row(case: &Case, policies: &[String]) -> Result<(), String> {
    let distinct = case.pages.iter().collect::<HashSet<_>>().len() as u64;
    let best = opt::count_misses(case.frames as usize, &case.pages) - distinct;
    let mut row = format!("| {} | {best} |", case.name);
    for policy in policies {
        let mut words = policy.split(':');
        let name = words.next().unwrap_or_default();
        let knob = |word: &'_ str| -> Option<(String, u64)> {
            let (knob, value) = word.split_once('=')?;
            Some((knob.to_owned(), value.parse().ok()?))
        };
        let knobs: Option<Vec<(String, u64)>> = words.map(knob).collect();
        let knobs = knobs.ok_or(format!("`{policy}` is no POLICY[:KNOB=VALUE]..."))?;
        let knobs: Vec<(&str, u64)> = knobs.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let policy = build(name, case.frames, case.frames, 1, &knobs)
            .map_err(|error| format!("`{policy}`: {error:?}"))?;
        let config = match case.is_clustered {
            true => Config::clustered(case.frames, case.frames),
            false => Config::demand(case.frames),
        };
        let counters = demand::replay(policy, config, MachineKind::SoftFaults, &case.pages);
        let came = counters.page_ins + distinct;
        let ratio = match best {
            0 => came as f64 / distinct as f64,
            _ => counters.page_ins as f64 / best as f64,
        };
        let soft = counters.soft_faults as f64 / came as f64;
        row.push_str(&format!(" {ratio:.3} / {soft:.2} |"));
    }
    println!("{row}");
    Ok(())
}
