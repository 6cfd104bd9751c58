//! Load control over tasks with separate memories: processes with an engine each, live and in the
//! lab.
//!
//! The load control sees each task as a space. It is asked at each interval at which memory is
//! divided, and when a task has ended.
//!
//! The need of a task is its resident pages and the pages that it fetched within the last second,
//! and at most its size. As long as it has run for less than a second it is its size, for it has
//! used all of its pages within that second.
//!
//! A task is active if it used a processor or waited for pages within the last second. A task that
//! waits for its children, or for others at a pipe, is not active.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::history::{History, WINDOW_NS};
use crate::id::SpaceId;
use crate::seams::load_control::{LoadControl, LoadView, SpaceLoad, Turn, Verdict};
use crate::time::Time;
use crate::vm::Config;

/// The time for which a task is active after it was seen to do something.
const ACTIVE_NS: u64 = 1_000_000_000;
/// The processor time that means nothing: a kernel counts it in ticks of 10 ms.
const IDLE_NS_MAX: u64 = 20_000_000;

/// A load control, and what is known of the tasks that it decides about.
pub struct TaskControl {
    load: Box<dyn LoadControl>,
    processors: u32,
    tasks: BTreeMap<SpaceId, Activity>,
    /// Pages that tasks have sent away that have ended, and the requests that took.
    ended: (u64, u64),
}

/// A task as it stands: its counts since its beginning, and what it has.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The task.
    pub task: SpaceId,
    /// Faults that it has taken.
    pub faults: u64,
    /// Of those, the ones for which a page was fetched.
    pub page_ins: u64,
    /// The time that its threads have waited for pages, added up, in nanoseconds.
    pub waited_ns: u64,
    /// Pages that it has sent away.
    pub page_outs: u64,
    /// The requests that took.
    pub page_out_requests: u64,
    /// Pages of memory that it has now.
    pub resident: u32,
    /// Pages that it has in all, in memory or in the store.
    pub pages: u32,
    /// The processor time of its programs themselves, in nanoseconds.
    pub ran_ns: u64,
    /// The processor time of its programs with the kernel's time for them, in nanoseconds. It shows
    /// whether a task does anything.
    pub processor_ns: u64,
    /// The processor time that its paging has taken, in nanoseconds.
    pub paged_ns: u64,
    /// True if the task has been told to stop, by load control or by request.
    pub is_suspended: bool,
    /// Load control is to see neither it nor the memory that it needs.
    pub is_spared: bool,
}

/// One thing to do: to suspend a task, or to let it go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The task.
    pub task: SpaceId,
    /// True if it is to wait from now on.
    pub is_suspended: bool,
}

/// The doings of a task.
#[derive(Default)]
struct Activity {
    history: History,
    /// The processor time that it had used, and the faults that it had waited for.
    processor_ns: u64,
    page_ins: u64,
    /// The time at which it was last active.
    active_ns: u64,
    /// The frames that it was last found to need.
    demand: u32,
    /// The time for which it was seen to run, and when it was last seen to.
    lived_ns: u64,
    seen_at: Option<Time>,
}

impl TaskControl {
    /// Decides by `load`, of whose verdicts those that concern single pages of a task are passed
    /// over. Tasks and their paging have `processors`.
    pub fn new(load: Box<dyn LoadControl>, processors: u32) -> TaskControl {
        TaskControl {
            load,
            processors,
            tasks: BTreeMap::new(),
            ended: (0, 0),
        }
    }

    /// Learns that a task has ended, with its page-outs in pages and in requests.
    pub fn note_end(&mut self, task: SpaceId, page_outs: u64, page_out_requests: u64) {
        if self.tasks.remove(&task).is_some() {
            self.load.space_ended(task);
            self.ended.0 += page_outs;
            self.ended.1 += page_out_requests;
        }
    }

    /// Has load control forget a task that is not its concern from now on.
    pub fn release(&mut self, task: SpaceId) {
        self.load.space_ended(task);
    }

    /// The frames that a task needs, as far as that is known.
    pub fn demand(&self, task: SpaceId) -> u64 {
        let known = self.tasks.get(&task);
        known.map_or(0, |known| known.demand.into())
    }

    /// Returns the verdicts about `tasks`, which are all tasks, in order. They may use `frames`
    /// together, of which `resident` are in use.
    pub fn ask(&mut self, now: Time, frames: u32, resident: u32, tasks: &[Standing]) -> Vec<Order> {
        let mut spaces: Vec<SpaceLoad> = Vec::new();
        let (mut page_outs, mut page_out_requests) = self.ended;
        let mut total = frames;
        for task in tasks {
            page_outs += task.page_outs;
            page_out_requests += task.page_out_requests;
            let load = self.look_at(task, now);
            match task.is_spared {
                true => total = total.saturating_sub(load.demand.unwrap_or(0)).max(1),
                false => spaces.push(load),
            }
        }
        spaces.sort_unstable_by_key(|load| load.space);
        let marks = Config::clustered(total, total);
        let view = LoadView {
            now,
            processors: self.processors,
            frames: total,
            frames_free: total.saturating_sub(resident),
            frames_spare: 0,
            frames_low: marks.free_low,
            frames_target: marks.free_high,
            page_outs,
            page_out_requests,
            spaces: &spaces,
        };
        let mut verdicts = Vec::new();
        self.load.tick(&view, &mut verdicts);
        verdicts.into_iter().filter_map(Order::of).collect()
    }

    fn look_at(&mut self, task: &Standing, now: Time) -> SpaceLoad {
        let known = self.tasks.entry(task.task).or_default();
        let is_busy = task.processor_ns.abs_diff(known.processor_ns) > IDLE_NS_MAX;
        if is_busy || task.page_ins != known.page_ins {
            known.processor_ns = task.processor_ns;
            (known.page_ins, known.active_ns) = (task.page_ins, now.0);
        }
        let load = SpaceLoad {
            space: task.task,
            faults: task.faults,
            page_ins: task.page_ins,
            waited_ns: task.waited_ns,
            paged_ns: task.paged_ns,
            resident: task.resident,
            demand: None,
            turn: Turn {
                order: 0,
                ran_ns: task.ran_ns,
                is_active: !task.is_suspended && now.0 - known.active_ns < ACTIVE_NS,
            },
            is_suspended: task.is_suspended,
        };
        if task.is_suspended {
            // What it does before it is out, and when it is back, says nothing of what it needs.
            known.history = History::default();
        }
        known.history.note(now, &load);
        let seen_at = (!task.is_suspended).then_some(now);
        let since = seen_at.and(known.seen_at).map_or(0, |at| now.since_ns(at));
        (known.lived_ns, known.seen_at) = (known.lived_ns + since, seen_at);
        let demand = match known.lived_ns < WINDOW_NS {
            true => task.pages,
            false => known.history.demand(load.resident).min(task.pages),
        };
        if !task.is_suspended {
            known.demand = demand;
        }
        SpaceLoad {
            demand: Some(demand),
            ..load
        }
    }
}

impl fmt::Debug for TaskControl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("TaskControl");
        out.field("load", &self.load.describe().name)
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl Order {
    fn of(verdict: Verdict) -> Option<Order> {
        let (task, is_suspended) = match verdict {
            Verdict::Suspend(task) | Verdict::SwapOut(task) => (task, true),
            Verdict::Resume(task) => (task, false),
            Verdict::Protect(_) | Verdict::Unprotect | Verdict::Age(_) | Verdict::Refresh(_) => {
                return None;
            }
        };
        Some(Order { task, is_suspended })
    }
}

/// The frames that a task is given at once when it goes on: what it needed when it was suspended,
/// and what it needs to take a step.
pub const fn frames_of_return(needed: u64, floor: u64) -> u64 {
    needed + needed / 8 + floor
}

/// The time for which it is owed them, in nanoseconds.
pub const RETURN_NS: u64 = 5_000_000_000;
