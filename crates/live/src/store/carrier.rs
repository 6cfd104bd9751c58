//! The carrier of the bytes of transfers.

use crate::sys::Errno;
use crate::sys::ring::{Completion, Ring};
use crate::sys::workers::{AtOnce, Workers};

/// The number of parts under way at one time.
pub const UNDER_WAY_MAX: u32 = 64;
const WORKERS: u32 = 4;

/// By what means bytes are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// io_uring, or threads where it is not permitted.
    Best,
    /// io_uring or nothing.
    Ring,
    /// io_uring that every thread of the process may use, or threads.
    Shared,
    /// Threads.
    Threads,
    /// io_uring if it is available, otherwise transfers by the asking thread: for a forked child.
    Alone,
    /// io_uring if it is available, otherwise transfers by the asking thread: in in-thread mode,
    /// where every thread may use the store.
    SharedAlone,
    /// The thread that asks.
    AtOnce,
}

/// The means in use.
pub(super) enum Carrier {
    Ring(Ring),
    Workers(Workers),
    AtOnce(AtOnce),
    /// No carrier yet: it is made at the first transfer, which many processes end without.
    Absent,
}

impl Carrier {
    /// The carrier before the first transfer. Rings for one thread are made when they are
    /// needed: a child that executes another program at once needs none.
    pub(super) fn at_first(means: Means) -> Result<Carrier, Errno> {
        match means {
            Means::Alone => Ok(Carrier::Absent),
            Means::Best if Ring::is_permitted() => Ok(Carrier::Absent),
            _ => Carrier::new(means),
        }
    }

    pub(super) fn new(means: Means) -> Result<Carrier, Errno> {
        let ring = match means {
            Means::Threads | Means::AtOnce => Err(Errno::NOSYS),
            Means::Best | Means::Ring | Means::Alone => Ring::new(UNDER_WAY_MAX),
            Means::Shared | Means::SharedAlone => Ring::new_shared(UNDER_WAY_MAX),
        };
        match (ring, means) {
            (Ok(ring), _) => Ok(Carrier::Ring(ring)),
            (Err(error), Means::Ring) => Err(error),
            (Err(_), Means::Best | Means::Shared | Means::Threads) => {
                Ok(Carrier::Workers(Workers::new(WORKERS)?))
            }
            (Err(_), Means::Alone | Means::SharedAlone | Means::AtOnce) => {
                Ok(Carrier::AtOnce(AtOnce::new()?))
            }
        }
    }

    pub(super) fn take_completion(&mut self) -> Option<Completion> {
        match self {
            Carrier::Ring(ring) => ring.take_completion(),
            Carrier::Workers(workers) => workers.take_completion(),
            Carrier::AtOnce(carrier) => carrier.take_completion(),
            Carrier::Absent => None,
        }
    }
}

/// The writes that are left to the engine's own thread, where threads of the program use the store,
/// too.
///
/// What the kernel can't write at once it has a thread of its own write, which stays as long as the
/// one that has asked. A program of one thread would not be that any more.
#[derive(Default)]
pub(super) struct Left {
    is_wanted: bool,
    is_told: bool,
}

impl Left {
    /// Leaves writes from now on, or does not any more.
    pub(super) fn set(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
        self.is_told &= is_wanted;
    }

    /// Returns true if writes are left.
    pub(super) fn is_set(&self) -> bool {
        self.is_wanted
    }

    /// Returns true, once, if there are writes (`has_writes`).
    pub(super) fn tell(&mut self, has_writes: bool) -> bool {
        let is_news = has_writes && !self.is_told;
        self.is_told |= is_news;
        is_news
    }
}

/// Returns true if what failed with `error` may do better when it is tried again. The kernel
/// cancels what a thread has asked of a ring when that thread ends: in in-thread mode, any of the
/// program's.
pub(super) fn may_pass(error: Errno) -> bool {
    matches!(error, Errno::INTR | Errno::AGAIN | Errno::CANCELED)
}
