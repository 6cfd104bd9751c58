//! Taking memory over: scans for new ranges, and pages that the program had filled before.

use tidemark_core::id::{PAGE_BYTES, VirtPage};

use super::Engine;
use crate::parts::trouble::say;
use crate::parts::units;
use crate::parts::units::{address_of, page_of};
use crate::requests::Requests;
use crate::shared::Counter;
use crate::sys::{PAGE, status};

/// Pages adopted in one turn at most, so that faults never wait long.
const PAGES_A_TURN: usize = 512;
impl Engine {
    /// Looks for new memory and takes over what is found, if it is time.
    pub(super) fn look_for_memory(&mut self, requests: &Requests) {
        // A thread may wait for the memory that is looked for. Else it goes on first.
        if self.addresses.adoption().is_look_wanted() {
            self.look_at_size();
        }
        self.look_for_pages();
        while let Some(taken) = self.addresses.adoption_mut().take_held() {
            requests.answer(taken, 0);
        }
        if self.addresses.adoption().is_look_due(self.now) {
            self.look_at_size();
        }
    }

    fn look_for_pages(&mut self) {
        self.notice_gone_pages();
        while let Some((start, end)) = self.addresses.adoption_mut().take_later(self.now) {
            for (from, to) in self.addresses.collect_within(start, end) {
                self.addresses.adoption_mut().add(from, to);
            }
        }
        if self.addresses.adoption().is_due(self.now) {
            self.adopt_some();
        }
    }

    /// Compares the size of the address space with the last one, and scans if it changed.
    pub(super) fn look_at_size(&mut self) {
        let sizes = self.addresses.scanner().sizes().unwrap_or_default();
        let adoption = self.addresses.adoption_mut();
        let (has_changed, scans) = adoption.note_size(sizes.space_pages, self.now);
        if scans {
            let began = units::now();
            self.scan();
            let ns = units::now().since_ns(began);
            self.addresses.adoption_mut().note_scan(ns);
        }
        self.charge_beside(sizes.anonymous_pages);
        let room = self.line.room_beside(sizes.anonymous_pages);
        let adoption = self.addresses.adoption_mut();
        adoption.note_room(room);
        adoption.plan_look(has_changed, self.now);
        if adoption.is_measure_due(self.now) {
            let began = units::now();
            self.measure_unmanaged();
            let cost_ns = units::now().since_ns(began);
            let adoption = self.addresses.adoption_mut();
            adoption.plan_measure(cost_ns, self.now);
        }
    }

    /// Learns how much of this process's memory is resident and unmanaged: neither in frames, nor
    /// compressed, nor the engine's own. Memory that files back is not counted: the host has it
    /// back when it likes.
    pub(super) fn measure_unmanaged(&mut self) {
        let Ok(resident) = status::own_resident_bytes() else {
            return;
        };
        // The table of processes and of slots, which all engines map.
        let (start, end) = self.line.shared().range();
        let table = self.machine.pages().present_bytes(start, end).unwrap_or(0);
        self.store.rest();
        let own = self.measure_own();
        let in_use = u64::from(self.in_use()) * PAGE_BYTES;
        let unmanaged = resident.saturating_sub(in_use + own + table as u64);
        let (level, peak) = (Counter::UnmanagedBytesNow, Counter::UnmanagedBytesPeak);
        self.telemetry
            .gauges_mut()
            .set_with_peak(level, peak, unmanaged);
        self.note_unmanaged(unmanaged);
    }

    /// Says once that much memory of this process is beside the budget.
    fn note_unmanaged(&mut self, unmanaged: u64) {
        // What the kernel holds has a line of its own, and so has what is locked: it is taken over
        // when it is unlocked.
        let bytes = unmanaged.saturating_sub(self.addresses.outside().len() * PAGE_BYTES);
        let budget = self.line.bytes_of_run();
        let now = self.now;
        let is_locked = self.addresses.locked_bytes() > 0;
        let adoption = self.addresses.adoption_mut();
        if !adoption.note_unmanaged((bytes, budget), is_locked, now) {
            return;
        }
        // It may have been locked by a call that is not reported.
        self.review_locks();
        if self.addresses.locked_bytes() > 0 {
            return;
        }
        self.addresses.adoption_mut().note_said();
        say(&format!(
            "{} ({}): {} MiB of its memory can't be managed, and are in use beside the budget: \
             stacks, executable memory, shared memory, or private pages of files",
            self.setup.name,
            self.line.own_process(),
            bytes >> 20
        ));
    }

    /// Reads the list of mappings and takes over what can be managed.
    pub(super) fn scan(&mut self) {
        self.review_locks();
        if self.addresses.scanner_mut().read().is_err() {
            return;
        }
        // A change that happened before the list was read must be applied before it is believed.
        let events = self.telemetry.get(Counter::MapEvents);
        self.read_messages();
        // One whose message is still on its way shows in the list all the same: a range that
        // `mremap` has moved would pass for a new one, its pages for unknown ones.
        let has_changed = self.telemetry.get(Counter::MapEvents) != events;
        if has_changed || self.machine.is_changing() {
            self.addresses.adoption_mut().want_scan();
            return;
        }
        let found = self.addresses.find(self.now);
        self.note_threads();
        for (start, end) in found.fresh {
            self.take_over(start, end);
        }
    }

    /// Adopts present pages, some at a time.
    fn adopt_some(&mut self) {
        let mut left = PAGES_A_TURN;
        while left > 0 {
            let Some((start, end)) = self.addresses.adoption().next() else {
                return;
            };
            let mut runs = self.addresses.adoption_mut().take_runs();
            let walked = self.machine.pages().find_present(start, end, &mut runs);
            let mut settled = walked.unwrap_or(end);
            // Chosen before the first is adopted: that may take the frames of others, and a page
            // that the core has sent away meanwhile must not pass for one that stands there.
            let strangers = self.collect_strangers(&runs, left);
            self.addresses.adoption_mut().return_runs(runs);
            // What stands there may be what has come after something that has moved away.
            if self.machine.is_changing() {
                self.addresses.adoption_mut().put_off(self.now);
                return;
            }
            if strangers.len() == left {
                settled = strangers.last().map_or(settled, |last| last + PAGE);
            }
            left -= strangers.len();
            self.take_unassigned(strangers.len() as u32);
            for address in strangers {
                if !self.adopt_newer(page_of(address)) {
                    settled = address;
                    left = 0;
                    break;
                }
            }
            let adoption = self.addresses.adoption_mut();
            if settled > start {
                adoption.settle(start, settled);
            } else if left == 0 {
                adoption.put_off(self.now);
            }
        }
    }

    /// The first pages of `runs`, at most `most`, of which the core knows nothing, or that it takes
    /// for pages that do not stand there.
    fn collect_strangers(&self, runs: &[(usize, usize)], most: usize) -> Vec<usize> {
        let pages = runs.iter().flat_map(|&(from, to)| (from..to).step_by(PAGE));
        // Blank pages become known when they are written to; pinned ones have a pace of their own.
        let is_stranger = |address: &usize| {
            let is_known = self.is_known(page_of(*address));
            !is_known && !self.is_blank(*address) && !self.addresses.outside().contains(*address)
        };
        pages.filter(is_stranger).take(most).collect()
    }

    /// Returns true if the core has the page that is in place in the program.
    pub(super) fn is_known(&self, at: VirtPage) -> bool {
        let frame = self.vm.frame_at(self.space, at);
        frame.is_some_and(|frame| self.machine.is_mapped(frame))
    }

    /// Adopts a page as [`adopt_page`](Self::adopt_page) does, where its contents are newer than
    /// those that the core knows.
    pub(super) fn adopt_newer(&mut self, at: VirtPage) -> bool {
        if self.vm.frame_at(self.space, at).is_some() && !self.is_known(at) {
            self.vm.discard(&mut self.machine, self.space, at, 1);
        }
        self.adopt_page(at)
    }

    /// Adopts a page that is in place in the program. False if there is no frame for it now; it is
    /// tried again.
    pub(super) fn adopt_page(&mut self, at: VirtPage) -> bool {
        if self.vm.frame_at(self.space, at).is_some() {
            return true;
        }
        let (now, machine) = (self.now, &mut self.machine);
        if self.vm.handle_present(now, machine, self.space, at) {
            self.note_found(at);
            return true;
        }
        let address = address_of(at);
        if self.addresses.contains(address) {
            self.addresses.adoption_mut().add(address, address + PAGE);
            return false;
        }
        true
    }

    /// Pages that were there when the machine thought them gone stand unaccounted somewhere: looks
    /// for them everywhere.
    ///
    /// The same for pages that were left to the program because its mapping is read-only: it may
    /// be writable again.
    fn notice_gone_pages(&mut self) {
        let tally = self.machine.tally();
        let adoption = self.addresses.adoption_mut();
        if adoption.review((tally.gone, tally.disowned), self.now) {
            self.addresses.adopt_writable();
        }
    }
}
