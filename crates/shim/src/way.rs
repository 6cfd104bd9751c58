//! The way to the supervisor for the children of a program that has changed its root: the engine,
//! whose root is what it was, lends the folder of the socket to the thread that forks. The child's
//! engine begins there, and names the socket from there.
//!
//! # Invariants
//! 1. The folder is open in the program's table from before the fork until it is over, on both
//!    sides, where the socket can't be found by its path. Otherwise it never is.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use tidemark_live::control;
use tidemark_live::requests::Ask;
use tidemark_live::sys::{files, socket};

use crate::hooks::{ASK_LIMIT, keeping_errno};
use crate::{REQUESTS, filters};

/// The path of the socket, for processes that have the root that the process began with.
static SOCKET: OnceLock<CString> = OnceLock::new();
/// The process that has an engine.
static OWN: AtomicI32 = AtomicI32::new(0);
/// The last process that has announced another program.
static ANNOUNCED: AtomicI32 = AtomicI32::new(0);
/// The number of the folder; less than zero: none is lent.
static FOLDER: AtomicI32 = AtomicI32::new(-1);

/// Learns where the socket is.
pub(crate) fn note_socket(path: &Path) {
    note_own();
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        // There is one supervisor.
        let _ = SOCKET.set(path);
    }
}

/// Borrows the folder for a fork of the calling thread, if its child can't find the socket.
pub(crate) fn open() {
    let Some(path) = SOCKET.get() else { return };
    // SAFETY: a string ended by a zero byte.
    if filters::are_set() || unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0 {
        return;
    }
    let Ok((ours, theirs)) = socket::packets() else {
        return;
    };
    let ask = Ask::LendFolder {
        socket: theirs.as_raw_fd(),
    };
    if REQUESTS.ask(ask, ASK_LIMIT) == Some(1)
        && let Ok(folder) = files::take_shown(&ours)
    {
        FOLDER.store(folder.into_raw_fd(), Ordering::Release);
    }
}

/// Tells the supervisor that this process is about to execute another program, if no engine of its
/// own will be missed then: it is a child that shares its parent's memory, or unmanaged. Where the
/// program can't be managed, that is known at once. Only system calls are made, on a descriptor
/// that is closed by executing.
pub(crate) fn announce_exec() {
    let Some(path) = SOCKET.get() else { return };
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let is_known = OWN.load(Ordering::Relaxed) == own;
    // A shell tries one folder after the other.
    if filters::are_set() || is_known || ANNOUNCED.swap(own, Ordering::Relaxed) == own {
        return;
    }
    keeping_errno(|| {
        if let Ok(connection) = control::announce_exec(as_path(path), None) {
            let _ = connection.into_raw_fd();
        }
    });
}

/// Tells it that `child` has just executed a program.
pub(crate) fn announce_child(child: i32) {
    let Some(path) = SOCKET.get() else { return };
    if !filters::are_set() && child > 0 {
        // Who is not told now finds it out later.
        keeping_errno(|| drop(control::announce_exec(as_path(path), Some(child as u32))));
    }
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// Learns that the calling process has an engine.
fn note_own() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    OWN.store(own, Ordering::Relaxed);
}

/// Has the calling thread, a child's engine, go to the folder. Whether it is there.
pub(crate) fn go() -> bool {
    note_own();
    let folder = FOLDER.load(Ordering::Acquire);
    // SAFETY: a number of this table, open or not; where this thread is concerns no other.
    folder >= 0 && unsafe { libc::fchdir(folder) } == 0
}

/// Connects the calling thread, its process's only one, to the supervisor. `None` if there is none.
pub(crate) fn connect() -> Option<io::Result<OwnedFd>> {
    let path = as_path(SOCKET.get()?);
    let folder = FOLDER.load(Ordering::Acquire);
    let name = match path.file_name() {
        Some(name) if folder >= 0 => Path::new(name),
        _ => return Some(control::open_connection(path)),
    };
    // SAFETY: a name ended by a zero byte.
    let here = unsafe { libc::open(c".".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if here < 0 {
        return Some(Err(io::Error::last_os_error()));
    }
    // SAFETY: opened just now, for this use alone.
    let here = unsafe { OwnedFd::from_raw_fd(here) };
    // SAFETY: numbers of this table.
    unsafe { libc::fchdir(folder) };
    let connection = control::open_connection(name);
    // SAFETY: as above.
    unsafe { libc::fchdir(here.as_raw_fd()) };
    Some(connection)
}

/// Gives the folder back when the fork is over.
pub(crate) fn close() {
    let folder = FOLDER.swap(-1, Ordering::AcqRel);
    if folder >= 0 {
        // SAFETY: opened by `open`, for this use alone.
        drop(unsafe { OwnedFd::from_raw_fd(folder) });
    }
}
