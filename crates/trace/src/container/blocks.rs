//! Blocks of a file by number, for several threads at a time.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Part};
use crate::model::{Block, Header};

use super::columns::{CONTENTS_HEAD_BYTES, Depacker, Outline};
use super::index::{Entry, Index};
use super::part::{self, Found, HEAD_BYTES, Head, Mark, TRAILER_BYTES};
use super::reader::Ending;

/// The blocks of a trace in a file. Threads share it; each has an [`Unpacker`] of its own.
pub struct Blocks {
    file: File,
    header: Header,
    index: Index,
    ending: Ending,
}

/// Unpacks blocks: the memory it takes to unpack one.
pub struct Unpacker {
    depacker: Depacker,
    part: Vec<u8>,
}

impl Blocks {
    /// Opens the trace in the file at `path`. If it has no index, a walk over the heads of its
    /// parts makes one.
    ///
    /// # Errors
    /// It can't be read, is no trace that this program knows, or its index is corrupt.
    pub fn open(path: impl AsRef<Path>) -> Result<Blocks, Error> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let (header, first_at) = part::read_header(&mut BufReader::new(&file))?;
        let (index, ending) = match find_index(&file, bytes, first_at)? {
            Some(index) => (index, Ending::Complete),
            None => walk(&file, first_at)?,
        };
        Ok(Blocks {
            file,
            header,
            index,
            ending,
        })
    }

    /// Reads block `number`, counted from 0, into `block`.
    ///
    /// - Needs: there is such a block.
    ///
    /// # Errors
    /// The file can't be read, or the block is corrupt.
    pub fn read(
        &self,
        number: usize,
        unpacker: &mut Unpacker,
        block: &mut Block,
    ) -> Result<(), Error> {
        let entry = self.index.entries[number];
        unpacker.part.resize(entry.bytes as usize, 0);
        self.file.read_exact_at(&mut unpacker.part, entry.at)?;
        let wrong = |part| Error::corrupt(entry.at, part);
        let (head, contents) = unpacker
            .part
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or_else(|| wrong(Part::Index))?;
        let head = Head::parse(head, entry.at)?;
        if head.mark != Mark::Block || head.length as usize != contents.len() {
            return Err(wrong(Part::Index));
        }
        head.check(contents, entry.at)?;
        unpacker.depacker.depack(contents, block).map_err(wrong)?;
        let is_as_listed = block.process == entry.process
            && block.pages.len() == entry.records as usize
            && block.events.len() == entry.events as usize
            && (block.time_start, block.time_end()) == (entry.time_start, entry.time_end);
        match is_as_listed {
            true => Ok(()),
            false => Err(wrong(Part::Index)),
        }
    }

    /// The header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Every block's place and extent.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The way the trace ends; never [`Ending::Unknown`].
    pub fn ending(&self) -> Ending {
        self.ending
    }
}

impl Unpacker {
    /// An unpacker.
    ///
    /// # Errors
    /// There is no memory for one.
    pub fn new() -> Result<Unpacker, Error> {
        Ok(Unpacker {
            depacker: Depacker::new()?,
            part: Vec::new(),
        })
    }
}

/// Reads the index that the trailer of a whole file points to.
fn find_index(mut file: &File, bytes: u64, first_at: u64) -> Result<Option<Index>, Error> {
    let Some(end) = bytes.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut found = [0; TRAILER_BYTES];
    file.read_exact_at(&mut found, end)?;
    let at = part::number64(&found[..8]);
    if found != part::trailer(at) || at < first_at || at >= end {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut contents = Vec::new();
    let part = part::read(&mut BufReader::new(file.take(end - at)), at, &mut contents)?;
    let length = (HEAD_BYTES + contents.len()) as u64;
    if part != Found::Part(Mark::Index) || at + length != end {
        return Err(Error::corrupt(at, Part::Index));
    }
    Index::parse(&contents, first_at, at).map(Some)
}

/// Makes the index of a file that has none. What is behind the last whole block is left alone.
fn walk(file: &File, first_at: u64) -> Result<(Index, Ending), Error> {
    let bytes = file.metadata()?.len();
    let mut index = Index::default();
    let mut at = first_at;
    loop {
        let mut heads = [0; HEAD_BYTES + CONTENTS_HEAD_BYTES];
        if bytes.saturating_sub(at) < heads.len() as u64 {
            let rest = bytes.saturating_sub(at);
            return Ok((index, Ending::Cut { at, rest }));
        }
        file.read_exact_at(&mut heads, at)?;
        let (head, outline) = heads.split_first_chunk().expect("there is room for both");
        let head = Head::parse(head, at)?;
        let length = HEAD_BYTES as u64 + u64::from(head.length);
        if bytes - at < length {
            let rest = bytes.saturating_sub(at);
            return Ok((index, Ending::Cut { at, rest }));
        }
        match head.mark {
            Mark::Block => {}
            Mark::Index => return end_walk(file, first_at, at, index),
            Mark::Header => return Err(Error::corrupt(at, Part::Frame)),
        }
        let outline = Outline::parse(outline.first_chunk().expect("there is room for both"));
        let entry = Entry {
            at,
            bytes: u32::try_from(length).map_err(|_| Error::corrupt(at, Part::Frame))?,
            process: outline.process,
            records: outline.records,
            events: outline.events,
            time_start: outline.time_start,
            time_end: outline.time_end,
        };
        index
            .push(entry)
            .map_err(|flaw| Error::corrupt(at, Part::Block(flaw)))?;
        at += length;
    }
}

/// Ends a walk at an index whose trailer is missing or wrong.
fn end_walk(
    mut file: &File,
    first_at: u64,
    at: u64,
    index: Index,
) -> Result<(Index, Ending), Error> {
    file.seek(SeekFrom::Start(at))?;
    let mut source = BufReader::new(file);
    let mut contents = Vec::new();
    part::read(&mut source, at, &mut contents)?;
    if Index::parse(&contents, first_at, at)? != index {
        return Err(Error::corrupt(at, Part::Index));
    }
    let trailer_at = at + (HEAD_BYTES + contents.len()) as u64;
    let mut found = [0; TRAILER_BYTES + 1];
    let filled = part::fill(&mut source, &mut found)?;
    match filled < TRAILER_BYTES && found[..filled] == part::trailer(at)[..filled] {
        true => {
            let rest = filled as u64;
            Ok((
                index,
                Ending::Cut {
                    at: trailer_at,
                    rest,
                },
            ))
        }
        false => Err(Error::corrupt(trailer_at, Part::Index)),
    }
}
