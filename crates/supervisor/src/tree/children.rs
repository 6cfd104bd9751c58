//! Children on their way: forked processes that have a record, and have not said hello; and
//! programs that are executed where no engine is.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tidemark_live::shared::{Offer, ProcessIndex, State};

use super::{Member, Tree};
use crate::strangers::parent_of;

/// The time that a record claimed for a forked child waits for its hello, where the engine of the
/// parent can't tell that the child was killed. It would keep its swap slots otherwise.
const ORPHAN_LIMIT: Duration = Duration::from_secs(60);

impl Tree {
    /// Returns true if any process is there, or a forked child is about to come.
    pub fn has_members(&self) -> bool {
        let mut all = self.shared.processes();
        !self.members.is_empty() || all.any(|(_, process)| process.state() == State::Reserved)
    }

    /// Finds the children that have a record and have not come.
    pub(super) fn find_children(&mut self) {
        let is_awaited = |&index: &ProcessIndex| {
            let is_member =
                |member: &Member| [member.record, member.hello.record].contains(&Some(index));
            let is_late = self.late.iter().any(|&(_, late)| late == index);
            !is_late && !self.members.iter().any(is_member)
        };
        let reserved = self
            .shared
            .processes()
            .filter(|(_, process)| process.state() == State::Reserved);
        let now: Vec<ProcessIndex> = reserved
            .map(|(index, _)| index)
            .filter(is_awaited)
            .collect();
        self.awaited.retain(|(index, _)| now.contains(index));
        for index in now {
            if !self.awaited.iter().any(|(known, _)| *known == index) {
                self.awaited.push((index, Instant::now()));
            }
        }
    }

    /// Frees records whose process never came, or has ended. While any process is there that has
    /// not said hello, it may be the one: on a busy machine it is slow, and has pages in the
    /// record's slots.
    pub(super) fn release_orphans(&mut self) {
        let has_ended = |index: &ProcessIndex| self.shared.process(*index).offer() == Offer::Ended;
        let awaited = self.awaited.iter().map(|&(index, _)| index);
        let ended: Vec<ProcessIndex> = awaited.filter(has_ended).collect();
        if !ended.is_empty() {
            // One may have said hello before it ended.
            self.admit_arrivals();
            self.find_children();
        }
        let shared = &self.shared;
        let may_come = self.strangers.has_silent();
        let may_have_come = self.entrance.may_hold_some();
        self.awaited.retain(|(index, since)| {
            let is_due = match ended.contains(index) {
                true => !may_have_come,
                false => since.elapsed() > ORPHAN_LIMIT && !may_come,
            };
            if is_due {
                shared.release(*index);
            }
            !is_due
        });
    }

    /// Process `pid` executes a program, or its `child` has.
    pub(super) fn note_exec(&mut self, connection: OwnedFd, pid: u32, child: Option<u32>) {
        match child {
            None => self.strangers.await_exec(connection, pid),
            // In a namespace of its own a process knows others by other numbers.
            Some(child) if parent_of(child) == Some(pid) => self.strangers.note_exec(child),
            Some(_) => {}
        }
    }

    /// Finds the programs that are not managed.
    pub(super) fn look_for_strangers(&mut self) {
        let managed = self.members.iter().map(|member| member.peer.pid).collect();
        self.strangers.look(&managed);
    }
}
