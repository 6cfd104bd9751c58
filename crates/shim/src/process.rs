//! The state of the process that this library is in, as its hooks and the engine's threads see it.
//! A forked child has a copy of all of it.

mod files;
mod forking;
mod growth;
mod way;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_live::engine::Mode;
use tidemark_live::requests::Requests;
use tidemark_live::sys::futex;
use tidemark_live::sys::lifeline::Lifeline;

use self::files::Files;
pub(crate) use self::files::Wanted;
pub(crate) use self::forking::FORK_PAUSE;
use self::forking::Forking;
use self::growth::Growth;
use self::way::Way;

/// The time that a program thread waits for the engine. It goes on in any case.
pub(crate) const ASK_LIMIT: Duration = Duration::from_secs(5);

/// This process.
pub(crate) static PROCESS: Process = Process {
    requests: Requests::new(),
    leader: Lifeline::new(),
    forking: Forking::new(),
    growth: Growth::new(),
    files: Files::new(),
    way: Way::new(),
    stage: AtomicU32::new(STARTING),
    is_in_thread: AtomicBool::new(false),
    is_recorded: AtomicBool::new(false),
    is_logged: AtomicBool::new(false),
    is_filtered: AtomicBool::new(false),
    files_end: AtomicI32::new(0),
    heap_end: AtomicUsize::new(0),
};

const STARTING: u32 = 0;
const WORKING: u32 = 1;
const ABSENT: u32 = 2;

/// A process.
pub(crate) struct Process {
    /// The requests of program threads to the engine.
    pub(crate) requests: Requests,
    /// Held by the process's first thread, until that ends.
    pub(crate) leader: Lifeline,
    /// The fork that is under way.
    pub(crate) forking: Forking,
    /// Memory that grows by small steps.
    pub(crate) growth: Growth,
    /// Mapped files that are managed.
    pub(crate) files: Files,
    /// The way to the supervisor.
    pub(crate) way: Way,
    /// The stage of the engine: see the constants.
    stage: AtomicU32,
    /// True if faults are served by the threads that meet them.
    is_in_thread: AtomicBool,
    /// True if references are recorded.
    is_recorded: AtomicBool,
    /// True if the engine logs events in a log that must be complete when the program leaves its
    /// memory.
    is_logged: AtomicBool,
    /// True if a thread of this process, or of one that it was forked from, has a filter.
    is_filtered: AtomicBool,
    /// In in-thread mode, the numbers of the engine's files: from the floor to just before this.
    files_end: AtomicI32,
    /// The end of the heap, as this process last set it.
    heap_end: AtomicUsize,
}

impl Process {
    /// Takes in how faults are served, and whether references are recorded.
    pub(crate) fn note_mode(&self, mode: Mode, is_recorded: bool) {
        let is_in_thread = mode.serves_on_program_threads();
        self.is_in_thread.store(is_in_thread, Ordering::Relaxed);
        self.is_recorded.store(is_recorded, Ordering::Relaxed);
    }

    /// Returns true if faults are served by the threads that meet them.
    pub(crate) fn is_in_thread(&self) -> bool {
        self.is_in_thread.load(Ordering::Relaxed)
    }

    /// Returns true if references are recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed)
    }

    /// Takes in whether the engine logs events.
    pub(crate) fn note_logged(&self, is_logged: bool) {
        self.is_logged.store(is_logged, Ordering::Relaxed);
    }

    /// Returns true if it does.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged.load(Ordering::Relaxed)
    }

    /// Returns true if nothing of ours may make system calls on the program's threads.
    pub(crate) fn is_filtered(&self) -> bool {
        self.is_filtered.load(Ordering::Relaxed)
    }

    /// Takes in that a thread is about to have a filter. Returns true if one had.
    pub(crate) fn begin_filter(&self) -> bool {
        self.is_filtered.swap(true, Ordering::AcqRel)
    }

    /// Takes in that it has none after all, nor any other.
    pub(crate) fn forget_filter(&self) {
        self.is_filtered.store(false, Ordering::Release);
    }

    /// Takes in where the heap ends. Answers where it did before; zero: that is not known.
    pub(crate) fn set_heap_end(&self, end: usize) -> usize {
        self.heap_end.swap(end, Ordering::AcqRel)
    }

    /// The end of the heap, as this process last set it; zero: it is not known.
    pub(crate) fn heap_end(&self) -> usize {
        self.heap_end.load(Ordering::Acquire)
    }

    /// The end of the numbers of the engine's files.
    pub(crate) fn files_end(&self) -> i32 {
        self.files_end.load(Ordering::Relaxed)
    }

    /// Takes in where the numbers of the engine's files end.
    pub(crate) fn set_files_end(&self, end: i32) {
        self.files_end.store(end, Ordering::Relaxed);
    }
}

// The start of the engine.
impl Process {
    /// Begins to start an engine.
    pub(crate) fn begin_start(&self) {
        self.stage.store(STARTING, Ordering::Release);
        // That of a parent may be cut.
        self.leader.reset();
    }

    /// Waits until the engine works or has given up, or for `limit`.
    pub(crate) fn await_engine(&self, limit: Duration) {
        let mut left = limit.as_millis() / 10;
        while self.stage.load(Ordering::Acquire) == STARTING && left > 0 {
            futex::wait(&self.stage, STARTING, Duration::from_millis(10));
            left -= 1;
        }
    }

    /// Ends the start: the engine `is_working`, or there is none.
    pub(crate) fn end_start(&self, is_working: bool) {
        let stage = match is_working {
            true => WORKING,
            false => ABSENT,
        };
        self.stage.store(stage, Ordering::Release);
        futex::wake(&self.stage, u32::MAX);
    }
}
