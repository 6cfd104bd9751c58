//! Sums: what is known of whether a page's pager holds the contents of its frame.

use tidemark_core::id::FrameId;

use super::slot::{Contents, Saved};
use super::{LiveMachine, ZERO_SUM};

impl LiveMachine {
    /// Has `frame` count as modified when it is next asked about: its pager does not hold the
    /// contents after all.
    pub(crate) fn forget_sum(&mut self, frame: FrameId) {
        let slot = &mut self.slots[frame.index()];
        slot.set_saved(Saved::No);
        slot.set_sum_current(false);
        self.sums.set(frame.index(), ZERO_SUM);
    }

    /// Sets the sum of what the pager of the page in `frame` holds, which are its contents now.
    pub fn set_sum(&mut self, frame: FrameId, sum: u128) {
        self.sums.set(frame.index(), sum);
        let slot = self.unmapped(frame);
        slot.set_sum_current(true);
        slot.set_saved(Saved::Unknown);
    }

    /// Notes that the contents of `frame` are what the page's pager holds, and stay so: its owner
    /// does not write to it.
    pub fn set_constant(&mut self, frame: FrameId) {
        let slot = self.unmapped(frame);
        slot.set_saved(Saved::Always);
        slot.set_sum_current(false);
    }

    /// Returns true if an unmapped frame holds nothing but zeros.
    pub fn is_zero(&mut self, frame: FrameId) -> bool {
        let slot = *self.unmapped(frame);
        match slot.contents() {
            Contents::Hole | Contents::Zeros => true,
            Contents::Bytes if slot.is_sum_current() => self.sums.get(frame.index()) == ZERO_SUM,
            Contents::Bytes => self.pool.is_zero(frame),
        }
    }

    /// The sum of the contents of an unmapped frame, computed unless it is known.
    pub fn sum(&mut self, frame: FrameId) -> u128 {
        let slot = *self.unmapped(frame);
        match slot.contents() {
            Contents::Hole | Contents::Zeros => ZERO_SUM,
            Contents::Bytes if slot.is_sum_current() => self.sums.get(frame.index()),
            Contents::Bytes => self.pool.sum(frame),
        }
    }
}
