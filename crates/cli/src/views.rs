//! The parts common to the commands that show traces: reading with progress, and the forms in
//! which results are given out.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use tidemark_lab::study::{Opened, Study, Unchosen, Wanted};
use tidemark_report::picture::Picture;
use tidemark_report::terminal::Screen;
use tidemark_results::text;
use tidemark_trace::Error;

use crate::exit::{Exit, Refusal, refuse};
use crate::output::say;
use crate::{files, output, traces};

pub use crate::progress::Progress;

/// The trace that is shown.
#[derive(Debug, Args)]
pub struct Source {
    /// The trace; `-` for standard input
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Analyse these processes alone, separated by commas: by number, as `tidemark info` lists
    /// them, by process id, or by program (`cc1`)
    #[arg(long, value_name = "PROCESS,…", value_delimiter = ',')]
    process: Vec<String>,
    /// Read the intact part of a truncated trace
    #[arg(long)]
    partial: bool,
}

/// In which form results are given out. Without a choice they are drawn in the terminal.
#[derive(Debug, Args)]
pub struct Forms {
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Write a picture to this file, as PNG
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Write a picture to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The width of the drawing in columns (default: the terminal's)
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

/// A result in every form. Only the forms that are asked for are made.
pub struct Views<'a> {
    /// As JSON.
    pub json: &'a dyn Fn() -> String,
    /// As CSV.
    pub csv: &'a dyn Fn() -> String,
    /// As a picture.
    pub picture: &'a dyn Fn() -> Picture,
    /// As a drawing for a terminal.
    pub drawing: &'a dyn Fn(Screen) -> String,
}

impl Source {
    /// The trace at `path`: of it the processes that are named, or all.
    pub fn new(path: PathBuf, process: Vec<String>, partial: bool) -> Source {
        Source {
            trace: path,
            process,
            partial,
        }
    }

    /// The files that are read.
    pub fn reads(&self) -> Vec<PathBuf> {
        vec![self.trace.clone()]
    }

    /// Opens it, and chooses the processes that are asked for.
    pub fn open(&self) -> Result<Opened, Refusal> {
        let path = traces::openable(&self.trace);
        let opened = Opened::open(path, self.partial);
        let mut opened = opened.map_err(|error| self.refusal(&error))?;
        match opened.choose(&self.process) {
            Ok(()) => Ok(opened),
            Err(Unchosen::Trace(error)) => Err(self.refusal(&error)),
            Err(unknown @ Unchosen::Unknown { .. }) => {
                refuse!("`{}`: `--process`: {unknown}", traces::name_of(&self.trace))
            }
        }
    }

    /// Reads what is wanted of it, if that does not take more memory than there is. `remedy` says
    /// what would take less.
    pub fn read(
        &self,
        opened: Opened,
        wanted: Wanted,
        remedy: &str,
        progress: &mut Progress,
    ) -> Result<Study, Refusal> {
        let held = opened.bytes_held(&wanted);
        let references = opened.facts().records;
        check_room(
            &traces::name_of(&self.trace),
            references,
            held,
            tidemark_supervisor::room::available_bytes(),
            remedy,
        )?;
        let study = Study::of(opened, wanted, &mut |what, part| progress.show(what, part));
        study.map_err(|error| self.refusal(&error))
    }

    /// The refusal of a trace that can't be read.
    pub fn refusal(&self, error: &Error) -> Refusal {
        traces::refusal(&traces::name_of(&self.trace), error)
    }
}

/// Refuses to hold more memory than is available.
fn check_room(
    trace: &str,
    references: u64,
    held: u64,
    available: u64,
    remedy: &str,
) -> Result<(), Refusal> {
    if held > available {
        refuse!(
            "`{}`: its {} references would take {} of memory, and {} are available; {remedy}",
            trace,
            text::count(references),
            text::bytes(held),
            text::bytes(available),
        );
    }
    Ok(())
}

impl Forms {
    /// The files that are written, each with its option.
    pub fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        let named = [("--svg", &self.svg), ("--png", &self.png)];
        let named = named
            .into_iter()
            .filter_map(|(option, path)| Some((option, path.clone()?)));
        named.collect()
    }

    /// Gives out a result in the forms that were asked for.
    pub fn give(&self, views: &Views<'_>) -> Result<Exit, Refusal> {
        if let Some(path) = &self.svg {
            files::write(path, (views.picture)().to_svg().as_bytes())?;
        }
        if let Some(path) = &self.png {
            match (views.picture)().to_png() {
                Ok(png) => files::write(path, &png)?,
                Err(error) => refuse!("`{}`: can't be drawn: {error}", path.display()),
            }
        }
        if self.json {
            output::print(&(views.json)());
        } else if self.csv {
            output::print(&(views.csv)());
        } else if !self.has_picture() {
            output::print(&(views.drawing)(screen(self.width)));
        }
        Ok(Exit::Fine)
    }

    /// Says a record's `notes`, unless they are part of the printed text.
    pub fn tell_notes(&self, notes: &[String]) {
        if !self.json && (self.csv || self.has_picture()) {
            notes.iter().for_each(|note| say!("tidemark: {note}"));
        }
    }

    /// Returns true if a picture is asked for.
    pub fn has_picture(&self) -> bool {
        self.png.is_some() || self.svg.is_some()
    }
}

/// The screen drawn on: `columns` wide, or else as wide as the terminal.
pub fn screen(columns: Option<usize>) -> Screen {
    let stdout = std::io::stdout();
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let has_colours = stdout.is_terminal() && !is_set("NO_COLOR") && !is_dumb;
    let size = rustix::termios::tcgetwinsize(&stdout);
    let terminal = size
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0);
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    Screen::new(columns.or(terminal).or(told).unwrap_or(80), has_colours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_h5_more_memory_than_there_is_is_refused_with_what_takes_less() {
        let check = |held, available| {
            let checked = check_room("a.tide", 1_660_000_000, held, available, "do x");
            checked.map_err(|refusal| refusal.to_string())
        };
        assert_eq!(check(1 << 30, 1 << 30), Ok(()));
        let told = check(37 << 30, 18 << 30).unwrap_err();
        assert_eq!(
            told,
            "`a.tide`: its 1,660,000,000 references would take 37 GiB of memory, and 18 GiB \
             are available; do x"
        );
    }
}
