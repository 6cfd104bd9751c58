//! `tidemark export`: traces for other tools.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidemark_trace::export::{self, Form, Names, Numbering};
use tidemark_trace::{Error, ErrorKind};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output::say;
use crate::traces::{self, Input, Output, refusal};

/// Writes a trace as other tools read it
///
/// Parts that the other format can't hold are left out, and a note names them. oracleGeneral has
/// the next reference to each page, which takes 16 bytes of memory for each reference.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The trace; `-` for standard input
    #[arg(value_name = "TRACE")]
    input: PathBuf,
    /// The output file; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The format to write [default: by FILE's name]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    /// The same as `--to parquet`
    #[arg(long, conflicts_with = "to")]
    parquet: bool,
    /// Write this process alone, by its number in the trace
    #[arg(long, value_name = "NUMBER")]
    process: Option<u32>,
    /// Number pages from 0 in the order of their first use, for formats with room for small numbers
    /// only
    #[arg(long)]
    dense: bool,
    /// Read the intact part of a truncated trace
    #[arg(long)]
    partial: bool,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Valgrind's `--tool=lackey --trace-mem=yes`
    Lackey,
    /// libCacheSim's binary traces
    #[value(
        name = "oracleGeneral",
        alias = "oraclegeneral",
        alias = "oracle-general"
    )]
    OracleGeneral,
    /// Comma-separated values: process, page, kinds, time
    Csv,
    /// A page number a line
    Pages,
    /// Page numbers of 32 bits, little-endian
    U32,
    /// Apache Parquet: process, page, kinds, time
    Parquet,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        vec![self.input.clone()]
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("-o", self.output.clone())]
    }
}

/// Exports.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let format = match arguments.to {
        Some(format) => format,
        None if arguments.parquet => Format::Parquet,
        None => guess(&arguments.output)?,
    };
    let form = format.form();
    let is_text = matches!(form, Form::Lackey | Form::Csv | Form::Pages);
    let (name, mut reader) = traces::open(Input::open(&arguments.input)?)?;
    let output = Output::open(&arguments.output, is_text)?;
    let numbering = match arguments.dense {
        true => Numbering::Dense,
        false => Numbering::AsIs,
    };
    let mut names = Names::new(numbering);
    let mut out = output.writer()?;
    let written = export::export(&mut reader, form, arguments.process, &mut names, &mut out)
        .and_then(|()| Ok(out.flush()?));
    drop(out);
    if let Err(error) = written {
        return match with_remedy(&name, &error, arguments.dense) {
            Some(refusal) => Err(refusal),
            None => output.failed(&name, &error),
        };
    }
    if let Some(process) = arguments.process
        && process >= reader.index().processes()
    {
        let count = reader.index().processes();
        refuse!("`--process {process}`: `{name}` has {count}, numbered from 0");
    }
    traces::check_ending(&name, &reader, arguments.partial)?;
    output.close()?;
    say!("tidemark: left out of `{name}`: {}", form.left_out());
    Ok(Exit::Fine)
}

/// The refusal of a number that other numbering would make fit.
fn with_remedy(name: &str, error: &Error, is_dense: bool) -> Option<Refusal> {
    let is_curable = matches!(error.kind, ErrorKind::TooLarge { .. }) && !is_dense;
    is_curable.then(|| {
        let refusal = refusal(name, error);
        Refusal::new(format!("{refusal}; `--dense` numbers pages from 0"))
    })
}

/// The format to write into a file of this name.
fn guess(path: &Path) -> Result<Format, Refusal> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".bin");
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("lackey") => Ok(Format::Lackey),
        Some("oracleGeneral") => Ok(Format::OracleGeneral),
        Some("csv") => Ok(Format::Csv),
        Some("txt" | "pages") => Ok(Format::Pages),
        Some("u32") => Ok(Format::U32),
        Some("parquet") => Ok(Format::Parquet),
        _ => refuse!(
            "`{}`: unknown format; \
             name it with `--to lackey`, `oracleGeneral`, `csv`, `pages`, `u32` or `parquet`",
            path.display()
        ),
    }
}

impl Format {
    const fn form(self) -> Form {
        match self {
            Format::Lackey => Form::Lackey,
            Format::OracleGeneral => Form::OracleGeneral,
            Format::Csv => Form::Csv,
            Format::Pages => Form::Pages,
            Format::U32 => Form::Words,
            Format::Parquet => Form::Parquet,
        }
    }
}
