//! Writing traces as other tools read them.
//!
//! Each format has a module with an `export` that reads a trace to its end. What a format can't
//! hold is left out; [`Form::left_out`] says what. Formats that know pages by one number and no
//! processes get their numbers from [`Names`].

pub mod columns;
mod names;
pub mod oracle;
mod parquet_columns;
pub mod text;

pub use names::{Names, Numbering};
pub use parquet_columns::export as export_parquet;

use std::io::{Read, Write};

use crate::container::Reader;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{Block, TimeUnit};

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Valgrind's `lackey --trace-mem=yes`.
    Lackey,
    /// libCacheSim's `oracleGeneral`.
    OracleGeneral,
    /// Comma-separated values with a first line of names.
    Csv,
    /// A page number a line.
    Pages,
    /// Page numbers of 32 bits, little-endian.
    Words,
    /// Apache Parquet.
    Parquet,
}

impl Form {
    /// The part of a trace that the format can't hold.
    pub const fn left_out(self) -> &'static str {
        match self {
            Form::Lackey => "times, processes, system calls' accesses and events",
            Form::OracleGeneral => "kinds of access, processes and events",
            Form::Csv => "events and the header",
            Form::Pages | Form::Words => "kinds of access, times, processes and events",
            Form::Parquet => "events",
        }
    }
}

/// Writes what `reader` holds to `out`, in this form. Formats without processes take page numbers
/// from `names`. Lets `process`, if there is one, through alone.
///
/// # Errors
/// The trace can't be read, a number does not fit the format, or `out` fails.
pub fn export<R: Read, W: Write + Send>(
    reader: &mut Reader<R>,
    form: Form,
    process: Option<u32>,
    names: &mut Names,
    out: W,
) -> Result<(), Error> {
    let mut blocks = Chosen { reader, process };
    match form {
        Form::Lackey => text::export_lackey(&mut blocks, names, out),
        Form::Pages => text::export_pages(&mut blocks, names, out),
        Form::Csv => columns::export(&mut blocks, out),
        Form::Words => text::export_words(&mut blocks, names, out),
        Form::OracleGeneral => oracle::export(&mut blocks, names, out),
        Form::Parquet => export_parquet(&mut blocks, out),
    }
}

/// The blocks of a trace, of all processes or of one.
pub struct Chosen<'a, R: Read> {
    reader: &'a mut Reader<R>,
    process: Option<u32>,
}

impl<R: Read> Chosen<'_, R> {
    /// Reads the next block; `false` behind the last.
    fn next(&mut self, block: &mut Block) -> Result<bool, Error> {
        while self.reader.next_block(block)? {
            if self.process.is_none_or(|process| process == block.process) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The size of a page in bytes.
    fn time(&self) -> TimeUnit {
        self.reader.header().time
    }

    fn page_bytes(&self) -> u64 {
        self.reader.header().page_bytes
    }
}

/// A number that does not fit its format, at a record counted from 0.
fn too_large(record: u64, what: &'static str, value: u64, max: u64) -> Error {
    let place = Place::Record(record + 1);
    Error::at(place, ErrorKind::TooLarge { what, value, max })
}

#[cfg(test)]
mod tests;
