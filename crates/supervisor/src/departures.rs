//! Departures: processes whose engine is gone, and how they ended.
//!
//! An engine goes with its process, or with the program in it when that executes another. The
//! kernel says which, and with what status, to a holder of a descriptor of the process, once its
//! parent has been told (Linux 6.15; before that, only the status of the run's own child is known).

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidemark_live::sys::pidfd::{self, End};
use tidemark_results::Ending;

use crate::time::timespec;

/// A process that still lives so long after its engine has gone runs another program.
const REPLACED_AFTER: Duration = Duration::from_millis(100);

/// A process that has ended, and whose end has not come to be known in that time, keeps its end to
/// itself: its parent does not ask, or the kernel is older. A descriptor would be held for each.
const UNTOLD_AFTER: Duration = Duration::from_secs(10);

/// A process whose ending is not known yet.
#[derive(Debug)]
pub struct Departure {
    life: OwnedFd,
    since: Instant,
}

impl Departure {
    /// The departure of the process known by `life`, whose engine has gone now.
    pub fn new(life: OwnedFd) -> Departure {
        Departure {
            life,
            since: Instant::now(),
        }
    }

    /// The way it ended, once that is known.
    pub fn ending(&self) -> Option<Ending> {
        match pidfd::end_of(&self.life) {
            Some(End::Status(status)) => Some(Ending::Status(status as i32)),
            Some(End::Signal(signal)) => Some(Ending::Signal(signal as i32)),
            None if is_over(&self.life) => {
                (self.since.elapsed() >= UNTOLD_AFTER).then_some(Ending::Gone)
            }
            None => (self.since.elapsed() >= REPLACED_AFTER).then_some(Ending::Replaced),
        }
    }
}

/// A descriptor of the process with this number.
pub fn life_of(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns true if a process has ended, or is about to.
///
/// Source: Linux, `proc_pid_stat(5)`: the third and the ninth field.
pub fn is_leaving(pid: u32) -> bool {
    /// `PF_EXITING` of the kernel's `include/linux/sched.h`.
    const EXITING: u64 = 4;
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let words = text
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace());
    let flags = words.and_then(|mut words| words.nth(6)?.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & EXITING != 0)
}

/// Returns true if a process has ended.
pub fn is_over(life: &OwnedFd) -> bool {
    let mut files = [PollFd::new(life, PollFlags::IN)];
    matches!(poll(&mut files, Some(&timespec(Duration::ZERO))), Ok(1..))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_nobody_waits_for_is_let_go() {
        let mut child = Command::new("true").spawn().unwrap();
        let life = life_of(Pid::from_child(&child)).unwrap();
        let mut files = [PollFd::new(&life, PollFlags::IN)];
        let limit = timespec(Duration::from_secs(60));
        assert_eq!(poll(&mut files, Some(&limit)), Ok(1));
        let mut departure = Departure::new(life);
        assert_eq!(departure.ending(), None);
        departure.since -= UNTOLD_AFTER;
        assert_eq!(departure.ending(), Some(Ending::Gone));
        child.wait().unwrap();
    }
}
