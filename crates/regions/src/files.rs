//! Files behind regions, as the engine's thread knows them: their descriptors, and their errors.

use std::path::PathBuf;

use tidemark_core::id::{PAGE_BYTES, PagerId, VirtPage};
use tidemark_live::store::{Cause, Failure};

use crate::command::Span;

/// A part of a file that a region begins as.
pub(crate) struct MappedFile {
    pub(crate) pager: PagerId,
    span: Span,
    /// The number of its first page in the file.
    first: u64,
    /// The number of pages, from the first on, that the file still has.
    pages_left: u64,
    path: PathBuf,
    /// The size that the file must have.
    bytes: u64,
    /// The size that it had when it was found to be cut.
    size: u64,
    /// The last reading that failed, until it is reported.
    failure: Option<Failure>,
}

impl MappedFile {
    /// The pages of a file from its page `first` on, which end at byte `bytes`.
    pub(crate) fn new(
        span: Span,
        (pager, first): (PagerId, u64),
        path: PathBuf,
        bytes: u64,
    ) -> MappedFile {
        MappedFile {
            pager,
            span,
            first,
            pages_left: span.pages,
            path,
            bytes,
            size: bytes,
            failure: None,
        }
    }

    /// Notes that a reading has failed while the file has `size` bytes. Returns the pages that it
    /// no longer has, if that is new: they must not be read again.
    pub(crate) fn note(&mut self, failure: Failure, size: u64) -> Option<Span> {
        // A page of which the file has a part is lost as well.
        let left = (size / PAGE_BYTES).saturating_sub(self.first);
        if failure.cause != Cause::Short || left >= self.pages_left {
            self.failure = Some(failure);
            return None;
        }
        let pages = self.pages_left - left;
        (self.pages_left, self.size) = (left, size);
        Some(Span {
            at: VirtPage(self.span.at.0 + left),
            pages,
        })
    }

    /// Takes what is wrong with the page at `at`.
    pub(crate) fn trouble_at(&mut self, at: VirtPage) -> Option<String> {
        let path = self.path.display();
        if self.is_cut(at) {
            let (size, bytes) = (self.size, self.bytes);
            return Some(format!(
                "`{path}` was cut to {size} bytes; {bytes} are mapped"
            ));
        }
        let failure = self.failure.take()?;
        Some(format!("`{path}`: {failure}"))
    }

    /// Returns true if the page at `at` is one of this file's.
    pub(crate) fn has(&self, at: VirtPage) -> bool {
        (self.span.at.0..self.span.at.0 + self.span.pages).contains(&at.0)
    }

    /// Returns true if something is known to be wrong with the page at `at`.
    pub(crate) fn is_in_trouble(&self, at: VirtPage) -> bool {
        self.is_cut(at) || self.failure.is_some()
    }

    fn is_cut(&self, at: VirtPage) -> bool {
        at.0 - self.span.at.0 >= self.pages_left
    }
}
