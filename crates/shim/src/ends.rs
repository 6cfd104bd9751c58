//! The ways to leave one's memory: `_exit` and its like, and executing another program.
//!
//! While references are recorded, the engine looks at intervals for written pages. Before the
//! memory goes, it is asked for a last look. Decisions that wait to be logged are written. An
//! orderly `exit` asks through the destructor. System calls made without the C library are not
//! seen.
//!
//! Arguments are passed on as they lie, in registers and on the stack: some of these functions
//! take any number of them.

use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicUsize;

use crate::calls::find_original;
#[cfg(target_arch = "x86_64")]
use crate::calls::interpose;
use crate::hooks;
use crate::process::PROCESS;

/// The names of what is interposed, in the order of [`FOUND`].
const NAMES: [&CStr; 13] = [
    c"_exit",
    c"_Exit",
    c"quick_exit",
    c"abort",
    c"execve",
    c"execv",
    c"execvp",
    c"execvpe",
    c"execl",
    c"execlp",
    c"execle",
    c"fexecve",
    c"execveat",
];

/// From this number on they execute another program.
const EXECUTES_FROM: usize = 4;

/// The functions behind ours; zero: not looked for yet, or not there.
static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// Finds the originals. Most of them may be called where the dynamic linker may not be: in signal
/// handlers, and in the forked child of a process with several threads.
pub(crate) fn find_originals() {
    for (name, found) in NAMES.iter().zip(&FOUND) {
        find_original(found, name);
    }
}

/// Has the engine look, and answers where to go on.
extern "C" fn prepare(_: usize, _: usize, _: usize, number: usize) -> usize {
    hooks::catch_up();
    if number >= EXECUTES_FROM {
        PROCESS.way.announce_exec(PROCESS.is_filtered());
    }
    let found = find_original(&FOUND[number], NAMES[number]);
    let missing: extern "C" fn() -> c_int = fail;
    if found == 0 { missing as usize } else { found }
}

/// Replaces a function that the C library does not have.
extern "C" fn fail() -> c_int {
    // SAFETY: sets the calling thread's error number.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

#[cfg(target_arch = "x86_64")]
interpose! { prepare,
    _exit 0
    _Exit 1
    quick_exit 2
    abort 3
    execve 4
    execv 5
    execvp 6
    execvpe 7
    execl 8
    execlp 9
    execle 10
    fexecve 11
    execveat 12
}
