//! Acceptance: taking in connections while there may be no file descriptor for them.
//!
//! A connection that can't be taken in for lack of descriptors, or of memory, stays in its queue,
//! and a wait for it ends at once, again and again. So its listener is not waited for until some
//! time has passed: by then something may have been closed.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;

/// The time for which a listener rests.
const REST: Duration = Duration::from_millis(100);

/// The state of a listener.
#[derive(Debug)]
pub struct Acceptance {
    /// The words for the clients that connect, for messages.
    who: &'static str,
    rests_until: Option<Instant>,
    is_told: bool,
}

impl Acceptance {
    /// The state of a listener to which `who` connect.
    pub fn of(who: &'static str) -> Acceptance {
        Acceptance {
            who,
            rests_until: None,
            is_told: false,
        }
    }

    /// The events to wait for.
    pub fn flags(&self) -> PollFlags {
        match self.due() {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        }
    }

    /// The time until which the listener rests, if it does.
    pub fn due(&self) -> Option<Instant> {
        self.rests_until.filter(|&until| Instant::now() < until)
    }

    /// The connection of an attempt to take one in. After one that failed for want of something
    /// the listener rests, which is said once.
    pub fn keep<T>(&mut self, attempt: io::Result<T>) -> Option<T> {
        let error = match attempt {
            Ok(connection) => return Some(connection),
            Err(error) => error,
        };
        let lack = match Errno::from_io_error(&error)? {
            Errno::MFILE => "too many files are open, and `ulimit -n` allows no more",
            Errno::NFILE => "too many files are open on this machine",
            Errno::NOBUFS | Errno::NOMEM => "the kernel has no memory",
            // It has gone again: the next one is looked for at once.
            _ => return None,
        };
        self.rests_until = Some(Instant::now() + REST);
        if !std::mem::replace(&mut self.is_told, true) {
            let line = format!("tidemark: {} have to wait: {lack}\n", self.who);
            // If no process reads it, none needs it.
            let _ = io::stderr().write_all(line.as_bytes());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_rests_for_want_of_descriptors_and_is_waited_for_again() {
        let mut acceptance = Acceptance::of("processes");
        assert_eq!(
            (acceptance.flags(), acceptance.due()),
            (PollFlags::IN, None)
        );
        assert_eq!(acceptance.keep(Ok(7)), Some(7));
        let failed = |errno: Errno| -> io::Result<u32> { Err(errno.into()) };
        for errno in [Errno::AGAIN, Errno::CONNABORTED] {
            assert_eq!(acceptance.keep(failed(errno)), None);
            assert_eq!(acceptance.due(), None);
        }
        let before = Instant::now();
        assert_eq!(acceptance.keep(failed(Errno::MFILE)), None);
        let until = acceptance.rests_until.unwrap();
        assert!(until >= before + REST && acceptance.is_told);
        // As if that time had passed.
        acceptance.rests_until = Some(Instant::now());
        assert_eq!(
            (acceptance.flags(), acceptance.due()),
            (PollFlags::IN, None)
        );
    }
}
