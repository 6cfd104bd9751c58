//! A witness between the core and a policy: panics when either breaks the contract.
//!
//! The core says of every page when it enters and when it leaves, once each; the policy names only
//! frames it has been told of.

use std::collections::BTreeMap;

use tidemark_core::id::{FrameId, PageId, SpaceId};
use tidemark_core::seams::policy::{
    Arrival, Departure, Description, KernelUse, Policy, Probe, SimulatedPolicy, SpacePolicy,
};

/// A policy that checks what it hears and what the one inside answers.
pub struct Witness {
    inner: Box<dyn Policy>,
    entered: BTreeMap<FrameId, PageId>,
}

impl Witness {
    /// Stands between the core and `inner`.
    pub fn new(inner: Box<dyn Policy>) -> Witness {
        Witness {
            inner,
            entered: BTreeMap::new(),
        }
    }

    fn expect_choice(&self, chosen: Option<FrameId>, probe: &Probe<'_>) -> Option<FrameId> {
        if let Some(frame) = chosen {
            let name = self.describe().name;
            assert!(
                self.entered.contains_key(&frame),
                "{name} chooses {frame:?}, which is empty"
            );
            assert!(
                probe.may_leave(frame),
                "{name} chooses {frame:?}, which may not leave"
            );
        }
        chosen
    }
}

impl Policy for Witness {
    fn describe(&self) -> &'static Description {
        self.inner.describe()
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let old = self.entered.insert(frame, arrival.page);
        assert_eq!(
            old, None,
            "{:?} enters {frame:?}, where another is",
            arrival.page
        );
        self.inner.page_entered(frame, arrival);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let old = self.entered.remove(&frame);
        assert!(old.is_some(), "{page:?} leaves {frame:?}, where none is");
        self.inner.page_left(frame, page, departure);
    }

    fn page_copied(&mut self, frame: FrameId, kernel_use: KernelUse) -> bool {
        self.inner.page_copied(frame, kernel_use)
    }

    fn page_rescued(&mut self, frame: FrameId) {
        assert!(
            self.entered.contains_key(&frame),
            "{frame:?} is rescued and has no page"
        );
        self.inner.page_rescued(frame);
    }

    fn page_missed(&mut self, page: PageId) {
        self.inner.page_missed(page);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let chosen = self.inner.choose(probe);
        self.expect_choice(chosen, probe)
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let chosen = self.inner.trim(probe);
        self.expect_choice(chosen, probe)
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let chosen = self.inner.clean(probe);
        self.expect_choice(chosen, probe)
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        self.inner.tick(probe);
    }

    fn resize(&mut self, frames: u32) {
        self.inner.resize(frames);
    }

    fn check(&self) {
        self.inner.check();
    }
}

impl SimulatedPolicy for Witness {
    fn page_referenced(&mut self, frame: FrameId) {
        assert!(
            self.entered.contains_key(&frame),
            "{frame:?} is used and has no page"
        );
        self.inner.page_referenced(frame);
    }

    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        assert!(
            self.entered.contains_key(&frame),
            "{frame:?} is foreseen and has no page"
        );
        self.inner.page_foreseen(frame, next);
    }
}

impl SpacePolicy for Witness {
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.inner.clock_moved(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.inner.space_ended(space);
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        self.inner.demand(space)
    }

    fn frames_spare(&self) -> u32 {
        let spare = self.inner.frames_spare();
        assert!(
            spare as usize <= self.entered.len(),
            "{spare} are as good as free"
        );
        spare
    }

    fn walks(&self) -> bool {
        self.inner.walks()
    }
}
