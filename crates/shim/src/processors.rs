//! The processors that threads may use: what a program asks about or changes is never what it is
//! confined to for a while.
//!
//! The engine keeps threads that mostly wait for it on its own processor, in series. Before a
//! program looks at what its threads may use, or changes that, the series ends. A system call made
//! without the C library passes by, and may see one processor.

use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::calls::{find_original, keeping_errno};
use tidemark_live::requests::Ask;

use crate::process::PROCESS;

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
    if PROCESS.requests.has_engine() {
        // Without an answer it is seen as it is.
        let _ = keeping_errno(|| PROCESS.requests.ask(Ask::Release, ASK_LIMIT));
    }
    match find_original(found, name) {
        0 => libc::ENOSYS,
        // SAFETY: by the caller's word.
        found => unsafe { std::mem::transmute::<usize, Call>(found)(thread, bytes, set) },
    }
}

/// Interposes functions of these names, for threads of these types.
macro_rules! interpose {
    ($($name:ident($thread:ty) $text:literal)*) => {$(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            thread: $thread,
            bytes: usize,
            set: *mut libc::cpu_set_t,
        ) -> c_int {
            static FOUND: AtomicUsize = AtomicUsize::new(0);
            // SAFETY: it takes these.
            unsafe { call(&FOUND, $text, thread as usize, bytes, set) }
        }
    )*};
}

interpose! {
    sched_getaffinity(libc::pid_t) c"sched_getaffinity"
    sched_setaffinity(libc::pid_t) c"sched_setaffinity"
    pthread_getaffinity_np(libc::pthread_t) c"pthread_getaffinity_np"
    pthread_setaffinity_np(libc::pthread_t) c"pthread_setaffinity_np"
}
