//! The working set: each program keeps the pages it used within the last window of its own time.
//!
//! A page leaves when its last use is more than a window ago, whether anybody needs the frame or
//! not, and a program's memory grows and shrinks with what it uses. Where every reference is shown
//! the set is exact. Where there are bits, each page is asked once in a part of the window, and its
//! use is as old as the first time it was not found used, at most: a page stays a part longer than
//! it should. The damped variant also lets go, at each fault, of the page that was used longest
//! ago, if that is more than a share of the window: localities that end leave sooner.
//!
//! In a memory too small for the sets, the page that was asked about longest ago leaves, if it was
//! not used since. What is missed so is counted in [`Policy::demand`].
//!
//! Sources: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968; A. J.
//! Smith, "A modified working set paging algorithm", IEEE TC C-25(9), 1976.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::clocks::Clocks;
use super::needs::Needs;
use super::registry::Settings;
use super::sets::Sets;
use super::{Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees};
use crate::id::{FrameId, PageId, SpaceId};

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

/// What `working-set` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "working-set",
    summary: "a page leaves when its program has not used it for a window of its own time",
    lineage: &["Denning 1968"],
    sees: Sees::Bits,
    knobs: &[WINDOW, PARTS],
};

/// What `dws` says of itself.
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
/// How many pages that may not leave are passed in search of one that may, when nobody waits.
const PASSED_MAX: usize = 16;

#[derive(Clone, Copy, Default)]
struct Stamp {
    /// When the page was last known to be used.
    used: u64,
    /// When it was last asked about. A list is in the order of these.
    asked: u64,
}

struct WorkingSet {
    description: &'static Description,
    sets: Sets,
    clocks: Clocks,
    needs: Needs,
    stamps: Vec<Stamp>,
    window: u64,
    /// Time between two questions about a page.
    part: u64,
    /// The age at which a fault replaces the oldest page.
    damping: Option<u64>,
    /// Spaces that have faulted since the last trimming. Kept for the damped variant alone.
    faulted: Vec<SpaceId>,
    /// Every reference is shown.
    is_exact: bool,
}

/// Makes a `working-set`.
pub fn build(settings: &Settings<'_>) -> Box<dyn Policy> {
    Box::new(WorkingSet::new(settings, &DESCRIPTION, None))
}

/// Makes a `dws`.
pub fn build_damped(settings: &Settings<'_>) -> Box<dyn Policy> {
    let age = u128::from(settings.knobs[0]) * u128::from(settings.knobs[2]) / 1000;
    let damping = Some(u64::try_from(age).unwrap_or(u64::MAX));
    Box::new(WorkingSet::new(settings, &DAMPED, damping))
}

impl Policy for WorkingSet {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let (space, now) = (arrival.space, self.clocks.now(arrival.space));
        self.note_use(frame, now);
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
        let now = self.clocks.now(space);
        let age = now.saturating_sub(self.stamps[frame.index()].used);
        if departure == Departure::Evicted && age <= self.damping.unwrap_or(self.window) {
            self.needs.note_taken(space, now);
        }
        self.sets.remove(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        let now = self.clocks.now(self.space_of(frame));
        self.note_use(frame, now);
        self.sets.move_to_back(frame);
    }

    fn page_referenced(&mut self, frame: FrameId) {
        self.is_exact = true;
        self.page_rescued(frame);
    }

    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.needs.forget(space);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // One round clears every bit, so that the second finds a page if any may leave.
        for _ in 0..=2 * u64::from(self.sets.resident()) {
            let frame = self.find_oldest(probe)?;
            if self.is_exact || !self.ask(frame, probe) {
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
            let now = self.clocks.now(space);
            while let Some(frame) = self.sets.front(space, PASSED_MAX, probe) {
                let waited = now.saturating_sub(self.stamps[frame.index()].asked);
                if self.is_exact {
                    if waited > self.window {
                        return Some(frame);
                    }
                    break;
                }
                if waited < self.part || looks == LOOKS_MAX {
                    break;
                }
                looks += 1;
                if !self.ask(frame, probe) && self.age(frame) > self.window {
                    return Some(frame);
                }
            }
        }
        None
    }

    fn demand(&self, space: SpaceId) -> Option<u32> {
        Some(self.sets.length(space) + self.needs.missing(space))
    }

    fn check(&self) {
        self.sets.check();
        for space in self.sets.spaces() {
            let now = self.clocks.now(space);
            assert!(self.sets.iter(space).all(|frame| {
                let stamp = self.stamps[frame.index()];
                stamp.used <= stamp.asked && stamp.asked <= now
            }));
        }
    }
}

impl WorkingSet {
    fn new(
        settings: &Settings<'_>,
        description: &'static Description,
        damping: Option<u64>,
    ) -> WorkingSet {
        let (window, parts) = (settings.knobs[0], settings.knobs[1]);
        WorkingSet {
            description,
            sets: Sets::new(0, settings.frames_max),
            clocks: Clocks::default(),
            needs: Needs::new(window),
            stamps: vec![Stamp::default(); settings.frames_max as usize],
            window,
            part: (window / parts).max(1),
            damping,
            faulted: Vec::new(),
            is_exact: false,
        }
    }

    /// Asks whether the page in `frame` was used, notes it, and puts it behind the others.
    fn ask(&mut self, frame: FrameId, probe: &mut Probe<'_>) -> bool {
        let now = self.clocks.now(self.space_of(frame));
        let is_used = probe.take_referenced(frame);
        let stamp = &mut self.stamps[frame.index()];
        stamp.asked = now;
        if is_used {
            stamp.used = now;
        }
        self.sets.move_to_back(frame);
        is_used
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
                if self.is_exact || !self.ask(frame, probe) {
                    return Some(frame);
                }
            }
        }
        None
    }

    /// The first page of a space that was asked about longest ago, of those that may leave.
    fn find_oldest(&self, probe: &Probe<'_>) -> Option<FrameId> {
        let firsts = self.sets.spaces().filter_map(|space| {
            let frame = self.sets.front(space, usize::MAX, probe)?;
            let now = self.clocks.now(space);
            let waited = now.saturating_sub(self.stamps[frame.index()].asked);
            Some((waited, u32::MAX - space.0, frame))
        });
        firsts.max().map(|(_, _, frame)| frame)
    }

    fn note_use(&mut self, frame: FrameId, now: u64) {
        self.stamps[frame.index()] = Stamp {
            used: now,
            asked: now,
        };
    }

    fn age(&self, frame: FrameId) -> u64 {
        let now = self.clocks.now(self.space_of(frame));
        now.saturating_sub(self.stamps[frame.index()].used)
    }

    fn space_of(&self, frame: FrameId) -> SpaceId {
        self.sets
            .space_of(frame)
            .expect("a frame with a page is in the set of a space")
    }
}
