//! The doorbell that program threads ring, how an engine ends its process, and signals that are
//! blocked and taken one by one.
//!
//! There are two kinds. A *signal* reaches an engine whose files the program's threads can't name.
//! But a poll for signals wakes at any that the process is sent, and in in-thread mode
//! every fault is one: there the doorbell is a *timer*, in the file table that all share.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::{Errno, last_error, program};

/// The signal that wakes the engine. The C library keeps it from programs (it cancels threads
/// with it), so that it has no other use. The engine's thread blocks it and reads it from a
/// descriptor; its handler runs only where it ends a [`blocking_read`](super::blocking_read).
pub(super) const DOORBELL: i32 = 32;

/// Signals, one bit each; the lowest bit is signal 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalSet(pub u64);

impl SignalSet {
    /// No signal.
    pub const NONE: SignalSet = SignalSet(0);
    /// Every signal. Those that can't be blocked are not blocked by it.
    pub const ALL: SignalSet = SignalSet(u64::MAX);

    /// Adds a signal by its number.
    pub fn insert(&mut self, signal: i32) {
        self.0 |= 1 << (signal - 1);
    }

    /// Returns true if it has the signal of this number.
    pub fn contains(self, signal: i32) -> bool {
        self.0 >> (signal - 1) & 1 != 0
    }
}

/// Blocks `signals` in the calling thread, beside those it has blocked, which it answers.
pub fn block(signals: SignalSet) -> Result<SignalSet, Errno> {
    change_mask(libc::SIG_BLOCK, signals)
}

/// Blocks `signals` and no others in the calling thread.
pub fn block_only(signals: SignalSet) -> Result<(), Errno> {
    change_mask(libc::SIG_SETMASK, signals).map(|_| ())
}

/// Has the calling thread not block `signals` any more.
pub(super) fn admit(signals: SignalSet) -> Result<(), Errno> {
    change_mask(libc::SIG_UNBLOCK, signals).map(|_| ())
}

/// Has this process handle each of `signals`. Calls that they interrupt are made again.
pub(super) fn set_handler(signals: [i32; 3], handler: extern "C" fn(i32)) -> Result<(), Errno> {
    // The C library knows how a handler returns, but does not handle signals that it keeps for
    // itself: those get the same action as the first.
    // SAFETY: a C struct for which zeros are a value, filled in before use; the handler has the
    // type that the flags promise.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signals[0], &raw const action, std::ptr::null_mut())
    };
    outcome(answer.into())?;
    let mut action = [0u64; 4];
    exchange_action(signals[0], std::ptr::null(), action.as_mut_ptr())?;
    let mut rest = signals[1..].iter();
    rest.try_for_each(|&signal| exchange_action(signal, action.as_ptr(), std::ptr::null_mut()))
}

/// Sets or gets the action for a signal as the kernel knows it: handler, flags, how it returns, and
/// mask.
fn exchange_action(signal: i32, new: *const u64, old: *mut u64) -> Result<(), Errno> {
    // SAFETY: what is not null is live and of the kernel's size, by the callers above.
    let answer = unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, 8usize) };
    outcome(answer)
}

/// Has the calling thread get `SIGIO` whenever something arrives at a socket, or it is closed.
pub(super) fn send_word_of(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    /// `struct f_owner_ex`, with `F_OWNER_TID`.
    #[repr(C)]
    struct Owner {
        kind: i32,
        thread: i32,
    }
    const SET_OWNER: i32 = 15;
    let flags = rustix::fs::fcntl_getfl(socket)?;
    let thread = super::thread::current() as i32;
    let owner = Owner { kind: 0, thread };
    // SAFETY: reads the live struct that the command takes.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_fcntl,
            socket.as_raw_fd(),
            SET_OWNER,
            &raw const owner,
        )
    };
    outcome(answer)?;
    let asynchronous = rustix::fs::OFlags::from_bits_retain(libc::O_ASYNC as u32);
    rustix::fs::fcntl_setfl(socket, flags | asynchronous)
}

/// A timer that sends the thread that made it `SIGALRM`. A forked child does not have it.
#[derive(Debug)]
pub(super) struct Alarm(i32);

impl Alarm {
    /// Makes a timer that is not set.
    pub fn of_this_thread() -> Result<Alarm, Errno> {
        let mut id: i32 = -1;
        // SAFETY: a C struct for which zeros are a value; the kernel reads it, and writes a number.
        let answer = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGALRM;
            event.sigev_notify_thread_id = super::thread::current() as i32;
            let clock = libc::CLOCK_MONOTONIC;
            libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id)
        };
        outcome(answer).map(|()| Alarm(id))
    }

    /// Has it send the signal once, in `ns`, and not when it was set to before.
    pub fn set(&self, ns: u64) -> Result<(), Errno> {
        let once = once_in(ns);
        // SAFETY: reads the live times that it gets.
        let answer = unsafe {
            let none = std::ptr::null_mut::<u8>();
            libc::syscall(libc::SYS_timer_settime, self.0, 0, &raw const once, none)
        };
        outcome(answer)
    }
}

/// The setting of a timer that ends once, `ns` from now.
fn once_in(ns: u64) -> libc::itimerspec {
    let time = |ns: u64| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    libc::itimerspec {
        it_interval: time(0),
        // A zero would take the setting back.
        it_value: time(ns.max(1)),
    }
}

/// The outcome of a call that answers zero, or that it failed.
fn outcome(answer: libc::c_long) -> Result<(), Errno> {
    match answer {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

fn change_mask(how: i32, signals: SignalSet) -> Result<SignalSet, Errno> {
    let mut before = 0u64;
    // SAFETY: both sets are live and of the kernel's size.
    let answer = unsafe {
        let (signals, before) = (&raw const signals.0, &raw mut before);
        libc::syscall(libc::SYS_rt_sigprocmask, how, signals, before, 8usize)
    };
    outcome(answer).map(|()| SignalSet(before))
}

/// Takes those of `signals` that are pending, and answers which they were.
///
/// - Needs: they are blocked.
pub fn take_pending(signals: SignalSet) -> SignalSet {
    let at_once = [0i64; 2];
    let mut taken = SignalSet::NONE;
    loop {
        // SAFETY: set and time are live and of the kernel's sizes; no details are asked for.
        let answer = unsafe {
            let (signals, none) = (&raw const signals.0, std::ptr::null_mut::<u8>());
            let limit = at_once.as_ptr();
            libc::syscall(libc::SYS_rt_sigtimedwait, signals, none, limit, 8usize)
        };
        match i32::try_from(answer) {
            Ok(signal @ 1..) => taken.insert(signal),
            Ok(_) | Err(_) if last_error() == Errno::INTR => {}
            Ok(_) | Err(_) => return taken,
        }
    }
}

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

/// Rings the doorbell of `thread`, an engine's.
pub fn ring(thread: u32) -> Result<(), Errno> {
    match program::is_apart() {
        true => send(thread, thread, DOORBELL),
        false => send(own(), thread, DOORBELL),
    }
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
    let at_once = once_in(0);
    // SAFETY: reads the live times it is given.
    let answer =
        unsafe { libc::timerfd_settime(number, 0, &raw const at_once, std::ptr::null_mut()) };
    outcome(answer.into())
}

/// Silences the doorbell.
pub fn take_rings(doorbell: &OwnedFd) {
    // The size of a `signalfd_siginfo`; a timer's count needs less.
    let mut bytes = [0u8; 128];
    while rustix::io::read(doorbell, &mut bytes).is_ok_and(|count| count > 0) {}
}

/// The time after which a program that is to end is ended the hard way.
const END_LIMIT: Duration = Duration::from_millis(100);

/// Ends the program with `SIGBUS`, whatever it does about that signal; with `SIGKILL` if that takes
/// no effect within a tenth of a second, or if its engine, a process of its own, can't keep it from
/// handling the signal.
pub fn end_process() -> ! {
    if program::is_engine() {
        end_program();
    }
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
    std::thread::sleep(END_LIMIT);
    loop {
        // SAFETY: ends this process alone.
        unsafe { libc::syscall(libc::SYS_kill, pid, libc::SIGKILL) };
    }
}

fn end_program() -> ! {
    if program::has_other_memory() == Some(true) {
        // It has executed another program, which this engine's failure is no concern of.
        program::leave()
    }
    if !program_catches(libc::SIGBUS) {
        program::signal(libc::SIGBUS);
        program::await_end(END_LIMIT.as_nanos() as u64);
    }
    // As long as the engine is there, pages that are missing are not taken for zeros.
    program::signal(libc::SIGKILL);
    program::await_end(10 * END_LIMIT.as_nanos() as u64);
    program::leave()
}

/// Returns true if the program has its own action for a signal, or ignores or blocks it.
fn program_catches(signal: i32) -> bool {
    use rustix::fs::OFlags;
    let Ok(file) = program::open("status", OFlags::RDONLY | OFlags::CLOEXEC) else {
        return true;
    };
    let mut text = [0u8; 4096];
    let count = rustix::io::read(&file, &mut text).unwrap_or(0);
    let masks = text[..count]
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let names = [&b"SigBlk:"[..], b"SigIgn:", b"SigCgt:"];
            let mask = names.iter().find_map(|name| line.strip_prefix(*name))?;
            u64::from_str_radix(std::str::from_utf8(mask).ok()?.trim(), 16).ok()
        });
    masks.fold(0, |all, mask| all | mask) >> (signal - 1) & 1 != 0
}

fn own() -> u32 {
    let own = rustix::process::getpid();
    own.as_raw_nonzero().get().unsigned_abs()
}

fn send(process: u32, thread: u32, signal: i32) -> Result<(), Errno> {
    // SAFETY: signals a thread of that process; the kernel checks that it is one.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    outcome(answer)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;
    use crate::sys::socket::wait_readable;

    #[test]
    fn blocked_signals_wait_until_they_are_taken() {
        let signals = [libc::SIGUSR1, libc::SIGUSR2];
        let mut both = SignalSet::NONE;
        signals.into_iter().for_each(|signal| both.insert(signal));
        let before = block(both).unwrap();
        assert_eq!(take_pending(both), SignalSet::NONE);
        let own = crate::sys::thread::current();
        send(super::own(), own, libc::SIGUSR2).unwrap();
        let mut first = SignalSet::NONE;
        first.insert(libc::SIGUSR1);
        assert_eq!(take_pending(first), SignalSet::NONE);
        let taken = take_pending(both);
        assert!(taken.contains(libc::SIGUSR2) && !taken.contains(libc::SIGUSR1));
        assert_eq!(take_pending(both), SignalSet::NONE);
        block_only(before).unwrap();
    }

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
