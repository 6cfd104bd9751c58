//! The processors that threads may use: what a program asks about or changes is never what it is
//! confined to for a while.
//!
//! The engine keeps threads that mostly wait for it on its own processor, in series. Before a
//! program looks at what its threads may use, or changes that, the series ends. A system call made
//! without the C library passes by, and may see one processor.

use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::hooks::{find_original, keeping_errno};
use tidemark_live::requests::Ask;

use crate::REQUESTS;

/// The longest wait for the end of a series.
const ASK_LIMIT: Duration = Duration::from_secs(1);

type Call = unsafe extern "C" fn(usize, usize, *mut libc::cpu_set_t) -> c_int;

/// Ends a series, and makes the C library's own call.
///
/// # Safety
/// `name` is a function of the C library that takes a thread, a size and a set.
unsafe fn call(
    found: &AtomicUsize,
    name: &std::ffi::CStr,
    thread: usize,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    if REQUESTS.has_engine() {
        // Without an answer it is seen as it is.
        let _ = keeping_errno(|| REQUESTS.ask(Ask::Release, ASK_LIMIT));
    }
    match find_original(found, name) {
        0 => libc::ENOSYS,
        // SAFETY: by the caller's word.
        found => unsafe { std::mem::transmute::<usize, Call>(found)(thread, bytes, set) },
    }
}

/// Interposes `sched_getaffinity`.
///
/// # Safety
/// As for the C library's `sched_getaffinity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(
    thread: libc::pid_t,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: it takes these.
    unsafe { call(&FOUND, c"sched_getaffinity", thread as usize, bytes, set) }
}

/// Interposes `sched_setaffinity`.
///
/// # Safety
/// As for the C library's `sched_setaffinity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setaffinity(
    thread: libc::pid_t,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: it takes these.
    unsafe { call(&FOUND, c"sched_setaffinity", thread as usize, bytes, set) }
}

/// Interposes `pthread_getaffinity_np`.
///
/// # Safety
/// As for the C library's `pthread_getaffinity_np`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getaffinity_np(
    thread: libc::pthread_t,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: it takes these.
    unsafe {
        call(
            &FOUND,
            c"pthread_getaffinity_np",
            thread as usize,
            bytes,
            set,
        )
    }
}

/// Interposes `pthread_setaffinity_np`.
///
/// # Safety
/// As for the C library's `pthread_setaffinity_np`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setaffinity_np(
    thread: libc::pthread_t,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: it takes these.
    unsafe {
        call(
            &FOUND,
            c"pthread_setaffinity_np",
            thread as usize,
            bytes,
            set,
        )
    }
}
