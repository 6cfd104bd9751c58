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
//! 2. The count of a frame is how many entries of lower tables name it.
//! 3. The upper table that was met last, if one is remembered, is in the tree.
//!
//! [`reverse`](crate::reverse) says where a frame may be mapped; what stands is there too.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound;

use crate::id::{FrameId, SpaceId, VirtPage};
use crate::reverse::Mapping;

const NONE: u32 = u32::MAX;
/// Entries of a table: as many as a word has bits.
const ENTRIES: u32 = u64::BITS;
/// Pages of an upper table.
const SPAN: u64 = ENTRIES as u64 * ENTRIES as u64;

/// Which upper table: the space, and the address divided by [`SPAN`].
type Part = (SpaceId, u64);

/// What an upper table knows of 64 lower ones, or a lower one of 64 pages.
struct Table {
    /// A bit for each entry that is used.
    used: u64,
    /// The places of lower tables, or frames. The first of a spare table is the next spare one.
    entries: [u32; ENTRIES as usize],
}

/// The standing mappings, and how many each frame has.
pub(crate) struct Standing {
    parts: BTreeMap<Part, u32>,
    tables: Vec<Table>,
    spare: u32,
    /// The upper table that was met last. A walk goes on in it, and programs stay near.
    last: Option<(Part, u32)>,
    counts: Vec<u32>,
}

impl Standing {
    /// None, of `frames` frames.
    pub(crate) fn new(frames: usize) -> Standing {
        Standing {
            parts: BTreeMap::new(),
            tables: Vec::new(),
            spare: NONE,
            last: None,
            counts: vec![0; frames],
        }
    }

    /// Makes `frame` the one that `at` in `space` reaches.
    pub(crate) fn insert(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        let (part, upper_entry, entry) = split(space, at);
        let upper = match self.find_upper(part) {
            Some(upper) => upper,
            None => self.add_upper(part),
        };
        let lower = match self.tables[upper as usize].get(upper_entry) {
            Some(lower) => lower,
            None => {
                let lower = self.take_table();
                self.tables[upper as usize].set(upper_entry, lower);
                lower
            }
        };
        let table = &mut self.tables[lower as usize];
        if let Some(other) = table.get(entry) {
            self.counts[other as usize] -= 1;
        }
        table.set(entry, frame.0);
        self.counts[frame.index()] += 1;
    }

    /// Removes a mapping, if it is `frame` that `at` in `space` reaches.
    pub(crate) fn remove(&mut self, frame: FrameId, space: SpaceId, at: VirtPage) {
        let (part, upper_entry, entry) = split(space, at);
        let Some(upper) = self.find_upper(part) else {
            return;
        };
        let Some(lower) = self.tables[upper as usize].get(upper_entry) else {
            return;
        };
        let table = &mut self.tables[lower as usize];
        if table.get(entry) != Some(frame.0) {
            return;
        }
        self.counts[frame.index()] -= 1;
        if !table.clear(entry) {
            return;
        }
        self.give_table(lower);
        if self.tables[upper as usize].clear(upper_entry) {
            self.give_table(upper);
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

    /// How many mappings of `frame` stand.
    pub(crate) fn count(&self, frame: FrameId) -> u32 {
        self.counts[frame.index()]
    }

    /// The first mapping of an upper table from `entry` of the lower one at `upper_entry` on: how
    /// many pages from the start of its part, and the frame.
    fn next_below(&self, upper: u32, upper_entry: u32, entry: u32) -> Option<(u32, u32)> {
        let upper = &self.tables[upper as usize];
        if let Some(lower) = upper.get(upper_entry) {
            let lower = &self.tables[lower as usize];
            if let Some((entry, frame)) = lower.next(entry) {
                return Some((upper_entry * ENTRIES + entry, frame));
            }
        }
        let (upper_entry, lower) = upper.next(upper_entry + 1)?;
        let (entry, frame) = self.tables[lower as usize].next(0)?;
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
        let upper = self.take_table();
        self.parts.insert(part, upper);
        self.last = Some((part, upper));
        upper
    }

    fn take_table(&mut self) -> u32 {
        if self.spare == NONE {
            self.tables.push(Table {
                used: 0,
                entries: [NONE; ENTRIES as usize],
            });
            return self.tables.len() as u32 - 1;
        }
        let table = self.spare;
        self.spare = self.tables[table as usize].entries[0];
        table
    }

    fn give_table(&mut self, table: u32) {
        self.tables[table as usize].entries[0] = self.spare;
        self.spare = table;
    }
}

impl Table {
    fn get(&self, entry: u32) -> Option<u32> {
        (self.used & 1 << entry != 0).then(|| self.entries[entry as usize])
    }

    /// The first entry that is used, from `from` on, and what it holds.
    fn next(&self, from: u32) -> Option<(u32, u32)> {
        let left = self.used & u64::MAX.checked_shl(from)?;
        let entry = left.trailing_zeros();
        (left != 0).then(|| (entry, self.entries[entry as usize]))
    }

    fn set(&mut self, entry: u32, value: u32) {
        self.used |= 1 << entry;
        self.entries[entry as usize] = value;
    }

    /// Empties an entry. Says whether it was the last.
    fn clear(&mut self, entry: u32) -> bool {
        self.used &= !(1 << entry);
        self.used == 0
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
        assert_eq!(standing.count(FrameId(0)), 14);
    }

    #[test]
    fn tables_that_become_empty_are_used_again() {
        let mut standing = Standing::new(1);
        for at in (0..100).map(|number| VirtPage(number << 20)) {
            standing.insert(FrameId(0), SpaceId(0), at);
            standing.remove(FrameId(0), SpaceId(0), at);
        }
        assert_eq!(standing.tables.len(), 2);
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
        let counts = [0, 1].map(|frame| standing.count(FrameId(frame)));
        assert_eq!(counts, [0, 1]);
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
            assert_eq!(standing.count(frame) as usize, count);
            if step % 1000 == 0 {
                let all = tree.iter().map(|(&(space, at), &frame)| (space, at, frame));
                assert_eq!(collect(&mut standing), all.collect::<Vec<_>>());
            }
        }
    }
}
