//! `tidemark diff`: what changed between two versions of a program, or between two runs.
//!
//! Both inputs are traces, or records of one kind. Traces are read one after the other: of the
//! first only its portrait is kept while the second is read.

mod records;
mod traces;

use std::path::PathBuf;

use clap::Args;
use tidemark_report::diff::{drawing, page, summary};
use tidemark_results::diff::{DiffRecord, Kind, Portrait, Threshold};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::output;
use crate::views::screen;

/// Compares two traces, or two records of one kind: what changed, the largest difference first
///
/// Records are those of `tidemark curve --json`, of `tidemark run --stats` and of `tidemark bench
/// --json`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0, or 1 if something is beyond the `--threshold`, or 2 if the two \
    could not be compared."
)]
pub struct Arguments {
    /// The trace or the record before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The trace or the record after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// End with status 1 if an amount differs by more than this percentage of its old value (`5%`),
    /// or grew by more (`+5%`). Regions are judged by the same share of all pages; phases are not
    /// judged
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<String>,
    /// The sizes of memory for misses: in pages (`4096`), with a unit (`16M`), or as a share of
    /// what the first uses (default: 25%,50%,100%)
    #[arg(long, value_name = "N,…")]
    at: Option<String>,
    /// The windows of working sets, in units of the traces' time (default: those of `tidemark wss`
    /// for the first)
    #[arg(long, value_name = "N,…")]
    windows: Option<String>,
    /// Compare these processes of both traces alone, chosen as for `tidemark curve`
    #[arg(long, value_name = "PROCESS,…", value_delimiter = ',')]
    process: Vec<String>,
    /// Read the intact part of truncated traces
    #[arg(long)]
    partial: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Write a page for browsers to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The width of the text in columns (default: the terminal's)
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        vec![self.before.clone(), self.after.clone()]
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let page = self.html.iter().map(|path| ("--html", path.clone()));
        page.collect()
    }
}

/// Compares the two.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let threshold = arguments.threshold.as_deref().map(parse_threshold);
    let threshold = threshold.transpose()?;
    let (kind, [before, after]) = portraits(&arguments)?;
    let version = env!("CARGO_PKG_VERSION");
    let record = DiffRecord::new(version, kind, before, after, threshold);
    give(&arguments, &record)?;
    Ok(match record.is_beyond() {
        true => Exit::Found,
        false => Exit::Fine,
    })
}

/// The kind of both inputs, and their portraits.
fn portraits(arguments: &Arguments) -> Result<(Kind, [Portrait; 2]), Refusal> {
    let (before, after) = (&arguments.before, &arguments.after);
    let texts = (records::read(before)?, records::read(after)?);
    match texts {
        (None, None) => Ok((Kind::Trace, traces::portraits(arguments)?)),
        (Some(one), Some(other)) => {
            refuse_options_of_traces(arguments)?;
            records::portraits((before, &one), (after, &other), arguments.at.as_deref())
        }
        (one, _) => {
            let (trace, record) = match one.is_none() {
                true => (before, after),
                false => (after, before),
            };
            refuse!(
                "`{}` is a trace, and `{}` is a record; compare two traces, or two records of one \
                 kind",
                trace.display(),
                record.display()
            )
        }
    }
}

/// Refuses options that mean nothing for records.
fn refuse_options_of_traces(arguments: &Arguments) -> Result<(), Refusal> {
    let given = [
        ("--windows", arguments.windows.is_some()),
        ("--process", !arguments.process.is_empty()),
        ("--partial", arguments.partial),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => refuse!(
            "`{option}`: is for traces, and `{}` is a record; leave it out",
            arguments.before.display()
        ),
        None => Ok(()),
    }
}

/// Gives out the record in the forms that are asked for.
fn give(arguments: &Arguments, record: &DiffRecord) -> Result<(), Refusal> {
    if let Some(path) = &arguments.html {
        files::write(path, page(record).as_bytes())?;
    }
    let screen = screen(arguments.width);
    output::print(&match (&arguments.html, arguments.json, arguments.csv) {
        (_, true, _) => record.to_json(),
        (_, _, true) => record.to_csv(),
        (None, ..) => drawing(record, screen),
        (Some(path), ..) => format!(
            "{}The page is in `{}`.\n",
            summary(record, screen),
            path.display()
        ),
    });
    Ok(())
}

/// The bound that `--threshold` gives: `5%`, `+5%`.
fn parse_threshold(text: &str) -> Result<Threshold, Refusal> {
    let growth = text.trim().strip_prefix('+');
    let number = growth.unwrap_or(text).trim();
    let percent = number.strip_suffix('%').unwrap_or(number).trim();
    match percent.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(Threshold {
            percent,
            is_of_growth: growth.is_some(),
        }),
        _ => refuse!(
            "`--threshold {text}`: not a share; give percent of what was before, like `5%`, or \
             `+5%` for what grew alone"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_share_with_or_without_its_signs() {
        let parsed = |text| {
            let threshold = parse_threshold(text).unwrap();
            (threshold.percent, threshold.is_of_growth)
        };
        assert_eq!(parsed("5%"), (5.0, false));
        assert_eq!(parsed("0.5"), (0.5, false));
        assert_eq!(parsed("+10 %"), (10.0, true));
        for text in ["", "-5%", "much", "+", "inf", "nan", "5%%"] {
            let told = parse_threshold(text).unwrap_err().to_string();
            assert!(told.starts_with(&format!("`--threshold {text}`")), "{told}");
        }
    }
}
