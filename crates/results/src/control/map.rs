//! The map of a task's memory: the reply to `map`.

use serde::{Deserialize, Serialize};

/// The most cells that a map has.
pub const CELLS_MAX: u32 = 240;
/// The number of cells of a map, if it is not said.
pub const CELLS_USUAL: u32 = 32;

/// The places in which the pages of a task are, by parts of its address space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryMap {
    /// The process id.
    pub pid: u32,
    /// The name of the program.
    pub program: String,
    /// The time since it was drawn, in seconds; `None` if none has been drawn yet.
    pub age_s: Option<f64>,
    /// The pages under management.
    pub pages: u64,
    /// Parts of as many pages each, in the order of addresses.
    pub cells: Vec<Cell>,
}

/// A part of the address space: the places of the pages in it that were looked at. Those are all,
/// or an even sample of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The address of its first page.
    pub address: u64,
    /// Pages in frames.
    pub in_memory: u64,
    /// Pages in compressed memory.
    pub compressed: u64,
    /// Pages on disk.
    pub on_disk: u64,
    /// Pages that are stored nowhere: never written to, given up by the program, or full of zeros.
    pub empty: u64,
}

impl MemoryMap {
    /// The shares of all pages that are in memory, compressed, on disk, and nowhere, as far as
    /// pages were looked at. `None` if there is no page.
    pub fn shares(&self) -> Option<[f64; 4]> {
        let cells = self.cells.iter().filter_map(Cell::shares);
        // Cells have as many pages each, but not all of them are looked at.
        let (mut sums, mut count) = ([0.0; 4], 0.0);
        for shares in cells {
            count += 1.0;
            for (sum, share) in sums.iter_mut().zip(shares) {
                *sum += share;
            }
        }
        (count > 0.0).then(|| sums.map(|sum| sum / count))
    }
}

impl Cell {
    /// The counts of pages in memory, compressed, on disk, and nowhere.
    pub fn counts(&self) -> [u64; 4] {
        [self.in_memory, self.compressed, self.on_disk, self.empty]
    }

    /// The counts as shares of the pages that were looked at. `None` if there are none.
    pub fn shares(&self) -> Option<[f64; 4]> {
        let sum: u64 = self.counts().iter().sum();
        (sum > 0).then(|| self.counts().map(|count| count as f64 / sum as f64))
    }
}
