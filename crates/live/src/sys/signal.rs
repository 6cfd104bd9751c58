//! Signals: the doorbell that program threads ring, and how an engine ends its process.

use std::os::fd::{FromRawFd, OwnedFd};

use super::Errno;

/// The signal that wakes the engine. The C library keeps it from programs (it cancels threads
/// with it), so that nobody else uses it; the engine's thread blocks it and reads it from a
/// descriptor, so that no handler ever runs.
const DOORBELL: i32 = 32;

/// Makes the descriptor on which the calling thread, which must have the signal blocked, sees its
/// doorbell.
pub fn doorbell() -> Result<OwnedFd, Errno> {
    let mask = 1u64 << (DOORBELL - 1);
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the mask is live and of the kernel's size.
    let fd = unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8usize, flags) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Rings the doorbell of `thread`, which belongs to the calling process.
pub fn ring(thread: u32) -> Result<(), Errno> {
    send(thread, DOORBELL)
}

/// Silences the doorbell.
pub fn take_rings(doorbell: &OwnedFd) {
    // The size of a `signalfd_siginfo`.
    let mut bytes = [0u8; 128];
    while rustix::io::read(doorbell, &mut bytes).is_ok_and(|count| count > 0) {}
}

/// Ends the process with `SIGBUS`, whatever the program does about that signal; with `SIGKILL` if
/// that takes no effect within a tenth of a second.
pub fn end_process() -> ! {
    let action = [0u64; 4];
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: a zeroed kernel sigaction asks for the default, which ends the process.
    unsafe {
        let none = std::ptr::null_mut::<u8>();
        libc::syscall(
            libc::SYS_rt_sigaction,
            libc::SIGBUS,
            action.as_ptr(),
            none,
            8usize,
        );
        libc::syscall(libc::SYS_kill, pid, libc::SIGBUS);
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    loop {
        // SAFETY: ends this process and nobody else.
        unsafe { libc::syscall(libc::SYS_kill, pid, libc::SIGKILL) };
    }
}

fn send(thread: u32, signal: i32) -> Result<(), Errno> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: signals a thread of this process; the kernel checks that it is one.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, signal) };
    if answer == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

fn last_error() -> Errno {
    // SAFETY: libc gives the address of the calling thread's error number.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
