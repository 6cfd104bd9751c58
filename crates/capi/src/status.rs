//! The outcome of calls: a status, a line that says why, and `errno`.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidemark_regions::Error;

use crate::types::{
    TIDEMARK_ARGUMENT, TIDEMARK_BUG, TIDEMARK_FILE, TIDEMARK_FILE_CUT, TIDEMARK_FILE_IN_USE,
    TIDEMARK_FILE_WRITE, TIDEMARK_FORKED, TIDEMARK_NO_ROOM, TIDEMARK_OK, TIDEMARK_STORE,
    TIDEMARK_SYSTEM,
};

thread_local! {
    /// The status of this thread's last call, and its message with a zero byte at its end.
    static LAST: RefCell<(c_int, Vec<u8>)> = const { RefCell::new((TIDEMARK_OK, Vec::new())) };
}

/// The reason for which a call fails.
#[derive(Debug)]
pub(crate) struct Trouble {
    status: c_int,
    message: String,
    errno: c_int,
}

impl Trouble {
    /// An argument can't be.
    pub(crate) fn argument(message: impl Into<String>) -> Trouble {
        Trouble::new(TIDEMARK_ARGUMENT, message, libc::EINVAL)
    }

    pub(crate) fn new(status: c_int, message: impl Into<String>, errno: c_int) -> Trouble {
        Trouble {
            status,
            message: message.into(),
            errno,
        }
    }

    /// This error with another error number, if there is one.
    pub(crate) fn with_errno(self, errno: Option<c_int>) -> Trouble {
        Trouble {
            errno: errno.unwrap_or(self.errno),
            ..self
        }
    }
}

impl From<tidemark_stores::Error> for Trouble {
    fn from(error: tidemark_stores::Error) -> Trouble {
        let (status, errno) = match &error {
            tidemark_stores::Error::Address { .. } => (TIDEMARK_ARGUMENT, libc::EINVAL),
            tidemark_stores::Error::Store { .. } => (TIDEMARK_STORE, libc::EIO),
        };
        Trouble::new(status, error.to_string(), errno)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let (status, errno) = match &error {
            Error::Size { .. } | Error::Policy { .. } | Error::Empty | Error::Range { .. } => {
                (TIDEMARK_ARGUMENT, libc::EINVAL)
            }
            Error::Swap { error, .. } => (TIDEMARK_SYSTEM, error.raw_os_error()),
            Error::System(_) => (TIDEMARK_SYSTEM, libc::ENOMEM),
            Error::TooLarge { .. } => (TIDEMARK_NO_ROOM, libc::ENOMEM),
            Error::File { error, .. } => (TIDEMARK_FILE, error.raw_os_error()),
            Error::FileKind { .. } => (TIDEMARK_FILE, libc::ENODEV),
            Error::FileShort { .. } => (TIDEMARK_FILE, libc::EINVAL),
            Error::FileFar { .. } | Error::PagerFar { .. } => (TIDEMARK_FILE, libc::EOVERFLOW),
            Error::FileInUse { .. } => (TIDEMARK_FILE_IN_USE, libc::EWOULDBLOCK),
            Error::FileWrite { error, .. } => (TIDEMARK_FILE_WRITE, error.raw_os_error()),
            Error::PagerWrite { .. } => (TIDEMARK_FILE_WRITE, libc::EIO),
            Error::FileHeld { .. } => (TIDEMARK_FILE_WRITE, libc::EBUSY),
            Error::FileCut { .. } => (TIDEMARK_FILE_CUT, libc::EIO),
            Error::Forked => (TIDEMARK_FORKED, libc::EPERM),
        };
        Trouble::new(status, error.to_string(), errno)
    }
}

/// Does the work of a call, and notes what it comes to for the thread that asks later.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Trouble>) -> c_int {
    // What a panic leaves is the tables' alone, whose locks are held for one change each.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let outcome = outcome.unwrap_or_else(|_| {
        let message = "a fault of the library, which a line on standard error names";
        Err(Trouble::new(TIDEMARK_BUG, message, libc::EIO))
    });
    match outcome {
        Ok(()) => note(TIDEMARK_OK, Vec::new()),
        Err(trouble) => {
            let mut message = trouble.message.into_bytes();
            message.retain(|byte| *byte != 0);
            message.push(0);
            note(trouble.status, message);
            // SAFETY: the error number is the calling thread's.
            unsafe { *libc::__errno_location() = trouble.errno };
            return trouble.status;
        }
    }
    TIDEMARK_OK
}

fn note(status: c_int, message: Vec<u8>) {
    // A thread that ends will not ask for it.
    let _ = LAST.try_with(|last| *last.borrow_mut() = (status, message));
}

/// The status of this thread's last call.
pub(crate) fn last_status() -> c_int {
    LAST.try_with(|last| last.borrow().0).unwrap_or(TIDEMARK_OK)
}

/// The message of it.
pub(crate) fn last_message() -> *const c_char {
    let found = LAST.try_with(|last| {
        let message = &last.borrow().1;
        (!message.is_empty()).then_some(message.as_ptr().cast())
    });
    found.ok().flatten().unwrap_or(c"".as_ptr())
}
