//! The use of files by descriptors and paths, where mappings of them are written back.
//!
//! Before the program reads such a file, what it has written to its mappings goes to the file;
//! before it changes the file, these mappings become the kernel's. What the C library does by
//! itself (`stdio`) is not seen, nor are system calls made without it.

use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_live::requests::Ask;

use super::is_followed;
#[cfg(target_arch = "x86_64")]
use crate::calls::interpose;
use crate::calls::{find_original, keeping_errno, regular_file, system_call};
use crate::process::PROCESS;

/// The way in which a function uses files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Reads from its first argument, or waits until that is on its disk.
    Read,
    /// Writes to its first argument.
    Write,
    /// Reads from its second, and writes to its first.
    WriteFromSecond,
    /// Reads from its first, and writes to its third.
    WriteToThird,
    /// Sets the size of its first argument to its second.
    Cut,
    /// Sets the size of the file at a path, its first argument, to its second.
    CutPath,
    /// Changes its first argument, if the second is not one of the modes that only keep room.
    Allocate,
}

/// The functions that are interposed.
const FUNCTIONS: [(&CStr, Use); 33] = [
    (c"read", Use::Read),
    (c"pread", Use::Read),
    (c"pread64", Use::Read),
    (c"readv", Use::Read),
    (c"preadv", Use::Read),
    (c"preadv64", Use::Read),
    (c"preadv2", Use::Read),
    (c"preadv64v2", Use::Read),
    (c"__read_chk", Use::Read),
    (c"__pread_chk", Use::Read),
    (c"__pread64_chk", Use::Read),
    (c"fsync", Use::Read),
    (c"fdatasync", Use::Read),
    (c"syncfs", Use::Read),
    (c"sync_file_range", Use::Read),
    (c"write", Use::Write),
    (c"pwrite", Use::Write),
    (c"pwrite64", Use::Write),
    (c"writev", Use::Write),
    (c"pwritev", Use::Write),
    (c"pwritev64", Use::Write),
    (c"pwritev2", Use::Write),
    (c"pwritev64v2", Use::Write),
    (c"sendfile", Use::WriteFromSecond),
    (c"sendfile64", Use::WriteFromSecond),
    (c"copy_file_range", Use::WriteToThird),
    (c"splice", Use::WriteToThird),
    (c"ftruncate", Use::Cut),
    (c"ftruncate64", Use::Cut),
    (c"truncate", Use::CutPath),
    (c"truncate64", Use::CutPath),
    (c"fallocate", Use::Allocate),
    (c"fallocate64", Use::Allocate),
];

/// The functions behind ours; zero: not looked for yet, or not there.
static FOUND: [AtomicUsize; FUNCTIONS.len()] = [const { AtomicUsize::new(0) }; FUNCTIONS.len()];

/// Finds the originals, which may be called where the dynamic linker may not be.
pub(crate) fn find_originals() {
    for ((name, _), found) in FUNCTIONS.iter().zip(&FOUND) {
        find_original(found, name);
    }
}

/// Sees to what is about to be done, and answers where to go on.
extern "C" fn prepare(first: usize, second: usize, third: usize, number: usize) -> usize {
    if PROCESS.files.has_written() && is_followed() {
        keeping_errno(|| announce(FUNCTIONS[number].1, first, second, third));
    }
    let found = FOUND[number].load(Ordering::Acquire);
    let found = match found {
        0 => find_original(&FOUND[number], FUNCTIONS[number].0),
        _ => found,
    };
    let missing: extern "C" fn() -> isize = fail;
    if found == 0 { missing as usize } else { found }
}

/// Replaces a function that the C library does not have.
extern "C" fn fail() -> isize {
    // SAFETY: sets the calling thread's error number.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

fn announce(kind: Use, first: usize, second: usize, third: usize) {
    let file = |number: usize| regular_file(number as RawFd);
    let is_shorter = |found: &libc::stat| (second as i64) < found.st_size;
    match kind {
        Use::Read => tell(file(first), false),
        Use::Write => tell(file(first), true),
        Use::WriteFromSecond => {
            tell(file(second), false);
            tell(file(first), true);
        }
        Use::WriteToThird => {
            tell(file(first), false);
            tell(file(third), true);
        }
        // What is longer shows when it is touched.
        Use::Cut => tell(file(first).filter(is_shorter), true),
        Use::CutPath => tell(look_at_path(first).filter(is_shorter), true),
        Use::Allocate if second as c_int & !libc::FALLOC_FL_KEEP_SIZE == 0 => {}
        Use::Allocate => tell(file(first), true),
    }
}

/// Tells the engine of the use of a file, if that may be one that it writes back.
fn tell(found: Option<libc::stat>, is_write: bool) {
    let Some(found) = found else { return };
    let (device, number) = (found.st_dev, found.st_ino);
    if PROCESS.files.may_be_written(device, number) {
        PROCESS.forking.await_end();
        let ask = Ask::UseFile {
            device,
            number,
            is_write,
        };
        PROCESS.requests.ask(ask, Duration::MAX);
    }
}

/// A file by a path of the program's.
fn look_at_path(path: usize) -> Option<libc::stat> {
    // SAFETY: all zeros are a value of it.
    let mut found = unsafe { std::mem::zeroed::<libc::stat>() };
    let place = &raw mut found;
    let arguments = [libc::AT_FDCWD.into(), path as _, place as _, 0, 0];
    // SAFETY: the kernel writes to a live record, of its own layout, and refuses a path that it
    // can't read.
    let answer = unsafe { system_call(libc::SYS_newfstatat, arguments) };
    (answer == 0).then_some(found)
}

#[cfg(target_arch = "x86_64")]
interpose! { prepare,
    read 0
    pread 1
    pread64 2
    readv 3
    preadv 4
    preadv64 5
    preadv2 6
    preadv64v2 7
    __read_chk 8
    __pread_chk 9
    __pread64_chk 10
    fsync 11
    fdatasync 12
    syncfs 13
    sync_file_range 14
    write 15
    pwrite 16
    pwrite64 17
    writev 18
    pwritev 19
    pwritev64 20
    pwritev2 21
    pwritev64v2 22
    sendfile 23
    sendfile64 24
    copy_file_range 25
    splice 26
    ftruncate 27
    ftruncate64 28
    truncate 29
    truncate64 30
    fallocate 31
    fallocate64 32
}
