//! Taking memory over: scans for new ranges, and pages that the program had filled before.

use tidemark_core::id::{PAGE_BYTES, VirtPage};
use tidemark_core::time::Time;

use super::Engine;
use crate::parts::trouble::say;
use crate::parts::units;
use crate::parts::units::{address_of, page_of};
use crate::ranges::Ranges;
use crate::requests::{Requests, Taken};
use crate::shared::Counter;
use crate::sys::{PAGE, status};

/// Pages adopted in one turn at most, so that faults never wait long.
const PAGES_A_TURN: usize = 512;
/// The shortest time after which the program's memory is looked at again while it grows.
const SCAN_NS_LEAST: u64 = 2_000_000;
/// The least pause between two looks, as a multiple of the duration of the last.
const SCAN_COSTS: u64 = 10;
/// The time after a fork at which memory is looked at.
const SCAN_NS_FORKED: u64 = 10_000_000;
/// The time after which memory is looked at again while it does not grow.
const SCAN_NS_MOST: u64 = 64_000_000;
/// A scan of everything happens at least this often: what keeps the size the same stays unseen.
const FULL_SCAN_NS: u64 = 1_000_000_000;
/// The time after a message at which pages that it may have left standing are looked for.
const LATER_NS: u64 = 20_000_000;
/// The time after pages were found gone at which all memory is looked at for them.
const REVIEW_NS: u64 = 100_000_000;
/// The same for pages in mappings that can't be moved out of.
const REVIEW_DISOWNED_NS: u64 = 2_000_000_000;
/// The interval at which memory that is not managed is measured.
const MEASURE_NS: u64 = 100_000_000;
/// The least pause between two measurements, as a multiple of the duration of the last.
const MEASURE_COSTS: u64 = 100;
/// Memory that is not managed is worth a line beyond this part of the budget, as a divisor.
const UNMANAGED_SHARE: u64 = 8;
/// The bytes of unmanaged memory below which it is not worth a line.
const UNMANAGED_BYTES_LEAST: u64 = 4 << 20;
/// The time for which memory must be unmanaged to be worth a line: new memory is adopted by then.
const UNMANAGED_NS_LEAST: u64 = 500_000_000;
/// The time after which adoption is tried again when there was no frame: twice as late each time in
/// a row.
const RETRY_NS: u64 = 1_000_000;
/// The longest time after which adoption is tried again.
const RETRY_NS_MOST: u64 = 64_000_000;

/// The memory still to be looked at, and the times.
pub(super) struct Adoption {
    /// Managed ranges that may hold pages in no account.
    unsettled: Ranges,
    later: Vec<(Time, usize, usize)>,
    pub(super) runs: Vec<(usize, usize)>,
    next_look: Time,
    next_full: Time,
    pause_ns: u64,
    /// The time that the last scan took.
    scan_ns: u64,
    size_pages: u64,
    /// The time at which memory that is not managed is measured next.
    next_measure: Time,
    /// Since when much is not managed.
    unmanaged_since: Option<Time>,
    /// True if that was said.
    has_said_unmanaged: bool,
    /// Threads that wait until a range is accounted for: what they fill is not to be more than can
    /// be taken over meanwhile.
    holding: Vec<(Taken, usize, usize)>,
    retry_at: Time,
    retry_ns: u64,
    gone_before: u64,
    /// The time at which all that is managed is to be looked at again, if at all.
    review_at: Option<Time>,
}

impl Adoption {
    pub(super) fn new() -> Adoption {
        Adoption {
            unsettled: Ranges::new(),
            later: Vec::new(),
            runs: Vec::with_capacity(crate::sys::pagemap::RUNS_MAX),
            next_look: Time(0),
            next_full: Time(0),
            pause_ns: SCAN_NS_LEAST,
            scan_ns: 0,
            size_pages: 0,
            next_measure: Time(0),
            unmanaged_since: None,
            has_said_unmanaged: false,
            holding: Vec::new(),
            retry_at: Time(0),
            retry_ns: RETRY_NS,
            gone_before: 0,
            review_at: None,
        }
    }

    /// Notes a range whose present pages are to be adopted.
    pub(super) fn add(&mut self, start: usize, end: usize) {
        self.unsettled.insert(start, end);
    }

    /// The same, but not before the thread that caused it has gone on.
    pub(super) fn add_later(&mut self, start: usize, end: usize, now: Time) {
        match self.later.last_mut() {
            Some((_, from, to)) if *from <= start && end <= *to => {}
            _ => self.later.push((now.after_ns(LATER_NS), start, end)),
        }
    }

    /// Has a request answered when all of a range is accounted for.
    pub(super) fn hold(&mut self, taken: Taken, start: usize, end: usize) {
        self.holding.push((taken, start, end));
    }

    /// Forgets who waits: in a forked child these are threads of its parent.
    pub(super) fn forget_holding(&mut self) {
        self.holding.clear();
    }

    /// Takes a request of which all is accounted for.
    fn take_held(&mut self) -> Option<Taken> {
        let is_over = |(_, start, end): &(Taken, usize, usize)| {
            self.unsettled.collect_overlaps(*start, *end).is_empty()
        };
        let over = self.holding.iter().position(is_over)?;
        Some(self.holding.swap_remove(over).0)
    }

    /// Forgets a range.
    pub(super) fn remove(&mut self, start: usize, end: usize) {
        self.unsettled.remove(start, end);
    }

    /// Makes the next turn scan.
    pub(super) fn hasten_scan(&mut self) {
        self.next_full = Time(0);
        self.next_look = Time(0);
    }

    /// Has a scan made soon after a fork. Threads that wait for this engine go on first, and many a
    /// child is gone before.
    pub(super) fn scan_soon(&mut self, now: Time) {
        self.next_full = Time(0);
        self.next_look = now.after_ns(SCAN_NS_FORKED);
    }

    /// The time at which there is something to do next.
    pub(super) fn due(&self) -> Time {
        let retry = if self.unsettled.is_empty() {
            Time(u64::MAX)
        } else {
            self.retry_at
        };
        let review = self.review_at.unwrap_or(Time(u64::MAX));
        let later = self.later.first().map_or(Time(u64::MAX), |(due, ..)| *due);
        self.next_look.min(retry).min(later).min(review)
    }
}

impl Engine {
    /// Looks for new memory and takes over what is found, if it is time.
    pub(super) fn look_for_memory(&mut self, requests: &Requests) {
        // A thread may wait for the memory that is looked for. Else it goes on first.
        if self.adoption.next_look == Time(0) {
            self.look_at_size();
        }
        self.look_for_pages();
        while let Some(taken) = self.adoption.take_held() {
            requests.answer(taken, 0);
        }
        if self.now >= self.adoption.next_look {
            self.look_at_size();
        }
    }

    fn look_for_pages(&mut self) {
        self.notice_gone_pages();
        while let Some(&(due, start, end)) = self.adoption.later.first() {
            if due > self.now {
                break;
            }
            self.adoption.later.remove(0);
            for (from, to) in self.managed.collect_overlaps(start, end) {
                self.adoption.add(from.max(start), to.min(end));
            }
        }
        if !self.adoption.unsettled.is_empty() && self.now >= self.adoption.retry_at {
            self.adopt_some();
        }
    }

    /// Compares the size of the address space with the last one, and scans if it changed.
    pub(super) fn look_at_size(&mut self) {
        let sizes = self.scanner.sizes().unwrap_or_default();
        let has_changed = sizes.space_pages != self.adoption.size_pages;
        self.adoption.size_pages = sizes.space_pages;
        if has_changed || self.now >= self.adoption.next_full {
            self.adoption.next_full = self.now.after_ns(FULL_SCAN_NS);
            let began = units::now();
            self.scan();
            self.adoption.scan_ns = units::now().since_ns(began);
        }
        self.charge_beside(sizes.anonymous_pages);
        let pause = if has_changed {
            SCAN_NS_LEAST.max(self.adoption.scan_ns * SCAN_COSTS)
        } else {
            self.adoption.pause_ns * 2
        };
        self.adoption.pause_ns = pause.min(SCAN_NS_MOST);
        self.adoption.next_look = self.now.after_ns(self.adoption.pause_ns);
        if self.now >= self.adoption.next_measure {
            let began = units::now();
            self.measure_unmanaged();
            let cost_ns = units::now().since_ns(began);
            let pause_ns = MEASURE_NS.max(cost_ns * MEASURE_COSTS);
            self.adoption.next_measure = self.now.after_ns(pause_ns);
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
        let bytes = unmanaged.saturating_sub(self.outside.len() * PAGE_BYTES);
        let budget = self.line.bytes_of_run();
        let is_little = bytes <= (budget / UNMANAGED_SHARE).max(UNMANAGED_BYTES_LEAST);
        // Pages that a fork has left, or that wait for frames, are still to be taken over.
        let is_behind = !self.adoption.unsettled.is_empty();
        if is_little || is_behind || !self.scanner.locked().is_empty() {
            self.adoption.unmanaged_since = None;
            return;
        }
        let since = *self.adoption.unmanaged_since.get_or_insert(self.now);
        if self.adoption.has_said_unmanaged || self.now.since_ns(since) < UNMANAGED_NS_LEAST {
            return;
        }
        // It may have been locked by a call that is not reported.
        self.review_locks();
        if !self.scanner.locked().is_empty() {
            return;
        }
        self.adoption.has_said_unmanaged = true;
        say(&format!(
            "{} ({}): {} MiB of its memory can't be managed, and are in use beside `--memory`: \
             stacks, executable memory, shared memory, or private pages of files",
            self.setup.name,
            self.line.own_process(),
            bytes >> 20
        ));
    }

    /// Reads the list of mappings and takes over what can be managed.
    pub(super) fn scan(&mut self) {
        self.review_locks();
        if self.scanner.read().is_err() {
            return;
        }
        // A change that happened before the list was read must be applied before it is believed.
        let events = self.telemetry.get(Counter::MapEvents);
        self.read_messages();
        // One whose message is still on its way shows in the list all the same: a range that
        // `mremap` has moved would pass for a new one, its pages for unknown ones.
        let has_changed = self.telemetry.get(Counter::MapEvents) != events;
        if has_changed || self.machine.is_changing() {
            self.adoption.hasten_scan();
            return;
        }
        let found = self.scanner.find(&self.managed, self.now);
        self.note_threads();
        for (start, end) in found.fresh {
            self.take_over(start, end);
        }
    }

    /// Adopts present pages, some at a time.
    fn adopt_some(&mut self) {
        let mut left = PAGES_A_TURN;
        while left > 0 {
            let Some((start, end)) = self.adoption.unsettled.iter().next() else {
                return;
            };
            let mut runs = std::mem::take(&mut self.adoption.runs);
            let walked = self.machine.pages().find_present(start, end, &mut runs);
            let mut settled = walked.unwrap_or(end);
            // Chosen before the first is adopted: that may take the frames of others, and a page
            // that the core has sent away meanwhile must not pass for one that stands there.
            let strangers = self.collect_strangers(&runs, left);
            // What stands there may be what has come after something that has moved away.
            if self.machine.is_changing() {
                self.adoption.runs = runs;
                self.put_adoption_off();
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
            self.adoption.runs = runs;
            if settled > start {
                self.adoption.unsettled.remove(start, settled);
                self.adoption.retry_ns = RETRY_NS;
            } else if left == 0 {
                self.put_adoption_off();
            }
        }
    }

    fn put_adoption_off(&mut self) {
        if !self.adoption.holding.is_empty() {
            self.adoption.retry_ns = RETRY_NS;
        }
        self.adoption.retry_at = self.now.after_ns(self.adoption.retry_ns);
        self.adoption.retry_ns = (self.adoption.retry_ns * 2).min(RETRY_NS_MOST);
    }

    /// The first pages of `runs`, at most `most`, of which the core knows nothing, or that it takes
    /// for pages that do not stand there.
    fn collect_strangers(&self, runs: &[(usize, usize)], most: usize) -> Vec<usize> {
        let pages = runs.iter().flat_map(|&(from, to)| (from..to).step_by(PAGE));
        // Blank pages become known when they are written to; pinned ones have a pace of their own.
        let is_stranger = |address: &usize| {
            let is_known = self.is_known(page_of(*address));
            !is_known && !self.is_blank(*address) && !self.outside.contains(*address)
        };
        pages.filter(is_stranger).take(most).collect()
    }

    /// Returns true if the core has the page that is in place in the program.
    pub(super) fn is_known(&self, at: VirtPage) -> bool {
        let frame = self.vm.frame_at(self.space, at);
        frame.is_some_and(|frame| self.machine.is_mapped(frame))
    }

    /// The same as [`adopt_page`](Self::adopt_page), where what stands there is newer than what the
    /// core has of it.
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
        if self.managed.contains(address) {
            self.adoption.add(address, address + PAGE);
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
        let disowned = self.machine.tally().disowned;
        if disowned > 0 && self.adoption.review_at.is_none() {
            self.adoption.review_at = Some(self.now.after_ns(REVIEW_DISOWNED_NS));
        }
        let gone = self.machine.tally().gone;
        if gone != self.adoption.gone_before && self.adoption.review_at.is_none() {
            self.adoption.gone_before = gone;
            self.adoption.review_at = Some(self.now.after_ns(REVIEW_NS));
        }
        if self.adoption.review_at.is_some_and(|due| due <= self.now) {
            self.adoption.review_at = None;
            if self.scanner.read().is_ok() {
                for (start, end) in self.scanner.collect_writable(&self.managed) {
                    self.adoption.unsettled.insert(start, end);
                }
            }
        }
    }
}
