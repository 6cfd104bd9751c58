//! `tidemark map`: which addresses a program used when.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::analysis::map::Fineness;
use tidemark_lab::study::Wanted;
use tidemark_report::{picture, terminal};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::views::{Forms, Progress, Source, Views};

/// Draws a heat map of accesses: addresses by time
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The largest number of rows, for addresses
    #[arg(long, value_name = "N", default_value_t = Fineness::default().rows_max)]
    rows: usize,
    /// The largest number of columns, for time
    #[arg(long, value_name = "N", default_value_t = Fineness::default().columns_max)]
    columns: usize,
    #[command(flatten)]
    forms: Forms,
}

/// Rows and columns beyond this are no map any more, but a copy of the trace.
const FINEST: usize = 1 << 14;

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        self.source.reads()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        self.forms.writes()
    }
}

/// Shows the map.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let (rows, columns) = (arguments.rows, arguments.columns);
    if !(1..=FINEST).contains(&rows) {
        refuse!("`--rows {rows}`: needs to be from 1 to {FINEST}");
    }
    if !(2..=FINEST).contains(&columns) {
        refuse!("`--columns {columns}`: needs to be from 2 to {FINEST}");
    }
    let mut progress = Progress::new();
    let wanted = Wanted {
        map: Some(Fineness {
            columns_max: columns,
            rows_max: rows,
        }),
        ..Wanted::default()
    };
    let opened = arguments.source.open()?;
    let remedy = "ask for fewer `--rows` or `--columns`";
    let study = arguments
        .source
        .read(opened, wanted, remedy, &mut progress)?;
    let record = study.map();
    drop(progress);
    arguments.forms.give(&Views {
        json: &|| record.to_json(),
        csv: &|| record.to_csv(),
        picture: &|| picture::heat::map(&record),
        drawing: &|screen| terminal::map(&record, screen),
    })
}
