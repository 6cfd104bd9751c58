//! A connection to an engine, from its hello to its end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use tidemark_live::control;

use crate::departures::{is_leaving, is_over};
use crate::peers::Peer;
use crate::time::timespec;

/// The time that an engine may take to leave when its program has gone.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);

/// A connection to an engine.
#[derive(Debug)]
pub struct Connection {
    file: OwnedFd,
    /// A reference to the program's userfaultfd, where the engine is a process of its own: without
    /// any, pages that are missing would read as zeros.
    memory: Option<OwnedFd>,
    /// The engine has said that its program has left its memory.
    has_left: bool,
    /// The other end has gone.
    is_over: bool,
}

impl Connection {
    /// The connection on which an engine has said hello, and the reference to its program's
    /// userfaultfd, if it has sent one by now.
    pub fn new(file: OwnedFd, memory: Option<OwnedFd>) -> Connection {
        Connection {
            file,
            memory,
            has_left: false,
            is_over: false,
        }
    }

    /// Returns true if the engine is known to be a process of its own.
    pub fn is_apart(&self) -> bool {
        self.memory.is_some()
    }

    /// Takes in what the engine has said by now. Returns true if the other end has gone.
    pub fn hear(&mut self) -> bool {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        while !self.is_over {
            match control::hear(self.file.as_fd()) {
                Err(error) if error.kind() == WouldBlock => break,
                Err(error) => self.is_over = error.kind() != Interrupted,
                Ok(heard) => {
                    self.has_left |= heard.leaves;
                    if let Some(line) = heard.line() {
                        eprint!("{line}");
                    }
                    self.memory = heard.memory.or(self.memory.take());
                    self.is_over = heard.is_over;
                }
            }
        }
        self.is_over
    }

    /// Takes in all that an engine says until its end, which is awaited: its program has gone.
    pub fn hear_out(&mut self) {
        let end = Instant::now() + LEAVING_LIMIT;
        while self.is_apart() && !self.hear() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // A wait that a signal interrupts is one that ended early.
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            let _ = poll(&mut files, Some(&timespec(left)));
        }
    }

    /// Returns true if the engine does not use the record of its process any more, which has gone:
    /// an engine that is a thread of the program has gone with it.
    pub fn is_done(&self) -> bool {
        !self.is_apart() || self.is_over
    }

    /// Ends the program if its engine was ended, and has not said that the program has left its
    /// memory: no engine brings its pages any more. Returns true if there was one.
    pub fn end_abandoned(&self, program: &Peer) -> bool {
        let life = program.life.as_ref();
        let is_abandoned = self.is_apart() && !self.has_left;
        // The first of a namespace takes all others with it when it goes.
        let life = life.filter(|life| is_abandoned && !is_over(life) && !is_leaving(program.pid));
        life.is_some_and(|life| pidfd_send_signal(life, Signal::KILL).is_ok())
    }

    /// The connection, and the reference to the program's userfaultfd.
    pub fn into_files(self) -> (OwnedFd, Option<OwnedFd>) {
        (self.file, self.memory)
    }
}

/// The line for the user when a program was [ended](Connection::end_abandoned).
pub fn tell_of_abandoned(pid: u32) -> String {
    format!(
        "the engine of process {pid} was ended, and the process with it: its memory was out of \
         reach"
    )
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_record_is_used_until_the_engine_has_gone() {
        let (ours, engines) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours.into(), None);
        assert!(connection.is_done());
        control::share_memory(engines.as_fd(), engines.as_fd()).unwrap();
        control::leave(engines.as_fd());
        assert!(!connection.hear());
        assert!(connection.is_apart() && connection.has_left && !connection.is_done());
        let engine = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(engines);
        });
        // The reference to the memory is one to the other end here.
        connection.memory = Some(connection.file.try_clone().unwrap());
        connection.hear_out();
        engine.join().unwrap();
        assert!(connection.is_done());
    }
}
