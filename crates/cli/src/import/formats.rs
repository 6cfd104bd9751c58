//! The formats that can be imported: their names, and what is read of each.

use std::io::{Read, Write};
use std::path::Path;

use clap::ValueEnum;
use tidemark_results::text;
use tidemark_trace::import::{
    self, champsim, csv, damon, drmemtrace, foreign, lackey, lcs, lis, oracle, pages, perf,
    pinatrace, vscsi, words,
};
use tidemark_trace::{Appender, Error, Header, Repeats, Writer};

use crate::exit::{Refusal, refuse};

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
    /// libCacheSim's binary traces with a header, versions 1 to 8
    Lcs,
    /// SCSI commands of virtual disks, versions 1 and 2
    Vscsi,
    /// The ARC paper's traces: first block, number of blocks, and two more numbers a line
    Lis,
    /// Comma-separated values, or others
    Csv,
    /// A page number a line; also the LIRS paper's `.trc`
    Pages,
    /// Page numbers of 32 bits, little-endian
    U32,
    /// Page numbers of 64 bits, little-endian
    U64,
    /// Memory events, by `perf script -F comm,pid,time,event,addr`
    Perf,
    /// DAMON, by `damo report raw` or `damo report access --raw_number`
    Damon,
    /// The output of drmemtrace's tool `view`
    Drmemtrace,
    /// ChampSim's instructions, 64 bytes each
    #[value(name = "champsim")]
    ChampSim,
    /// Intel Pin's example pinatrace
    Pinatrace,
}

/// The names of files of each format, by what is behind the last dot.
const EXTENSIONS: [(&str, Format); 18] = [
    ("lackey", Format::Lackey),
    ("oracleGeneral", Format::OracleGeneral),
    ("lcs", Format::Lcs),
    ("vscsi", Format::Vscsi),
    ("vscsi1", Format::Vscsi),
    ("vscsi2", Format::Vscsi),
    ("vscsitrace", Format::Vscsi),
    ("lis", Format::Lis),
    ("csv", Format::Csv),
    ("txt", Format::Pages),
    ("pages", Format::Pages),
    ("trc", Format::Pages),
    ("u32", Format::U32),
    ("u64", Format::U64),
    ("perf", Format::Perf),
    ("damon", Format::Damon),
    ("champsim", Format::ChampSim),
    ("champsimtrace", Format::ChampSim),
];

/// The lines at the beginning of a file that show its format.
const LINES_TRIED: usize = 40;

/// The account of an import.
pub struct Told {
    /// The number of references.
    pub references: u64,
    /// The number of records they became.
    pub records: u64,
    /// The parts of the file that became part of the trace.
    pub used: String,
    /// The parts that did not; empty if all did.
    pub unused: String,
    /// Remarks.
    pub notes: Vec<String>,
}

/// The parts of a file, and remarks.
#[derive(Default)]
struct Parts {
    used: String,
    unused: String,
    notes: Vec<String>,
}

impl Format {
    /// The name, as `--from` has it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The format of a file, by its name; how it is compressed does not count.
    pub fn of_name(path: &Path) -> Result<Option<Format>, Refusal> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut name: &str = &name;
        for packed in [".zst", ".gz", ".xz"] {
            name = name.strip_suffix(packed).unwrap_or(name);
        }
        if name == "pinatrace.out" {
            return Ok(Some(Format::Pinatrace));
        }
        let name = name.trim_end_matches(".bin");
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        if extension == Some("tide") {
            refuse!("`{}`: is a trace already", path.display());
        }
        let known = EXTENSIONS
            .iter()
            .find(|(known, _)| extension == Some(known));
        Ok(known.map(|(_, format)| *format))
    }

    /// The format of a file by its first bytes, where its name does not show it.
    fn of_start(start: &[u8]) -> Option<Format> {
        let known = foreign::find_marked(start).or_else(|| {
            let likely = foreign::find_likely(start)?;
            (likely.from == Some("vscsi")).then_some(likely)
        });
        if let Some(name) = known.and_then(|known| known.from) {
            return Format::from_str(name, true).ok();
        }
        let starts_with = |text: &[u8]| start.starts_with(text);
        if starts_with(b"base_time_absolute:") || starts_with(b"snapshot time: [") {
            return Some(Format::Damon);
        }
        if starts_with(b"Output format:\n<--record#->") {
            return Some(Format::Drmemtrace);
        }
        let is_lackeys =
            start.starts_with(b"==") && contains(start, b"Lackey, an example Valgrind");
        if is_lackeys {
            return Some(Format::Lackey);
        }
        if champsim::is_likely(start) {
            return Some(Format::ChampSim);
        }
        Format::of_lines(start)
    }

    /// The text format whose importer takes the first lines of a file.
    fn of_lines(start: &[u8]) -> Option<Format> {
        let lines = start.split_inclusive(|&byte| byte == b'\n');
        let lines = lines.take(LINES_TRIED).collect::<Vec<&[u8]>>().concat();
        // The last of many lines may be cut.
        let end = match lines.len() < start.len() || start.len() < foreign::START_BYTES {
            true => lines.len(),
            false => lines.iter().rposition(|&byte| byte == b'\n')? + 1,
        };
        let form = csv::Form {
            delimiter: b',',
            is_hexadecimal: false,
            page_bytes: 4096,
            // A missing unit is reported at the import.
            time: csv::Clock::None,
            columns: vec![],
        };
        let takes = |format: &Format| {
            let begin = |header: Header| -> Result<_, Error> {
                let writer = Writer::new(std::io::sink(), &header)?;
                Ok(Appender::new(writer, Repeats::Kept))
            };
            let filled = read(&lines[..end], *format, &form, begin);
            filled.is_ok_and(|(filled, _)| filled.references() > 0)
        };
        // A page number a line is CSV of one column, too.
        let formats = [
            Format::Lackey,
            Format::Pinatrace,
            Format::Perf,
            Format::Drmemtrace,
            Format::Damon,
            Format::Lis,
            Format::Pages,
            Format::Csv,
        ];
        formats.into_iter().find(takes)
    }

    /// Returns true if the files of this format are text.
    fn is_text(self) -> bool {
        match self {
            Format::Lackey
            | Format::Lis
            | Format::Csv
            | Format::Pages
            | Format::Perf
            | Format::Damon
            | Format::Drmemtrace
            | Format::Pinatrace => true,
            Format::OracleGeneral
            | Format::Lcs
            | Format::Vscsi
            | Format::U32
            | Format::U64
            | Format::ChampSim => false,
        }
    }

    /// Refuses a file that begins as one of another kind does.
    fn check(self, start: &[u8]) -> Result<(), Error> {
        let name = self.name();
        if let Some(known) = foreign::find_marked(start)
            && known.from != Some(name.as_str())
        {
            return Err(known.error());
        }
        // Formats with marks of their own, or that are checked record by record, complain better.
        let is_markless = matches!(self, Format::U32 | Format::U64);
        let likely = foreign::find_likely(start).filter(|likely| {
            let is_text = likely.from.is_none();
            is_markless && likely.from != Some(name.as_str()) || is_text && !self.is_text()
        });
        likely.map_or(Ok(()), |likely| Err(likely.error()))
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    let some = &text[..text.len().min(4096)];
    some.windows(part.len()).any(|window| window == part)
}

/// Imports `source` into `out`. Without a format the file's beginning tells it; the second one is
/// taken where that tells nothing.
///
/// # Errors
/// The source is not of the format, or can't be read; `Ok(Err(_))` where its format is not known.
pub fn convert(
    source: impl Read,
    (format, otherwise): (Option<Format>, Option<Format>),
    form: &csv::Form,
    repeats: Option<Repeats>,
    out: impl Write,
) -> Result<Result<Told, Unknown>, Error> {
    let (start, source) = foreign::peek(import::open(source)?)?;
    let told = || Format::of_start(&start).or(otherwise);
    let Some(format) = format.or_else(told) else {
        return match foreign::find_marked(&start) {
            Some(known) => Err(known.error()),
            None => Ok(Err(Unknown)),
        };
    };
    format.check(&start)?;
    let repeats = repeats.unwrap_or(match format {
        Format::Lackey | Format::Drmemtrace | Format::ChampSim => Repeats::Merged,
        _ => Repeats::Kept,
    });
    let begin = |header: Header| -> Result<_, Error> {
        Ok(Appender::new(Writer::new(out, &header)?, repeats))
    };
    let (filled, parts) = read(source, format, form, begin)?;
    let (references, records) = (filled.references(), filled.records());
    filled.finish()?;
    Ok(Ok(Told {
        references,
        records,
        used: parts.used,
        unused: parts.unused,
        notes: parts.notes,
    }))
}

/// The format of a file is not known.
pub struct Unknown;

/// Reads `source` to its end into what `begin` makes of the trace's header.
fn read<W: Write>(
    source: impl Read,
    format: Format,
    form: &csv::Form,
    begin: impl FnOnce(Header) -> Result<Appender<W>, Error>,
) -> Result<(Appender<W>, Parts), Error> {
    let bytes = form.page_bytes;
    let plain = |name: &str| import::header(name, bytes);
    let parts = |used: &str, unused: &str| Parts {
        used: used.into(),
        unused: unused.into(),
        notes: Vec::new(),
    };
    match format {
        Format::Lackey => {
            let mut out = begin(lackey::header(bytes))?;
            lackey::import(source, bytes, &mut out)?;
            Ok((out, Parts::default()))
        }
        Format::OracleGeneral => {
            let mut out = begin(plain("oracleGeneral"))?;
            oracle::import(source, &mut out)?;
            Ok((out, parts(oracle::USED, oracle::UNUSED)))
        }
        Format::Lcs => {
            let mut out = begin(plain("lcs"))?;
            lcs::import(source, &mut out)?;
            Ok((out, parts(lcs::USED, lcs::UNUSED)))
        }
        Format::Lis => {
            let mut out = begin(plain("lis"))?;
            lis::import(source, &mut out)?;
            Ok((out, parts(lis::USED, lis::UNUSED)))
        }
        Format::ChampSim => {
            let mut out = begin(champsim::header(bytes))?;
            champsim::import(source, bytes, &mut out)?;
            Ok((out, parts(champsim::USED, champsim::UNUSED)))
        }
        Format::Pinatrace => {
            let mut out = begin(plain("pinatrace"))?;
            pinatrace::import(source, bytes, &mut out)?;
            Ok((out, parts(pinatrace::USED, pinatrace::UNUSED)))
        }
        Format::Drmemtrace => {
            let mut out = begin(drmemtrace::header(bytes))?;
            drmemtrace::import(source, bytes, &mut out)?;
            Ok((out, parts(drmemtrace::USED, drmemtrace::UNUSED)))
        }
        Format::Pages | Format::U32 | Format::U64 => read_numbers(source, format, bytes, begin),
        Format::Csv | Format::Vscsi | Format::Perf | Format::Damon => {
            read_timed(source, format, form, begin)
        }
    }
}

/// Reads `source` to its end, in a format that has nothing but the numbers of pages.
fn read_numbers<W: Write>(
    source: impl Read,
    format: Format,
    page_bytes: u64,
    begin: impl FnOnce(Header) -> Result<Appender<W>, Error>,
) -> Result<(Appender<W>, Parts), Error> {
    let plain = |name: &str| import::header(name, page_bytes);
    match format {
        Format::U32 => {
            let mut out = begin(plain("page numbers of 32 bits"))?;
            let doubt = words::import(source, &mut out)?;
            let notes = doubt.into_iter().collect();
            Ok((
                out,
                Parts {
                    notes,
                    ..Parts::default()
                },
            ))
        }
        Format::U64 => {
            let mut out = begin(plain("page numbers of 64 bits"))?;
            words::import_wide(source, &mut out)?;
            Ok((out, Parts::default()))
        }
        _ => {
            let mut out = begin(plain("page numbers"))?;
            pages::import(source, &mut out)?;
            Ok((out, Parts::default()))
        }
    }
}

/// Reads `source` to its end, in a format with times of its own.
fn read_timed<W: Write>(
    source: impl Read,
    format: Format,
    form: &csv::Form,
    begin: impl FnOnce(Header) -> Result<Appender<W>, Error>,
) -> Result<(Appender<W>, Parts), Error> {
    let bytes = form.page_bytes;
    let mut notes = Vec::new();
    let mut note_backward = |count: u64| {
        if count > 0 {
            let count = text::count(count);
            notes.push(format!(
                "{count} times are before their predecessors', and count as the same time"
            ));
        }
    };
    let (out, used, unused) = match format {
        Format::Vscsi => {
            let mut out = begin(vscsi::header(bytes))?;
            note_backward(vscsi::import(source, bytes, &mut out)?);
            (out, vscsi::USED.into(), vscsi::UNUSED.into())
        }
        Format::Perf => {
            let mut out = begin(perf::header(bytes))?;
            let left_out = perf::import(source, bytes, &mut out)?;
            note_backward(left_out.backward);
            if left_out.without_address > 0 {
                let count = text::count(left_out.without_address);
                notes.push(format!("{count} samples have no address, and are left out"));
            }
            notes.push(
                "perf samples: what is not in a sample is missing here, and misses are those of \
                 the samples"
                    .into(),
            );
            (out, perf::USED.into(), String::new())
        }
        Format::Damon => {
            let report = damon::Report::open(source)?;
            let mut out = begin(report.header(bytes))?;
            report.import(bytes, &mut out)?;
            (out, damon::USED.into(), damon::UNUSED.into())
        }
        _ => {
            let table = csv::Table::open(source, form)?;
            table.check_form()?;
            let mut out = begin(table.header())?;
            let (used, unused) = (table.used(), table.unused());
            table.import(&mut out)?;
            (out, used, unused)
        }
    };
    let parts = Parts {
        used,
        unused,
        notes,
    };
    Ok((out, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let guessed = |name: &str| Format::of_name(Path::new(name)).ok().flatten();
        assert_eq!(guessed("a/gzip.lackey"), Some(Format::Lackey));
        assert_eq!(
            guessed("w.oracleGeneral.bin.zst"),
            Some(Format::OracleGeneral)
        );
        assert_eq!(guessed("w.oracleGeneral"), Some(Format::OracleGeneral));
        for (name, format) in [
            ("x.csv.zst", Format::Csv),
            ("x.csv.gz", Format::Csv),
            ("x.csv.xz", Format::Csv),
            ("x.txt", Format::Pages),
            ("multi.trc", Format::Pages),
            ("P1.lis.gz", Format::Lis),
            ("x.u32", Format::U32),
            ("x.u64.gz", Format::U64),
            ("w106.vscsi", Format::Vscsi),
            ("w.lcs.zst", Format::Lcs),
            ("600.perlbench.champsimtrace.xz", Format::ChampSim),
            ("pinatrace.out", Format::Pinatrace),
        ] {
            assert_eq!(guessed(name), Some(format), "{name}");
        }
        assert_eq!(guessed("x.tide"), None);
        assert_eq!(guessed("-"), None);
    }

    #[test]
    fn beginnings_tell_formats_where_names_do_not() {
        let guessed = |start: &[u8]| Format::of_start(start);
        assert_eq!(guessed(&lcs::MAGIC), Some(Format::Lcs));
        let damon = b"base_time_absolute: 8 m 33.329 s\n";
        assert_eq!(guessed(damon), Some(Format::Damon));
        let lackey = b"==7== Lackey, an example Valgrind tool\n";
        assert_eq!(guessed(lackey), Some(Format::Lackey));
        assert_eq!(guessed(b"just words\nand more\n"), None);
        assert_eq!(guessed(b"a,b\n1,2\n"), None);
        assert_eq!(guessed(b""), None);
        assert_eq!(guessed(b"\x7fELF"), None);
    }
}
