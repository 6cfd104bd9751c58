//! The state of a run, for those who ask.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::id::PAGE_BYTES;
use tidemark_live::shared::{Counter, Process};
use tidemark_results::basis;
use tidemark_results::control::{
    Counts, MemoryState, Rates, RunState, SCHEMA, SwapState, Task, TaskState, Wait,
};
use tidemark_tasks::{By, Stage};

use super::{Member, Tree};
use crate::jobs::JobServer;
use crate::time::now_ns;

/// The time per second that threads wait for pages, from which on a task waits for its store.
const STORE_BOUND: f64 = 0.5;

/// The parts of a run's settings that requests are answered with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The name of the replacement policy.
    pub policy: String,
    /// The store of pages that leave.
    pub store: String,
    /// The name of the load control.
    pub load_control: &'static str,
    /// The time of the beginning, on the monotonic clock.
    pub began_ns: u64,
    /// The reason for which tasks can't be suspended, if there is one.
    pub unsuspendable: Option<&'static str>,
}

/// The counts of a process.
pub fn counts_of(process: &Process<'_>) -> Counts {
    Counts::of(|counter| process.counter(counter).load(Relaxed))
}

impl Tree {
    /// The state of the run.
    pub(super) fn observe(&self) -> RunState {
        let now_ns = now_ns();
        let tasks: Vec<Task> = self
            .members
            .iter()
            .map(|member| self.observe_member(member, now_ns))
            .collect();
        let mut counts = self.counts_ended;
        let mut rates = Rates::default();
        for task in &tasks {
            counts.add(&task.counts);
            rates.add(&task.rates);
        }
        let sum = |of: fn(&Task) -> u64| tasks.iter().map(of).sum::<u64>();
        let unmanaged = sum(|task| task.unmanaged_bytes) + self.strangers.resident_bytes();
        RunState {
            schema: SCHEMA.into(),
            pid: std::process::id(),
            program_pid: self.strangers.main(),
            elapsed_s: seconds(now_ns, self.settings.began_ns),
            policy: self.settings.policy.clone(),
            store: self.settings.store.clone(),
            load_control: self.settings.load_control.into(),
            division: self.divider().rule.name().into(),
            memory: MemoryState {
                budget_bytes: self.shared.frames_total() * PAGE_BYTES,
                budget_bytes_max: self.shared.frames_max() * PAGE_BYTES,
                resident_bytes: self.shared.frames_resident() * PAGE_BYTES,
                resident_bytes_peak: self.shared.frames_peak() * PAGE_BYTES,
                unassigned_bytes: self.shared.unassigned() * PAGE_BYTES,
                task_bytes_min: self.divider().frames_min * PAGE_BYTES,
                unmanaged_bytes: unmanaged,
                engine_bytes: sum(|task| task.engine_bytes),
            },
            swap: SwapState {
                bytes: u64::from(self.shared.swap_slots()) * PAGE_BYTES,
                used_bytes: self.shared.slots_used() * PAGE_BYTES,
            },
            jobs: self.jobs.as_ref().map(JobServer::state),
            basis: basis::of_state(),
            counts,
            rates,
            tasks,
        }
    }

    fn observe_member(&self, member: &Member, now_ns: u64) -> Task {
        let pid = member.hello.pid;
        let state = match self.steward.stage(member.task) {
            None | Some(Stage::Coming) => TaskState::Coming,
            Some(Stage::Suspended) => TaskState::Suspended,
            Some(Stage::Evicting) => TaskState::Evicting,
            Some(Stage::Running) => TaskState::Running,
        };
        let Some(index) = member.record else {
            return Task {
                waits_for: Some(Wait::Admission),
                ..newcomer(pid, state)
            };
        };
        let process = self.shared.process(index);
        let count = |counter| process.counter(counter).load(Relaxed);
        let counts = counts_of(&process);
        let rates = member.pace.rates(now_ns, &counts);
        let parent = process.parent();
        let (asked, budget) = (process.asked(), u64::from(process.budget()));
        Task {
            parent: (parent != 0).then_some(parent),
            program: process.name(),
            waits_for: match state {
                TaskState::Suspended if self.is_suspended_by(member, By::Request) => {
                    Some(Wait::Resume)
                }
                TaskState::Suspended => Some(Wait::Turn),
                _ if rates.get(Counter::StallNs) >= STORE_BOUND => Some(Wait::Store),
                _ if asked > budget => Some(Wait::Memory),
                _ => None,
            },
            elapsed_s: seconds(now_ns, process.start_ns()),
            budget_bytes: budget * PAGE_BYTES,
            asked_bytes: asked * PAGE_BYTES,
            resident_bytes: count(Counter::FramesResident) * PAGE_BYTES,
            beside_bytes: count(Counter::FramesBeside) * PAGE_BYTES,
            unmanaged_bytes: count(Counter::UnmanagedBytesNow),
            engine_bytes: count(Counter::EngineBytes),
            managed_bytes: count(Counter::ManagedBytes),
            pinned_pages: count(Counter::PinnedPages),
            stores_under_way: count(Counter::StoresUnderWay),
            counts,
            rates,
            ..newcomer(pid, state)
        }
    }
}

/// A task of which nothing is known but its number.
fn newcomer(pid: u32, state: TaskState) -> Task {
    Task {
        pid,
        parent: None,
        program: String::new(),
        state,
        waits_for: None,
        elapsed_s: 0.0,
        budget_bytes: 0,
        asked_bytes: 0,
        resident_bytes: 0,
        beside_bytes: 0,
        unmanaged_bytes: 0,
        engine_bytes: 0,
        managed_bytes: 0,
        pinned_pages: 0,
        stores_under_way: 0,
        counts: Counts::default(),
        rates: Rates::default(),
    }
}

fn seconds(now_ns: u64, since_ns: u64) -> f64 {
    (now_ns.saturating_sub(since_ns) / 1_000_000) as f64 / 1000.0
}
