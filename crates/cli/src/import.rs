//! `tidemark import`: traces from what other tools write.

mod columns;
mod formats;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidemark_results::quantity;
use tidemark_results::text;
use tidemark_trace::Repeats;
use tidemark_trace::import::csv;
use tidemark_trace::import::time::Scale;

use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output::say;
use crate::traces::{Input, Output};

use formats::{Format, convert};

/// Converts another tool's trace
///
/// Files compressed with gzip, xz or zstd are unpacked on the way. A summary says which parts of
/// the file became part of the trace, and which did not. docs/formats/imports.md describes each
/// format.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The file to import; `-` for standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The file for the trace; `-` for standard output
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// The format of FILE [default: by its name or its first bytes]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// The size of a page, by which addresses, sectors and lengths are divided
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    page_size: String,
    /// The treatment of references to the page of the reference before; without it those of
    /// lackey, drmemtrace and champsim are merged, as a recorder does, and all others kept
    #[arg(long, value_name = "WAY")]
    repeats: Option<RepeatsChoice>,
    /// CSV: which column holds what, by number from 1 or by name, as `page=2,kinds=type`; there
    /// are page, address, sector (of 512 bytes), key (any text), bytes, count (of pages), process,
    /// kinds and time; and visit, for traces of caches: lines with the same text there, one behind
    /// the other, want their objects at once, and bytes are the sizes of objects
    #[arg(long, value_name = "COLUMNS", help_heading = "CSV")]
    columns: Option<String>,
    /// CSV: what stands between columns; `tab` and `space` are names (default: `,`)
    #[arg(long, value_name = "CHARACTER", help_heading = "CSV")]
    delimiter: Option<String>,
    /// CSV: page numbers and addresses are hexadecimal, with or without 0x
    #[arg(long, help_heading = "CSV")]
    hexadecimal: bool,
    /// CSV: the unit of the time column, where its name does not tell it
    #[arg(long, value_name = "UNIT", help_heading = "CSV")]
    time_unit: Option<TimeChoice>,
}

/// The treatment of repeated references.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RepeatsChoice {
    /// Each is a record
    Keep,
    /// References are one record, with all their kinds of access
    Merge,
}

/// The unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeChoice {
    /// Seconds, with fractions
    #[value(name = "s", alias = "seconds")]
    Seconds,
    /// Milliseconds, with fractions
    #[value(name = "ms", alias = "milliseconds")]
    Milliseconds,
    /// Microseconds, with fractions
    #[value(name = "us", alias = "microseconds")]
    Microseconds,
    /// Tenths of a microsecond: Windows' file times
    #[value(name = "100ns")]
    HundredNanoseconds,
    /// Nanoseconds
    #[value(name = "ns", alias = "nanoseconds")]
    Nanoseconds,
    /// Instructions of the process
    Instructions,
    /// Times are left out: each reference takes a unit
    None,
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
    // A name of any text (`.txt`) shows less than the contents of the file.
    let (format, otherwise) = match arguments.from {
        Some(format) => (Some(format), None),
        None => match Format::of_name(&arguments.input)? {
            Some(Format::Pages) => (None, Some(Format::Pages)),
            named => (named, None),
        },
    };
    check_csv(&arguments, format)?;
    let form = form(&arguments)?;
    let repeats = arguments.repeats.map(|repeats| match repeats {
        RepeatsChoice::Merge => Repeats::Merged,
        RepeatsChoice::Keep => Repeats::Kept,
    });
    let has_visits = form
        .columns
        .iter()
        .any(|(role, _)| *role == csv::Role::Visit);
    if has_visits && repeats == Some(Repeats::Merged) {
        refuse!(
            "`--repeats merge`: an object that two visits want would be wanted by one; leave it out"
        );
    }
    let (name, source) = Input::open(&arguments.input)?.metered();
    let output = Output::open(&arguments.output, false)?;
    let out = output.writer()?;
    let told = match convert(source, (format, otherwise), &form, repeats, out) {
        Ok(Ok(told)) => told,
        Ok(Err(formats::Unknown)) => return Err(unknown(&name)),
        Err(error) => return output.failed(&name, &error),
    };
    output.close_trace()?;
    let (references, records) = (text::count(told.references), text::count(told.records));
    say!("tidemark: {references} references of `{name}` in {records} records");
    match (told.used.is_empty(), told.unused.is_empty()) {
        (true, _) => {}
        (false, true) => say!("tidemark: used: {}", told.used),
        (false, false) => say!("tidemark: used: {}; not used: {}", told.used, told.unused),
    }
    for note in &told.notes {
        say!("tidemark: note: {note}");
    }
    Ok(Exit::Fine)
}

/// The form of CSV.
fn form(arguments: &Arguments) -> Result<csv::Form, Refusal> {
    let scale = |scale| csv::Clock::In(scale);
    Ok(csv::Form {
        delimiter: columns::delimiter(arguments.delimiter.as_deref().unwrap_or(","))?,
        is_hexadecimal: arguments.hexadecimal,
        page_bytes: page_bytes(&arguments.page_size)?,
        time: match arguments.time_unit {
            None => csv::Clock::ByName,
            Some(TimeChoice::Seconds) => scale(Scale::Seconds),
            Some(TimeChoice::Milliseconds) => scale(Scale::Milliseconds),
            Some(TimeChoice::Microseconds) => scale(Scale::Microseconds),
            Some(TimeChoice::HundredNanoseconds) => scale(Scale::HundredNanoseconds),
            Some(TimeChoice::Nanoseconds) => scale(Scale::Nanoseconds),
            Some(TimeChoice::Instructions) => scale(Scale::Instructions),
            Some(TimeChoice::None) => csv::Clock::None,
        },
        columns: columns::parse(arguments.columns.as_deref().unwrap_or_default())?,
    })
}

/// Refuses options of CSV for other formats.
fn check_csv(arguments: &Arguments, format: Option<Format>) -> Result<(), Refusal> {
    let options = [
        ("--columns", arguments.columns.is_some()),
        ("--delimiter", arguments.delimiter.is_some()),
        ("--hexadecimal", arguments.hexadecimal),
        ("--time-unit", arguments.time_unit.is_some()),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) if format != Some(Format::Csv) => {
            refuse!("`{option}`: only CSV has columns; add `--from csv`, or leave it out")
        }
        _ => Ok(()),
    }
}

/// The size of a page, given as `--page-size`.
fn page_bytes(text: &str) -> Result<u64, Refusal> {
    let bytes = quantity::parse("--page-size", text)?;
    match bytes.is_power_of_two() {
        true => Ok(bytes),
        false => refuse!("`--page-size {text}`: not a power of two; use one, like `4K` or `2M`"),
    }
}

/// The refusal of a file whose format is not known.
fn unknown(name: &str) -> Refusal {
    let formats = Format::value_variants().iter();
    let formats: Vec<String> = formats
        .map(|format| format!("`{}`", format.name()))
        .collect();
    Refusal::new(format!(
        "`{name}`: unknown format; name it with `--from`: {}. Other text with columns is read with \
         `--from csv --delimiter space --columns address=2`; print anything else as a page number \
         a line, and use `--from pages`",
        formats.join(", ")
    ))
}
