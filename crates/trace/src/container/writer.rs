//! Writing a trace, block by block, into a file or a pipe.

use std::io::Write;

use crate::error::{Error, ErrorKind};
use crate::model::{Block, Header};

use super::columns::Packer;
use super::index::{Entry, Index};
use super::part::{header_bytes, trailer};

/// Writes a trace. What has been written can be read at any time, up to the last block; only
/// [`finish`](Self::finish) makes it whole.
///
/// Every block is one write, so `out` needs no buffer. Memory: 40 bytes for each block written,
/// and what packing one block takes.
pub struct Writer<W: Write> {
    out: W,
    packer: Packer,
    part: Vec<u8>,
    at: u64,
    index: Index,
}

impl<W: Write> Writer<W> {
    /// Begins a trace: writes its header.
    ///
    /// # Errors
    /// The header is one no reader would take, or `out` fails.
    pub fn new(mut out: W, header: &Header) -> Result<Writer<W>, Error> {
        let bytes = header_bytes(header)?;
        out.write_all(&bytes)?;
        Ok(Writer {
            out,
            packer: Packer::new()?,
            part: Vec::new(),
            at: bytes.len() as u64,
            index: Index::default(),
        })
    }

    /// Appends a block. One without records and events is left out.
    ///
    /// # Errors
    /// The block breaks an invariant (nothing is written then), or `out` fails (the trace is cut
    /// off there).
    pub fn write(&mut self, block: &Block) -> Result<(), Error> {
        if block.is_empty() {
            return Ok(());
        }
        let flawed = |flaw| Error::new(ErrorKind::Flawed(flaw));
        block.check().map_err(flawed)?;
        if !self.index.has_room() {
            return Err(Error::new(ErrorKind::TooLarge {
                what: "block",
                value: self.index.entries.len() as u64,
                max: self.index.entries.len() as u64 - 1,
            }));
        }
        let outline = self.packer.pack(block, &mut self.part)?;
        let bytes = u32::try_from(self.part.len()).expect("a part is shorter");
        let entry = Entry {
            at: self.at,
            bytes,
            process: outline.process,
            records: outline.records,
            events: outline.events,
            time_start: outline.time_start,
            time_end: outline.time_end,
        };
        self.index.push(entry).map_err(flawed)?;
        self.out.write_all(&self.part)?;
        self.at += u64::from(bytes);
        Ok(())
    }

    /// Completes the trace with its index, and gives back what it was written to.
    ///
    /// # Errors
    /// `out` fails.
    pub fn finish(mut self) -> Result<W, Error> {
        let mut end = self.index.part();
        end.extend(trailer(self.at));
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// The number of records that have been written.
    pub fn records(&self) -> u64 {
        self.index.records()
    }

    /// The number of bytes that have been written.
    pub fn bytes(&self) -> u64 {
        self.at
    }
}
