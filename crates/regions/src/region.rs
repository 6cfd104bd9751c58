//! Regions: memory that an engine manages, as a slice.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use tidemark_core::id::VirtPage;
use tidemark_core::memory::address_space::Advice;
use tidemark_live::sys::PAGE;
use tidemark_live::sys::memory::Mapping;

use crate::command::{Command, Handle, Span};
use crate::error::Error;

/// Memory that an [`Engine`](crate::Engine) manages: a slice of bytes, zeros at first, that starts
/// at a page. Dropping it gives memory and swap back.
#[derive(Debug)]
pub struct Region {
    mapping: Mapping,
    bytes: usize,
    handle: Arc<Handle>,
}

impl Region {
    pub(crate) fn new(handle: Arc<Handle>, bytes: u64) -> Result<Region, Error> {
        if bytes == 0 {
            return Err(Error::Empty);
        }
        let Some(whole) = bytes.checked_next_multiple_of(PAGE as u64) else {
            return Err(Error::TooLarge {
                bytes,
                left: u64::MAX,
            });
        };
        handle.take(whole)?;
        Region::map(&handle, bytes as usize).inspect_err(|_| handle.give(whole))
    }

    fn map(handle: &Arc<Handle>, bytes: usize) -> Result<Region, Error> {
        let call = |what| move |error| Error::call(what, error);
        let mapping = Mapping::anonymous(bytes).map_err(call("mapping a region"))?;
        let hidden = mapping.hide_from_children();
        hidden.map_err(call("keeping a region from forked children"))?;
        let span = span(&mapping, 0..mapping.bytes());
        let mapped = handle.ask(|reply| Command::Map(span, reply))?;
        mapped.map_err(call("registering a region with userfaultfd"))?;
        Ok(Region {
            mapping,
            bytes,
            handle: Arc::clone(handle),
        })
    }

    /// The bytes as numbers, or as whatever else any bytes are a value of.
    ///
    /// # Panics
    /// If the size of the region is no multiple of `T`'s.
    pub fn as_slice_of<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self)
    }

    /// The same, to write to.
    ///
    /// # Panics
    /// As [`as_slice_of`](Self::as_slice_of).
    pub fn as_mut_slice_of<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self)
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.mapping.start()
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

    /// Makes the whole region zeros, and gives its memory and swap space back.
    ///
    /// # Errors
    /// In a forked child, or if the kernel refuses to give locked memory up.
    pub fn clear(&mut self) -> Result<(), Error> {
        let span = span(&self.mapping, 0..self.mapping.bytes());
        self.handle.ask(|reply| Command::Discard(span, reply))?;
        // What stands here is nobody's any more.
        let dropped = self.mapping.drop_contents();
        dropped.map_err(|error| Error::call("giving up the pages of a region", error))
    }

    fn part(&self, range: Range<usize>) -> Result<Span, Error> {
        let Range { start, end } = range;
        if start > end || end > self.bytes {
            let bytes = self.bytes;
            return Err(Error::Range { start, end, bytes });
        }
        Ok(span(&self.mapping, start..end))
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

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.mapping.part(0, self.bytes)
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.mapping.part_mut(0, self.bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let span = span(&self.mapping, 0..self.mapping.bytes());
        // A forked child has neither pages nor engine.
        if self.handle.ask(|reply| Command::Unmap(span, reply)).is_ok() {
            self.handle.give(self.mapping.bytes() as u64);
        }
    }
}
