//! Page-fault frequency: a program's memory grows while it faults often, and shrinks when it does
//! not.
//!
//! At a fault that comes `critical` ticks or more after the program's last, every page that was not
//! used since then leaves; at one that comes sooner none does. Either way the use bits are cleared.
//! So nothing but faults and one bit a page has to be seen; where there are no bits, each fault
//! unmaps the program's pages. A steady stream of new pages faults too evenly for anything ever to
//! leave, and between two localities both are kept until `critical` has passed.
//!
//! Source: W. W. Chu and H. Opderbeck, "The page fault frequency replacement algorithm", FJCC 1972.
//! In a memory too small, the program with the most pages gives up the first not used since.

use alloc::vec;
use alloc::vec::Vec;

use super::clocks::Clocks;
use super::needs::Needs;
use super::registry::Settings;
use super::sets::Sets;
use super::{Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees};
use crate::id::{FrameId, PageId, SpaceId};

/// What `pff` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "pff",
    summary: "unused pages leave at a fault that comes long after the program's last",
    lineage: &["Chu and Opderbeck 1972"],
    sees: Sees::Bits,
    knobs: &[Knob {
        name: "critical",
        meaning: "ticks of a program's own time (microseconds) between faults that are rare enough",
        min: 1,
        max: 1 << 40,
        default: 100_000,
    }],
};

/// What is remembered of a space.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// When it faulted last.
    fault: u64,
    /// How many of its pages are still to be looked at because of that fault.
    left: u32,
    /// Whether those of them that were not used leave.
    is_releasing: bool,
}

struct Pff {
    sets: Sets,
    clocks: Clocks,
    needs: Needs,
    /// The use bit of each page, as far as it has been shown.
    is_used: Vec<bool>,
    paces: Vec<Pace>,
    critical: u64,
    /// Every reference is shown.
    is_exact: bool,
}

/// Makes a `pff`.
pub fn build(settings: Settings) -> impl Policy {
    Pff {
        sets: Sets::new(0, settings.frames_max),
        clocks: Clocks::default(),
        needs: Needs::new(settings.knobs[0]),
        is_used: vec![false; settings.frames_max as usize],
        paces: Vec::new(),
        critical: settings.knobs[0],
        is_exact: false,
    }
}

impl Policy for Pff {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let (space, now) = (arrival.space, self.clocks.now(arrival.space));
        match arrival.cause {
            Cause::Fetched => {
                self.needs.note_fetched(space, now);
                self.note_fault(space, now);
            }
            Cause::ZeroFill | Cause::Copied => self.note_fault(space, now),
            Cause::ZeroAhead
            | Cause::Prefetched
            | Cause::Adopted
            | Cause::Kept
            | Cause::Cleaned => {}
        }
        self.sets.push(space, frame);
        self.is_used[frame.index()] = true;
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, departure: Departure) {
        let space = self.sets.space_of(frame).expect("it has entered");
        let now = self.clocks.now(space);
        let is_released = self.pace(space).is_releasing;
        if departure == Departure::Evicted && !is_released {
            self.needs.note_taken(space, now);
        }
        self.sets.remove(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        self.is_used[frame.index()] = true;
    }

    fn page_referenced(&mut self, frame: FrameId) {
        self.is_exact = true;
        self.is_used[frame.index()] = true;
    }

    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.needs.forget(space);
        let fault = self.clocks.now(space);
        *self.pace(space) = Pace {
            fault,
            ..Pace::default()
        };
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for space in self.sets.collect_largest_first() {
            // One round clears every bit, so that the second finds a page if any may leave.
            for _ in 0..=2 * self.sets.length(space) {
                let Some(frame) = self.sets.front(space, usize::MAX, probe) else {
                    break;
                };
                if !self.take_used(frame, probe) {
                    return Some(frame);
                }
                self.sets.move_to_back(frame);
            }
        }
        None
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        for space in self.sets.spaces() {
            while self.pace(space).left > 0 {
                self.pace(space).left -= 1;
                let Some(frame) = self.sets.iter(space).next() else {
                    break;
                };
                self.sets.move_to_back(frame);
                // A page that may not leave is in use.
                let is_kept = !probe.may_leave(frame) || self.take_used(frame, probe);
                if !is_kept && self.pace(space).is_releasing {
                    return Some(frame);
                }
            }
            self.pace(space).is_releasing = false;
        }
        None
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        Some(self.sets.length(space) + self.needs.missing(space))
    }

    fn check(&self) {
        self.sets.check();
    }
}

impl Pff {
    /// A page of `space` comes, and is not on its list yet: those that are there are looked at.
    fn note_fault(&mut self, space: SpaceId, now: u64) {
        let left = self.sets.length(space);
        let (critical, is_exact) = (self.critical, self.is_exact);
        let pace = self.pace(space);
        // Several pages may come at once.
        let is_going_on = pace.left > 0 && pace.is_releasing;
        pace.is_releasing = is_going_on || now.saturating_sub(pace.fault) >= critical;
        pace.fault = now;
        if is_exact && !pace.is_releasing {
            let frames = self.sets.iter(space);
            frames.for_each(|frame| self.is_used[frame.index()] = false);
        } else {
            pace.left = left;
        }
    }

    /// Whether the page was used since it was last asked about, which is forgotten.
    fn take_used(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool {
        let was_shown = core::mem::take(&mut self.is_used[frame.index()]);
        if self.is_exact {
            return was_shown;
        }
        probe.take_referenced(frame) || was_shown
    }

    fn pace(&mut self, space: SpaceId) -> &mut Pace {
        let place = space.0 as usize;
        if place >= self.paces.len() {
            self.paces.resize(place + 1, Pace::default());
        }
        &mut self.paces[place]
    }
}
