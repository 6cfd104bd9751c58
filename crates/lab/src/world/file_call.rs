//! A system call that copies bytes of a file: how far it has come.

use tidemark_core::event::Access;
use tidemark_trace::Copied;

/// A system call that copies bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCall<'a> {
    pub(super) file: &'a str,
    /// The first byte that is still to be copied, and the end.
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) is_write: bool,
    /// The page of the next byte has been waited for.
    pub(super) is_served: bool,
}

/// The piece copied in one go: within a page.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) page: u64,
    pub(super) end: u64,
    pub(super) access: Access,
}

impl<'a> FileCall<'a> {
    /// Begins with the first of the bytes.
    pub(super) fn new(copied: Copied<'a>) -> FileCall<'a> {
        FileCall {
            file: copied.file,
            next: copied.offset,
            end: copied.offset.saturating_add(copied.bytes),
            is_write: copied.is_write,
            is_served: false,
        }
    }

    /// The next piece to copy, of a file of such a length.
    pub(super) fn piece(&self, page_bytes: u64, length: u64) -> Piece {
        let page = self.next / page_bytes;
        let (start, behind) = (page * page_bytes, (page + 1) * page_bytes);
        let end = self.end.min(behind);
        let is_whole = self.next == start && (end == behind || end >= length);
        let access = match self.is_write {
            false => Access::Read,
            true if is_whole || start >= length => Access::Overwrite,
            true => Access::Write,
        };
        Piece { page, end, access }
    }
}
