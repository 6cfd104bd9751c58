//! Signals: the supervisor passes on what it is sent, and leaves alone what the terminal sends to
//! everybody.
//!
//! The program stays in the supervisor's process group, so that the terminal's signals (an
//! interrupt typed, a hang-up, a change of its size) reach it directly. They are told from those a
//! process sends by their origin, and not passed on: the program would get them twice.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::signal::*;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::{Cause, Sent};

/// What is passed on if a process sends it.
const PASSED_ON: [i32; 9] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT,
];

/// The signals of this process, as a stream that can be waited for.
#[derive(Debug)]
pub struct Signals {
    arrivals: UnixStream,
    received: SignalsInfo<WithOrigin>,
}

impl Signals {
    /// Starts to take in signals instead of dying of them. Signals that this process was told to
    /// ignore, as `nohup` does, stay ignored, and the program inherits that.
    pub fn catch() -> std::io::Result<Signals> {
        let ignored = ignored_signals();
        let caught = PASSED_ON
            .into_iter()
            .filter(|&signal| ignored >> (signal - 1) & 1 == 0);
        let (arrivals, wake) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        for signal in caught.clone().chain([SIGCHLD]) {
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(Signals {
            arrivals,
            received: SignalsInfo::new(caught)?,
        })
    }

    /// Passes on to `program` what has come since the last call.
    pub fn pass_on(&mut self, program: Pid) {
        let mut bytes = [0; 64];
        while matches!(self.arrivals.read(&mut bytes), Ok(read) if read > 0) {}
        for origin in self.received.pending() {
            if is_for_program(&origin)
                && let Some(signal) = Signal::from_named_raw(origin.signal)
            {
                // The program may have ended a moment ago; then there is nobody to tell.
                let _ = kill_process(program, signal);
            }
            if origin.signal == SIGTSTP {
                // A shell that watches the supervisor must see the job stop.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

/// Whether the program has not had the signal itself. The terminal's come from the kernel.
fn is_for_program(origin: &Origin) -> bool {
    matches!(
        origin.cause,
        Cause::Sent(Sent::User | Sent::TKill | Sent::Queue | Sent::MesgQ)
    )
}

/// The signals this process ignores, one bit each.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
