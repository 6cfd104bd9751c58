//! What the commands that show traces have in common: reading with progress, and the forms in
//! which results are given out.

mod amounts;
mod progress;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::study::{Study, Wanted};
use tidemark_report::picture::Picture;
use tidemark_report::terminal::Screen;

use crate::exit::{Exit, Refusal, refuse};
use crate::output;

pub use amounts::{parse_amounts, parse_memories, parse_memory, parse_sampling, parse_sizes};
pub use progress::Progress;

/// The trace that is shown.
#[derive(Debug, Args)]
pub struct Source {
    /// The trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Take what is good of a trace that is cut off in the middle
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
    /// Draw so many columns wide (default: the terminal's width)
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
    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.trace
    }

    /// Reads it.
    pub fn read(&self, wanted: Wanted, progress: &mut Progress) -> Result<Study, Refusal> {
        let wanted = Wanted {
            partial: self.partial,
            ..wanted
        };
        let study = Study::read(&self.trace, wanted, &mut |what, part| {
            progress.show(what, part)
        });
        study.map_err(|error| Refusal::new(format!("`{}`: {error}", self.trace.display())))
    }
}

/// Writes a file.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Refusal> {
    let written = std::fs::write(path, contents);
    written
        .map_err(|error| Refusal::new(format!("`{}`: can't be written: {error}", path.display())))
}

impl Forms {
    /// Gives out a result in the forms that were asked for.
    pub fn give(&self, views: &Views<'_>) -> Result<Exit, Refusal> {
        if let Some(path) = &self.svg {
            write(path, (views.picture)().to_svg().as_bytes())?;
        }
        if let Some(path) = &self.png {
            match (views.picture)().to_png() {
                Ok(png) => write(path, &png)?,
                Err(error) => refuse!("`{}`: can't be drawn: {error}", path.display()),
            }
        }
        if self.json {
            output::print(&(views.json)());
        } else if self.csv {
            output::print(&(views.csv)());
        } else if !self.has_picture() {
            output::print(&(views.drawing)(self.screen()));
        }
        Ok(Exit::Fine)
    }

    /// Whether a picture is asked for.
    pub fn has_picture(&self) -> bool {
        self.png.is_some() || self.svg.is_some()
    }

    fn screen(&self) -> Screen {
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
        let columns = self.width.or(terminal).or(told).unwrap_or(80);
        Screen::new(columns, has_colours)
    }
}
