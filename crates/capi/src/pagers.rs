//! Pagers whose functions are the program's.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidemark_regions::{Pager, PagerError};

use crate::names::text;
use crate::status::Trouble;
use crate::types::{tidemark_end, tidemark_pager, tidemark_read, tidemark_write};

/// The largest errno that the kernel has.
pub(crate) const ERRNO_MAX: c_int = 4095;

/// A pager whose functions are the program's, and the last of its calls that failed.
pub(crate) struct Called {
    bytes: u64,
    read: tidemark_read,
    write: Option<tidemark_write>,
    end: Option<tidemark_end>,
    /// True once `end` is to be called.
    is_kept: AtomicBool,
    context: Context,
    name: String,
    failed: Mutex<Option<Failed>>,
}

/// The argument that the program wants its functions called with.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

/// A call that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) error: c_int,
    pub(crate) is_write: bool,
}

// SAFETY: it is an address that only the program's functions follow, which may be called by any
// thread, several at once, as the header says.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Called {
    /// A pager with the functions of `pager`. Its `end` is not called until it is
    /// [kept](Self::keep).
    ///
    /// # Safety
    /// `pager` points to a structure whose functions may be called as the header says, and whose
    /// name ends with a zero byte; or they are null.
    pub(crate) unsafe fn new(
        pager: *const tidemark_pager,
        is_written: bool,
    ) -> Result<Called, Trouble> {
        if pager.is_null() {
            return Err(Trouble::argument("`pager` is NULL; needs a structure"));
        }
        // SAFETY: the caller's; it is not null.
        let pager = unsafe { *pager };
        let Some(read) = pager.read else {
            return Err(Trouble::argument("`read` is NULL; needs a function"));
        };
        if is_written && pager.write.is_none() {
            let message = "`write` is NULL; needs a function, or MAP_PRIVATE for a copy";
            return Err(Trouble::argument(message));
        }
        if pager.bytes == 0 {
            return Err(Trouble::argument("`bytes` of the pager is 0; needs 1"));
        }
        // SAFETY: the caller's.
        let name = unsafe { text(pager.name) };
        let name = name.map_or("the pager".into(), |name| {
            name.to_string_lossy().into_owned()
        });
        Ok(Called {
            bytes: pager.bytes,
            read,
            write: pager.write,
            end: pager.end,
            is_kept: AtomicBool::new(false),
            context: Context(pager.context),
            name,
            failed: Mutex::new(None),
        })
    }

    /// Has `end` called at the end: the region is there.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Relaxed);
    }

    /// The last call that failed.
    pub(crate) fn failed(&self) -> Option<Failed> {
        *self.lock()
    }

    /// The outcome of a call that came to `error`.
    fn outcome(&self, failed: Failed) -> Result<(), PagerError> {
        let error = failed.error;
        if error == 0 {
            return Ok(());
        }
        *self.lock() = Some(failed);
        Err(match error {
            libc::EAGAIN | libc::EINTR => {
                PagerError::temporary(io::Error::from_raw_os_error(error))
            }
            1..=ERRNO_MAX => PagerError::lasting(io::Error::from_raw_os_error(error)),
            _ => PagerError::lasting(format!("it returned {error}; needs 0 or an errno")),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pager for Called {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), PagerError> {
        let (at, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the program's function, which fills that many bytes there.
        let error = unsafe { (self.read)(self.context.0, offset, at, bytes) };
        self.outcome(Failed {
            offset,
            bytes,
            error,
            is_write: false,
        })
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), PagerError> {
        let Some(write) = self.write else {
            return Err(PagerError::lasting("it can't be written to"));
        };
        let (at, bytes) = (from.as_ptr().cast(), from.len());
        // SAFETY: the program's function, which reads that many bytes there.
        let error = unsafe { write(self.context.0, offset, at, bytes) };
        self.outcome(Failed {
            offset,
            bytes,
            error,
            is_write: true,
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Drop for Called {
    /// The engine has no call of it any more, and no region.
    fn drop(&mut self) {
        if let (Some(end), true) = (self.end, *self.is_kept.get_mut()) {
            // SAFETY: the program's function, which is called once.
            unsafe { end(self.context.0) };
        }
    }
}
