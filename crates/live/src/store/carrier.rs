//! The carrier of the bytes of transfers.

use super::{Means, UNDER_WAY_MAX, WORKERS};
use crate::sys::Errno;
use crate::sys::ring::{Completion, Ring};
use crate::sys::workers::{AtOnce, Workers};

/// The means in use.
pub(super) enum Carrier {
    Ring(Ring),
    Workers(Workers),
    AtOnce(AtOnce),
    /// There is none before the first transfer, which many processes end without, nor from
    /// [`put_down`](super::SwapStore::put_down) on until [`take_up`](super::SwapStore::take_up).
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
