//! `tidemark report`: everything about a trace, on one page that needs nothing but a browser.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::analysis::map::Fineness;
use tidemark_lab::study::Wanted;
use tidemark_report::page::page;
use tidemark_report::words;

use crate::exit::{Exit, Refusal};
use crate::needed::Assuming;
use crate::output;
use crate::views::{self, Progress, Source};

/// Makes one HTML page of everything a trace says
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The page to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    assuming: Assuming,
    /// Print the record that the page is made of, as JSON
    #[arg(long)]
    json: bool,
}

/// Makes the page.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let assumed = arguments.assuming.check()?;
    let mut progress = Progress::new();
    let wanted = Wanted {
        references: true,
        map: Some(Fineness::default()),
        ..Wanted::default()
    };
    let study = arguments.source.read(wanted, &mut progress)?;
    let mut record = study.report(&assumed, &mut |what, part| progress.show(what, part));
    let (assuming, trace) = (&arguments.assuming, arguments.source.path());
    assuming.rehearse(&study, trace, &mut record.curve, &mut progress)?;
    progress.show("page", 1.0);
    views::write(&arguments.output, page(&record).as_bytes())?;
    drop(progress);
    if arguments.json {
        output::print(&record.to_json());
        return Ok(Exit::Fine);
    }
    let mut lines = words::needs(&record.curve);
    lines.push(format!("The page is in `{}`.", arguments.output.display()));
    output::print(&format!("{}\n", lines.join("\n")));
    Ok(Exit::Fine)
}
