//! The entrance: connections of engines, until they have said who they are.
//!
//! An engine says hello at once, but on a busy machine it may take long until it runs. A connection
//! that has said nothing is kept for as long as it is open, beside all else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use tidemark_live::control::{self, Opening};

use crate::acceptance::Acceptance;
use crate::peers::{self, Peer};

/// A listener, and those of its connections that have said nothing.
#[derive(Debug)]
pub struct Entrance {
    listener: UnixListener,
    acceptance: Acceptance,
    silent: Vec<Silent>,
}

/// A connection that has said nothing.
#[derive(Debug)]
struct Silent {
    connection: UnixStream,
    peer: Peer,
}

/// A connection, with what it begins with.
#[derive(Debug)]
pub struct Arrival {
    /// The connection. Reading from it blocks.
    pub connection: OwnedFd,
    /// The process at its other end.
    pub peer: Peer,
    /// The words it begins with.
    pub opening: Opening,
}

impl Entrance {
    /// The entrance at `listener`.
    pub fn new(listener: UnixListener) -> Entrance {
        // Fails for a descriptor that is none.
        let made = listener.set_nonblocking(true);
        debug_assert!(made.is_ok());
        Entrance {
            listener,
            acceptance: Acceptance::of("processes that come"),
            silent: Vec::new(),
        }
    }

    /// Takes back the `connections` of an entrance that was [taken apart](Self::into_files).
    pub fn resume(&mut self, connections: impl IntoIterator<Item = OwnedFd>) {
        for connection in connections {
            // They were looked at before.
            if let Some(peer) = peers::find(&connection, |_| true) {
                let connection = connection.into();
                self.silent.push(Silent { connection, peer });
            }
        }
    }

    /// The listener, and the connections that have said nothing.
    pub fn into_files(self) -> (OwnedFd, Vec<OwnedFd>) {
        let silent = self.silent.into_iter();
        let silent = silent.map(|silent| silent.connection.into());
        (self.listener.into(), silent.collect())
    }

    /// The sources to wait for: when one is readable, a process may have [arrived](Self::admit).
    pub fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listener = PollFd::from_borrowed_fd(self.listener.as_fd(), self.acceptance.flags());
        let silent = self.silent.iter().map(|silent| silent.connection.as_fd());
        let silent = silent.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
        std::iter::once(listener).chain(silent)
    }

    /// The sources to wait for, as files that are waited for until they can be read.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let silent = self.silent.iter().map(|silent| silent.connection.as_fd());
        let rests = self.acceptance.due().is_some();
        let listener = (!rests).then(|| self.listener.as_fd());
        listener.into_iter().chain(silent)
    }

    /// Returns true if some have come and said nothing.
    pub fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Returns true if a process may have come, and not been [admitted](Self::admit): the listener
    /// rests, or some have said nothing.
    pub fn may_hold_some(&self) -> bool {
        self.has_silent() || self.due().is_some()
    }

    /// The time until which the listener rests, if it does.
    pub fn due(&self) -> Option<Instant> {
        self.acceptance.due()
    }

    /// Takes in the connections that have come, and answers those that have begun to speak. Who is
    /// no process of the run, as [`peers::find`] finds by `is_member`, is turned away, and one that
    /// has gone again or talks nonsense is forgotten. Never blocks.
    pub fn admit(&mut self, is_member: impl Fn(u32) -> bool) -> Vec<Arrival> {
        while let Some((connection, _)) = self.acceptance.keep(self.listener.accept()) {
            let is_ready = connection.set_nonblocking(true).is_ok();
            let peer = peers::find(&connection, &is_member).filter(|_| is_ready);
            let silent = peer.map(|peer| Silent { connection, peer });
            self.silent.extend(silent);
        }
        let mut arrivals = Vec::new();
        for silent in std::mem::take(&mut self.silent) {
            match control::read_opening(silent.connection.as_fd()) {
                Ok(opening) => arrivals.extend(silent.arrive(opening)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.silent.push(silent);
                }
                Err(_) => {}
            }
        }
        arrivals
    }
}

impl Silent {
    fn arrive(self, opening: Opening) -> Option<Arrival> {
        self.connection.set_nonblocking(false).ok()?;
        Some(Arrival {
            connection: self.connection.into(),
            peer: self.peer,
            opening,
        })
    }
}

#[cfg(test)]
mod tests {
    use tidemark_live::control::Hello;

    use super::*;
    use crate::folder::PrivateFolder;

    const HELLO: Hello = Hello {
        pid: 7,
        parent: 1,
        record: None,
    };

    #[test]
    fn one_that_is_slow_to_say_hello_is_waited_for_beside_others() {
        let folder = PrivateFolder::new().unwrap();
        let (listener, socket) = folder.listen().unwrap();
        let mut entrance = Entrance::new(listener);
        assert!(entrance.admit(|_| true).is_empty());
        let slow = control::open_connection(&socket).unwrap();
        let gone = control::open_connection(&socket).unwrap();
        assert!(entrance.admit(|_| true).is_empty());
        drop(gone);
        let quick = control::greet(&socket, HELLO).unwrap();
        let pid_of = |arrival: &Arrival| match arrival.opening {
            Opening::Hello(hello) => hello.pid,
            Opening::Exec { .. } => 0,
        };
        let arrived = entrance.admit(|_| true);
        assert_eq!(arrived.iter().map(pid_of).collect::<Vec<u32>>(), [7]);
        assert_eq!(
            entrance.files().count(),
            2,
            "the listener, and the slow one"
        );
        // It goes on to another supervisor.
        let (listener, silent) = entrance.into_files();
        let mut entrance = Entrance::new(listener.into());
        entrance.resume(silent);
        control::introduce(slow.as_fd(), Hello { pid: 8, ..HELLO }).unwrap();
        let arrived = entrance.admit(|_| true);
        assert_eq!(arrived.iter().map(pid_of).collect::<Vec<u32>>(), [8]);
        assert_eq!(entrance.sources().count(), 1);
        drop(quick);
    }
}
