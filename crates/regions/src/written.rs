//! Files that regions are written to: what becomes of them when the program ends.
//!
//! Pages that are modified are written when they leave memory, when they are flushed, and when
//! their region is dropped. A region that is still there when the program ends by `exit`, or by
//! returning from `main`, is written then. A program that is killed, or that calls `_exit` or
//! `exec`, leaves its files as they were last written.
//!
//! # Locks
//! The list of engines, and each engine's list of regions: held to add, to remove or to copy.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, TryLockError, Weak};
use std::time::{Duration, Instant};

use tidemark_live::sys::program::call_at_exit;

use crate::command::{Command, FlushError, Handle, Span, lock};
use crate::error::Error;

/// The engines that have had such regions.
static ENGINES: Mutex<Vec<Weak<Handle>>> = Mutex::new(Vec::new());
/// A lock that another thread had at a fork is not waited for longer than this in the child.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// The regions of an engine whose files are written to.
#[derive(Default)]
pub(crate) struct Written(Mutex<Vec<(Span, PathBuf)>>);

impl Written {
    /// Has `span` written when the program ends, too.
    pub(crate) fn add(handle: &Arc<Handle>, span: Span, path: PathBuf) {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // Where there is no room for that, regions that are dropped are written all the same.
            call_at_exit(write_all);
        });
        lock(&handle.written.0).push((span, path));
        with_engines(|engines| {
            engines.retain(|engine| engine.strong_count() > 0);
            let is_same =
                |engine: &Weak<Handle>| std::ptr::eq(engine.as_ptr(), &raw const **handle);
            if !engines.iter().any(is_same) {
                engines.push(Arc::downgrade(handle));
            }
        });
    }

    /// Forgets `span`, which has been dropped.
    pub(crate) fn remove(&self, span: Span) {
        lock(&self.0).retain(|(other, _)| *other != span);
    }

    fn all(&self) -> Vec<(Span, PathBuf)> {
        lock(&self.0).clone()
    }
}

impl Handle {
    /// Writes the modified pages of `span` to the file at `path`.
    pub(crate) fn flush(&self, span: Span, path: &std::path::Path) -> Result<(), Error> {
        let path = || path.to_path_buf();
        let flushed = self.ask(|reply| Command::Flush(span, reply))?;
        flushed.map_err(|why| match why {
            FlushError::Write(offset, error) => Error::FileWrite {
                path: path(),
                offset: Some(offset),
                error,
            },
            FlushError::Pager(offset, text) => Error::PagerWrite {
                name: path().display().to_string(),
                offset,
                text,
            },
            FlushError::Cut(bytes, needs) => Error::FileCut {
                path: path(),
                bytes,
                needs,
            },
            FlushError::Held(pages) => Error::FileHeld {
                path: path(),
                pages,
            },
        })
    }

    /// Writes the modified pages of `span` to the file at `path`, with an error written to the
    /// program's messages, since no caller could get it.
    pub(crate) fn flush_or_say(&self, span: Span, path: &std::path::Path) {
        match self.flush(span, path) {
            // A forked child has nothing that it could write.
            Ok(()) | Err(Error::Forked) => {}
            Err(error) => eprintln!("tidemark: {error}; its region ends"),
        }
    }
}

/// Writes what all regions have modified: the program ends.
extern "C" fn write_all() {
    let mut engines = Vec::new();
    with_engines(|all| engines = all.iter().filter_map(Weak::upgrade).collect());
    for engine in engines.iter().filter(|engine| !engine.is_forked()) {
        for (span, path) in engine.written.all() {
            engine.flush_or_say(span, &path);
        }
    }
    // To drop the last holder of an engine would wait for its thread.
    std::mem::forget(engines);
}

fn with_engines(work: impl FnOnce(&mut Vec<Weak<Handle>>)) {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match ENGINES.try_lock() {
            Ok(mut engines) => return work(&mut engines),
            Err(TryLockError::Poisoned(engines)) => return work(&mut engines.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => return,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}
