//! The engine as a library for programs in C: memory regions larger than the memory they may use.
//!
//! The functions have the names and the arguments of `mmap` and its family, so that a program is
//! ported by renaming. `include/tidemark_memory.h` is made of this file and of `types.rs` by a
//! test: the comments of what is exported there are those that programmers in C read.
//!
//! # Invariants
//! 1. No panic crosses the boundary: [`guard`] makes a status of it.
//! 2. A handle is a number that a table knows, and is never followed as a pointer: one that is not
//!    in use is an error.
//! 3. The tables' locks are held to look up and to change, and not while an engine works.

mod names;
mod pagers;
mod regions;
mod status;
mod types;

use std::ffi::{CStr, c_char, c_int, c_void};

use tidemark_regions::Advice;

use crate::names::Engines;
use crate::regions::{Mapped, Regions, Request};
use crate::status::{Trouble, guard, last_message, last_status};
pub use crate::types::*;

/// Makes an engine with `settings`, or with none (`NULL`), and puts its handle in `*engine`.
/// Returns `TIDEMARK_OK` or why not.
///
/// # Safety
/// Both point to what they say, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_open(
    settings: *const tidemark_settings,
    engine: *mut *mut tidemark_engine,
) -> c_int {
    guard(|| {
        if engine.is_null() {
            return Err(Trouble::argument("`engine` is NULL; needs a place"));
        }
        // SAFETY: the caller's; it is not null.
        let settings = (!settings.is_null()).then(|| unsafe { *settings });
        // SAFETY: the texts are the caller's.
        let builder = unsafe { names::builder(settings) }?;
        let handle = Engines::add(builder.start()?);
        // SAFETY: the caller's place, which is not null.
        unsafe { engine.write(handle) };
        Ok(())
    })
}

/// Ends the use of a handle. The engine ends with the last of its regions. If it was in use, none
/// is any more. Returns `TIDEMARK_OK` or why not.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_close(engine: *mut tidemark_engine) -> c_int {
    guard(|| Engines::remove(engine))
}

/// Has `tidemark_mmap` use `engine`, in all threads. `NULL`: the default, which is made without
/// settings when it is needed first. Returns `TIDEMARK_OK` or why not.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_use(engine: *mut tidemark_engine) -> c_int {
    guard(|| Engines::choose(engine))
}

/// Maps memory of the engine in use, as `mmap` does. `flags`: `MAP_PRIVATE` and `MAP_ANONYMOUS` for
/// zeros; `MAP_PRIVATE` for what the file `fd` has from `offset` on, to be modified without the
/// file, or only read with the `prot` `PROT_READ`; `MAP_SHARED` to write it to the file. The file
/// must be as long. `addr` is not heeded, and `MAP_FIXED` refused.
/// Returns the address, or `TIDEMARK_MAP_FAILED` with `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_mmap(
    addr: *mut c_void,
    length: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    tidemark_mmap_in(std::ptr::null_mut(), addr, length, prot, flags, fd, offset)
}

/// Maps memory as `tidemark_mmap` does, of `engine`, or of the one in use (`NULL`).
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_mmap_in(
    engine: *mut tidemark_engine,
    addr: *mut c_void,
    length: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let _ = addr;
    map(engine, || Request::new(length, (prot, flags), fd, offset))
}

/// Maps what the store at the address `url` has, such as `redis://HOST/0/NAME`, `https://HOST/PATH`
/// or `s3://BUCKET/KEY`, in `engine`, or in the one in use (`NULL`), and puts its number of bytes
/// in `*length`. `prot` and `flags` are those of a file: with `MAP_SHARED` modified pages are
/// written to the store, which must be one of Redis's protocol. Returns the address, or
/// `TIDEMARK_MAP_FAILED` with `errno`.
///
/// # Safety
/// `url` ends with a zero byte, and `length` points to a number; or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_mmap_store(
    engine: *mut tidemark_engine,
    url: *const c_char,
    length: *mut usize,
    prot: c_int,
    flags: c_int,
) -> *mut c_void {
    let mut bytes = 0;
    let address = map(engine, || {
        if length.is_null() {
            return Err(Trouble::argument("`length` is NULL; needs a place"));
        }
        // SAFETY: the caller's.
        let request = Request::of_store(unsafe { address_of(url) }?, prot, flags)?;
        bytes = request.bytes();
        Ok(request)
    });
    if last_status() == TIDEMARK_OK {
        // SAFETY: the caller's place, which is not null where the call has succeeded.
        unsafe { length.write(bytes as usize) };
    }
    address
}

/// Makes a store of `length` zeros at the address `url` of a server of Redis's protocol, in place
/// of what is there. Returns `TIDEMARK_OK` or why not.
///
/// # Safety
/// `url` ends with a zero byte, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_create_store(url: *const c_char, length: u64) -> c_int {
    guard(|| {
        if length == 0 {
            return Err(Trouble::argument("`length` is 0; needs 1"));
        }
        // SAFETY: the caller's.
        let url = unsafe { address_of(url) }?;
        tidemark_stores::create(url, length)?;
        Ok(())
    })
}

/// Maps what `pager` has, in `engine`, or in the one in use (`NULL`): its `bytes`, rounded up to
/// pages. The structure is copied. `prot` and `flags` are those of a file: with `MAP_SHARED`
/// modified pages are written by the pager, with `MAP_PRIVATE` they go to the swap file. Returns
/// the address, or `TIDEMARK_MAP_FAILED` with `errno`.
///
/// # Safety
/// `pager` points to a structure whose functions do what it says, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_mmap_pager(
    engine: *mut tidemark_engine,
    pager: *const tidemark_pager,
    prot: c_int,
    flags: c_int,
) -> *mut c_void {
    // SAFETY: the caller's.
    map(engine, || unsafe { Request::of_pager(pager, prot, flags) })
}

/// Puts the last call that failed of the pager of the region that has `addr` in `*failure`. It may
/// be called by the handler of a `SIGBUS`, for a touch outside this library.
/// Returns `TIDEMARK_OK`, or `TIDEMARK_ARGUMENT` if there is none.
///
/// # Safety
/// `failure` points to one, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_failed(
    addr: *const c_void,
    failure: *mut tidemark_failure,
) -> c_int {
    guard(|| {
        if failure.is_null() {
            return Err(Trouble::argument("`failure` is NULL; needs a place"));
        }
        let (mapped, _) = Regions::find(addr as usize, 0)?;
        let failed = mapped.failed().ok_or_else(|| {
            let address = addr as usize;
            Trouble::argument(format!(
                "`addr` is {address:#x}; no call of a pager failed there"
            ))
        })?;
        let found = tidemark_failure {
            region: mapped.region(|region| region.address()) as *mut c_void,
            offset: failed.offset,
            bytes: failed.bytes,
            error: failed.error,
            is_write: c_int::from(failed.is_write),
        };
        // SAFETY: the caller's place, which is not null.
        unsafe { failure.write(found) };
        Ok(())
    })
}

/// Ends a region, as `munmap` does: the whole of it, by the address and the length that it has. The
/// modified pages of a file are written. Returns 0, or -1 with `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_munmap(addr: *mut c_void, length: usize) -> c_int {
    as_mmap_does(guard(|| Regions::remove(addr as usize, length)))
}

/// Says how a part of a region will be used, as `madvise` does: `MADV_NORMAL`, `MADV_SEQUENTIAL`
/// and `MADV_RANDOM`; `MADV_WILLNEED` begins to read; `MADV_DONTNEED` makes whole pages of private
/// memory what they were at first. Returns 0, or -1 with `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_advise(addr: *mut c_void, length: usize, advice: c_int) -> c_int {
    as_mmap_does(guard(|| {
        let (mapped, range) = Regions::find(addr as usize, length)?;
        match advice {
            libc::MADV_NORMAL => mapped.region(|it| it.advise(range, Advice::Normal)),
            libc::MADV_SEQUENTIAL => mapped.region(|it| it.advise(range, Advice::Sequential)),
            libc::MADV_RANDOM => mapped.region(|it| it.advise(range, Advice::Random)),
            libc::MADV_WILLNEED => mapped.region(|it| it.prefetch(range)),
            libc::MADV_DONTNEED => mapped.discard(range),
            _ => {
                return Err(Trouble::argument(format!(
                    "`advice` is {advice}; needs MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM, \
                     MADV_WILLNEED or MADV_DONTNEED"
                )));
            }
        }
        .map_err(Trouble::from)
    }))
}

/// Writes the modified pages of a part of a shared region to its file, as `msync` does, and waits
/// until they are on the disk. `flags` are those of `msync`; `MS_ASYNC` waits as well. Returns 0,
/// or -1 with `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_flush(addr: *mut c_void, length: usize, flags: c_int) -> c_int {
    as_mmap_does(guard(|| {
        if flags & !(libc::MS_ASYNC | libc::MS_SYNC) != 0 {
            let message = format!("`flags` is {flags}; needs MS_SYNC or MS_ASYNC");
            return Err(Trouble::argument(message));
        }
        let (mapped, range) = Regions::find(addr as usize, length)?;
        mapped.flush(range)
    }))
}

/// Counts what `engine`, or the one in use (`NULL`), has done. Returns `TIDEMARK_OK` or why not.
///
/// # Safety
/// `statistics` points to one, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidemark_count(
    engine: *mut tidemark_engine,
    statistics: *mut tidemark_statistics,
) -> c_int {
    guard(|| {
        if statistics.is_null() {
            return Err(Trouble::argument("`statistics` is NULL; needs a place"));
        }
        let counted = Engines::find(engine)?.statistics()?;
        let counted = tidemark_statistics {
            faults: counted.faults,
            page_ins: counted.page_ins,
            file_page_ins: counted.file_page_ins,
            page_outs: counted.page_outs,
            file_page_outs: counted.file_page_outs,
            zero_fills: counted.zero_fills,
            soft_faults: counted.soft_faults,
            resident_bytes: counted.resident_bytes,
            region_bytes: counted.region_bytes,
        };
        // SAFETY: the caller's place, which is not null.
        unsafe { statistics.write(counted) };
        Ok(())
    })
}

/// Returns what the last call of this thread came to: `TIDEMARK_OK` or another of these.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_status() -> c_int {
    last_status()
}

/// Returns a line that says why the last call of this thread failed, or an empty one. It stays
/// until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_message() -> *const c_char {
    last_message()
}

/// Returns the version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn tidemark_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// Maps what is asked for in `engine`, or in the one in use.
fn map(
    engine: *mut tidemark_engine,
    request: impl FnOnce() -> Result<Request, Trouble>,
) -> *mut c_void {
    let mut address = usize::MAX;
    guard(|| {
        let request = request()?;
        address = Regions::add(Mapped::new(&Engines::find(engine)?, request)?);
        Ok(())
    });
    address as *mut c_void
}

/// The address of a store.
///
/// # Safety
/// It ends with a zero byte, or is null.
unsafe fn address_of<'a>(url: *const c_char) -> Result<&'a str, Trouble> {
    // SAFETY: the caller's.
    let url = unsafe { names::utf8("url", url) }?;
    url.ok_or_else(|| Trouble::argument("`url` is NULL; needs an address of a store"))
}

fn as_mmap_does(status: c_int) -> c_int {
    match status {
        TIDEMARK_OK => 0,
        _ => -1,
    }
}
