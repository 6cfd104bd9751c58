//! The frames that are left to engines whose supervisor is gone.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::{HELD, Header, Shared};

impl Shared {
    /// Ends a division of memory in whose midst the supervisor has died: what no process has may be
    /// taken. Engine only, and only when the supervisor is gone.
    pub(crate) fn end_division(&self) {
        let given = |process: super::Process<'_>| {
            let budget = u64::from(process.budget());
            budget.max(process.understood())
        };
        let given: u64 = self.processes().map(|(_, process)| given(process)).sum();
        let left = self.frames_total().saturating_sub(given);
        // Another engine may have been quicker.
        let _ = self
            .header(Header::Unassigned)
            .compare_exchange(HELD, left, SeqCst, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_that_was_cut_off_leaves_what_no_process_has() {
        let shared = Shared::create(64, 1000).unwrap();
        let process = shared.process(shared.claim().unwrap());
        process.start(7, 3, "sheep", 1);
        process.set_budget(256);
        shared.hold_unassigned();
        assert_eq!(
            (process.take_unassigned(1, 100), shared.unassigned()),
            (0, 0)
        );
        shared.end_division();
        assert_eq!(shared.unassigned(), 744);
        assert_eq!(
            (process.take_unassigned(1, 100), process.budget()),
            (100, 356)
        );
        // Frames are not being divided: nothing changes.
        shared.end_division();
        assert_eq!(shared.unassigned(), 644);
    }
}
