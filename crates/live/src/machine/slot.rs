//! The entry of a frame: one word, since there is one for each frame.

use tidemark_core::collections::field::Field;
use tidemark_core::id::VirtPage;

/// In place of the address of a frame that is unmapped.
pub(super) const NOWHERE: VirtPage = VirtPage(AT.most());

/// A page's number: addresses have 57 bits at most.
const AT: Field = Field::new(0, 46);
const STANDING: Field = Field::new(46, 3);
const CONTENTS: Field = Field::new(49, 2);
const SAVED: Field = Field::new(51, 2);
const IS_SUM_CURRENT: Field = Field::new(53, 1);
const IS_HELD: Field = Field::new(54, 1);
const WAS_ENTERED: Field = Field::new(55, 1);
const TRIES: Field = Field::new(56, 8);

/// One frame.
#[derive(Clone, Copy)]
pub(super) struct Slot(u64);

/// The knowledge that there is, sums aside, of whether the page's pager holds the contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Saved {
    /// None: the sum tells.
    Unknown,
    /// The pager surely does not hold the contents.
    No,
    /// The pager holds the contents, and always will: the owner of the page never writes to it.
    Always,
}

/// The position of a frame's page, between its slot and the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Unmapped,
    Entering,
    Deferred,
    Mapped,
    Leaving,
}

/// The kind of contents in the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    /// No page: for an unmapped frame, that reads as zeros.
    Hole,
    /// A page of zeros.
    Zeros,
    /// A page.
    Bytes,
}

impl Slot {
    /// A frame that is unmapped, and whose slot has no page.
    pub(super) const BLANK: Slot = Slot(NOWHERE.0);

    fn get(self, field: Field) -> u64 {
        field.get(self.0)
    }

    fn set(&mut self, field: Field, value: u64) {
        self.0 = field.put(self.0, value);
    }

    /// The address at which the page stands or will stand in the program, or [`NOWHERE`].
    pub(super) fn at(self) -> VirtPage {
        VirtPage(self.get(AT))
    }

    pub(super) fn set_at(&mut self, at: VirtPage) {
        self.set(AT, at.0);
    }

    pub(super) fn standing(self) -> Standing {
        const ALL: [Standing; 5] = [
            Standing::Unmapped,
            Standing::Entering,
            Standing::Deferred,
            Standing::Mapped,
            Standing::Leaving,
        ];
        ALL[self.get(STANDING) as usize]
    }

    pub(super) fn set_standing(&mut self, standing: Standing) {
        self.set(STANDING, standing as u64);
    }

    pub(super) fn contents(self) -> Contents {
        const ALL: [Contents; 3] = [Contents::Hole, Contents::Zeros, Contents::Bytes];
        ALL[self.get(CONTENTS) as usize]
    }

    pub(super) fn set_contents(&mut self, contents: Contents) {
        self.set(CONTENTS, contents as u64);
    }

    pub(super) fn saved(self) -> Saved {
        const ALL: [Saved; 3] = [Saved::Unknown, Saved::No, Saved::Always];
        ALL[self.get(SAVED) as usize]
    }

    pub(super) fn set_saved(&mut self, saved: Saved) {
        self.set(SAVED, saved as u64);
    }

    /// Returns true if the frame's sum is that of the present contents.
    pub(super) fn is_sum_current(self) -> bool {
        self.get(IS_SUM_CURRENT) != 0
    }

    pub(super) fn set_sum_current(&mut self, is_current: bool) {
        self.set(IS_SUM_CURRENT, is_current.into());
    }

    /// Returns true if a transfer reads or writes the slot: its page must stay there.
    pub(super) fn is_held(self) -> bool {
        self.get(IS_HELD) != 0
    }

    pub(super) fn set_held(&mut self, is_held: bool) {
        self.set(IS_HELD, is_held.into());
    }

    /// Returns true if its page was in the program since it was last asked whether it is modified.
    pub(super) fn was_entered(self) -> bool {
        self.get(WAS_ENTERED) != 0
    }

    pub(super) fn set_entered(&mut self, was_entered: bool) {
        self.set(WAS_ENTERED, was_entered.into());
    }

    /// The number of times that an enter was tried in vain because nothing is registered there.
    pub(super) fn tries(self) -> u64 {
        self.get(TRIES)
    }

    pub(super) fn set_tries(&mut self, tries: u64) {
        self.set(TRIES, tries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_keeps_its_value_beside_the_others() {
        let mut slot = Slot::BLANK;
        assert_eq!(slot.at(), NOWHERE);
        assert_eq!(
            (slot.standing(), slot.contents(), slot.saved(), slot.tries()),
            (Standing::Unmapped, Contents::Hole, Saved::Unknown, 0)
        );
        slot.set_at(VirtPage(1 << 44));
        slot.set_tries(200);
        slot.set_held(true);
        for standing in [Standing::Leaving, Standing::Entering, Standing::Mapped] {
            slot.set_standing(standing);
            for contents in [Contents::Bytes, Contents::Hole, Contents::Zeros] {
                slot.set_contents(contents);
                for saved in [Saved::Always, Saved::Unknown, Saved::No] {
                    slot.set_saved(saved);
                    let found = (slot.standing(), slot.contents(), slot.saved());
                    assert_eq!(found, (standing, contents, saved));
                }
            }
        }
        slot.set_sum_current(true);
        slot.set_entered(true);
        slot.set_held(false);
        let marks = (slot.is_sum_current(), slot.was_entered(), slot.is_held());
        assert_eq!(marks, (true, true, false));
        assert_eq!((slot.at(), slot.tries()), (VirtPage(1 << 44), 200));
    }

    #[test]
    #[should_panic(expected = "more than 46 bits")]
    fn an_address_that_is_none_is_refused() {
        let mut slot = Slot::BLANK;
        slot.set_at(VirtPage(u64::MAX));
    }
}
