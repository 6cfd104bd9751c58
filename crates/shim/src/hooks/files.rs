//! Mappings of files that the engine manages: copies, and with `run --files` others.
//!
//! The kernel tells the engine of what becomes of them as of other managed memory. What it says
//! nothing of comes by here: advice, rights, and mappings that grow.

use std::ffi::{c_int, c_long};
use std::os::fd::RawFd;
use std::time::Duration;

use tidemark_live::engine::Setup;
use tidemark_live::requests::{Ask, FileMapping, PLACED, SHARED, TAKEN, WriteBack, is_copy};
use tidemark_live::sys::PAGE;

use super::is_followed;
use crate::calls::{keeping_errno, regular_file, system_call};
use crate::process::{ASK_LIMIT, PROCESS, Wanted};

/// `MADV_DONTNEED_LOCKED` (Linux `include/uapi/asm-generic/mman-common.h`).
const DONTNEED_LOCKED: c_int = 24;

/// Has mappings of files that the engine may manage told to it from now on.
pub(crate) fn note_wanted(setup: &Setup) {
    let wanted = match (&setup.files, setup.are_copies_managed) {
        (Some(_), _) => Wanted::All,
        (None, true) => Wanted::Copies,
        (None, false) => Wanted::Nothing,
    };
    PROCESS.files.want(wanted, setup.are_files_written);
}

/// Returns true if a mapping that is about to be made is to be told to the engine.
pub(crate) fn is_wanted(bytes: usize, rights: c_int, flags: c_int, file: RawFd) -> bool {
    let kind = match flags & libc::MAP_TYPE {
        libc::MAP_SHARED_VALIDATE => libc::MAP_SHARED,
        kind => kind,
    };
    let is_usual = kind == libc::MAP_PRIVATE || kind == libc::MAP_SHARED;
    let mut special = libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_GROWSDOWN;
    if !PROCESS.files.has_written() {
        // Else other mappings of its file must agree with it.
        special |= libc::MAP_LOCKED;
    }
    let is_asked = match PROCESS.files.wanted() {
        Wanted::Nothing => false,
        Wanted::Copies => is_copy(bytes, kind_of(rights, flags)),
        Wanted::All => true,
    };
    is_asked && is_usual && flags & special == 0 && file >= 0 && is_followed()
}

/// The kind of a mapping for a [`FileMapping`].
fn kind_of(rights: c_int, flags: c_int) -> u32 {
    let shared = match flags & libc::MAP_TYPE {
        libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE => SHARED,
        _ => 0,
    };
    let is_fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let placed = match is_fixed && flags & libc::MAP_POPULATE == 0 {
        true => PLACED,
        false => 0,
    };
    rights as u32 & 0xff | shared | placed
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
    let kind = kind_of(rights, flags);
    let is_written = kind & SHARED != 0 && rights & libc::PROT_WRITE != 0;
    if is_written
        && PROCESS.files.are_written()
        && let Some(found) = regular_file(file)
    {
        PROCESS.files.note_written(found.st_dev, found.st_ino);
    }
    let is_managed = u32::try_from(offset / PAGE as i64).is_ok_and(|first| {
        let answer = PROCESS.requests.ask(
            Ask::MapFile(FileMapping {
                start,
                bytes,
                file,
                first,
                kind,
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
        // As the kernel does: a private mapping that may be written to has copies at once.
        let way = match kind & SHARED == 0 && rights & libc::PROT_WRITE != 0 {
            true => libc::MADV_POPULATE_WRITE,
            false => libc::MADV_POPULATE_READ,
        };
        let arguments = [start, bytes, way as usize, 0, 0];
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
    // What it takes away of a shared file is not the file's contents.
    let empties = matches!(advice, libc::MADV_DONTNEED | DONTNEED_LOCKED);
    let is_kernels = is_kernels && !(empties && PROCESS.files.has_written());
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

/// Maps the part of its file that follows, where a mapping has grown. False if it is no managed
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

/// Writes the modified pages of shared files in a range to their files: something else is about to
/// be mapped there.
pub(crate) fn leave(start: usize, bytes: usize) {
    if may_be_written(start, bytes) {
        let why = WriteBack::Leave;
        ask_for_long(Ask::WriteBack { start, bytes, why });
    }
}

/// Has shared files in a range be the kernel's, as the program is about to do what can't be kept
/// right otherwise.
pub(crate) fn give_up(start: usize, bytes: usize) {
    if may_be_written(start, bytes) {
        ask_for_long(Ask::GiveFileUp { start, bytes });
    }
}

/// Writes the modified pages of shared files in a range to their files, as the program has asked.
/// Answers as the kernel does.
pub(crate) fn synchronize(start: usize, bytes: usize, flags: c_int) -> c_long {
    if !may_be_written(start, bytes) {
        return 0;
    }
    let why = match flags & libc::MS_SYNC {
        0 => WriteBack::Start,
        _ => WriteBack::Synchronize,
    };
    match ask_for_long(Ask::WriteBack { start, bytes, why }) {
        None | Some(0) => 0,
        Some(answer) => -((answer - TAKEN) as c_long),
    }
}

/// Returns true if a range may be a file's that is written back.
fn may_be_written(start: usize, bytes: usize) -> bool {
    PROCESS.files.has_written() && may_be_ours(start, bytes)
}

/// Asks for what takes as long as the disk does.
fn ask_for_long(ask: Ask) -> Option<u64> {
    keeping_errno(|| {
        PROCESS.forking.await_end();
        PROCESS.requests.ask(ask, Duration::MAX)
    })
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
