//! Calls that the kernel permits to processes of one thread alone: to enter a user namespace, above
//! all. The engine's threads are threads of the program's process; so they [step
//! aside](Ask::StepAside) for the time of such a call. Where the program has several threads of its
//! own the call fails as it does without an engine.
//!
//! # Invariants
//! 1. While the engine is away the calling thread takes no signal, and touches nothing that was not
//!    present when faults were last served.

use std::ffi::{c_int, c_long};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use tidemark_live::engine::{REST_LIMIT, say};
use tidemark_live::requests::Ask;
use tidemark_live::sys::{signal, socket, tasks};

use crate::forks::note_error;
use crate::hooks::{keeping_errno, lock_forks, unlock_forks};
use crate::thread::block_signals;
use crate::{REQUESTS, filters, is_in_thread, system_call};

/// What `unshare` does only for a process of one thread, ...
const UNSHARE_ALONE: c_long =
    (libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM) as c_long;
/// ... and what `setns` does.
const SETNS_ALONE: c_long = libc::CLONE_NEWUSER as c_long | CLONE_NEWTIME;
/// Who has another namespace for the processes it makes can't make threads. So that comes last.
const LAST: c_long = libc::CLONE_NEWPID as c_long;
const CLONE_NEWTIME: c_long = 0x80;

/// How long the engine's threads may take to end.
const GONE_LIMIT: Duration = Duration::from_secs(2);
/// How often that is looked at.
const GONE_PAUSE: Duration = Duration::from_micros(20);
/// How much of the stack below is used while the engine is away, at most.
const STACK_BYTES: usize = 16 << 10;
/// `NS_GET_NSTYPE` of the kernel's `include/uapi/linux/nsfs.h`.
const GET_KIND: libc::Ioctl = 0xb703;

/// The socket with the engine's files.
static SOCKET: AtomicI32 = AtomicI32::new(-1);

/// The number of the socket with the engine's files, in the program's table.
pub(crate) fn socket() -> i32 {
    SOCKET.load(Ordering::Acquire)
}

/// Interposes `unshare`.
///
/// # Safety
/// As for the C library's `unshare`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    unshare_by_call(libc::SYS_unshare, flags.into()) as c_int
}

/// Interposes `setns`.
///
/// # Safety
/// As for the C library's `setns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setns(file: c_int, kinds: c_int) -> c_int {
    setns_by_call(libc::SYS_setns, file.into(), kinds.into()) as c_int
}

/// The system call `unshare`, as `syscall` is given it.
pub(crate) extern "C" fn unshare_by_call(_: c_long, flags: c_long) -> c_long {
    // SAFETY: the caller's system call, which takes no pointer.
    let call = |flags: c_long| unsafe { system_call(libc::SYS_unshare, [flags, 0, 0, 0, 0]) };
    note_error(if flags & UNSHARE_ALONE == 0 {
        call(flags)
    } else {
        in_two(flags, call)
    })
}

/// The system call `setns`, as `syscall` is given it.
pub(crate) extern "C" fn setns_by_call(_: c_long, file: c_long, kinds: c_long) -> c_long {
    // SAFETY: the caller's system call, which takes no pointer.
    let call = |kinds: c_long| unsafe { system_call(libc::SYS_setns, [file, kinds, 0, 0, 0]) };
    let wanted = if kinds == 0 { kind_of(file) } else { kinds };
    note_error(if wanted & SETNS_ALONE == 0 {
        call(kinds)
    } else if kinds & LAST != 0 && !has_our_processes(file) {
        in_two(kinds, call)
    } else {
        alone(|| call(kinds))
    })
}

/// Makes a call alone, and then again for what must come last, if that is asked for, too.
fn in_two(flags: c_long, call: impl Fn(c_long) -> c_long) -> c_long {
    if filters::are_set() || !REQUESTS.has_engine() {
        return call(flags);
    }
    let answer = alone(|| call(flags & !LAST));
    if answer < 0 || flags & LAST == 0 {
        return answer;
    }
    call(flags & LAST)
}

/// What kind of namespace a file is of; zero if it is none.
fn kind_of(file: c_long) -> c_long {
    keeping_errno(|| {
        // SAFETY: asks about a file of whatever kind, and takes no pointer.
        let kind = unsafe { libc::ioctl(file as c_int, GET_KIND) };
        kind.max(0).into()
    })
}

/// Whether the process behind a descriptor is in the same namespace of processes as this one.
fn has_our_processes(file: c_long) -> bool {
    keeping_errno(|| {
        let process = process_behind(file);
        let theirs = process.and_then(|number| find_space(format_args!("{number}/ns/pid")));
        theirs.is_some() && theirs == find_space(format_args!("self/ns/pid"))
    })
}

/// Whether this thread can make threads: not if the processes that it makes are to be in another
/// namespace.
fn can_make_threads() -> bool {
    let own = find_space(format_args!("self/ns/pid"));
    own.is_some() && own == find_space(format_args!("self/ns/pid_for_children"))
}

/// What tells a namespace from others, by its name in `/proc`.
fn find_space(name: std::fmt::Arguments<'_>) -> Option<(u64, u64)> {
    let mut path = [0u8; 64];
    let mut rest = &mut path[..];
    write!(rest, "/proc/{name}").ok()?;
    let left = rest.len();
    let found = rustix::fs::stat(&path[..path.len() - left]).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// The number of the process behind a descriptor.
fn process_behind(file: c_long) -> Option<u64> {
    let mut path = [0u8; 64];
    let mut rest = &mut path[..];
    write!(rest, "/proc/self/fdinfo/{file}").ok()?;
    let left = rest.len();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path[..path.len() - left], flags, Mode::empty()).ok()?;
    let mut text = [0u8; 512];
    let length = rustix::io::read(&opened, &mut text).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok()
}

/// Makes `call` with no thread of ours there, if the calling one is the program's only one.
fn alone(call: impl FnOnce() -> c_long) -> c_long {
    if filters::are_set() || !REQUESTS.has_engine() || !lock_forks() {
        return call();
    }
    // All but the one that a fault served by its own thread comes as.
    let before = block_signals(!(1 << (libc::SIGBUS - 1)));
    let away = keeping_errno(Away::begin);
    let answer = call();
    keeping_errno(|| drop(away));
    block_signals(before);
    unlock_forks();
    answer
}

/// The engine is away. Dropped, it comes back.
struct Away {
    _files: Option<OwnedFd>,
}

impl Away {
    /// Has the engine step aside. `None` if it does not.
    fn begin() -> Option<Away> {
        if !can_make_threads() {
            say(
                "a user namespace can't be entered after one for processes: the engine could not \
                 go on",
            );
            return None;
        }
        let list = tasks::open().ok()?;
        let sockets = match is_in_thread() {
            true => None,
            false => Some(socket::packets().ok()?),
        };
        let number = |file: &OwnedFd| file.as_raw_fd();
        let theirs = sockets.as_ref().map_or(-1, |pair| number(&pair.1));
        SOCKET.store(
            sockets.as_ref().map_or(-1, |pair| number(&pair.0)),
            Ordering::Release,
        );
        if REQUESTS.ask(Ask::StepAside { socket: theirs }, REST_LIMIT) != Some(1) {
            return None;
        }
        let files = sockets.map(|pair| pair.0);
        touch_stack();
        if REQUESTS.ask(Ask::Depart, REST_LIMIT) != Some(1) {
            say("the engine does not step aside; the program is ended");
            signal::end_process();
        }
        let end = Instant::now() + GONE_LIMIT;
        while tasks::count(&list) != Some(1) && Instant::now() < end {
            std::thread::sleep(GONE_PAUSE);
        }
        Some(Away { _files: files })
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // SAFETY: the threads that used the berths have gone.
        let started = unsafe { crate::start_threads(crate::run_engine_again) };
        if let Err(error) = started {
            say(&format!(
                "the engine's thread can't be started again, and the program is ended: {error}"
            ));
            signal::end_process();
        }
    }
}

/// Has what this thread will use of its stack be present, should that be managed memory.
#[inline(never)]
fn touch_stack() {
    let mut room = [0u8; STACK_BYTES];
    std::hint::black_box(&mut room);
}
