//! Load control: deciding which spaces may run when their working sets no longer fit together.
//!
//! A seam of its own, like [`Policy`](crate::policy::Policy): the core shows it the state of
//! memory at each tick and hands its verdicts to whoever schedules the programs.

use crate::id::SpaceId;
use crate::time::Time;

/// The state of memory at a tick.
#[derive(Clone, Copy, Debug)]
pub struct LoadView<'a> {
    /// The time of the tick.
    pub now: Time,
    /// Frames free now.
    pub frames_free: u32,
    /// Frames that should be free.
    pub frames_target: u32,
    /// Pages that have left for their pagers since the beginning.
    pub page_outs: u64,
    /// Each space, in the order of their numbers.
    pub spaces: &'a [SpaceLoad],
}

/// One space, as load control sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceLoad {
    /// Which space.
    pub space: SpaceId,
    /// Faults it has taken since the beginning.
    pub faults: u64,
    /// Whether it has been told to stop.
    pub is_suspended: bool,
}

/// What is to happen to a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Run it no more until told otherwise.
    Suspend(SpaceId),
    /// Run it again.
    Resume(SpaceId),
}

/// Decides which spaces may run.
pub trait LoadControl: Send {
    /// Learns the state of memory and answers with at most one verdict.
    fn tick(&mut self, view: &LoadView<'_>) -> Option<Verdict>;
}

/// Everything runs, always.
pub struct Unlimited;

impl LoadControl for Unlimited {
    fn tick(&mut self, _view: &LoadView<'_>) -> Option<Verdict> {
        None
    }
}
