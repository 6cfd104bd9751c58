//! The calls interposed for memory that is lent to the kernel without a pin.
//!
//! A page that the kernel holds for input or output can't be moved, and the engine sees that. But
//! the pages that `vmsplice` puts into a pipe, and those of sends without a copy, are read later,
//! and the kernel lets them be moved. The reader of the pipe would then get the new contents of
//! their frames. So both calls are made to copy.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use crate::process::PROCESS;

/// More than the first bytes of what is given need not fit.
const PIPE_BYTES_LEAST: usize = 4096;

/// Interposes `vmsplice`: what goes into a pipe is copied, and like there what does not fit is left
/// out.
///
/// # Safety
/// As for the C library's `vmsplice`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsplice(
    file: c_int,
    parts: *const libc::iovec,
    count: usize,
    flags: c_uint,
) -> isize {
    if !PROCESS.requests.has_engine() || !takes_in(file) {
        // SAFETY: passed on as it is: from a pipe, the kernel copies; all else it refuses.
        return unsafe { libc::syscall(libc::SYS_vmsplice, file, parts, count, flags) } as isize;
    }
    loop {
        // SAFETY: the caller's own parts; the kernel checks where they point.
        let written = unsafe { write_what_fits(file, parts, count as c_int) };
        let is_full = written < 0 && errno() == libc::EAGAIN;
        if !is_full || flags & libc::SPLICE_F_NONBLOCK != 0 || !await_room(file) {
            return written;
        }
    }
}

/// Interposes `setsockopt`: sends without a copy are refused.
///
/// # Safety
/// As for the C library's `setsockopt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    bytes: libc::socklen_t,
) -> c_int {
    let is_zero_copy = (level, name) == (libc::SOL_SOCKET, libc::SO_ZEROCOPY);
    if is_zero_copy && PROCESS.requests.has_engine() {
        // SAFETY: sets the calling thread's error number.
        unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
        return -1;
    }
    // SAFETY: passed on as it is.
    unsafe { libc::syscall(libc::SYS_setsockopt, socket, level, name, value, bytes) as c_int }
}

/// Returns true if `file` is a pipe that can be written to.
fn takes_in(file: c_int) -> bool {
    // SAFETY: a C struct of integers, for which zeros are a value.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is there for the call, and only this function has it.
    let is_known = unsafe { libc::fstat(file, &raw mut found) } == 0;
    // SAFETY: asks for the flags of a file, which need not be one.
    let flags = unsafe { libc::fcntl(file, libc::F_GETFL) };
    let is_writable = flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    is_known && is_writable && found.st_mode & libc::S_IFMT == libc::S_IFIFO
}

/// Writes what there is room for, without waiting.
///
/// # Safety
/// `parts` are `count` parts that the program may have written.
unsafe fn write_what_fits(file: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    const HERE: libc::off_t = -1;
    // The call takes the offset in two halves.
    let (low, high) = (HERE as c_ulong, 0 as c_ulong);
    let flags = libc::RWF_NOWAIT;
    // SAFETY: the kernel checks the parts and where they point.
    let written =
        unsafe { libc::syscall(libc::SYS_pwritev2, file, parts, count, low, high, flags) };
    if written >= 0 || errno() != libc::EOPNOTSUPP {
        return written as isize;
    }
    // Named pipes can't be told not to wait: what a pipe with room for anything has room for.
    if !has_room(file, 0) {
        // SAFETY: sets the calling thread's error number.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        return -1;
    }
    for number in 0..count as usize {
        // SAFETY: the kernel has read the parts to see that it can't write them so.
        let part = unsafe { *parts.add(number) };
        if part.iov_len > 0 {
            let bytes = part.iov_len.min(PIPE_BYTES_LEAST);
            // SAFETY: the kernel checks where the part points.
            return unsafe { libc::write(file, part.iov_base, bytes) };
        }
    }
    0
}

/// Waits for room. False if a signal has come first.
fn await_room(file: c_int) -> bool {
    has_room(file, -1)
}

fn has_room(file: c_int, wait_ms: c_int) -> bool {
    let mut wanted = libc::pollfd {
        fd: file,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one entry, there for the call.
    unsafe { libc::poll(&raw mut wanted, 1, wait_ms) > 0 }
}

fn errno() -> c_int {
    // SAFETY: reads the calling thread's error number.
    unsafe { *libc::__errno_location() }
}
