//! Filters of system calls that a program sets for itself (`seccomp`).
//!
//! A filter holds for the thread that sets it, or for all threads of its process, and for threads
//! and children that come from there. The engine is another process, and has none.
//!
//! A filter permits only what the program needs: from then on this library makes no system calls on
//! the program's threads, and the engine's scans find new mappings. A fork alone still asks the
//! engine: without that its child would lack pages.

use std::ffi::{c_int, c_long};

use tidemark_live::engine::say;
use tidemark_live::sys::PAGE;

use crate::calls::{note_error, system_call};
use crate::hooks::files;
use crate::process::PROCESS;

const STRICT: c_long = libc::SECCOMP_SET_MODE_STRICT as c_long;
const FILTER: c_long = libc::SECCOMP_SET_MODE_FILTER as c_long;

/// Interposes `prctl`.
///
/// # Safety
/// As for the C library's `prctl`, whose optional arguments are always passed on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: c_long, b: c_long, c: c_long, d: c_long) -> c_int {
    prctl_by_call(libc::SYS_prctl, option.into(), a, b, c, d) as c_int
}

/// The system call `prctl`, as `syscall` is given it.
pub(crate) extern "C" fn prctl_by_call(
    _: c_long,
    option: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
) -> c_long {
    // SAFETY: the caller's system call, as it is.
    let call = || unsafe { system_call(libc::SYS_prctl, [option, a, b, c, d]) };
    note_error(match option as c_int {
        libc::PR_SET_SECCOMP => setting(call),
        _ => call(),
    })
}

/// The system call `seccomp`, as `syscall` is given it.
pub(crate) extern "C" fn seccomp_by_call(
    _: c_long,
    operation: c_long,
    flags: c_long,
    filter: c_long,
) -> c_long {
    // SAFETY: the caller's system call, as it is.
    let call = || unsafe { system_call(libc::SYS_seccomp, [operation, flags, filter, 0, 0]) };
    note_error(match [STRICT, FILTER].contains(&operation) {
        true => setting(call),
        false => call(),
    })
}

/// Makes a call that sets a filter, if all goes well.
fn setting(call: impl FnOnce() -> c_long) -> c_long {
    // From now on nothing could ask for what is modified to be written before it is lost.
    files::give_up(0, usize::MAX & !(PAGE - 1));
    let was_set = PROCESS.begin_filter();
    if !was_set && PROCESS.is_in_thread() && PROCESS.requests.has_engine() {
        say(
            "the program filters its system calls; if those that serve its faults are not among \
             the permitted, it will be ended: run it without `--in-thread`",
        );
    }
    let answer = call();
    if answer != 0 && !was_set {
        PROCESS.forget_filter();
    }
    answer
}
