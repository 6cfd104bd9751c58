//! WSClock: a clock over all frames whose hand takes only what has left its program's working set.
//!
//! When a frame is needed the hand moves on. A page that was used gets the time of its program as
//! its last use; one that was not leaves if its last use is more than a window ago, and is passed
//! if not. A modified page that leaves is written, and the hand goes on; touched before that ends,
//! it stays. When a whole round finds nothing, what is being written is waited for. If nothing is,
//! memory is overcommitted: the unused page whose last use is longest ago leaves, and
//! [`SpacePolicy::demand`] shows load control what is missed.
//!
//! Source: R. W. Carr and J. L. Hennessy, "WSClock: a simple and effective algorithm for virtual
//! memory management", SOSP 1981. Pages of programs that load control has stopped are taken by the
//! core before the hand is asked.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId, SpaceId};
use crate::policies::parts::shortfall::Needs;
use crate::policies::parts::space_clocks::Clocks;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `wsclock`.
pub static DESCRIPTION: Description = Description {
    name: "wsclock",
    summary: "a clock whose hand passes pages used within a window of their program's time",
    lineage: &["Denning 1968", "Carr and Hennessy 1981"],
    sees: Sees::Bits,
    knobs: &[Knob {
        name: "window",
        meaning: "ticks of a program's own time (microseconds) for which a used page is passed",
        min: 1,
        max: 1 << 40,
        default: 100_000,
    }],
};

const LIST: u8 = 0;

#[derive(Clone, Copy)]
struct Page {
    owner: SpaceId,
    /// The owner's time when the page was last known to be used.
    used: u64,
}

struct WsClock {
    /// All pages; the hand stands at the front.
    queues: Queues,
    pages: Column<Page>,
    /// The number of pages each space has.
    counts: Vec<u32>,
    clocks: Clocks,
    needs: Needs,
    window: u64,
}

/// Makes a `wsclock`.
pub fn build(settings: Settings) -> impl Policy {
    let nobody = Page {
        owner: SpaceId(0),
        used: 0,
    };
    WsClock {
        queues: Queues::new(1, settings.frames_max),
        pages: Column::new(nobody, settings.frames_max as usize),
        counts: Vec::new(),
        clocks: Clocks::default(),
        needs: Needs::new(settings.knobs[0]),
        window: settings.knobs[0],
    }
}

impl Policy for WsClock {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let owner = arrival.space;
        let used = self.clocks.now(owner);
        self.pages[frame.index()] = Page { owner, used };
        self.queues.push_back(LIST, frame.0);
        if owner.0 as usize >= self.counts.len() {
            self.counts.resize(owner.0 as usize + 1, 0);
        }
        self.counts[owner.0 as usize] += 1;
        if arrival.cause == Cause::Fetched {
            self.needs.note_fetched(owner, used);
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, departure: Departure) {
        let Page { owner, .. } = self.pages[frame.index()];
        if departure == Departure::Evicted && self.age(frame) <= self.window {
            self.needs.note_taken(owner, self.clocks.now(owner));
        }
        self.counts[owner.0 as usize] -= 1;
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        self.note_use(frame);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let mut oldest = None;
        let mut next = self.queues.front(LIST);
        while let Some(frame) = next.map(FrameId) {
            next = self.queues.next(frame.0);
            if !probe.may_leave(frame) {
                continue;
            }
            if probe.take_referenced(frame) {
                self.note_use(frame);
                continue;
            }
            let age = self.age(frame);
            if age > self.window {
                // The hand stops behind it. A whole round leaves it where it was.
                if let Some(next) = next {
                    self.queues.turn_to(next);
                }
                return Some(frame);
            }
            if oldest.is_none_or(|(most, _)| age > most) {
                oldest = Some((age, frame));
            }
        }
        if probe.laundry() > 0 {
            return None;
        }
        // If every page was used in this round, the next that may leave is where the hand began.
        let frames = self.queues.iter(LIST).map(FrameId);
        oldest
            .map(|(_, frame)| frame)
            .or_else(|| frames.into_iter().find(|&frame| probe.may_leave(frame)))
    }

    fn check(&self) {
        self.queues.check();
        assert_eq!(self.counts.iter().sum::<u32>(), self.queues.length(LIST));
    }
}

impl SimulatedPolicy for WsClock {}

impl SpacePolicy for WsClock {
    #[inline]
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.needs.forget(space);
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        let count = self.counts.get(space.0 as usize).copied().unwrap_or(0);
        Some(count + self.needs.missing(space))
    }
}

impl WsClock {
    fn note_use(&mut self, frame: FrameId) {
        let page = &mut self.pages[frame.index()];
        page.used = self.clocks.now(page.owner);
    }

    /// The time since the page in `frame` was last known to be used, in its owner's time.
    fn age(&self, frame: FrameId) -> u64 {
        let Page { owner, used } = self.pages[frame.index()];
        self.clocks.now(owner).saturating_sub(used)
    }
}
