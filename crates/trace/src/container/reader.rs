//! Reading a trace from its beginning to its end, from a file or a pipe.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, Part, Place};
use crate::model::{Block, Header};

use super::columns::Depacker;
use super::index::{Entry, Index};
use super::part::{self, Found, HEAD_BYTES, Mark, TRAILER_BYTES};

/// Reads a trace. Memory: 40 bytes for each block read, and what unpacking one block takes.
pub struct Reader<R: Read> {
    source: R,
    header: Header,
    depacker: Depacker,
    contents: Vec<u8>,
    at: u64,
    first_at: u64,
    index: Index,
    ending: Ending,
}

/// The way a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The end is not known yet: there are blocks to read.
    Unknown,
    /// With its index: it is whole.
    Complete,
    /// The trace was cut off, or is still being written. All before this byte was read.
    Cut {
        /// The offset at which the next part would begin, in bytes.
        at: u64,
        /// The number of bytes of that part that are there. 0 where a recording was ended from
        /// outside; more where a copy broke off.
        rest: u64,
    },
}

impl Reader<BufReader<File>> {
    /// Opens the trace in the file at `path`.
    ///
    /// # Errors
    /// It can't be read, or is no trace that this program knows.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Reader::new(BufReader::with_capacity(1 << 16, File::open(path)?))
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read the trace in `source`.
    ///
    /// # Errors
    /// It can't be read, or is no trace that this program knows.
    pub fn new(mut source: R) -> Result<Reader<R>, Error> {
        let (header, at) = part::read_header(&mut source)?;
        Ok(Reader {
            source,
            header,
            depacker: Depacker::new()?,
            contents: Vec::new(),
            at,
            first_at: at,
            index: Index::default(),
            ending: Ending::Unknown,
        })
    }

    /// Reads the next block into `block`; `false` if there is none. [`ending`](Self::ending) then
    /// says why.
    ///
    /// # Errors
    /// The source fails, or a byte of it is not what was written. The blocks before are good.
    pub fn next_block(&mut self, block: &mut Block) -> Result<bool, Error> {
        if self.ending != Ending::Unknown {
            return Ok(false);
        }
        let at = self.at;
        match part::read(&mut self.source, at, &mut self.contents)? {
            Found::Cut { rest } => {
                self.ending = Ending::Cut { at, rest };
                Ok(false)
            }
            Found::Part(Mark::Block) => {
                self.depacker
                    .depack(&self.contents, block)
                    .map_err(|part| Error::corrupt(at, part))?;
                self.note(block)?;
                Ok(true)
            }
            Found::Part(Mark::Index) => {
                self.end()?;
                Ok(false)
            }
            Found::Part(Mark::Header) => Err(Error::corrupt(at, Part::Frame)),
        }
    }

    /// The header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Fails if the trace ends in the middle of a part, as a broken copy does. One that ends
    /// behind a block passes: its recording was ended from outside, or goes on.
    ///
    /// # Errors
    /// [`ErrorKind::Cut`], with the place.
    pub fn check_ending(&self) -> Result<(), Error> {
        match self.ending {
            Ending::Cut { at, rest: 1.. } => {
                let records = self.index.records();
                Err(Error::at(Place::Byte(at), ErrorKind::Cut { records }))
            }
            Ending::Cut { .. } | Ending::Complete | Ending::Unknown => Ok(()),
        }
    }

    /// The way the trace ends, once [`next_block`](Self::next_block) has said that it does.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The blocks read so far.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The number of bytes that have been read.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    fn note(&mut self, block: &Block) -> Result<(), Error> {
        let bytes = HEAD_BYTES + self.contents.len();
        let count = |length| u32::try_from(length).expect("a block's lengths are bounded");
        let entry = Entry {
            at: self.at,
            bytes: count(bytes),
            process: block.process,
            records: count(block.pages.len()),
            events: count(block.events.len()),
            time_start: block.time_start,
            time_end: block.time_end(),
        };
        self.index
            .push(entry)
            .map_err(|flaw| Error::corrupt(self.at, Part::Block(flaw)))?;
        self.at += bytes as u64;
        Ok(())
    }

    /// Reads what follows the index: the trailer, and nothing.
    fn end(&mut self) -> Result<(), Error> {
        let at = self.at;
        if Index::parse(&self.contents, self.first_at, at)? != self.index {
            return Err(Error::corrupt(at, Part::Index));
        }
        self.at += (HEAD_BYTES + self.contents.len()) as u64;
        let mut found = [0; TRAILER_BYTES + 1];
        let filled = part::fill(&mut self.source, &mut found)?;
        let expected = part::trailer(at);
        if filled > TRAILER_BYTES {
            let behind = self.at + TRAILER_BYTES as u64;
            return Err(Error::corrupt(behind, Part::Behind));
        }
        if found[..filled] != expected[..filled] {
            return Err(Error::corrupt(self.at, Part::Index));
        }
        self.ending = match filled == TRAILER_BYTES {
            true => Ending::Complete,
            false => Ending::Cut {
                at: self.at,
                rest: filled as u64,
            },
        };
        self.at += filled as u64;
        Ok(())
    }
}
