//! Protection of the engine's memory, which the program may find in `/proc/self/maps`.
//!
//! A call that changes a range changes only the program's part of it, as if nothing were mapped
//! where the [reserved](tidemark_live::sys::reserve) range lies. System calls made without the C
//! library are not seen.

use std::ffi::{c_int, c_long, c_void};

use tidemark_live::requests::Ask;
use tidemark_live::sys::maps::{self, Area, Kind};
use tidemark_live::sys::{Errno, PAGE, reserve};

use crate::calls::{keeping_errno, note_error, system_call, system_call_of_six};
use crate::hooks::{self, files};
use crate::places;
use crate::process::{ASK_LIMIT, PROCESS};

/// The number of times that a mapping is tried again that the kernel has as several.
const PARTS_TRIES: u32 = 3;

/// Interposes `munmap`.
///
/// # Safety
/// As for the C library's `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(start: *mut c_void, bytes: usize) -> c_int {
    visit_foreign(start as usize, bytes, |start, bytes| {
        files::leave(start, bytes);
        // SAFETY: the caller's call, for a part of its range.
        unsafe { libc::syscall(libc::SYS_munmap, start, bytes) as c_int }
    })
}

/// Interposes `msync`. What the program has written to shared files that are managed goes to them.
///
/// # Safety
/// As for the C library's `msync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(start: *mut c_void, bytes: usize, flags: c_int) -> c_int {
    let arguments = [start as c_long, bytes as c_long, flags.into(), 0, 0];
    // SAFETY: the caller's call. The kernel says what is wrong with it, and sees to other files.
    let answer = unsafe { system_call(libc::SYS_msync, arguments) };
    match answer {
        0 => note_error(files::synchronize(start as usize, bytes, flags)) as c_int,
        _ => note_error(answer) as c_int,
    }
}

/// Interposes `madvise`. Advice about the engine's memory is not taken; the engine learns of memory
/// to be wiped in forked children, which the kernel does not report.
///
/// # Safety
/// As for the C library's `madvise`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    visit_foreign(start as usize, bytes, |start, bytes| {
        if places::passes_over(start, advice) {
            return 0;
        }
        if let Some(answer) = files::advise(start, bytes, advice) {
            return note_error(answer) as c_int;
        }
        let arguments = [start as c_long, bytes as c_long, advice.into(), 0, 0];
        // SAFETY: as above. Not by way of `syscall`, which comes back here.
        let answer = unsafe { system_call(libc::SYS_madvise, arguments) };
        // Where some of a range is not mapped, the rest has been advised.
        if answer == 0 || answer == c_long::from(-libc::ENOMEM) {
            note_wiping(start, bytes, advice);
        }
        note_error(answer) as c_int
    })
}

/// Interposes `posix_madvise`, which the C library does by a call of its own.
///
/// # Safety
/// As for the C library's `posix_madvise`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // Linux takes it for another thing, which would lose contents.
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    let answer = keeping_errno(|| {
        // SAFETY: the caller's call; the numbers of advice are the same.
        let answer = unsafe { madvise(start, bytes, advice) };
        // SAFETY: the calling thread's own error number.
        (answer, unsafe { *libc::__errno_location() })
    });
    match answer {
        (0, _) => 0,
        (_, error) => error,
    }
}

/// Interposes `madvise` that is asked for by number.
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn madvise_by_call(
    _: c_long,
    start: usize,
    bytes: usize,
    advice: c_int,
) -> c_long {
    // SAFETY: the caller's call.
    unsafe { madvise(start as *mut c_void, bytes, advice).into() }
}

/// Tells the engine of a range that is to be wiped in forked children, or not any more.
fn note_wiping(start: usize, bytes: usize, advice: c_int) {
    let Some(bytes) = bytes.checked_next_multiple_of(PAGE) else {
        return;
    };
    let ask = match advice {
        libc::MADV_WIPEONFORK => Ask::Wipe { start, bytes },
        libc::MADV_KEEPONFORK => Ask::Keep { start, bytes },
        _ => return,
    };
    if bytes > 0 && !PROCESS.is_filtered() && PROCESS.requests.has_engine() {
        keeping_errno(|| PROCESS.requests.ask(ask, ASK_LIMIT));
    }
}

/// Interposes `mprotect`, which ends where the engine's memory begins.
///
/// # Safety
/// As for the C library's `mprotect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(start: *mut c_void, bytes: usize, rights: c_int) -> c_int {
    protect(start as usize, bytes, |start, bytes| {
        if let Some(answer) = files::protect(start, bytes, rights) {
            return note_error(answer);
        }
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_mprotect, start, bytes, rights) }
    })
}

/// Interposes `pkey_mprotect`, likewise.
///
/// # Safety
/// As for the C library's `pkey_mprotect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(
    start: *mut c_void,
    bytes: usize,
    rights: c_int,
    key: c_int,
) -> c_int {
    protect(start as usize, bytes, |start, bytes| {
        files::give_up(start, bytes);
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_pkey_mprotect, start, bytes, rights, key) }
    })
}

/// Interposes `mremap`, which neither takes from the engine's memory nor puts anything there. A
/// move returns when the engine knows all of what was at the new place before.
///
/// # Safety
/// As for the C library's `mremap`, whose optional argument is always passed on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    start: *mut c_void,
    bytes_before: usize,
    bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    if is_own(start as usize, bytes_before.max(1)) {
        fail(libc::EFAULT);
        return libc::MAP_FAILED;
    }
    if flags & libc::MREMAP_FIXED != 0 && is_own(place as usize, bytes) {
        fail(libc::ENOMEM);
        return libc::MAP_FAILED;
    }
    let (start, place) = (start as usize, place as usize);
    if flags & libc::MREMAP_FIXED != 0 {
        files::leave(place, bytes);
    }
    match bytes_before {
        // A second mapping of the same.
        0 => files::give_up(start, PAGE),
        _ if bytes < bytes_before => files::leave(start.wrapping_add(bytes), bytes_before - bytes),
        _ => {}
    }
    let may_be_file = files::may_be_ours(start, bytes_before.max(1));
    let is_kept = flags & libc::MREMAP_DONTUNMAP != 0;
    if may_be_file && is_kept && files::advise(start, bytes_before, libc::MADV_NORMAL).is_some() {
        // What stayed behind would read as zeros.
        fail(libc::EINVAL);
        return libc::MAP_FAILED;
    }
    let is_whole = flags & libc::MREMAP_FIXED != 0 && bytes_before == bytes;
    let may_be_several = is_whole && PROCESS.requests.has_engine() && is_mapped(start);
    let mut answer = places::move_memory(start, bytes_before, bytes, flags, place);
    if answer == c_long::from(-libc::EFAULT) {
        let moved = keeping_errno(|| match may_be_several {
            true => move_parts(start, bytes, flags, place),
            false => enlarge(start, bytes_before, bytes, flags),
        });
        answer = moved.unwrap_or(answer);
    }
    if may_be_file && answer >= 0 {
        PROCESS.files.note(answer as usize, bytes);
    }
    let has_grown = may_be_file && answer >= 0 && bytes > bytes_before;
    let is_file = has_grown && files::grow(answer as usize, bytes_before, bytes);
    if answer >= 0 && answer as usize != start && !is_file {
        hooks::await_move(answer as usize, bytes);
    }
    note_error(answer) as *mut c_void
}

/// Makes a mapping larger that was refused because the kernel has it as several, if it is one to
/// the program. The engine may be about to take over a part of it, which makes two mappings of one,
/// or one of two: that is over before each try. `None` if it stays refused.
fn enlarge(start: usize, bytes_before: usize, bytes: usize, flags: c_int) -> Option<c_long> {
    if flags != libc::MREMAP_MAYMOVE || bytes <= bytes_before || !PROCESS.requests.has_engine() {
        return None;
    }
    (0..PARTS_TRIES).find_map(|_| {
        hooks::await_move(start, bytes_before);
        match places::move_memory(start, bytes_before, bytes, flags, 0) {
            answer if answer == c_long::from(-libc::EFAULT) => {
                enlarge_parts(start, bytes_before, bytes)
            }
            answer => Some(answer),
        }
    })
}

/// Makes one mapping larger that is several to the kernel, if it is: what was touched before it was
/// managed, beside what was managed before it was touched, stays a mapping of its own. That is so
/// where the engine has come to know of a mapping while another thread made way for it. `None` if
/// it is none.
fn enlarge_parts(start: usize, bytes_before: usize, bytes: usize) -> Option<c_long> {
    const MOVED: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (mut end, mut first) = (start, None);
    maps::visit_within(start, start + bytes_before, |part| {
        let first = *first.get_or_insert(part);
        let like_first = Area {
            start: end,
            end: part.end,
            ..first
        };
        end = part.end;
        let is_one = part == like_first && part.kind == Kind::Anonymous && !part.is_shared;
        is_one.then_some(()).ok_or(Errno::FAULT)
    })
    .ok()?;
    let first = first.filter(|first| end == start + bytes_before && first.end < end)?;
    let place = map_like(first, bytes);
    match place {
        -4095..0 => Some(place),
        _ => move_parts(start, bytes_before, MOVED, place as usize),
    }
}

/// Makes a new mapping with the rights of another.
fn map_like(other: Area, bytes: usize) -> c_long {
    let right = |has, right: c_int| if has { right } else { 0 };
    let rights = right(other.is_readable, libc::PROT_READ)
        | right(other.is_writable, libc::PROT_WRITE)
        | right(other.is_executable, libc::PROT_EXEC);
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if places::suits(0, rights, kind) {
        return places::map(bytes, rights, kind);
    }
    let arguments = [0, bytes as c_long, rights.into(), kind.into(), -1, 0];
    // SAFETY: makes a new mapping, and changes none.
    unsafe { system_call_of_six(libc::SYS_mmap, arguments) }
}

/// Moves a range of several mappings, one by one. Linux 6.17 and later do so in one call, but not
/// if one of them is registered with a userfaultfd; those before that have been moved by then.
/// `None` if there is no telling which mappings these are.
fn move_parts(start: usize, bytes: usize, flags: c_int, place: usize) -> Option<c_long> {
    let moved = maps::visit_within(start, start + bytes, |part| {
        let (from, bytes) = (part.start, part.end - part.start);
        match places::move_memory(from, bytes, bytes, flags, place + (from - start)) {
            error @ -4095..0 => Err(Errno::from_raw_os_error(-error as i32)),
            _ => Ok(()),
        }
    });
    match moved {
        Ok(()) => Some(place as c_long),
        Err(Errno::NOTTY) => None,
        Err(error) => Some(-c_long::from(error.raw_os_error())),
    }
}

/// Returns true if something is mapped at `start`.
fn is_mapped(start: usize) -> bool {
    let mut present = 0u8;
    let arguments = [
        start as c_long,
        PAGE as c_long,
        (&raw mut present) as c_long,
        0,
        0,
    ];
    // SAFETY: one byte is written for one page.
    unsafe { system_call(libc::SYS_mincore, arguments) == 0 }
}

/// Returns true if a mapping may not be made at the place asked for; the error number then tells
/// why.
pub(crate) fn refuses_place(start: usize, bytes: usize, flags: c_int) -> bool {
    let is_refused = flags & libc::MAP_FIXED != 0 && is_own(start, bytes);
    if is_refused {
        fail(libc::ENOMEM);
    }
    is_refused
}

/// Calls `call` for each part of a range that is not the engine's, until one fails.
pub(crate) fn visit_foreign(
    start: usize,
    bytes: usize,
    mut call: impl FnMut(usize, usize) -> c_int,
) -> c_int {
    let Some(end) = end_of(start, bytes) else {
        return call(start, bytes);
    };
    let mut at = start;
    while let Some((from, to)) = first_own(at, end) {
        if from > at && call(at, from - at) != 0 {
            return -1;
        }
        at = to;
    }
    if at == start {
        return call(start, bytes);
    }
    if at < end {
        return call(at, end - at);
    }
    0
}

fn protect(start: usize, bytes: usize, call: impl Fn(usize, usize) -> c_long) -> c_int {
    let own = end_of(start, bytes).and_then(|end| first_own(start, end));
    match own {
        None => call(start, bytes) as c_int,
        Some((from, _)) if from > start && call(start, from - start) != 0 => -1,
        Some(_) => fail(libc::ENOMEM),
    }
}

fn is_own(start: usize, bytes: usize) -> bool {
    end_of(start, bytes).is_some_and(|end| first_own(start, end).is_some())
}

/// The part of the engine's memory that comes first in `start..end`.
fn first_own(start: usize, end: usize) -> Option<(usize, usize)> {
    let within = reserve::ranges().filter(|(from, to)| start < *to && *from < end);
    within.min_by_key(|(from, _)| *from)
}

/// The end of the last page of a range; `None` if it has none.
fn end_of(start: usize, bytes: usize) -> Option<usize> {
    start.checked_add(bytes)?.checked_next_multiple_of(PAGE)
}

fn fail(error: c_int) -> c_int {
    // SAFETY: sets the calling thread's error number.
    unsafe { *libc::__errno_location() = error };
    -1
}
