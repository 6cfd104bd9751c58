//! Regions by their addresses, as the calls of C name them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidemark_regions::{Engine, Error, FileRegion, FileRegionMut, Pager, Region};

use crate::pagers::{Called, ERRNO_MAX, Failed};
use crate::status::Trouble;
use crate::types::{TIDEMARK_ARGUMENT, TIDEMARK_FILE, tidemark_pager};

const PAGE: usize = 4096;

static REGIONS: Mutex<BTreeMap<usize, Arc<Mapped>>> = Mutex::new(BTreeMap::new());

/// The regions that there are.
pub(crate) struct Regions;

/// A region, and what it was made of.
pub(crate) struct Mapped {
    memory: Memory,
    /// The program's functions, if it is theirs. They go after the region.
    called: Option<Arc<Called>>,
}

/// A region, by what may be done to it.
enum Memory {
    Own(Mutex<Region>),
    Read(FileRegion),
    Write(FileRegionMut),
}

/// The memory that a call asks for.
pub(crate) enum Request {
    Zeros(u64),
    File(PathBuf, Range<u64>, Use),
    Store(Arc<dyn Pager>, Use),
    Called(Arc<Called>, Use),
}

/// The use that is made of the contents of a file or a pager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// A copy is modified.
    Copy,
    /// The contents are read.
    Read,
    /// The contents are modified in place.
    Write,
}

impl Request {
    /// The arguments of `mmap`.
    pub(crate) fn new(
        length: usize,
        (prot, flags): (c_int, c_int),
        fd: c_int,
        offset: i64,
    ) -> Result<Request, Trouble> {
        if length == 0 {
            return Err(Trouble::argument("`length` is 0; needs 1"));
        }
        let bytes = length as u64;
        let Some(to) = use_of(prot, flags)? else {
            return Ok(Request::Zeros(bytes));
        };
        let offset = u64::try_from(offset);
        let offset =
            offset.map_err(|_| Trouble::argument("`offset` is below 0; needs 0 or more"))?;
        if !offset.is_multiple_of(PAGE as u64) {
            let message = format!("`offset` is {offset}; needs a multiple of {PAGE}");
            return Err(Trouble::argument(message));
        }
        let range = offset..offset + bytes;
        let path = path_of(fd, to == Use::Write, range.end)?;
        Ok(Request::File(path, range, to))
    }

    /// The contents of the store at an address.
    pub(crate) fn of_store(url: &str, prot: c_int, flags: c_int) -> Result<Request, Trouble> {
        let to = use_of_contents(prot, flags)?;
        Ok(Request::Store(tidemark_stores::open(url)?, to))
    }

    /// The contents that the program's functions have.
    ///
    /// # Safety
    /// As for [`Called::new`].
    pub(crate) unsafe fn of_pager(
        pager: *const tidemark_pager,
        prot: c_int,
        flags: c_int,
    ) -> Result<Request, Trouble> {
        let to = use_of_contents(prot, flags)?;
        // SAFETY: the caller's.
        let called = unsafe { Called::new(pager, to == Use::Write) }?;
        Ok(Request::Called(Arc::new(called), to))
    }

    /// The bytes that are asked for.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Request::Zeros(bytes) => *bytes,
            Request::File(_, range, _) => range.end - range.start,
            Request::Store(pager, _) => pager.bytes(),
            Request::Called(called, _) => called.bytes(),
        }
    }
}

/// The use that `prot` and `flags` ask for, or none for zeros.
fn use_of(prot: c_int, flags: c_int) -> Result<Option<Use>, Trouble> {
    let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    if ![read, write].contains(&prot) {
        let needs = "PROT_READ, or PROT_READ | PROT_WRITE";
        return Err(Trouble::argument(format!(
            "`prot` is {prot}; needs {needs}"
        )));
    }
    let hints = libc::MAP_NORESERVE | libc::MAP_POPULATE | libc::MAP_NONBLOCK;
    let kind = flags & !hints;
    if kind == libc::MAP_PRIVATE | libc::MAP_ANONYMOUS {
        return Ok(None);
    }
    let is_shared = match kind {
        libc::MAP_PRIVATE => false,
        libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE => true,
        _ => {
            let needs = "MAP_PRIVATE or MAP_SHARED, with MAP_PRIVATE also MAP_ANONYMOUS";
            let message = format!("`flags` is {flags:#x}; needs {needs}");
            return Err(Trouble::argument(message));
        }
    };
    Ok(Some(match (prot == write, is_shared) {
        (false, _) => Use::Read,
        (true, false) => Use::Copy,
        (true, true) => Use::Write,
    }))
}

/// The use that `prot` and `flags` ask for, of contents that are not zeros.
fn use_of_contents(prot: c_int, flags: c_int) -> Result<Use, Trouble> {
    use_of(prot, flags)?.ok_or_else(|| {
        let needs = "MAP_PRIVATE or MAP_SHARED, without MAP_ANONYMOUS";
        Trouble::argument(format!("`flags` is {flags:#x}; needs {needs}"))
    })
}

/// The path of the open file `fd`, which must have `bytes` bytes, and be open for writing if
/// `is_written`.
fn path_of(fd: c_int, is_written: bool, bytes: u64) -> Result<PathBuf, Trouble> {
    // SAFETY: it takes numbers alone.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        let message = format!("`fd` is {fd}; needs an open file");
        return Err(Trouble::new(TIDEMARK_ARGUMENT, message, libc::EBADF));
    }
    let access = flags & libc::O_ACCMODE;
    if access == libc::O_WRONLY || (is_written && access != libc::O_RDWR) {
        let needs = if is_written { "read and write" } else { "read" };
        let message = format!("`fd` {fd} is open otherwise; needs one that is open to {needs}");
        return Err(Trouble::new(TIDEMARK_ARGUMENT, message, libc::EACCES));
    }
    let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
    // `mmap` makes no file longer, and a region has no pages behind its end.
    let size = fs::metadata(&path).map_or(0, |found| found.size());
    if is_written && size < bytes {
        let path = fs::read_link(&path).unwrap_or(path);
        let message = format!(
            "`{}` has {size} bytes; needs {bytes}: make it longer by `ftruncate`",
            path.display()
        );
        return Err(Trouble::new(TIDEMARK_FILE, message, libc::EINVAL));
    }
    Ok(path)
}

impl Mapped {
    /// Maps what is asked for.
    pub(crate) fn new(engine: &Engine, request: Request) -> Result<Mapped, Error> {
        let called = match &request {
            Request::Called(called, _) => Some(Arc::clone(called)),
            Request::Zeros(_) | Request::File(..) | Request::Store(..) => None,
        };
        let memory = match request {
            Request::Zeros(bytes) => Memory::own(engine.zeros(bytes)?),
            Request::File(path, range, to) => {
                let (offset, bytes) = (range.start, Some(range.end - range.start));
                match to {
                    Use::Copy => Memory::own(engine.copy_file(&path, offset, bytes)?),
                    Use::Read => Memory::Read(engine.read_file(&path, offset, bytes)?),
                    Use::Write => Memory::Write(engine.write_file(&path, offset, bytes)?),
                }
            }
            Request::Store(pager, to) => Memory::of_pager(engine, pager, to)?,
            Request::Called(pager, to) => Memory::of_pager(engine, pager, to)?,
        };
        called.iter().for_each(|called| called.keep());
        Ok(Mapped { memory, called })
    }

    /// Has something done with the region.
    pub(crate) fn region<T>(&self, work: impl FnOnce(&Region) -> T) -> T {
        match &self.memory {
            Memory::Own(region) => work(&lock(region)),
            Memory::Read(region) => work(region),
            Memory::Write(region) => work(region),
        }
    }

    /// Makes whole pages of private memory what they were at first. What is a file's stays.
    pub(crate) fn discard(&self, range: Range<usize>) -> Result<(), Error> {
        match &self.memory {
            Memory::Own(region) => lock(region).clear_pages(range),
            Memory::Read(_) | Memory::Write(_) => Ok(()),
        }
    }

    /// Writes the modified pages, if they go to a file or a pager.
    pub(crate) fn flush(&self, range: Range<usize>) -> Result<(), Trouble> {
        match &self.memory {
            Memory::Own(_) | Memory::Read(_) => Ok(()),
            Memory::Write(region) => region.flush(range).map_err(|error| match &error {
                Error::PagerWrite { .. } => Trouble::from(error).with_errno(self.errno()),
                _ => Trouble::from(error),
            }),
        }
    }

    /// The last call of the program's functions that failed, if the region is theirs.
    pub(crate) fn failed(&self) -> Option<Failed> {
        self.called.as_ref()?.failed()
    }

    /// The errno of it.
    fn errno(&self) -> Option<c_int> {
        let error = self.failed()?.error;
        (1..=ERRNO_MAX).contains(&error).then_some(error)
    }
}

impl Memory {
    fn own(region: Region) -> Memory {
        Memory::Own(Mutex::new(region))
    }

    fn of_pager(engine: &Engine, pager: impl Pager + 'static, to: Use) -> Result<Memory, Error> {
        Ok(match to {
            Use::Copy => Memory::own(engine.from_pager(pager)?),
            Use::Read => Memory::Read(engine.read_pager(pager)?),
            Use::Write => Memory::Write(engine.write_pager(pager)?),
        })
    }
}

impl Regions {
    /// Adds a region, and answers its address.
    pub(crate) fn add(mapped: Mapped) -> usize {
        let address = mapped.region(Region::address);
        lock(&REGIONS).insert(address, Arc::new(mapped));
        address
    }

    /// Ends the region that has this address and this length.
    pub(crate) fn remove(address: usize, bytes: usize) -> Result<(), Trouble> {
        let removed = {
            let mut regions = lock(&REGIONS);
            let found = regions.get(&address).ok_or_else(|| unknown(address))?;
            let has = found.region(|region| region.len());
            if has.next_multiple_of(PAGE) != bytes.checked_next_multiple_of(PAGE).unwrap_or(0) {
                return Err(Trouble::argument(format!(
                    "`length` is {bytes}; needs {has}: a region is unmapped as a whole"
                )));
            }
            regions.remove(&address)
        };
        // What is modified is written without the lock.
        drop(removed);
        Ok(())
    }

    /// The region with all of these bytes, and where they are in it.
    pub(crate) fn find(
        address: usize,
        bytes: usize,
    ) -> Result<(Arc<Mapped>, Range<usize>), Trouble> {
        let regions = lock(&REGIONS);
        let found = regions.range(..=address).next_back();
        let (start, mapped) = found.ok_or_else(|| unknown(address))?;
        let (first, has) = (address - start, mapped.region(|region| region.len()));
        if first >= has.next_multiple_of(PAGE) {
            return Err(unknown(address));
        }
        let first = first.min(has);
        let end = first.saturating_add(bytes);
        // A length may be that of whole pages.
        let is_within = end <= has.next_multiple_of(PAGE);
        let end = if is_within { end.min(has) } else { end };
        Ok((Arc::clone(mapped), first..end))
    }
}

fn unknown(address: usize) -> Trouble {
    let message = format!("`addr` is {address:#x}; needs an address of `tidemark_mmap`");
    Trouble::argument(message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
