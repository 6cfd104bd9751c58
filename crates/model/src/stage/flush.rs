//! Flushing: the modified pages of pagers outside are written, and stay in memory.

use std::ops::Range;

use tidemark_core::id::{PagerId, SpaceId, VirtPage};

use super::Stage;
use crate::pager::Address;

impl Stage {
    /// Starts writing the modified pages of a range, as many as the core takes at once, and takes
    /// them off the front of `due`. Answers the number of pages that were held meanwhile.
    pub fn flush(&mut self, space: SpaceId, due: &mut Range<u64>) -> u32 {
        let busy = self
            .vm
            .handle_flush(self.now, &mut self.machine, space, due);
        self.after_step();
        busy
    }

    /// Panics if page `index` of `pager`, which stands at `at`, has not been written as it is.
    pub fn expect_flushed(&self, space: SpaceId, at: VirtPage, (pager, index): (PagerId, u64)) {
        let written = self.outside.held_at(Address::External(pager, index));
        let contents = self.memory.contents(space, at);
        assert_eq!(written, contents, "page {index} of {pager:?}");
    }
}
