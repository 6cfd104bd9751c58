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
use tidemark_live::requests::{Ask, Requests};
use tidemark_live::sys::{files, socket};

use super::ASK_LIMIT;
use crate::calls::keeping_errno;

/// The way of a process.
pub(crate) struct Way {
    /// The path of the socket, for processes that have the root that the process began with.
    socket: OnceLock<CString>,
    /// The process that has an engine.
    own: AtomicI32,
    /// The last process that has announced another program.
    announced: AtomicI32,
    /// The number of the folder; less than zero: none is lent.
    folder: AtomicI32,
}

impl Way {
    /// There is no supervisor.
    pub(crate) const fn new() -> Way {
        Way {
            socket: OnceLock::new(),
            own: AtomicI32::new(0),
            announced: AtomicI32::new(0),
            folder: AtomicI32::new(-1),
        }
    }

    /// Learns where the socket is.
    pub(crate) fn note_socket(&self, path: &Path) {
        self.note_own();
        if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
            // There is one supervisor.
            let _ = self.socket.set(path);
        }
    }

    /// Borrows the folder for a fork of the calling thread, if its child can't find the socket.
    pub(crate) fn open(&self, requests: &Requests, is_filtered: bool) {
        let Some(path) = self.socket.get() else {
            return;
        };
        // SAFETY: a string ended by a zero byte.
        if is_filtered || unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0 {
            return;
        }
        let Ok((ours, theirs)) = socket::packets() else {
            return;
        };
        let ask = Ask::LendFolder {
            socket: theirs.as_raw_fd(),
        };
        if requests.ask(ask, ASK_LIMIT) == Some(1)
            && let Ok(folder) = files::take_shown(&ours)
        {
            self.folder.store(folder.into_raw_fd(), Ordering::Release);
        }
    }

    /// Reports to the supervisor that this process is about to execute another program, if no
    /// engine of its own will be missed then: it is a child that shares its parent's memory, or
    /// unmanaged. Where the program can't be managed, that is known at once. Only system calls are
    /// made, on a descriptor that is closed by executing.
    pub(crate) fn announce_exec(&self, is_filtered: bool) {
        let Some(path) = self.socket.get() else {
            return;
        };
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let is_known = self.own.load(Ordering::Relaxed) == own;
        // A shell tries one folder after the other.
        if is_filtered || is_known || self.announced.swap(own, Ordering::Relaxed) == own {
            return;
        }
        keeping_errno(|| {
            if let Ok(connection) = control::announce_exec(as_path(path), None) {
                let _ = connection.into_raw_fd();
            }
        });
    }

    /// Tells it that `child` has just executed a program.
    pub(crate) fn announce_child(&self, child: i32, is_filtered: bool) {
        let Some(path) = self.socket.get() else {
            return;
        };
        if !is_filtered && child > 0 {
            // Who is not told now finds it out later.
            keeping_errno(|| drop(control::announce_exec(as_path(path), Some(child as u32))));
        }
    }

    /// Learns that the calling process has an engine.
    fn note_own(&self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        self.own.store(own, Ordering::Relaxed);
    }

    /// Has the calling thread, a child's engine, go to the folder. Whether it is there.
    pub(crate) fn go(&self) -> bool {
        self.note_own();
        let folder = self.folder.load(Ordering::Acquire);
        // SAFETY: a number of this table, open or not; where this thread is concerns no other.
        folder >= 0 && unsafe { libc::fchdir(folder) } == 0
    }

    /// Connects the calling thread, its process's only one, to the supervisor. `None` if there is
    /// none.
    pub(crate) fn connect(&self) -> Option<io::Result<OwnedFd>> {
        let path = as_path(self.socket.get()?);
        let folder = self.folder.load(Ordering::Acquire);
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
    pub(crate) fn close(&self) {
        let folder = self.folder.swap(-1, Ordering::AcqRel);
        if folder >= 0 {
            // SAFETY: opened by `open`, for this use alone.
            drop(unsafe { OwnedFd::from_raw_fd(folder) });
        }
    }
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}
