//! Pages outside of the account: the sequences around
//! [`Outside`](crate::parts::addresses::Outside).

use tidemark_core::driver::Driver;
use tidemark_core::id::VirtPage;

use super::Engine;
use crate::parts::trouble::{pid, say};
use crate::parts::units::size;
use crate::parts::units::{address_of, page_of};
use crate::shared::Counter;
use crate::sys::PAGE;

impl Engine {
    /// Notes a page that the core has disowned.
    pub(super) fn note_disowned(&mut self, at: VirtPage) {
        self.addresses.outside_mut().add(address_of(at), self.now);
    }

    /// Has the core try some of the pages outside of the account, if it is time; says how many
    /// there are, if that is due.
    pub(super) fn look_outside(&mut self) {
        if self.addresses.outside().is_word_due(self.now) {
            self.tell_of_pins();
        }
        self.tell_of_kept();
        if !self.addresses.outside().is_due(self.now) {
            return;
        }
        // What stands there may be something that has been moved there since.
        if self.machine.is_changing() {
            self.addresses.outside_mut().put_off(self.now);
            return;
        }
        let added = self.addresses.outside().added();
        if let Some((start, end)) = self.addresses.outside_mut().take_next() {
            let pages = ((end - start) / PAGE) as u32;
            let (now, at) = (self.now, page_of(start));
            let machine = &mut self.machine;
            let is_all = self.vm.handle_disowned(now, machine, self.space, at, pages);
            if !is_all {
                self.put_back(start, end);
            }
            self.carry_out();
        }
        let has_come_back = self.addresses.outside().added() == added;
        self.addresses
            .outside_mut()
            .set_pace(has_come_back, self.now);
    }

    /// Keeps those pages of a range in here for which there was no frame.
    fn put_back(&mut self, start: usize, end: usize) {
        for address in (start..end).step_by(PAGE) {
            let at = page_of(address);
            let is_known = self.vm.frame_at(self.space, at).is_some();
            if !is_known && self.addresses.contains(address) {
                self.addresses.outside_mut().add(address, self.now);
            }
        }
    }

    /// Counts the pages that can't be moved.
    pub(super) fn count_pinned(&mut self) {
        let outside = self.addresses.outside().len();
        let pinned = u64::from(self.vm.pinned()) + outside;
        let over = (u64::from(self.vm.frames().in_use()) + outside)
            .saturating_sub(self.task.budget().into())
            .min(outside);
        for (level, peak, count) in [
            (Counter::PinnedPages, Counter::PinnedPagesPeak, pinned),
            (Counter::OverBudgetPages, Counter::OverBudgetPagesPeak, over),
        ] {
            self.telemetry
                .gauges_mut()
                .set_with_peak(level, peak, count);
        }
    }

    /// Says once that memory in use is over the budget, by how much, and why.
    pub(super) fn tell_of_pins(&mut self) {
        if !self.addresses.outside().is_word_wanted() {
            return;
        }
        self.count_pinned();
        // After a fork, pages wait to be taken out of their sharing: they are back by now.
        if self.telemetry.get(Counter::OverBudgetPages) == 0 {
            self.addresses.outside_mut().end_word(false);
            return;
        }
        self.addresses.outside_mut().end_word(true);
        let (pages, over) = (
            self.telemetry.get(Counter::PinnedPagesPeak),
            self.telemetry.get(Counter::OverBudgetPagesPeak),
        );
        let whose = match u64::from(self.task.budget()) < self.line.shared().frames_total() {
            true => "its share of the budget",
            false => "the budget",
        };
        say(&format!(
            "{} ({}): {pages} pages ({}) can't be moved: the kernel holds them for the program \
             (registered buffers, I/O in flight), or they are shared since a fork; memory in use \
             is {} over {whose}",
            self.setup.name,
            pid(),
            size(pages),
            size(over),
        ));
    }

    /// Says once that pages stay in memory that nothing needs, how many, and why.
    pub(super) fn tell_of_kept(&mut self) {
        let kept = self.machine.tally().kept;
        if kept == 0 || !self.addresses.outside_mut().take_word_of_kept() {
            return;
        }
        say(&format!(
            "{} ({}): {kept} pages ({}) that nothing needs stay in memory, as the kernel holds \
             them; memory in use is over its budget by as much",
            self.setup.name,
            pid(),
            size(kept),
        ));
    }
}
