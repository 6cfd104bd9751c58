//! Neighbours of a page that is written for the first time, while references are recorded.
//!
//! A first touch costs a fault through this engine, many times what the kernel takes for one by
//! itself. So the *block* around a page that is written gets the kernel's shared page of zeros
//! wherever there is nothing yet. Who writes to such a *blank* page is served by the kernel
//! alone, with a page of its own. Which ones those are the kernel tells when it is asked: many
//! times a second, at the end of a window, before a fork, and before the process leaves its memory.
//! They are adopted then, like any page that is found.
//!
//! A program that reads a blank page leaves no trace; so only writes bring blank pages. One that is
//! unmapped before it is looked at leaves none either: so blocks are small in small mappings, and
//! the latest ones are looked at when the next is made.
//!
//! # Invariants
//! 1. A blank page is one that the core knows nothing of. What the program unmaps, empties or
//!    moves is taken out of the set before anything else can stand there.
//! 2. For each blank page there is a frame, as far as frames go: its write needs no room made.

use std::collections::VecDeque;

use tidemark_core::id::VirtPage;
use tidemark_core::time::Time;

use super::Engine;
use super::faults::Arrival;
use super::sampling::STORE;
use crate::machine::Probe;
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::ranges::Ranges;
use crate::sys::PAGE;
use crate::sys::pagemap::RUNS_MAX;
use crate::sys::uffd::{Progress, Stop};

/// Pages in a block at most. It begins at a multiple of its size, which is a power of two.
const BLOCK_PAGES: u64 = 64;
/// A block is at most this part of what lies together under management.
const BLOCK_SHARE: u64 = 16;
/// The number of blocks that count as the latest.
const LATEST: usize = 4;
/// The pause between two looks is at least this.
const LOOK_NS: u64 = 20_000_000;
/// The least pause between two looks, as a multiple of the last one's duration.
const LOOK_SHARE: u64 = 16;
/// The number of times that a look is tried again that a change of the address space has spoilt.
const CATCH_UP_TRIES: u32 = 1000;

/// The blank pages of a process.
pub(super) struct Neighbours {
    blank: Ranges,
    latest: VecDeque<(usize, usize)>,
    next_look: Time,
    /// The program's time at the last look: while that stands still, nothing is written.
    looked_at: u64,
    /// True if the program is about to end: what is touched from now on is found at once.
    is_ending: bool,
    runs: Runs,
}

/// The result of a look.
struct Runs {
    blank: Vec<(usize, usize)>,
    written: Vec<(usize, usize)>,
}

impl Neighbours {
    pub(super) fn new() -> Neighbours {
        Neighbours {
            blank: Ranges::new(),
            latest: VecDeque::with_capacity(LATEST),
            next_look: Time(0),
            looked_at: 0,
            is_ending: false,
            runs: Runs {
                blank: Vec::with_capacity(RUNS_MAX),
                written: Vec::with_capacity(RUNS_MAX),
            },
        }
    }

    /// Brings what is blank of a range to where that has moved.
    pub(super) fn lay_down(&mut self, start: usize, parts: &[(usize, usize)]) {
        for (from, to) in parts {
            self.blank.insert(start + from, start + to);
        }
    }

    /// The time of the next look.
    pub(super) fn due(&self) -> Time {
        match self.blank.is_empty() {
            true => Time(u64::MAX),
            false => self.next_look,
        }
    }
}

impl Engine {
    /// Maps blank pages around `at`, which is about to be written to for the first time.
    pub(super) fn map_neighbours(&mut self, at: VirtPage) {
        let Some(sampling) = &self.sampling else {
            return;
        };
        let (known, all) = (self.vm.frames().in_use(), self.vm.config().frames_max);
        let promised = sampling.neighbours.blank.bytes() / PAGE;
        let free = u64::from(all.saturating_sub(known)).saturating_sub(promised as u64);
        if sampling.neighbours.is_ending || free < 2 * BLOCK_PAGES || !self.is_untouched(at) {
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
        if let Some(sampling) = &mut self.sampling {
            let latest = &mut sampling.neighbours.latest;
            latest.truncate(LATEST - 1);
            latest.push_front((address - below * PAGE, address + PAGE + above * PAGE));
        }
    }

    /// The most pages that a block around `address` may have.
    fn block_pages(&self, address: usize) -> u64 {
        let together = self.managed.collect_overlaps(address, address + 1);
        let pages = together
            .first()
            .map_or(0, |&(start, end)| pages_in(start, end));
        let pages = (pages / BLOCK_SHARE).clamp(1, BLOCK_PAGES);
        1 << pages.ilog2()
    }

    /// Looks at the latest blocks: they may be unmapped as quickly as they are written.
    fn look_at_latest(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let latest = sampling.neighbours.latest.iter();
        let blank = latest.flat_map(|&(start, end)| {
            let parts = sampling
                .neighbours
                .blank
                .collect_overlaps(start, end)
                .into_iter();
            parts.map(move |(from, to)| (from.max(start), to.min(end)))
        });
        let blank = blank.collect();
        self.find_written_in(blank);
    }

    /// Returns true if the page at `address` is blank.
    pub(super) fn is_blank(&self, address: usize) -> bool {
        let sampling = self.sampling.as_ref();
        sampling.is_some_and(|sampling| sampling.neighbours.blank.contains(address))
    }

    /// Returns true if there is nothing at `at` that could be lost, in memory under management.
    fn is_untouched(&self, at: VirtPage) -> bool {
        let address = address_of(at);
        let is_known = self.is_blank(address) || !self.vm.is_blank(self.space, at);
        self.managed.contains(address) && !is_known
    }

    /// Maps blank pages in `start..end`, where nothing is there yet.
    fn map_blank(&mut self, mut start: usize, end: usize) {
        let Some(sampling) = &mut self.sampling else {
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
            sampling.neighbours.blank.insert(start, start + mapped);
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
            Probe::Changing => self.waiting.put_off(arrival),
            Probe::Unknown => self.machine.wake(at),
        }
        true
    }

    /// Looks which blank pages have been written to, if it is time.
    pub(super) fn look_at_neighbours(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        if now() < sampling.neighbours.due() {
            return;
        }
        let time = sampling.now();
        if time == sampling.neighbours.looked_at {
            sampling.neighbours.next_look = now().after_ns(LOOK_NS);
            return;
        }
        sampling.neighbours.looked_at = time;
        self.find_written();
    }

    /// Logs and adopts the blank pages that have been written to. False if the address space is
    /// changing: what stands where is not known.
    pub(super) fn find_written(&mut self) -> bool {
        let Some(sampling) = &mut self.sampling else {
            return true;
        };
        let began = now();
        let blank = sampling.neighbours.blank.iter().collect();
        let is_known = self.find_written_in(blank);
        if let Some(sampling) = &mut self.sampling {
            let now = now();
            let pause = (now.since_ns(began) * LOOK_SHARE).max(LOOK_NS);
            sampling.neighbours.next_look = now.after_ns(pause);
        }
        is_known
    }

    /// The same for `blank`, which are blank as far as is known.
    fn find_written_in(&mut self, blank: Vec<(usize, usize)>) -> bool {
        let Some(sampling) = &mut self.sampling else {
            return true;
        };
        if blank.is_empty() {
            return true;
        }
        let mut runs = std::mem::replace(&mut sampling.neighbours.runs, Runs::none());
        runs.blank.clear();
        runs.written.clear();
        for &(start, end) in &blank {
            self.look_in(start, end, &mut runs);
        }
        // What stands there may be what has come after something that has moved away.
        let is_known = self.changes.is_settled() && !self.machine.is_changing();
        if is_known {
            self.take_in_written(&blank, &runs);
        }
        if let Some(sampling) = &mut self.sampling {
            sampling.neighbours.runs = runs;
        }
        is_known
    }

    fn look_in(&self, mut start: usize, end: usize, runs: &mut Runs) {
        while start < end {
            let Runs { blank, written } = &mut *runs;
            let walked = self.machine.pages().find_own(start, end, blank, written);
            start = walked.expect("the kernel answers about this process's own pages");
        }
    }

    fn take_in_written(&mut self, before: &[(usize, usize)], runs: &Runs) {
        if let Some(sampling) = &mut self.sampling {
            let blank = &mut sampling.neighbours.blank;
            for &(start, end) in before {
                blank.remove(start, end);
            }
            for &(start, end) in &runs.blank {
                blank.insert(start, end);
            }
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
                    self.adoption.add(address, address + PAGE);
                }
            }
        }
    }

    /// Logs what has been written to in a range that the program is about to empty: who empties it
    /// has just been let go.
    pub(super) fn look_before_emptying(&mut self, start: usize, end: usize) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let blank = sampling.neighbours.blank.collect_overlaps(start, end);
        let mut runs = Runs::none();
        for (from, to) in blank {
            self.look_in(from.max(start), to.min(end), &mut runs);
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
        let Some(sampling) = &mut self.sampling else {
            return Vec::new();
        };
        let end = from + bytes;
        let before = sampling.neighbours.blank.collect_overlaps(from, end);
        sampling.neighbours.blank.remove(from, end);
        let mut runs = Runs::none();
        for (start, stop) in before {
            let there = |address: usize| address.clamp(from, end) - from + to;
            self.look_in(there(start), there(stop), &mut runs);
        }
        self.log_written(&runs.written, to.wrapping_sub(from) as isize);
        let parts = runs.blank.into_iter();
        parts.map(|(start, stop)| (start - to, stop - to)).collect()
    }

    /// Forgets blank pages of a range: something else may stand there.
    pub(super) fn forget_neighbours(&mut self, start: usize, end: usize) {
        if let Some(sampling) = &mut self.sampling {
            sampling.neighbours.blank.remove(start, end);
        }
        self.forget_known(start, end);
    }

    /// Brings the log up to date: the program is about to fork, or to leave its memory.
    pub(super) fn catch_up(&mut self) {
        if self.sampling.is_none() {
            return;
        }
        // Where changes do not end, what is blank can't be looked at.
        let _ = (0..CATCH_UP_TRIES).find(|_| !self.await_changes() || self.find_written());
        self.publish_samples();
    }

    /// The same at the end of the program. What is touched for the first time after this is logged
    /// when it is touched.
    pub(super) fn end_neighbours(&mut self) {
        if let Some(sampling) = &mut self.sampling {
            sampling.neighbours.is_ending = true;
            self.catch_up();
        }
    }
}

impl Runs {
    /// Without memory, to stand in for one that is at work.
    fn none() -> Runs {
        Runs {
            blank: Vec::new(),
            written: Vec::new(),
        }
    }
}
