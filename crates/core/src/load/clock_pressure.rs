//! Clock pressure: reference bits set or cleared by rule, not by use.
//!
//! When free memory has fallen to the low-water mark, every page of one program is made to look
//! unused, so that a clock finds them cold (pressure raised), or used (pressure lowered). The
//! program is the one with the most pages, the one the scheduler runs next, or the one it will run
//! last. All of these made things worse when they were tried, which is why they are here.
//!
//! Source: A. McMenamin, working-set heuristics in Linux (an MSc thesis of 2011): a fair
//! scheduler's leftmost and rightmost tasks. It stands beside the policy, not inside: any policy
//! that looks at reference bits can be put under pressure, and one that does not is not.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::seams::description::Knob;
use crate::seams::load_control::{Description, LoadControl, LoadView, SpaceLoad, Verdict};

/// The description of `clock-pressure`.
pub static DESCRIPTION: Description = Description {
    name: "clock-pressure",
    summary: "sets or clears all reference bits of one program when few frames are free",
    lineage: &["McMenamin 2011 (pressure on the clock)"],
    knobs: &[
        Knob {
            name: "who",
            meaning: "0: who has the most pages; 1: who runs next; 2: who is to run last",
            min: 0,
            max: 2,
            default: 0,
        },
        Knob {
            name: "lower",
            meaning: "0: clear the bits, which raises pressure; 1: set them, which lowers it",
            min: 0,
            max: 1,
            default: 0,
        },
    ],
    is_live: false,
};

#[derive(Clone, Copy)]
enum Who {
    Largest,
    Next,
    Last,
}

struct ClockPressure {
    who: Who,
    is_lowering: bool,
}

/// Makes a `clock-pressure`.
pub fn build(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(ClockPressure {
        who: [Who::Largest, Who::Next, Who::Last][knobs[0] as usize],
        is_lowering: knobs[1] == 1,
    })
}

impl LoadControl for ClockPressure {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        if view.frames_free > view.frames_low {
            return;
        }
        let active = view.spaces.iter().filter(|load| load.turn.is_active);
        // Of several that are alike, the one with the least number.
        let found: Option<&SpaceLoad> = match self.who {
            Who::Largest => active.rev().max_by_key(|load| load.resident),
            Who::Next => active.min_by_key(|load| load.turn.order),
            Who::Last => active.rev().max_by_key(|load| load.turn.order),
        };
        verdicts.extend(found.map(|load| match self.is_lowering {
            true => Verdict::Refresh(load.space),
            false => Verdict::Age(load.space),
        }));
    }
}
