//! DCLOCK: Linux's two lists and refault distances as a plain cache policy, shown every use.
//!
//! A page comes to the inactive list, and any use there makes it active. While more pages are
//! active than their share, the oldest that was not used since it was last looked at becomes
//! inactive. The oldest inactive page leaves, with a stamp of the clock, which counts pages that
//! have left or become active. If it comes back before the clock has gone on by as much as there
//! are active pages, it is active at once: it might have stayed in place of one of those.
//!
//! `linux-modern` is the same idea as the kernel runs it, from bits.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::{Ghost, Ghosts};
use crate::policies::parts::lists::{pull, pull_any};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `dclock`.
pub static DESCRIPTION: Description = Description {
    name: "dclock",
    summary: "used pages become active, and so do those that come back soon after they left",
    lineage: &[
        "Corbató 1968, \"A paging experiment with the Multics system\"",
        "Weiner 2012 (refault distance)",
    ],
    sees: Sees::References,
    knobs: &[Knob {
        name: "active",
        meaning: "the most pages that stay active, in thousandths of memory",
        min: 0,
        max: 1000,
        default: 500,
    }],
};

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;

struct Dclock {
    queues: Queues,
    is_used: Column<bool>,
    ghosts: Ghosts,
    /// The number of pages that have left or become active.
    age: u64,
    active_permille: u64,
    frames: u32,
}

/// Makes a `dclock`.
pub fn build(settings: Settings) -> impl Policy {
    Dclock {
        queues: Queues::new(2, settings.frames_max),
        is_used: Column::new(false, settings.frames_max as usize),
        // A page that left before that many others comes too late.
        ghosts: Ghosts::new(settings.frames_max.max(1)),
        age: 0,
        active_permille: settings.knobs[0],
        frames: settings.frames,
    }
}

impl Policy for Dclock {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let found = self.ghosts.take(arrival.page);
        self.is_used[frame.index()] = false;
        self.queues.push_back(INACTIVE, frame.0);
        let actives = u64::from(self.queues.length(ACTIVE));
        let is_back = found.is_some_and(|found| self.age - found.ghost.seen < actives);
        if is_back && arrival.cause != Cause::Kept {
            self.activate(frame);
        }
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.queues.remove(frame.0);
        if departure == Departure::Evicted {
            self.age += 1;
            let ghost = Ghost {
                page,
                seen: self.age,
                was_hot: false,
            };
            self.ghosts.remember(ghost, self.frames);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.queues.length(INACTIVE) == 0 {
            self.deactivate_one();
        }
        pull(&mut self.queues, INACTIVE, probe)
            .or_else(|| pull_any(&mut self.queues, &[ACTIVE], probe))
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames;
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
    }
}

impl SimulatedPolicy for Dclock {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }

    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        if self.queues.list_of(frame.0) == Some(ACTIVE) {
            self.is_used[frame.index()] = true;
        } else {
            self.activate(frame);
        }
    }
}

impl SpacePolicy for Dclock {}

impl Dclock {
    fn activate(&mut self, frame: FrameId) {
        self.age += 1;
        self.is_used[frame.index()] = false;
        self.queues.move_to_back(ACTIVE, frame.0);
        let most = u64::from(self.frames) * self.active_permille / 1000;
        while u64::from(self.queues.length(ACTIVE)) > most {
            self.deactivate_one();
        }
    }

    /// Makes the oldest active page inactive that was not used since it was last looked at.
    fn deactivate_one(&mut self) {
        while let Some(frame) = self.queues.front(ACTIVE) {
            if !core::mem::take(&mut self.is_used[frame as usize]) {
                self.queues.move_to_back(INACTIVE, frame);
                break;
            }
            self.queues.move_to_back(ACTIVE, frame);
        }
    }
}
