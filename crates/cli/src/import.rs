//! `tidemark import`: traces from what other tools write.

mod columns;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidemark_results::quantity;
use tidemark_results::text;
use tidemark_trace::import::{self, csv, lackey, oracle, pages, words};
use tidemark_trace::{Appender, Error, Header, Repeats, TimeUnit, Writer};

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output::say;
use crate::traces::{Input, Output};

/// Converts another tool's trace
///
/// What is compressed with zstd is unpacked on the way. Lackey's time is in instructions; the
/// other formats have none but in a column of CSV, and count references.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The file to import; `-` for standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The file for the trace; `-` for standard output
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// The format of FILE; without it, what its name says
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// The size of a page: what addresses of lackey and CSV are divided by
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    page_size: String,
    /// The treatment of references to the page of the reference before; without it lackey's are
    /// merged, as a recorder does, and all others kept
    #[arg(long, value_name = "WAY")]
    repeats: Option<RepeatsChoice>,
    /// CSV: which column holds what, by number from 1 or by name, as `page=2,kinds=type`; there
    /// are page, address, bytes, process, kinds and time
    #[arg(long, value_name = "COLUMNS", help_heading = "CSV")]
    columns: Option<String>,
    /// CSV: what stands between columns; `tab` is one
    #[arg(
        long,
        value_name = "CHARACTER",
        default_value = ",",
        help_heading = "CSV"
    )]
    delimiter: String,
    /// CSV: page numbers and addresses are hexadecimal, with or without 0x
    #[arg(long, help_heading = "CSV")]
    hexadecimal: bool,
    /// CSV: what the time column counts
    #[arg(
        long,
        value_name = "UNIT",
        default_value = "instructions",
        help_heading = "CSV"
    )]
    time_unit: TimeChoice,
}

/// The formats that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Valgrind's `--tool=lackey --trace-mem=yes`
    Lackey,
    /// libCacheSim's binary traces
    #[value(
        name = "oracleGeneral",
        alias = "oraclegeneral",
        alias = "oracle-general"
    )]
    OracleGeneral,
    /// Comma-separated values
    Csv,
    /// A page number a line
    Pages,
    /// Page numbers of 32 bits, little-endian
    U32,
}

/// The treatment of repeated references.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RepeatsChoice {
    /// Each is a record
    Keep,
    /// They are one record, with all their kinds of access
    Merge,
}

/// The unit of a time column.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimeChoice {
    /// Instructions of the process
    Instructions,
    /// Nanoseconds of the process
    Nanoseconds,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        vec![self.input.clone()]
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("-o", self.output.clone())]
    }
}

/// Imports.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    let format = match arguments.from {
        Some(format) => format,
        None => guess(&arguments.input)?,
    };
    let page_bytes = page_bytes(&arguments.page_size)?;
    let form = csv::Form {
        delimiter: columns::delimiter(&arguments.delimiter)?,
        is_hexadecimal: arguments.hexadecimal,
        page_bytes,
        time: match arguments.time_unit {
            TimeChoice::Instructions => TimeUnit::Instructions,
            TimeChoice::Nanoseconds => TimeUnit::Nanoseconds,
        },
        columns: columns::parse(arguments.columns.as_deref().unwrap_or_default())?,
    };
    if format != Format::Csv && arguments.columns.is_some() {
        refuse!("`--columns`: only CSV has columns; add `--from csv` or leave it out");
    }
    let repeats = match (arguments.repeats, format) {
        (Some(RepeatsChoice::Merge), _) | (None, Format::Lackey) => Repeats::Merged,
        (Some(RepeatsChoice::Keep) | None, _) => Repeats::Kept,
    };
    let (name, source) = Input::open(&arguments.input)?.metered();
    let output = Output::open(&arguments.output, false)?;
    let out = output.writer()?;
    match convert(source, format, &form, repeats, out) {
        Ok((references, records)) => {
            output.close_trace()?;
            let (references, records) = (text::count(references), text::count(records));
            say!("tidemark: {references} references of `{name}` in {records} records");
            Ok(Exit::Fine)
        }
        Err(error) => output.failed(&name, &error),
    }
}

/// Imports `source` into `out`. Says how many references there are, and how many records.
fn convert(
    source: impl Read,
    format: Format,
    form: &csv::Form,
    repeats: Repeats,
    out: impl Write,
) -> Result<(u64, u64), Error> {
    let source = import::open(source)?;
    let bytes = form.page_bytes;
    let begin = |header: Header| -> Result<_, Error> {
        Ok(Appender::new(Writer::new(out, &header)?, repeats))
    };
    let filled = match format {
        Format::Lackey => {
            let mut out = begin(lackey::header(bytes))?;
            lackey::import(source, bytes, &mut out).map(|()| out)
        }
        Format::OracleGeneral => {
            let mut out = begin(import::header("oracleGeneral", bytes))?;
            oracle::import(source, &mut out).map(|()| out)
        }
        Format::Csv => {
            let table = csv::Table::open(source, form)?;
            let mut out = begin(table.header())?;
            table.import(&mut out).map(|()| out)
        }
        Format::Pages => {
            let mut out = begin(import::header("page numbers", bytes))?;
            pages::import(source, &mut out).map(|()| out)
        }
        Format::U32 => {
            let mut out = begin(import::header("page numbers of 32 bits", bytes))?;
            words::import(source, &mut out).map(|()| out)
        }
    }?;
    let counts = (filled.references(), filled.records());
    filled.finish()?;
    Ok(counts)
}

/// The size of a page, given as `--page-size`.
fn page_bytes(text: &str) -> Result<u64, Refusal> {
    let bytes = quantity::parse("--page-size", text)?;
    match bytes.is_power_of_two() {
        true => Ok(bytes),
        false => refuse!("`--page-size {text}`: not a power of two; use one, like `4K` or `2M`"),
    }
}

/// The format of a file, by its name; `.zst` at the end does not count.
fn guess(path: &Path) -> Result<Format, Refusal> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".zst").trim_end_matches(".bin");
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("lackey") => Ok(Format::Lackey),
        Some("oracleGeneral") => Ok(Format::OracleGeneral),
        Some("csv") => Ok(Format::Csv),
        Some("txt" | "pages") => Ok(Format::Pages),
        Some("u32") => Ok(Format::U32),
        Some("tide") => refuse!("`{}`: is a trace already", path.display()),
        _ => refuse!(
            "`{}`: unknown format; \
             name it with `--from lackey`, `oracleGeneral`, `csv`, `pages` or `u32`",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let guessed = |name: &str| guess(Path::new(name)).ok();
        assert_eq!(guessed("a/gzip.lackey"), Some(Format::Lackey));
        assert_eq!(
            guessed("w.oracleGeneral.bin.zst"),
            Some(Format::OracleGeneral)
        );
        assert_eq!(guessed("w.oracleGeneral"), Some(Format::OracleGeneral));
        assert_eq!(guessed("x.csv.zst"), Some(Format::Csv));
        assert_eq!(guessed("x.txt"), Some(Format::Pages));
        assert_eq!(guessed("x.u32"), Some(Format::U32));
        assert_eq!(guessed("x.tide"), None);
        assert_eq!(guessed("-"), None);
    }
}
