//! VMS: a bounded set a process, first in, first out, over a common cache of what has left one.
//!
//! A process that faults with its set at its limit gives up the page it got first. That page stays
//! on the free list, or on the list of modified pages that are written when they have become many,
//! and comes back by a soft fault if it was wanted. The limit follows the rate of faults: after a
//! while of processor time it grows when that is high, up to a quota, and up to an extent as long
//! as there is much free; it shrinks when the rate is low, if that is asked for. When too little is
//! free, sets are trimmed: first what was borrowed above quotas, then all, down to the least.
//!
//! Sources: R. Turner and H. Levy, "Segmented FIFO page replacement", SIGMETRICS 1981; H. Levy and
//! P. Lipman, "Virtual memory management in the VAX/VMS operating system", Computer 15(3), 1982;
//! the system parameters of VMS, whose numbers are turned into shares of a memory of 8192 pages.
//! Left out: pages in the translation buffer are not skipped, no process waits for the writer, and
//! whole processes are swapped out by load control (`vms-swapper`).

use alloc::vec::Vec;

use crate::id::{FrameId, PageId, SpaceId};
use crate::policies::parts::local_sets::Local;
use crate::policies::parts::space_clocks::Clocks;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `vms`.
pub static DESCRIPTION: Description = Description {
    name: "vms",
    summary: "a bounded queue a process, and what leaves it is cached until its frame is needed",
    lineage: &[
        "Turner and Levy 1981 (segmented FIFO)",
        "Levy and Lipman 1982 (VAX/VMS)",
    ],
    sees: Sees::Faults,
    knobs: &KNOBS,
};

const fn permille(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    let (min, max) = (0, 1000);
    Knob {
        name,
        meaning,
        min,
        max,
        default,
    }
}

const fn count(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    let (min, max) = (0, 1 << 40);
    Knob {
        name,
        meaning,
        min,
        max,
        default,
    }
}

static KNOBS: [Knob; 15] = [
    permille("default", "a new set's limit, in thousandths of memory", 32),
    permille(
        "quota",
        "what a limit grows to, in thousandths of memory",
        64,
    ),
    permille(
        "extent",
        "and if much is free, in thousandths of memory",
        500,
    ),
    permille(
        "least",
        "what a set is trimmed to, in thousandths of memory",
        8,
    ),
    count(
        "span",
        "ticks of processor time (microseconds) between changes of a limit",
        200_000,
    ),
    count(
        "rate-high",
        "faults in ten seconds above which a limit grows",
        120,
    ),
    count(
        "rate-low",
        "faults in ten seconds below which a limit shrinks",
        0,
    ),
    permille(
        "grow",
        "by how much a limit grows, in thousandths of memory",
        18,
    ),
    permille(
        "shrink",
        "by how much a limit shrinks, in thousandths of memory",
        4,
    ),
    permille(
        "borrow",
        "free for limits above quota, in thousandths of memory",
        37,
    ),
    permille(
        "growth",
        "free for sets to grow above quota, in thousandths of memory",
        8,
    ),
    permille(
        "free-low",
        "free below which sets are trimmed, in thousandths of memory",
        4,
    ),
    permille(
        "free-goal",
        "free at which trimming ends, in thousandths of memory",
        24,
    ),
    permille(
        "modified-high",
        "modified pages that start the writer, in thousandths",
        61,
    ),
    permille(
        "modified-low",
        "modified pages that stop the writer, in thousandths",
        15,
    ),
];

/// Rates are in faults for this many ticks.
const RATE_TICKS: u64 = 10_000_000;

/// The values of the knobs; sizes in thousandths of memory.
struct Rules {
    default: u64,
    quota: u64,
    extent: u64,
    least: u64,
    span: u64,
    rate_high: u64,
    rate_low: u64,
    grow: u64,
    shrink: u64,
    borrow: u64,
    growth: u64,
    free_low: u64,
    free_goal: u64,
    modified_high: u64,
    modified_low: u64,
}

/// The state kept for a process.
#[derive(Clone, Copy, Default)]
struct Process {
    /// The most pages of its set; 0 before its first.
    limit: u32,
    /// The time at which the limit was last looked at, in its own time.
    began: u64,
    /// Faults since then, soft ones included.
    faults: u64,
    /// A page was added since the set was last looked at.
    has_grown: bool,
}

impl Process {
    fn note_fault(&mut self) {
        self.faults += 1;
        self.has_grown = true;
    }
}

struct Vms {
    local: Local,
    clocks: Clocks,
    processes: Vec<Process>,
    rules: Rules,
}

/// Makes a `vms`.
pub fn build(settings: Settings) -> impl Policy {
    let knobs = settings.knobs.first_chunk::<{ KNOBS.len() }>();
    let knobs = knobs.expect("as many as described");
    let &[default, quota, extent, least, span, rate_high, rate_low, ..] = knobs;
    let &[
        ..,
        grow,
        shrink,
        borrow,
        growth,
        free_low,
        free_goal,
        modified_high,
        modified_low,
    ] = knobs;
    Vms {
        local: Local::new(settings.frames_max, settings.frames),
        clocks: Clocks::default(),
        processes: Vec::new(),
        rules: Rules {
            default,
            quota,
            extent,
            least,
            span,
            rate_high,
            rate_low,
            grow,
            shrink,
            borrow,
            growth,
            free_low,
            free_goal,
            modified_high,
            modified_low,
        },
    }
}

impl Policy for Vms {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        if self.local.enter(frame, arrival) {
            self.process(arrival.space).note_fault();
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.local.sets.remove(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        if self.local.rescue(frame) {
            let owner = self.local.owner(frame);
            self.process(owner).note_fault();
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.local.judge(probe);
        self.local.choose(probe).or_else(|| {
            let spaces = self.local.sets.collect_largest_first();
            let mut spaces = spaces.into_iter();
            spaces.find_map(|space| self.local.sets.front(space, usize::MAX, probe))
        })
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.local.judge(probe);
        for space in self.local.sets.spaces() {
            self.adjust(space);
            let limit = self.bound(space);
            self.shrink(space, limit, u32::MAX, probe);
        }
        None
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let high = self.local.share(self.rules.modified_high);
        let low = self.local.share(self.rules.modified_low);
        self.local.clean(high, low, probe)
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        self.local.judge(probe);
        if self.local.free() >= self.local.share(self.rules.free_low) {
            return;
        }
        let goal = self.local.share(self.rules.free_goal);
        for bound in [self.rules.quota, self.rules.least] {
            let bound = self.local.share(bound).max(1);
            for space in self.local.sets.collect_largest_first() {
                // What is removed counts as held until it has been judged.
                let coming = self.local.free() + self.local.removed();
                self.shrink(space, bound, goal.saturating_sub(coming), probe);
                let process = self.process(space);
                process.limit = process.limit.min(bound);
            }
            if self.local.free() + self.local.removed() >= goal {
                return;
            }
        }
    }

    fn resize(&mut self, frames: u32) {
        self.local.resize(frames);
    }

    fn check(&self) {
        self.local.check();
    }
}

impl SimulatedPolicy for Vms {}

impl SpacePolicy for Vms {
    #[inline]
    fn clock_moved(&mut self, space: SpaceId, ticks: u64) {
        self.clocks.set(space, ticks);
    }

    fn space_ended(&mut self, space: SpaceId) {
        if let Some(process) = self.processes.get_mut(space.0 as usize) {
            *process = Process::default();
        }
    }

    fn frames_spare(&self) -> u32 {
        self.local.spare()
    }
}

impl Vms {
    /// Changes the limit of `space` if it has run for long enough since it was last looked at.
    fn adjust(&mut self, space: SpaceId) {
        let now = self.clocks.now(space);
        let Process {
            limit,
            began,
            faults,
            has_grown,
        } = *self.process(space);
        let ticks = now.saturating_sub(began);
        if ticks < self.rules.span.max(1) {
            return;
        }
        let rate = faults.saturating_mul(RATE_TICKS) / ticks;
        let size = |permille| self.local.share(permille).max(1);
        let limit = if rate > self.rules.rate_high {
            let has_room = self.local.free() > size(self.rules.borrow);
            let most = if has_room {
                self.rules.extent.max(self.rules.quota)
            } else {
                self.rules.quota
            };
            (limit + size(self.rules.grow)).min(size(most)).max(limit)
        } else if rate < self.rules.rate_low {
            let least = size(self.rules.least).min(limit);
            limit.saturating_sub(size(self.rules.shrink)).max(least)
        } else {
            limit
        };
        *self.process(space) = Process {
            limit,
            began: now,
            faults: 0,
            has_grown,
        };
    }

    /// The number of pages that the set of `space` may have: as many as its limit says, but one
    /// that came above the quota when little is free takes the place of another.
    fn bound(&mut self, space: SpaceId) -> u32 {
        let length = self.local.sets.length(space);
        let quota = self.local.share(self.rules.quota);
        let is_short = self.local.free() <= self.local.share(self.rules.growth);
        let process = self.process(space);
        let has_grown = core::mem::take(&mut process.has_grown);
        if has_grown && is_short && length > quota {
            process.limit.min(length - 1).max(1)
        } else {
            process.limit
        }
    }

    /// Removes the oldest pages of `space`, at most `most`, until it has no more than `limit`.
    fn shrink(&mut self, space: SpaceId, limit: u32, most: u32, probe: &mut Probe<'_>) {
        let over = self.local.sets.length(space).saturating_sub(limit);
        for _ in 0..over.min(most) {
            let Some(frame) = self.local.sets.front(space, usize::MAX, probe) else {
                return;
            };
            self.local.remove(frame, probe);
        }
    }

    fn process(&mut self, space: SpaceId) -> &mut Process {
        let place = space.0 as usize;
        if place >= self.processes.len() {
            self.processes.resize(place + 1, Process::default());
        }
        let first = self.local.share(self.rules.default).max(1);
        let began = self.clocks.now(space);
        let process = &mut self.processes[place];
        if process.limit == 0 {
            *process = Process {
                limit: first,
                began,
                ..Process::default()
            };
        }
        process
    }
}
