//! Working sets: only programs whose memory fits run, and the others wait their turn.
//!
//! While programs that run wait longer for pages than they use a processor, some are stopped: those
//! that came last, until what the others need fits in memory. That they wait for a processor says
//! nothing: with more of them than processors they do so most of the time. Nobody is stopped while
//! not even one waits for pages at a time: programs that sleep, and fetch a few pages in between,
//! wait longer for these than they run, and hold nobody up. One that waits runs again, first in
//! first out, when what it needs fits beside what those need that run; and when one of these has
//! had its time slice, in its place. A slice is of processor time, and longer for one that has more
//! pages to be brought in and out; a fourth of the time that passes counts at least. It begins when
//! the program is resumed, or when the first other has to wait. One that waits does so for as long
//! as a slice of its own before it takes another's place: to be brought out and in costs as much.
//!
//! While programs that do nothing have memory to give, nobody is stopped whose needs fit: it is on
//! its way.
//!
//! Programs that do not wait for pages are not stopped for lack of memory, and idle or small ones
//! never: others may wait for what they do. What a program needs is told by the policy, where it
//! measures that, or else by what it has and what it had to fetch within the last second.
//!
//! # Invariants
//! 1. A program waits no longer than four times the longest slice of any, for each that waits
//!    before it and for itself, and a tick.
//!
//! Sources: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968, for
//! admission; P. J. Denning, K. C. Kahn, J. Leroudier, D. Potier and R. Suri, "Optimal
//! multiprogramming", Acta Informatica 7, 1976, for paging that takes half of the time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::history::{Doings, History, WINDOW_NS};
use crate::id::SpaceId;
use crate::seams::description::Knob;
use crate::seams::load_control::{Description, LoadControl, LoadView, SpaceLoad, Verdict};
use crate::time::Time;

/// The description of `working-set`.
pub static DESCRIPTION: Description = Description {
    name: "working-set",
    summary: "runs programs while what they need fits, the others wait their turn out of memory",
    lineage: &["Denning 1968", "Denning et al. 1976 (half of the time)"],
    knobs: &[
        Knob {
            name: "slice-ms",
            meaning: "milliseconds of processor time that a program may use while another waits",
            min: 1,
            max: 1_000_000,
            default: 1000,
        },
        Knob {
            name: "slice-us-page",
            meaning: "microseconds more for each page that it needs",
            min: 0,
            max: 1_000_000,
            default: 100,
        },
        Knob {
            name: "waits",
            meaning: "hundredths of the time run or waited for pages above which some stop",
            min: 1,
            max: 100,
            default: 50,
        },
        Knob {
            name: "settle-ms",
            meaning: "milliseconds after a change in which nobody stops for lack of memory",
            min: 0,
            max: 1_000_000,
            default: 200,
        },
    ],
    is_live: true,
};

const MS_NS: u64 = 1_000_000;
const US_NS: u64 = 1000;
/// The time over which it is measured how much programs wait.
const WAIT_NS: u64 = 200 * MS_NS;
/// A program that waits for less than this, in hundredths, gains nothing by another's memory.
const WAITS_LITTLE: u64 = 10;
/// The time that a change takes to show, for each page that is moved by it.
const MOVE_NS: u64 = 20 * US_NS;
/// While programs that do nothing have more than this part of memory, others can have it.
const IDLE_PART: u64 = 8;
/// A program that needs less than this part of memory is not worth stopping.
const SMALL_PART: u32 = 64;

struct Program {
    space: SpaceId,
    /// The time at which it came, was last resumed, or others began to wait.
    since: Time,
    /// The processor time that it had used by then.
    ran_ns: u64,
    /// The frames that it needed when that was last known.
    known: u32,
    /// It has not run for long enough to show that.
    is_guess: bool,
    history: History,
}

struct Waiting {
    space: SpaceId,
    since: Time,
    demand: u32,
    /// It was stopped before it had run for long enough to show what it needs.
    is_guess: bool,
}

struct WorkingSet {
    slice_ns: u64,
    slice_page_ns: u64,
    waits: u64,
    settle_ns: u64,
    settled_at: Time,
    /// Those that run, in the order in which they came or were resumed.
    running: Vec<Program>,
    /// Those that wait, the longest first.
    waiting: VecDeque<Waiting>,
}

/// Makes a `working-set`.
pub fn build(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(WorkingSet {
        slice_ns: knobs[0] * MS_NS,
        slice_page_ns: knobs[1] * US_NS,
        waits: knobs[2],
        settle_ns: knobs[3] * MS_NS,
        settled_at: Time(0),
        running: Vec::new(),
        waiting: VecDeque::new(),
    })
}

impl LoadControl for WorkingSet {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.meet(view);
        if view.now >= self.settled_at && self.is_short(view) {
            return self.stop_excess(view, verdicts);
        }
        while self.fits_next(view) {
            self.resume(view, verdicts);
        }
        self.take_turns(view, verdicts);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.running.retain(|program| program.space != space);
        self.waiting.retain(|waiting| waiting.space != space);
    }
}

impl WorkingSet {
    /// Takes note of spaces that are new, and of what those that run do.
    fn meet(&mut self, view: &LoadView<'_>) {
        for load in view.spaces {
            let is_waiting = self.waiting.iter().any(|it| it.space == load.space);
            if !is_waiting && !self.running.iter().any(|it| it.space == load.space) {
                self.running.push(Program::new(load.space, view, 0));
            }
        }
        for program in &mut self.running {
            if let Some(load) = load_of(view, program.space) {
                program.history.note(view.now, load);
                program.is_guess &= !program.history.is_whole();
            }
        }
    }

    /// Returns true if those that run, and are several, wait for pages longer than they run, and on
    /// the average at least one does so at a time.
    fn is_short(&self, view: &LoadView<'_>) -> bool {
        let actives = self.running.iter().filter(|it| it.is_eligible(view));
        let doings: Vec<Doings> = actives.filter_map(Program::doings).collect();
        let sum: u64 = doings.iter().map(Doings::waited_percent).sum();
        // Of several threads of a program that wait at a time, one counts.
        let waiting = doings.iter().map(|it| it.waited_ns.min(it.span_ns));
        let span_ns = doings.iter().map(|it| it.span_ns).max().unwrap_or(0);
        doings.len() > 1
            && sum > self.waits * doings.len() as u64
            && waiting.sum::<u64>() >= span_ns
    }

    /// Stops those that came last until what the others need fits; if it seems to fit, the last.
    fn stop_excess(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let frames = u64::from(view.frames);
        let mut needed = 0;
        // The first that is worth stopping runs on, or nobody might.
        let mut is_one_kept = false;
        let mut excess: Vec<usize> = Vec::new();
        let mut last = None;
        for (place, program) in self.running.iter().enumerate() {
            if !program.is_active(view) {
                continue;
            }
            let demand = u64::from(program.demand(view));
            let may_stop = is_one_kept && program.waits() && !program.is_small(view);
            if may_stop {
                last = Some(place);
            }
            if may_stop && needed + demand > frames {
                excess.push(place);
                continue;
            }
            needed += demand;
            is_one_kept |= !program.is_small(view);
        }
        if excess.is_empty() && idle_frames(view) > frames / IDLE_PART {
            // What they need is there, and on its way to them.
            return;
        }
        // They seemed to fit, and do not: the last needs more than it has shown.
        let mut least = 0;
        if let (true, Some(place)) = (excess.is_empty(), last) {
            let others = needed - u64::from(self.running[place].demand(view));
            least = frames.saturating_sub(others) as u32 + 1;
            excess.push(place);
        }
        let is_first = self.waiting.is_empty();
        // Who came first is the first to come back, before those that have had a turn.
        for &place in excess.iter().rev() {
            let mut stopped = self.stop(view, place, verdicts);
            stopped.demand = stopped.demand.max(least).min(view.frames);
            self.waiting.push_front(stopped);
        }
        for program in &mut self.running {
            program.measure_anew(view);
            if is_first && program.is_active(view) {
                program.begin_slice(view);
            }
        }
    }

    /// Returns true if the next one that waits can run beside those that do.
    fn fits_next(&self, view: &LoadView<'_>) -> bool {
        let Some(next) = self.waiting.front() else {
            return false;
        };
        let needed = self.needed(view);
        needed == 0 || needed + self.expected(next, view) <= u64::from(view.frames)
    }

    /// The frames that one needs that waits: if that is a guess, as many as those that run need on
    /// the average, or it would be let in to be stopped again.
    fn expected(&self, next: &Waiting, view: &LoadView<'_>) -> u64 {
        let demand = u64::from(next.demand);
        let running = self.running.iter().filter(|it| !it.is_small(view));
        let (sum, count) = running.fold((0, 0), |(sum, count), it| {
            (sum + u64::from(it.demand(view)), count + 1)
        });
        match next.is_guess && count > 0 {
            true => demand.max(sum / count),
            false => demand,
        }
    }

    /// Puts the next one that waits in the place of those that have had their slices, the longest
    /// first, if there is room for it then, or nothing more to be had.
    fn take_turns(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let Some(next) = self.waiting.front() else {
            return;
        };
        let mut needed = self.needed(view) + self.expected(next, view);
        let eligible = self.running.iter().enumerate();
        let eligible = eligible.filter(|(_, it)| it.is_eligible(view));
        let eligible: Vec<(usize, &Program)> = eligible.collect();
        let has_waited = view.now.since_ns(next.since) >= self.slice_ns_for(next.demand);
        if !has_waited && !eligible.is_empty() {
            return;
        }
        let mut leaving = Vec::new();
        for &(place, program) in &eligible {
            if needed <= u64::from(view.frames) {
                break;
            }
            if program.ran_ns(view) >= self.slice_ns_for(program.demand(view)) {
                leaving.push(place);
                needed -= u64::from(program.demand(view));
            }
        }
        if needed > u64::from(view.frames) && leaving.len() < eligible.len() {
            return;
        }
        let stopped = leaving.iter().rev();
        let stopped: Vec<Waiting> = stopped
            .map(|&place| self.stop(view, place, verdicts))
            .collect();
        self.resume(view, verdicts);
        self.waiting.extend(stopped.into_iter().rev());
    }

    fn slice_ns_for(&self, demand: u32) -> u64 {
        self.slice_ns + u64::from(demand) * self.slice_page_ns
    }

    /// The frames needed by the active ones of those that run.
    fn needed(&self, view: &LoadView<'_>) -> u64 {
        let actives = self.running.iter().filter(|it| it.is_active(view));
        actives.map(|it| u64::from(it.demand(view))).sum()
    }

    fn stop(&mut self, view: &LoadView<'_>, place: usize, verdicts: &mut Vec<Verdict>) -> Waiting {
        let program = self.running.remove(place);
        let (space, demand) = (program.space, program.demand(view));
        let is_guess = program.is_guess;
        let resident = load_of(view, space).map_or(0, |load| load.resident);
        self.settle(view, resident);
        verdicts.push(Verdict::SwapOut(space));
        Waiting {
            space,
            since: view.now,
            demand,
            is_guess,
        }
    }

    fn resume(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let next = self.waiting.pop_front().expect("one waits");
        self.running.push(Program {
            is_guess: next.is_guess,
            ..Program::new(next.space, view, next.demand)
        });
        self.settle(view, next.demand);
        verdicts.push(Verdict::Resume(next.space));
    }

    /// Leaves time for `pages` to be moved before what follows is judged.
    fn settle(&mut self, view: &LoadView<'_>, pages: u32) {
        let from = self.settled_at.max(view.now.after_ns(self.settle_ns));
        self.settled_at = from.after_ns(u64::from(pages) * MOVE_NS);
    }
}

/// The frames of programs that do nothing.
fn idle_frames(view: &LoadView<'_>) -> u64 {
    let idle = view.spaces.iter().filter(|load| !load.turn.is_active);
    let idle = idle.filter(|load| !load.is_suspended);
    idle.map(|load| u64::from(load.resident)).sum()
}

impl Program {
    fn new(space: SpaceId, view: &LoadView<'_>, known: u32) -> Program {
        let mut program = Program {
            space,
            since: view.now,
            ran_ns: 0,
            known,
            is_guess: true,
            history: History::default(),
        };
        program.begin_slice(view);
        program
    }

    /// Forgets what was measured while others were there, but for what it needs.
    fn measure_anew(&mut self, view: &LoadView<'_>) {
        self.known = self.demand(view);
        self.history = History::default();
    }

    /// Begins its slice: before, nobody has waited for its place.
    fn begin_slice(&mut self, view: &LoadView<'_>) {
        self.since = view.now;
        self.ran_ns = load_of(view, self.space).map_or(0, |load| load.turn.ran_ns);
    }

    /// The frames it needs: no less than was known before, until it has been measured for long
    /// enough.
    fn demand(&self, view: &LoadView<'_>) -> u32 {
        let Some(load) = load_of(view, self.space) else {
            return self.known;
        };
        let demand = load.demand.unwrap_or(self.history.demand(load.resident));
        match self.history.is_whole() {
            true => demand.min(view.frames),
            false => demand.max(self.known).min(view.frames),
        }
    }

    /// Returns true if its program does something, or has had no time for that yet.
    fn is_active(&self, view: &LoadView<'_>) -> bool {
        let is_new = view.now.since_ns(self.since) < WINDOW_NS;
        is_new || load_of(view, self.space).is_some_and(|load| load.turn.is_active)
    }

    /// Returns true if it does something, and needs enough to be worth stopping.
    fn is_eligible(&self, view: &LoadView<'_>) -> bool {
        self.is_active(view) && !self.is_small(view)
    }

    /// The time for which it has used a processor in its slice, or a fourth of all if that is more.
    fn ran_ns(&self, view: &LoadView<'_>) -> u64 {
        let passed = view.now.since_ns(self.since);
        let now = load_of(view, self.space).map_or(0, |load| load.turn.ran_ns);
        now.saturating_sub(self.ran_ns).clamp(passed / 4, passed)
    }

    fn doings(&self) -> Option<Doings> {
        self.history.doings(WAIT_NS)
    }

    fn waits(&self) -> bool {
        let percent = self.doings().map(|it| it.waited_percent());
        percent.is_some_and(|it| it >= WAITS_LITTLE)
    }

    fn is_small(&self, view: &LoadView<'_>) -> bool {
        self.demand(view) < view.frames / SMALL_PART
    }
}

fn load_of<'a>(view: &LoadView<'a>, space: SpaceId) -> Option<&'a SpaceLoad> {
    view.spaces.iter().find(|load| load.space == space)
}
