//! The table of managed mappings of files: where they are, and what they are of.
//!
//! # Invariants
//! 1. Parts do not overlap, and each is of a file in the table.
//! 2. A file is in the table as long as a part is of it. Each mapping that the program makes has a
//!    file of its own here, whatever it shares with others.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;

use tidemark_core::id::{PAGE_BYTES, PagerId};

use crate::glob::Glob;
use crate::requests::{FileMapping, is_copy};
use crate::sys::{Errno, PAGE};

/// The largest copy that is managed, as a part of the budget.
const COPY_PART: usize = 2;

/// A part of the address space that shows a part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// First address.
    pub start: usize,
    /// Just past the last address.
    pub end: usize,
    /// The file.
    pub pager: PagerId,
    /// The page of the file at `start`.
    pub first: u64,
    /// True if the program shares its mapping. It can't write to it unless that is written back.
    pub is_shared: bool,
    /// True if modified pages are written to the file.
    pub is_written: bool,
    /// True if the program may only read, in a mapping that is writable to the kernel.
    pub is_closed: bool,
}

impl Part {
    /// The page of the file at an address of this part.
    pub fn page_at(&self, address: usize) -> u64 {
        self.first + ((address - self.start) / PAGE) as u64
    }

    /// The address of a page of the file, if it is in this part or before it; its end for those
    /// beyond.
    pub fn address_of(&self, page: u64) -> usize {
        let pages = page.saturating_sub(self.first) as usize;
        (self.start.saturating_add(pages.saturating_mul(PAGE))).min(self.end)
    }

    /// The pages of the file that it shows.
    pub fn pages(&self) -> Range<u64> {
        self.first..self.page_at(self.end)
    }

    /// The part of it that lies in `start..end`.
    fn cut_to(self, start: usize, end: usize) -> Part {
        let start = start.max(self.start);
        Part {
            start,
            end: end.min(self.end),
            first: self.page_at(start),
            ..self
        }
    }
}

/// A file that parts are of.
#[derive(Clone, Debug)]
pub struct MappedFile {
    /// The path that it had when it was mapped.
    pub path: PathBuf,
    /// Its device and its number there.
    pub identity: (u64, u64),
    /// The bytes of it that are known to be there.
    pub bytes: u64,
    /// The number of writes to it that have failed, and the last one's error.
    pub write_failures: (u64, Option<Errno>),
    /// The number of times that the program has used it by a descriptor, beside its mappings.
    pub uses: u32,
}

impl MappedFile {
    /// The number of pages that have something of the file.
    pub fn pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE_BYTES)
    }
}

/// The table.
#[derive(Default)]
pub struct Mapped {
    /// The files to manage; `None`: none.
    wanted: Option<Glob>,
    /// True if the user has named files: then it is said why one is not managed.
    pub is_named: bool,
    /// True if shared mappings that are written to are to be managed.
    pub are_written: bool,
    parts: BTreeMap<usize, Part>,
    files: BTreeMap<u32, MappedFile>,
    /// The pages that are to be read ahead of their use.
    pub ahead: VecDeque<Range<u64>>,
    /// The number of pages of parts that have gone since free frames were last emptied.
    pub gone_pages: u64,
    /// The reasons for which a mapping was passed through that have been said.
    pub told: u32,
}

impl Mapped {
    /// An empty table. The files whose paths match `wanted` are to be managed, of shared mappings
    /// that are written to if they `are_written`.
    pub fn new(wanted: Option<Glob>, is_named: bool, are_written: bool) -> Mapped {
        Mapped {
            wanted,
            is_named,
            are_written,
            ..Mapped::default()
        }
    }

    /// Returns true if a mapping is a *copy* of a file that is managed whatever its path, in a
    /// budget of `budget` pages: private, for the program to write to, and at an address that it
    /// has chosen. So programs load images of objects, which are modified and stay. A file of data
    /// lies where the kernel puts it, may hardly be written to, and costs nothing in the page
    /// cache.
    ///
    /// A small one is not worth the calls. A large one would leave no room for other memory.
    pub fn wants_copy(made: &FileMapping, budget: u32) -> bool {
        let most = budget as usize / COPY_PART * PAGE;
        is_copy(made.bytes, made.kind) && made.bytes <= most
    }

    /// Returns true if a file of this path is to be managed.
    pub fn wants(&self, path: &[u8]) -> bool {
        self.wanted.as_ref().is_some_and(|glob| glob.matches(path))
    }

    /// Notes a new part of a new file.
    pub fn insert(&mut self, part: Part, file: MappedFile) {
        self.files.insert(part.pager.0, file);
        self.put(part);
    }

    /// Notes a part that was taken out before, or one that it has grown by.
    pub fn put(&mut self, part: Part) {
        assert!(part.start < part.end);
        self.parts.insert(part.start, part);
    }

    /// Takes out what lies in `start..end`. Files that no part is of any more stay until
    /// [`remove_unused`](Self::remove_unused).
    pub fn take(&mut self, start: usize, end: usize) -> Vec<Part> {
        let found = self.collect_overlaps(start, end);
        for part in &found {
            let whole = self.parts[&self.part_key(part.start)];
            self.parts.remove(&whole.start);
            for (from, to) in [(whole.start, part.start), (part.end, whole.end)] {
                if from < to {
                    self.put(whole.cut_to(from, to));
                }
            }
        }
        found
    }

    /// Takes a file out if no part is of it. Answers whether it is gone.
    pub fn remove_unused(&mut self, pager: PagerId) -> bool {
        let is_used = self.parts().any(|part| part.pager == pager);
        !is_used && self.files.remove(&pager.0).is_some()
    }

    /// Returns true if there is no part.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The part at an address.
    pub fn find(&self, address: usize) -> Option<Part> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        (address < part.end).then_some(*part)
    }

    /// The pieces of parts that lie in `start..end`, in the order of addresses.
    pub fn collect_overlaps(&self, start: usize, end: usize) -> Vec<Part> {
        let Some(before) = end.checked_sub(1) else {
            return Vec::new();
        };
        let behind = self.parts.range(..=before).rev().map(|(_, part)| *part);
        let within = behind.take_while(|part| part.end > start);
        let mut found: Vec<Part> = within.map(|part| part.cut_to(start, end)).collect();
        found.reverse();
        found
    }

    /// All parts, in the order of addresses.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.parts.values().copied()
    }

    /// The parts of a file.
    pub fn parts_of(&self, pager: PagerId) -> Vec<Part> {
        self.parts().filter(|part| part.pager == pager).collect()
    }

    /// The parts in `start..end` whose modified pages are written to their file.
    pub fn collect_written(&self, start: usize, end: usize) -> Vec<Part> {
        let mut found = self.collect_overlaps(start, end);
        found.retain(|part| part.is_written);
        found
    }

    /// The parts that show some of these pages of the file with this identity, by way of whatever
    /// mapping.
    pub fn collect_of(&self, identity: (u64, u64), pages: &Range<u64>) -> Vec<Part> {
        let is_same = |part: &Part| self.file(part.pager).identity == identity;
        let overlaps = |part: &Part| {
            let own = part.pages();
            own.start < pages.end && pages.start < own.end
        };
        let parts = self.parts();
        parts
            .filter(|part| overlaps(part) && is_same(part))
            .collect()
    }

    /// Returns true if the file of this number is in the table.
    pub fn has_file(&self, pager: PagerId) -> bool {
        self.files.contains_key(&pager.0)
    }

    /// The file of a part.
    pub fn file(&self, pager: PagerId) -> &MappedFile {
        &self.files[&pager.0]
    }

    /// The file of a part, to be changed.
    pub fn file_mut(&mut self, pager: PagerId) -> &mut MappedFile {
        let found = self.files.get_mut(&pager.0);
        found.expect("a file is in the table as long as a part is of it")
    }

    /// A file that could not be written, and the last error.
    pub fn find_failing(&self) -> Option<(PagerId, Errno)> {
        let mut files = self.files.iter();
        files.find_map(|(number, file)| Some((PagerId(*number), file.write_failures.1?)))
    }

    fn part_key(&self, address: usize) -> usize {
        self.find(address).expect("it was found just now").start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{PLACED, SHARED};

    fn part(start: usize, end: usize, first: u64) -> Part {
        Part {
            start: start * PAGE,
            end: end * PAGE,
            pager: PagerId(3),
            first,
            is_shared: true,
            is_written: false,
            is_closed: true,
        }
    }

    fn file() -> MappedFile {
        MappedFile {
            path: "/x".into(),
            identity: (1, 2),
            bytes: 4097,
            write_failures: (0, None),
            uses: 0,
        }
    }

    #[test]
    fn copies_are_private_to_write_to_and_neither_small_nor_large() {
        let (read, write, execute) = (PLACED | 1, PLACED | 2, PLACED | 4);
        let is_wanted = |bytes, kind| {
            let made = FileMapping {
                start: 0,
                bytes,
                file: 3,
                first: 0,
                kind,
            };
            Mapped::wants_copy(&made, 4096)
        };
        assert!(is_wanted(1 << 20, read | write) && is_wanted(8 << 20, write));
        assert!(!is_wanted((1 << 20) - PAGE, read | write));
        assert!(!is_wanted((8 << 20) + PAGE, read | write));
        for kind in [read, read | write | execute, read | write | SHARED, 0, 2, 3] {
            assert!(!is_wanted(2 << 20, kind), "{kind:x}");
        }
    }

    #[test]
    fn a_part_that_is_cut_out_leaves_both_ends() {
        let mut mapped = Mapped::new(None, false, false);
        mapped.insert(part(10, 20, 5), file());
        assert_eq!(mapped.take(13 * PAGE, 15 * PAGE), [part(13, 15, 8)]);
        let left: Vec<Part> = mapped.parts().collect();
        assert_eq!(left, [part(10, 13, 5), part(15, 20, 10)]);
        assert_eq!(mapped.find(14 * PAGE), None);
        assert_eq!(mapped.find(16 * PAGE), Some(part(15, 20, 10)));
        let both = mapped.collect_overlaps(12 * PAGE, 16 * PAGE);
        assert_eq!(both, [part(12, 13, 7), part(15, 16, 10)]);
        assert!(!mapped.remove_unused(PagerId(3)));
        mapped.take(0, usize::MAX);
        assert!(mapped.remove_unused(PagerId(3)));
        assert!(!mapped.remove_unused(PagerId(3)));
        assert!(mapped.is_empty());
    }

    #[test]
    fn pages_and_addresses_go_by_the_first_page() {
        let part = part(10, 20, 5);
        assert_eq!(part.page_at(12 * PAGE + 7), 7);
        assert_eq!(part.address_of(7), 12 * PAGE);
        assert_eq!(part.address_of(0), 10 * PAGE);
        assert_eq!(part.address_of(u64::MAX), 20 * PAGE);
        assert_eq!(file().pages(), 2);
    }
}
