//! The rules that hold after every step.
//!
//! 1. Engines never have more frames together than there are.
//! 2. What they may use and what none has is not more than that.
//! 3. No task loses what the floor gives it, while it is not on its way out.
//! 4. A task is suspended if, and only if, a request or load control wants that.
//! 5. None is suspended by load control for longer than its documentation says.
//! 6. A newcomer is answered in time, and an eviction ends in time.
//! 7. The steward comes back after an interval at the latest.
//! 8. In fair weather one that is short for long has its floor.
//! 9. One whose budget was changed is told so.
//! 10. An interval ends in time, however often memory is divided within it.

use std::collections::BTreeMap;

use tidemark_core::time::Time;
use tidemark_partition::{ADMISSION_NS, FLOOR_FRAMES, FRAMES_MIN, INTERVAL_NS};
use tidemark_tasks::{By, EVICTION_NS, Stage, TaskId};

use crate::run::Run;
use crate::yard::{Engine, Midst, State, Yard};

/// The longest slice of `working-set`: a second, and 300 microseconds for each page.
const SLICE_NS: u64 = 1_000_000_000;
const SLICE_PAGE_NS: u64 = 300_000;
/// In fair weather one is short no longer than that without its floor.
const SHORT_NS: u64 = 5_000_000_000;
/// In fair weather a forked child is let in by then.
const CHILD_NS: u64 = 20_000_000_000;

#[derive(Default)]
pub struct Checks {
    /// The most frames that may be had, or given: the total, or more while it has been lowered.
    reach_max: u64,
    given_max: u64,
    is_alone: bool,
    /// The frames that each task had before the steward was told something, if it was not to leave.
    before: Vec<(TaskId, u64)>,
    floor_before: u64,
    suspended_before: Vec<TaskId>,
    /// Since when load control has tasks wait, requests keep them in memory, or they are short.
    waits: BTreeMap<TaskId, u64>,
    evictions: BTreeMap<TaskId, u64>,
    shortages: BTreeMap<TaskId, u64>,
    fair_since: Option<u64>,
    /// The time at which the last interval has ended, or the steward began.
    interval_since: u64,
}

impl Checks {
    pub fn new(total: u64) -> Checks {
        Checks {
            reach_max: total,
            given_max: total,
            ..Checks::default()
        }
    }

    pub fn clear_up(&mut self, now: Time) {
        self.fair_since = Some(now.0);
        self.shortages.clear();
    }

    /// Forgets tasks, whose numbers others have now.
    pub fn forget(&mut self) {
        self.before.clear();
        self.waits.clear();
        self.evictions.clear();
        self.shortages.clear();
    }

    pub fn end_interval(&mut self, now: Time) {
        self.interval_since = now.0;
    }

    pub fn lose_supervisor(&mut self) {
        self.is_alone = true;
    }

    /// Takes what tasks have by now for granted: one of them has lied, and does not any more.
    pub fn forgive(&mut self, yard: &Yard) {
        self.reach_max = self.reach_max.max(reach_soon(yard));
    }

    /// Check 1.
    pub fn look(&mut self, yard: &Yard) {
        let engines = yard.engines.borrow();
        let reach: u64 = engines.iter().map(Engine::reach).sum();
        if self.is_alone {
            // Each that was suspended goes on in the floor, whoever has that.
            let most = self.reach_max.max(yard.total) + FLOOR_FRAMES * engines.len() as u64;
            return assert!(reach <= most, "{reach} frames are had of {}", yard.total);
        }
        let most = self.reach_max.max(yard.total);
        assert!(reach <= most, "{reach} frames are had of {most}");
        // Once the total was lowered, they come down to it as they give frames up.
        self.reach_max = most.min(reach_soon(yard)).max(yard.total);
    }

    pub fn begin(&mut self, run: &Run) {
        let mut engines = run.yard.engines.borrow_mut();
        engines.iter_mut().for_each(|it| it.has_changed = false);
        let staying = engines.iter().filter(|it| !it.is_suspended && !it.is_lying);
        self.before = staying
            .filter_map(|it| Some((it.task?, it.budget)))
            .collect();
        self.suspended_before = suspended(&engines);
        drop(engines);
        self.floor_before = floor(run);
    }

    /// Checks 2, 3, 4 and 9, when the steward was told something and all is carried out.
    pub fn settle(&mut self, run: &Run) {
        let yard = &run.yard;
        let engines = yard.engines.borrow();
        let given = given(run, &engines) + yard.unassigned_now();
        let most = self.given_max.max(yard.total);
        assert!(given <= most, "{given} frames are given of {most}");
        // One is given again what it has not given up yet.
        let held = engines
            .iter()
            .map(|it| it.budget.max(it.understood))
            .sum::<u64>();
        self.given_max = most
            .min(held + yard.unassigned_now() + yard.promised)
            .max(yard.total);
        let steward = run.steward.as_ref().expect("it was told something");
        let mut floor = self.floor_before.min(floor(run));
        if self.suspended_before != suspended(&engines) {
            // What those had that are out now counted as theirs.
            floor = 0;
        }
        for engine in engines.iter() {
            let Some(task) = engine.task else { continue };
            let is_wanted = [By::Request, By::Control].map(|by| steward.is_suspended_by(task, by));
            assert_eq!(engine.is_suspended, is_wanted.contains(&true), "{task:?}");
            assert_eq!(is_wanted[0], run.requested.contains(&task), "{task:?}");
            assert!(!is_wanted[1] || steward.is_controlled());
            let before = self.before.iter().find(|it| it.0 == task);
            let Some(&(_, before)) = before.filter(|_| !engine.is_suspended) else {
                continue;
            };
            let is_told = engine.budget == before || engine.has_changed || engine.is_poked;
            assert!(
                is_told,
                "{task:?} has {before}, and is to have {}",
                engine.budget
            );
            // One that forks has given a part to its child. With less for each it is not exact.
            let is_at_rest = floor == FLOOR_FRAMES
                && !engine.has_changed
                && !matches!(engine.midst, Midst::Forking(..));
            if is_at_rest && steward.stage(task) == Some(Stage::Running) {
                // What others had on their way out when it was divided may be a little more.
                let least = (floor - floor / 4).min(before);
                assert!(
                    engine.budget >= least,
                    "{task:?}: {} < {least}",
                    engine.budget
                );
            }
        }
    }

    /// Checks 5 to 8, and 10.
    pub fn after_step(&mut self, run: &Run) {
        let Some(steward) = &run.steward else {
            return;
        };
        let now = run.now.0;
        let due = steward.poll_deadline().0;
        assert!(
            due <= now + INTERVAL_NS,
            "the next look is at {due}, in {}",
            due - now
        );
        let lasted = now - self.interval_since;
        let most = INTERVAL_NS + run.step_ns_max;
        assert!(lasted <= most, "an interval lasts for {lasted} ns");
        self.look_at_newcomers(run);
        let engines = run.yard.engines.borrow();
        let tasks = engines.iter().filter(|it| it.task.is_some()).count() as u64;
        let slice_ns = SLICE_NS + SLICE_PAGE_NS * 26_000;
        let mut shortages = BTreeMap::new();
        let mut waits = BTreeMap::new();
        let mut evictions = BTreeMap::new();
        for engine in engines.iter() {
            let Some(task) = engine.task else { continue };
            if steward.is_suspended_by(task, By::Control) {
                let since = *self.waits.get(&task).unwrap_or(&now);
                let most = 4 * slice_ns * (tasks + 1) + run.step_ns_max;
                assert!(now - since <= most, "{task:?} waits for {} ns", now - since);
                waits.insert(task, since);
            }
            let stage = steward.stage(task).expect("it is a member");
            if stage == Stage::Evicting {
                let since = *self.evictions.get(&task).unwrap_or(&now);
                let most = EVICTION_NS + INTERVAL_NS + run.step_ns_max;
                assert!(
                    now - since <= most,
                    "{task:?} is evicted for {} ns",
                    now - since
                );
                evictions.insert(task, since);
            }
            let least = floor(run).min(FLOOR_FRAMES);
            let is_short = stage == Stage::Running && engine.asked > engine.budget;
            if self.fair_since.is_some() && is_short && engine.budget < least {
                let since = *self.shortages.get(&task).unwrap_or(&now);
                let frames = engine.budget;
                assert!(
                    now - since <= SHORT_NS,
                    "{task:?} has {frames}, and not {least}"
                );
                shortages.insert(task, since);
            }
        }
        (self.shortages, self.waits, self.evictions) = (shortages, waits, evictions);
    }

    fn look_at_newcomers(&self, run: &Run) {
        let now = run.now.0;
        let waits = run.coming.iter();
        let most = ADMISSION_NS + INTERVAL_NS + run.step_ns_max;
        for &(task, since, claimed) in waits {
            let (since, most) = match (claimed, self.fair_since) {
                (None, _) => (since, 2 * most),
                // A child waits until others have given up what they had, with any weather.
                (Some(_), Some(fair)) => (since.max(fair), CHILD_NS),
                (Some(_), None) => continue,
            };
            let waited = now - since;
            assert!(waited <= most, "{task:?} waits for {waited} ns");
        }
    }
}

/// The tasks that are suspended.
fn suspended(engines: &[Engine]) -> Vec<TaskId> {
    let suspended = engines.iter().filter(|it| it.is_suspended);
    suspended.filter_map(|it| it.task).collect()
}

/// The frames that engines have, have said that they go by, or come to have by what they are told.
fn reach_soon(yard: &Yard) -> u64 {
    let engines = yard.engines.borrow();
    let honest = engines.iter().filter(|it| !it.is_lying);
    let reach: u64 = honest
        .map(|it| it.reach().max(it.budget).max(it.understood))
        .sum();
    reach + yard.unassigned_now() + yard.promised
}

/// The frames that engines may use, without those that are in two places for a moment.
fn given(run: &Run, engines: &[Engine]) -> u64 {
    let mut twice = 0;
    // A child that is let in with less than its parent has left it has that once it is answered.
    for &(task, frames) in &run.answers {
        let child = run
            .coming
            .iter()
            .find(|it| it.0 == task)
            .and_then(|it| it.2);
        twice += child.map_or(0, |child| engines[child].budget.saturating_sub(frames));
    }
    for engine in engines {
        twice += match engine.midst {
            Midst::Taking(frames) => frames.min(engine.budget),
            // What it had was changed meanwhile: the fork fails, or begins anew.
            Midst::Forking(child, before, _) if engine.budget != before => engines[child].budget,
            Midst::Forking(_, before, left) => before - left,
            Midst::Nothing | Midst::Following => 0,
        };
    }
    let known = engines.iter().filter(|it| it.state != State::Late);
    known.map(|it| it.budget).sum::<u64>() - twice
}

/// The frames that none loses: an equal share of what is left beside those that are on their way
/// out, or the floor.
fn floor(run: &Run) -> u64 {
    let engines = run.yard.engines.borrow();
    let known = engines.iter().filter(|it| it.state != State::Free);
    let stage = |engine: &Engine| run.steward.as_ref()?.stage(engine.task?);
    let (mut left, mut others) = (run.yard.total, run.coming.len() as u64);
    for engine in known {
        match stage(engine) {
            // It has what it says.
            Some(Stage::Suspended) if engine.is_lying => left = 0,
            Some(Stage::Suspended) => {
                left = left.saturating_sub(engine.held.max(engine.resident).max(FRAMES_MIN));
            }
            Some(Stage::Evicting) => left = left.saturating_sub(FLOOR_FRAMES),
            Some(Stage::Coming | Stage::Running) | None => others += 1,
        }
    }
    FLOOR_FRAMES.min(left / others.max(1))
}
