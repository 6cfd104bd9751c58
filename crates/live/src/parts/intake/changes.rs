//! Changes of the address space of which not everything is known yet.
//!
//! Two threads' messages may come in another order than their changes, for addresses that one has
//! freed and the kernel gives to the other at once:
//!
//! - Memory is moved to where other memory was whose own message is still on its way. It is *late*:
//!   taken from where it was, it waits until the place is vacant, or nothing more is on its way.
//! - `mremap` unmaps what it has moved away from, and says so after it has told of the move. By
//!   then another thread may have moved something there: that message is *owed*, and means nothing
//!   to the newcomer.
//! - Memory is moved, unmapped and told of in the wrong order: what was moved is *unproven* until
//!   the kernel has been asked whether it is registered where it is said to be.
//!
//! While any change is under way the kernel refuses to move pages in or out ([`crate::machine`]).
//! As soon as none is, everything that was said is known, and these three are settled before
//! anything else is done.

use crate::parts::addresses::Carried;

/// Beyond all addresses that a program can have.
/// (With five levels of page tables these have 56 bits; a frame's entry has room for 58.)
const ASIDE_START: usize = 1 << 57;

/// The changes.
#[derive(Default)]
pub struct Changes {
    late: Vec<Late>,
    /// The ranges that `mremap` has moved away, whose unmapping is still to be told of.
    owed: Vec<(usize, usize)>,
    /// The ranges to which something has been moved.
    unproven: Vec<(usize, usize)>,
    /// The number of bytes of the aside that are taken.
    aside_bytes: usize,
}

/// Memory that was moved, and waits for its place.
pub struct Late {
    /// The address at which the core has it meanwhile.
    pub aside: usize,
    /// The address that it left.
    pub from: usize,
    /// The address that it goes to.
    pub to: usize,
    /// Its length.
    pub bytes: usize,
    /// All that is known of it.
    pub carried: Carried,
    /// The blank parts of it, from its start.
    pub blank: Vec<(usize, usize)>,
}

impl Changes {
    /// Returns true if everything is known of what was moved.
    pub fn is_settled(&self) -> bool {
        self.late.is_empty() && self.unproven.is_empty()
    }

    /// Takes in that the unmapping of a range is still to be told of.
    pub fn owe(&mut self, start: usize, end: usize) {
        self.owed.push((start, end));
    }

    /// Returns true if a range that was unmapped is one that an `mremap` owed word of.
    pub fn pay_off(&mut self, start: usize, end: usize) -> bool {
        let owed = self.owed.iter().position(|range| *range == (start, end));
        owed.map(|index| self.owed.swap_remove(index)).is_some()
    }

    /// Forgets what is owed: nothing more is to come.
    pub fn forget_owed(&mut self) {
        self.owed.clear();
    }

    /// Finds a place for memory that was moved, which no program can have.
    pub fn claim_aside(&mut self, bytes: usize) -> usize {
        if self.late.is_empty() {
            self.aside_bytes = 0;
        }
        let start = ASIDE_START + self.aside_bytes;
        self.aside_bytes += bytes;
        start
    }

    /// Has memory that was moved wait for its place.
    pub fn add_late(&mut self, late: Late) {
        self.late.push(late);
    }

    /// Takes all that waits, oldest first.
    pub fn take_late(&mut self) -> Vec<Late> {
        std::mem::take(&mut self.late)
    }

    /// Takes the oldest that waits for a place that `is_vacant` by now.
    pub fn take_ready(&mut self, is_vacant: impl Fn(usize, usize) -> bool) -> Option<Late> {
        let is_ready = |late: &Late| is_vacant(late.to, late.to + late.bytes);
        let index = self.late.iter().position(is_ready)?;
        Some(self.late.remove(index))
    }

    /// Takes in that something has moved to a range, as far as is known.
    pub fn add_unproven(&mut self, start: usize, end: usize) {
        self.unproven.push((start, end));
    }

    /// Takes one of those ranges.
    pub fn take_unproven(&mut self) -> Option<(usize, usize)> {
        self.unproven.pop()
    }

    /// Forgets those ranges: what is mapped shows the rest.
    pub fn forget_unproven(&mut self) {
        self.unproven.clear();
    }
}
