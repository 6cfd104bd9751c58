//! Evictions: tasks that are paged out as a whole on request.
//!
//! A task that is evicted may use no more than the least until it does, and asks for nothing
//! meanwhile; what it gives up is others' to be given. Then it grows again, as one that has just
//! come, or is suspended if that was asked for.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tidemark_live::shared::{Counter, Shared};
use tidemark_partition::FLOOR_FRAMES;

use super::{Member, Tree};

/// The time after which an eviction ends though its task has not given everything up: pages may be
/// pinned, or the task stopped.
const LIMIT: Duration = Duration::from_secs(60);

/// An eviction under way.
#[derive(Clone, Copy, Debug)]
pub struct Eviction {
    since: Instant,
    /// The task is to be suspended when it is over.
    pub is_suspended_after: bool,
}

impl Eviction {
    /// One that begins now.
    pub fn begin() -> Eviction {
        Eviction {
            since: Instant::now(),
            is_suspended_after: false,
        }
    }
}

impl Tree {
    /// Lowers what evicted tasks are `given` to the least. Says whether there are any.
    pub(super) fn hold_down_evicted(&self, given: &mut [u64], floor: u64) -> bool {
        let mut any = false;
        for (member, frames) in self.members.iter().zip(given) {
            if member.eviction.is_some() {
                *frames = (*frames).min(floor);
                any = true;
            }
        }
        any
    }

    /// Ends the evictions of tasks that are out, or that take too long.
    pub(super) fn end_evictions(&mut self) {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            let Some(eviction) = member.eviction else {
                continue;
            };
            if !member.is_out(&self.shared) && eviction.since.elapsed() < LIMIT {
                continue;
            }
            member.eviction = None;
            member.is_served = false;
            if eviction.is_suspended_after {
                // One that has ended meanwhile is found out when it is listened to.
                let _ = self.stop(place);
            }
        }
    }
}

impl Member {
    /// Returns true if it uses no more than the least, and may use no more.
    fn is_out(&self, shared: &Shared) -> bool {
        let Some(index) = self.record else {
            return true;
        };
        let process = shared.process(index);
        let resident = process.counter(Counter::FramesResident).load(Relaxed);
        u64::from(process.budget()) <= FLOOR_FRAMES
            && process.understood() <= FLOOR_FRAMES
            && resident <= FLOOR_FRAMES
    }
}
