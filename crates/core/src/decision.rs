//! Decisions: what the core chose to do, in the order in which it chose.
//!
//! The text form is stable: it is what the lab and a live process are compared by. One decision a
//! line: a verb, then pages as `object:index` or `object:first+pages`.

use core::fmt;

use crate::id::PageId;
use crate::memory::page_run::PageRun;

/// Something the core chose to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Pages are filled with zeros: `zero 3:17+4`.
    Zero(PageRun),
    /// Pages are read because a program waits for one of them: `in 3:17+4`.
    PageIn(PageRun),
    /// Pages are read ahead of a reader: `ahead 3:17+64`.
    Ahead(PageRun),
    /// A resident page was touched and is mapped again: `soft 3:17`.
    Soft(PageId),
    /// A page is copied because one of its sharers writes: `copy 3:17` (the new page).
    Copy(PageId),
    /// A page was found present and taken over: `adopt 3:17`.
    Adopt(PageId),
    /// A page leaves, and nothing needs to be written: `drop 3:17`.
    Drop(PageId),
    /// Pages leave and are written: `out 3:17+64`.
    PageOut(PageRun),
    /// A page that was to leave stays: `keep 3:17`.
    Keep(PageId),
    /// A page that can't be unmapped is left to its program: `disown 3:17`.
    Disown(PageId),
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, run) = match *self {
            Decision::Zero(run) => ("zero", run),
            Decision::PageIn(run) => ("in", run),
            Decision::Ahead(run) => ("ahead", run),
            Decision::Soft(page) => ("soft", PageRun::one(page)),
            Decision::Copy(page) => ("copy", PageRun::one(page)),
            Decision::Adopt(page) => ("adopt", PageRun::one(page)),
            Decision::Drop(page) => ("drop", PageRun::one(page)),
            Decision::PageOut(run) => ("out", run),
            Decision::Keep(page) => ("keep", PageRun::one(page)),
            Decision::Disown(page) => ("disown", PageRun::one(page)),
        };
        write!(out, "{verb} {}:{}", run.object.0, run.first)?;
        if run.pages > 1 {
            write!(out, "+{}", run.pages)?;
        }
        Ok(())
    }
}
