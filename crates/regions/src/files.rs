//! Files and pagers behind regions, as the engine's thread knows them: their numbers, and their
//! errors.

use std::path::PathBuf;

use tidemark_core::id::{ObjectId, PAGE_BYTES, PagerId, VirtPage};
use tidemark_core::seams::pager::Direction;
use tidemark_live::store::{Cause, Failure};
use tidemark_live::sys::Errno;

use crate::command::{FlushError, Span};

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
    /// The object of its pages, if those that are modified are written to the file.
    object: Option<ObjectId>,
    /// The number of writes that have failed.
    write_failures: u64,
    /// The byte of the last failed write, and its error.
    write_failure: Option<FlushError>,
    /// The words of the pager about the last transfer that failed, if it is one.
    text: Option<String>,
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
            object: None,
            write_failures: 0,
            write_failure: None,
            text: None,
        }
    }

    /// This file as one whose modified pages are written back.
    pub(crate) fn written_as(mut self, object: ObjectId) -> MappedFile {
        self.object = Some(object);
        self
    }

    /// Notes that a transfer has failed while the file has `size` bytes. Returns the pages that it
    /// no longer has, if that is new: they must not be read or written again.
    pub(crate) fn note(
        &mut self,
        failure: Failure,
        text: Option<String>,
        size: u64,
    ) -> Option<Span> {
        self.text = text.filter(|_| matches!(failure.cause, Cause::File(_)));
        // A page of which the file has a part is lost as well.
        let left = (size / PAGE_BYTES).saturating_sub(self.first);
        if failure.cause != Cause::Short || left >= self.pages_left {
            match failure.direction {
                Direction::Fetch => self.failure = Some(failure),
                Direction::Store => self.note_write(failure),
            }
            return None;
        }
        let pages = self.pages_left - left;
        (self.pages_left, self.size) = (left, size);
        Some(Span {
            at: VirtPage(self.span.at.0 + left),
            pages,
        })
    }

    fn note_write(&mut self, failure: Failure) {
        let error = match failure.cause {
            Cause::File(error) | Cause::Memory(error) => error,
            // A write that comes to nothing without a word.
            Cause::Short | Cause::Differs | Cause::Full => Errno::IO,
        };
        self.write_failures += 1;
        let offset = failure.offset();
        self.write_failure = Some(match &self.text {
            Some(text) => FlushError::Pager(offset, text.clone()),
            None => FlushError::Write(offset, error),
        });
    }

    /// The object of its pages, and the first of them that the file does not have any more, if they
    /// are written to.
    pub(crate) fn lost(&self) -> Option<(ObjectId, u64)> {
        Some((self.object?, self.first + self.pages_left))
    }

    /// The number of writes that have failed.
    pub(crate) fn write_failures(&self) -> u64 {
        self.write_failures
    }

    /// The outcome of writing the modified pages, which began after `failures` writes and had
    /// failed, and found `held` pages held by the kernel.
    pub(crate) fn outcome(&self, failures: u64, held: u32) -> Result<(), FlushError> {
        if self.pages_left < self.span.pages {
            return Err(FlushError::Cut(self.size, self.bytes));
        }
        match &self.write_failure {
            Some(error) if self.write_failures > failures => Err(error.clone()),
            Some(_) | None if held > 0 => Err(FlushError::Held(held)),
            Some(_) | None => Ok(()),
        }
    }

    /// The file's path and the failure of the last write, for the message about a page that no room
    /// can be made for.
    pub(crate) fn write_trouble(&self, failure: Failure) -> String {
        self.describe(failure)
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
        Some(self.describe(failure))
    }

    fn describe(&self, failure: Failure) -> String {
        let path = self.path.display();
        let verb = match failure.direction {
            Direction::Fetch => "reading",
            Direction::Store => "writing",
        };
        match &self.text {
            Some(text) => format!("`{path}`: {verb} at byte {}: {text}", failure.offset()),
            None => format!("`{path}`: {failure}"),
        }
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
