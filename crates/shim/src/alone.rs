//! Calls that the kernel permits to processes of one thread alone: to enter a user namespace, above
//! all. The engine's threads are threads of the program's process; so they [step
//! aside](Ask::StepAside) for the time of such a call. Where the program has several threads of its
//! own the call fails as it does without an engine.
//!
//! # Invariants
//! 1. While the engine is away the calling thread takes no signal, and touches nothing that was not
//!    present when faults were last served.

use std::ffi::{c_int, c_long};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::PidfdFlags;
use tidemark_live::engine::{REST_LIMIT, say};
use tidemark_live::requests::Ask;
use tidemark_live::sys::{files, signal, socket, tasks};

use crate::forks::note_error;
use crate::hooks::{keeping_errno, lock_forks, unlock_forks};
use crate::thread::block_signals;
use crate::{REQUESTS, filters, is_in_thread, system_call};

/// The flags that `unshare` takes only for a process of one thread, ...
const UNSHARE_ALONE: c_long =
    (libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM) as c_long;
/// ... and what `setns` does.
const SETNS_ALONE: c_long = USERS | CLONE_NEWTIME;
/// The last flag: a process that has another namespace for those it makes can't make threads. So
/// that comes last.
const LAST: c_long = libc::CLONE_NEWPID as c_long;
const USERS: c_long = libc::CLONE_NEWUSER as c_long;
const CLONE_NEWTIME: c_long = 0x80;

/// The time that the engine's threads may take to end.
const GONE_LIMIT: Duration = Duration::from_secs(2);
/// The pause between two looks at that.
const GONE_PAUSE: Duration = Duration::from_micros(20);
/// The most of the stack below that is used while the engine is away, in bytes.
const STACK_BYTES: usize = 16 << 10;
/// `NS_GET_NSTYPE` of the kernel's `include/uapi/linux/nsfs.h`, ...
const GET_KIND: libc::Ioctl = 0xb703;
/// ... and `NS_GET_USERNS`.
const GET_OWNER: libc::Ioctl = 0xb701;
/// `PIDFD_GET_PID_NAMESPACE` of `include/uapi/linux/pidfd.h`, ...
const GET_PROCESSES: libc::Ioctl = 0xff05;
/// ... and `PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE`.
const GET_PROCESSES_MADE: libc::Ioctl = 0xff06;

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
        let kept = Processes::keep_for(file, wanted);
        let answer = alone(|| call(kinds));
        match kept.map(Processes::give_back) {
            Some(refused @ ..0) if answer == 0 => refused,
            _ => answer,
        }
    })
}

/// The namespace for the processes that this thread makes, where that is another than its own.
/// Meanwhile the thread has its own, and can make threads.
struct Processes(OwnedFd);

impl Processes {
    /// Keeps it for a call that enters the namespace `file`, of these `kinds`. `None` if there is
    /// nothing to keep, or it could not be given back there: to another user than its owner.
    fn keep_for(file: c_long, kinds: c_long) -> Option<Processes> {
        let is_needed = !crate::is_apart() && !filters::are_set() && REQUESTS.has_engine();
        if !is_needed || can_make_threads() {
            return None;
        }
        keeping_errno(|| {
            let (kept, own) = (own_space(GET_PROCESSES_MADE)?, own_space(GET_PROCESSES)?);
            let owner = space_of(kept.as_fd(), GET_OWNER)?;
            // SAFETY: asked about only, whatever it is.
            let entered = unsafe { BorrowedFd::borrow_raw(file as c_int) };
            let is_owner = kinds & USERS == 0 || is_same(owner, entered);
            let answer = is_owner.then(|| enter_processes(&own))?;
            (answer == 0).then_some(Processes(kept))
        })
    }

    /// Goes back to it. Answers as the kernel does.
    fn give_back(self) -> c_long {
        enter_processes(&self.0)
    }
}

fn enter_processes(space: &OwnedFd) -> c_long {
    let number = space.as_raw_fd().into();
    // SAFETY: takes no pointer.
    unsafe { system_call(libc::SYS_setns, [number, LAST, 0, 0, 0]) }
}

/// Makes a call alone, and then again for what must come last, if that is asked for, too.
fn in_two(flags: c_long, call: impl Fn(c_long) -> c_long) -> c_long {
    if crate::is_apart() || filters::are_set() || !REQUESTS.has_engine() {
        return call(flags);
    }
    let answer = alone(|| call(flags & !LAST));
    if answer < 0 || flags & LAST == 0 {
        return answer;
    }
    call(flags & LAST)
}

/// The kind of namespace of a file; zero if it is none.
fn kind_of(file: c_long) -> c_long {
    keeping_errno(|| {
        // SAFETY: asks about a file of whatever kind, and takes no pointer.
        let kind = unsafe { libc::ioctl(file as c_int, GET_KIND) };
        kind.max(0).into()
    })
}

/// Returns true if the process behind a descriptor is in the same namespace of processes as this
/// one.
fn has_our_processes(file: c_long) -> bool {
    keeping_errno(|| {
        // SAFETY: asked about only, whatever it is.
        let process = unsafe { BorrowedFd::borrow_raw(file as c_int) };
        let theirs = space_of(process, GET_PROCESSES);
        theirs
            .is_some_and(|theirs| own_space(GET_PROCESSES).is_some_and(|own| is_same(own, theirs)))
    })
}

/// Returns true if this thread can make threads: not if the processes that it makes are to be in
/// another namespace.
fn can_make_threads() -> bool {
    keeping_errno(|| {
        let (own, made) = (own_space(GET_PROCESSES), own_space(GET_PROCESSES_MADE));
        own.is_some_and(|own| made.is_some_and(|made| is_same(own, made)))
    })
}

/// A namespace of this process, which has one thread.
fn own_space(kind: libc::Ioctl) -> Option<OwnedFd> {
    let own = rustix::process::getpid();
    let process = rustix::process::pidfd_open(own, PidfdFlags::empty()).ok()?;
    space_of(process.as_fd(), kind).or_else(|| {
        // Before Linux 6.11.
        let path = match kind {
            GET_PROCESSES => c"/proc/self/ns/pid",
            _ => c"/proc/self/ns/pid_for_children",
        };
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
    })
}

/// A file that is asked for another: a process for a namespace, or that for the one it belongs to.
fn space_of(file: BorrowedFd<'_>, kind: libc::Ioctl) -> Option<OwnedFd> {
    // SAFETY: takes no pointer; what it answers is a new file.
    let space = unsafe { libc::ioctl(file.as_raw_fd(), kind, 0) };
    // SAFETY: made just now, for this value alone.
    (space >= 0).then(|| unsafe { OwnedFd::from_raw_fd(space) })
}

fn is_same(one: impl AsFd, other: impl AsFd) -> bool {
    let place = |file: BorrowedFd<'_>| {
        let found = rustix::fs::fstat(file).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    let one = place(one.as_fd());
    one.is_some() && one == place(other.as_fd())
}

/// Makes `call` with no thread of ours there, if the calling one is the program's only one.
fn alone(call: impl FnOnce() -> c_long) -> c_long {
    if crate::is_apart() || filters::are_set() || !REQUESTS.has_engine() || !lock_forks() {
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
            say("a namespace can't be entered after one for processes: the engine could not go on");
            return None;
        }
        let sockets = match is_in_thread() {
            true => None,
            false => Some(socket::packets().ok()?),
        };
        let numbers = sockets.as_ref().map_or((-1, -1), |(ours, theirs)| {
            (ours.as_raw_fd(), theirs.as_raw_fd())
        });
        SOCKET.store(numbers.0, Ordering::Release);
        let answer = REQUESTS.ask(Ask::StepAside { socket: numbers.1 }, REST_LIMIT);
        let list = answer.and_then(|answer| answer.checked_sub(1))? as c_int;
        let files = sockets.map(|pair| pair.0);
        let shown = files
            .as_ref()
            .and_then(|files| files::take_shown(files).ok());
        touch_stack();
        if REQUESTS.ask(Ask::Depart, REST_LIMIT) != Some(1) {
            say("the engine does not step aside; the program is ended");
            signal::end_process();
        }
        // SAFETY: the engine's file, which stays open, if it was not shown as another.
        let list = shown
            .as_ref()
            .map_or_else(|| unsafe { BorrowedFd::borrow_raw(list) }, AsFd::as_fd);
        let end = Instant::now() + GONE_LIMIT;
        while tasks::count(list) != Some(1) && Instant::now() < end {
            std::thread::sleep(GONE_PAUSE);
        }
        Some(Away { _files: files })
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // SAFETY: the threads that used the stack slots have gone.
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
