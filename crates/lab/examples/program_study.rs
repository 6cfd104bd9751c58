//! The known results on program behaviour, as a recorded program shows them.
//!
//!     cargo run --release --example program_study -p tidemark-lab -- FILE.tide…
//!
//! Of each trace the process with most references is taken. Shown are lifetimes of the working set
//! and of LRU at equal memory, their knees, the working set's size over time with its peaks at
//! transitions, space-time products, and the memory needed. `docs/guide/working-sets.md` reads the
//! numbers.

use std::error::Error;
use std::process::ExitCode;

use tidemark_lab::analysis::ageing::working_set_over_time;
use tidemark_lab::analysis::intervals::Intervals;
use tidemark_lab::analysis::lifetime::{Knees, Lifetime, LifetimePoint};
use tidemark_lab::analysis::needed::{Terms, needed_fixed, needed_vmin, needed_working_set};
use tidemark_lab::analysis::peaks::find_peaks;
use tidemark_lab::analysis::phases::{PhaseOptions, find_phases};
use tidemark_lab::analysis::reference_string::ReferenceString;
use tidemark_lab::analysis::sight::Sight;
use tidemark_lab::analysis::space_time::{Costs, SpaceTime, fixed_space, variable_space};
use tidemark_lab::analysis::stack::count_depths;
use tidemark_lab::analysis::vmin::vmin_point;
use tidemark_lab::analysis::working_set::{run_working_set, window_for_mean, working_set_point};
use tidemark_lab::analysis::{Choice, Loading, References};
use tidemark_trace::{Block, Granularity, Reader};

/// A page-in from a fast disk, and a processor at a billion instructions a second.
const TERMS: Terms = Terms {
    slow_down_max: 0.05,
    page_in_ns: 100_000.0,
    ticks_per_second: 1e9,
};

const COSTS: Costs = Costs {
    tick_ns: 1.0,
    page_in_ns: 100_000.0,
    first_use_ns: 1_000.0,
    choice_ns: 1_000.0,
    scan_page_ns: 10.0,
    scan_every_ticks: 10_000_000,
};

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        match load(&path) {
            Ok(references) => study(&path, &references),
            Err(error) => {
                eprintln!("{path}: {error}; give a trace that `tidemark record` made");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// The process with most references.
fn load(path: &str) -> Result<References, Box<dyn Error>> {
    let mut block = Block::default();
    let mut counts: Vec<usize> = Vec::new();
    let mut reader = Reader::open(path)?;
    while reader.next_block(&mut block)? {
        let process = block.process as usize;
        counts.resize(counts.len().max(process + 1), 0);
        counts[process] += block.pages.len();
    }
    let largest = (0u32..).zip(&counts).max_by_key(|&(_, &count)| count);
    let largest = largest.map_or(0, |(process, _)| process);
    let mut reader = Reader::open(path)?;
    let mut loading = Loading::of(reader.header(), Choice::Only(vec![largest]), 1);
    while reader.next_block(&mut block)? {
        loading.take(&block);
    }
    Ok(loading.finish())
}

fn study(path: &str, references: &References) {
    let string = ReferenceString::of(references);
    let intervals = Intervals::measure(string);
    println!("## {path}");
    println!(
        "{} references, {} pages, {:.1} M ticks",
        intervals.references(),
        intervals.distinct(),
        intervals.duration() as f64 / 1e6
    );
    let misses = count_depths(&references.pages, references.page_count).misses();
    let duration = intervals.duration();
    let resolution = match references.granularity {
        Granularity::Exact => 1,
        Granularity::Quantum(ticks) | Granularity::Window(ticks) | Granularity::Regions(ticks) => {
            ticks
        }
    };
    let lru = Lifetime::new(
        duration,
        misses
            .iter()
            .enumerate()
            .skip(1)
            .map(|(pages, &misses)| (pages as f64, misses)),
    )
    .resolved(resolution);
    let windows = intervals.windows(32);
    let sets = Lifetime::new(
        duration,
        windows.iter().map(|&window| {
            let point = working_set_point(&intervals, window);
            (point.pages_mean, point.faults)
        }),
    )
    .resolved(resolution);
    show_lifetimes(&intervals, &lru);
    let window = show_knees(&intervals, &lru, &sets, &windows);
    show_peaks(string, window);
    show_space_time(string, &intervals, &misses, window, &lru);
    show_needed(string, &intervals, &misses);
}

/// Lifetimes at equal memory, from a hundredth of all pages to four fifths.
fn show_lifetimes(intervals: &Intervals, lru: &Lifetime) {
    println!("pages (share)   lifetime WS / LRU / VMIN-at-WS-window memory   WS over LRU");
    for share in [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80] {
        let pages = (intervals.distinct() * share / 100).max(1) as f64;
        let Some(window) = window_for_mean(intervals, working_set_point, pages) else {
            continue;
        };
        let point = working_set_point(intervals, window);
        let set = intervals.duration() as f64 / point.faults as f64;
        let Some(fixed) = lru.at(pages) else {
            continue;
        };
        println!(
            "{pages:8.0} {share:3} % {set:12.0} {fixed:12.0} {:12.1} {:10.2}",
            vmin_point(intervals, window).pages_mean,
            set / fixed
        );
    }
}

/// Shows the knees; returns the window of the working set's primary one.
fn show_knees(intervals: &Intervals, lru: &Lifetime, sets: &Lifetime, windows: &[u64]) -> u64 {
    let point = |point: &LifetimePoint| {
        format!(
            "{:.1} pages with {:.0} ticks",
            point.pages, point.lifetime_ticks
        )
    };
    let bent = |line: &Lifetime| line.clone().with_room_for_knees(intervals.distinct());
    let (lru, sets) = (&bent(lru), &bent(sets));
    for (name, knees) in [("LRU", lru.find_knees()), ("WS", sets.find_knees())] {
        let Knees {
            primary,
            all,
            inflection,
        } = knees;
        let primary = primary.as_ref().map(point);
        let all: Vec<String> = all.iter().map(point).collect();
        let inflection = inflection.as_ref().map(point);
        println!("{name:4} knee {primary:?}, inflection {inflection:?}\n     all {all:?}");
    }
    let Some(knee) = sets.find_knees().primary else {
        return 0;
    };
    let mean = |window: u64| working_set_point(intervals, window).pages_mean;
    let at = windows.partition_point(|&window| mean(window) < knee.pages);
    windows[at.min(windows.len() - 1)]
}

/// The working set over time with the knee's window and shorter ones, and its peaks.
fn show_peaks(string: ReferenceString<'_>, knee: u64) {
    let levels = find_phases(string, &PhaseOptions::for_string(&string));
    let tenth = string.duration() / 1000;
    let windows = [knee, tenth, tenth / 4];
    let lines = working_set_over_time(string, &windows, 50_000);
    for (window, line) in windows.iter().zip(&lines) {
        let totals = &line.totals;
        println!(
            "WS over time, window {window}: mean {:.1}, standard deviation {:.1}, most {}",
            totals.pages_mean(),
            totals.pages_variance().sqrt(),
            totals.pages_max
        );
    }
    println!("level        phases covered  mean pages  transitions: of two phases longer than");
    println!("                                         the window, peak stands out, mean height");
    for level in &levels {
        print!(
            "{:4}-{:4} {:9} {:6.1} % {:10.1}  ",
            level.pages_from,
            level.pages_to,
            level.phases.len(),
            level.covered_ticks() as f64 * 100.0 / string.duration() as f64,
            level.pages_mean()
        );
        for (window, line) in windows.iter().zip(&lines).skip(1) {
            let peaks = find_peaks(level, line, *window);
            let out = peaks.iter().filter(|peak| peak.stands_out()).count();
            let height: f64 = peaks.iter().map(|peak| peak.height()).sum();
            print!(
                "  {window}: {} {out} {:.2}",
                peaks.len(),
                height / peaks.len() as f64
            );
        }
        println!();
    }
}

fn show_space_time(
    string: ReferenceString<'_>,
    intervals: &Intervals,
    misses: &[u64],
    window: u64,
    lru: &Lifetime,
) {
    let show = |name: &str, cost: SpaceTime| {
        println!(
            "space-time {name}: {:.3} page-seconds, {:.3} without delays: {:.2} times too low",
            cost.total() / 1e9,
            cost.without_delays() / 1e9,
            cost.understated()
        );
    };
    let set = variable_space(&run_working_set(string, window), &COSTS);
    show("WS at its knee", set);
    if let Some(knee) = lru.find_knees().primary {
        let returns = misses[knee.pages as usize] - intervals.distinct();
        let first = intervals.distinct();
        let pages = knee.pages as u64;
        show(
            "LRU at its knee",
            fixed_space(pages, intervals.duration(), first, returns, &COSTS),
        );
    }
}

fn show_needed(string: ReferenceString<'_>, intervals: &Intervals, misses: &[u64]) {
    println!("needed for at most 5 % slow-down, 100 us a page-in, 1e9 instructions/s:");
    let points = (0u64..).zip(misses.iter().copied()).skip(1);
    let lru = needed_fixed(
        points,
        intervals.duration(),
        intervals.distinct(),
        &TERMS,
        Sight::FULL,
    );
    println!("  LRU  {lru:?}");
    println!(
        "  WS   {:?}",
        needed_working_set(string, intervals, &TERMS, Sight::FULL)
    );
    println!(
        "  VMIN {:?}",
        needed_vmin(string, intervals, &TERMS, Sight::FULL)
    );
}
