//! Working sets: only programs whose memory fits run, and the others wait their turn.
//!
//! While programs that run wait longer for pages than they use a processor, some are stopped: those
//! that came last, until what the others need fits in memory. Waiting for a processor does not
//! count: with more programs than processors they do so most of the time. No program is stopped
//! while fewer than one on average waits for pages: programs that sleep, and fetch a few pages in
//! between, wait longer for these than they run, and hold up no other program. One that waits runs
//! again, first in first out, when what it needs fits beside what those need that run; and when one
//! of these has had its time slice, in its place. A slice is of processor time, and longer for one
//! that has more pages to be brought in and out; a fourth of the time that passes counts at least.
//! It begins when the program is resumed, or when the first other has to wait. One that waits does
//! so for as long as a slice of its own before it takes another's place: to be brought out and in
//! costs as much.
//!
//! A program that comes to need more than little while others wait, waits behind them: it would
//! take the memory of those whose turn it is, and be stopped when it has more to be brought out.
//! If it has run for less than a second, what it needs has not shown: it is let in when there is
//! room for as much as those need that run, on the average, or as those have needed that have
//! ended.
//!
//! While idle programs have memory to give, no program whose needs fit is stopped: that memory is
//! on its way.
//!
//! Processors can be busy with paging, so that programs wait for processors more than for pages. So
//! some are also stopped while every processor is busy, for a fifth of the time or more with
//! paging, if those that fit are enough to keep all of them busy.
//!
//! Programs that do not wait for pages are not stopped for lack of memory, and idle or small ones
//! never: others may wait for what they do. The policy reports a program's need, where it measures
//! that; otherwise the need is what the program has and what it fetched within the last second.
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
            default: 300,
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
            meaning: "milliseconds after a change in which no task stops for lack of memory",
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
/// Processors are busy that are used for this many hundredths of the time.
const BUSY: u64 = 85;
/// Busy processors page much if this many hundredths of their time are paging.
const PAGES_MUCH: u64 = 20;
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
    /// True if the program has not run for long enough to show its need: `known` is a guess.
    is_guess: bool,
    /// The most frames that it was seen to need, if that is more than little: 0 until then.
    peak: u32,
    history: History,
}

struct Waiting {
    space: SpaceId,
    since: Time,
    demand: u32,
    /// True if the program was stopped before it had run for long enough to show its need.
    is_guess: bool,
    peak: u32,
}

/// The programs to be stopped so that the others fit, by their places among those that run.
#[derive(Default)]
struct Excess {
    places: Vec<usize>,
    /// The last that may be stopped, whether it is among these or not.
    last: Option<usize>,
    /// The frames that the others need.
    needed: u64,
    /// The number of programs that run on and are not small.
    kept: u32,
}

impl Excess {
    /// The programs that are not small and run on.
    fn fit(&self) -> u32 {
        // Where all seem to fit, the last is stopped.
        self.kept - u32::from(self.places.is_empty() && self.last.is_some())
    }
}

struct WorkingSet {
    slice_ns: u64,
    slice_page_ns: u64,
    waits: u64,
    settle_ns: u64,
    settled_at: Time,
    /// The programs that run, in the order in which they came or were resumed.
    running: Vec<Program>,
    /// The programs that wait, the longest first.
    waiting: VecDeque<Waiting>,
    /// The frames that programs needed at the most that have ended: a mean in which each counts a
    /// fourth of what is left by those after it.
    typical: u32,
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
        typical: 0,
    })
}

impl LoadControl for WorkingSet {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.meet(view);
        self.hold_newcomers(view, verdicts);
        if view.now >= self.settled_at && self.is_short(view) {
            return self.stop_excess(view, verdicts);
        }
        while self.fits_next(view) {
            self.resume(view, verdicts);
        }
        self.take_turns(view, verdicts);
    }

    fn space_ended(&mut self, space: SpaceId) {
        let ran = self.running.iter().map(|it| (it.space, it.peak));
        let waited = self.waiting.iter().map(|it| (it.space, it.peak));
        let ended = ran.chain(waited).find(|&(it, _)| it == space);
        match (ended, self.typical) {
            (None | Some((_, 0)), _) => {}
            (Some((_, peak)), 0) => self.typical = peak,
            (Some((_, peak)), typical) => self.typical = typical - typical / 4 + peak / 4,
        }
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

    /// Has programs wait that need more than little for the first time while others wait.
    fn hold_newcomers(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let is_held = !self.waiting.is_empty();
        let mut place = 0;
        while let Some(program) = self.running.get_mut(place) {
            let demand = program.demand(view);
            let is_new = program.peak == 0;
            place += 1;
            if program.is_small(view) {
                continue;
            }
            program.peak = program.peak.max(demand);
            if is_held && is_new && program.is_active(view) {
                place -= 1;
                let stopped = self.stop(view, place, verdicts);
                self.waiting.push_back(stopped);
            }
        }
    }

    /// Returns true if fewer of those that run would do more: they are several, and wait for
    /// pages too much or have processors spend too much on them.
    fn is_short(&self, view: &LoadView<'_>) -> bool {
        let actives = self.running.iter().filter(|it| it.is_eligible(view));
        let doings: Vec<Doings> = actives.filter_map(Program::doings).collect();
        doings.len() > 1 && (self.waits_much(&doings) || self.pages_much(view, &doings))
    }

    /// Returns true if programs wait for pages longer than they run, and on the average at least
    /// one does so at a time.
    fn waits_much(&self, doings: &[Doings]) -> bool {
        let sum: u64 = doings.iter().map(Doings::waited_percent).sum();
        // Of several threads of a program that wait at a time, one counts.
        let waiting = doings.iter().map(|it| it.waited_ns.min(it.span_ns));
        let span_ns = doings.iter().map(|it| it.span_ns).max().unwrap_or(0);
        sum > self.waits * doings.len() as u64 && waiting.sum::<u64>() >= span_ns
    }

    /// Returns true if every processor is busy, much of the time with paging, and those that fit
    /// would keep each of them busy, too.
    fn pages_much(&self, view: &LoadView<'_>, doings: &[Doings]) -> bool {
        let span_ns = doings.iter().map(|it| it.span_ns).max().unwrap_or(0);
        let there_is = u64::from(view.processors) * span_ns;
        let paged: u64 = doings.iter().map(|it| it.paged_ns).sum();
        let used: u64 = paged + doings.iter().map(|it| it.ran_ns).sum::<u64>();
        used * 100 >= there_is * BUSY
            && paged * 100 >= used * PAGES_MUCH
            && self.choose_excess(view).fit() >= view.processors
    }

    /// Chooses those that came last until what the others need fits.
    fn choose_excess(&self, view: &LoadView<'_>) -> Excess {
        let frames = u64::from(view.frames);
        // The first that is worth stopping runs on, or no program might.
        let mut is_one_kept = false;
        let mut found = Excess::default();
        for (place, program) in self.running.iter().enumerate() {
            if !program.is_active(view) {
                continue;
            }
            let demand = u64::from(program.demand(view));
            let may_stop = is_one_kept && program.waits() && !program.is_small(view);
            if may_stop {
                found.last = Some(place);
            }
            if may_stop && found.needed + demand > frames {
                found.places.push(place);
                continue;
            }
            found.needed += demand;
            found.kept += u32::from(!program.is_small(view));
            is_one_kept |= !program.is_small(view);
        }
        found
    }

    /// Stops those that came last until what the others need fits; if it seems to fit, the last.
    fn stop_excess(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let frames = u64::from(view.frames);
        let Excess {
            mut places,
            needed,
            last,
            ..
        } = self.choose_excess(view);
        if places.is_empty() && idle_frames(view) > frames / IDLE_PART {
            // What they need is there, and on its way to them.
            return;
        }
        // They seemed to fit, and do not: the last needs more than it has shown.
        let mut least = 0;
        if let (true, Some(place)) = (places.is_empty(), last) {
            let others = needed - u64::from(self.running[place].demand(view));
            least = frames.saturating_sub(others) as u32 + 1;
            places.push(place);
        }
        let is_first = self.waiting.is_empty();
        // Who came first is the first to come back, before those that have had a turn.
        for &place in places.iter().rev() {
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
    /// the average, and no less than those that have ended, or it would be let in to be stopped
    /// again.
    fn expected(&self, next: &Waiting, view: &LoadView<'_>) -> u64 {
        let demand = u64::from(next.demand);
        let running = self.running.iter().filter(|it| !it.is_small(view));
        let (sum, count) = running.fold((0, 0), |(sum, count), it| {
            (sum + u64::from(it.demand(view)), count + 1)
        });
        match next.is_guess {
            true => demand.max(sum / count.max(1)).max(self.typical.into()),
            false => demand,
        }
        .min(view.frames.into())
    }

    /// Puts the next one that waits in the place of those that have had their slices, the longest
    /// first, if there is room for it then, or no more memory will come.
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
        let (is_guess, peak) = (program.is_guess, program.peak);
        let resident = load_of(view, space).map_or(0, |load| load.resident);
        self.settle(view, resident);
        verdicts.push(Verdict::SwapOut(space));
        Waiting {
            space,
            since: view.now,
            demand,
            is_guess,
            peak,
        }
    }

    fn resume(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let next = self.waiting.pop_front().expect("one waits");
        let known = self.expected(&next, view) as u32;
        self.running.push(Program {
            is_guess: next.is_guess,
            peak: next.peak,
            ..Program::new(next.space, view, known)
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
            peak: 0,
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

    /// Begins its slice: until now no program has waited for its place.
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
