//! Mappings, which are managed from their first touch, and forks.
//!
//! `munmap`, `mremap` and `madvise` need no hooks for that: the kernel reports them to the engine,
//! from every caller. The calls that the C library makes by itself come by way of
//! [`sites`](crate::sites).

pub(crate) mod descriptors;
pub(crate) mod files;

use std::ffi::{c_int, c_long, c_void};
use std::time::Duration;

use tidemark_live::engine::say;
use tidemark_live::requests::Ask;
use tidemark_live::sys::{PAGE, signal, thread};

use crate::calls::{keeping_errno, note_error, system_call, system_call_of_six};
use crate::process::{ASK_LIMIT, FORK_PAUSE, PROCESS};
use crate::{engine, heap, own, places};

/// Smaller mappings are announced together: to announce one costs as much as filling it.
const ANNOUNCED_BYTES_LEAST: usize = 128 << 10;
/// Smaller mappings without any rights are guards, and not reservations.
const RESERVED_BYTES_LEAST: usize = 1 << 20;
/// Interposes `mmap`.
///
/// # Safety
/// As for the C library's `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    start: *mut c_void,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let answer = map(start as usize, bytes, rights, flags, file, offset);
    note_error(answer) as *mut c_void
}

/// Interposes `mmap64`, which is the same.
///
/// # Safety
/// As for the C library's `mmap64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    start: *mut c_void,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: passed on as it is.
    unsafe { mmap(start, bytes, rights, flags, file, offset) }
}

/// A mapping that the C library makes for itself. Stacks are known by other signs.
pub(crate) extern "C" fn map_at_site(
    start: usize,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> c_long {
    // Files that the C library maps for itself are its own.
    match flags & libc::MAP_STACK {
        0 if file < 0 => map(start, bytes, rights, flags, file, offset),
        _ => map_by_call(start, bytes, rights, flags, file, offset),
    }
}

/// The C library's change of where the heap ends.
pub(crate) extern "C" fn grow_heap_at_site(end: usize) -> c_long {
    let known = PROCESS.heap_end();
    // What the kernel answers to a change that it refuses is the end as it was.
    let wanted = if places::refuses_heap(known, end) {
        0
    } else {
        end
    };
    // SAFETY: the caller's call.
    let answer = unsafe { system_call(libc::SYS_brk, [wanted as c_long, 0, 0, 0, 0]) };
    let after = (answer as usize).next_multiple_of(PAGE);
    let before = PROCESS.set_heap_end(after);
    if before != 0 && before < after && is_followed() {
        keeping_errno(|| {
            PROCESS.forking.await_end();
            PROCESS.growth.note(&PROCESS.requests, before, after);
        });
    }
    answer
}

/// Learns where the heap ends when the engine starts.
pub(crate) fn find_heap_end() {
    grow_heap_at_site(0);
}

/// Makes a mapping, tells the engine if it is one to manage, and answers as the kernel does.
fn map(
    start: usize,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> c_long {
    if flags & libc::MAP_FIXED != 0 {
        files::leave(start, bytes);
    }
    if files::is_wanted(bytes, rights, flags, file) {
        return map_file(start, bytes, rights, flags, file, offset);
    }
    let is_private = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_PRIVATE != 0;
    if !is_private || !is_followed() {
        return match is_private && places::suits(start, rights, flags) {
            true => places::map(bytes, rights, flags),
            false => map_by_call(start, bytes, rights, flags, file, offset),
        };
    }
    // Pages come as they are touched: all at once they might be more than the budget.
    let kind = match flags & libc::MAP_LOCKED {
        0 => flags & !libc::MAP_POPULATE,
        _ => flags,
    };
    let answer = match places::suits(start, rights, flags) {
        true => places::map(bytes, rights, kind),
        false => map_by_call(start, bytes, rights, kind, file, offset),
    };
    if !(-4095..0).contains(&answer) {
        keeping_errno(|| announce(answer as usize, bytes, rights, flags));
    }
    answer
}

/// Maps a file, tells the engine, and answers as the kernel does.
fn map_file(
    start: usize,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> c_long {
    // What is read now would be read again, and stay in the page cache.
    let kind = flags & !libc::MAP_POPULATE;
    let answer = map_by_call(start, bytes, rights, kind, file, offset);
    if !(-4095..0).contains(&answer) {
        let (made, is_filled) = ((answer as usize, bytes), kind != flags);
        keeping_errno(|| files::announce(made, rights, flags, (file, offset), is_filled));
    }
    answer
}

/// Makes a mapping, and answers as the kernel does.
fn map_by_call(
    start: usize,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> c_long {
    if own::refuses_place(start, bytes, flags) {
        return c_long::from(-libc::ENOMEM);
    }
    let (rights, kind, file) = (rights.into(), flags.into(), file.into());
    let arguments = [start as c_long, bytes as c_long, rights, kind, file, offset];
    // SAFETY: the caller's call.
    unsafe { system_call_of_six(libc::SYS_mmap, arguments) }
}

/// Returns true if the engine is to know what the calling thread maps.
fn is_followed() -> bool {
    !PROCESS.is_filtered() && PROCESS.requests.has_engine() && !crate::thread::is_own()
}

/// Waits until no other thread forks and the engine knows of all changes where memory was moved to.
///
/// Another thread may have left that place whose message is still on its way. What this one says of
/// its memory next must not come before: it would be taken to be about the memory that was there.
pub(crate) fn await_move(start: usize, bytes: usize) {
    if is_followed() {
        keeping_errno(|| {
            PROCESS.forking.await_end();
            PROCESS.requests.ask(Ask::Look { start, bytes }, ASK_LIMIT);
        });
    }
}

/// Tells the engine that the program ends.
pub(crate) fn finish() {
    if !PROCESS.is_filtered() && PROCESS.requests.has_engine() {
        PROCESS.requests.ask(Ask::Finish, end_limit());
    }
}

/// Has the engine write what it logs, references or decisions, and what the program has modified of
/// mapped files: the calling process is about to leave its memory.
///
/// A child that shares its parent's memory, to execute a program, leaves nothing.
pub(crate) fn catch_up() {
    let is_owed = PROCESS.is_logged() || PROCESS.files.has_written();
    if is_owed && !PROCESS.is_filtered() && PROCESS.requests.has_engine() {
        keeping_errno(|| PROCESS.requests.ask(Ask::CatchUp, end_limit()));
    }
}

/// The time for which a thread that ends its program waits for the engine.
fn end_limit() -> Duration {
    match PROCESS.files.has_written() {
        true => Duration::MAX,
        false => ASK_LIMIT,
    }
}

/// The state in which a fork may be made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The engine is at rest, and waits for the end of the fork.
    AtRest,
    /// There is no engine, or this is no process of its own.
    Unfollowed,
    /// No child can be had: the run has as many processes as it may have.
    Refused,
}

/// Has the engine come to rest for a fork by this thread, which takes no signals until it is over.
pub(crate) fn quiesce() -> Readiness {
    keeping_errno(|| {
        if !PROCESS.requests.has_engine() || !PROCESS.forking.lock() {
            return Readiness::Unfollowed;
        }
        PROCESS.way.open(&PROCESS.requests, PROCESS.is_filtered());
        let Some(child) = freeze() else {
            PROCESS.way.close();
            PROCESS.forking.unlock();
            return Readiness::Refused;
        };
        heap::hold();
        PROCESS.forking.begin(child);
        Readiness::AtRest
    })
}

/// Asks for rest until there is an answer: without one the child would lack pages. Answers the
/// child's record plus one.
fn freeze() -> Option<u64> {
    let thread = thread::current();
    while PROCESS.requests.has_engine() {
        if let Some(child) = PROCESS.requests.ask(Ask::Freeze { thread }, Duration::MAX) {
            return (child != 0).then_some(child);
        }
        // All places for requests are taken.
        std::thread::sleep(FORK_PAUSE);
    }
    None
}

/// Has the engine go on in the process that forked, with or without a child.
pub(crate) fn resume_parent(has_child: bool) {
    keeping_errno(|| {
        if PROCESS.forking.end() {
            heap::release();
            PROCESS.requests.thaw();
            PROCESS.way.close();
            if !has_child {
                abandon_child();
            }
            PROCESS.forking.unlock();
        }
    });
}

fn abandon_child() {
    let child = PROCESS.forking.take_child();
    if child != 0 {
        PROCESS.requests.ask(Ask::Abandon { child }, ASK_LIMIT);
    }
}

/// Starts the engine of a forked child.
pub(crate) fn resume_child() {
    keeping_errno(|| {
        if !PROCESS.forking.end() {
            return;
        }
        heap::release();
        PROCESS.growth.forget();
        PROCESS.forking.unlock();
        PROCESS.requests.set_engine(0, None);
        // SAFETY: the parent's threads do not exist here, so that the stack slots are free.
        let started = unsafe { engine::start_threads(engine::run_engine_in_child, Duration::MAX) };
        if started.is_err() {
            say("a forked process can't have an engine, and is ended");
            signal::end_process();
        }
        PROCESS.way.close();
        engine::hold_lifeline();
    });
}

/// Tells the engine of a new private mapping, if it is one to manage.
fn announce(start: usize, bytes: usize, rights: c_int, flags: c_int) {
    PROCESS.forking.await_end();
    let end = (start + bytes).next_multiple_of(PAGE);
    let bytes = end - start;
    let is_stack = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
    let is_special = is_stack || flags & (libc::MAP_HUGETLB | libc::MAP_LOCKED) != 0;
    let is_plain = rights & libc::PROT_EXEC == 0 && rights & libc::PROT_WRITE != 0;
    if is_special {
        PROCESS.requests.ask(Ask::Leave { start, bytes }, ASK_LIMIT);
    } else if is_plain && bytes >= ANNOUNCED_BYTES_LEAST {
        PROCESS.requests.ask(Ask::Map { start, bytes }, ASK_LIMIT);
    } else if is_plain {
        PROCESS.growth.note(&PROCESS.requests, start, end);
    } else if rights == libc::PROT_NONE && bytes >= RESERVED_BYTES_LEAST && !PROCESS.is_in_thread()
    {
        // Allocators open such reservations bit by bit.
        PROCESS.requests.ask(Ask::Look { start, bytes }, ASK_LIMIT);
    }
}
