//! Random: any page may be the next to leave. The measure of how much a policy's memory is worth.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, PageId};
use crate::policies::settings::Settings;
use crate::random::SplitMix64;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `random`.
pub static DESCRIPTION: Description = Description {
    name: "random",
    summary: "any page may be the next to leave, whatever its use",
    lineage: &["Belady 1966", "Steele, Lea and Flood 2014 (SplitMix64)"],
    sees: Sees::Faults,
    knobs: &[],
};

const NONE: u32 = u32::MAX;

/// The number of draws with which a frame that may not leave is answered, before a walk settles it.
const DRAWS_MAX: u32 = 16;

struct Random {
    source: SplitMix64,
    resident: Vec<u32>,
    /// The place of each frame in `resident`.
    places: Column<u32>,
}

/// Makes a `random` that draws the same numbers for the same seed.
pub fn build(settings: Settings) -> impl Policy {
    let frames_max = settings.frames_max as usize;
    Random {
        source: SplitMix64::new(settings.seed),
        resident: Vec::with_capacity(frames_max),
        places: Column::new(NONE, frames_max),
    }
}

impl Policy for Random {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        assert_eq!(
            self.places[frame.index()],
            NONE,
            "the frame is held already"
        );
        self.places[frame.index()] = self.resident.len() as u32;
        self.resident.push(frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        let place = core::mem::replace(&mut self.places[frame.index()], NONE);
        if place == NONE {
            return;
        }
        self.resident.swap_remove(place as usize);
        if let Some(&moved) = self.resident.get(place as usize) {
            self.places[moved as usize] = place;
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if self.resident.is_empty() {
            return None;
        }
        let mut place = 0;
        for _ in 0..DRAWS_MAX {
            place = self.source.below(self.resident.len() as u64) as usize;
            let frame = FrameId(self.resident[place]);
            if probe.may_leave(frame) {
                return Some(frame);
            }
        }
        let (before, from) = self.resident.split_at(place);
        from.iter()
            .chain(before)
            .map(|&frame| FrameId(frame))
            .find(|&frame| probe.may_leave(frame))
    }

    fn check(&self) {
        for (place, &frame) in self.resident.iter().enumerate() {
            assert_eq!(self.places[frame as usize], place as u32);
        }
        let placed = self.places.iter().filter(|&&place| place != NONE).count();
        assert_eq!(placed, self.resident.len());
    }
}

impl SimulatedPolicy for Random {}

impl SpacePolicy for Random {}
