//! VMIN: the least memory with which a number of faults can be had, by knowing the future.
//!
//! After each use a page leaves if it is not used again within the window, and stays if it is. It
//! faults as often as the working set with that window, in less memory; no policy that faults as
//! seldom needs less. In a memory too small, the page used again last leaves.
//!
//! Source: B. G. Prieve and R. S. Fabry, "VMIN: an optimal variable-space page replacement
//! algorithm", CACM 19(5), 1976.

use crate::collections::column::Column;
use crate::id::{FrameId, PageId, SpaceId};
use crate::policies::parts::per_space::Sets;
use crate::policies::parts::space_clocks::Clocks;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `vmin`.
pub static DESCRIPTION: Description = Description {
    name: "vmin",
    summary: "a page leaves after its use unless it is used again within a window: the optimum",
    lineage: &["Prieve and Fabry 1976"],
    sees: Sees::Future,
    knobs: &[Knob {
        name: "window",
        meaning: "ticks of a program's own time (microseconds) for which a page is kept unused",
        min: 0,
        max: 1 << 40,
        default: 100_000,
    }],
};

/// Pages that are not used again in time.
const LEAVING: u32 = 0;

struct Vmin {
    sets: Sets,
    clocks: Clocks,
    /// The next use of each page, in its space's time.
    next: Column<u64>,
    owners: Column<SpaceId>,
    window: u64,
}

/// Makes a `vmin`.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max as usize;
    Vmin {
        sets: Sets::new(1, settings.frames_max),
        clocks: Clocks::default(),
        next: Column::new(u64::MAX, frames_max),
        owners: Column::new(SpaceId(0), frames_max),
        window: settings.knobs[0],
    }
}

impl Policy for Vmin {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.owners[frame.index()] = arrival.space;
        self.next[frame.index()] = u64::MAX;
        self.sets.push(arrival.space, frame);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.sets.remove(frame);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let leaving = self.sets.front_other(LEAVING, probe);
        leaving.or_else(|| {
            let spaces = self.sets.spaces();
            let frames = spaces.flat_map(|space| self.sets.iter(space));
            let frames = frames.filter(|&frame| probe.may_leave(frame));
            frames.max_by_key(|frame| {
                let now = self.clocks.now(self.owners[frame.index()]);
                self.next[frame.index()].saturating_sub(now)
            })
        })
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.sets.front_other(LEAVING, probe)
    }

    fn check(&self) {
        self.sets.check();
    }
}

impl SimulatedPolicy for Vmin {
    #[inline]
    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        let owner = self.owners[frame.index()];
        let (now, offset) = self.clocks.now_and_offset(owner);
        // What is foreseen is in the ticks that were told; a clock that went on from another's
        // stands before them.
        let next = next.saturating_add(offset);
        self.next[frame.index()] = next;
        if next.saturating_sub(now) > self.window {
            self.sets.push_other(LEAVING, frame);
        } else if self.sets.space_of(frame).is_none() {
            // The order of the others does not matter.
            self.sets.push(owner, frame);
        }
    }
}

impl SpacePolicy for Vmin {
    #[inline]
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        Some(self.sets.length(space))
    }
}
