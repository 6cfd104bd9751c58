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

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, PageId, SpaceId};
use crate::policies::parts::per_space::Sets;
use crate::policies::parts::shortfall::Needs;
use crate::policies::parts::space_clocks::Clocks;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `pff`.
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

/// The state kept for a space.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// The time of its last fault.
    fault: u64,
    /// The number of times that the use bits of its pages were cleared, all of them.
    round: u64,
    /// The number of its pages still to be looked at because of that fault.
    left: u32,
    /// True if those of them that were not used leave.
    is_releasing: bool,
}

struct Pff {
    sets: Sets,
    clocks: Clocks,
    needs: Needs,
    /// The use bit of each page, as far as it has been shown: one more than the round of its space
    /// in which it was set, or 0.
    shown: Column<u64>,
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
        shown: Column::new(0, settings.frames_max as usize),
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
        self.note_used(frame);
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
        self.note_used(frame);
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
            self.forget_uses(space, probe);
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

    fn check(&self) {
        self.sets.check();
    }
}

impl SimulatedPolicy for Pff {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.is_exact = true;
        self.note_used(frame);
    }
}

impl SpacePolicy for Pff {
    #[inline]
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.needs.forget(space);
        let fault = self.clocks.now(space);
        let pace = self.pace(space);
        let round = pace.round;
        *pace = Pace {
            fault,
            round,
            ..Pace::default()
        };
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        Some(self.sets.length(space) + self.needs.missing(space))
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
        if !pace.is_releasing {
            pace.round += 1;
        }
        if pace.is_releasing || !is_exact {
            pace.left = left;
        }
    }

    /// Looks at all pages of `space` in one step, if nothing but their bits is to be cleared and
    /// the machine can do that: else each fault would take as long as memory is large.
    fn forget_uses(&mut self, space: SpaceId, probe: &mut Probe<'_>) {
        let Pace {
            left, is_releasing, ..
        } = *self.pace(space);
        // The machine does not know whose pages are whose.
        let is_alone = self.sets.resident() == self.sets.length(space);
        if left > 0 && !is_releasing && is_alone && probe.forget_references(left) {
            self.sets.turn(space, left);
            self.pace(space).left = 0;
        }
    }

    /// Sets the use bit of a page.
    fn note_used(&mut self, frame: FrameId) {
        if let Some(space) = self.sets.space_of(frame) {
            self.shown[frame.index()] = self.pace(space).round + 1;
        }
    }

    /// Returns true if the page was used since it was last asked about, which is forgotten.
    fn take_used(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool {
        let shown = core::mem::take(&mut self.shown[frame.index()]);
        let space = self.sets.space_of(frame);
        let was_shown = space.is_some_and(|space| shown == self.pace(space).round + 1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    const FRAMES: u32 = 12;

    /// The pages that leave while some are used and others come, each page in the frame of its
    /// number, and how many questions were asked.
    fn run(seed: u64, forgets: bool) -> (Vec<u32>, u64) {
        let mut state = seed;
        let mut bench = Bench::new(2 * FRAMES);
        bench.bits.forgets = forgets;
        let mut policy = build(settings(2 * FRAMES, &[20]));
        let (mut resident, mut left) = (Vec::new(), Vec::new());
        for now in 0..2000 {
            // Knuth's generator; every hundred references, a locality of another size.
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let pages = 2 * FRAMES / (1 + now as u32 / 100 % 3);
            let number = (state >> 33) as u32 % pages;
            policy.clock_moved(SpaceId(0), now);
            if resident.contains(&number) {
                bench.touch(&[number]);
                continue;
            }
            let is_full = resident.len() == FRAMES as usize;
            let mut gone = Vec::new();
            if is_full {
                gone.extend(bench.evict_one(&mut policy));
            }
            bench.bring(&mut policy, number, Cause::ZeroFill);
            bench.bits.used[number as usize] = false;
            while let Some(FrameId(frame)) = policy.trim(&mut bench.probe()) {
                bench.evict(&mut policy, frame);
                gone.push(frame);
            }
            resident.push(number);
            resident.retain(|page| !gone.contains(page));
            left.extend(gone);
        }
        (left, bench.questions())
    }

    #[test]
    fn forgetting_all_at_once_is_as_asking_about_each() {
        for seed in 0..100 {
            let at_once = run(seed, true);
            assert!(at_once.0.len() > 100);
            assert_eq!(at_once, run(seed, false), "{seed}");
        }
    }
}
