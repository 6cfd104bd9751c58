//! Runs: consecutive pages of one object, the unit in which pages move.

use alloc::vec::Vec;

use crate::id::{ObjectId, PageId};

/// Consecutive pages of one object. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRun {
    /// The object that holds the pages.
    pub object: ObjectId,
    /// The index of the first page.
    pub first: u64,
    /// The number of pages; at least one.
    pub pages: u32,
}

impl PageRun {
    /// The run that is this one page.
    pub fn one(page: PageId) -> PageRun {
        PageRun {
            object: page.object,
            first: page.index,
            pages: 1,
        }
    }

    /// The runs that pages make, in their order.
    pub fn divide(pages: impl IntoIterator<Item = PageId>) -> Vec<PageRun> {
        let mut runs: Vec<PageRun> = Vec::new();
        for page in pages {
            match runs.last_mut() {
                Some(run) if run.object == page.object && run.end() == page.index => run.pages += 1,
                _ => runs.push(PageRun::one(page)),
            }
        }
        runs
    }

    /// The index just past the last page.
    pub fn end(self) -> u64 {
        self.first + u64::from(self.pages)
    }

    /// Returns true if `page` lies in the run.
    pub fn contains(self, page: PageId) -> bool {
        page.object == self.object && (self.first..self.end()).contains(&page.index)
    }

    /// The pages of the run, in order.
    pub fn iter(self) -> impl Iterator<Item = PageId> {
        (self.first..self.end()).map(move |index| PageId {
            object: self.object,
            index,
        })
    }
}
