//! Load control: deciding which spaces may run when their working sets no longer fit together.
//!
//! A seam of its own, like [`Policy`](crate::seams::policy::Policy): the core shows it the state of
//! memory at each tick, reports each fetch that a fault begins, and carries its [`Verdict`]s out as
//! far as memory is concerned. The scheduler of the programs does the rest: it learns by
//! [`Event::Suspend`](crate::event::Event::Suspend) and
//! [`Event::Resume`](crate::event::Event::Resume). Each load control has a file and one line in
//! [`registry`](crate::load::registry).
//!
//! # Invariants
//! 1. One space at most is protected.
//! 2. A space that ends is neither protected nor suspended any more.

use alloc::vec::Vec;

use crate::id::SpaceId;
use crate::seams::description::Knob;
use crate::time::Time;

/// The state of memory at a tick.
#[derive(Clone, Copy, Debug)]
pub struct LoadView<'a> {
    /// The time of the tick.
    pub now: Time,
    /// Processors that programs and their paging may use.
    pub processors: u32,
    /// Frames that may be in use.
    pub frames: u32,
    /// Frames free now.
    pub frames_free: u32,
    /// Resident pages that the policy holds as good as free.
    pub frames_spare: u32,
    /// Reclaim starts below this many free frames.
    pub frames_low: u32,
    /// Frames that should be free.
    pub frames_target: u32,
    /// Pages that have left for their pagers since the beginning.
    pub page_outs: u64,
    /// The requests that took.
    pub page_out_requests: u64,
    /// Each space, in the order of their numbers.
    pub spaces: &'a [SpaceLoad],
}

/// One space, as load control sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceLoad {
    /// The address space.
    pub space: SpaceId,
    /// Faults it has taken since the beginning.
    pub faults: u64,
    /// Of those, the ones for which a page was fetched.
    pub page_ins: u64,
    /// Time that its faults have waited for pages since the beginning: of several that wait at a
    /// time, the sum.
    pub waited_ns: u64,
    /// Processor time that its paging has taken since the beginning; zero where it is not measured.
    pub paged_ns: u64,
    /// Resident pages it owns.
    pub resident: u32,
    /// Frames it needs, if the policy measures that.
    pub demand: Option<u32>,
    /// The scheduler's report of it.
    pub turn: Turn,
    /// True if it has been told to stop.
    pub is_suspended: bool,
}

/// The scheduler's last word of a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The place in the scheduler's order: the least runs next; who has the most will be the last
    /// to run. A fair scheduler gives its virtual run time here, one with a queue the place in it.
    pub order: u64,
    /// The processor time that its programs have used so far, of all threads together; what was
    /// done for their memory is left out where that is known.
    pub ran_ns: u64,
    /// True if the space has a program that runs, could run, or waits for a short while.
    pub is_active: bool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn {
            order: 0,
            ran_ns: 0,
            is_active: true,
        }
    }
}

/// The action to take on a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Run it no more until told otherwise. Its pages are the first to leave when frames are
    /// needed.
    Suspend(SpaceId),
    /// Run it no more until told otherwise. Its pages leave at once, as fast as they can be
    /// written.
    SwapOut(SpaceId),
    /// Run it again.
    Resume(SpaceId),
    /// Let no page of this space leave while another can, and those of no other.
    Protect(SpaceId),
    /// Protect no space.
    Unprotect,
    /// Forget that any page of the space was used: clear its reference bits.
    Age(SpaceId),
    /// Let every page of the space seem used: set its reference bits.
    Refresh(SpaceId),
}

/// The description that a load control gives of itself.
#[derive(Debug)]
pub struct Description {
    /// The name on the command line and in reports: lower case, hyphens.
    pub name: &'static str,
    /// One line of meaning.
    pub summary: &'static str,
    /// The publications and systems it follows, oldest first.
    pub lineage: &'static [&'static str],
    /// The knobs: name, meaning, range, default.
    pub knobs: &'static [Knob],
    /// True if whole programs are all that it acts on, so that a supervisor of processes can carry
    /// out what it says.
    pub is_live: bool,
}

/// Decides which spaces may run, and whose pages are spared.
pub trait LoadControl: Send {
    /// Describes the load control, once, for help texts, reports, bindings and tests.
    fn describe(&self) -> &'static Description;

    /// Learns the state of memory and adds its verdicts, in order.
    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>);

    /// Learns that a page is being fetched for a fault of `space`.
    fn page_in(&mut self, _now: Time, _space: SpaceId, _verdicts: &mut Vec<Verdict>) {}

    /// Learns that `space` is no more. Another may get its number.
    fn space_ended(&mut self, _space: SpaceId) {}
}
