//! Lackey's lines, page numbers as lines, and page numbers as words.

use std::io::{Read, Write};

use crate::error::Error;
use crate::model::{Block, Kinds};

use super::chosen::Chosen;
use super::names::Names;

/// Writes lines as lackey does: each kind of access is a line, of one byte at the page's start.
/// A record of no known kind is a load.
pub(super) fn export_lackey<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    mut out: impl Write,
) -> Result<(), Error> {
    let page_bytes = blocks.header().page_bytes;
    let both = Kinds::LOAD.with(Kinds::STORE);
    each_page(blocks, names, |record, page, kinds| {
        let address = page
            .checked_mul(page_bytes)
            .ok_or_else(|| Error::too_large(record, "page", page, u64::MAX / page_bytes))?;
        if kinds.has(Kinds::FETCH) {
            writeln!(out, "I  {address:08x},1")?;
        }
        let letter = match kinds {
            kinds if kinds.has(both) => 'M',
            kinds if kinds.has(Kinds::STORE) => 'S',
            kinds if kinds.has(Kinds::LOAD) || !kinds.has(Kinds::FETCH) => 'L',
            _ => return Ok(()),
        };
        writeln!(out, " {letter} {address:08x},1")?;
        Ok(())
    })
}

/// Writes a page number a line.
pub(super) fn export_pages<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    mut out: impl Write,
) -> Result<(), Error> {
    each_page(blocks, names, |_, page, _| Ok(writeln!(out, "{page}")?))
}

/// Writes page numbers of 32 bits, little-endian.
pub(super) fn export_words<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    mut out: impl Write,
) -> Result<(), Error> {
    each_page(blocks, names, |record, page, _| {
        let word = u32::try_from(page)
            .map_err(|_| Error::too_large(record, "page", page, u64::from(u32::MAX)))?;
        Ok(out.write_all(&word.to_le_bytes())?)
    })
}

/// Calls `write` for each record: its number from 0, its page's number, its kinds.
fn each_page<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    mut write: impl FnMut(u64, u64, Kinds) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut block = Block::default();
    let mut record = 0;
    while blocks.next(&mut block)? {
        let process = blocks.process_number(&block);
        for (&page, &kinds) in block.pages.iter().zip(&block.kinds) {
            let page = names.number(process, page, record)?;
            write(record, page, Kinds(kinds))?;
            record += 1;
        }
    }
    Ok(())
}
