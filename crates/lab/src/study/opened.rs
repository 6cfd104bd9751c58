//! A trace that is open and not read yet: what its index tells, and what reading it will take.

use std::fs::File;
use std::path::Path;

use tidemark_results::analysis::TraceFacts;
use tidemark_trace::{Blocks, Ending, Error, ErrorKind, Place, Speed, TimeUnit};

use super::extent::Extent;
use super::facts;
use super::wanted::{self, Wanted};
use crate::analysis::optimum;

/// A trace that is open.
pub struct Opened {
    pub(super) blocks: Blocks,
    pub(super) extent: Extent,
    /// The facts known before it is read: pages are not counted yet.
    pub(super) facts: TraceFacts,
    /// The processes that are looked at, rising; all of them where `None`.
    pub(super) chosen: Option<Vec<u32>>,
    /// The speed of the program by itself.
    pub(super) speed: Option<Speed>,
}

impl Opened {
    /// Opens the trace at `path`. One that is cut off in the middle is refused unless what is good
    /// of it is wanted.
    ///
    /// # Errors
    /// It can't be read, is no trace, or its index is corrupt.
    pub fn open(path: impl AsRef<Path>, partial: bool) -> Result<Opened, Error> {
        let blocks = open(path.as_ref())?;
        if let (Ending::Cut { at, rest: 1.. }, false) = (blocks.ending(), partial) {
            let records = blocks.index().records();
            return Err(Error::at(Place::Byte(at), ErrorKind::Cut { records }));
        }
        let extent = Extent::of(&blocks, None)?;
        let header = blocks.header();
        let speed = header.speed;
        let mut facts = facts::facts(header, header.granularity);
        facts.records = extent.references;
        facts.processes = u64::from(blocks.index().processes());
        facts.is_cut = matches!(blocks.ending(), Ending::Cut { .. });
        facts.time = extent.time;
        Ok(Opened {
            blocks,
            extent,
            facts,
            chosen: None,
            speed,
        })
    }

    /// Looks at the processes with these numbers alone, which rise.
    pub(super) fn take_only(&mut self, numbers: Vec<u32>) -> Result<(), Error> {
        if let Some(Speed::Measured { user_ns, .. }) = self.speed {
            // It was measured over all processes.
            let unit_fs = u128::from(user_ns) * 1_000_000 / u128::from(self.extent.time.max(1));
            let unit_fs = u64::try_from(unit_fs).unwrap_or(u64::MAX);
            self.speed = Some(Speed::Calibrated { unit_fs });
        }
        self.extent = Extent::of(&self.blocks, Some(&numbers))?;
        self.facts.records = self.extent.references;
        self.facts.time = self.extent.time;
        self.facts.processes = numbers.len() as u64;
        self.chosen = Some(numbers);
        Ok(())
    }

    /// The facts about the trace, but for pages and the longest windows.
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// The memory that what is wanted takes by the number of references, in bytes. Beside it there
    /// is what grows with pages and windows, and is small.
    pub fn bytes_held(&self, wanted: &Wanted) -> u64 {
        let header = self.blocks.header();
        let (wanted, _) = wanted::settle(wanted.clone(), header, &self.facts);
        let has_times = header.time != TimeUnit::References;
        let each = [
            (wanted.references || wanted.pages, 4),
            (wanted.references && has_times, 8),
            (wanted.optimum, 20),
        ];
        let each = each.iter().filter(|part| part.0).map(|part| part.1);
        let held = self.extent.references.saturating_mul(each.sum());
        // An interval may wait to be sorted out beside each one that is kept.
        let longest = wanted::longest(&wanted.passing, self.speed, &self.facts, self.extent);
        held.saturating_add(longest.min(self.extent.references).saturating_mul(32))
    }

    /// Returns true if there are too many references for the optimum to be counted.
    pub fn is_beyond_optimum(&self) -> bool {
        self.extent.references > optimum::REFERENCES_MAX as u64
    }
}

/// The blocks of the trace at `path`. What is no file, as a pipe, becomes one for as long as it is
/// read: the index stands at the end.
fn open(path: &Path) -> Result<Blocks, Error> {
    let mut file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Blocks::open(path);
    }
    let name = format!("tidemark-{}-{:p}.tide", std::process::id(), &file);
    let whole = std::env::temp_dir().join(name);
    let copied = File::create_new(&whole).and_then(|mut copy| std::io::copy(&mut file, &mut copy));
    let blocks = copied
        .map_err(Error::from)
        .and_then(|_| Blocks::open(&whole));
    // It stays readable for as long as it is open.
    std::fs::remove_file(&whole)?;
    blocks
}
