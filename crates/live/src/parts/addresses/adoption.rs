//! The memory that is still to be looked at, and when.

use tidemark_core::time::Time;

use crate::ranges::Ranges;
use crate::requests::Taken;

/// The shortest time after which the program's memory is looked at again while it grows.
const SCAN_NS_LEAST: u64 = 2_000_000;
/// The least pause between two looks, as a multiple of the duration of the last.
const SCAN_COSTS: u64 = 30;
/// The same where there is room for all that can come by then.
const SCAN_COSTS_WITH_ROOM: u64 = 150;
/// The time in which a program can fill a page that the engine does not know of, with as much
/// again to spare.
const FILL_NS: u64 = 500;
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
/// The time after which all memory is looked at again for pages that were found gone, in mappings
/// that pages can't be moved out of.
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
pub struct Adoption {
    /// Managed ranges that may hold pages in no account.
    unsettled: Ranges,
    later: Vec<(Time, usize, usize)>,
    /// Memory for a walk over present pages.
    runs: Vec<(usize, usize)>,
    next_look: Time,
    /// The time of the last look.
    looked: Time,
    next_full: Time,
    pause_ns: u64,
    /// The time that the last scan took.
    scan_ns: u64,
    /// The pages that may come beside those that are in memory.
    room: u64,
    size_pages: u64,
    /// The time at which memory that is not managed is measured next.
    next_measure: Time,
    /// The time since which much memory is not managed.
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
    /// The memory beside frames, in pages, as it was found last.
    beside_last: u64,
}

impl Adoption {
    /// Nothing has been looked at.
    pub fn new() -> Adoption {
        Adoption {
            unsettled: Ranges::new(),
            later: Vec::new(),
            runs: Vec::with_capacity(crate::sys::pagemap::RUNS_MAX),
            next_look: Time(0),
            looked: Time(0),
            next_full: Time(0),
            pause_ns: SCAN_NS_LEAST,
            scan_ns: 0,
            room: 0,
            size_pages: 0,
            next_measure: Time(0),
            unmanaged_since: None,
            has_said_unmanaged: false,
            holding: Vec::new(),
            retry_at: Time(0),
            retry_ns: RETRY_NS,
            gone_before: 0,
            review_at: None,
            beside_last: 0,
        }
    }

    /// Notes a range whose present pages are to be adopted.
    pub fn add(&mut self, start: usize, end: usize) {
        self.unsettled.insert(start, end);
    }

    /// Notes a range whose present pages are to be adopted, but not before the thread that caused
    /// it has gone on.
    pub fn add_later(&mut self, start: usize, end: usize, now: Time) {
        match self.later.last_mut() {
            Some((_, from, to)) if *from <= start && end <= *to => {}
            _ => self.later.push((now.after_ns(LATER_NS), start, end)),
        }
    }

    /// Holds a request back until every page of its range is either managed or left to the kernel.
    pub fn hold(&mut self, taken: Taken, start: usize, end: usize) {
        self.holding.push((taken, start, end));
    }

    /// Forgets who waits: in a forked child these are threads of its parent.
    pub fn forget_holding(&mut self) {
        self.holding.clear();
    }

    /// Takes a request of which all is accounted for.
    pub fn take_held(&mut self) -> Option<Taken> {
        let is_over = |(_, start, end): &(Taken, usize, usize)| {
            self.unsettled.collect_overlaps(*start, *end).is_empty()
        };
        let over = self.holding.iter().position(is_over)?;
        Some(self.holding.swap_remove(over).0)
    }

    /// Forgets a range.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.unsettled.remove(start, end);
    }

    /// Makes the next turn scan.
    pub fn hasten_scan(&mut self) {
        self.next_full = Time(0);
        self.next_look = Time(0);
    }

    /// Has a scan made as soon as after a change of size: a program that unmaps its memory page by
    /// page has no scan made for each.
    pub fn want_scan(&mut self) {
        self.next_full = Time(0);
        let soon = self.looked.after_ns(self.pause_of_change());
        self.next_look = self.next_look.min(soon);
    }

    /// Has a scan made soon after a fork. Threads that wait for this engine go on first, and many a
    /// child is gone before.
    pub fn scan_soon(&mut self, now: Time) {
        self.next_full = Time(0);
        self.next_look = now.after_ns(SCAN_NS_FORKED);
    }

    /// The time at which there is something to do next.
    pub fn due(&self) -> Time {
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

// Looks at the size of memory, and scans.
impl Adoption {
    /// Returns true if a thread may wait for a look.
    pub fn is_look_wanted(&self) -> bool {
        self.next_look == Time(0)
    }

    /// Returns true if it is time for a look.
    pub fn is_look_due(&self, now: Time) -> bool {
        now >= self.next_look
    }

    /// Takes in the size of the address space, in pages. Answers whether it has changed, and
    /// whether that, or the time, calls for a scan.
    pub fn note_size(&mut self, pages: u64, now: Time) -> (bool, bool) {
        let has_changed = pages != self.size_pages;
        self.size_pages = pages;
        let scans = has_changed || now >= self.next_full;
        if scans {
            self.next_full = now.after_ns(FULL_SCAN_NS);
        }
        (has_changed, scans)
    }

    /// Learns how long a scan took.
    pub fn note_scan(&mut self, ns: u64) {
        self.scan_ns = ns;
    }

    /// Learns how many `pages` may come beside those that are in memory.
    pub fn note_room(&mut self, pages: u64) {
        self.room = pages;
    }

    /// Plans the next look.
    pub fn plan_look(&mut self, has_changed: bool, now: Time) {
        let pause = match has_changed {
            true => self.pause_of_change(),
            false => self.pause_ns * 2,
        };
        self.pause_ns = pause.min(SCAN_NS_MOST);
        self.looked = now;
        self.next_look = now.after_ns(self.pause_ns);
    }

    /// The pause between two looks while memory changes.
    fn pause_of_change(&self) -> u64 {
        let with_room = (self.scan_ns * SCAN_COSTS_WITH_ROOM).min(self.room * FILL_NS);
        SCAN_NS_LEAST.max(self.scan_ns * SCAN_COSTS).max(with_room)
    }

    /// Returns true if memory that is not managed is to be measured.
    pub fn is_measure_due(&self, now: Time) -> bool {
        now >= self.next_measure
    }

    /// Plans the next measurement, after one that took `cost_ns`.
    pub fn plan_measure(&mut self, cost_ns: u64, now: Time) {
        self.next_measure = now.after_ns(MEASURE_NS.max(cost_ns * MEASURE_COSTS));
    }

    /// Takes in the pages that are beside frames. Answers those of them that are beside them for
    /// good: what is only there until it is found and becomes a frame is not there the next time.
    pub fn note_beside(&mut self, pages: u64) -> u64 {
        pages.min(std::mem::replace(&mut self.beside_last, pages))
    }

    /// Takes in that `bytes` are not managed, of a run with a budget of `budget` bytes. Returns
    /// true if that is worth a line by now; `is_explained` if there is another reason for it.
    pub fn note_unmanaged(
        &mut self,
        (bytes, budget): (u64, u64),
        is_explained: bool,
        now: Time,
    ) -> bool {
        let is_little = bytes <= (budget / UNMANAGED_SHARE).max(UNMANAGED_BYTES_LEAST);
        // Pages that a fork has left, or that wait for frames, are still to be taken over.
        let is_behind = !self.unsettled.is_empty();
        if is_little || is_behind || is_explained {
            self.unmanaged_since = None;
            return false;
        }
        let since = *self.unmanaged_since.get_or_insert(now);
        !self.has_said_unmanaged && now.since_ns(since) >= UNMANAGED_NS_LEAST
    }

    /// Remembers that it was said.
    pub fn note_said(&mut self) {
        self.has_said_unmanaged = true;
    }
}

// Pages that stand in the program already.
impl Adoption {
    /// Takes a range whose time has come of those that were [to wait](Self::add_later).
    pub fn take_later(&mut self, now: Time) -> Option<(usize, usize)> {
        let &(due, start, end) = self.later.first()?;
        (due <= now).then(|| {
            self.later.remove(0);
            (start, end)
        })
    }

    /// Returns true if pages are to be adopted now.
    pub fn is_due(&self, now: Time) -> bool {
        !self.unsettled.is_empty() && now >= self.retry_at
    }

    /// The next range that may hold pages in no account.
    pub fn next(&self) -> Option<(usize, usize)> {
        self.unsettled.iter().next()
    }

    /// Lends the memory for a walk over present pages.
    pub fn take_runs(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.runs)
    }

    /// Takes that memory back.
    pub fn return_runs(&mut self, runs: Vec<(usize, usize)>) {
        self.runs = runs;
    }

    /// Takes in that everything in a range is accounted for.
    pub fn settle(&mut self, start: usize, end: usize) {
        self.unsettled.remove(start, end);
        self.retry_ns = RETRY_NS;
    }

    /// Tries again later: sooner if a thread waits.
    pub fn put_off(&mut self, now: Time) {
        if !self.holding.is_empty() {
            self.retry_ns = RETRY_NS;
        }
        self.retry_at = now.after_ns(self.retry_ns);
        self.retry_ns = (self.retry_ns * 2).min(RETRY_NS_MOST);
    }

    /// Takes in how many pages were gone when they were to be moved out, and how many were left to
    /// the program because its mapping was read-only. Returns true if all memory is to be looked at
    /// for them now: the first stand unaccounted somewhere, and the others may be writable again.
    pub fn review(&mut self, (gone, disowned): (u64, u64), now: Time) -> bool {
        if disowned > 0 && self.review_at.is_none() {
            self.review_at = Some(now.after_ns(REVIEW_DISOWNED_NS));
        }
        if gone != self.gone_before && self.review_at.is_none() {
            self.gone_before = gone;
            self.review_at = Some(now.after_ns(REVIEW_NS));
        }
        let is_due = self.review_at.is_some_and(|due| due <= now);
        if is_due {
            self.review_at = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1 << 40);

    #[test]
    fn a_range_is_settled_in_parts_and_put_off_for_ever_longer() {
        let mut adoption = Adoption::new();
        adoption.add(0x1000, 0x5000);
        assert!(adoption.is_due(NOW));
        adoption.settle(0x1000, 0x3000);
        assert_eq!(adoption.next(), Some((0x3000, 0x5000)));
        adoption.put_off(NOW);
        assert!(!adoption.is_due(NOW) && adoption.is_due(NOW.after_ns(RETRY_NS)));
        // Twice as late the next time.
        adoption.put_off(NOW);
        assert!(!adoption.is_due(NOW.after_ns(RETRY_NS)));
    }

    #[test]
    fn wanted_scans_are_made_at_the_pace_of_changes() {
        let mut adoption = Adoption::new();
        adoption.plan_look(false, NOW);
        adoption.want_scan();
        assert_eq!(adoption.due(), NOW.after_ns(SCAN_NS_LEAST));
        adoption.note_scan(SCAN_NS_LEAST);
        adoption.plan_look(true, NOW);
        adoption.want_scan();
        assert_eq!(adoption.due(), NOW.after_ns(SCAN_NS_LEAST * SCAN_COSTS));
        assert!(!adoption.is_look_wanted());
        // The next look is a scan, whatever the size.
        assert_eq!(adoption.note_size(0, NOW), (false, true));
    }

    #[test]
    fn scans_are_rarer_where_there_is_room_but_never_so_rare_that_it_could_be_filled() {
        const SCAN_NS: u64 = 100_000;
        let mut adoption = Adoption::new();
        adoption.note_scan(SCAN_NS);
        for (room, pause_ns) in [
            (0, SCAN_NS * SCAN_COSTS),
            (1000, SCAN_NS * SCAN_COSTS),
            (20_000, 20_000 * FILL_NS),
            (1_000_000, SCAN_NS * SCAN_COSTS_WITH_ROOM),
        ] {
            adoption.note_room(room);
            adoption.plan_look(true, NOW);
            assert_eq!(adoption.due(), NOW.after_ns(pause_ns), "{room}");
        }
    }

    #[test]
    fn memory_beside_frames_counts_when_it_is_there_twice() {
        let mut adoption = Adoption::new();
        assert_eq!(adoption.note_beside(500), 0);
        assert_eq!(adoption.note_beside(700), 500);
        assert_eq!(adoption.note_beside(100), 100);
    }

    #[test]
    fn unmanaged_memory_is_worth_a_line_when_it_stays_and_nothing_explains_it() {
        let mut adoption = Adoption::new();
        let (much, budget) = (2 * UNMANAGED_BYTES_LEAST, UNMANAGED_BYTES_LEAST);
        let later = NOW.after_ns(UNMANAGED_NS_LEAST);
        assert!(!adoption.note_unmanaged((much, budget), false, NOW));
        assert!(!adoption.note_unmanaged((much, budget), true, later));
        // It begins anew.
        assert!(!adoption.note_unmanaged((much, budget), false, later));
        let last = later.after_ns(UNMANAGED_NS_LEAST);
        assert!(adoption.note_unmanaged((much, budget), false, last));
        adoption.note_said();
        assert!(!adoption.note_unmanaged((much, budget), false, last));
    }
}
