//! Calls that the kernel refuses to a process that shares its memory with another, as each program
//! does here with its engine: to enter a time namespace, and to stop sharing.

use std::ffi::{CStr, c_int, c_long};

use tidemark_live::engine::say;

use crate::calls::{keeping_errno, note_error, system_call};
use crate::process::PROCESS;

/// The parts that a program shares with its engine, as far as `unshare` asks about them.
const SHARED: c_long = (libc::CLONE_VM | libc::CLONE_SIGHAND) as c_long;
/// The kernel's answer to a process that may not enter since it is not alone with its memory.
const REFUSED: c_long = -(libc::EUSERS as c_long);

/// Interposes `unshare`.
///
/// # Safety
/// As for the C library's `unshare`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    unshare_by_call(libc::SYS_unshare, flags.into()) as c_int
}

/// The system call `unshare`, as `syscall` is given it. A program of one thread that is to share
/// nothing with others but its engine shares nothing by its own lights.
pub(crate) extern "C" fn unshare_by_call(_: c_long, flags: c_long) -> c_long {
    // SAFETY: the caller's system call, which takes no pointer.
    let call = |flags: c_long| unsafe { system_call(libc::SYS_unshare, [flags, 0, 0, 0, 0]) };
    note_error(match flags & SHARED {
        0 => call(flags),
        _ if PROCESS.is_filtered() || !PROCESS.requests.has_engine() => call(flags),
        _ => call(flags & !SHARED | libc::CLONE_THREAD as c_long),
    })
}

/// Interposes `setns`.
///
/// # Safety
/// As for the C library's `setns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setns(file: c_int, kinds: c_int) -> c_int {
    setns_by_call(libc::SYS_setns, file.into(), kinds.into()) as c_int
}

/// The system call `setns`, as `syscall` is given it.
pub(crate) extern "C" fn setns_by_call(_: c_long, file: c_long, kinds: c_long) -> c_long {
    // SAFETY: the caller's system call, which takes no pointer.
    let answer = unsafe { system_call(libc::SYS_setns, [file, kinds, 0, 0, 0]) };
    if answer == REFUSED && !PROCESS.is_filtered() && PROCESS.requests.has_engine() {
        if keeping_errno(|| is_own_time(file as c_int)) {
            return 0;
        }
        let line = "a time namespace can't be entered by a managed program: enter it before \
                    `tidemark run`";
        keeping_errno(|| say(line));
    }
    note_error(answer)
}

/// Returns true if a file is the time namespace that this process is in, and its children will be.
fn is_own_time(file: c_int) -> bool {
    let place = |ask: &dyn Fn(*mut libc::stat) -> c_int| {
        // SAFETY: a C struct for which zeros are a value.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        (ask(&raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    };
    let named = |name: &CStr| {
        // SAFETY: a name ended by a zero byte, and a live struct.
        place(&|found| unsafe { libc::stat(name.as_ptr(), found) })
    };
    // SAFETY: asked about only, whatever it is.
    let wanted = place(&|found| unsafe { libc::fstat(file, found) });
    let names = [c"/proc/self/ns/time", c"/proc/self/ns/time_for_children"];
    wanted.is_some() && names.iter().all(|name| named(name) == wanted)
}
