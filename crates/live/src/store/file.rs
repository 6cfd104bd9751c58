//! Making a swap file: private, without a name, read and written past the host's page cache.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FallocateFlags, MemfdFlags, Mode, OFlags};

use crate::sys::Errno;

/// A swap file, or what went wrong with it.
#[derive(Debug)]
pub struct SwapFile {
    /// The file.
    pub fd: OwnedFd,
    /// True if it bypasses the host's page cache. Where not (tmpfs on old kernels), its pages
    /// take up memory of the host besides.
    pub is_direct: bool,
    /// True if its blocks are reserved, so that a write can't find the disk full.
    pub is_reserved: bool,
}

/// Makes a file without a name of `bytes` bytes in `directory`, mode 0600.
pub fn create(directory: &Path, bytes: u64) -> Result<SwapFile, Errno> {
    let (fd, is_direct) = open(directory)?;
    let is_reserved = reserve(&fd, bytes)?;
    Ok(SwapFile {
        fd,
        is_direct,
        is_reserved,
    })
}

/// Makes an empty file in place of one, for a store whose pages stay in memory.
pub fn none() -> Result<OwnedFd, Errno> {
    rustix::fs::memfd_create("tidemark-no-swap", MemfdFlags::CLOEXEC)
}

/// Opens a new, empty file without a name in `directory`, mode 0600, and reports whether it
/// bypasses the host's page cache, as it does if the file system can.
pub fn open(directory: &Path) -> Result<(OwnedFd, bool), Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let base = OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
    let nameless = base | OFlags::TMPFILE;
    match rustix::fs::open(directory, nameless | OFlags::DIRECT, mode) {
        Ok(fd) => Ok((fd, true)),
        Err(Errno::INVAL) => Ok((rustix::fs::open(directory, nameless, mode)?, false)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            create_and_unlink(directory, base, mode)
        }
        Err(error) => Err(error),
    }
}

/// For file systems that know no files without names.
fn create_and_unlink(directory: &Path, base: OFlags, mode: Mode) -> Result<(OwnedFd, bool), Errno> {
    let pid = rustix::process::getpid().as_raw_nonzero();
    let path = directory.join(format!(".tidemark-swap-{pid}"));
    let flags = base | OFlags::CREATE;
    let opened = match rustix::fs::open(&path, flags | OFlags::DIRECT, mode) {
        Ok(fd) => (fd, true),
        // The file may exist by now although opening it failed.
        Err(Errno::INVAL) => {
            let _ = rustix::fs::unlink(&path);
            (rustix::fs::open(&path, flags, mode)?, false)
        }
        Err(error) => return Err(error),
    };
    rustix::fs::unlinkat(rustix::fs::CWD, &path, AtFlags::empty())?;
    Ok(opened)
}

/// Gives the room of a file back. It must not be in use any more.
pub fn release(fd: impl AsFd) {
    // Blocks that were written and blocks that were not are apart in the file's map, and ext4
    // mounted with `discard` has the disk discard each stretch by itself, and waits: thousands of
    // stretches take seconds. Blocks that count as unwritten again are few long stretches.
    let bytes = rustix::fs::fstat(&fd).map_or(0, |found| found.st_size as u64);
    let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(&fd, flags, 0, bytes);
    // The room comes back when the last descriptor is closed, if not now.
    let _ = rustix::fs::ftruncate(&fd, 0);
}

/// Gives a file its size, and its blocks if the file system can; reports whether it could.
pub fn reserve(fd: impl AsFd, bytes: u64) -> Result<bool, Errno> {
    match rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            rustix::fs::ftruncate(&fd, bytes)?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
