//! The userfaultfd of a forked child, which the kernel makes during the fork and hands to the
//! parent's engine.
//!
//! The child's memory belongs to it from the first moment on, so that each touch of a page that the
//! child lacks waits: also that of another process, which reads the child's memory before the child
//! has an engine. The parent's engine keeps it open until the child's has taken a copy. If it were
//! closed in between, that process would read zeros, and the child would keep them.
//!
//! It reports the child's end as well: the supervisor can then give the child's part of memory to
//! others. So it is kept until the supervisor knows the child.
//!
//! # Invariants
//! 1. A number in a child's record is that of a userfaultfd which this engine has open.
//! 2. At rest nothing is allocated: there is one place for the child of this fork.

use crate::shared::{Loan, Offer, Process, ProcessIndex, Shared, State};
use crate::sys::program;
use crate::sys::uffd::Uffd;

/// The userfaultfds that an engine keeps for the children of its program.
#[derive(Default)]
pub struct Loans {
    /// The place in the table of the process whose engine this is.
    lender: u32,
    /// The child of the fork that goes on.
    child: Option<ProcessIndex>,
    /// The userfaultfd that came during this fork.
    born: Option<Uffd>,
    /// The number of userfaultfds that came during this fork. Of several it is not known which is
    /// the child's: another thread has forked unannounced meanwhile.
    count: u32,
    /// The userfaultfds of earlier children that the supervisor does not know yet.
    lent: Vec<(ProcessIndex, Uffd)>,
}

impl Loans {
    /// Begins with the fork of `child` by the process `lender`.
    pub fn begin(&mut self, lender: ProcessIndex, child: ProcessIndex) {
        (self.lender, self.child, self.count) = (lender.0, Some(child), 0);
    }

    /// Offers a userfaultfd that has come during a fork to its child.
    pub fn offer(&mut self, uffd: Uffd, shared: &Shared) {
        self.count += 1;
        let Some(child) = self.child.filter(|_| program::is_engine()) else {
            // From a thread of the program it can't be taken by another process.
            return;
        };
        let offer = match self.count {
            1 => Offer::File(loan_of(self.lender, &uffd)),
            _ => Offer::Nothing,
        };
        let is_offered = shared.process(child).offer_userfaultfd(offer);
        self.born = Some(uffd).filter(|_| is_offered && self.count == 1);
    }

    /// Ends with a fork.
    pub fn end(&mut self) {
        if let Some(loan) = self.child.take().zip(self.born.take()) {
            self.lent.push(loan);
        }
    }

    /// Closes what children need here no longer: the supervisor knows them, or they have ended.
    /// Frees nothing. `witness` is a page that is registered and present in each child, and one to
    /// copy there in vain.
    pub fn close_needless(&mut self, shared: &Shared, witness: (usize, usize)) {
        let lender = self.lender;
        let is_needed = |child: ProcessIndex, uffd: &Uffd| {
            is_needed(shared.process(child), loan_of(lender, uffd), || {
                uffd.has_ended(witness.0, witness.1)
            })
        };
        self.lent.retain(|(child, uffd)| is_needed(*child, uffd));
        if let Some(child) = self.child {
            self.born = self.born.take().filter(|uffd| is_needed(child, uffd));
        }
    }

    /// Returns true if one of a child is open.
    pub fn is_waiting(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Returns true if one of a child is open, also of a fork that has not been seen to end.
    pub fn is_awaited(&self) -> bool {
        self.is_waiting() || self.born.is_some()
    }

    /// Forgets all of them, in a forked child: their numbers mean nothing there.
    pub fn forget(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

fn loan_of(lender: u32, uffd: &Uffd) -> Loan {
    Loan {
        lender,
        number: uffd.number(),
    }
}

/// Returns true if the child with this record still needs the `loan`. If it is found to have ended,
/// that is noted there.
fn is_needed(record: Process<'_>, loan: Loan, has_ended: impl FnOnce() -> bool) -> bool {
    let is_open = match record.offer() {
        Offer::File(offered) => offered == loan,
        Offer::Taken(taken) => taken == loan && record.state() == State::Reserved,
        Offer::Open | Offer::Nothing | Offer::Ended => false,
    };
    let is_over = is_open && has_ended();
    if is_over {
        record.note_ended_child(loan);
    }
    is_open && !is_over
}
