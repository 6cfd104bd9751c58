//! Waiting for what there is to do next, at first awake.
//!
//! A page comes from a fast disk in 60 to 100 us. Falling asleep and being woken adds 10 us to that
//! on a virtual machine, whose processor halts meanwhile. So an engine that a program waits for
//! looks again and again for a while, as long as its processor has nothing else to do. It finds
//! that out by offering the processor to others between two looks: an offer that nobody takes is
//! over at once. One that was taken, or a wait that was too long, lets the engine sleep at once
//! the next times.

use std::os::fd::RawFd;

use super::now;
use crate::sys::socket;

/// The longest wait awake.
const AWAKE_NS: u64 = 150_000;
/// An offer of the processor that takes longer than this was taken.
const TAKEN_NS: u64 = 10_000;
/// The most waits in a row that are slept through after one that was not worth staying awake.
const ASLEEP_MOST: u32 = 64;

/// The files that an engine sleeps on, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wakers {
    pub(super) program: RawFd,
    pub(super) store: Option<RawFd>,
    pub(super) doorbell: RawFd,
    pub(super) control: Option<RawFd>,
    /// Whether a thread of the program waits for the store.
    pub(super) is_awaited: bool,
}

/// Why a sleep ended. The other reasons are found by looking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Woken {
    pub(super) by_doorbell: bool,
    pub(super) by_control: bool,
}

/// Sleeps for an engine. It needs no engine, so that other threads may use that meanwhile.
#[derive(Debug, Default)]
pub struct Sleeper {
    /// How many of the next waits are slept through.
    asleep: u32,
    /// How many that will be after the next wait that was not worth staying awake.
    asleep_next: u32,
}

impl Sleeper {
    /// Sleeps until something happens, or for so long.
    pub fn sleep(&mut self, wakers: Wakers, pause_ns: u64) -> Woken {
        let mut ready = 0;
        if wakers.is_awaited && pause_ns > 0 {
            ready = self.wait_awake(wakers);
        }
        if ready == 0 {
            ready = look(wakers, pause_ns);
        }
        Woken {
            by_doorbell: ready & 2 != 0,
            by_control: ready & 8 != 0,
        }
    }

    fn wait_awake(&mut self, wakers: Wakers) -> u32 {
        if self.asleep > 0 {
            self.asleep -= 1;
            return 0;
        }
        let start = now();
        let mut before = start;
        loop {
            let ready = look(wakers, 0);
            if ready != 0 {
                self.asleep_next = 1;
                return ready;
            }
            std::thread::yield_now();
            let after = now();
            if after.since_ns(before) > TAKEN_NS || after.since_ns(start) > AWAKE_NS {
                self.asleep = self.asleep_next;
                self.asleep_next = (self.asleep_next * 2).clamp(1, ASLEEP_MOST);
                return 0;
            }
            before = after;
        }
    }
}

/// Looks which files can be read, for so long. A look that fails for any reason is a short one.
fn look(wakers: Wakers, pause_ns: u64) -> u32 {
    let files = [
        Some(wakers.program),
        Some(wakers.doorbell),
        wakers.store,
        wakers.control,
    ];
    socket::wait_readable_raw(files, pause_ns).unwrap_or(0)
}
