//! Letting go of what the program locks in memory.
//!
//! Locked pages can't be moved out, so that there is nothing to manage. What is out of a locked
//! range is brought back, and the range is the kernel's business from then on: it is counted as
//! unmanaged, and taken over again when it is unlocked. Requests report locks made through the C
//! library at once; those made by system calls are found by the next scan.

use tidemark_core::driver::Driver;
use tidemark_core::time::Time;

use super::Engine;
use super::files::Passed;
use crate::parts::trouble::{pid, say};
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::sys::uffd::{Progress, Stop};
use crate::sys::{PAGE, reserve};

/// The longest time that transfers may take to end. Pages that are on their way then are looked at
/// again later.
const REST_NS_MAX: u64 = 5_000_000_000;
impl Engine {
    /// Lets go of what is locked in a range that the program is locking. Answers whether so much is
    /// locked that the budget can't hold it, once it is filled; what is filled then is counted when
    /// this is called again.
    pub(super) fn follow_locks(&mut self, start: usize, end: usize) -> bool {
        let before = self.addresses.locked_bytes();
        if self.await_changes() {
            self.let_go_of_locked(start, end);
        }
        if self.addresses.locked_bytes() == before {
            self.tell_of_locks();
        }
        self.addresses
            .has_news_of_locks(self.line.bytes_of_run() as usize)
    }

    /// Compares what is locked with what was.
    pub(super) fn review_locks(&mut self) {
        self.machine.unlock_own();
        self.addresses.forget_unlocked();
        self.let_go_of_locked(0, usize::MAX & !(PAGE - 1));
        if self.addresses.begin_count_of_locked(self.now) {
            self.tell_of_locks();
        }
    }

    /// Says, once, that the program keeps more in memory than the budget has.
    pub(super) fn tell_of_locks(&mut self) {
        let budget = self.line.bytes_of_run() as usize;
        if !self.addresses.has_news_of_locks(budget) {
            return;
        }
        let resident = self.count_locked();
        if resident > budget {
            self.addresses.note_told_of_locks();
            say(&format!(
                "{} ({}): it has locked {} MiB, which stay in memory beyond the budget of {} MiB",
                self.setup.name,
                pid(),
                resident >> 20,
                budget >> 20,
            ));
        }
    }

    /// The number of bytes of locked memory that are in memory.
    fn count_locked(&mut self) -> usize {
        let mut resident = 0;
        let mut runs = self.addresses.adoption_mut().take_runs();
        for (start, end) in self.addresses.scanner().locked().iter() {
            let mut at = start;
            while at < end {
                let walked = self.machine.pages().find_present(at, end, &mut runs);
                resident += runs.iter().map(|(from, to)| to - from).sum::<usize>();
                at = walked.map_or(end, |walked| walked.max(at + PAGE));
            }
        }
        self.addresses.adoption_mut().return_runs(runs);
        resident
    }

    fn let_go_of_locked(&mut self, start: usize, end: usize) {
        // As a rule nothing is, which one call shows for all of it.
        if !reserve::is_locked(start, end - start) {
            return;
        }
        for part in self.addresses.files().collect_written(start, end) {
            if reserve::is_locked(part.start, part.end - part.start) {
                self.give_files_up(part.start, part.end, Passed::Locked);
            }
        }
        for (from, to) in self.addresses.collect_within(start, end) {
            for (from, to) in self.addresses.scanner_mut().collect_locked(from, to) {
                self.let_go(from, to);
            }
        }
    }

    /// Waits until no transfer is under way. False if one is at `end`.
    pub(super) fn await_rest(&mut self, end: Time) -> bool {
        loop {
            self.now = now();
            if self.settle_changes() {
                self.collect_replies();
                self.carry_out();
                self.machine.retry_deferred();
            }
            let is_idle = self.vm.transfers_pending() == 0 && self.store.is_idle();
            if is_idle && !self.machine.has_deferred() && self.intake.is_settled() {
                return true;
            }
            if self.now > end {
                return false;
            }
            self.store.wait(1_000_000);
        }
    }

    /// Brings back what is out of a locked range, and leaves it to the kernel.
    fn let_go(&mut self, start: usize, end: usize) {
        if !self.await_rest(now().after_ns(REST_NS_MAX)) || !self.bring_back(start, end) {
            return;
        }
        self.close_ends_of_files(start, end);
        let let_go = self
            .machine
            .unregister(page_of(start), pages_in(start, end));
        // What can't be let go is gone already, and its message is on its way.
        if let_go.is_ok() {
            let wiped = self.addresses.wiped_parts(start, end);
            self.forget_range(start, end);
            self.addresses.note_let_go(start, end, wiped);
        }
    }

    /// Brings back what is out of a range, and leaves it to the kernel for good. False if it can't
    /// be done for now.
    pub(super) fn give_up_for_good(&mut self, start: usize, end: usize) -> bool {
        if !self.await_rest(now().after_ns(REST_NS_MAX)) || !self.bring_back(start, end) {
            return false;
        }
        let let_go = self
            .machine
            .unregister(page_of(start), pages_in(start, end));
        if let_go.is_ok() {
            self.forget_range(start, end);
            self.addresses.scanner_mut().exclude(start, end);
        }
        let_go.is_ok()
    }

    /// Copies to the program what of a range is not there. False if the program changes it
    /// meanwhile, or the host refuses: what has been copied is adopted then.
    fn bring_back(&mut self, start: usize, end: usize) -> bool {
        let mut at = start;
        while at < end {
            let Some((source, pages)) = self.find_away(at, end) else {
                at += PAGE;
                continue;
            };
            let copied = match self.machine.program().copy(at, source, pages * PAGE) {
                Progress::All => pages * PAGE,
                Progress::Part(bytes) => bytes,
                // What stands there is newer.
                Progress::Nothing(Stop::Present) => PAGE,
                Progress::Nothing(Stop::Changing) if self.await_changes() => 0,
                Progress::Nothing(_) => {
                    self.addresses.adoption_mut().add(start, at);
                    return false;
                }
            };
            if copied > 0 {
                let pages = pages_in(at, at + copied);
                self.vm
                    .discard(&mut self.machine, self.space, page_of(at), pages);
            } else if !self.addresses.contains(at) {
                return false;
            }
            at += copied;
        }
        true
    }

    /// Finds the contents that belong at `at`, if they lie elsewhere, and the number of pages from
    /// there on that can be had at once.
    fn find_away(&mut self, at: usize, end: usize) -> Option<(usize, usize)> {
        let page = page_of(at);
        if let Some(frame) = self.vm.frame_at(self.space, page) {
            return self.machine.pooled(frame).map(|source| (source, 1));
        }
        let Some(first) = self.vm.slot_at(self.space, page) else {
            return self.find_in_file(at, end);
        };
        let most = pages_in(at, end).min(crate::parts::intake::RUN_MAX as u64);
        let follows = |index: &u64| {
            let slot = self.vm.slot_at(self.space, page.plus(*index));
            slot.is_some_and(|slot| u64::from(slot.0) == u64::from(first.0) + index)
        };
        let count = 1 + (1..most).take_while(follows).count();
        let into = self.intake.page();
        if self.store.read_run_now(first, count, into).is_err() {
            self.end_for_fetch(address_of(page));
        }
        Some((self.intake.page().start(), count))
    }

    /// Finds the contents that belong at `at` if they are with a file, and the number of pages from
    /// there on that can be had at once.
    fn find_in_file(&mut self, at: usize, end: usize) -> Option<(usize, usize)> {
        match self.read_file_now(at, end) {
            Ok(0) => None,
            Ok(count) => Some((self.intake.page().start(), count)),
            Err(_) => self.end_for_fetch(at),
        }
    }
}
