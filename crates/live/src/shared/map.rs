//! The map of a process's memory: how much of each part of its managed addresses is where.
//!
//! The supervisor writes down in the process's record that it [wants](Wanted) one, and pokes the
//! engine, which draws it at the end of a step. No process waits: the supervisor shows what was
//! drawn last. A map has a page of shared memory, which nothing reaches for unless a map is asked
//! for.
//!
//! # Invariants
//! 1. A map that is being drawn has a number of zero, and is not shown.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use super::{Field, Process, ProcessIndex, Shared, maps_at};

/// The most cells that a map has.
pub const CELLS_MAX: usize = 240;

pub(super) const MAP_BYTES: usize = 4096;
const CELL_WORDS: usize = 2;
const WORDS: usize = MAP_BYTES / 8;
const _: () = assert!(CELLS_AT + CELLS_MAX * CELL_WORDS <= WORDS);
const CELLS_AT: usize = 8;
const CELL_BITS: u32 = 16;
const CELL_MASK: u64 = (1 << CELL_BITS) - 1;

/// The words of a map before its cells.
#[derive(Clone, Copy)]
enum Word {
    Number,
    DrawnNs,
    Pages,
    Cells,
}

/// A map that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Its number, which each that is asked for has of its own; zero: none.
    pub number: u32,
    /// The number of cells, of equally many pages each.
    pub cells: u32,
}

/// A cell: where the pages that were looked at are. All of them fit in 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// The address of its first page.
    pub address: u64,
    /// In frames.
    pub in_memory: u16,
    /// In compressed memory.
    pub compressed: u16,
    /// On disk alone.
    pub on_disk: u16,
    /// Nowhere: never written to, or given up by the program, or full of zeros.
    pub empty: u16,
}

/// A map as it was drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DrawnMap {
    /// The number under which it was asked for.
    pub number: u32,
    /// The moment at which it was drawn, on the monotonic clock.
    pub drawn_ns: u64,
    /// The number of pages under management.
    pub pages: u64,
    /// Its cells, in the order of addresses.
    pub cells: Vec<Cell>,
}

impl Cell {
    fn counts(&self) -> u64 {
        let counts = [self.in_memory, self.compressed, self.on_disk, self.empty];
        let counts = counts.into_iter().rev();
        counts.fold(0, |word, count| word << CELL_BITS | u64::from(count))
    }

    fn of(address: u64, counts: u64) -> Cell {
        let count = |place: u32| (counts >> (place * CELL_BITS) & CELL_MASK) as u16;
        Cell {
            address,
            in_memory: count(0),
            compressed: count(1),
            on_disk: count(2),
            empty: count(3),
        }
    }
}

impl Process<'_> {
    /// Asks for a map. The engine draws it within its next step; poke it. Supervisor only.
    pub fn want_map(&self, wanted: Wanted) {
        let word = u64::from(wanted.number) << 32 | u64::from(wanted.cells);
        self.field(Field::MapWanted).store(word, Relaxed);
    }

    /// The map that was asked for last. Engine only.
    pub fn wanted_map(&self) -> Wanted {
        let word = self.field(Field::MapWanted).load(Relaxed);
        Wanted {
            number: (word >> 32) as u32,
            cells: word as u32,
        }
    }
}

impl Shared {
    /// Shows a map of the process with this record. Engine only.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn show_map(&self, index: ProcessIndex, map: &DrawnMap) -> io::Result<()> {
        let words = self.map_words(index)?;
        let set = |word: Word, value| words[word as usize].store(value, Relaxed);
        set(Word::Number, 0);
        fence(SeqCst);
        set(Word::DrawnNs, map.drawn_ns);
        set(Word::Pages, map.pages);
        set(Word::Cells, map.cells.len() as u64);
        let places = words[CELLS_AT..].chunks_exact(CELL_WORDS);
        for (place, cell) in places.zip(&map.cells) {
            place[0].store(cell.address, Relaxed);
            place[1].store(cell.counts(), Relaxed);
        }
        words[Word::Number as usize].store(map.number.into(), Release);
        Ok(())
    }

    /// The map of the process with this record that was drawn last; `None` if none was, or one is
    /// being drawn. Supervisor only.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn drawn_map(&self, index: ProcessIndex) -> io::Result<Option<DrawnMap>> {
        let words = self.map_words(index)?;
        let get = |word: Word| words[word as usize].load(Relaxed);
        let number = words[Word::Number as usize].load(Acquire);
        let cells = (get(Word::Cells) as usize).min(CELLS_MAX);
        let places = words[CELLS_AT..].chunks_exact(CELL_WORDS).take(cells);
        let cell = |place: &[AtomicU64]| Cell::of(place[0].load(Relaxed), place[1].load(Relaxed));
        let map = DrawnMap {
            number: number as u32,
            drawn_ns: get(Word::DrawnNs),
            pages: get(Word::Pages),
            cells: places.map(cell).collect(),
        };
        fence(SeqCst);
        Ok((number != 0 && get(Word::Number) == number).then_some(map))
    }

    fn map_words(&self, index: ProcessIndex) -> io::Result<&[AtomicU64]> {
        let at = maps_at(self.slots) + index.0 as usize * MAP_BYTES;
        self.memory.reach(at, MAP_BYTES)?;
        Ok(self.memory.slice(at, WORDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_shown_as_it_was_drawn() {
        let shared = Shared::create(100, 10).unwrap();
        let (index, other) = (shared.claim().unwrap(), shared.claim().unwrap());
        assert_eq!(shared.drawn_map(index).unwrap(), None);
        let wanted = Wanted {
            number: 7,
            cells: 240,
        };
        shared.process(index).want_map(wanted);
        assert_eq!(shared.process(index).wanted_map(), wanted);
        assert_eq!(shared.process(other).wanted_map(), Wanted::default());
        let cell = |number: usize| Cell {
            address: number as u64 * 4096,
            in_memory: number as u16,
            compressed: u16::MAX,
            on_disk: 0,
            empty: 1,
        };
        let map = DrawnMap {
            number: 7,
            drawn_ns: u64::MAX,
            pages: 1 << 40,
            cells: (0..CELLS_MAX).map(cell).collect(),
        };
        shared.show_map(index, &map).unwrap();
        assert_eq!(shared.drawn_map(index).unwrap(), Some(map));
        assert_eq!(shared.drawn_map(other).unwrap(), None);
    }
}
