//! Mappings, which are managed from their first touch, and forks.
//!
//! `munmap`, `mremap` and `madvise` need no hooks for that: the kernel reports them to the engine,
//! from every caller. The calls that the C library makes by itself come by way of
//! [`sites`](crate::sites).

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_live::engine::say;
use tidemark_live::meters::{self, Metered};
use tidemark_live::requests::Ask;
use tidemark_live::sys::{PAGE, signal, thread};

use crate::forks::note_error;
use crate::{
    CHILD, REQUESTS, filters, growth, heap, is_in_thread, own, system_call, system_call_of_six, way,
};

/// Smaller mappings are announced together: to announce one costs as much as filling it.
const ANNOUNCED_BYTES_LEAST: usize = 128 << 10;
/// Smaller mappings without any rights are guards, and not reservations.
const RESERVED_BYTES_LEAST: usize = 1 << 20;
/// The time that a program thread waits for the engine. It goes on in any case.
pub(crate) const ASK_LIMIT: Duration = Duration::from_secs(5);
/// The pause between two looks whether a fork of another thread is over.
const FORK_PAUSE: Duration = Duration::from_micros(200);

/// Set from the freeze to the end of the fork.
static IS_FORKING: AtomicBool = AtomicBool::new(false);
/// One fork at a time: the freeze holds for one.
static FORK_LOCK: AtomicBool = AtomicBool::new(false);
/// The thread that has it; zero: none.
static FORKING_THREAD: AtomicU32 = AtomicU32::new(0);
/// The end of the heap, as this process last set it.
static HEAP_END: AtomicUsize = AtomicUsize::new(0);

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
    // SAFETY: the caller's call.
    let answer = unsafe { system_call(libc::SYS_brk, [end as c_long, 0, 0, 0, 0]) };
    let after = (answer as usize).next_multiple_of(PAGE);
    let before = HEAP_END.swap(after, Ordering::AcqRel);
    if before != 0 && before < after && is_followed() {
        keeping_errno(|| {
            await_forks();
            growth::note(before, after);
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
    if files::is_wanted(flags, file) {
        return map_file(start, bytes, rights, flags, file, offset);
    }
    let is_private = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_PRIVATE != 0;
    if !is_private || !is_followed() {
        return map_by_call(start, bytes, rights, flags, file, offset);
    }
    // Pages come as they are touched: all at once they might be more than the budget.
    let kind = match flags & libc::MAP_LOCKED {
        0 => flags & !libc::MAP_POPULATE,
        _ => flags,
    };
    let answer = map_by_call(start, bytes, rights, kind, file, offset);
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
    !filters::are_set() && REQUESTS.has_engine() && !crate::thread::is_own()
}

/// Waits until no other thread forks.
///
/// What is mapped while a fork is under way may lie where something else was that the engine has
/// not been told of yet: the child must not find it in use.
fn await_forks() {
    let forking = || FORKING_THREAD.load(Ordering::Acquire);
    if forking() == 0 || forking() == thread::current() {
        return;
    }
    while forking() != 0 {
        std::thread::sleep(FORK_PAUSE);
    }
}

/// Waits until no other thread forks and the engine knows of all changes where memory was moved to.
///
/// Another thread may have left that place whose message is still on its way. What this one says of
/// its memory next must not come before: it would be taken to be about the memory that was there.
pub(crate) fn await_move(start: usize, bytes: usize) {
    if is_followed() {
        keeping_errno(|| {
            await_forks();
            REQUESTS.ask(Ask::Look { start, bytes }, ASK_LIMIT);
        });
    }
}

/// Tells the engine that the program ends.
pub(crate) fn finish() {
    if !filters::are_set() && REQUESTS.has_engine() {
        REQUESTS.ask(Ask::Finish, ASK_LIMIT);
    }
}

/// Has the engine write what it logs, references or decisions: the calling process is about to
/// leave its memory.
///
/// A child that shares its parent's memory, to execute a program, leaves nothing.
pub(crate) fn catch_up() {
    if crate::is_logged() && !filters::are_set() && REQUESTS.has_engine() {
        keeping_errno(|| REQUESTS.ask(Ask::CatchUp, ASK_LIMIT));
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
        if !REQUESTS.has_engine() || !lock_forks() {
            return Readiness::Unfollowed;
        }
        way::open();
        let Some(child) = freeze() else {
            way::close();
            unlock_forks();
            return Readiness::Refused;
        };
        CHILD.store(child, Ordering::Release);
        heap::hold();
        IS_FORKING.store(true, Ordering::Release);
        Readiness::AtRest
    })
}

/// Asks for rest until there is an answer: without one the child would lack pages. Answers the
/// child's record plus one.
fn freeze() -> Option<u64> {
    let thread = thread::current();
    while REQUESTS.has_engine() {
        if let Some(child) = REQUESTS.ask(Ask::Freeze { thread }, Duration::MAX) {
            return (child != 0).then_some(child);
        }
        // All places for requests are taken.
        std::thread::sleep(FORK_PAUSE);
    }
    None
}

/// Keeps other threads from forking, once none is at it. False if this thread is.
pub(crate) fn lock_forks() -> bool {
    let thread = thread::current();
    if FORKING_THREAD.load(Ordering::Acquire) == thread {
        return false;
    }
    let asked_ns = meters::asked();
    let mut is_contended = false;
    while FORK_LOCK.swap(true, Ordering::AcqRel) {
        is_contended = true;
        std::thread::sleep(FORK_PAUSE);
    }
    Metered::Forks.note_taken(asked_ns, is_contended);
    FORKING_THREAD.store(thread, Ordering::Release);
    true
}

/// Lets other threads fork again.
pub(crate) fn unlock_forks() {
    Metered::Forks.note_released();
    FORKING_THREAD.store(0, Ordering::Release);
    FORK_LOCK.store(false, Ordering::Release);
}

/// Has the engine go on in the process that forked, with or without a child.
pub(crate) fn resume_parent(has_child: bool) {
    keeping_errno(|| {
        if IS_FORKING.swap(false, Ordering::AcqRel) {
            heap::release();
            REQUESTS.thaw();
            way::close();
            if !has_child {
                abandon_child();
            }
            unlock_forks();
        }
    });
}

fn abandon_child() {
    let child = CHILD.swap(0, Ordering::AcqRel);
    if child != 0 {
        REQUESTS.ask(Ask::Abandon { child }, ASK_LIMIT);
    }
}

/// Starts the engine of a forked child.
pub(crate) fn resume_child() {
    keeping_errno(|| {
        if !IS_FORKING.swap(false, Ordering::AcqRel) {
            return;
        }
        heap::release();
        growth::forget();
        unlock_forks();
        REQUESTS.set_engine(0, None);
        // SAFETY: the parent's threads do not exist here, so that the stack slots are free.
        let started = unsafe { crate::start_threads(crate::run_engine_in_child, Duration::MAX) };
        if started.is_err() {
            say("a forked process can't have an engine, and is ended");
            signal::end_process();
        }
        way::close();
        crate::hold_lifeline();
    });
}

/// Tells the engine of a new private mapping, if it is one to manage.
fn announce(start: usize, bytes: usize, rights: c_int, flags: c_int) {
    await_forks();
    let end = (start + bytes).next_multiple_of(PAGE);
    let bytes = end - start;
    let is_stack = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
    let is_special = is_stack || flags & (libc::MAP_HUGETLB | libc::MAP_LOCKED) != 0;
    let is_plain = rights & libc::PROT_EXEC == 0 && rights & libc::PROT_WRITE != 0;
    if is_special {
        REQUESTS.ask(Ask::Leave { start, bytes }, ASK_LIMIT);
    } else if is_plain && bytes >= ANNOUNCED_BYTES_LEAST {
        REQUESTS.ask(Ask::Map { start, bytes }, ASK_LIMIT);
    } else if is_plain {
        growth::note(start, end);
    } else if rights == libc::PROT_NONE && bytes >= RESERVED_BYTES_LEAST && !is_in_thread() {
        // Allocators open such reservations bit by bit.
        REQUESTS.ask(Ask::Look { start, bytes }, ASK_LIMIT);
    }
}

/// The address of the function behind one of ours, kept in `found`; zero if there is none.
pub(crate) fn find_original(found: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    let mut address = found.load(Ordering::Acquire);
    if address == 0 {
        // SAFETY: a name ended by a zero byte.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
        found.store(address, Ordering::Release);
    }
    address
}

pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the calling thread's own error number, at both ends.
    let before = unsafe { *libc::__errno_location() };
    let value = body();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    value
}

/// Mappings of files that the engine manages (`run --files`).
///
/// The kernel tells the engine of what becomes of them as of other managed memory. What it says
/// nothing of comes by here: advice, rights, and mappings that grow.
pub(crate) mod files {
    use std::ffi::{c_int, c_long};
    use std::os::fd::RawFd;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use tidemark_live::requests::{Ask, FileMapping, SHARED, TAKEN};
    use tidemark_live::sys::PAGE;

    use super::{ASK_LIMIT, await_forks, is_followed, keeping_errno};
    use crate::{REQUESTS, system_call};

    /// `MADV_DONTNEED_LOCKED` (Linux `include/uapi/asm-generic/mman-common.h`).
    const DONTNEED_LOCKED: c_int = 24;

    /// True if there are files to manage.
    static ARE_WANTED: AtomicBool = AtomicBool::new(false);
    /// The lowest address of all mappings that were ever managed.
    static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
    /// The first address behind them.
    static END: AtomicUsize = AtomicUsize::new(0);

    /// Has mappings of files told to the engine from now on.
    pub(crate) fn note_wanted() {
        ARE_WANTED.store(true, Ordering::Relaxed);
    }

    /// Returns true if a mapping that is about to be made is to be told to the engine.
    pub(crate) fn is_wanted(flags: c_int, file: RawFd) -> bool {
        let kind = flags & libc::MAP_TYPE;
        let is_usual = kind == libc::MAP_PRIVATE || kind == libc::MAP_SHARED;
        let special =
            libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_GROWSDOWN;
        let is_asked = ARE_WANTED.load(Ordering::Relaxed);
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
        await_forks();
        let shared = match flags & libc::MAP_TYPE == libc::MAP_SHARED {
            true => SHARED,
            false => 0,
        };
        let is_managed = u32::try_from(offset / PAGE as i64).is_ok_and(|first| {
            let answer = REQUESTS.ask(
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
            LOWEST.fetch_min(start, Ordering::Relaxed);
            END.fetch_max(start.saturating_add(bytes), Ordering::Relaxed);
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
        END.fetch_max(start.saturating_add(bytes), Ordering::Relaxed);
        LOWEST.fetch_min(start, Ordering::Relaxed);
        let grown = ask(Ask::GrowFile {
            start,
            bytes_before,
            bytes,
        });
        grown.is_some()
    }

    /// Returns true if a range may be a managed file's.
    pub(crate) fn may_be_ours(start: usize, bytes: usize) -> bool {
        let end = start.saturating_add(bytes);
        start < END.load(Ordering::Relaxed) && LOWEST.load(Ordering::Relaxed) < end && is_followed()
    }

    /// Asks, and answers as the kernel does. `None`: it is about nothing of the engine's.
    fn ask(ask: Ask) -> Option<c_long> {
        let answer = keeping_errno(|| {
            await_forks();
            REQUESTS.ask(ask, ASK_LIMIT)
        });
        match answer {
            None | Some(0) => None,
            Some(answer) => Some(-((answer - TAKEN) as c_long)),
        }
    }
}
