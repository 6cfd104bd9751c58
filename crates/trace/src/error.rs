//! The errors in the bytes of a trace: what, where, and what to do.
//!
//! Each caller puts the file's name in front, and may add its own way to do what is advised, by
//! the kind of error; everything else of the line is made here, so that every user of the crate
//! says the same.

use std::fmt;
use std::io;

use crate::model::{Block, Flaw};

/// The reason why a trace can't be read, written or converted.
#[derive(Debug)]
pub struct Error {
    /// The place, if it is at one place.
    pub place: Option<Place>,
    /// The kind of error.
    pub kind: ErrorKind,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This many bytes from its beginning.
    Byte(u64),
    /// A line, counted from 1.
    Line(u64),
    /// A record, counted from 1 in the order of the trace.
    Record(u64),
}

/// The kind of error.
#[derive(Debug)]
pub enum ErrorKind {
    /// The system failed to read or write.
    System(io::Error),
    /// There is nothing in the file.
    Empty,
    /// The file is no trace of ours.
    Foreign(Foreign),
    /// The file is a trace in a format that came after this program.
    TooNew {
        /// The version of the file.
        version: u32,
        /// The newest that this program reads.
        newest: u32,
    },
    /// The file is cut off before its first block.
    CutInHeader,
    /// The file is cut off inside a part.
    Cut {
        /// The number of records that come before.
        records: u64,
    },
    /// There is no reference in the input.
    NoReferences,
    /// A byte is not what was written.
    Corrupt(Part),
    /// The block given to the writer breaks an invariant.
    Flawed(Flaw),
    /// The header given to the writer is one no reader would take.
    BadHeader(HeaderFlaw),
    /// A line of text, or a record of another format, does not follow its format.
    Malformed {
        /// The expected contents.
        expected: &'static str,
        /// The beginning of what there was.
        found: String,
        /// Another way to read the file, by which it would do.
        otherwise: Option<Otherwise>,
    },
    /// A record of another format is cut off.
    CutInRecord {
        /// The number of bytes left over.
        bytes: u64,
        /// The length of a record, in bytes.
        whole_bytes: u64,
    },
    /// A number is too large for the format it is to be written in.
    TooLarge {
        /// The thing that it numbers.
        what: &'static str,
        /// The number.
        value: u64,
        /// The largest the format can hold.
        max: u64,
    },
    /// There is no column of this name.
    NoColumn {
        /// The name asked for.
        name: String,
    },
    /// None of the first line's names is known as a page's.
    UnknownColumns {
        /// The names.
        names: String,
    },
    /// Several of the first line's names could be the page's.
    AmbiguousColumns {
        /// The names that could be the page's.
        names: String,
    },
    /// There are several columns, and no names.
    NamelessColumns {
        /// The number of columns.
        columns: usize,
    },
    /// A column of times tells no unit.
    NoUnit {
        /// The column.
        name: String,
    },
    /// A part of the form by which columns are to be read would have no effect.
    Useless(Useless),
    /// The file is another kind of file than it was taken for.
    Other {
        /// The name of what it is.
        name: &'static str,
        /// The way to a trace.
        remedy: &'static str,
        /// The formats as which that is imported; none where it is not.
        formats: &'static [&'static str],
    },
    /// The library that writes Parquet failed.
    Parquet(String),
}

/// Another way to read a file that its lines would follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// With times left out.
    WithoutTimes,
    /// With times in seconds.
    InSeconds,
    /// With any text as a key.
    ByKey,
    /// With larger pages.
    InLargerPages,
}

/// A part of a form of columns that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// The unit of times: there is no column of them.
    TimeUnit,
    /// Hexadecimal numbers: there are keys alone.
    Hexadecimal,
}

/// The format that a file that is no trace of ours seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Text.
    Text,
    /// Compressed with zstd.
    Zstd,
    /// Compressed with gzip.
    Gzip,
    /// Compressed with xz.
    Xz,
    /// A Parquet file.
    Parquet,
    /// A program or library.
    Program,
    /// A trace that was changed as text is when it moves between systems.
    Mangled,
    /// Something else.
    Unknown,
}

/// The part of a trace that is corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The head of a part: its mark or its length.
    Frame,
    /// A part's checksum does not match its bytes.
    Checksum,
    /// The header's text.
    Header,
    /// A column of a block.
    Column,
    /// The events of a block.
    Events,
    /// A block breaks an invariant.
    Block(Flaw),
    /// The index at the end contradicts the blocks.
    Index,
    /// Something follows the end.
    Behind,
}

/// The fault of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFlaw {
    /// The page size is no power of two.
    PageBytes(u64),
    /// The quantum or window is 0.
    NoLength,
    /// The header is longer than a reader takes.
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that a reader takes.
        bytes_max: usize,
    },
}

impl Error {
    /// An error at no particular place.
    pub fn new(kind: ErrorKind) -> Error {
        Error { place: None, kind }
    }

    /// An error at `place`.
    pub fn at(place: Place, kind: ErrorKind) -> Error {
        Error {
            place: Some(place),
            kind,
        }
    }

    /// The number `value` of `what`, too large for its format, at a record counted from 0.
    pub(crate) fn too_large(record: u64, what: &'static str, value: u64, max: u64) -> Error {
        let place = Place::Record(record + 1);
        Error::at(place, ErrorKind::TooLarge { what, value, max })
    }

    /// A corrupt `part` at a byte.
    pub(crate) fn corrupt(byte: u64, part: Part) -> Error {
        Error::at(Place::Byte(byte), ErrorKind::Corrupt(part))
    }
}

impl Useless {
    /// The reason why it has no effect.
    pub const fn reason(self) -> &'static str {
        match self {
            Useless::TimeUnit => "there is no column of times",
            Useless::Hexadecimal => "keys are text",
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::new(ErrorKind::System(error))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::System(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place::Byte(byte)) if matches!(self.kind, ErrorKind::Corrupt(Part::Checksum)) => {
                let remedy = "copy or record it again";
                return write!(
                    formatter,
                    "checksum mismatch at byte {byte}: the file is corrupt; {remedy}"
                );
            }
            Some(Place::Byte(byte)) => write!(formatter, "byte {byte}: ")?,
            Some(Place::Line(line)) => write!(formatter, "line {line}: ")?,
            Some(Place::Record(record)) => write!(formatter, "record {record}: ")?,
            None => {}
        }
        self.kind.fmt(formatter)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::System(error) => error.fmt(formatter),
            ErrorKind::Empty => formatter.write_str("empty; record or import a trace first"),
            ErrorKind::Foreign(foreign) => foreign.fmt(formatter),
            ErrorKind::TooNew { version, newest } => write!(
                formatter,
                "a trace of version {version}; this program reads up to {newest}: use a newer one"
            ),
            ErrorKind::CutInHeader => formatter
                .write_str("cut off before its first block; nothing can be read: record it again"),
            ErrorKind::Cut { records } => write!(
                formatter,
                "truncated in the middle of a part, {records} records before it are intact; \
                 copy it again"
            ),
            ErrorKind::NoReferences => formatter.write_str("no reference in it"),
            ErrorKind::Corrupt(part) => part.fmt(formatter),
            ErrorKind::Flawed(flaw) => write!(formatter, "a block can't be written: {flaw}"),
            ErrorKind::BadHeader(flaw) => flaw.fmt(formatter),
            ErrorKind::Malformed {
                expected, found, ..
            } => {
                write!(formatter, "`{found}`; needs {expected}")
            }
            ErrorKind::CutInRecord { bytes, whole_bytes } => write!(
                formatter,
                "{bytes} bytes of a record of {whole_bytes}; the file is cut off or of another kind"
            ),
            ErrorKind::TooLarge { what, value, max } => {
                write!(formatter, "{what} {value} is too large; the most is {max}")
            }
            ErrorKind::NoColumn { name } => write!(
                formatter,
                "no column `{name}`; give a column's number, from 1, or its name in the first line"
            ),
            ErrorKind::UnknownColumns { names } => write!(
                formatter,
                "no column is known to hold pages among: {names}; name one"
            ),
            ErrorKind::AmbiguousColumns { names } => {
                write!(
                    formatter,
                    "several columns could hold pages: {names}; name one"
                )
            }
            ErrorKind::NamelessColumns { columns } => write!(
                formatter,
                "{columns} columns without names; say which holds pages, from 1"
            ),
            ErrorKind::NoUnit { name } => {
                write!(formatter, "column `{name}` has times of no unit; name it")
            }
            ErrorKind::Useless(part) => part.fmt(formatter),
            ErrorKind::Other {
                name,
                remedy,
                formats,
            } => {
                let formats: Vec<String> = formats.iter().map(|it| format!("`{it}`")).collect();
                let as_one = if formats.is_empty() { "" } else { " as " };
                let formats = formats.join(" or ");
                write!(formatter, "is {name}; {remedy}{as_one}{formats}")
            }
            ErrorKind::Parquet(text) => write!(formatter, "can't write Parquet: {text}"),
        }
    }
}

impl fmt::Display for Useless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self {
            Useless::TimeUnit => "the unit of times",
            Useless::Hexadecimal => "hexadecimal numbers",
        };
        let reason = self.reason();
        write!(
            formatter,
            "{part} would have no effect: {reason}; leave it out"
        )
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Foreign::Text => "not a trace but text; `tidemark import` makes one of it",
            Foreign::Zstd => {
                "not a trace but compressed with zstd; `tidemark import` can read that, and a \
                 trace has to be unpacked first"
            }
            Foreign::Gzip => {
                "not a trace but compressed with gzip; `tidemark import` can read that, and a \
                 trace has to be unpacked first"
            }
            Foreign::Xz => {
                "not a trace but compressed with xz; `tidemark import` can read that, and a trace \
                 has to be unpacked first"
            }
            Foreign::Parquet => "not a trace but a Parquet file; that can't be read back",
            Foreign::Program => "not a trace but a program; `tidemark record` makes one of it",
            Foreign::Mangled => "a trace that was changed on its way; copy it as binary, not text",
            Foreign::Unknown => "not a trace; `tidemark import` reads other formats",
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Part::Frame => "no part of a trace begins here",
            Part::Checksum => "checksum mismatch",
            Part::Header => "the header can't be read",
            Part::Column => "a column can't be unpacked",
            Part::Events => "the events can't be read",
            Part::Block(flaw) => return write!(formatter, "corrupt: {flaw}; copy it again"),
            Part::Index => "the index contradicts the blocks",
            Part::Behind => "something follows the end",
        };
        write!(formatter, "corrupt: {what}; copy or record it again")
    }
}

impl fmt::Display for HeaderFlaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderFlaw::PageBytes(bytes) => {
                write!(formatter, "a page has {bytes} bytes; needs a power of two")
            }
            HeaderFlaw::NoLength => formatter.write_str("the quantum is 0; needs at least 1"),
            HeaderFlaw::TooLong { bytes, bytes_max } => write!(
                formatter,
                "the header has {bytes} bytes; the most is {bytes_max}: shorten the command"
            ),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, events) = (Block::RECORDS_MAX, Block::EVENTS_MAX);
        match *self {
            Flaw::ColumnsDiffer => formatter.write_str("its columns have different lengths"),
            Flaw::TooManyRecords { records: found } => {
                write!(formatter, "{found} records; the most is {records}")
            }
            Flaw::TooManyEvents { events: found } => {
                write!(formatter, "{found} events; the most is {events}")
            }
            Flaw::UnknownKind { record } => write!(formatter, "record {record} has a kind unknown"),
            Flaw::EventOutOfPlace { event } => write!(formatter, "event {event} is out of place"),
            Flaw::EventOutOfTime { event } => write!(formatter, "event {event} is out of time"),
            Flaw::TextTooLong { event } => write!(formatter, "event {event} has too long a text"),
            Flaw::RangeTooLarge { event } => write!(formatter, "event {event} has no such range"),
            Flaw::TimeTooLarge => formatter.write_str("its time ends beyond 64 bits"),
            Flaw::OutOfOrder => formatter.write_str("it is out of its process's order"),
        }
    }
}
