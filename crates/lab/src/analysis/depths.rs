//! The depths in a stack of pages at which references were found, and the misses of every memory
//! size that follow.
//!
//! A stack policy keeps, in a memory of m pages, the m pages on top of one stack that is the same
//! for all sizes (Mattson, Gecsei, Slutz and Traiger 1970). A reference found at depth d therefore
//! misses in every memory of fewer than d pages, and the counts by depth are the whole curve.

/// References by the depth they were found at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// The number of references found at each depth: the place is the depth, so that the first
    /// is always 0.
    pub found: Vec<u64>,
    /// The number of references that were the first to their page.
    pub cold: u64,
}

impl Depths {
    /// None yet, of `page_count` pages.
    pub fn new(page_count: u32) -> Depths {
        Depths {
            found: vec![0; page_count as usize + 1],
            cold: 0,
        }
    }

    /// Makes room for the depths of pages up to that number.
    pub(crate) fn make_room(&mut self, page: u32) {
        let places = page as usize + 2;
        if self.found.len() < places {
            self.found.resize(places, 0);
        }
    }

    /// The number of references.
    pub fn references(&self) -> u64 {
        self.cold + self.found.iter().sum::<u64>()
    }

    /// The number of references that miss in a memory of `pages` pages.
    pub fn misses_at(&self, pages: u32) -> u64 {
        let deeper = self.found.iter().skip(pages as usize + 1);
        self.cold + deeper.sum::<u64>()
    }

    /// The number of references that miss in each memory from 0 to as many pages as there are.
    pub fn misses(&self) -> Vec<u64> {
        let mut missing = self.references();
        let miss = |&found: &u64| {
            missing -= found;
            missing
        };
        self.found.iter().map(miss).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_misses_where_memory_ends_above_it() {
        let depths = Depths {
            found: vec![0, 5, 0, 2],
            cold: 3,
        };
        assert_eq!(depths.references(), 10);
        assert_eq!(depths.misses(), [10, 5, 5, 3]);
        for (pages, misses) in [(0, 10), (1, 5), (2, 5), (3, 3), (100, 3)] {
            assert_eq!(depths.misses_at(pages), misses, "{pages}");
        }
    }
}
