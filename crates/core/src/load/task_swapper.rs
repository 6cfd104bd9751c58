//! The task swapper of OSF's Mach: programs are stopped whole when paging alone no longer helps.
//!
//! Once a second it averages the free frames and the rate of page-out, over a short and a long
//! time. What is much is learnt: a share of the greatest short average ever seen. While too much is
//! written and too little free, the largest space is stopped; when there is room, or little is
//! written, the one that has been out longest runs again. As one that waits sends another out even
//! when paging alone would not, no program starves, as long as enough of them are active for one to
//! be stopped.
//!
//! Source: OSF Mach MK6/MK7, `kern/task_swap.c`. Page-outs are counted in requests, as there:
//! thresholds move with the size of clusters, and the greatest average never falls. The limit on
//! frames given a second, which is infinite there, is left out.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::SpaceId;
use crate::seams::description::Knob;
use crate::seams::load_control::{Description, LoadControl, LoadView, SpaceLoad, Verdict};
use crate::time::Time;

/// The description of `task-swapper`.
pub static DESCRIPTION: Description = Description {
    name: "task-swapper",
    summary: "stops the largest program while much is written, resumes them in order",
    lineage: &["OSF Mach MK6, 1995 (kern/task_swap.c)"],
    knobs: &[
        Knob {
            name: "start",
            meaning: "page-out rate that stops programs, in hundredths of the greatest seen",
            min: 1,
            max: 100,
            default: 30,
        },
        Knob {
            name: "stop",
            meaning: "page-out rate that lets them run, in hundredths of the greatest seen",
            min: 0,
            max: 100,
            default: 10,
        },
        Knob {
            name: "active-min",
            meaning: "active programs below which none is stopped",
            min: 1,
            max: 1000,
            default: 4,
        },
    ],
    is_live: true,
};

/// Averages are kept in this fraction.
const SCALE: u64 = 1024;
const SHORT: u64 = 5;
const LONG: u64 = 30;
const SECOND_NS: u64 = 1_000_000_000;
/// The rate that rates start from, and the greatest seen so far, a second.
const RATE_FIRST: u64 = 10;
/// The time for which a space is left alone after it was made or resumed.
const RESIDENT_MIN_NS: u64 = 6 * SECOND_NS;
/// The least time for which a space is out.
const OUT_MIN_NS: u64 = SECOND_NS;
/// The swapper wakes no more often than that while too much is written.
const WAKE_NS: u64 = 2 * SECOND_NS;
const ROUNDS_MAX: u32 = 3;

struct Task {
    space: SpaceId,
    since: Time,
    /// Resident pages when it was stopped.
    resident: u32,
    /// The number of times it has been stopped.
    times_out: u32,
}

struct TaskSwapper {
    start_percent: u64,
    stop_percent: u64,
    active_min: usize,
    last_tick: Option<Time>,
    last_wake: Option<Time>,
    /// The time at which the swapper looks again by itself.
    alarm: Option<Time>,
    page_outs: u64,
    free: u64,
    short: u64,
    long: u64,
    peak: u64,
    /// Every space that runs, in the order of their numbers.
    tasks: Vec<Task>,
    /// The tasks that are swapped out, the longest first.
    out: VecDeque<Task>,
}

/// Makes a `task-swapper`.
pub fn build(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(TaskSwapper {
        start_percent: knobs[0],
        stop_percent: knobs[1],
        active_min: knobs[2] as usize,
        last_tick: None,
        last_wake: None,
        alarm: None,
        page_outs: 0,
        free: 0,
        short: RATE_FIRST * SCALE,
        long: RATE_FIRST * SCALE,
        peak: RATE_FIRST * SCALE,
        tasks: Vec::new(),
        out: VecDeque::new(),
    })
}

impl LoadControl for TaskSwapper {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.meet(view);
        if !self.measure(view) {
            return;
        }
        let is_short_of_frames = self.free / SCALE <= u64::from(view.frames_target);
        let is_kicked = if is_short_of_frames {
            let is_rested = |last| view.now.since_ns(last) >= WAKE_NS;
            let is_writing = self.long > self.stop() && self.short > self.start();
            is_writing && self.last_wake.is_none_or(is_rested)
        } else {
            !self.out.is_empty()
        };
        if is_kicked || self.alarm.is_some_and(|alarm| view.now >= alarm) {
            self.last_wake = Some(view.now);
            self.swap(view, verdicts);
            let is_start = self.short > self.start();
            self.alarm = match (is_start, self.out.is_empty()) {
                (true, _) => Some(view.now.after_ns(WAKE_NS)),
                (false, false) => Some(view.now.after_ns(OUT_MIN_NS)),
                (false, true) => None,
            };
        }
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.tasks.retain(|task| task.space != space);
        self.out.retain(|task| task.space != space);
    }
}

impl TaskSwapper {
    fn start(&self) -> u64 {
        self.peak * self.start_percent / 100
    }

    fn stop(&self) -> u64 {
        self.peak * self.stop_percent / 100
    }

    /// Takes note of spaces that are new.
    fn meet(&mut self, view: &LoadView<'_>) {
        for load in view.spaces {
            let is_known = |task: &Task| task.space == load.space;
            if !self.tasks.iter().any(is_known) && !self.out.iter().any(is_known) {
                self.tasks.push(Task {
                    space: load.space,
                    since: view.now,
                    resident: 0,
                    times_out: 0,
                });
            }
        }
    }

    /// Brings the averages up to date, once for each second that has passed. Answers whether one
    /// had.
    fn measure(&mut self, view: &LoadView<'_>) -> bool {
        let free = u64::from(view.frames_free) * SCALE;
        let Some(last) = self.last_tick else {
            self.last_tick = Some(view.now);
            self.free = free;
            self.page_outs = view.page_out_requests;
            return false;
        };
        let seconds = view.now.since_ns(last) / SECOND_NS;
        if seconds == 0 {
            return false;
        }
        self.last_tick = Some(last.after_ns(seconds * SECOND_NS));
        let rate = (view.page_out_requests - self.page_outs) * SCALE / seconds;
        self.page_outs = view.page_out_requests;
        let follow = |average: u64, span: u64, value: u64| ((span - 1) * average + value) / span;
        // After this many seconds earlier values no longer count.
        for _ in 0..seconds.min(16 * LONG) {
            self.free = follow(self.free, SHORT, free);
            self.short = follow(self.short, SHORT, rate);
            self.long = follow(self.long, LONG, rate);
            self.peak = self.peak.max(self.short);
        }
        true
    }

    /// The swapper's body: a few times round, each with at most one space out and one in.
    fn swap(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        let target = u64::from(view.frames_target);
        let (is_start, is_stop) = (self.short > self.start(), self.short < self.stop());
        let mut free = self.free / SCALE;
        for _ in 0..ROUNDS_MAX {
            let has_waited = |task: &Task| view.now.since_ns(task.since) >= OUT_MIN_NS;
            let is_waiting = self.out.front().is_some_and(has_waited);
            let is_tight = is_start || (!is_stop && is_waiting && free < target);
            if is_tight && let Some(task) = self.pick_out(view) {
                free += expected_frames(&task);
                verdicts.push(Verdict::Suspend(task.space));
                self.out.push_back(task);
            }
            if is_waiting && (free >= target || is_stop) {
                let task = self.out.pop_front().expect("it waits");
                free = free.saturating_sub(expected_frames(&task));
                verdicts.push(Verdict::Resume(task.space));
                let since = view.now;
                self.tasks.push(Task { since, ..task });
            }
        }
    }

    /// Takes the active space with the most pages from those that run, unless too few are active
    /// or it came but lately.
    fn pick_out(&mut self, view: &LoadView<'_>) -> Option<Task> {
        let load_of = |task: &Task| view.spaces.iter().find(|load| load.space == task.space);
        let is_active = |load: &SpaceLoad| load.turn.is_active;
        let actives = self
            .tasks
            .iter()
            .filter_map(load_of)
            .filter(|l| is_active(l));
        if actives.count() < self.active_min {
            return None;
        }
        let candidates = self.tasks.iter().enumerate().filter_map(|(place, task)| {
            let load = load_of(task).filter(|load| is_active(load))?;
            let is_settled = view.now.since_ns(task.since) > RESIDENT_MIN_NS;
            is_settled.then_some((load.resident, place))
        });
        // Of several that are largest, the first.
        let (resident, place) = candidates.max_by_key(|&(resident, place)| (resident, !place))?;
        let task = self.tasks.remove(place);
        Some(Task {
            resident,
            since: view.now,
            times_out: task.times_out + 1,
            ..task
        })
    }
}

/// The number of frames expected to become free by stopping a space, or to be taken by resuming it,
/// in a second: its pages over the short average's time, and half as many the first time it is out.
fn expected_frames(task: &Task) -> u64 {
    let pages = u64::from(task.resident);
    let pages = if task.times_out == 1 {
        pages / 2
    } else {
        pages
    };
    pages / SHORT
}
