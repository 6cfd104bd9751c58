//! Lines of columns, one at a time, in bounded memory.

use std::io::Read;

use csv_core::ReadRecordResult;

use crate::container::fill;
use crate::error::{Error, Place};
use crate::import::malformed;

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// The most columns.
const COLUMNS_MAX: usize = 1 << 10;

/// Reads lines of columns in bounded memory.
pub struct Rows<R> {
    source: R,
    reader: csv_core::Reader,
    input: Vec<u8>,
    start: usize,
    end: usize,
    output: Vec<u8>,
    ends: Vec<usize>,
    columns: usize,
    line: u64,
    /// True if several delimiters in a row are one: of blanks.
    is_merging: bool,
}

impl<R: Read> Rows<R> {
    /// The lines of `source`. Of blanks as delimiters, several in a row are one.
    pub fn new(source: R, delimiter: u8) -> Rows<R> {
        Rows {
            source,
            reader: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            input: vec![0; 1 << 16],
            start: 0,
            end: 0,
            output: vec![0; LINE_BYTES_MAX],
            ends: vec![0; COLUMNS_MAX],
            columns: 0,
            line: 0,
            is_merging: delimiter == b' ',
        }
    }

    /// Reads the next line that is no remark; `false` behind the last.
    pub fn next(&mut self) -> Result<bool, Error> {
        loop {
            match self.read()? {
                true if self.is_remark() => {}
                has_line => return Ok(has_line),
            }
        }
    }

    /// Reads the first line, remark or not: names may stand behind a `#`.
    pub fn first(&mut self) -> Result<bool, Error> {
        self.read()
    }

    fn read(&mut self) -> Result<bool, Error> {
        let (mut written, mut ended) = (0, 0);
        self.line = self.reader.line();
        loop {
            // An empty input would stand for the end.
            if self.start == self.end {
                self.start = 0;
                self.end = fill(&mut self.source, &mut self.input)?;
            }
            let input = &self.input[self.start..self.end];
            let (result, read, wrote, ends) = self.reader.read_record(
                input,
                &mut self.output[written..],
                &mut self.ends[ended..],
            );
            self.start += read;
            written += wrote;
            ended += ends;
            let place = Place::Line(self.line);
            let found = &self.output[..written];
            match result {
                ReadRecordResult::Record => {
                    self.columns = ended;
                    if self.is_merging {
                        self.merge();
                    }
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    return Err(malformed(place, "a line of at most 65536 bytes", found));
                }
                ReadRecordResult::OutputEndsFull => {
                    return Err(malformed(place, "at most 1024 columns", found));
                }
            }
        }
    }
}

impl<R> Rows<R> {
    /// Leaves out columns without contents: they are between blanks in a row.
    fn merge(&mut self) {
        let (mut kept, mut start) = (0, 0);
        for at in 0..self.columns {
            let end = self.ends[at];
            if end > start {
                self.ends[kept] = end;
                kept += 1;
            }
            start = end;
        }
        self.columns = kept;
    }

    /// Returns true if the line is a remark or an end mark.
    pub fn is_remark(&self) -> bool {
        let first = self.field(0).unwrap_or_default().trim_ascii();
        first.starts_with(b"#") || self.columns == 1 && first == b"*"
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The fields of the line, without blanks around.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.columns).map(|at| self.field(at).unwrap_or_default().trim_ascii())
    }

    /// The field in a column, from 0.
    pub fn field(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.columns].get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.output.get(start..end)
    }

    /// The place of the line.
    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }
}
