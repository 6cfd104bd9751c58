//! Actions: what the steward decides, carried out; and what it is to hear.

use std::os::fd::AsFd;

use tidemark_core::load::registry::Entry;
use tidemark_core::load::tasks::TaskControl;
use tidemark_core::load::unlimited;
use tidemark_core::time::Time;
use tidemark_live::control;
use tidemark_tasks::{Action, By, Steward, TaskId};

use super::words::Words;
use super::{Member, Tree};
use crate::time::now_ns;
use crate::{foreground, host};

impl Tree {
    /// Has the steward hear something, with the time and the words that tasks share with it, and
    /// carries out what it decides.
    pub(super) fn tell_steward(&mut self, tell: impl FnOnce(&mut Steward, Time, &mut Words<'_>)) {
        let mut words = Words {
            shared: &self.shared,
            members: &self.members,
            late: &self.late,
        };
        tell(&mut self.steward, Time(now_ns()), &mut words);
        while let Some(action) = self.steward.poll_action() {
            self.carry_out_action(action);
        }
    }

    fn carry_out_action(&mut self, action: Action) {
        match action {
            Action::Admit { task, frames } => {
                if let Some(place) = self.place_of(task) {
                    self.admit(place, frames);
                }
            }
            Action::TurnAway(task) => {
                if let Some(place) = self.place_of(task) {
                    self.turn_away(place, None);
                }
            }
            Action::Poke(task) => {
                if let Some(place) = self.place_of(task) {
                    // One that is gone is found out when it is listened to.
                    let _ = control::poke(self.members[place].connection.as_fd());
                }
            }
            Action::Turn { task, is_suspended } => {
                if let Some(place) = self.place_of(task) {
                    self.note_turn(self.members[place].hello.pid, is_suspended);
                }
            }
            Action::Suspension {
                task,
                is_suspended,
                by,
            } => {
                if let Some(place) = self.place_of(task) {
                    self.mark_suspension(self.members[place].hello.pid, is_suspended, by);
                }
            }
        }
    }

    fn place_of(&self, task: TaskId) -> Option<usize> {
        self.members.iter().position(|member| member.task == task)
    }

    /// Lets the load control `entry` decide which tasks run. Tasks that another load control has
    /// suspended go on.
    pub fn control_load_by(&mut self, entry: &Entry) {
        // One that never says anything need not be asked.
        let is_none = entry.description.name == unlimited::DESCRIPTION.name;
        let built = (!is_none).then(|| entry.build(&[]));
        let built = built.map(|it| it.expect("knobs have their defaults"));
        let control = built.map(|load| TaskControl::new(load, host::processors() as u32));
        self.tell_steward(|steward, now, words| steward.control_by(now, words, control));
    }

    /// Finds out whether the program that the run began with has the terminal, and has the steward
    /// spare it if so.
    pub(super) fn spare_foreground(&mut self) {
        if !self.steward.is_controlled() {
            return;
        }
        let main = self.strangers.main();
        let member = self.members.iter().find(|it| Some(it.peer.pid) == main);
        let member = member.filter(|member| foreground::holds(member.peer.pid));
        let task = member.map(|member| member.task);
        self.tell_steward(|steward, now, words| steward.handle_foreground(now, words, task));
    }

    /// Suspends the task at `place` in the table by request, or takes that back.
    pub(super) fn request_suspension(&mut self, place: usize, is_suspended: bool) {
        let task = self.members[place].task;
        self.tell_steward(|steward, now, words| {
            steward.handle_request(now, words, task, is_suspended);
        });
    }

    /// Divides memory, as something has changed.
    pub(super) fn divide(&mut self) {
        self.tell_steward(|steward, now, words| steward.handle_change(now, words));
    }

    /// Lets every task go on that is suspended, and suspends none from here on.
    pub fn resume_all(&mut self) {
        self.tell_steward(|steward, now, words| steward.handle_end(now, words));
    }

    /// Returns true if `by` has a member wait.
    pub(super) fn is_suspended_by(&self, member: &Member, by: By) -> bool {
        self.steward.is_suspended_by(member.task, by)
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
}
