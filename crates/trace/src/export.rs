//! Writing traces as other tools read them.
//!
//! Each format has a module with an `export` that reads a trace to its end. What a format can't
//! hold is left out; [`Form::left_out`] says what. Formats that know pages by one number and no
//! processes get their numbers from [`Names`].

mod chosen;
pub mod columns;
mod names;
mod oracle;
mod parquet_columns;
mod text;

pub use names::{Names, Numbering};

use std::io::{Read, Write};

use crate::container::Reader;
use crate::error::Error;
use chosen::Chosen;

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
    let mut blocks = Chosen::new(reader, process);
    match form {
        Form::Lackey => text::export_lackey(&mut blocks, names, out),
        Form::Pages => text::export_pages(&mut blocks, names, out),
        Form::Csv => columns::export(&mut blocks, out),
        Form::Words => text::export_words(&mut blocks, names, out),
        Form::OracleGeneral => oracle::export(&mut blocks, names, out),
        Form::Parquet => parquet_columns::export(&mut blocks, out),
    }
}

#[cfg(test)]
mod tests;
