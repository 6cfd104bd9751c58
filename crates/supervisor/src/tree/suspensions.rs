//! Suspensions and evictions: tasks whose memory goes to others.
//!
//! A task that is evicted may use no more than the least until it does, and asks for nothing
//! meanwhile; what it gives up is others' to be given. Then it grows again, as one that has just
//! come.
//!
//! A task is suspended by a word in its record: its engine takes everything from the program, and
//! holds it at the next page it touches. What the task may use falls with what it still has, so
//! that it leaves as fast as the store takes it. A task that goes on is given what it had, for its
//! engine brings that back at once. No signal is sent, and an engine whose supervisor is gone lets
//! its program go on by itself.
//!
//! # Invariants
//! 1. The word of a record says that it is suspended while there is a reason, and not otherwise.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tidemark_core::load::tasks::{RETURN_NS, frames_of_return};
use tidemark_live::control;
use tidemark_live::shared::{Counter, Process, Shared};
use tidemark_partition::{ANY, FLOOR_FRAMES, FRAMES_MIN, Occasion};

use super::outage::By;
use super::{Member, Tree};
use crate::time::now_ns;

/// The time after which an eviction ends though its task has not given everything up: pages may be
/// pinned, or the task stopped.
const EVICTION_LIMIT: Duration = Duration::from_secs(60);

impl Tree {
    /// Suspends the task at `place` in the table for `by`, or lets it go on as far as `by` is
    /// concerned.
    pub(super) fn set_suspended(&mut self, place: usize, by: By, is_wanted: bool) {
        let member = &self.members[place];
        if by == By::Control && member.record.is_some() && member.suspension.is_by(by) != is_wanted
        {
            self.note_turn(member.hello.pid, is_wanted);
        }
        let member = &mut self.members[place];
        let Some(index) = member.record else { return };
        let was_suspended = member.suspension.is_any();
        member.suspension.set(by, is_wanted);
        let is_suspended = member.suspension.is_any();
        if is_suspended == was_suspended {
            return;
        }
        let process = self.shared.process(index);
        if is_suspended {
            member.eviction = None;
            let control = self.control.as_ref();
            let demand = control.map_or(0, |control| control.demand(index));
            let needed = resident(&process).max(demand);
            member.suspension.frames = needed;
            member.suspension.returns_until = None;
            process.set_needed(needed);
        } else {
            member.is_served = false;
            member.suspension.returns_until =
                Some(Instant::now() + Duration::from_nanos(RETURN_NS));
        }
        process.forget_asking();
        process.set_suspended(is_suspended);
        // One that is gone is found out when it is listened to.
        let _ = control::poke(member.connection.as_fd());
        let pid = member.hello.pid;
        self.mark_suspension(pid, is_suspended, by);
    }

    /// Notes that load control has a task wait, or lets it go on.
    pub(super) fn note_turn(&mut self, pid: u32, is_suspended: bool) {
        let passed_ns = now_ns().saturating_sub(self.settings.began_ns);
        self.turns.note(pid, is_suspended, passed_ns);
    }

    /// The times for which load control had tasks wait, and a note if some are missing.
    pub(super) fn end_turns(&mut self) -> Vec<tidemark_results::suspension::Suspension> {
        let (suspensions, dropped) = self.turns.finish();
        self.notes.extend(dropped);
        suspensions
    }

    /// Lets every task go on that is suspended, and suspends none from here on.
    pub fn resume_all(&mut self) {
        self.control = None;
        for place in 0..self.members.len() {
            self.set_suspended(place, By::Request, false);
            self.set_suspended(place, By::Control, false);
        }
        self.divide(Occasion::Change);
    }

    /// Returns true if any task is being evicted.
    pub(super) fn is_evicting(&self) -> bool {
        self.members.iter().any(|member| member.eviction.is_some())
    }

    /// Ends the evictions of tasks that are out, or that take too long.
    pub(super) fn end_evictions(&mut self) {
        for member in &mut self.members {
            let Some(eviction) = member.eviction else {
                continue;
            };
            if !member.is_out(&self.shared) && eviction.since.elapsed() < EVICTION_LIMIT {
                continue;
            }
            member.eviction = None;
            member.is_served = false;
        }
    }

    /// Returns true if any task still has to leave memory.
    pub(super) fn is_paging_out(&self) -> bool {
        let is_leaving = |member: &Member| {
            let is_wanted = member.suspension.is_any() || member.eviction.is_some();
            is_wanted && !member.is_out(&self.shared)
        };
        self.members.iter().any(is_leaving)
    }
}

impl Member {
    /// The frames that the process asks to have in all: zero if it does not.
    pub(super) fn asked(&self, process: &Process<'_>) -> u64 {
        if self.eviction.is_some() || self.suspension.is_any() {
            return 0;
        }
        let until = self.suspension.returns_until;
        let is_due = until.is_some_and(|until| Instant::now() < until);
        let frames = frames_of_return(self.suspension.frames, FLOOR_FRAMES);
        match is_due && self.given < frames {
            true => process.asked().max(frames),
            false => process.asked(),
        }
    }

    /// The most that it may have: what it still has, while it is on its way out.
    pub(super) fn most(&self, process: &Process<'_>) -> u64 {
        match (self.suspension.is_any(), self.eviction) {
            (true, _) => resident(process).max(FRAMES_MIN),
            (false, Some(_)) => FLOOR_FRAMES,
            (false, None) => ANY,
        }
    }

    /// Returns true if it uses no more than the least, and may use no more.
    pub(super) fn is_out(&self, shared: &Shared) -> bool {
        let Some(index) = self.record else {
            return true;
        };
        let process = shared.process(index);
        u64::from(process.budget()) <= FLOOR_FRAMES
            && process.understood() <= FLOOR_FRAMES
            && resident(&process) <= FLOOR_FRAMES
    }
}

fn resident(process: &Process<'_>) -> u64 {
    process.counter(Counter::FramesResident).load(Relaxed)
}
