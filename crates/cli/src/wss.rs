//! `tidemark wss`: the size of the working set over time.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::amounts::parse_amounts;
use tidemark_lab::study::{Passing, Wanted, WorkingSets};
use tidemark_report::{picture, terminal};
use tidemark_results::analysis::TraceFacts;

use crate::curve::span;
use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::views::{Forms, Progress, Source, Views};

/// So many spans of time are told apart.
const PIECES: usize = 1000;

/// Shows the size of a program's working set over time
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The windows, in units of the trace's time: `20k`, `1.5M` (default: three that fit); of a
    /// live recording at least two of its sampling windows
    #[arg(long, value_name = "N,…")]
    windows: Option<String>,
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
    let record = study.working_sets_passed();
    // The tints of phases are for pictures alone, and take a pass of their own.
    let phases = arguments.forms.has_picture().then(|| {
        progress.show("phases", 0.5);
        study.phases()
    });
    drop(progress);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| record.to_csv(),
        picture: &|| picture::sizes::sizes(&record, phases.as_ref()),
        drawing: &|screen| terminal::sizes(&record, screen),
    })
}

/// Refuses windows that a sampled trace can't tell of.
fn check_windows(windows: &[u64], trace: &TraceFacts) -> Result<(), Refusal> {
    let least = trace.window_least();
    match windows.iter().find(|window| **window < least) {
        Some(window) => refuse!(
            "`--windows`: {} is less than twice the longest sampling window ({}), and the trace \
             can't tell of that; ask for {least} or more, or record it with a shorter `--window` \
             or without `--live`",
            span(*window),
            span(least / 2),
        ),
        None => Ok(()),
    }
}
