//! Load control: which tasks run when their memory does not fit together.
//!
//! The core's load controls are asked: the same code as in the lab. They see each task as a space,
//! whose number is its place in the table of processes, and are asked at each interval, and when a
//! task has ended. What they say is carried out by suspending tasks and letting them go on.
//!
//! What a task needs is what it has and what it had to fetch within the last second, and no more
//! than it has at all. A task is active that used a processor or waited for pages within the last
//! second: one that waits for its children, or for others at a pipe, is not.
//!
//! The program that the run began with is spared while it has the terminal: load control sees
//! neither it nor the memory that it needs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::id::SpaceId;
use tidemark_core::load::history::History;
use tidemark_core::load::registry::Entry;
use tidemark_core::load::{LoadControl, LoadView, SpaceLoad, Turn, Verdict, unlimited};
use tidemark_core::time::Time;
use tidemark_core::vm::Config;
use tidemark_live::shared::{Counter, Process, ProcessIndex};

use super::Tree;
use super::outage::By;
use super::size::pages_of;
use crate::foreground;
use crate::processor_time;
use crate::time::now_ns;

/// The time for which a task is active after it was seen to do something.
const ACTIVE_NS: u64 = 1_000_000_000;
/// The processor time that says nothing: it is known to the kernel's tick.
const IDLE_NS_MAX: u64 = 2 * processor_time::TICK_NS;

/// A load control, and what is known of the tasks that it decides about.
pub(super) struct Control {
    load: Box<dyn LoadControl>,
    tasks: BTreeMap<SpaceId, Activity>,
    /// The task that is spared.
    spared: Option<ProcessIndex>,
    /// Pages that tasks have sent away that have ended, and the requests that took.
    ended: (u64, u64),
}

/// The doings of a task.
#[derive(Default)]
struct Activity {
    history: History,
    /// The processor time that it had used, and the faults that it had waited for, ...
    ran_ns: u64,
    page_ins: u64,
    /// ... when it last did something.
    active_ns: u64,
    /// The frames that it was last found to need.
    demand: u32,
}

impl Control {
    pub(super) fn new(load: Box<dyn LoadControl>) -> Control {
        Control {
            load,
            tasks: BTreeMap::new(),
            spared: None,
            ended: (0, 0),
        }
    }

    /// Learns that the process of that record has ended.
    pub(super) fn note_end(&mut self, index: ProcessIndex, process: &Process<'_>) {
        let space = SpaceId(index.0);
        if self.tasks.remove(&space).is_some() {
            self.load.space_ended(space);
            self.ended.0 += count(process, Counter::PageOuts);
            self.ended.1 += count(process, Counter::PageOutRequests);
        }
    }

    /// The frames that the process of that record needs, as far as that is known.
    pub(super) fn demand(&self, index: ProcessIndex) -> u64 {
        let known = self.tasks.get(&SpaceId(index.0));
        known.map_or(0, |known| known.demand.into())
    }

    fn look_at(&mut self, seen: Seen<'_>, now: Time) -> SpaceLoad {
        let Seen {
            index,
            pid,
            process,
            pages,
            is_suspended,
        } = seen;
        let space = SpaceId(index.0);
        let known = self.tasks.entry(space).or_default();
        let page_ins = count(process, Counter::PageInFaults);
        let ran_ns = processor_time::ns_of_program(pid, process);
        if ran_ns.abs_diff(known.ran_ns) > IDLE_NS_MAX || page_ins != known.page_ins {
            (known.ran_ns, known.page_ins, known.active_ns) = (ran_ns, page_ins, now.0);
        }
        let load = SpaceLoad {
            space,
            faults: count(process, Counter::Faults),
            page_ins,
            waited_ns: count(process, Counter::FetchStallNs),
            resident: frames(count(process, Counter::FramesResident)),
            demand: None,
            turn: Turn {
                order: 0,
                ran_ns: count(process, Counter::ProgramNs),
                is_active: !is_suspended && now.0 - known.active_ns < ACTIVE_NS,
            },
            is_suspended,
        };
        if is_suspended {
            // What it does before it is out, and when it is back, says nothing of what it needs.
            known.history = History::default();
        }
        known.history.note(now, &load);
        let demand = known.history.demand(load.resident).min(frames(pages));
        if !is_suspended {
            known.demand = demand;
        }
        SpaceLoad {
            demand: Some(demand),
            ..load
        }
    }
}

/// A task as it is seen now.
struct Seen<'a> {
    index: ProcessIndex,
    pid: u32,
    process: &'a Process<'a>,
    /// The pages that it has in all.
    pages: u64,
    is_suspended: bool,
}

impl Tree {
    /// Has that load control decide which tasks run.
    pub fn control_load_by(&mut self, entry: &Entry) {
        // One that never says anything need not be asked.
        let is_none = entry.description.name == unlimited::DESCRIPTION.name;
        let built = (!is_none).then(|| entry.build(&[]));
        let built = built.map(|it| it.expect("knobs have their defaults"));
        self.control = built.map(Control::new);
    }

    /// Asks load control, and does what it says.
    pub(super) fn control_load(&mut self) {
        let Some(mut control) = self.control.take() else {
            return;
        };
        self.spare_foreground(&mut control);
        let verdicts = self.ask(&mut control);
        self.control = Some(control);
        let is_any = !verdicts.is_empty();
        for verdict in verdicts {
            let (space, is_suspended) = match verdict {
                Verdict::Suspend(space) | Verdict::SwapOut(space) => (space, true),
                Verdict::Resume(space) => (space, false),
                // No load control that says such things is taken.
                Verdict::Protect(_)
                | Verdict::Unprotect
                | Verdict::Age(_)
                | Verdict::Refresh(_) => {
                    continue;
                }
            };
            let index = Some(ProcessIndex(space.0));
            let place = self.members.iter().position(|it| it.record == index);
            if let Some(place) = place {
                self.set_suspended(place, By::Control, is_suspended);
            }
        }
        if is_any {
            self.divide(tidemark_partition::Occasion::Change);
        }
    }

    /// Finds out whether the program that the run began with has the terminal, and lets it go on if
    /// so.
    fn spare_foreground(&mut self, control: &mut Control) {
        let main = self.strangers.main();
        let place = self.members.iter().position(|it| Some(it.peer.pid) == main);
        let place = place.filter(|&place| foreground::holds(self.members[place].peer.pid));
        let spared = place.and_then(|place| self.members[place].record);
        if control.spared == spared {
            return;
        }
        control.spared = spared;
        if let Some((place, index)) = place.zip(spared) {
            control.load.space_ended(SpaceId(index.0));
            self.set_suspended(place, By::Control, false);
        }
    }

    fn ask(&self, control: &mut Control) -> Vec<Verdict> {
        let now = Time(now_ns());
        let mut spaces: Vec<SpaceLoad> = vec![];
        let (mut page_outs, mut requests) = control.ended;
        let mut total = frames(self.shared.frames_total());
        for member in &self.members {
            let Some(index) = member.record else { continue };
            let process = self.shared.process(index);
            page_outs += count(&process, Counter::PageOuts);
            requests += count(&process, Counter::PageOutRequests);
            let seen = Seen {
                index,
                pid: member.peer.pid,
                process: &process,
                pages: pages_of(&self.shared, index),
                is_suspended: member.suspension.is_any(),
            };
            let load = control.look_at(seen, now);
            match control.spared == Some(index) {
                true => total = total.saturating_sub(load.demand.unwrap_or(0)).max(1),
                false => spaces.push(load),
            }
        }
        spaces.sort_unstable_by_key(|load| load.space);
        let marks = Config::clustered(total, total);
        let view = LoadView {
            now,
            frames: total,
            frames_free: total.saturating_sub(frames(self.shared.frames_resident())),
            frames_spare: 0,
            frames_low: marks.free_low,
            frames_target: marks.free_high,
            page_outs,
            page_out_requests: requests,
            spaces: &spaces,
        };
        let mut verdicts = vec![];
        control.load.tick(&view, &mut verdicts);
        verdicts
    }
}

fn count(process: &Process<'_>, counter: Counter) -> u64 {
    process.counter(counter).load(Relaxed)
}

fn frames(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
