//! The standing mappings in order of space and address: page tables, for policies that walk them.
//!
//! Such a policy asks for the next mapping far more often than one comes or goes, and those that
//! come and go are scattered. So they are kept as processors keep them, in tables of a fixed size
//! for addresses side by side: an upper table has a lower one for each 64 pages, and a lower one
//! has a frame for each page. A word of bits says which entries a table has, so that the next is
//! found without a look at those that are empty. Addresses are spread too far for more levels to
//! pay; a tree in order of addresses holds the upper tables, each of 4096 pages.
//!
//! # Invariants
//! 1. A table that can be reached has an entry at least: empty ones are spare. So the memory is at
//!    most two tables for each mapping, of those that stood at once.
//! 2. A bit of each frame says whether an entry of a lower table names it, and another whether
//!    several do. Then its count is how many; that of another frame means nothing.
//! 3. The upper table that was met last, if one is remembered, is in the tree.
//!
//! [`reverse`](crate::memory::reverse_map) says where a frame may be mapped; what stands is there
//! too.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use crate::collections::bits::Bits;
use crate::collections::column::Column;
use crate::id::{FrameId, SpaceId, VirtPage};

const NONE: u32 = u32::MAX;
/// Entries of a table: as many as a word has bits.
const ENTRIES: u32 = u64::BITS;
/// Pages of an upper table.
const SPAN: u64 = ENTRIES as u64 * ENTRIES as u64;

/// A mapping as a walk along the page tables of programs meets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The address space of the program.
    pub space: SpaceId,
    /// The page through which the program reaches the frame.
    pub at: VirtPage,
    /// The frame.
    pub frame: FrameId,
}

/// The key of an upper table: the space, and the address divided by [`SPAN`].
type Part = (SpaceId, u64);

/// The entries of an upper table for 64 lower ones, or of a lower one for 64 pages: the places of
/// lower tables, or frames. The first entry of a spare table is the next spare one. As many lines
/// of a cache as need be, and no part of another.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entries([u32; ENTRIES as usize]);

/// The tables of both kinds. Which entries are used is kept apart from what they hold: it is looked
/// at more often, a word a table stays near, and then an entry that is set is only written.
struct Tables {
    /// A bit for each entry that is used.
    used: Vec<u64>,
    entries: Vec<Entries>,
    spare: u32,
}

/// The standing mappings, and how many each frame has.
pub(crate) struct Standing {
    parts: BTreeMap<Part, u32>,
    tables: Tables,
    /// The upper table that was met last. A walk goes on in it, and programs stay near.
    last: Option<(Part, u32)>,
    is_mapped: Bits,
    /// Few pages are shared: of the others a bit is near where a count would not be.
    is_shared: Bits,
    counts: Column<u32>,
}

impl Standing {
    /// None, of `frames` frames.
    pub(crate) fn new(frames: usize) -> Standing {
        Standing {
            parts: BTreeMap::new(),
            tables: Tables::new(),
            last: None,
            is_mapped: Bits::new(frames),
            is_shared: Bits::new(frames),
            counts: Column::new(0, frames),
        }
    }

    /// Makes `frame` the one that `at` in `space` reaches.
    pub(crate) fn insert(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        let (part, upper_entry, entry) = split(space, at);
        let upper = match self.find_upper(part) {
            Some(upper) => upper,
            None => self.add_upper(part),
        };
        let lower = match self.tables.get(upper, upper_entry) {
            Some(lower) => lower,
            None => {
                let lower = self.tables.take();
                self.tables.set(upper, upper_entry, lower);
                lower
            }
        };
        if let Some(other) = self.tables.get(lower, entry) {
            self.count_down(FrameId(other));
        }
        self.tables.set(lower, entry, frame.0);
        self.count_up(frame);
    }

    /// Removes a mapping, if it is `frame` that `at` in `space` reaches.
    pub(crate) fn remove(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        let (part, upper_entry, entry) = split(space, at);
        let Some(upper) = self.find_upper(part) else {
            return;
        };
        let Some(lower) = self.tables.get(upper, upper_entry) else {
            return;
        };
        if self.tables.get(lower, entry) != Some(frame.0) {
            return;
        }
        self.count_down(frame);
        if !self.tables.clear(lower, entry) {
            return;
        }
        self.tables.give(lower);
        if self.tables.clear(upper, upper_entry) {
            self.tables.give(upper);
            self.parts.remove(&part);
            self.last = None;
        }
    }

    /// The first mapping behind `after`, or of all.
    pub(crate) fn next(&mut self, after: Option<(SpaceId, VirtPage)>) -> Option<Mapping> {
        let mut behind = Bound::Unbounded;
        if let Some((space, at)) = after {
            let (part, upper_entry, entry) = split(space, at);
            let found = self
                .find_upper(part)
                .and_then(|upper| self.next_below(upper, upper_entry, entry + 1));
            if let Some((offset, frame)) = found {
                return Some(mapping(part, offset, frame));
            }
            behind = Bound::Excluded(part);
        }
        let (&part, &upper) = self.parts.range((behind, Bound::Unbounded)).next()?;
        self.last = Some((part, upper));
        let (offset, frame) = self.next_below(upper, 0, 0)?;
        Some(mapping(part, offset, frame))
    }

    /// Returns true if a mapping of `frame` stands.
    pub(crate) fn is_mapped(&self, frame: FrameId) -> bool {
        self.is_mapped.get(frame.index())
    }

    fn count_up(&mut self, frame: FrameId) {
        let number = frame.index();
        if !self.is_mapped.get(number) {
            self.is_mapped.set(number, true);
        } else if !self.is_shared.get(number) {
            self.is_shared.set(number, true);
            self.counts[number] = 2;
        } else {
            self.counts[number] += 1;
        }
    }

    fn count_down(&mut self, frame: FrameId) {
        let number = frame.index();
        if !self.is_shared.get(number) {
            self.is_mapped.set(number, false);
            return;
        }
        self.counts[number] -= 1;
        self.is_shared.set(number, self.counts[number] > 1);
    }

    /// The first mapping of an upper table from `entry` of the lower one at `upper_entry` on: how
    /// many pages from the start of its part, and the frame.
    fn next_below(&self, upper: u32, upper_entry: u32, entry: u32) -> Option<(u32, u32)> {
        if let Some(lower) = self.tables.get(upper, upper_entry)
            && let Some((entry, frame)) = self.tables.next(lower, entry)
        {
            return Some((upper_entry * ENTRIES + entry, frame));
        }
        let (upper_entry, lower) = self.tables.next(upper, upper_entry + 1)?;
        let (entry, frame) = self.tables.next(lower, 0)?;
        Some((upper_entry * ENTRIES + entry, frame))
    }

    fn find_upper(&mut self, part: Part) -> Option<u32> {
        if let Some((last, upper)) = self.last
            && last == part
        {
            return Some(upper);
        }
        let upper = *self.parts.get(&part)?;
        self.last = Some((part, upper));
        Some(upper)
    }

    fn add_upper(&mut self, part: Part) -> u32 {
        let upper = self.tables.take();
        self.parts.insert(part, upper);
        self.last = Some((part, upper));
        upper
    }
}

impl Tables {
    fn new() -> Tables {
        Tables {
            used: Vec::new(),
            entries: Vec::new(),
            spare: NONE,
        }
    }

    /// A table without entries.
    fn take(&mut self) -> u32 {
        if self.spare == NONE {
            self.used.push(0);
            self.entries.push(Entries([NONE; ENTRIES as usize]));
            return self.used.len() as u32 - 1;
        }
        let table = self.spare;
        self.spare = self.entries[table as usize].0[0];
        table
    }

    /// Takes back a table without entries.
    fn give(&mut self, table: u32) {
        self.entries[table as usize].0[0] = self.spare;
        self.spare = table;
    }

    fn set(&mut self, table: u32, entry: u32, value: u32) {
        self.used[table as usize] |= 1 << entry;
        self.entries[table as usize].0[entry as usize] = value;
    }

    /// Empties an entry. Says whether it was the last of its table.
    fn clear(&mut self, table: u32, entry: u32) -> bool {
        let used = &mut self.used[table as usize];
        *used &= !(1 << entry);
        *used == 0
    }

    fn get(&self, table: u32, entry: u32) -> Option<u32> {
        let is_used = self.used[table as usize] & 1 << entry != 0;
        is_used.then(|| self.entries[table as usize].0[entry as usize])
    }

    /// The first entry that is used, from `from` on, and what it holds.
    fn next(&self, table: u32, from: u32) -> Option<(u32, u32)> {
        let left = self.used[table as usize] & u64::MAX.checked_shl(from)?;
        let entry = left.trailing_zeros();
        (left != 0).then(|| (entry, self.entries[table as usize].0[entry as usize]))
    }
}

/// The upper table of an address, the entry in it, and the entry in the lower table.
fn split(space: SpaceId, at: VirtPage) -> (Part, u32, u32) {
    let offset = (at.0 % SPAN) as u32;
    ((space, at.0 / SPAN), offset / ENTRIES, offset % ENTRIES)
}

fn mapping((space, number): Part, offset: u32, frame: u32) -> Mapping {
    Mapping {
        space,
        at: VirtPage(number * SPAN + u64::from(offset)),
        frame: FrameId(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(standing: &mut Standing) -> Vec<(SpaceId, VirtPage, FrameId)> {
        let mut after = None;
        core::iter::from_fn(|| {
            let Mapping { space, at, frame } = standing.next(after)?;
            after = Some((space, at));
            Some((space, at, frame))
        })
        .collect()
    }

    #[test]
    fn mappings_at_the_edges_of_tables_come_in_order() {
        let mut standing = Standing::new(1);
        let edges = [0, 63, 64, 4095, 4096, (1 << 52) - 1, u64::MAX];
        for space in [u32::MAX, 0] {
            for at in edges.into_iter().rev() {
                standing.insert(FrameId(0), SpaceId(space), VirtPage(at));
            }
        }
        let found: Vec<_> = collect(&mut standing)
            .iter()
            .map(|&(space, at, _)| (space.0, at.0))
            .collect();
        let expected = [0, u32::MAX].map(|space| edges.map(|at| (space, at)));
        assert_eq!(found, expected.concat());
        assert!(standing.is_shared.get(0));
        assert_eq!(standing.counts, [14]);
    }

    #[test]
    fn tables_that_become_empty_are_used_again() {
        let mut standing = Standing::new(1);
        for at in (0..100).map(|number| VirtPage(number << 20)) {
            standing.insert(FrameId(0), SpaceId(0), at);
            standing.remove(FrameId(0), SpaceId(0), at);
        }
        assert_eq!(standing.tables.used.len(), 2);
        assert!(standing.parts.is_empty());
        assert_eq!(standing.next(None), None);
    }

    #[test]
    fn only_the_frame_that_is_there_is_removed() {
        let mut standing = Standing::new(2);
        let (space, at) = (SpaceId(3), VirtPage(5));
        standing.insert(FrameId(0), space, at);
        standing.insert(FrameId(1), space, at);
        standing.remove(FrameId(0), space, at);
        assert_eq!(collect(&mut standing), [(space, at, FrameId(1))]);
        let mapped = [0, 1].map(|frame| standing.is_mapped(FrameId(frame)));
        assert_eq!(mapped, [false, true]);
    }

    #[test]
    fn all_is_as_in_a_tree_with_an_entry_a_page() {
        const FRAMES: u32 = 8;
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            // Knuth's multiplier; the high bits are good enough.
            state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
            (state >> 33) % bound
        };
        let mut standing = Standing::new(FRAMES as usize);
        let mut tree = BTreeMap::new();
        for step in 0..40_000 {
            let space = SpaceId(below(3) as u32);
            // Some parts of the addresses are dense, and some hold a page or two.
            let at = VirtPage((below(5) << [6, 12, 40][below(3) as usize]) + below(40));
            let frame = FrameId(below(FRAMES.into()) as u32);
            // There are times of growth, and times in which nearly all goes.
            if below(8) < if step / 1000 % 2 == 0 { 6 } else { 1 } {
                standing.insert(frame, space, at);
                tree.insert((space, at), frame);
            } else {
                let there = tree.get(&(space, at)).copied();
                let frame = there.filter(|_| below(4) > 0).unwrap_or(frame);
                standing.remove(frame, space, at);
                if there == Some(frame) {
                    tree.remove(&(space, at));
                }
            }
            let after = (space, at);
            let mut behind = tree.range((Bound::Excluded(after), Bound::Unbounded));
            let expected = behind.next();
            let found = standing.next(Some(after));
            let found = found.map(|Mapping { space, at, frame }| ((space, at), frame));
            assert_eq!(found, expected.map(|(&place, &frame)| (place, frame)));
            let count = tree.values().filter(|&&other| other == frame).count();
            assert_eq!(standing.is_mapped(frame), count > 0);
            assert_eq!(standing.is_shared.get(frame.index()), count > 1);
            assert!(count < 2 || standing.counts[frame.index()] as usize == count);
            if step % 1000 == 0 {
                let all = tree.iter().map(|(&(space, at), &frame)| (space, at, frame));
                assert_eq!(collect(&mut standing), all.collect::<Vec<_>>());
            }
        }
    }
}
