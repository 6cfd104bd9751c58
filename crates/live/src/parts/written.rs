//! Files that are written back: who waits for that, and which files are the kernel's business.
//!
//! # Between engines
//! Two engines that have pages of one file would undo each other's writes. An engine that writes a
//! file back has a [`Claim`]: a socket that listens, of a name made from the file's identity. The
//! kernel gives a name out once, and takes it back when the engine ends. Who finds it taken
//! connects, and waits for the end of the connection: by then the other engine has given the file
//! up, and both processes map it as the kernel does.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use tidemark_core::id::PagerId;

use crate::flush::Flush;
use crate::hand::Begun;
use crate::requests::{Taken, WriteBack};
use crate::sys::{Errno, socket};

/// The device of a file, and its number there.
pub type Identity = (u64, u64);

/// The time that another engine has to give a file up.
const YIELD_NS: u64 = 5_000_000_000;

/// The state of files that are written back, but for where they are mapped.
#[derive(Default)]
pub struct Written {
    /// The writes that threads wait for.
    pub backs: Vec<Back>,
    /// The range that is about to become the kernel's. Faults there wait.
    pub held: Option<(usize, usize)>,
    /// True if the engine writes all that is left, and ends then.
    pub is_finishing: bool,
    /// The files that the program has mapped to write by mappings of the kernel's.
    natives: BTreeSet<Identity>,
    claims: BTreeMap<Identity, OwnedFd>,
}

/// A thread's wait for pages to be written to their files.
pub struct Back {
    /// The request.
    pub taken: Taken,
    /// The reason.
    pub why: WriteBack,
    /// The pages.
    pub pieces: Vec<Piece>,
    /// The first error.
    pub error: Option<(PagerId, Errno)>,
    /// The files that are to be on their disk.
    pub unsynchronized: Vec<PagerId>,
    /// The one that is waited for.
    pub synchronizing: Option<(PagerId, Begun)>,
}

/// A part of a file that is written.
pub struct Piece {
    /// The file.
    pub pager: PagerId,
    /// Its pages.
    pub flush: Flush,
    /// The number of its writes that had failed before.
    pub failures: u64,
}

/// The outcome of a [claim](Written::claim).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// No other engine writes the file back.
    Granted,
    /// Another engine did, and has been asked to give the file up.
    Taken,
}

impl Written {
    /// Returns true if mappings of a file are the kernel's.
    pub fn is_native(&self, file: Identity) -> bool {
        self.natives.contains(&file)
    }

    /// Notes that mappings of a file are the kernel's from now on.
    pub fn note_native(&mut self, file: Identity) {
        self.natives.insert(file);
    }

    /// Claims a file against other engines.
    pub fn claim(&mut self, file: Identity) -> Claim {
        if self.claims.contains_key(&file) {
            return Claim::Granted;
        }
        match socket::listen_by_name(&name_of(file)) {
            Ok(listener) => {
                self.claims.insert(file, listener);
                Claim::Granted
            }
            Err(Errno::ADDRINUSE) => {
                // It may have ended meanwhile. If it does not yield, there is no more to be done.
                let _ = socket::await_end_of(&name_of(file), YIELD_NS);
                Claim::Taken
            }
            // Where there are no such names there is nothing to be known of others.
            Err(_) => Claim::Granted,
        }
    }

    /// Gives up the claims on files that are not `needed`.
    pub fn keep_claims(&mut self, needed: impl Fn(Identity) -> bool) {
        self.claims.retain(|file, _| needed(*file));
    }

    /// The files that other engines ask for, each with what ends their wait when it is dropped.
    pub fn asked_for(&self) -> Vec<(Identity, OwnedFd)> {
        let asked = self.claims.iter();
        let asked = asked.filter_map(|(file, listener)| Some((*file, socket::accept(listener)?)));
        asked.collect()
    }

    /// Forgets, in a forked child, what its parent's engine had to do.
    pub fn begin_in_child(&mut self) {
        self.backs.clear();
        self.held = None;
        // The numbers of these files mean nothing here.
        std::mem::take(&mut self.claims)
            .into_values()
            .for_each(std::mem::forget);
    }
}

/// The name of a claim.
fn name_of((device, number): Identity) -> String {
    format!("tidemark-written-{device:x}-{number:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_claimed_once_and_given_up_when_it_is_asked_for() {
        let file = (u64::from(std::process::id()), 77);
        let mut first = Written::default();
        assert_eq!(first.claim(file), Claim::Granted);
        assert_eq!(first.claim(file), Claim::Granted);
        let second = std::thread::spawn(move || {
            let mut second = Written::default();
            assert_eq!(second.claim(file), Claim::Taken);
            assert_eq!(second.claim(file), Claim::Granted);
        });
        let asked = loop {
            let asked = first.asked_for();
            if !asked.is_empty() {
                break asked;
            }
            std::thread::yield_now();
        };
        assert_eq!(
            asked.iter().map(|(file, _)| *file).collect::<Vec<_>>(),
            [file]
        );
        first.keep_claims(|_| false);
        drop(asked);
        second.join().unwrap();
    }
}
