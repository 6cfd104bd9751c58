//! Comma-separated values: process, page, kinds of access, and the process's time.

use std::io::{Read, Write};

use crate::error::Error;
use crate::model::{Block, Kinds, TimeUnit};

use super::chosen::Chosen;

/// The name of the column of times, which has their unit.
pub const fn time_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Instructions => "instructions",
        TimeUnit::References => "references",
        TimeUnit::Nanoseconds => "time_ns",
    }
}

/// Writes a line for each record.
pub(super) fn export<R: Read>(blocks: &mut Chosen<R>, mut out: impl Write) -> Result<(), Error> {
    writeln!(
        out,
        "process,page,kinds,{}",
        time_name(blocks.header().time)
    )?;
    let mut block = Block::default();
    while blocks.next(&mut block)? {
        let mut time = block.time_start;
        let process = block.process;
        let records = block.pages.iter().zip(&block.kinds).zip(&block.gaps);
        for ((page, &kinds), &gap) in records {
            time += u64::from(gap);
            writeln!(out, "{process},{page},{},{time}", letters(Kinds(kinds)))?;
        }
    }
    Ok(())
}

/// The kinds as letters.
pub fn letters(kinds: Kinds) -> &'static str {
    const LETTERS: [&str; 16] = [
        "", "x", "r", "xr", "w", "xw", "rw", "xrw", "k", "xk", "rk", "xrk", "wk", "xwk", "rwk",
        "xrwk",
    ];
    LETTERS[usize::from(kinds.0 & Kinds::ALL.0)]
}
