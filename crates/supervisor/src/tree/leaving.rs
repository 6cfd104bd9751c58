//! Engines that leave: with their programs, as they should, or without.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use tidemark_live::control;

use super::{Member, Tree};
use crate::departures::{is_leaving, is_over};
use crate::time::timespec;

/// The time that an engine may take to leave when its program has gone.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);

impl Tree {
    /// Ends the program at `place`, whose connection is over, if it still needs its engine.
    pub(super) fn end_abandoned(&mut self, place: usize) {
        let member = &self.members[place];
        if member.end_program() {
            let pid = member.hello.pid;
            self.notes.push(format!(
                "the engine of process {pid} was ended, and the process with it: its memory was \
                 out of reach"
            ));
        }
    }
}

impl Member {
    /// Takes in what the engine says, and whether the other end has gone.
    pub(super) fn hear(&mut self) -> bool {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        match control::hear(self.connection.as_fd()) {
            Err(error) => ![WouldBlock, Interrupted].contains(&error.kind()),
            Ok(heard) => {
                self.has_left |= heard.leaves;
                if let Some(line) = heard.line() {
                    eprint!("{line}");
                }
                self.memory = heard.memory.or(self.memory.take());
                heard.is_over
            }
        }
    }

    /// Takes in all that an engine says until its end, which is awaited: its program has gone.
    pub(super) fn hear_out(&mut self) {
        let end = Instant::now() + LEAVING_LIMIT;
        while self.memory.is_some() && !self.hear() {
            let left = end.saturating_duration_since(Instant::now());
            let mut files = [PollFd::new(&self.connection, PollFlags::IN)];
            if left.is_zero() || !matches!(poll(&mut files, Some(&timespec(left))), Ok(1..)) {
                return;
            }
        }
    }

    /// Ends a program whose engine has been ended: nobody brings its pages any more. Says whether
    /// there was one.
    fn end_program(&self) -> bool {
        let life = self.peer.life.as_ref();
        let is_abandoned = self.memory.is_some() && !self.has_left;
        // The first of a namespace takes all others with it when it goes.
        let life = life.filter(|life| is_abandoned && !is_over(life) && !is_leaving(self.peer.pid));
        life.is_some_and(|life| pidfd_send_signal(life, Signal::KILL).is_ok())
    }
}
