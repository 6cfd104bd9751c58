//! Mappings of files that the engine manages (`run --files`).
//!
//! The kernel tells the engine of what becomes of them as of other managed memory. What it says
//! nothing of comes by here: advice, rights, and mappings that grow.

use std::ffi::{c_int, c_long};
use std::os::fd::RawFd;
use std::time::Duration;

use tidemark_live::requests::{Ask, FileMapping, SHARED, TAKEN};
use tidemark_live::sys::PAGE;

use super::is_followed;
use crate::calls::{keeping_errno, system_call};
use crate::process::{ASK_LIMIT, PROCESS};

/// `MADV_DONTNEED_LOCKED` (Linux `include/uapi/asm-generic/mman-common.h`).
const DONTNEED_LOCKED: c_int = 24;

/// Has mappings of files told to the engine from now on.
pub(crate) fn note_wanted() {
    PROCESS.files.want();
}

/// Returns true if a mapping that is about to be made is to be told to the engine.
pub(crate) fn is_wanted(flags: c_int, file: RawFd) -> bool {
    let kind = flags & libc::MAP_TYPE;
    let is_usual = kind == libc::MAP_PRIVATE || kind == libc::MAP_SHARED;
    let special = libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_GROWSDOWN;
    let is_asked = PROCESS.files.are_wanted();
    is_asked && is_usual && flags & special == 0 && file >= 0 && is_followed()
}

/// Tells the engine of a mapping that has just been made. `is_filled`: the program has asked
/// for its pages to be there.
pub(crate) fn announce(
    (start, bytes): (usize, usize),
    rights: c_int,
    flags: c_int,
    (file, offset): (RawFd, i64),
    is_filled: bool,
) {
    PROCESS.forking.await_end();
    let shared = match flags & libc::MAP_TYPE == libc::MAP_SHARED {
        true => SHARED,
        false => 0,
    };
    let is_managed = u32::try_from(offset / PAGE as i64).is_ok_and(|first| {
        let answer = PROCESS.requests.ask(
            Ask::MapFile(FileMapping {
                start,
                bytes,
                file,
                first,
                kind: rights as u32 & 0xff | shared,
            }),
            // Once it is begun it is not to be given up.
            Duration::MAX,
        );
        answer == Some(TAKEN)
    });
    if is_managed {
        PROCESS.files.note(start, bytes);
    }
    if !is_filled {
        return;
    }
    let is_read = is_managed && advise(start, bytes, libc::MADV_WILLNEED).is_some();
    if !is_read {
        let arguments = [start, bytes, libc::MADV_POPULATE_READ as usize, 0, 0];
        // SAFETY: has the kernel read what the program has just mapped.
        unsafe { system_call(libc::SYS_madvise, arguments.map(|word| word as c_long)) };
    }
}

/// Passes on advice about a range, if it is about managed files. Answers as the kernel does;
/// `None` if the advice is the kernel's business.
pub(crate) fn advise(start: usize, bytes: usize, advice: c_int) -> Option<c_long> {
    let is_kernels = match advice {
        // The kernel reports the pages that it takes away. The others fill, or concern cores
        // and forks.
        libc::MADV_DONTNEED | libc::MADV_POPULATE_READ | libc::MADV_DONTFORK => true,
        libc::MADV_DOFORK | libc::MADV_DONTDUMP | libc::MADV_DODUMP => true,
        libc::MADV_POPULATE_WRITE | DONTNEED_LOCKED => true,
        _ => false,
    };
    let is_aligned = start.is_multiple_of(PAGE);
    if is_kernels || !is_aligned || !may_be_ours(start, bytes) {
        return None;
    }
    ask(Ask::AdviseFile {
        start,
        bytes,
        advice,
    })
}

/// Changes rights to a range, if there are managed files in it. Answers as the kernel does;
/// `None` if it is the kernel's business.
pub(crate) fn protect(start: usize, bytes: usize, rights: c_int) -> Option<c_long> {
    let is_aligned = start.is_multiple_of(PAGE);
    if !is_aligned || !may_be_ours(start, bytes) {
        return None;
    }
    ask(Ask::ProtectFile {
        start,
        bytes,
        rights: rights as u32,
    })
}

/// Has what a mapping has grown by show what follows in its file. False if it is no managed
/// file's.
pub(crate) fn grow(start: usize, bytes_before: usize, bytes: usize) -> bool {
    PROCESS.files.note(start, bytes);
    let grown = ask(Ask::GrowFile {
        start,
        bytes_before,
        bytes,
    });
    grown.is_some()
}

/// Returns true if a range may be a managed file's.
pub(crate) fn may_be_ours(start: usize, bytes: usize) -> bool {
    PROCESS.files.may_hold(start, bytes) && is_followed()
}

/// Asks, and answers as the kernel does. `None`: it is about nothing of the engine's.
fn ask(ask: Ask) -> Option<c_long> {
    let answer = keeping_errno(|| {
        PROCESS.forking.await_end();
        PROCESS.requests.ask(ask, ASK_LIMIT)
    });
    match answer {
        None | Some(0) => None,
        Some(answer) => Some(-((answer - TAKEN) as c_long)),
    }
}
