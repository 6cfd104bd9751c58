//! Regions: memory that an engine manages, as a slice.

use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use tidemark_core::id::VirtPage;
use tidemark_core::memory::address_space::Advice;
use tidemark_live::store::files::{self, Cached, Source, Unsuitable};
use tidemark_live::store::pagers::{Contents, Pager};
use tidemark_live::sys::PAGE;
use tidemark_live::sys::memory::Mapping;

use crate::command::{Command, FilePart, Handle, Span};
use crate::error::Error;
use crate::written::Written;

/// The bytes of memory and swap that are kept for a file that is read: enough for it to be read.
const READ_BYTES_HELD: u64 = 64 << 10;

/// Memory that an [`Engine`](crate::Engine) manages: a slice of bytes, at first zeros or what a
/// file has. It starts at a page, or as far behind one as its part of the file does. Dropping it
/// gives memory and swap back.
#[derive(Debug)]
pub struct Region {
    mapping: Mapping,
    /// The offset of the first byte in the mapping.
    start: usize,
    bytes: usize,
    /// The bytes of memory and swap that are kept for it.
    held: u64,
    handle: Arc<Handle>,
}

/// A part of a file, or a pager's bytes, to be read. All calls of a [`Region`] that do not modify
/// it are there.
#[derive(Debug)]
pub struct FileRegion(pub(crate) Region);

/// A part of a file, or a pager's bytes, to be read and to be written. All calls of a [`Region`]
/// that do not modify it are there. Dropping it writes the modified pages; an error of that is a
/// line on standard error, which names the file: call [`flush`](Self::flush) before.
#[derive(Debug)]
pub struct FileRegionMut {
    region: Region,
    /// The file, which this locks, if it is one.
    cached: Option<Arc<Cached>>,
    path: PathBuf,
}

/// The use that is made of the bytes of a file or of a pager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The bytes are read.
    Read,
    /// A copy is modified.
    Modify,
    /// The bytes are modified in place.
    Write,
}

impl Region {
    pub(crate) fn new(handle: Arc<Handle>, bytes: u64) -> Result<Region, Error> {
        if bytes == 0 {
            return Err(Error::Empty);
        }
        let Some(held) = bytes.checked_next_multiple_of(PAGE as u64) else {
            return Err(Error::TooLarge {
                bytes,
                left: u64::MAX,
            });
        };
        Region::map(handle, (0, bytes as usize), held, None)
    }

    /// A region of at least a page for which nothing is kept: for a heap, which keeps what its
    /// blocks may take.
    pub(crate) fn room(handle: Arc<Handle>, bytes: u64) -> Result<Region, Error> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE as u64);
        let bytes = bytes.unwrap_or(u64::MAX / 2 / PAGE as u64 * PAGE as u64);
        Region::map(handle, (0, bytes as usize), 0, None)
    }

    pub(crate) fn of_file(
        handle: Arc<Handle>,
        path: &Path,
        offset: u64,
        bytes: Option<u64>,
        to: Use,
    ) -> Result<Region, Error> {
        let (file, size) = files::open(path).map_err(|why| unsuitable(path, why))?;
        let path = &place(path);
        if bytes == Some(0) {
            return Err(Error::Empty);
        }
        let least = bytes.unwrap_or_else(|| size.saturating_sub(offset).max(1));
        let end = offset.saturating_add(least);
        if end > size {
            return Err(Error::FileShort {
                path: path.into(),
                bytes: size,
                needs: end,
            });
        }
        within_reach(path, end)?;
        let start = offset % PAGE as u64;
        let whole = (start + least).next_multiple_of(PAGE as u64);
        let part = FilePart {
            path: path.into(),
            source: Source {
                file: file.into(),
                cached: None,
                bytes: end,
                is_constant: to == Use::Read,
            },
            first: offset / PAGE as u64,
            is_written: false,
        };
        let held = match to {
            Use::Read | Use::Write => whole.min(READ_BYTES_HELD),
            Use::Modify => whole,
        };
        Region::map(handle, (start as usize, least as usize), held, Some(part))
    }

    /// A region of all that a pager has.
    pub(crate) fn of_pager(
        handle: Arc<Handle>,
        pager: Arc<dyn Pager>,
        to: Use,
    ) -> Result<Region, Error> {
        let (bytes, name) = (pager.bytes(), pager.name());
        if bytes == 0 {
            return Err(Error::Empty);
        }
        if bytes.div_ceil(PAGE as u64) > files::PAGES_MAX {
            return Err(Error::PagerFar { name, bytes });
        }
        let whole = bytes.next_multiple_of(PAGE as u64);
        let held = match to {
            Use::Read | Use::Write => whole.min(READ_BYTES_HELD),
            Use::Modify => whole,
        };
        let part = FilePart {
            path: name.into(),
            source: Source {
                file: Contents::Pager(pager),
                cached: None,
                bytes,
                is_constant: to == Use::Read,
            },
            first: 0,
            is_written: to == Use::Write,
        };
        Region::map(handle, (0, bytes as usize), held, Some(part))
    }

    /// Maps `bytes` from `start` on, for which so much memory and swap is kept (`held`).
    fn map(
        handle: Arc<Handle>,
        (start, bytes): (usize, usize),
        held: u64,
        file: Option<FilePart>,
    ) -> Result<Region, Error> {
        handle.take(held)?;
        let map = || {
            let call = |what| move |error| Error::call(what, error);
            let mut mapping =
                Mapping::anonymous(start + bytes).map_err(call("mapping a region"))?;
            let hidden = mapping.hide_from_children();
            hidden.map_err(call("keeping a region from forked children"))?;
            let span = span(&mapping, 0..mapping.bytes());
            let mapped = handle.ask(|reply| Command::Map(span, file, reply))?;
            mapped.map_err(call("registering a region with userfaultfd"))?;
            Ok(mapping)
        };
        Ok(Region {
            mapping: map().inspect_err(|_| handle.give(held))?,
            start,
            bytes,
            held,
            handle,
        })
    }

    /// The bytes as numbers, or as whatever else any bytes are a value of.
    ///
    /// # Panics
    /// If the size of the region is no multiple of `T`'s, or its part of a file begins where no `T`
    /// can be.
    pub fn as_slice_of<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self)
    }

    /// The bytes as numbers, to write to.
    ///
    /// # Panics
    /// As [`as_slice_of`](Self::as_slice_of).
    pub fn as_mut_slice_of<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self)
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.mapping.start() + self.start
    }

    /// Says how a range of bytes will be used: what is expected to come next is read ahead.
    ///
    /// # Errors
    /// The range is not within the region.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Error> {
        let span = self.part(range)?;
        self.handle
            .ask(|reply| Command::Advise(span, advice, reply))
    }

    /// Begins to read the pages of a range of bytes that are out, as many as fit without others
    /// having to leave, and returns at once.
    ///
    /// # Errors
    /// The range is not within the region.
    pub fn prefetch(&self, range: Range<usize>) -> Result<(), Error> {
        let span = self.part(range)?;
        self.handle.ask(|reply| Command::Prefetch(span, reply))
    }

    /// Makes the whole region what it was at first, zeros or what its file has, and gives its
    /// memory and swap space back.
    ///
    /// # Errors
    /// In a forked child, or if the kernel refuses to give locked memory up.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.empty(0..self.mapping.bytes())
    }

    /// Makes the whole pages of a range of bytes what they were at first, and gives their memory
    /// and swap space back.
    ///
    /// # Errors
    /// As for [`clear`](Self::clear), and if the range is not within the region.
    pub fn clear_pages(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.part(range.clone())?;
        let start = (self.start + range.start).next_multiple_of(PAGE);
        // The last page is whole if nothing of the region is behind it.
        let end = match range.end == self.bytes {
            true => self.mapping.bytes(),
            false => (self.start + range.end) / PAGE * PAGE,
        };
        match start < end {
            true => self.empty(start..end),
            false => Ok(()),
        }
    }

    /// Makes a range of whole pages of the mapping what it was at first. The range is not touched
    /// meanwhile.
    pub(crate) fn empty(&self, range: Range<usize>) -> Result<(), Error> {
        let Range { start, end } = range;
        let span = span(&self.mapping, start..end);
        self.handle.ask(|reply| Command::Discard(span, reply))?;
        // These pages have no owner any more.
        let dropped = self.mapping.drop_part(start, end - start);
        dropped.map_err(|error| Error::call("giving up the pages of a region", error))
    }

    fn part(&self, range: Range<usize>) -> Result<Span, Error> {
        let Range { start, end } = range;
        if start > end || end > self.bytes {
            let bytes = self.bytes;
            return Err(Error::Range { start, end, bytes });
        }
        Ok(span(&self.mapping, self.start + start..self.start + end))
    }
}

impl FileRegionMut {
    pub(crate) fn open(
        handle: Arc<Handle>,
        path: &Path,
        (offset, bytes): (u64, Option<u64>),
        is_new: bool,
    ) -> Result<FileRegionMut, Error> {
        if bytes == Some(0) {
            return Err(Error::Empty);
        }
        let end = offset.saturating_add(bytes.unwrap_or(0));
        within_reach(path, end)?;
        // Without a size it has what is there.
        let needed = bytes.map_or(0, |_| end);
        let opened = files::open_to_write(path, needed, is_new);
        let opened = opened.map_err(|why| unsuitable(path, why))?;
        let path = &place(path);
        let least = bytes.unwrap_or_else(|| opened.bytes.saturating_sub(offset));
        if least == 0 {
            return Err(Error::FileShort {
                path: path.into(),
                bytes: opened.bytes,
                needs: offset.saturating_add(1),
            });
        }
        within_reach(path, opened.bytes)?;
        let start = offset % PAGE as u64;
        let whole = (start + least).next_multiple_of(PAGE as u64);
        let part = FilePart {
            path: path.into(),
            source: Source {
                file: opened.file.into(),
                cached: Some(Arc::clone(&opened.cached)),
                bytes: opened.bytes,
                is_constant: false,
            },
            first: offset / PAGE as u64,
            is_written: true,
        };
        let held = whole.min(READ_BYTES_HELD);
        let range = (start as usize, least as usize);
        let region = FileRegionMut {
            region: Region::map(handle, range, held, Some(part))?,
            cached: Some(opened.cached),
            path: path.into(),
        };
        Written::add(&region.region.handle, region.span(), path.into());
        Ok(region)
    }

    pub(crate) fn of_pager(
        handle: Arc<Handle>,
        pager: Arc<dyn Pager>,
    ) -> Result<FileRegionMut, Error> {
        let path = PathBuf::from(pager.name());
        let region = FileRegionMut {
            region: Region::of_pager(handle, pager, Use::Write)?,
            cached: None,
            path: path.clone(),
        };
        Written::add(&region.region.handle, region.span(), path);
        Ok(region)
    }

    /// Writes the modified pages of a range of bytes, and waits until they are on the disk, or
    /// until the pager has written them. Threads that touch a page that is being written wait for
    /// it.
    ///
    /// # Errors
    /// The range is not within the region; the file or pager can't be written, of which as much is
    /// tried as there is, and what is modified stays in memory; the file was cut; the kernel holds
    /// a page for longer than a second; or in a forked child.
    pub fn flush(&self, range: Range<usize>) -> Result<(), Error> {
        let span = self.region.part(range)?;
        self.region.handle.flush(span, &self.path)?;
        let Some(cached) = &self.cached else {
            return Ok(());
        };
        cached.synchronize().map_err(|error| Error::FileWrite {
            path: self.path.clone(),
            offset: None,
            error,
        })
    }

    /// The bytes, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.region
    }

    /// The bytes as numbers, to write to.
    ///
    /// # Panics
    /// As [`Region::as_slice_of`].
    pub fn as_mut_slice_of<T: Pod>(&mut self) -> &mut [T] {
        self.region.as_mut_slice_of()
    }

    fn span(&self) -> Span {
        span(&self.region.mapping, 0..self.region.mapping.bytes())
    }
}

impl Deref for FileRegionMut {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

impl Drop for FileRegionMut {
    fn drop(&mut self) {
        let handle = &self.region.handle;
        if handle.is_forked() {
            return;
        }
        handle.flush_or_say(self.span(), &self.path);
        handle.written.remove(self.span());
        // The engine may have it open for a little longer.
        if let Some(cached) = &self.cached {
            cached.unlock();
        }
    }
}

/// The pages of a range of bytes, those that it has a part of included.
fn span(mapping: &Mapping, range: Range<usize>) -> Span {
    let (first, end) = (range.start / PAGE, range.end.div_ceil(PAGE));
    Span {
        at: VirtPage((mapping.start() / PAGE + first) as u64),
        pages: (end - first) as u64,
    }
}

/// The path that messages show: that of an open file, if it is named by its number.
fn place(path: &Path) -> PathBuf {
    let is_number = path.starts_with("/proc/self/fd");
    let found = is_number.then(|| std::fs::read_link(path).ok()).flatten();
    found.unwrap_or_else(|| path.into())
}

/// Refuses a file of which a region would have bytes up to `end`, if pages there have no number.
fn within_reach(path: &Path, end: u64) -> Result<(), Error> {
    match end.div_ceil(PAGE as u64) > files::PAGES_MAX {
        true => Err(Error::FileFar {
            path: path.into(),
            end,
        }),
        false => Ok(()),
    }
}

/// The error for what can't be used as a file.
fn unsuitable(path: &Path, why: Unsuitable) -> Error {
    let path = place(path);
    match why {
        Unsuitable::Kind => Error::FileKind { path },
        Unsuitable::InUse => Error::FileInUse { path },
        Unsuitable::Call(error) => Error::File { path, error },
    }
}

impl Deref for FileRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.0
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.mapping.part(self.start, self.bytes)
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.mapping.part_mut(self.start, self.bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let span = span(&self.mapping, 0..self.mapping.bytes());
        // A forked child has neither pages nor engine.
        if self.handle.ask(|reply| Command::Unmap(span, reply)).is_ok() {
            self.handle.give(self.held);
        }
    }
}
