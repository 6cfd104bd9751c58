//! System calls that are held up until their memory is there, for programs whose engines serve
//! faults in user mode alone: see [`tidemark_live::sys::calls`].
//!
//! One filter with one listener is on all processes of a run. A thread takes each call that is held
//! up, finds the engine of the process that makes it, and sends it there; the engine answers. What
//! has no engine goes on at once, and so does an engine.
//!
//! A child that shares its parent's memory, to execute a program, has its parent's engine.
//!
//! # Invariants
//! 1. A call that was sent is answered by the engine, or goes on when the engine has gone.
//! 2. An engine's own calls wait for no engine.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use tidemark_live::control;
use tidemark_live::sys::calls::{self, Call, share_memory};
use tidemark_live::sys::{Errno, program};

use crate::time::timespec;

/// The name of an engine's process.
const ENGINE: &str = "tidemark-engine";
/// The most generations of children that share one memory.
const GENERATIONS_MAX: u32 = 8;
/// The most threads whose processes are remembered.
const THREADS_MAX: usize = 4096;
/// The pause before what an engine had no room for is sent again.
const PAUSE: Duration = Duration::from_micros(200);

/// The calls of a run.
#[derive(Clone, Debug)]
pub struct Calls {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    listener: OwnedFd,
    /// Readable when the thread that listens is to end.
    stop: OwnedFd,
    engines: Mutex<HashMap<u32, Engine>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    namespace: u32,
}

/// An engine that answers calls, by the number of its program.
#[derive(Debug)]
struct Engine {
    connection: OwnedFd,
    /// The last call of each thread that was sent there.
    sent: HashMap<u32, u64>,
}

impl Calls {
    /// Takes the calls of `listener`, on a thread of its own.
    ///
    /// # Errors
    /// There is no thread, or no file.
    pub fn take(listener: OwnedFd) -> std::io::Result<Calls> {
        let state = Arc::new(State {
            listener,
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            engines: Mutex::default(),
            thread: Mutex::default(),
            namespace: program::namespace(),
        });
        let shared = Arc::clone(&state);
        let builder = std::thread::Builder::new().name("calls".into());
        let thread = builder.spawn(move || Listener::new(&shared).run())?;
        *lock(&state.thread) = Some(thread);
        Ok(Calls { state })
    }

    /// The listener, by which engines answer.
    pub fn listener(&self) -> &OwnedFd {
        &self.state.listener
    }

    /// The number of the namespace in which threads have the numbers that are sent; it is not zero.
    pub fn namespace(&self) -> u32 {
        // One that can't be told is none that an engine would be in.
        self.state.namespace.max(1)
    }

    /// Has the calls of a process sent to its engine from now on.
    pub fn enter(&self, process: u32, connection: &impl AsFd) -> std::io::Result<()> {
        let engine = Engine {
            connection: connection.as_fd().try_clone_to_owned()?,
            sent: HashMap::new(),
        };
        let before = lock(&self.state.engines).insert(process, engine);
        self.state.let_go(before);
        Ok(())
    }

    /// Lets the calls of a process go on, whose engine has gone.
    pub fn leave(&self, process: u32) {
        let gone = lock(&self.state.engines).remove(&process);
        self.state.let_go(gone);
    }

    /// Returns true if no process has the filter any more: nothing is to be listened to.
    pub fn is_over(&self) -> bool {
        let mut files = [PollFd::new(&self.state.listener, PollFlags::IN)];
        let asked = poll(&mut files, Some(&timespec(Duration::ZERO)));
        asked.is_ok() && files[0].revents().contains(PollFlags::HUP)
    }

    /// Ends the thread that listens, and answers the listener, for another process to go on.
    pub fn hand_over(self) -> std::io::Result<OwnedFd> {
        rustix::io::write(&self.state.stop, &1u64.to_ne_bytes())?;
        if let Some(thread) = lock(&self.state.thread).take() {
            // One that has failed listens no more, either.
            let _ = thread.join();
        }
        self.state.listener.try_clone()
    }
}

impl State {
    /// Lets those calls go on that were sent to an engine and may not have been answered.
    fn let_go(&self, engine: Option<Engine>) {
        for id in engine.iter().flat_map(|engine| engine.sent.values()) {
            calls::go_on(&self.listener, *id);
        }
    }

    /// Sends a call to the engine of `process`. True if the engine answers it.
    fn send(&self, process: u32, call: Call) -> bool {
        loop {
            let mut engines = lock(&self.engines);
            let Some(engine) = engines.get_mut(&process) else {
                return false;
            };
            match control::send_call(engine.connection.as_fd(), call) {
                Ok(()) => {
                    engine.sent.insert(call.thread, call.id);
                    return true;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            drop(engines);
            std::thread::sleep(PAUSE);
        }
    }

    fn has(&self, process: u32) -> bool {
        lock(&self.engines).contains_key(&process)
    }
}

/// The thread that listens.
struct Listener<'a> {
    state: &'a State,
    /// The processes of threads that are not the first.
    threads: HashMap<u32, u32>,
}

impl Listener<'_> {
    fn new(state: &State) -> Listener<'_> {
        Listener {
            state,
            threads: HashMap::new(),
        }
    }

    fn run(&mut self) {
        let state = self.state;
        loop {
            let mut files = [
                PollFd::new(&state.listener, PollFlags::IN),
                PollFd::new(&state.stop, PollFlags::IN),
            ];
            // A wait that is interrupted is one that ended early.
            let _ = poll(&mut files, None);
            let [calls, stop] = files.map(|file| file.revents());
            if stop.contains(PollFlags::IN) {
                return;
            }
            if calls.contains(PollFlags::IN) {
                match calls::receive(&state.listener) {
                    Ok(call) => self.handle(call),
                    // It is over: a signal has come before it was heard of.
                    Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                    // For want of memory, perhaps. Who has the filter can't do without this thread.
                    Err(_) => std::thread::sleep(PAUSE),
                }
            } else if calls.contains(PollFlags::HUP) {
                // Nothing has the filter, and nothing will.
                return;
            }
        }
    }

    fn handle(&mut self, call: Call) {
        let engine = self.engine_of(call.thread);
        if !engine.is_some_and(|process| self.state.send(process, call)) {
            calls::go_on(&self.state.listener, call.id);
        }
    }

    /// The process whose engine serves a thread.
    fn engine_of(&mut self, thread: u32) -> Option<u32> {
        if self.state.has(thread) {
            return Some(thread);
        }
        if let Some(&process) = self.threads.get(&thread)
            && self.state.has(process)
            && Path::new(&format!("/proc/{process}/task/{thread}")).exists()
        {
            return Some(process);
        }
        let status = Status::of(thread)?;
        if self.state.has(status.process) {
            if self.threads.len() >= THREADS_MAX {
                self.threads.clear();
            }
            self.threads.insert(thread, status.process);
            return Some(status.process);
        }
        self.parent_with_memory_of(status)
    }

    /// The ancestor that has an engine and whose memory the process `child` shares, if there is
    /// one.
    fn parent_with_memory_of(&self, child: Status) -> Option<u32> {
        if child.name == ENGINE {
            return None;
        }
        let mut parent = child.parent;
        for _ in 0..GENERATIONS_MAX {
            // Where the kernel does not compare, a child is taken for one that shares.
            if share_memory(child.process, parent) == Some(false) {
                return None;
            }
            if self.state.has(parent) {
                return Some(parent);
            }
            parent = Status::of(parent)?.parent;
        }
        None
    }
}

/// The lines of a thread's `status` in `/proc` that matter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Status {
    name: String,
    process: u32,
    parent: u32,
}

impl Status {
    fn of(thread: u32) -> Option<Status> {
        Status::parse(&std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
    }

    fn parse(text: &str) -> Option<Status> {
        let field = |name: &str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim)
        };
        let number = |name| field(name)?.parse().ok();
        Some(Status {
            name: field("Name")?.into(),
            process: number("Tgid")?,
            parent: number("PPid")?,
        })
    }
}

/// Takes a lock. A thread that has failed with it has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_process_and_parent() {
        let text = "Name:\tsh\nUmask:\t0022\nTgid:\t77\nNgid:\t0\nPid:\t78\nPPid:\t5\n";
        let found = Status::parse(text).unwrap();
        assert_eq!(
            (found.name.as_str(), found.process, found.parent),
            ("sh", 77, 5)
        );
        assert_eq!(Status::parse("Name:\tsh\n"), None);
        let own = Status::of(std::process::id()).unwrap();
        assert_eq!(own.process, std::process::id());
    }
}
