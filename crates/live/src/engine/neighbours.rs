//! Neighbours of a page that is written for the first time: the sequences around
//! [`Neighbours`](crate::parts::sampling::Neighbours).

use tidemark_core::id::VirtPage;

use super::Engine;
use crate::machine::Probe;
use crate::parts::intake::Arrival;
use crate::parts::sampling::{Runs, STORE};
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::sys::PAGE;
use crate::sys::uffd::{Progress, Stop};

/// Pages in a block at most. It begins at a multiple of its size, which is a power of two.
const BLOCK_PAGES: u64 = 64;
/// A block is at most this part of what lies together under management.
const BLOCK_SHARE: u64 = 16;
/// The number of times that a look is tried again that a change of the address space has spoilt.
const CATCH_UP_TRIES: u32 = 1000;

impl Engine {
    /// Maps blank pages around `at`, which is about to be written to for the first time.
    pub(super) fn map_neighbours(&mut self, at: VirtPage) {
        let Some(sampling) = self.telemetry.sampling() else {
            return;
        };
        let (known, all) = (self.vm.frames().in_use(), self.vm.config().frames_max);
        let promised = sampling.neighbours().pages();
        let free = u64::from(all.saturating_sub(known)).saturating_sub(promised);
        if sampling.neighbours().is_ending() || free < 2 * BLOCK_PAGES || !self.is_untouched(at) {
            return;
        }
        let address = address_of(at);
        let pages = self.block_pages(address);
        if pages == 1 {
            return;
        }
        self.look_at_latest();
        let block = at.0 - at.0 % pages;
        let below = (block..at.0).rev().map(VirtPage);
        let above = (at.0 + 1..block + pages).map(VirtPage);
        let count = |pages: &mut dyn Iterator<Item = VirtPage>| {
            pages.take_while(|page| self.is_untouched(*page)).count()
        };
        let (below, above) = (count(&mut { below }), count(&mut { above }));
        self.map_blank(address - below * PAGE, address);
        self.map_blank(address + PAGE, address + PAGE + above * PAGE);
        if let Some(sampling) = self.telemetry.sampling_mut() {
            let (start, end) = (address - below * PAGE, address + PAGE + above * PAGE);
            sampling.neighbours_mut().note_block(start, end);
        }
    }

    /// The most pages that a block around `address` may have.
    fn block_pages(&self, address: usize) -> u64 {
        let together = self
            .addresses
            .managed()
            .collect_overlaps(address, address + 1);
        let pages = together
            .first()
            .map_or(0, |&(start, end)| pages_in(start, end));
        let pages = (pages / BLOCK_SHARE).clamp(1, BLOCK_PAGES);
        1 << pages.ilog2()
    }

    /// Looks at the latest blocks: they may be unmapped as quickly as they are written.
    fn look_at_latest(&mut self) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        let blank = sampling.neighbours().collect_latest();
        self.find_written_in(blank);
    }

    /// Returns true if the page at `address` is blank.
    pub(super) fn is_blank(&self, address: usize) -> bool {
        let sampling = self.telemetry.sampling();
        sampling.is_some_and(|sampling| sampling.neighbours().contains(address))
    }

    /// Returns true if there is nothing at `at` that could be lost, in memory under management.
    fn is_untouched(&self, at: VirtPage) -> bool {
        let address = address_of(at);
        let is_known = self.is_blank(address) || !self.vm.is_blank(self.space, at);
        self.addresses.contains(address) && !is_known
    }

    /// Maps blank pages in `start..end`, where nothing is there yet.
    fn map_blank(&mut self, mut start: usize, end: usize) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        while start < end {
            let mapped = match self.machine.program().zeropage(start, end - start) {
                Progress::All => end - start,
                Progress::Part(bytes) => bytes,
                // Pages that were not announced: they are found elsewhere.
                Progress::Nothing(Stop::Present) => {
                    start += PAGE;
                    continue;
                }
                Progress::Nothing(_) => return,
            };
            sampling.neighbours_mut().insert(start, start + mapped);
            start += mapped;
        }
    }

    /// Serves a fault on a page that was blank when its message was read. True if it was one.
    pub(super) fn serve_blank(&mut self, arrival: Arrival) -> bool {
        let (at, address) = (page_of(arrival.address), arrival.address & !(PAGE - 1));
        if !self.is_blank(address) {
            return false;
        }
        match self.machine.probe(at) {
            // Another thread's write has brought it. A write is found when it has happened.
            Probe::Present => {
                if !arrival.is_write {
                    self.note_touch(at, false);
                }
                self.end_wait(arrival, None);
            }
            // It was taken away by means that send no message.
            Probe::Refilled => {
                self.forget_neighbours(address, address + PAGE);
                self.adopt_page(at);
                self.end_wait(arrival, None);
            }
            Probe::Changing => self.intake.faults_mut().put_off(arrival),
            Probe::Unknown => self.machine.wake(at),
        }
        true
    }

    /// Looks which blank pages have been written to, if it is time.
    pub(super) fn look_at_neighbours(&mut self) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        if now() < sampling.neighbours().due() {
            return;
        }
        let time = sampling.now();
        if sampling.neighbours_mut().begin_look(time, now()) {
            self.find_written();
        }
    }

    /// Logs and adopts the blank pages that have been written to. False if the address space is
    /// changing: what stands where is not known.
    pub(super) fn find_written(&mut self) -> bool {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return true;
        };
        let began = now();
        let blank = sampling.neighbours().collect();
        let is_known = self.find_written_in(blank);
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().end_look(began, now());
        }
        is_known
    }

    /// Logs and adopts those pages of the ranges `blank` that have been written to. False if the
    /// address space is changing.
    fn find_written_in(&mut self, blank: Vec<(usize, usize)>) -> bool {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return true;
        };
        if blank.is_empty() {
            return true;
        }
        let mut runs = sampling.neighbours_mut().take_runs();
        for &(start, end) in &blank {
            runs.look_in(self.machine.pages(), start, end);
        }
        // What stands there may be what has come after something that has moved away.
        let is_known = self.intake.is_settled() && !self.machine.is_changing();
        if is_known {
            self.take_in_written(&blank, &runs);
        }
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().return_runs(runs);
        }
        is_known
    }

    fn take_in_written(&mut self, before: &[(usize, usize)], runs: &Runs) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().replace(before, &runs.blank);
        }
        for &(start, end) in &runs.written {
            for address in (start..end).step_by(PAGE) {
                let at = page_of(address);
                self.log_touch(at, STORE);
                let is_in = self
                    .vm
                    .handle_present(self.now, &mut self.machine, self.space, at);
                if is_in {
                    self.note_standing(at);
                } else {
                    self.addresses.adoption_mut().add(address, address + PAGE);
                }
            }
        }
    }

    /// Logs what has been written to in a range that the program is about to empty: who empties it
    /// has just been let go.
    pub(super) fn look_before_emptying(&mut self, start: usize, end: usize) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        let blank = sampling.neighbours().collect_overlaps(start, end);
        let mut runs = Runs::none();
        for (from, to) in blank {
            runs.look_in(self.machine.pages(), from.max(start), to.min(end));
        }
        self.log_written(&runs.written, 0);
    }

    /// Logs what has been written to, at places that are an offset before those of `written`.
    fn log_written(&mut self, written: &[(usize, usize)], before: isize) {
        for address in written
            .iter()
            .flat_map(|&(from, to)| (from..to).step_by(PAGE))
        {
            self.log_touch(page_of(address.wrapping_add_signed(-before)), STORE);
        }
    }

    /// Takes out what is blank of a range that has moved, as parts from its start on. What has been
    /// written to is logged where it stood.
    pub(super) fn pick_up_neighbours(
        &mut self,
        from: usize,
        to: usize,
        bytes: usize,
    ) -> Vec<(usize, usize)> {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return Vec::new();
        };
        let end = from + bytes;
        let before = sampling.neighbours().collect_overlaps(from, end);
        sampling.neighbours_mut().remove(from, end);
        let mut runs = Runs::none();
        for (start, stop) in before {
            let there = |address: usize| address.clamp(from, end) - from + to;
            runs.look_in(self.machine.pages(), there(start), there(stop));
        }
        self.log_written(&runs.written, to.wrapping_sub(from) as isize);
        let parts = runs.blank.into_iter();
        parts.map(|(start, stop)| (start - to, stop - to)).collect()
    }

    /// Forgets blank pages of a range: something else may stand there.
    pub(super) fn forget_neighbours(&mut self, start: usize, end: usize) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.forget(start, end);
        }
    }

    /// Brings the log up to date: the program is about to fork, or to leave its memory.
    pub(super) fn catch_up(&mut self) {
        if !self.telemetry.is_recording() {
            return;
        }
        // Where changes do not end, what is blank can't be looked at.
        let _ = (0..CATCH_UP_TRIES).find(|_| !self.await_changes() || self.find_written());
        self.telemetry.publish_samples();
    }

    /// Brings the log up to date at the end of the program. Pages that are touched for the first
    /// time after this are logged when they are touched.
    pub(super) fn end_neighbours(&mut self) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.neighbours_mut().end();
            self.catch_up();
        }
    }
}
