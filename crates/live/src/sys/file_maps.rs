//! Mappings of the program's files, as the engine changes them; and what the kernel shows of a
//! file, and of others that have it open.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, StatxFlags};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use super::Errno;

/// Files of these file systems have their contents in memory, or have none: tmpfs and memfd,
/// ramfs, hugetlbfs, proc, sysfs, debugfs, tracefs, cgroup, cgroup2.
const WITHOUT_A_DISK: [u32; 9] = [
    0x0102_1994,
    0x8584_58f6,
    0x9584_58f6,
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x0027_e0eb,
    0x6367_7270,
];
/// `STATX_ATTR_DAX` (Linux `include/uapi/linux/stat.h`).
const ATTRIBUTE_DAX: u64 = 0x0020_0000;
/// The facts of a file that is mapped.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its absolute path, or the one that it had.
    pub path: PathBuf,
    /// Its device and its number there.
    pub identity: (u64, u64),
    /// Its size in bytes.
    pub bytes: u64,
    /// True if it is a regular file.
    pub is_regular: bool,
    /// True if its contents are in memory by themselves, or come from the kernel.
    pub is_in_memory: bool,
    /// True if this descriptor can be written to.
    pub is_open_for_writing: bool,
}

/// Finds out about an open file.
pub fn facts(file: &OwnedFd) -> Result<Facts, Errno> {
    let found = rustix::fs::fstat(file)?;
    let flags = rustix::fs::fcntl_getfl(file)?;
    let system = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(Facts {
        path: path_of(file)?,
        identity: (found.st_dev, found.st_ino),
        bytes: u64::try_from(found.st_size).unwrap_or(0),
        is_regular: FileType::from_raw_mode(found.st_mode) == FileType::RegularFile,
        is_in_memory: WITHOUT_A_DISK.contains(&system) || is_direct_access(file),
        is_open_for_writing: flags & OFlags::ACCMODE != OFlags::RDONLY,
    })
}

/// The path by which a file was opened. One that has been removed has the path it had.
fn path_of(file: &OwnedFd) -> Result<PathBuf, Errno> {
    use std::os::unix::ffi::OsStringExt;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut path = rustix::fs::readlink(link.as_str(), Vec::new())?.into_bytes();
    if let Some(kept) = path.strip_suffix(b" (deleted)") {
        path.truncate(kept.len());
    }
    Ok(std::ffi::OsString::from_vec(path).into())
}

/// Returns true if the file's pages are the device's own memory (DAX).
fn is_direct_access(file: &OwnedFd) -> bool {
    let flags = rustix::fs::AtFlags::EMPTY_PATH;
    let found = rustix::fs::statx(file, "", flags, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.bits() & ATTRIBUTE_DAX != 0)
}

/// Returns true if another process is known to have the file behind `file` open for writing.
/// `file` is open for reading only. The kernel grants a lease for reading only where no process has
/// it open for writing; a process that may take no leases learns nothing.
pub fn is_written_by_others(file: &OwnedFd) -> bool {
    let lease = |kind: i32| {
        let number = file.as_raw_fd();
        // SAFETY: a call with integers alone, about an open file, and this thread's error number.
        unsafe {
            let answer = libc::syscall(libc::SYS_fcntl, number, libc::F_SETLEASE, kind);
            (answer, *libc::__errno_location())
        }
    };
    match lease(libc::F_RDLCK) {
        (0, _) => {
            lease(libc::F_UNLCK);
            false
        }
        (_, error) => error == libc::EAGAIN,
    }
}

/// Opens a file by its path, if that still leads to the file with this identity.
pub fn open_same(path: &Path, identity: (u64, u64), flags: OFlags) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?;
    let found = rustix::fs::fstat(&file)?;
    match (found.st_dev, found.st_ino) == identity {
        true => Ok(file),
        false => Err(Errno::STALE),
    }
}

/// A mapping of a file, as the program has made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Native {
    /// First address.
    pub start: usize,
    /// Size in bytes, whole pages.
    pub bytes: usize,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// True if it can be written to.
    pub is_writable: bool,
    /// True if it is shared.
    pub is_shared: bool,
}

/// Puts private memory without contents in the place of a file's mapping. Nothing may be registered
/// there: the calling thread would have to read the message about it.
pub fn replace(mapping: Native) -> Result<(), Errno> {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    assert!(!super::memory::overlaps_own(
        mapping.start,
        mapping.start + mapping.bytes
    ));
    // SAFETY: addresses of the program, which has just mapped a file there and waits.
    unsafe { rustix::mm::mmap_anonymous(mapping.start as *mut _, mapping.bytes, rights, flags)? };
    Ok(())
}

/// Puts a file's mapping back where [`replace`] has taken it from.
pub fn restore(mapping: Native, file: impl AsFd) -> Result<(), Errno> {
    let mut rights = ProtFlags::READ;
    rights.set(ProtFlags::WRITE, mapping.is_writable);
    let kind = match mapping.is_shared {
        true => MapFlags::SHARED,
        false => MapFlags::PRIVATE,
    };
    let (start, flags) = (mapping.start as *mut _, kind | MapFlags::FIXED);
    // SAFETY: as for `replace`.
    unsafe { rustix::mm::mmap(start, mapping.bytes, rights, flags, file, mapping.offset)? };
    Ok(())
}

/// Puts a file's mapping back, by a number of the calling thread's table, which is open until this
/// is over.
pub fn restore_numbered(mapping: Native, file: RawFd) -> Result<(), Errno> {
    assert!(!super::memory::overlaps_own(
        mapping.start,
        mapping.start + mapping.bytes
    ));
    // SAFETY: by the caller's word.
    restore(mapping, unsafe { BorrowedFd::borrow_raw(file) })
}

/// Writes a range of the program's memory to a file of that number. A page that is missing is a
/// fault of the calling thread.
pub fn write_numbered((start, bytes): (usize, usize), file: RawFd, at: u64) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes {
        let (from, left) = (start + done, bytes - done);
        // SAFETY: the kernel reads the program's memory, and refuses what is not mapped.
        let written = unsafe {
            let offset = at + done as u64;
            libc::syscall(libc::SYS_pwrite64, file, from, left, offset)
        };
        match written {
            1.. => done += written as usize,
            0 => return Err(Errno::IO),
            _ => match super::last_error() {
                Errno::INTR => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Waits until a file of that number is on its disk.
pub fn synchronize_numbered(file: RawFd) -> Result<(), Errno> {
    // SAFETY: open, by the word of the caller, until this is over.
    rustix::fs::fdatasync(unsafe { BorrowedFd::borrow_raw(file) })
}

/// Changes the program's rights to a range of its own, as its call would. `rights` are those of
/// that call.
pub fn protect(start: usize, bytes: usize, rights: u32) -> Result<(), Errno> {
    assert!(!super::memory::overlaps_own(start, start + bytes));
    let rights = MprotectFlags::from_bits_retain(rights);
    // SAFETY: what the program has asked for, of memory that is its own.
    unsafe { rustix::mm::mprotect(start as *mut _, bytes, rights) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_open_for_writing_is_known_as_such() {
        let path = std::env::temp_dir().join(format!("tidemark-facts-{}", std::process::id()));
        std::fs::write(&path, b"12345").unwrap();
        let reader = OwnedFd::from(std::fs::File::open(&path).unwrap());
        let found = facts(&reader).unwrap();
        assert_eq!((found.bytes, found.is_regular), (5, true));
        assert!(!found.is_open_for_writing && found.path.is_absolute());
        assert!(!is_written_by_others(&reader));
        let writer = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        // Who may take no leases learns nothing, and the file system may have none.
        let _: bool = is_written_by_others(&reader);
        assert!(facts(&OwnedFd::from(writer)).unwrap().is_open_for_writing);
        assert!(open_same(&path, found.identity, OFlags::RDONLY).is_ok());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(facts(&reader).unwrap().path, found.path);
        assert!(open_same(&path, found.identity, OFlags::RDONLY).is_err());
        let memory = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(facts(&memory).unwrap().is_in_memory);
    }
}
