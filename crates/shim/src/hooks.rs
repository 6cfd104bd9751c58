//! The calls that are interposed: mappings, so that they are managed from their first touch, and
//! forks.
//!
//! `munmap`, `mremap` and `madvise` need no hooks for that: the kernel tells the engine about them,
//! whoever calls.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_live::engine::{REST_LIMIT, say};
use tidemark_live::meters::{self, Metered};
use tidemark_live::requests::Ask;
use tidemark_live::sys::{PAGE, memory, signal, thread};

use crate::{CHILD, REQUESTS, filters, own, way};

/// Smaller mappings are left to the scanner: to announce one costs as much as filling it.
const ANNOUNCED_BYTES_LEAST: usize = 128 << 10;
/// The time that a program thread waits for the engine. It goes on in any case.
pub(crate) const ASK_LIMIT: Duration = Duration::from_secs(5);

/// Set from the freeze to the end of the fork.
static IS_FORKING: AtomicBool = AtomicBool::new(false);
/// One fork at a time: the freeze holds for one.
static FORK_LOCK: AtomicBool = AtomicBool::new(false);
/// The thread that has it; zero: none.
static FORKING_THREAD: AtomicU32 = AtomicU32::new(0);

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
    if own::refuses_place(start as usize, bytes, flags) {
        return libc::MAP_FAILED;
    }
    // SAFETY: passed on as it is.
    let answer =
        unsafe { libc::syscall(libc::SYS_mmap, start, bytes, rights, flags, file, offset) };
    let mapped = answer as *mut c_void;
    if mapped != libc::MAP_FAILED {
        announce(answer as usize, bytes, rights, flags);
    }
    mapped
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

/// Interposes `fork`, only to learn whether it failed: the hooks around it can't tell.
///
/// # Safety
/// As for the C library's `fork`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> c_int {
    let Some(original) = find_fork() else {
        // SAFETY: sets the calling thread's error number.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    };
    // SAFETY: the C library's own function.
    let answer = unsafe { original() };
    if answer < 0 {
        keeping_errno(abandon_child);
    }
    answer
}

type Hook = Option<unsafe extern "C" fn()>;

/// Interposes what stands behind `pthread_atfork`, so that our hooks are registered before anyone
/// else's. They are called in the order of registration after a fork: the child must have its
/// engine back before an allocator looks at its own memory there.
///
/// # Safety
/// As for the C library's `__register_atfork`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_atfork(
    before: Hook,
    after: Hook,
    child: Hook,
    library: *mut c_void,
) -> c_int {
    watch_forks();
    match find_register() {
        // SAFETY: the C library's own function.
        Some(original) => unsafe { original(before, after, child, library) },
        None => libc::ENOMEM,
    }
}

/// Has the C library call the hooks around every fork it makes.
pub(crate) fn watch_forks() -> bool {
    static IS_WATCHING: AtomicBool = AtomicBool::new(false);
    if IS_WATCHING.swap(true, Ordering::AcqRel) {
        return true;
    }
    let (Some(_), Some(register)) = (find_fork(), find_register()) else {
        return false;
    };
    let (before, after, child) = (
        Some(before_fork as _),
        Some(after_fork as _),
        Some(in_child as _),
    );
    // SAFETY: the hooks are functions of this library, which is never unloaded.
    unsafe { register(before, after, child, std::ptr::null_mut()) == 0 }
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

unsafe extern "C" fn before_fork() {
    if quiesce() {
        keeping_errno(touch_for_child);
    }
}

unsafe extern "C" fn after_fork() {
    // Whether there is a child `fork` itself must tell.
    resume_parent(true);
}

unsafe extern "C" fn in_child() {
    resume_child();
}

/// Has the engine come to rest for a fork by this thread. False if there is no engine, or another
/// fork of this thread is under way, in whose midst a signal has arrived.
pub(crate) fn quiesce() -> bool {
    keeping_errno(|| {
        if !REQUESTS.has_engine() || !lock_forks() {
            return false;
        }
        way::open();
        let Some(child) = REQUESTS.ask(Ask::Freeze, REST_LIMIT) else {
            say("the engine does not come to rest for a fork; the program is ended");
            signal::end_process();
        };
        CHILD.store(child, Ordering::Release);
        IS_FORKING.store(true, Ordering::Release);
        true
    })
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
        std::thread::sleep(Duration::from_micros(200));
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
            // Whatever comes next waits for that, if it must.
            REQUESTS.tell(Ask::Thaw);
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
        unlock_forks();
        REQUESTS.set_engine(0, None);
        // SAFETY: the parent's threads do not exist here, so that the stack slots are free.
        let started = unsafe { crate::start_threads(crate::run_engine_in_child) };
        if started.is_err() {
            say("a forked process can't have an engine, and is ended");
            signal::end_process();
        }
        way::close();
        crate::hold_lifeline();
    });
}

/// Touches what the C library uses in the child before our hook runs there. The engine is frozen:
/// what is present now stays so until the fork is over. It has seen to the heads of heaps itself.
fn touch_for_child() {
    unsafe extern "C" {
        fn _IO_iter_begin() -> *mut c_void;
        fn _IO_iter_end() -> *mut c_void;
        fn _IO_iter_next(at: *mut c_void) -> *mut c_void;
        fn _IO_iter_file(at: *mut c_void) -> *mut c_void;
        fn _IO_list_lock();
        fn _IO_list_unlock();
    }
    // The streams, which lie on the heap, and their locks, which lie in them or beside them.
    // SAFETY: the C library's own way to walk its list, under its lock.
    unsafe {
        _IO_list_lock();
        let mut at = _IO_iter_begin();
        while at != _IO_iter_end() {
            let file = _IO_iter_file(at).cast::<u8>();
            for offset in [0, STREAM_BYTES - 1] {
                touch(file.add(offset));
            }
            let lock = *file.add(STREAM_LOCK_AT).cast::<*mut u8>();
            if !lock.is_null() {
                touch(lock);
            }
            at = _IO_iter_next(at);
        }
        _IO_list_unlock();
    }
    touch_control_blocks();
    // This thread's own stack, should it be managed memory: a little on both sides of here.
    let here = &raw const FORK_LOCK as usize;
    let mut marker = 0u8;
    let top = &raw mut marker as usize;
    if here != top {
        for page in 0..4 {
            // SAFETY: the pages above the current frame belong to the frames of this call chain.
            unsafe { touch((top + page * 256) as *mut u8) };
        }
    }
}

/// The control blocks of all threads, which the C library walks in the child to free their stacks.
/// They lie at the tops of those, and a stack may be managed: one without a guard, say, that was
/// kept for the next thread when its own had ended.
fn touch_control_blocks() {
    // Threads that could not be listed are as safe as they were.
    let _ = thread::visit_threads(|number| {
        let Some(list) = thread::robust_list_head(number) else {
            return;
        };
        let first = list.saturating_sub(BLOCK_BYTES_BEFORE_LIST);
        for at in [first, list.saturating_add(BLOCK_BYTES_FROM_LIST)] {
            if !memory::overlaps_own(at, at.saturating_add(1)) {
                // By way of the kernel: the thread may have ended by now.
                let _ = thread::read_own_memory(at, &mut [0]);
            }
        }
    });
}

/// The most bytes of the C library's `struct pthread` that lie before its list of robust locks, ...
const BLOCK_BYTES_BEFORE_LIST: usize = 0x300;
/// ... and from it on: `struct pthread` is smaller than a page in all.
const BLOCK_BYTES_FROM_LIST: usize = 0x600;

/// The size of the C library's `struct _IO_FILE_plus` with its lock beside it, at least.
const STREAM_BYTES: usize = 232;
/// The offset at which a stream points to its lock.
const STREAM_LOCK_AT: usize = 136;

/// Reads and writes back one byte, without changing it.
///
/// # Safety
/// `at` is mapped, and nobody writes to it at the same time.
unsafe fn touch(at: *mut u8) {
    // SAFETY: by the caller's word.
    unsafe { at.read_volatile() };
}

/// Tells the engine of a new mapping, if it is one to manage.
fn announce(start: usize, bytes: usize, rights: c_int, flags: c_int) {
    let is_private = flags & libc::MAP_PRIVATE != 0 && flags & libc::MAP_ANONYMOUS != 0;
    if !is_private || filters::are_set() || !REQUESTS.has_engine() || crate::thread::is_own() {
        return;
    }
    let end = (start + bytes).next_multiple_of(PAGE);
    let is_stack = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
    let is_special = is_stack || flags & (libc::MAP_HUGETLB | libc::MAP_LOCKED) != 0;
    if is_special {
        keeping_errno(|| {
            REQUESTS.ask(
                Ask::Leave {
                    start,
                    bytes: end - start,
                },
                ASK_LIMIT,
            )
        });
        return;
    }
    let is_plain = rights & libc::PROT_EXEC == 0 && rights & libc::PROT_WRITE != 0;
    if is_plain && end - start >= ANNOUNCED_BYTES_LEAST {
        keeping_errno(|| {
            REQUESTS.ask(
                Ask::Map {
                    start,
                    bytes: end - start,
                },
                ASK_LIMIT,
            )
        });
    }
}

type Fork = unsafe extern "C" fn() -> c_int;
type Register = unsafe extern "C" fn(Hook, Hook, Hook, *mut c_void) -> c_int;

fn find_fork() -> Option<Fork> {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = find_original(&FOUND, c"fork");
    // SAFETY: the C library's `fork` has this type; null is `None`.
    (found != 0).then(|| unsafe { std::mem::transmute::<usize, Fork>(found) })
}

fn find_register() -> Option<Register> {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = find_original(&FOUND, c"__register_atfork");
    // SAFETY: the C library's `__register_atfork` has this type; null is `None`.
    (found != 0).then(|| unsafe { std::mem::transmute::<usize, Register>(found) })
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
