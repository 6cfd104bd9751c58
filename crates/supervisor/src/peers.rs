//! Peers: the processes at the other end of connections.
//!
//! The socket can be reached by all, since a process of the run may have given up its rights, as
//! servers do, before it forks: its child must get at the pages that are out. Other users are
//! turned away before a word is said.

use std::os::fd::{AsFd, OwnedFd};

use crate::departures::life_of;
use crate::strangers::parent_of;

/// The number of generations that the search goes back.
const ANCESTORS_MAX: usize = 64;

/// A process that has connected.
#[derive(Debug)]
pub struct Peer {
    /// Its number here, which in a namespace of its own is not the one that it says.
    pub pid: u32,
    /// Tells that it has ended, and how; `None` if it has already.
    pub life: Option<OwnedFd>,
    /// True if the process is of another user, and descends from the run.
    is_foreign: bool,
    /// Its parent is a member, or it is of this user.
    is_near: bool,
}

impl Peer {
    /// Returns true if it may be given the memory that the run's processes share: what others keep
    /// on the swap file is not for a program of another user's, but for the child of one that has
    /// it already.
    pub fn may_share(&self, is_forked: bool) -> bool {
        !self.is_foreign || (self.is_near && is_forked)
    }
}

/// Finds the process that made `connection`. `None` if it is no process of this user, nor descends
/// from one with which `is_member` agrees, or from this process.
pub fn find(connection: impl AsFd, is_member: impl Fn(u32) -> bool) -> Option<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(connection).ok()?;
    let pid = credentials.pid.as_raw_nonzero().get().unsigned_abs();
    let is_foreign = credentials.uid != rustix::process::geteuid();
    let is_near = !is_foreign || parent_of(pid).is_some_and(&is_member);
    let own = std::process::id();
    let mut line = std::iter::successors(Some(pid), |&pid| parent_of(pid)).take(ANCESTORS_MAX);
    if !is_near && !line.any(|ancestor| ancestor == own || is_member(ancestor)) {
        return None;
    }
    Some(Peer {
        pid,
        life: life_of(credentials.pid),
        is_foreign,
        is_near,
    })
}
