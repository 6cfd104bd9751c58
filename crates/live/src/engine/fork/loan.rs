//! The userfaultfd of a forked child, which the kernel makes during the fork and hands to the
//! parent's engine.
//!
//! The child's memory belongs to it from the first moment on, so that each touch of a page that the
//! child lacks waits: also that of another process, which reads the child's memory before the child
//! has an engine. The parent's engine keeps it open until the child's has taken a copy. If it were
//! closed in between, that process would read zeros, and the child would keep them.
//!
//! # Invariants
//! 1. A number in a child's record is that of a userfaultfd which this engine has open.
//! 2. At rest nothing is allocated: there is one place for the child of this fork.

use crate::shared::{Offer, ProcessIndex, Shared};
use crate::sys::program;
use crate::sys::uffd::Uffd;

/// The userfaultfds that an engine keeps for the children of its program.
#[derive(Default)]
pub(super) struct Loans {
    /// The child of the fork that goes on.
    child: Option<ProcessIndex>,
    /// The userfaultfd that came during this fork, ...
    born: Option<Uffd>,
    /// ... and how many have. Of several it is not known which is the child's: another thread has
    /// forked unannounced meanwhile.
    count: u32,
    /// Those of earlier children that have not been taken.
    lent: Vec<(ProcessIndex, Uffd)>,
}

impl Loans {
    /// Begins with the fork of `child`.
    pub(super) fn begin(&mut self, child: ProcessIndex) {
        (self.child, self.count) = (Some(child), 0);
    }

    /// Offers a userfaultfd that has come during a fork to its child.
    pub(super) fn offer(&mut self, uffd: Uffd, shared: &Shared) {
        self.count += 1;
        let Some(child) = self.child.filter(|_| program::is_engine()) else {
            // From a thread of the program nobody else can take it.
            return;
        };
        let offer = match self.count {
            1 => Offer::File(uffd.number()),
            _ => Offer::Nothing,
        };
        let is_offered = shared.process(child).offer_userfaultfd(offer);
        self.born = Some(uffd).filter(|_| is_offered && self.count == 1);
    }

    /// Ends with a fork.
    pub(super) fn end(&mut self) {
        if let Some(loan) = self.child.take().zip(self.born.take()) {
            self.lent.push(loan);
        }
    }

    /// Closes what children have taken, or will never take: they have ended. Frees nothing.
    /// `witness` is a page that is registered and present in each child, and one to copy there in
    /// vain.
    pub(super) fn close_taken(&mut self, shared: &Shared, witness: (usize, usize)) {
        let is_open = |child: ProcessIndex, uffd: &Uffd| {
            let is_offered = shared.process(child).offer() == Offer::File(uffd.number());
            is_offered && !uffd.has_ended(witness.0, witness.1)
        };
        self.lent.retain(|(child, uffd)| is_open(*child, uffd));
        if let Some(child) = self.child {
            self.born = self.born.take().filter(|uffd| is_open(child, uffd));
        }
    }

    /// Returns true if a child has not taken its own yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Forgets all of them, in a forked child: their numbers mean nothing there.
    pub(super) fn forget(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}
