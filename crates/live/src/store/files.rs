//! Files of the program whose pages are read on demand.
//!
//! They have the ring, the workers and the limits of the swap store, and are read straight into the
//! pool as slots are. A page is named by its number in its file. What is read was never stored
//! here, so that there is no sum to compare: where pages may be modified, one is taken of what has
//! come.
//!
//! # Invariants
//! 1. A file stays open until the last transfer from it is over, whoever has closed it.
//! 2. A page that the file is too short for is a failure, and never zeros.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use tidemark_core::id::{FrameId, PAGE_BYTES, PagerId, SlotId, Ticket};
use tidemark_core::pager::Direction;

use super::{Cause, Failure, SwapStore, Transfer, Work, offset_of};
use crate::machine::LiveMachine;
use crate::sys::memory::Mapping;
use crate::sys::{Errno, PAGE};

/// No file has a page of this number or of one beyond.
pub const PAGES_MAX: u64 = u32::MAX as u64;

/// A file to read pages from.
#[derive(Debug)]
pub struct Source {
    /// The file, as [`open`] has opened it.
    pub file: OwnedFd,
    /// The size that it must have, in bytes. What lies beyond on the last page reads as zeros.
    pub bytes: u64,
    /// True if its owner writes to none of its pages.
    pub is_constant: bool,
}

/// The reason why a file can't be a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsuitable {
    /// It is a folder, a pipe or a device.
    Kind,
    /// The kernel's error.
    Call(Errno),
}

/// The files that are open, by the number of their pager.
#[derive(Default)]
pub(super) struct Files(Vec<Option<Open>>);

struct Open {
    source: Source,
    /// The number of transfers that are not over.
    transfers: u32,
    is_closed: bool,
}

/// Opens a file to read pages from it, past the host's page cache where its file system can.
/// Answers its size, too.
pub fn open(path: &Path) -> Result<(OwnedFd, u64), Unsuitable> {
    // A pipe that nobody writes to is not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(Unsuitable::Call)?;
    let found = rustix::fs::fstat(&file).map_err(Unsuitable::Call)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Unsuitable::Kind);
    }
    // Of a file that is not waited for, some file systems would refuse what they can't do at once.
    let set = |flags| rustix::fs::fcntl_setfl(&file, flags);
    if set(OFlags::DIRECT).is_err() || !can_read(&file) {
        set(OFlags::empty()).map_err(Unsuitable::Call)?;
    }
    Ok((file, found.st_size as u64))
}

/// Returns true if pages of `file` can be read as it is: some file systems refuse what bypasses
/// the page cache only then.
fn can_read(file: &OwnedFd) -> bool {
    let Ok(mut page) = Mapping::anonymous(PAGE) else {
        return false;
    };
    rustix::io::pread(file, page.first_pages(1), 0).is_ok()
}

impl SwapStore {
    /// Reads pages of `source` from now on, by the number that is answered.
    pub fn open_file(&mut self, source: Source) -> PagerId {
        assert!(source.bytes.div_ceil(PAGE_BYTES) <= PAGES_MAX);
        let opened = Some(Open {
            source,
            transfers: 0,
            is_closed: false,
        });
        let files = &mut self.files.0;
        let vacant = files.iter().position(Option::is_none);
        let number = vacant.unwrap_or(files.len());
        match vacant {
            Some(number) => files[number] = opened,
            None => files.push(opened),
        }
        PagerId(number as u32)
    }

    /// Closes a file, as soon as no transfer needs it.
    pub fn close_file(&mut self, file: PagerId) {
        self.files.get_mut(file).is_closed = true;
        self.files.close_unused(file);
    }

    /// The present size of a file, in bytes.
    pub fn size_of_file(&self, file: PagerId) -> Result<u64, Errno> {
        let found = rustix::fs::fstat(&self.files.get(file).file)?;
        Ok(found.st_size as u64)
    }

    /// Has a file end elsewhere from now on: so many bytes of it are there.
    pub fn set_size_of_file(&mut self, file: PagerId, bytes: u64) {
        self.files.get_mut(file).source.bytes = bytes;
    }

    /// Takes the last reading of a file that failed, and forgets those before it.
    pub fn take_failure_of(&mut self, file: PagerId) -> Option<Failure> {
        let failures = std::mem::take(&mut self.failures);
        let (of_file, others) = failures
            .into_iter()
            .partition::<VecDeque<Failure>, _>(|failure| failure.file == Some(file));
        self.failures = others;
        of_file.back().copied()
    }

    /// Opens every file anew in a forked child, where the old descriptors mean nothing. `reopen` is
    /// given the pager and the number that the file has in its parent's engine.
    pub fn reopen_files(
        &mut self,
        mut reopen: impl FnMut(PagerId, RawFd) -> Result<OwnedFd, Errno>,
    ) -> Result<(), (PagerId, Errno)> {
        for (number, opened) in (0..).zip(&mut self.files.0) {
            let Some(opened) = opened else { continue };
            let (pager, old) = (PagerId(number), &mut opened.source.file);
            let file = reopen(pager, old.as_raw_fd()).map_err(|error| (pager, error))?;
            std::mem::forget(std::mem::replace(old, file));
        }
        Ok(())
    }

    /// Starts to read as many pages of a file as there are `frames`, from its page `first` on. It
    /// goes on as [`start`](Self::start) does.
    pub fn start_read(
        &mut self,
        ticket: Ticket,
        (file, first): (PagerId, u64),
        frames: &[FrameId],
        machine: &mut LiveMachine,
    ) {
        assert!(first + frames.len() as u64 <= PAGES_MAX);
        let first = SlotId(first as u32);
        let transfer = self.add_transfer(ticket, Direction::Fetch, first, frames);
        self.transfers[transfer as usize].work = Work::File(file);
        self.files.get_mut(file).transfers += 1;
        match machine.prepare(frames) {
            Ok(()) => self.queue(transfer, 0, frames.len()),
            Err(error) => {
                self.transfers[transfer as usize].failure = Some((first, Cause::Memory(error)));
            }
        }
        machine.hold(frames);
        if self.transfers[transfer as usize].parts_left == 0 {
            self.finish(transfer, machine);
        }
    }

    /// Ends a transfer from a file, which has brought what was asked for unless it has failed.
    pub(super) fn finish_read(
        &mut self,
        file: PagerId,
        transfer: &Transfer,
        machine: &mut LiveMachine,
    ) {
        let opened = self.files.get_mut(file);
        opened.transfers -= 1;
        let (is_constant, end) = (opened.source.is_constant, opened.source.bytes);
        let frames = &transfer.frames[..transfer.pages as usize];
        for (page, frame) in (0..).zip(frames) {
            if transfer.failure.is_some() {
                break;
            }
            let kept = end.saturating_sub(offset_of(transfer.slot(page)));
            if kept < PAGE_BYTES {
                machine.pool_mut().bytes_of_mut(*frame)[kept as usize..].fill(0);
            }
            if is_constant {
                machine.set_constant(*frame);
            } else {
                let sum = machine.sum(*frame);
                machine.set_sum(*frame, sum);
            }
        }
        self.files.close_unused(file);
    }
}

impl Work {
    /// The file that is read, if it is not the swap file.
    pub(super) fn file(self) -> Option<PagerId> {
        match self {
            Work::File(file) => Some(file),
            Work::Pages | Work::Segment(..) | Work::Single(..) => None,
        }
    }
}

impl Files {
    /// The bytes that so many pages from `start` on must bring: all, but where the file ends.
    pub(super) fn bytes_due(&self, work: Work, start: SlotId, pages: u8) -> usize {
        let end = work.file().map_or(u64::MAX, |file| self.get(file).bytes);
        let due = end.saturating_sub(offset_of(start));
        due.min(u64::from(pages) * PAGE_BYTES) as usize
    }

    pub(super) fn get(&self, file: PagerId) -> &Source {
        &self.find(file).source
    }

    fn find(&self, file: PagerId) -> &Open {
        let found = self.0[file.0 as usize].as_ref();
        found.expect("a file that is read is open")
    }

    fn get_mut(&mut self, file: PagerId) -> &mut Open {
        let found = self.0[file.0 as usize].as_mut();
        found.expect("a file that is read is open")
    }

    fn close_unused(&mut self, file: PagerId) {
        let opened = self.find(file);
        if opened.is_closed && opened.transfers == 0 {
            self.0[file.0 as usize] = None;
        }
    }
}
