//! The working set: each program keeps the pages it used within the last window of its own time.
//!
//! A page leaves when its last use is more than a window ago, whether its frame is needed or not,
//! and a program's memory grows and shrinks with what it uses. Where every reference is shown the
//! set is exact. Where there are bits, all pages of a program are asked once in a part of the
//! window, and a use counts from the time it was noticed: a page stays up to two parts longer than
//! it should. The damped variant also lets go, at each fault, of the page that was used longest
//! ago, if that is more than a share of the window: localities that end leave sooner.
//!
//! In a memory too small for the sets, the page used longest ago in its program's time leaves.
//! What is missed so is counted in [`SpacePolicy::demand`].
//!
//! Sources: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968; A. J.
//! Smith, "A modified working set paging algorithm", IEEE TC C-25(9), 1976.

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

const WINDOW: Knob = Knob {
    name: "window",
    meaning: "ticks of a program's own time (microseconds) after which an unused page leaves",
    min: 1,
    max: 1 << 40,
    default: 100_000,
};

const PARTS: Knob = Knob {
    name: "parts",
    meaning: "how often in a window each page is asked whether it was used",
    min: 1,
    max: 1000,
    default: 4,
};

/// The description of `working-set`.
pub static DESCRIPTION: Description = Description {
    name: "working-set",
    summary: "a page leaves when its program has not used it for a window of its own time",
    lineage: &["Denning 1968"],
    sees: Sees::Bits,
    knobs: &[WINDOW, PARTS],
};

/// The description of `dws`.
pub static DAMPED: Description = Description {
    name: "dws",
    summary: "a working set that replaces its oldest page at a fault if that is old enough",
    lineage: &["Denning 1968", "Smith 1976 (damped working set)"],
    sees: Sees::Bits,
    knobs: &[
        WINDOW,
        PARTS,
        Knob {
            name: "damping",
            meaning: "age at which a fault replaces the oldest page, in thousandths of the window",
            min: 0,
            max: 1000,
            default: 500,
        },
    ],
};

/// The most pages one call of `trim` looks at.
const LOOKS_MAX: u32 = 256;
/// The number of pages that may not leave that are passed in search of one that may, when no fault
/// waits.
const PASSED_MAX: usize = 16;

/// A round over the pages of a space, to ask whether they were used.
#[derive(Clone, Copy, Default)]
struct Round {
    /// The time at which the last one began, in the space's time.
    began: u64,
    /// The page asked next.
    at: Option<FrameId>,
    /// The number of pages left to be asked.
    left: u32,
}

struct WorkingSet {
    description: &'static Description,
    /// The pages of each space, the one used longest ago first.
    sets: Sets,
    clocks: Clocks,
    needs: Needs,
    /// The time at which each page was last known to be used.
    used: Column<u64>,
    rounds: Vec<Round>,
    window: u64,
    /// Time between two rounds.
    part: u64,
    /// The age at which a fault replaces the oldest page.
    damping: Option<u64>,
    /// Spaces that have faulted since the last trimming. Kept for the damped variant alone.
    faulted: Vec<SpaceId>,
    /// Every reference is shown.
    is_exact: bool,
}

/// Makes a `working-set`.
pub fn build(settings: Settings) -> impl Policy {
    WorkingSet::new(&settings, &DESCRIPTION, None)
}

/// Makes a `dws`.
pub fn build_damped(settings: Settings) -> impl Policy {
    let age = u128::from(settings.knobs[0]) * u128::from(settings.knobs[2]) / 1000;
    let damping = Some(u64::try_from(age).unwrap_or(u64::MAX));
    WorkingSet::new(&settings, &DAMPED, damping)
}

impl Policy for WorkingSet {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let (space, now) = (arrival.space, self.clocks.now(arrival.space));
        self.used[frame.index()] = now;
        self.sets.push(space, frame);
        if arrival.cause == Cause::Fetched {
            self.needs.note_fetched(space, now);
        }
        let is_fault = matches!(
            arrival.cause,
            Cause::ZeroFill | Cause::Fetched | Cause::Copied
        );
        if is_fault && self.damping.is_some() && !self.faulted.contains(&space) {
            self.faulted.push(space);
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, departure: Departure) {
        let space = self.space_of(frame);
        let limit = self.damping.unwrap_or(self.window);
        if departure == Departure::Evicted && self.age(frame) <= limit {
            self.needs.note_taken(space, self.clocks.now(space));
        }
        self.pass(space, frame);
        self.sets.remove(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        let space = self.space_of(frame);
        self.pass(space, frame);
        self.used[frame.index()] = self.clocks.now(space);
        self.sets.move_to_back(frame);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // One round clears every bit, so that the second finds a page if any may leave.
        for _ in 0..=2 * u64::from(self.sets.resident()) {
            let frame = self.find_oldest(probe)?;
            if !self.ask(frame, probe) {
                return Some(frame);
            }
        }
        None
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        if let Some(frame) = self.replace_oldest(probe) {
            return Some(frame);
        }
        let mut looks = 0;
        for space in self.sets.spaces() {
            if self.is_exact {
                let oldest = self.sets.front(space, PASSED_MAX, probe);
                let found = oldest.filter(|&frame| self.age(frame) > self.window);
                if found.is_some() {
                    return found;
                }
                continue;
            }
            self.begin_round(space);
            while looks < LOOKS_MAX
                && let Some(frame) = self.take_next(space)
            {
                looks += 1;
                let is_old = probe.may_leave(frame) && !self.ask(frame, probe);
                if is_old && self.age(frame) > self.window {
                    return Some(frame);
                }
            }
        }
        None
    }

    fn check(&self) {
        self.sets.check();
        for space in self.sets.spaces() {
            let times = self.sets.iter(space).map(|frame| self.used[frame.index()]);
            assert!(times.is_sorted(), "a page is out of order");
            let at = self.rounds.get(space.0 as usize).and_then(|round| round.at);
            assert!(at.is_none_or(|at| self.sets.space_of(at) == Some(space)));
        }
    }
}

impl SimulatedPolicy for WorkingSet {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.is_exact = true;
        self.page_rescued(frame);
    }
}

impl SpacePolicy for WorkingSet {
    #[inline]
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.needs.forget(space);
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        Some(self.sets.length(space) + self.needs.missing(space))
    }
}

impl WorkingSet {
    fn new(
        settings: &Settings,
        description: &'static Description,
        damping: Option<u64>,
    ) -> WorkingSet {
        let (window, parts) = (settings.knobs[0], settings.knobs[1]);
        WorkingSet {
            description,
            sets: Sets::new(0, settings.frames_max),
            clocks: Clocks::default(),
            needs: Needs::new(window),
            used: Column::new(0, settings.frames_max as usize),
            rounds: Vec::new(),
            window,
            part: (window / parts).max(1),
            damping,
            faulted: Vec::new(),
            is_exact: false,
        }
    }

    /// Asks whether the page in `frame` was used; if it was, puts it behind the others. Where
    /// every reference is shown, there is nothing to ask.
    fn ask(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool {
        let is_used = !self.is_exact && probe.take_referenced(frame);
        if is_used {
            self.page_rescued(frame);
        }
        is_used
    }

    /// Begins another round over the pages of `space` if it is time and the last one is over.
    fn begin_round(&mut self, space: SpaceId) {
        let now = self.clocks.now(space);
        let (first, length) = (self.sets.first(space), self.sets.length(space));
        let part = self.part;
        let round = self.round(space);
        if round.at.is_none() && now.saturating_sub(round.began) >= part {
            *round = Round {
                began: now,
                at: first,
                left: length,
            };
        }
    }

    /// The next page of the round over the pages of `space`.
    fn take_next(&mut self, space: SpaceId) -> Option<FrameId> {
        let frame = self.round(space).at?;
        let next = self.sets.next(frame);
        let round = self.round(space);
        round.left = round.left.saturating_sub(1);
        round.at = next.filter(|_| round.left > 0);
        Some(frame)
    }

    /// Lets the round over the pages of `space` go on behind `frame`, which leaves its place.
    fn pass(&mut self, space: SpaceId, frame: FrameId) {
        if self.round(space).at == Some(frame) {
            self.take_next(space);
        }
    }

    fn round(&mut self, space: SpaceId) -> &mut Round {
        let place = space.0 as usize;
        if place >= self.rounds.len() {
            self.rounds.resize(place + 1, Round::default());
        }
        &mut self.rounds[place]
    }

    /// For a fault of the damped variant: the page of its space that was used longest ago, if that
    /// is long enough.
    fn replace_oldest(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        while let Some(space) = self.faulted.pop() {
            for _ in 0..LOOKS_MAX {
                let Some(frame) = self.sets.front(space, PASSED_MAX, probe) else {
                    break;
                };
                if self.age(frame) <= self.damping? {
                    break;
                }
                if !self.ask(frame, probe) {
                    return Some(frame);
                }
            }
        }
        None
    }

    /// The page used longest ago in its program's time, of those that may leave.
    fn find_oldest(&self, probe: &Probe<'_>) -> Option<FrameId> {
        let firsts = self.sets.spaces().filter_map(|space| {
            let frame = self.sets.front(space, usize::MAX, probe)?;
            Some((self.age(frame), u32::MAX - space.0, frame))
        });
        firsts.max().map(|(_, _, frame)| frame)
    }

    fn age(&self, frame: FrameId) -> u64 {
        let now = self.clocks.now(self.space_of(frame));
        now.saturating_sub(self.used[frame.index()])
    }

    fn space_of(&self, frame: FrameId) -> SpaceId {
        self.sets
            .space_of(frame)
            .expect("a frame with a page is in the set of a space")
    }
}
