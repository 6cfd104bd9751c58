//! Reads and writes of slots where io_uring is forbidden: by worker threads, or at once.
//!
//! Workers carry bytes and decide nothing. They share the file table of the thread that made
//! them, and touch only the pool and their own queues. Where there can be none, as in a forked
//! child, whose C library makes no threads for us, the thread that asks [carries](AtOnce) them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::io::{IoSlice, IoSliceMut};

use tidemark_core::seams::pager::Direction;

use super::ring::{Buffers, Completion};
use super::socket::Bell;
use super::{Errno, futex, thread};
use crate::meters::{self, Metered};

const STACK_BYTES: usize = 128 * 1024;
/// The longest wait for threads to begin: a busy machine may take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Threads that do transfers.
pub struct Workers {
    shared: Arc<Shared>,
    handles: Vec<thread::Handle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    wanted: Condvar,
    bell: Bell,
    /// The number of threads that have begun.
    begun: AtomicU32,
}

struct Queue {
    jobs: VecDeque<Job>,
    finished: VecDeque<Completion>,
    is_ending: bool,
}

struct Job {
    direction: Direction,
    file: RawFd,
    offset: u64,
    buffers: Buffers,
    tag: u64,
}

impl Workers {
    /// Starts `count` threads, and returns when all of them have begun.
    ///
    /// The first instructions of a thread are the C library's, and read what it knows of the
    /// language: in the program's memory. Once that is managed, a thread may need a page there
    /// that leaves, or is out, and comes back by these threads alone.
    ///
    /// # Errors
    /// The kernel gives no threads, or they do not begin.
    pub fn new(count: u32) -> Result<Workers, Errno> {
        let jobs = VecDeque::with_capacity(64);
        let queue = Queue {
            jobs,
            finished: VecDeque::with_capacity(64),
            is_ending: false,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            wanted: Condvar::new(),
            bell: Bell::new()?,
            begun: AtomicU32::new(0),
        });
        let mut workers = Workers {
            shared,
            handles: Vec::new(),
        };
        for _ in 0..count {
            let shared = Arc::clone(&workers.shared);
            workers
                .handles
                .push(thread::spawn(STACK_BYTES, move || work(&shared))?);
        }
        workers.wait_until_begun()?;
        Ok(workers)
    }

    fn wait_until_begun(&self) -> Result<(), Errno> {
        let end = Instant::now() + START_LIMIT;
        loop {
            let begun = self.shared.begun.load(Ordering::Acquire);
            let left = end.saturating_duration_since(Instant::now());
            if begun == self.count() {
                return Ok(());
            }
            if left.is_zero() {
                return Err(Errno::TIMEDOUT);
            }
            futex::wait(&self.shared.begun, begun, left);
        }
    }

    /// The number of workers.
    pub fn count(&self) -> u32 {
        self.handles.len() as u32
    }

    /// Hands a transfer to the workers.
    pub fn push(
        &mut self,
        direction: Direction,
        file: RawFd,
        offset: u64,
        buffers: &Buffers,
        tag: u64,
    ) {
        let job = Job::new(direction, file, offset, buffers, tag);
        lock(&self.shared.queue).jobs.push_back(job);
        self.shared.wanted.notify_one();
    }

    /// Hands over the next finished transfer.
    pub fn take_completion(&mut self) -> Option<Completion> {
        self.shared.bell.take();
        let mut queue = lock(&self.shared.queue);
        let completion = queue.finished.pop_front();
        if !queue.finished.is_empty() {
            self.shared.bell.ring();
        }
        completion
    }
}

/// Transfers that are over when they have been asked for.
pub struct AtOnce {
    finished: VecDeque<Completion>,
    /// Rung while there is something that has finished.
    bell: Bell,
}

impl AtOnce {
    /// Begins with nothing finished.
    pub fn new() -> Result<AtOnce, Errno> {
        Ok(AtOnce {
            finished: VecDeque::with_capacity(64),
            bell: Bell::new()?,
        })
    }

    /// Does a transfer.
    pub fn push(
        &mut self,
        direction: Direction,
        file: RawFd,
        offset: u64,
        buffers: &Buffers,
        tag: u64,
    ) {
        let job = Job::new(direction, file, offset, buffers, tag);
        let result = transfer(&job);
        self.finished.push_back(Completion { tag, result });
        self.bell.ring();
    }

    /// Hands over the next finished transfer.
    pub fn take_completion(&mut self) -> Option<Completion> {
        let completion = self.finished.pop_front();
        if self.finished.is_empty() {
            self.bell.take();
        }
        completion
    }
}

impl AsFd for AtOnce {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Job {
    fn new(direction: Direction, file: RawFd, offset: u64, buffers: &Buffers, tag: u64) -> Job {
        Job {
            direction,
            file,
            offset,
            buffers: *buffers,
            tag,
        }
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Workers {
    /// Ends the threads. Their last instructions, the C library's, may still touch the program's
    /// memory when this is over.
    pub fn end(&mut self) {
        lock(&self.shared.queue).is_ending = true;
        self.shared.wanted.notify_all();
        for handle in self.handles.drain(..) {
            // A transfer that takes longer is stuck in the device; its thread ends by itself.
            let _ = handle.join(Duration::from_secs(5));
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.end();
    }
}

fn work(shared: &Shared) {
    shared.begun.fetch_add(1, Ordering::Release);
    futex::wake(&shared.begun, 1);
    loop {
        let mut queue = lock(&shared.queue);
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.is_ending {
                return;
            }
            queue = queue.wait(&shared.wanted);
        };
        drop(queue);
        let result = transfer(&job);
        lock(&shared.queue).finished.push_back(Completion {
            tag: job.tag,
            result,
        });
        shared.bell.ring();
    }
}

fn transfer(job: &Job) -> Result<usize, Errno> {
    let buffers = job.buffers.as_slice();
    let (first, count) = (buffers.as_ptr(), buffers.len());
    // SAFETY: `IoSlice` and `IoSliceMut` have the layout of `iovec`; the buffers are live memory of
    // the engine that no other code reads or writes until this transfer is finished. The descriptor
    // is open for as long as transfers on it are pending.
    unsafe {
        let file = BorrowedFd::borrow_raw(job.file);
        match job.direction {
            Direction::Fetch => {
                let mut slices = job.buffers;
                let first = slices.list_mut().cast::<IoSliceMut<'_>>();
                rustix::io::preadv(
                    file,
                    std::slice::from_raw_parts_mut(first, count),
                    job.offset,
                )
            }
            Direction::Store => {
                let first = first.cast::<IoSlice<'_>>();
                rustix::io::pwritev(file, std::slice::from_raw_parts(first, count), job.offset)
            }
        }
    }
}

/// The queue, while this thread has its lock.
struct Held<'a>(Option<MutexGuard<'a, Queue>>);

impl<'a> Held<'a> {
    /// Gives the lock back until `wanted` is notified.
    fn wait(mut self, wanted: &Condvar) -> Held<'a> {
        let guard = self.0.take().expect("held until it is dropped");
        Metered::Workers.note_released();
        let guard = wanted.wait(guard).unwrap_or_else(PoisonError::into_inner);
        // Who had it meanwhile is not told from there being nothing to do.
        Metered::Workers.note_taken(meters::asked(), false);
        Held(Some(guard))
    }
}

impl Deref for Held<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        self.0.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.is_some() {
            Metered::Workers.note_released();
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> Held<'_> {
    let asked_ns = meters::asked();
    // No code panics while holding the lock; a poisoned one would hold a consistent queue.
    let (guard, is_contended) = match queue.try_lock() {
        Ok(guard) => (guard, false),
        Err(TryLockError::Poisoned(error)) => (error.into_inner(), false),
        Err(TryLockError::WouldBlock) => {
            (queue.lock().unwrap_or_else(PoisonError::into_inner), true)
        }
    };
    Metered::Workers.note_taken(asked_ns, is_contended);
    Held(Some(guard))
}
