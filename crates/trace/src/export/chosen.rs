//! The blocks that are exported.

use std::io::Read;

use crate::container::Reader;
use crate::error::Error;
use crate::model::{Block, Header};

/// The blocks of a trace, of all processes or of one.
pub(super) struct Chosen<'a, R: Read> {
    reader: &'a mut Reader<R>,
    process: Option<u32>,
}

impl<'a, R: Read> Chosen<'a, R> {
    /// The blocks of `process`, if there is one, that `reader` comes to.
    pub(super) fn new(reader: &'a mut Reader<R>, process: Option<u32>) -> Self {
        Chosen { reader, process }
    }

    /// Reads the next block; `false` behind the last.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<bool, Error> {
        while self.reader.next_block(block)? {
            if self.process.is_none_or(|process| process == block.process) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The header of the trace.
    pub(super) fn header(&self) -> &Header {
        self.reader.header()
    }

    /// The number that stands for the process of `block` among those chosen: a single one's pages
    /// keep their own numbers.
    pub(super) fn process_number(&self, block: &Block) -> u32 {
        match self.process {
            Some(_) => 0,
            None => block.process,
        }
    }
}
