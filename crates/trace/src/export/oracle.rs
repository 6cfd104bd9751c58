//! libCacheSim's `oracleGeneral`. [`import::oracle`](crate::import::oracle) has its bytes.

use std::collections::HashMap;
use std::io::{Read, Write};

use crate::error::Error;
use crate::import::oracle::NEVER;
use crate::model::{Block, TimeUnit};

use super::chosen::Chosen;
use super::names::Names;

/// Writes a record for each reference, with the size of a page, and the time in seconds: an
/// instruction counts as a nanosecond, a reference as none.
///
/// Each record names the next reference to its page, so all are in memory: 16 bytes each, and some
/// 50 for each page.
pub(super) fn export<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    mut out: impl Write,
) -> Result<(), Error> {
    let page_bytes = blocks.header().page_bytes;
    let bytes = u32::try_from(page_bytes)
        .map_err(|_| Error::too_large(0, "the size of a page,", page_bytes, u64::from(u32::MAX)))?;
    let units = match blocks.header().time {
        TimeUnit::References => u64::MAX,
        TimeUnit::Instructions | TimeUnit::Nanoseconds => 1_000_000_000,
    };
    let (pages, seconds) = collect(blocks, names, units)?;
    let next = next_uses(&pages);
    for ((page, seconds), next) in pages.iter().zip(seconds).zip(next) {
        out.write_all(&seconds.to_le_bytes())?;
        out.write_all(&page.to_le_bytes())?;
        out.write_all(&bytes.to_le_bytes())?;
        out.write_all(&next.map_or(NEVER, u64::cast_signed).to_le_bytes())?;
    }
    Ok(())
}

/// Every reference's page and second. Seconds go on where processes change: each has a clock of
/// its own, and readers expect one that does not go back.
fn collect<R: Read>(
    blocks: &mut Chosen<R>,
    names: &mut Names,
    units: u64,
) -> Result<(Vec<u64>, Vec<u32>), Error> {
    let (mut pages, mut seconds) = (Vec::new(), Vec::new());
    let mut block = Block::default();
    let mut time = 0_u64;
    while blocks.next(&mut block)? {
        let process = blocks.process_number(&block);
        for (&page, &gap) in block.pages.iter().zip(&block.gaps) {
            time = time.saturating_add(u64::from(gap));
            pages.push(names.number(process, page, pages.len() as u64)?);
            seconds.push(u32::try_from(time / units).unwrap_or(u32::MAX));
        }
    }
    Ok((pages, seconds))
}

/// For each reference the number, from 1, of the next to its page.
fn next_uses(pages: &[u64]) -> Vec<Option<u64>> {
    let mut next_at = HashMap::new();
    let mut next = vec![None; pages.len()];
    for (at, &page) in pages.iter().enumerate().rev() {
        next[at] = next_at.insert(page, at as u64 + 1);
    }
    next
}
