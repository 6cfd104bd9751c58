//! `tidemark report`: everything about a trace, on one page that needs nothing but a browser.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::analysis::map::Fineness;
use tidemark_lab::study::Wanted;
use tidemark_report::headline::headline;
use tidemark_report::page::page;
use tidemark_report::terminal;
use tidemark_results::text;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::needed::Assuming;
use crate::output;
use crate::views::{self, Progress, Source};
use crate::wss::INTERVALS;

/// Makes one HTML page of all analyses of a trace
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

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        self.source.reads()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("-o", self.output.clone())]
    }
}

/// Makes the page.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let assumed = arguments.assuming.check()?;
    let mut progress = Progress::new();
    let wanted = Wanted {
        references: true,
        map: Some(Fineness::default()),
        optimum: true,
        ..Wanted::default()
    };
    let opened = arguments.source.open()?;
    if opened.is_beyond_optimum() {
        refuse!(
            "{} references: a report has at most 2^30; `tidemark curve`, `wss` and `map` take more",
            text::count(opened.facts().records)
        );
    }
    let remedy = "`tidemark curve`, `wss` and `map` take less";
    let study = arguments
        .source
        .read(opened, wanted, remedy, &mut progress)?;
    let mut record = study.report(&assumed, &mut |what, part| progress.show(what, part));
    let (assuming, source) = (&arguments.assuming, &arguments.source);
    let footprint = study.footprint(INTERVALS, &mut |what, part| progress.show(what, part));
    record.wss.footprint = Some(footprint.map_err(|error| source.refusal(&error))?);
    assuming.rehearse(&study, source, &mut record.curve, &mut progress)?;
    progress.show("page", 1.0);
    files::write(&arguments.output, page(&record).as_bytes())?;
    drop(progress);
    if arguments.json {
        output::print(&record.to_json());
        return Ok(Exit::Fine);
    }
    let screen = views::screen(None);
    let needs = terminal::needs(&record.curve, screen);
    let page = arguments.output.display();
    let answer = terminal::sentence(&headline(&record), screen);
    output::print(&format!("{answer}{needs}The page is in `{page}`.\n"));
    Ok(Exit::Fine)
}
