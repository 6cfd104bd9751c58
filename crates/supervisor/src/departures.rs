//! Departures: processes whose engine is gone, and how they ended.
//!
//! An engine goes with its process, or with the program in it when that executes another. The
//! kernel says which, and with what status, to whoever holds a descriptor of the process, once its
//! parent has been told (Linux 6.15; before that, only the status of the run's own child is known).

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidemark_live::sys::pidfd::{self, End};
use tidemark_results::{Ending, ProcessRecord};

use crate::time::timespec;

/// A process that still lives so long after its engine has gone runs another program.
const REPLACED_AFTER: Duration = Duration::from_millis(100);

/// Processes whose ending is not known yet.
#[derive(Debug, Default)]
pub struct Departures(Vec<Departure>);

#[derive(Debug)]
struct Departure {
    /// The place of its record.
    place: usize,
    life: OwnedFd,
    since: Instant,
}

impl Departures {
    /// Adds a process, known by `life`, that has its record at `place`.
    pub fn add(&mut self, place: usize, life: OwnedFd) {
        self.0.push(Departure {
            place,
            life,
            since: Instant::now(),
        });
    }

    /// Forgets the process with its record at `place`: its ending is known.
    pub fn forget(&mut self, place: usize) {
        self.0.retain(|departure| departure.place != place);
    }

    /// Writes down in `records` what has come to be known.
    pub fn settle(&mut self, records: &mut [ProcessRecord]) {
        self.0.retain(|departure| {
            let ending = departure.ending();
            if let Some(ending) = ending {
                records[departure.place].ending = ending;
            }
            ending.is_none()
        });
    }
}

impl Departure {
    fn ending(&self) -> Option<Ending> {
        match pidfd::end_of(&self.life) {
            Some(End::Status(status)) => Some(Ending::Status(status as i32)),
            Some(End::Signal(signal)) => Some(Ending::Signal(signal as i32)),
            None if is_over(&self.life) || self.since.elapsed() < REPLACED_AFTER => None,
            None => Some(Ending::Replaced),
        }
    }
}

/// A descriptor of the process with this number.
pub fn life_of(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns true if a process has ended.
pub fn is_over(life: &OwnedFd) -> bool {
    let mut files = [PollFd::new(life, PollFlags::IN)];
    matches!(poll(&mut files, Some(&timespec(Duration::ZERO))), Ok(1..))
}
