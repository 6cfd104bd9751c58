//! Signals: the supervisor passes on those that it alone received.
//!
//! The program stays in the supervisor's process group, so that what the terminal sends (an
//! interrupt typed, a change of its size) and what is sent to the whole group (by `timeout`, or a
//! shell's `kill %1`) reaches it directly. A [`witness`](crate::witness) in that group
//! distinguishes those from signals that reached the supervisor alone: a process sent them to its
//! process id, or the kernel did. The kernel signals the leader of a session alone that its
//! terminal is gone, and under `ssh -t`, in a terminal's window or a container the supervisor is
//! that leader.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use signal_hook::consts::signal::*;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::{emulate_default_handler, raise};
use tidemark_live::sys::signal::SignalSet;

use crate::witness::Witness;

/// The signals that are passed on.
const PASSED_ON: [i32; 9] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT,
];

/// The signals that ask a program to end.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// The time that a signal waits before it is passed on. `timeout` sends one to its child and then
/// one to the whole group: a program by itself has both at once and sees one.
const DELAY: Duration = Duration::from_millis(10);

/// The signals of this process, as a stream that can be waited for.
#[derive(Debug)]
pub struct Signals {
    arrivals: UnixStream,
    received: SignalsInfo,
    witness: Witness,
    /// The signals that have come and are not passed on yet.
    waiting: SignalSet,
    /// The time at which they are passed on.
    due: Option<Instant>,
}

impl Signals {
    /// Starts to take in signals instead of dying of them, for the program with these `words`.
    /// Signals that this process was told to ignore, as `nohup` does, stay ignored, and the program
    /// inherits that.
    pub fn catch(words: &[OsString]) -> std::io::Result<Signals> {
        let ignored = ignored_signals();
        let caught = PASSED_ON
            .into_iter()
            .filter(|&signal| !ignored.contains(signal));
        let (arrivals, wake) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        for signal in caught.clone().chain([SIGCHLD]) {
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(Signals {
            arrivals,
            received: SignalsInfo::new(caught)?,
            witness: Witness::start(words)?,
            waiting: SignalSet::NONE,
            due: None,
        })
    }

    /// Passes on to `program` what has come and is [due](Self::due). Answers whether the run was
    /// asked to end.
    pub fn pass_on(&mut self, program: Pid) -> bool {
        let mut bytes = [0; 64];
        while matches!(self.arrivals.read(&mut bytes), Ok(read) if read > 0) {}
        for signal in self.received.pending() {
            self.waiting.insert(signal);
            self.due.get_or_insert_with(|| Instant::now() + DELAY);
        }
        if self.due.is_none_or(|due| Instant::now() < due) {
            return false;
        }
        self.due = None;
        let waiting = std::mem::take(&mut self.waiting);
        let witnessed = self.witness.take(waiting);
        let alone = |&signal: &i32| waiting.contains(signal) && !witnessed.contains(signal);
        for signal in PASSED_ON.into_iter().filter(alone) {
            if let Some(signal) = Signal::from_named_raw(signal) {
                // The program may have ended a moment ago; then no process needs it.
                let _ = kill_process(program, signal);
            }
        }
        if waiting.contains(SIGTSTP) {
            // A shell that watches the supervisor must see the job stop.
            let _ = emulate_default_handler(SIGTSTP);
        }
        ENDING.into_iter().any(|signal| waiting.contains(signal))
    }

    /// The time at which there is something to pass on, if there is.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

/// Dies of `signal`, so that the parent of this process sees the program's end.
pub fn end_by(signal: i32) -> ! {
    // The program has left its own core file; one of the supervisor would replace it.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = emulate_default_handler(signal);
    // Real-time signals and a few rare ones are not in the table of defaults.
    let _ = raise(signal);
    // Only a signal without a deadly default gets here. Shells know its number by this status.
    std::process::exit(128 + signal)
}

/// The signals this process ignores.
fn ignored_signals() -> SignalSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    SignalSet(mask.unwrap_or(0))
}
