//! The sleep of an engine, and what ends it.

use std::os::fd::RawFd;

use crate::store::LISTENED_MAX;
use crate::sys::ring::Wait;
use crate::sys::socket;

/// The wait of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakers {
    /// The store, which listens to all else. One call waits, and takes in what has finished; to
    /// poll its file takes two, as what has finished interrupts the first.
    Store(Wait),
    /// Files by number.
    Files {
        /// The store, unless others look after it.
        store: Option<RawFd>,
        /// The other files.
        others: [Option<RawFd>; LISTENED_MAX],
    },
}

/// The reason for which a sleep ended. The other reasons are found by looking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Woken {
    by_store: bool,
    by_doorbell: bool,
    by_control: bool,
}

impl Woken {
    /// The store has finished something, or heard of something else.
    pub fn by_store() -> Woken {
        Woken {
            by_store: true,
            ..Woken::default()
        }
    }

    /// All that there is a signal for, as by a [`blocking_read`](crate::sys::blocking_read).
    pub fn by_signal() -> Woken {
        Woken {
            by_doorbell: true,
            by_control: true,
            ..Woken::default()
        }
    }

    /// Returns true if the store has finished something, or heard of something else.
    pub fn is_by_store(self) -> bool {
        self.by_store
    }

    /// Returns true if the doorbell was rung.
    pub fn is_by_doorbell(self) -> bool {
        self.by_doorbell
    }

    /// Returns true if there is word of the supervisor.
    pub fn is_by_control(self) -> bool {
        self.by_control
    }

    /// Notes which files are ready, in the order of [`Line::wakers`](super::line::Line::wakers).
    pub fn note(&mut self, ready: u32) {
        self.by_doorbell |= ready & 2 != 0;
        self.by_control |= ready & 4 != 0;
    }
}

/// Sleeps until something happens, or for so long. It needs no engine, so that other threads may
/// use that meanwhile.
pub fn sleep(wakers: Wakers, pause_ns: u64) -> Woken {
    let mut woken = Woken::default();
    match wakers {
        Wakers::Store(wait) => {
            wait.wait(pause_ns);
            woken.by_store = true;
        }
        Wakers::Files { store, others } => {
            let [program, doorbell, control] = others;
            let files = [program, doorbell, control, store];
            // A sleep that fails for any reason is a short one.
            woken.note(socket::wait_readable_raw(files, pause_ns).unwrap_or(0));
        }
    }
    woken
}
