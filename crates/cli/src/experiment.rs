//! `tidemark experiment`: published measurements, reproduced, and how ours compare.
//!
//! [`tidemark_experiment`] makes them.

use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_experiment::catalog::Catalog;
use tidemark_experiment::file::Mode;
use tidemark_experiment::make_all;
use tidemark_experiment::plan::Plan;
use tidemark_experiment::workload::{Teller, Workshop};
use tidemark_report::picture::experiment::pictures;
use tidemark_report::{experiment, terminal};
use tidemark_results::experiment::{ExperimentsRecord, SCHEMA};
use tidemark_results::text;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::{self, Files};
use crate::output::say;
use crate::views::Progress;
use crate::{dated, output};

/// Reproduces published measurements and rates each claim
///
/// Each experiment is a file of bench/experiments. It names real programs, which are recorded if
/// their traces are missing; the systems that run them in the lab; and the published claims.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if every experiment was made, 1 if some had to be left \
    out, 2 if none could be made."
)]
pub struct Arguments {
    /// The experiments, of those that `--list` shows
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "list", "from"])]
    names: Vec<String>,
    /// Make all of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Show the experiments of this kept record, and run none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "all", "list", "record"])]
    from: Option<PathBuf>,
    /// List the experiments, and run none
    #[arg(long, conflicts_with_all = ["names", "all"])]
    list: bool,
    /// Few sizes and short programs: minutes (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every size, and long programs: half an hour to an hour
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the findings as CSV
    #[arg(long)]
    csv: bool,
    /// Write a page with every table and picture to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each picture into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// The folder for traces [default: in the user's cache]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Write a dated record into this folder
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Use the experiments of this folder in place of the built-in ones
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        self.from.iter().cloned().collect()
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        self.html
            .iter()
            .map(|path| ("--html", path.clone()))
            .collect()
    }
}

/// Lines go to stderr, and progress to the terminal.
const TELLER: Teller = Teller {
    say: |line| say!("{line}"),
    progress: || {
        let mut progress = Progress::new();
        Box::new(move |what, part| progress.show(what, part))
    },
};

/// Makes the experiments, or lists them.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    if let Some(path) = &arguments.from {
        return give(&arguments, &read(path)?);
    }
    let catalog = Catalog::new(arguments.experiments.as_deref()).map_err(|why| {
        let folder = arguments.experiments.as_deref().unwrap_or(Path::new(""));
        Refusal::new(format!("`--experiments {}`: {why}", folder.display()))
    })?;
    let names: Vec<String> = match arguments.names.is_empty() {
        true => catalog.names().map(String::from).collect(),
        false => arguments.names.clone(),
    };
    if arguments.list {
        return list(&catalog, &names, arguments.json);
    }
    let mode = match arguments.full {
        true => Mode::Full,
        false => Mode::Quick,
    };
    // A name or a file that is wrong is to be told before hours of work.
    let plans = names.iter().map(|name| {
        let plan = Plan::new(name, catalog.read(name)?, mode)?;
        Ok((name.as_str(), plan))
    });
    let plans: Vec<(&str, Plan)> = plans.collect::<Result<_, Refusal>>()?;
    let folder = arguments.traces.clone();
    let folder = folder.unwrap_or_else(Workshop::usual_folder);
    let workshop = Workshop::new(folder, &catalog, mode, TELLER)?;
    let began = (dated::now(), dated::commit(), dated::machine());
    let made = make_all(&plans, &workshop)?;
    let (date, commit, machine) = began;
    let record = ExperimentsRecord {
        schema: SCHEMA.into(),
        tidemark: env!("CARGO_PKG_VERSION").into(),
        date,
        commit,
        machine,
        mode: match mode {
            Mode::Quick => "quick".into(),
            Mode::Full => "full".into(),
        },
        experiments: made.experiments,
        left_out: made.left_out,
    };
    give(&arguments, &record)
}

/// Reads a record that was kept.
fn read(path: &Path) -> Result<ExperimentsRecord, Refusal> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => ExperimentsRecord::from_json(&text)
            .map_err(|told| Refusal::new(format!("`--from {shown}`: {told}"))),
        Err(error) => refuse!("`--from {shown}`: {error}; name a file like those of bench/runs"),
    }
}

fn give(arguments: &Arguments, record: &ExperimentsRecord) -> Result<Exit, Refusal> {
    if let Some(path) = &arguments.html {
        files::write(path, experiment::page(record).as_bytes())?;
    }
    if let Some(folder) = &arguments.pictures {
        if let Err(error) = std::fs::create_dir_all(folder) {
            refuse!("`--pictures {}`: {error}", folder.display());
        }
        for (name, picture) in record.experiments.iter().flat_map(pictures) {
            let path = folder.join(format!("{name}.svg"));
            files::write(&path, picture.to_svg().as_bytes())?;
        }
    }
    if let Some(folder) = &arguments.record {
        // A record in full may be begun in the minute of a quick one.
        let ending = match record.mode.as_str() {
            "full" => "-experiments-full",
            _ => "-experiments",
        };
        dated::write(folder, &record.date, ending, &record.to_json())?;
    }
    if arguments.json {
        output::print(&record.to_json());
    } else if arguments.csv {
        output::print(&record.to_csv());
    } else {
        output::print(&terminal::experiments(record));
    }
    match record.left_out.is_empty() {
        true => Ok(Exit::Fine),
        false => Ok(Exit::Found),
    }
}

fn list(catalog: &Catalog, names: &[String], is_json: bool) -> Result<Exit, Refusal> {
    let files = names.iter().map(|name| Ok((name, catalog.read(name)?)));
    let files: Vec<_> = files.collect::<Result<_, Refusal>>()?;
    if is_json {
        let all = files.iter().map(|(name, file)| {
            let (title, source, claimed) = (&file.title, &file.source, &file.claimed);
            serde_json::json!({
                "name": name, "title": title, "source": source, "claimed": claimed,
            })
        });
        let all: Vec<_> = all.collect();
        let all =
            serde_json::json!({ "schema": "tidemark.experiment-list.v1", "experiments": all });
        output::print(&format!("{all:#}\n"));
        return Ok(Exit::Fine);
    }
    let mut table = text::table(&["experiment", "published", "what it is"], 3);
    for (name, file) in &files {
        table.add_row([name.as_str(), &file.source, &file.title]);
    }
    text::wrap_last(&mut table, output::terminal_width());
    output::print(&format!("{}\n", text::trimmed(&table)));
    Ok(Exit::Fine)
}
