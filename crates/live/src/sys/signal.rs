//! The doorbell that program threads ring, and how an engine ends its process.
//!
//! There are two kinds. A *signal* reaches an engine whose files the program's threads can't name.
//! But whoever polls for signals is woken by any that the process is sent, and in in-thread mode
//! every fault is one: there the doorbell is a *timer*, in the file table that all share.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

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

/// Makes a timer for a doorbell.
pub fn timer() -> Result<OwnedFd, Errno> {
    let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Rings a doorbell that is the timer of this number. Should the program have closed it, another
/// file of that number comes to no harm.
pub fn ring_timer(number: RawFd) -> Result<(), Errno> {
    let zero = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let at_once = libc::itimerspec {
        it_interval: zero,
        it_value: libc::timespec { tv_nsec: 1, ..zero },
    };
    // SAFETY: reads the live times it is given.
    let answer =
        unsafe { libc::timerfd_settime(number, 0, &raw const at_once, std::ptr::null_mut()) };
    if answer == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

/// Silences the doorbell.
pub fn take_rings(doorbell: &OwnedFd) {
    // The size of a `signalfd_siginfo`; a timer's count needs less.
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

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;
    use crate::sys::socket::wait_readable;

    #[test]
    fn a_timer_rings_at_once_and_until_it_is_taken() {
        let bell = timer().unwrap();
        let is_heard = |limit_ns| wait_readable(&[bell.as_fd()], Some(limit_ns)) == Ok(1);
        assert!(!is_heard(0));
        ring_timer(bell.as_raw_fd()).unwrap();
        assert!(is_heard(10_000_000_000));
        take_rings(&bell);
        assert!(!is_heard(1_000_000));
    }

    #[test]
    fn another_file_of_a_timers_number_is_left_alone() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(ring_timer(file.as_raw_fd()), Err(Errno::INVAL));
    }
}
