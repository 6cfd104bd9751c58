//! One number for each page of each process, for formats that know no processes.

use std::collections::HashMap;

use crate::error::Error;

/// The number of low bits that hold the page where high bits hold the process: as many as there are
/// pages of 4 KiB.
const PAGE_BITS: u32 = 52;

/// The way pages are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// As in the trace. Pages of process n have n · 2^52 added.
    AsIs,
    /// From 0 in the order of first use.
    Dense,
}

/// Gives pages their numbers. Dense numbering takes memory for each page, some 50 bytes.
pub struct Names {
    numbering: Numbering,
    dense: HashMap<(u32, u64), u64>,
    largest: u64,
}

impl Names {
    /// Numbers pages in this way.
    pub fn new(numbering: Numbering) -> Names {
        Names {
            numbering,
            dense: HashMap::new(),
            largest: 0,
        }
    }

    /// The number of a page; `record` is where it is used, counted from 0.
    ///
    /// # Errors
    /// The number would stand for a page of another process too.
    pub fn number(&mut self, process: u32, page: u64, record: u64) -> Result<u64, Error> {
        if self.numbering == Numbering::Dense {
            let next = self.dense.len() as u64;
            return Ok(*self.dense.entry((process, page)).or_insert(next));
        }
        self.largest = self.largest.max(page);
        let max = (1 << PAGE_BITS) - 1;
        if process == 0 {
            return Ok(page);
        }
        if self.largest > max {
            let what = "among several processes, page";
            return Err(Error::too_large(record, what, self.largest, max));
        }
        let shifted = u64::from(process) << PAGE_BITS;
        match shifted >> PAGE_BITS == u64::from(process) {
            true => Ok(shifted | page),
            false => {
                let max = (1 << (64 - PAGE_BITS)) - 1;
                Err(Error::too_large(record, "process", process.into(), max))
            }
        }
    }
}
