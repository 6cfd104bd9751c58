//! Suspensions: whole tasks that wait out of memory, as under `tidemark run`.
//!
//! Where each program has a memory of its own ([`Scenario::is_divided`]), such a memory is a task of
//! the core's [`TaskControl`], which is asked as live: at each interval at which memory is divided,
//! and when a task has ended. A task that is suspended has no processor, its pages leave, and what
//! it may have falls with what it still has. One that goes on is given what it needed, and what it
//! had is brought back as there are frames. Processes that were forked and have executed nothing
//! are of their parent's task.
//!
//! Where all processes share one memory, load control is inside the core: see
//! [`kernel`](super::kernel).
//!
//! [`Scenario::is_divided`]: super::Scenario::is_divided

use tidemark_core::id::{SlotId, SpaceId, VirtPage};
use tidemark_core::load::registry;
use tidemark_core::load::tasks::{Order, RETURN_NS, Standing, TaskControl, frames_of_return};
use tidemark_core::time::Time;
use tidemark_core::vm::recall::RECALL_NS_MAX;
use tidemark_partition::{ANY, FLOOR_FRAMES, FRAMES_MIN};

use super::engine::World;
use super::error::WorldError;
use super::memory::{self, Memory};
use super::outcome::Suspension;
use super::process::Process;
use super::scenario::Scenario;

/// The load control of `tidemark run`.
const USUAL: &str = "working-set";
/// The one that lets every task run.
const NONE: &str = "none";

/// The state of a memory that is suspended, or has been.
#[derive(Default)]
pub(super) struct Parked {
    pub(super) is_suspended: bool,
    /// The frames that it needed when it was suspended.
    needed: u64,
    /// It goes on, and is owed them until then.
    returns_until: u64,
    /// The number of pages that had come when it was last taken out of memory.
    arrivals: u64,
    /// The pages of each space that were in memory, in order of address.
    remembered: Vec<(SpaceId, Vec<VirtPage>)>,
    /// Those that are still to be brought back, the last one first, and until when.
    due: Vec<(SpaceId, Vec<(SlotId, VirtPage)>)>,
    due_until: u64,
}

impl Parked {
    /// The frames that its memory asks to have in all, if it asks for so many otherwise.
    pub(super) fn asked(&self, asked: u64, given: u64, now: u64) -> u64 {
        let frames = frames_of_return(self.needed, FLOOR_FRAMES);
        match self.is_suspended {
            true => 0,
            false if now < self.returns_until && given < frames => asked.max(frames),
            false => asked,
        }
    }

    /// The most that it may have, of which it has so many now.
    pub(super) fn most(&self, resident: u64) -> u64 {
        match self.is_suspended {
            true => resident.max(FRAMES_MIN),
            false => ANY,
        }
    }
}

impl Memory {
    /// Returns true if it is suspended and still has to leave.
    pub(super) fn is_leaving(&self) -> bool {
        self.parked.is_suspended && u64::from(self.in_use()) > FLOOR_FRAMES
    }

    fn spaces(&self) -> Vec<SpaceId> {
        let owners = self.owners.iter().enumerate();
        let owned = owners.filter(|(_, owner)| owner.is_some());
        owned.map(|(space, _)| SpaceId(space as u32)).collect()
    }

    fn park(&mut self, now: u64, demand: u64) {
        let spaces = self.spaces();
        let remembered = spaces.iter().map(|&space| {
            let mut pages = self.vm.resident_pages(space);
            let due = self.parked.due.iter().filter(|(of, _)| *of == space);
            pages.extend(due.flat_map(|(_, due)| due.iter().map(|&(_, at)| at)));
            pages.sort_unstable();
            (space, pages)
        });
        self.parked = Parked {
            is_suspended: true,
            needed: demand.max(self.in_use().into()),
            remembered: remembered.collect(),
            ..Parked::default()
        };
        self.forget_asking();
        self.set_emptying(true);
        self.hold_down(now);
    }

    /// Takes out of memory what has come since it was suspended.
    fn hold_down(&mut self, now: u64) {
        self.parked.arrivals = self.vm.counters().arrivals();
        for space in self.spaces() {
            self.vm.handle_suspend(Time(now), &mut self.tables, space);
        }
    }

    fn unpark(&mut self, now: u64) {
        self.parked.is_suspended = false;
        self.parked.returns_until = now + RETURN_NS;
        self.parked.due_until = now + RECALL_NS_MAX;
        self.forget_asking();
        self.forget_share();
        self.set_emptying(false);
        let needed = self.parked.needed;
        for (space, pages) in std::mem::take(&mut self.parked.remembered) {
            self.vm.handle_resume(Time(now), &mut self.tables, space);
            let due = self.vm.pages_due(space, &pages, needed);
            self.parked.due.push((space, due));
        }
    }

    /// Brings back more of what was in memory before, as far as there are frames.
    pub(super) fn recall(&mut self, now: u64) {
        if self.parked.is_suspended || self.parked.due.is_empty() {
            return;
        }
        for (space, due) in &mut self.parked.due {
            self.vm
                .handle_recalls(Time(now), &mut self.tables, *space, due);
        }
        self.parked.due.retain(|(_, due)| !due.is_empty());
        if now >= self.parked.due_until {
            self.parked.due.clear();
        }
    }

    fn set_emptying(&mut self, is_emptying: bool) {
        if let Some(compressed) = &mut self.compressed {
            compressed.set_emptying(is_emptying);
        }
    }
}

impl World<'_> {
    /// Has load control decide which tasks run, and does what it says. True if it said anything.
    pub(super) fn control_load(&mut self, now: u64) -> bool {
        let Some(mut control) = self.shares.control.take() else {
            return false;
        };
        let tasks: Vec<Standing> = self
            .memories()
            .filter(|memory| memory.is_managed && memory.processes > 0)
            .map(|memory| self.standing_of(memory))
            .collect();
        let total = self.scenario.memory_pages - self.scenario.wired_pages;
        let resident = tasks.iter().map(|task| task.resident).sum();
        let orders = control.ask(Time(now), total, resident, &tasks);
        for &Order { task, is_suspended } in &orders {
            if self.turn_to(task.0) && self.memory.parked.is_suspended != is_suspended {
                self.set_suspended(is_suspended, control.demand(task), now);
            }
        }
        self.shares.control = Some(control);
        self.hold_all_down(now);
        !orders.is_empty()
    }

    /// Tells load control that nobody uses the memory at hand any more.
    pub(super) fn note_task_end(&mut self) {
        let Some(control) = &mut self.shares.control else {
            return;
        };
        let counters = self.memory.vm.counters();
        let (page_outs, requests) = (counters.page_outs, counters.page_out_requests);
        control.note_end(SpaceId(self.memory.number), page_outs, requests);
        self.shares.has_lost = true;
    }

    fn standing_of(&self, memory: &Memory) -> Standing {
        let counters = memory.vm.counters();
        let (mut faults, mut page_ins) = (0, 0);
        let (mut waited_ns, mut ran_ns, mut system_ns) = (0, 0, 0);
        for (space, owner) in memory.owners.iter().enumerate() {
            let Some(owner) = *owner else { continue };
            let counted = memory.vm.count_faults(SpaceId(space as u32));
            let (all, fetching) = counted.unwrap_or_default();
            (faults, page_ins) = (faults + all, page_ins + fetching);
            let outcome = &self.processes[owner].outcome;
            waited_ns += outcome.page_wait_ns;
            ran_ns += outcome.user_ns;
            system_ns += outcome.system_ns;
        }
        Standing {
            task: SpaceId(memory.number),
            faults,
            page_ins,
            waited_ns,
            page_outs: counters.page_outs,
            page_out_requests: counters.page_out_requests,
            resident: memory.in_use(),
            pages: memory.size(),
            ran_ns,
            processor_ns: ran_ns + system_ns,
            is_suspended: memory.parked.is_suspended,
            is_spared: false,
        }
    }

    /// Suspends the task whose memory is at hand, or lets it go on.
    fn set_suspended(&mut self, is_suspended: bool, demand: u64, now: u64) {
        match is_suspended {
            true => self.memory.park(now, demand),
            false => self.memory.unpark(now),
        }
        let owners: Vec<usize> = self.memory.owners.iter().flatten().copied().collect();
        let first = owners.first().copied().unwrap_or_default();
        self.suspensions.push(Suspension {
            time_ns: now,
            process: self.rank_of(first),
            is_suspended,
        });
        for owner in owners {
            match is_suspended {
                true => self.suspend(owner, now),
                false => self.resume(owner, now),
            }
        }
        self.finish_work(now);
    }

    /// The place of a process among all in the order of their programs and process ids.
    fn rank_of(&self, process: usize) -> usize {
        let key = |process: &Process<'_>| (process.program, process.course.pid);
        let own = key(&self.processes[process]);
        let others = self.processes.iter();
        others.filter(|other| key(other) < own).count()
    }

    /// Has those that are suspended give up what was on its way to them.
    fn hold_all_down(&mut self, now: u64) {
        for number in self.memory_numbers() {
            self.turn_to(number);
            let parked = &self.memory.parked;
            if parked.is_suspended && parked.arrivals != self.memory.vm.counters().arrivals() {
                self.memory.hold_down(now);
                self.finish_work(now);
            }
        }
    }

    fn finish_work(&mut self, now: u64) {
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
    }
}

/// The load control of a scenario whose memory is divided; `None` if it is `none`.
///
/// # Errors
/// There is none of that name, it acts on single pages, or it has not those knobs.
pub(super) fn build_control(scenario: &Scenario) -> Result<Option<TaskControl>, WorldError> {
    let name = name_of(scenario);
    let is_live = registry::find(name).is_none_or(|entry| entry.description.is_live);
    if !is_live {
        return Err(WorldError::LoadOfPages { name: name.into() });
    }
    let load = memory::build_load(name, scenario)?;
    Ok((name != NONE).then(|| TaskControl::new(load)))
}

/// The name of the load control of a scenario whose memory is divided.
pub(super) fn name_of(scenario: &Scenario) -> &str {
    // In step a process waits for nothing but its own faults.
    let usual = if scenario.is_in_step { NONE } else { USUAL };
    scenario.load.as_deref().unwrap_or(usual)
}
