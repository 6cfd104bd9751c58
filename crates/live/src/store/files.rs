//! Files of the program whose pages are read on demand, and written when they are modified.
//!
//! They have the ring, the workers and the limits of the swap store, and are read into the pool as
//! slots are. A page is named by its number in its file. What is read was never stored
//! here, so that there is no sum to compare: where pages may be modified, one is taken of what has
//! come.
//!
//! # Invariants
//! 1. A file stays open until the last transfer from it is over, even if it was closed.
//! 2. A page that the file is too short for is a failure, and never zeros. It is not written: that
//!    would make the file longer again.
//! 3. A write has one page after the other of the file, each as a whole. The last page, of which
//!    the file may have a part, is written by itself: what bypasses the page cache comes in blocks.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FileType, FlockOperation, Mode, OFlags};

use tidemark_core::id::{FrameId, PAGE_BYTES, PagerId, SlotId, Ticket};
use tidemark_core::seams::pager::Direction;

use super::pagers::Contents;
use super::{Cause, Failure, Part, SwapStore, Transfer, Work, offset_of};
use crate::machine::LiveMachine;
use crate::sys::memory::Mapping;
use crate::sys::ring::Buffers;
use crate::sys::{Errno, PAGE};

/// No file has a page of this number or of one beyond.
pub const PAGES_MAX: u64 = u32::MAX as u64;

/// A file to read pages from, and to write them to.
#[derive(Debug)]
pub struct Source {
    /// The file, as [`open`] or [`open_to_write`] has opened it, or a pager.
    pub file: Contents,
    /// The file, opened to go through the page cache, if pages are written.
    pub cached: Option<Arc<Cached>>,
    /// The size that it must have, in bytes. What lies beyond on the last page reads as zeros.
    pub bytes: u64,
    /// True if its owner writes to none of its pages.
    pub is_constant: bool,
}

/// The reason why a file can't be a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsuitable {
    /// The file is a folder, a pipe or a device.
    Kind,
    /// Another, here or in another process, writes to it or has locked it.
    InUse,
    /// The kernel's error.
    Call(Errno),
}

/// A file that is opened to be written to.
#[derive(Debug)]
pub struct Writable {
    /// The file, opened to bypass the host's page cache where its file system can.
    pub file: OwnedFd,
    /// The file, opened to go through the page cache.
    pub cached: Arc<Cached>,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// A file that is written by way of the page cache, and locked as long as this is there, if it was
/// locked. The lock ends with it also while a child that another thread forks has the file open,
/// and not when such a child lets go of it.
#[derive(Debug)]
pub struct Cached {
    file: OwnedFd,
    process: u32,
}

/// The files that are open, by the number of their pager.
#[derive(Default)]
pub(super) struct Files(Vec<Option<Open>>);

struct Open {
    source: Source,
    /// The number of transfers that are not over.
    transfers: u32,
    /// The transfers under way that write.
    writes: BTreeSet<Ticket>,
    is_closed: bool,
}

/// Opens a file to read pages from it, past the host's page cache where its file system can.
/// Answers its size, too.
pub fn open(path: &Path) -> Result<(OwnedFd, u64), Unsuitable> {
    let (file, bytes) = open_cached(path)?;
    let set = |flags| rustix::fs::fcntl_setfl(&file, flags);
    if set(OFlags::DIRECT).is_err() || !can_read(&file) {
        set(OFlags::empty()).map_err(Unsuitable::Call)?;
    }
    Ok((file, bytes))
}

/// Opens a file to read pages from it by way of the host's page cache. Answers its size, too.
pub fn open_cached(path: &Path) -> Result<(OwnedFd, u64), Unsuitable> {
    // A pipe without a writer is not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(Unsuitable::Call)?;
    let found = rustix::fs::fstat(&file).map_err(Unsuitable::Call)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Unsuitable::Kind);
    }
    // Of a file that is not waited for, some file systems would refuse what they can't do at once.
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(Unsuitable::Call)?;
    Ok((file, found.st_size as u64))
}

/// Opens a file to read and to write pages of it, and locks it (`flock`) against others that do.
/// One that `is_new` is made, or emptied. One that has less than `bytes` bytes is made so long,
/// with blocks for what is added where its file system can, so that a page that leaves memory finds
/// room.
pub fn open_to_write(path: &Path, bytes: u64, is_new: bool) -> Result<Writable, Unsuitable> {
    let call = Unsuitable::Call;
    let (cached, mut size) = open_cached_to_write(path, is_new)?;
    // Some file systems know no locks, and say so.
    let locked = rustix::fs::flock(&cached, FlockOperation::NonBlockingLockExclusive);
    if locked == Err(Errno::WOULDBLOCK) {
        return Err(Unsuitable::InUse);
    }
    // The lock ends with this, whatever fails.
    let cached = Cached {
        file: cached,
        process: std::process::id(),
    };
    if is_new {
        rustix::fs::ftruncate(&cached.file, 0).map_err(call)?;
        size = 0;
    }
    if size < bytes {
        lengthen(&cached.file, size, bytes).map_err(call)?;
        size = bytes;
    }
    open_past_cache(cached, size)
}

/// Opens the file of a mapping to read and to write pages of it, without a lock: the program might
/// hold or want one.
pub fn open_beside(path: &Path) -> Result<Writable, Unsuitable> {
    let (file, size) = open_cached_to_write(path, false)?;
    let cached = Cached {
        file,
        process: std::process::id(),
    };
    open_past_cache(cached, size)
}

/// Opens a file to read and to write it. Answers its size, too.
fn open_cached_to_write(path: &Path, is_new: bool) -> Result<(OwnedFd, u64), Unsuitable> {
    let call = Unsuitable::Call;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let (flags, mode) = match is_new {
        true => (flags | OFlags::CREATE, Mode::from_raw_mode(0o666)),
        false => (flags, Mode::empty()),
    };
    let file = rustix::fs::open(path, flags, mode).map_err(call)?;
    let found = rustix::fs::fstat(&file).map_err(call)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok((file, found.st_size as u64)),
        _ => Err(Unsuitable::Kind),
    }
}

/// Opens a file once more, past the host's page cache where its file system can.
fn open_past_cache(cached: Cached, bytes: u64) -> Result<Writable, Unsuitable> {
    let call = Unsuitable::Call;
    rustix::fs::fcntl_setfl(&cached.file, OFlags::empty()).map_err(call)?;
    // By its number, as another file may have the path by now.
    let again = format!("/proc/self/fd/{}", cached.file.as_raw_fd());
    let direct = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
    let file = match rustix::fs::open(again, direct, Mode::empty()) {
        Ok(file) if can_read(&file) => file,
        Ok(_) | Err(_) => rustix::io::fcntl_dupfd_cloexec(&cached.file, 0).map_err(call)?,
    };
    Ok(Writable {
        file,
        cached: Arc::new(cached),
        bytes,
    })
}

impl Cached {
    /// Ends the lock, if this is the process that has taken it.
    pub fn unlock(&self) {
        if self.process == std::process::id() {
            // It fails where there are no locks.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }

    /// The number of the file, for another thread of this process.
    pub fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Waits until all that was written to the file is on its disk.
    pub fn synchronize(&self) -> Result<(), Errno> {
        rustix::fs::fdatasync(&self.file)
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        self.unlock();
    }
}

fn lengthen(file: &OwnedFd, size: u64, bytes: u64) -> Result<(), Errno> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), size, bytes - size) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::fs::ftruncate(file, bytes),
        other => other,
    }
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
            writes: BTreeSet::new(),
            is_closed: false,
        });
        let files = &mut self.files.0;
        let vacant = files.iter().position(Option::is_none);
        let number = vacant.unwrap_or(files.len());
        match vacant {
            Some(number) => files[number] = opened,
            None => files.push(opened),
        }
        // What one said that had this number before is not of this one.
        let pager = PagerId(number as u32);
        self.take_text_of(Some(pager));
        pager
    }

    /// Closes a file, as soon as no transfer needs it.
    pub fn close_file(&mut self, file: PagerId) {
        self.files.get_mut(file).is_closed = true;
        self.files.close_unused(file);
    }

    /// The present size of a file, in bytes; of a pager, the largest number.
    pub fn size_of_file(&self, file: PagerId) -> Result<u64, Errno> {
        let Contents::File(file) = &self.files.get(file).file else {
            // A pager has what it said at first.
            return Ok(u64::MAX);
        };
        let found = rustix::fs::fstat(file)?;
        Ok(found.st_size as u64)
    }

    /// The file by way of the page cache, if pages are written.
    pub fn cached_file(&self, file: PagerId) -> Option<Arc<Cached>> {
        self.files.get(file).cached.clone()
    }

    /// The number by which the engine has a file that is only read.
    pub fn number_of_file(&self, file: PagerId) -> RawFd {
        self.files.get(file).file.as_file().as_raw_fd()
    }

    /// The first and the last of the writes of a file that are not over.
    pub fn writes_of(&self, file: PagerId) -> Option<(Ticket, Ticket)> {
        let writes = &self.files.find(file).writes;
        Some((*writes.first()?, *writes.last()?))
    }

    /// Sets the size of a file that has become longer or shorter to `bytes`.
    pub fn set_size_of_file(&mut self, file: PagerId, bytes: u64) {
        self.files.get_mut(file).source.bytes = bytes;
    }

    /// Takes the last transfer of a file in one direction that failed, and forgets those before it.
    pub fn take_failure_of(&mut self, file: PagerId, direction: Direction) -> Option<Failure> {
        let failures = std::mem::take(&mut self.failures);
        let is_wanted = |it: &Failure| it.file == Some(file) && it.direction == direction;
        let (of_file, others) = failures
            .into_iter()
            .partition::<VecDeque<Failure>, _>(is_wanted);
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
            let Contents::File(old) = &mut opened.source.file else {
                continue;
            };
            let pager = PagerId(number);
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

    /// Starts to write as many pages of a file as there are `frames`, from its page `first` on,
    /// likewise. Where the file has been cut meanwhile nothing is written, and it fails as short
    /// from the first page on that is not there any more.
    pub fn start_write(
        &mut self,
        ticket: Ticket,
        (file, first): (PagerId, u64),
        frames: &[FrameId],
        machine: &mut LiveMachine,
    ) {
        let size = self.size_of_file(file).unwrap_or(u64::MAX);
        let home = SlotId(first as u32);
        let transfer = self.add_transfer(ticket, Direction::Store, home, frames);
        self.transfers[transfer as usize].work = Work::File(file);
        let opened = self.files.get_mut(file);
        opened.transfers += 1;
        opened.writes.insert(ticket);
        for frame in frames {
            let sum = machine.sum(*frame);
            machine.set_sum(*frame, sum);
        }
        machine.hold(frames);
        let end = self.files.get(file).bytes;
        let behind = offset_of(SlotId(home.0 + frames.len() as u32));
        if size < end.min(behind) {
            let cut = SlotId((size / PAGE_BYTES).max(first) as u32);
            self.transfers[transfer as usize].failure = Some((cut, Cause::Short));
            return self.finish(transfer, machine);
        }
        let whole = match end < behind {
            true => frames.len() - 1,
            false => frames.len(),
        };
        if whole > 0 {
            self.queue(transfer, 0, whole);
        }
        if whole < frames.len() {
            self.queue(transfer, whole, 1);
        }
    }

    /// The memory of a part of a transfer with a file: no more is written than the file has.
    pub(super) fn buffers_of_file(
        &self,
        transfer: &Transfer,
        part: Part,
        machine: &LiveMachine,
    ) -> Buffers {
        let buffers = Buffers::of_frames(machine.pool(), &transfer.frames[part.range()]);
        match transfer.direction {
            Direction::Fetch => buffers,
            Direction::Store => {
                let start = transfer.slot(part.start);
                buffers.shortened(self.files.bytes_due(transfer.work, start, part.pages))
            }
        }
    }

    /// Ends a transfer with a file, which has moved what was asked for unless it has failed.
    pub(super) fn finish_file(
        &mut self,
        file: PagerId,
        transfer: &Transfer,
        machine: &mut LiveMachine,
    ) {
        let opened = self.files.get_mut(file);
        opened.transfers -= 1;
        opened.writes.remove(&transfer.ticket);
        if transfer.direction == Direction::Fetch {
            self.finish_read(file, transfer, machine);
        }
        self.files.close_unused(file);
    }

    fn finish_read(&mut self, file: PagerId, transfer: &Transfer, machine: &mut LiveMachine) {
        let source = self.files.get(file);
        let (is_constant, end) = (source.is_constant, source.bytes);
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
    }
}

impl Source {
    /// The descriptor for a transfer at `offset`: the page of which the file has a part is written
    /// by way of the page cache.
    pub(super) fn fitting(&self, direction: Direction, offset: u64) -> &OwnedFd {
        let is_partial = self.bytes.saturating_sub(offset) < PAGE_BYTES;
        match (&self.cached, direction) {
            (Some(cached), Direction::Store) if is_partial => &cached.file,
            (Some(_) | None, _) => self.file.as_file(),
        }
    }
}

impl Work {
    /// The file that is read or written, if it is not the swap file.
    pub(super) fn file(self) -> Option<PagerId> {
        match self {
            Work::File(file) => Some(file),
            Work::Pages | Work::Segment(..) | Work::Single(..) => None,
        }
    }
}

impl Files {
    /// The bytes that `pages` from `start` on must bring: all, but where the file ends.
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
        found.expect("a file in use is open")
    }

    fn get_mut(&mut self, file: PagerId) -> &mut Open {
        let found = self.0[file.0 as usize].as_mut();
        found.expect("a file in use is open")
    }

    fn close_unused(&mut self, file: PagerId) {
        let opened = self.find(file);
        if opened.is_closed && opened.transfers == 0 {
            self.0[file.0 as usize] = None;
        }
    }
}
