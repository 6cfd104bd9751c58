//! Commands: how the program's threads speak to the engine's thread.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tidemark_core::id::VirtPage;
use tidemark_core::memory::address_space::Advice;
use tidemark_live::store::files::Source;
use tidemark_live::sys::Errno;
use tidemark_live::sys::socket::Bell;

use crate::error::Error;
use crate::written::Written;

/// Something that the engine's thread is to do, and where its answer goes.
pub(crate) enum Command {
    /// Takes charge of the pages of a new region, which begin as zeros, or as those of a file.
    Map(Span, Option<FilePart>, SyncSender<Result<(), Errno>>),
    /// Frees the pages of a region that can no longer be touched.
    Unmap(Span, SyncSender<()>),
    /// Says how a part of a region will be used.
    Advise(Span, Advice, SyncSender<()>),
    /// Makes a part of a region what it was at first.
    Discard(Span, SyncSender<()>),
    /// Writes the modified pages of a part of a region to its file.
    Flush(Span, SyncSender<Result<(), FlushError>>),
    /// Begins to read a part of a region that is out.
    Prefetch(Span, SyncSender<()>),
    /// Counts.
    Statistics(SyncSender<Statistics>),
    /// Ends the thread: there is no region any more.
    End,
}

/// Pages side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) at: VirtPage,
    pub(crate) pages: u64,
}

impl Span {
    /// The numbers of the pages.
    pub(crate) fn range(self) -> std::ops::Range<u64> {
        self.at.0..self.at.0 + self.pages
    }
}

/// The pages of a file, or of a pager, that a region begins as.
pub(crate) struct FilePart {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
    /// The number of the first page in the file.
    pub(crate) first: u64,
    /// True if pages that are modified are written to the file.
    pub(crate) is_written: bool,
}

/// The reason for which a part of a file was not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FlushError {
    /// The write at this byte failed.
    Write(u64, Errno),
    /// The pager failed to write at this byte, and says this.
    Pager(u64, String),
    /// The file was cut to the first number of bytes, from the second.
    Cut(u64, u64),
    /// This number of pages was held by the kernel all the time.
    Held(u32),
}

/// The counts of an engine's work so far, in pages unless the name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Faults that were served.
    pub faults: u64,
    /// Read from the swap file, from other files and from pagers, those read ahead included.
    pub page_ins: u64,
    /// Pages read from other files than the swap file; a part of `page_ins`.
    pub file_page_ins: u64,
    /// Written to the swap file, to other files and to pagers.
    pub page_outs: u64,
    /// Pages written to other files than the swap file; a part of `page_outs`.
    pub file_page_outs: u64,
    /// Filled with zeros at the first touch, those filled ahead included.
    pub zero_fills: u64,
    /// Faults on pages that were resident and unmapped, to see whether they are used.
    pub soft_faults: u64,
    /// Bytes that are resident now.
    pub resident_bytes: u64,
    /// Bytes of all regions.
    pub region_bytes: u64,
    /// Bytes beside regions that count against the limit, if the engine
    /// [counts the process](crate::Builder::count_process).
    pub beside_bytes: u64,
}

/// The queue of commands, and the bell that says that there are some.
pub(crate) struct Queue {
    commands: Mutex<VecDeque<Command>>,
    pub(crate) bell: Bell,
}

impl Queue {
    pub(crate) fn new() -> Result<Queue, Errno> {
        Ok(Queue {
            commands: Mutex::default(),
            bell: Bell::new()?,
        })
    }

    pub(crate) fn next(&self) -> Option<Command> {
        lock(&self.commands).pop_front()
    }

    fn put(&self, command: Command) {
        lock(&self.commands).push_back(command);
        self.bell.ring();
    }
}

/// The program's end of an engine.
pub(crate) struct Handle {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    process: u32,
    pub(crate) memory_bytes: u64,
    /// True if faults of system calls are served, too.
    pub(crate) serves_system_calls: bool,
    /// The bytes that regions can have together.
    pub(crate) left_most: u64,
    /// The bytes that further regions can have, beside the regions that there are.
    left: Mutex<u64>,
    /// The bytes of heaps that are not those of a block.
    unused: AtomicU64,
    /// The regions whose files are written to.
    pub(crate) written: Written,
}

impl Handle {
    pub(crate) fn new(
        queue: Arc<Queue>,
        thread: JoinHandle<()>,
        serves_system_calls: bool,
        bytes: (u64, u64),
    ) -> Handle {
        let (memory_bytes, left) = bytes;
        Handle {
            queue,
            thread: Some(thread),
            process: std::process::id(),
            memory_bytes,
            serves_system_calls,
            left_most: left,
            left: Mutex::new(left),
            unused: AtomicU64::new(0),
            written: Written::default(),
        }
    }

    /// Has the engine's thread do something, and waits for its answer.
    pub(crate) fn ask<T>(&self, make: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, Error> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        let (sender, receiver): (_, Receiver<T>) = sync_channel(1);
        self.queue.put(make(sender));
        // Its thread ends when the last handle asks it to, or with the whole process.
        Ok(receiver.recv().expect("the engine answers every command"))
    }

    /// Takes `bytes` of what is left of memory and swap.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Error> {
        let mut left = lock(&self.left);
        let rest = left.checked_sub(bytes);
        *left = rest.ok_or(Error::TooLarge { bytes, left: *left })?;
        Ok(())
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, bytes: u64) {
        *lock(&self.left) += bytes;
    }

    /// Notes that `bytes` of heaps no longer belong to a block.
    pub(crate) fn add_unused(&self, bytes: u64) {
        self.unused.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that `bytes` of them do again, or have gone with their heap.
    pub(crate) fn take_unused(&self, bytes: u64) {
        self.unused.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The engine's counts.
    pub(crate) fn count(&self) -> Result<Statistics, Error> {
        let mut counted = self.ask(Command::Statistics)?;
        // Heaps that come and go meanwhile are in one of the two numbers alone.
        let unused = self.unused.load(Ordering::Relaxed);
        counted.region_bytes = counted.region_bytes.saturating_sub(unused);
        Ok(counted)
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        self.queue.put(Command::End);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has ended the process.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Handle({} bytes)", self.memory_bytes)
    }
}

/// A lock that no panic leaves in a state of its own.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
