//! `tidemark wss`: the size of the working set over time.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::amounts::parse_amounts;
use tidemark_lab::study::{Passing, Wanted, WorkingSets};
use tidemark_report::footprint::drawing::drawing;
use tidemark_report::{picture, terminal};
use tidemark_results::analysis::TraceFacts;
use tidemark_results::analysis::wss::{WindowSizes, WssRecord};

use crate::curve::span;
use crate::exit::{Exit, Refusal};
use crate::files::Files;
use crate::views::{Forms, Progress, Source, Views};

/// The number of spans of time that are distinguished.
const PIECES: usize = 1000;
/// The most intervals of a footprint.
pub const INTERVALS: u64 = 200;

/// Shows the size of a program's working set over time
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The windows, in units of the trace's time: `20k`, `1.5M`; for a live recording, at least two
    /// of its shortest sampling windows (default: three that fit)
    #[arg(long, value_name = "N,…")]
    windows: Option<String>,
    /// Also count, in intervals of time, the pages touched, touched for the first time, allocated,
    /// and mapped; --csv prints these alone (`tidemark report` draws them)
    #[arg(long, conflicts_with_all = ["png", "svg"])]
    footprint: bool,
    #[command(flatten)]
    forms: Forms,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        self.source.reads()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        self.forms.writes()
    }
}

/// Shows the working sets.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let windows = arguments.windows.as_deref();
    let windows = windows
        .map(|text| parse_amounts("--windows", text))
        .transpose()?;
    let asked = windows.unwrap_or_default();
    let mut windows = asked.clone();
    windows.sort_unstable();
    windows.dedup();
    let mut progress = Progress::new();
    let wanted = Wanted {
        // Of phases, which are drawn behind the sets.
        references: arguments.forms.has_picture(),
        passing: Passing {
            working_sets: Some(WorkingSets {
                windows,
                pieces: PIECES,
            }),
            ..Passing::default()
        },
        ..Wanted::default()
    };
    let opened = arguments.source.open()?;
    let remedy = "leave out the picture: its phases take the references in memory";
    let study = arguments
        .source
        .read(opened, wanted, remedy, &mut progress)?;
    check_windows(&asked, study.facts())?;
    let mut record = study.working_sets_passed();
    check_known(&asked, &record)?;
    // The tints of phases are for pictures alone, and take a pass of their own.
    let phases = arguments.forms.has_picture().then(|| {
        progress.show("phases", 0.5);
        study.phases()
    });
    if arguments.footprint {
        let footprint = study.footprint(INTERVALS, &mut |what, part| progress.show(what, part));
        let footprint = footprint.map_err(|error| arguments.source.refusal(&error))?;
        record.footprint = Some(footprint);
    }
    drop(progress);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| match &record.footprint {
            Some(footprint) => footprint.to_csv(),
            None => record.to_csv(),
        },
        picture: &|| picture::sizes::sizes(&record, phases.as_ref()),
        drawing: &|screen| terminal::sizes(&record, screen) + &drawing(&record, screen),
    })
}

/// Refuses windows that a sampled trace can't show at any time: shorter than two of its shortest
/// sampling windows.
fn check_windows(windows: &[u64], trace: &TraceFacts) -> Result<(), Refusal> {
    let least = trace
        .windows
        .map_or(0, |windows| windows.first_ns.saturating_mul(2));
    match windows.iter().find(|window| **window < least) {
        Some(window) => Err(too_short(*window, trace)),
        None => Ok(()),
    }
}

/// Refuses windows that turn out not to be known at any time.
fn check_known(windows: &[u64], record: &WssRecord) -> Result<(), Refusal> {
    let is_asked = |line: &&WindowSizes| windows.contains(&line.window);
    let mut lines = record.windows.iter().filter(is_asked);
    match lines.find(|line| line.known_share <= 0.0) {
        Some(line) => Err(too_short(line.window, &record.trace)),
        None => Ok(()),
    }
}

fn too_short(window: u64, trace: &TraceFacts) -> Refusal {
    let longest = trace.windows.map_or(0, |windows| windows.longest_ns);
    Refusal::new(format!(
        "`--windows`: {} is less than twice the sampling windows (up to {}), too short for this \
        trace; ask for {} or more, or record with a shorter `--window` or without `--live`",
        span(window),
        span(longest),
        span(trace.window_least()),
    ))
}
