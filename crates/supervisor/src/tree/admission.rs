//! Admission: processes that come are taken in, wait for memory, or are turned away.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tidemark_core::time::Time;
use tidemark_live::control::{self, Grant, Hello, Opening};
use tidemark_live::shared::{ProcessIndex, Shared};
use tidemark_results::Ending;
use tidemark_tasks::{Record, Remains};

use super::{Member, Tree};
use crate::calls::Calls;
use crate::connection::Connection;
use crate::entrance::Arrival;
use crate::peers::Peer;
use crate::time::now_ns;

/// The reasons why a process can't be taken in.
const NO_MEMORY: &str = "no memory was left for one more process";
const NO_RECORD: &str = "there are too many processes";

impl Tree {
    /// Takes in the processes that have said who they are.
    pub(super) fn admit_arrivals(&mut self) {
        let is_member = |pid| self.members.iter().any(|member| member.peer.pid == pid);
        for Arrival {
            connection,
            peer,
            opening,
        } in self.entrance.admit(is_member)
        {
            match opening {
                Opening::Hello(hello) => self.take_in(connection, peer, hello),
                Opening::Exec { child } => self.note_exec(connection, peer.pid, child),
            }
        }
    }

    fn take_in(&mut self, connection: OwnedFd, peer: Peer, mut hello: Hello) {
        // In a namespace of its own a process has another number there, which others have, too.
        hello.pid = peer.pid;
        if !peer.may_share(hello.record.is_some()) {
            self.strangers.count(peer.pid);
            return control::refuse(connection.as_fd());
        }
        let is_unknown = |index| !self.shared.is_reserved(index);
        if hello.record.is_some_and(is_unknown) {
            return control::refuse(connection.as_fd());
        }
        // exec ends the old engine before the new one says hello; its end may be seen after.
        while let Some(place) = self
            .members
            .iter()
            .position(|old| old.hello.pid == hello.pid)
        {
            self.members[place].connection.hear_out();
            self.remove(place, Ending::Gone);
        }
        if hello.record.is_none() {
            self.ended.note_ending(hello.pid, Ending::Replaced);
        }
        let connection = Connection::new(connection, None);
        let claimed = hello.record.map(|index| Record(index.0));
        let task = self.steward.handle_arrival(Time(now_ns()), claimed);
        self.members
            .push(Member::new(task, connection, hello, peer));
    }

    /// Answers the hello of the newcomer at `place`, which may use `frames`, or turns it away if
    /// that fails.
    pub(super) fn admit(&mut self, place: usize, frames: u64) {
        let files = [Some(self.shared.as_fd()), Some(self.swap.as_fd())];
        let decisions = self.decisions.as_ref().map(AsFd::as_fd);
        let calls = self.calls.as_ref();
        let listener = calls.map(|calls| calls.listener().as_fd());
        let files = files.into_iter().chain([decisions, listener]).flatten();
        let files: Vec<BorrowedFd<'_>> = files.collect();
        let namespace = calls.map_or(0, Calls::namespace);
        let member = &mut self.members[place];
        // Before it is answered: from then on it may make calls.
        let entered = calls.map_or(Ok(()), |calls| {
            calls.enter(member.peer.pid, &member.connection)
        });
        let granted = (frames as u32, namespace);
        match entered.and_then(|()| member.answer(&self.shared, granted, &files)) {
            Ok(index) => self.steward.handle_admitted(member.task, Record(index.0)),
            Err(error) => {
                let task = member.task;
                self.steward.handle_gone(task, Remains::default());
                self.turn_away(place, Some(error));
            }
        }
    }

    /// Lets a newcomer run unmanaged, for want of memory or for an `error`, and notes it, unless it
    /// has gone. A forked child needs its record until it has all its pages, and closes the
    /// connection then.
    pub(super) fn turn_away(&mut self, place: usize, error: Option<std::io::Error>) {
        let mut member = self.members.remove(place);
        if let Some(calls) = &self.calls {
            calls.leave(member.peer.pid);
        }
        let pid = member.hello.pid;
        control::refuse(member.connection.as_fd());
        let has_gone = member.connection.hear();
        match member.hello.record {
            Some(index) if has_gone => self.shared.release(index),
            Some(index) => self.late.push((member.connection, index)),
            None => {}
        }
        if !has_gone {
            let why = || error.map_or(NO_MEMORY.into(), |error| error.to_string());
            self.turned_away.get_or_insert_with(|| (pid, why(), 0)).2 += 1;
        }
    }

    /// A note of the newcomers that were turned away, if there were any.
    pub(super) fn note_turned_away(&mut self) -> Option<String> {
        Some(match self.turned_away.take()? {
            (pid, why, 1) => format!("process {pid} ran unmanaged: {why}"),
            (pid, why, count) => format!("{count} processes ran unmanaged, {pid} first: {why}"),
        })
    }
}

impl Member {
    /// Answers the hello: the member may use `frames`, and has the returned record. Its system
    /// calls are held up, with the numbers of a `namespace`, unless that is zero.
    ///
    /// # Errors
    /// There is no record for one more process, or this one has gone. Nothing has changed then.
    fn answer(
        &mut self,
        shared: &Shared,
        (frames, namespace): (u32, u32),
        files: &[BorrowedFd<'_>],
    ) -> std::io::Result<ProcessIndex> {
        // A forked child's record was claimed by its parent, and waits for it.
        let claimed = self.hello.record.or_else(|| shared.claim());
        let index = claimed.ok_or_else(|| std::io::Error::other(NO_RECORD))?;
        let process = shared.process(index);
        process.set_budget(frames);
        // Until the engine reports, it is taken to have understood this budget. A forked child may
        // still use what its parent left it.
        if process.understood() < frames.into() {
            process.set_understood(frames);
        }
        let grant = Grant {
            record: Some(index),
            frames_budget: frames,
            frames_max: shared.frames_max() as u32,
            namespace,
        };
        let answered = control::answer(self.connection.as_fd(), grant, files);
        match (&answered, self.hello.record) {
            (Ok(()), _) => self.record = Some(index),
            (Err(_), None) => shared.release(index),
            (Err(_), Some(_)) => {}
        }
        answered.map(|()| index)
    }
}
