//! Sums: what is known of whether a page's pager holds the contents of its frame.

use tidemark_core::id::FrameId;

use super::{Contents, LiveMachine, Saved, ZERO_SUM};

impl LiveMachine {
    /// Has `frame` count as modified when it is next asked about: its pager does not hold the
    /// contents after all.
    pub(crate) fn forget_sum(&mut self, frame: FrameId) {
        let slot = &mut self.slots[frame.index()];
        slot.saved = Saved::No;
        slot.is_sum_current = false;
    }

    /// Sets the sum of what the pager of the page in `frame` holds, which are its contents now.
    pub fn set_sum(&mut self, frame: FrameId, sum: u128) {
        self.keep_sum(frame, sum);
        let slot = self.unmapped(frame);
        slot.is_sum_current = true;
        slot.saved = Saved::Unknown;
    }

    /// Notes that the contents of `frame` are what the page's pager holds, and stay so: its owner
    /// does not write to it.
    pub fn set_constant(&mut self, frame: FrameId) {
        let slot = self.unmapped(frame);
        slot.saved = Saved::Always;
        slot.is_sum_current = false;
    }

    /// Returns true if an unmapped frame holds nothing but zeros.
    pub fn is_zero(&mut self, frame: FrameId) -> bool {
        let slot = *self.unmapped(frame);
        match slot.contents {
            Contents::Hole | Contents::Zeros => true,
            Contents::Bytes if slot.is_sum_current => self.sums[frame.index()] == ZERO_SUM,
            Contents::Bytes => self.pool.is_zero(frame),
        }
    }

    /// The sum of the contents of an unmapped frame, computed unless it is known.
    pub fn sum(&mut self, frame: FrameId) -> u128 {
        let slot = *self.unmapped(frame);
        match slot.contents {
            Contents::Hole | Contents::Zeros => ZERO_SUM,
            Contents::Bytes if slot.is_sum_current => self.sums[frame.index()],
            Contents::Bytes => self.pool.sum(frame),
        }
    }

    /// Writes a sum down. What is not written takes no memory.
    pub(super) fn keep_sum(&mut self, frame: FrameId, sum: u128) {
        if self.sums[frame.index()] != sum {
            self.sums[frame.index()] = sum;
        }
    }
}
