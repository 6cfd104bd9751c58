//! The size of the working set over time, at several windows, from one pass over a string that is
//! not held.
//!
//! Each page has the time of its last use, the same for all windows. A use changes the set of a
//! window only where the interval before it is longer than that, which for most uses is one
//! comparison. When a page leaves is known only once it was not used for a window; so each window
//! has an *agenda*, a ring of slots of time with the pages that may leave then. A slot is opened
//! when its time has come: a page that was used since moves on to the slot of its new time.
//!
//! Changes are reported late, at the next use that faults, but in order and exactly: a use of a
//! page that should have left is a fault itself, before which all departures are reported. A page
//! that departs leaves at once, or with the tick of its use; the entry it had is passed over.
//!
//! # Invariants
//! 1. Each page of a window's set has one entry in its agenda that is not passed over, under a time
//!    at which it leaves or earlier.
//! 2. Of the times under `due`, those before the next unopened slot are before those of all slots.
//!
//! # Bounds
//! Memory: 8 bytes a page, 4 for each page in a window's set, and the timelines. An entry moves on
//! once for each part of a window in which its page is used, and mostly once a window.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ahead::{AHEAD, bring_pages_near};
use super::reference_string::{ReferenceString, Stretch, departs_at};
use super::residence::{Arrival, Timeline, Watcher};

/// No use of the page yet.
const NEVER: u64 = u64::MAX;
/// The page departed.
const DEPARTED: u64 = u64::MAX - 1;
/// Slots of an agenda.
const SLOTS: u64 = 1 << 10;

/// The size of the working set over time at each of `windows`, in at most `pieces` pieces.
pub fn working_set_over_time(
    string: ReferenceString<'_>,
    windows: &[u64],
    pieces: usize,
) -> Vec<Timeline> {
    let mut ageing = Ageing::new(windows, string.end(), pieces);
    ageing.take(string.stretch());
    ageing.finish()
}

/// The pass.
pub struct Ageing {
    /// The last tick of each page's last use.
    last: Vec<u64>,
    agendas: Vec<Agenda>,
    shortest: u64,
    start: Option<u64>,
    end: u64,
    pieces: usize,
}

/// The measures to be made of one window's set.
struct Agenda {
    window: u64,
    slot_ticks: u64,
    slots: Vec<Vec<u32>>,
    /// The next slot to be opened, counted from tick 0.
    next: u64,
    /// Entries in slots.
    filed: usize,
    /// Pages of opened slots and of what is beyond the slots, by the time under which they are
    /// entered, and those that departed in the tick of their use.
    due: BinaryHeap<Reverse<Entry>>,
    size: u64,
    now: u64,
    line: Timeline,
}

/// A page that leaves at a time. Those that departed come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    leaves: u64,
    /// True if the page leaves only if it is not used until then.
    expires: bool,
    page: u32,
}

impl Ageing {
    /// The pass over a string that ends at tick `end`, with `windows`; at most `pieces` pieces of
    /// time.
    ///
    /// # Panics
    /// If a window is 0.
    pub fn new(windows: &[u64], end: u64, pieces: usize) -> Ageing {
        assert!(!windows.contains(&0), "a window is 0; needs 1");
        let line = Timeline::spanning(0, 0, pieces);
        let agenda = |&window| Agenda::new(window, line.clone());
        Ageing {
            last: Vec::new(),
            agendas: windows.iter().map(agenda).collect(),
            shortest: windows.iter().copied().min().unwrap_or(NEVER),
            start: None,
            end,
            pieces,
        }
    }

    /// Takes the next references.
    pub fn take(&mut self, stretch: Stretch<'_>) {
        if let (None, Some(start)) = (self.start, stretch.start()) {
            self.start = Some(start);
            for agenda in &mut self.agendas {
                agenda.begin(start, Timeline::spanning(start, self.end, self.pieces));
            }
        }
        let pages = stretch.page_count as usize;
        if self.last.len() < pages {
            self.last.resize(pages, NEVER);
        }
        for run in stretch.runs() {
            self.depart(run.departed, run.time);
            for some in run.references.parts(AHEAD) {
                bring_pages_near(&self.last, some.pages);
                some.visit(|page, time, until| {
                    let before = self.last[page as usize];
                    if before == NEVER || time - before > self.shortest {
                        self.come(page, time, until);
                    }
                    self.last[page as usize] = until;
                });
            }
        }
    }

    /// Lets pages go for good as a reference at `time` comes.
    fn depart(&mut self, departed: &[u32], time: u64) {
        if departed.is_empty() {
            return;
        }
        for agenda in &mut self.agendas {
            agenda.let_go(time, &self.last);
            for &page in departed {
                let used = self.last[page as usize];
                let leaves = departs_at(used, time);
                if used.saturating_add(agenda.window) >= leaves {
                    agenda.depart(page, leaves, time);
                }
            }
        }
        for &page in departed {
            self.last[page as usize] = DEPARTED;
        }
    }

    /// The sizes at each window, in their order.
    pub fn finish(mut self) -> Vec<Timeline> {
        for agenda in self.agendas.iter_mut().filter(|_| self.start.is_some()) {
            agenda.let_go(self.end, &self.last);
            agenda.pass(self.end);
        }
        self.agendas.into_iter().map(|agenda| agenda.line).collect()
    }

    /// `page` comes into the sets that it is not in.
    #[inline(never)]
    fn come(&mut self, page: u32, time: u64, until: u64) {
        let before = self.last[page as usize];
        for agenda in &mut self.agendas {
            let cause = match before {
                NEVER => Arrival::First,
                _ if time - before > agenda.window => Arrival::Return,
                _ => continue,
            };
            agenda.let_go(time, &self.last);
            agenda.come(page, time, until, cause);
        }
    }
}

impl Agenda {
    fn new(window: u64, line: Timeline) -> Agenda {
        Agenda {
            window,
            // A window's pages are in fewer slots than there are.
            slot_ticks: window / (SLOTS - 2) + 1,
            slots: vec![Vec::new(); SLOTS as usize],
            next: 0,
            filed: 0,
            due: BinaryHeap::new(),
            size: 0,
            now: 0,
            line,
        }
    }

    fn begin(&mut self, start: u64, line: Timeline) {
        self.line = line;
        self.now = start;
        self.next = start / self.slot_ticks;
    }

    /// A page comes that is not in the set.
    fn come(&mut self, page: u32, time: u64, until: u64, cause: Arrival) {
        self.pass(time);
        self.size += 1;
        self.line.faulted(self.size, cause);
        self.enter(page, until.saturating_add(self.window));
    }

    /// A page of the set departs at `time`: it leaves then, or with the tick of its use.
    fn depart(&mut self, page: u32, leaves: u64, time: u64) {
        if leaves == time {
            self.pass(time);
            self.size -= 1;
            return;
        }
        self.due.push(Reverse(Entry {
            leaves,
            expires: false,
            page,
        }));
    }

    /// Lets go the pages that leave before `time`.
    fn let_go(&mut self, time: u64, last: &[u64]) {
        loop {
            // Nothing is in slots: a silence is passed in one step, however long it is.
            if self.filed == 0 {
                self.next = self.next.max(time.div_ceil(self.slot_ticks));
            }
            // Who leaves later may do so after someone of a slot that is still to be opened.
            let known = self.next.saturating_mul(self.slot_ticks).min(time);
            while let Some(&Reverse(entry)) = self.due.peek()
                && (entry.leaves < known || entry.leaves == known && !entry.expires)
            {
                self.due.pop();
                let used = last[entry.page as usize];
                let then = used.saturating_add(self.window);
                if !entry.expires || (used != DEPARTED && then == entry.leaves) {
                    self.pass(entry.leaves);
                    self.size -= 1;
                } else if used != DEPARTED {
                    self.enter(entry.page, then);
                }
            }
            if self.next.saturating_mul(self.slot_ticks) >= time {
                return;
            }
            self.open(last);
        }
    }

    /// Opens the next slot.
    fn open(&mut self, last: &[u64]) {
        let place = (self.next % SLOTS) as usize;
        let mut pages = std::mem::take(&mut self.slots[place]);
        self.filed -= pages.len();
        self.next += 1;
        for page in pages.drain(..) {
            let used = last[page as usize];
            if used != DEPARTED {
                self.enter(page, used.saturating_add(self.window));
            }
        }
        // A page that leaves later may have come to the same place.
        if self.slots[place].is_empty() {
            self.slots[place] = pages;
        }
    }

    /// Enters a page that leaves at `leaves`, or later if it is used before.
    fn enter(&mut self, page: u32, leaves: u64) {
        let slot = leaves / self.slot_ticks;
        // What is beyond the slots waits beside them: looks at it on the way there would go through
        // the slots of a silence one by one.
        if slot < self.next || slot - self.next >= SLOTS {
            self.due.push(Reverse(Entry {
                leaves,
                expires: true,
                page,
            }));
        } else {
            self.slots[(slot % SLOTS) as usize].push(page);
            self.filed += 1;
        }
    }

    /// Tells that the size stays until `time`.
    fn pass(&mut self, time: u64) {
        if time > self.now {
            self.line.stayed(self.now, time, self.size);
            self.now = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reference_string::Touch;
    use super::super::slow::{departing_strings, strings};
    use super::super::working_set::watch_working_set;
    use super::*;

    #[test]
    fn a_set_is_left_through_a_long_silence() {
        // Ten pages, nothing for a million windows, and one of them again.
        let pages: Vec<u32> = (0..10).chain([3]).collect();
        let times: Vec<u64> = (0..10).chain([10_000_000]).collect();
        let string = ReferenceString::new(&pages, 10).at(&times);
        let line = &working_set_over_time(string, &[10], 100)[0];
        assert_eq!((line.totals.first, line.totals.returns), (10, 1));
        assert_eq!((line.totals.pages_max, line.totals.page_time), (10, 101));
    }

    #[test]
    fn found_n12_a_silence_is_passed_in_one_step() {
        // Pages in use through a silence of as many ticks as no loop goes through, and short ones.
        let pages: Vec<u32> = (0..10).chain([3, 4, 5]).collect();
        let late = [0, 1, 2].map(|tick| (1u64 << 60) + tick);
        let times: Vec<u64> = (0..10).chain(late).collect();
        for touch in [Touch::UntilNext, Touch::Momentary] {
            let string = ReferenceString::new(&pages, 10).at(&times).lasting(touch);
            for window in [1, 3, 1_000_000, 1 << 59] {
                let line = &working_set_over_time(string, &[window], 100)[0];
                let walked = watch_working_set(string, window, Timeline::new(&string, 100));
                assert_eq!(line, &walked, "{touch:?}, {window}");
            }
        }
    }

    /// Takes `string` in `cut` parts, and compares with a walk over it.
    fn assert_as_walked(string: ReferenceString<'_>, windows: &[u64], pieces: usize, cut: usize) {
        let mut ageing = Ageing::new(windows, string.end(), pieces);
        string
            .stretch()
            .parts(cut)
            .for_each(|part| ageing.take(part));
        for (line, &window) in ageing.finish().iter().zip(windows) {
            let walked = watch_working_set(string, window, Timeline::new(&string, pieces));
            if string.pages().is_empty() {
                assert!(line.pieces.is_empty());
            } else {
                assert_eq!(line, &walked);
            }
        }
    }

    proptest! {
        #[test]
        fn found_h5_stretches_have_the_timelines_of_the_walk(
            owned in strings(),
            windows in prop::collection::vec(prop_oneof![1u64..50, 1u64..5000], 1..4),
            pieces in 1usize..20,
            cut in 1usize..20,
        ) {
            assert_as_walked(owned.string(), &windows, pieces, cut);
        }

        #[test]
        fn found_m4_pages_that_depart_leave_the_timelines(
            owned in departing_strings(),
            windows in prop::collection::vec(prop_oneof![1u64..50, 1u64..5000], 1..4),
            pieces in 1usize..20,
            cut in 1usize..20,
        ) {
            assert_as_walked(owned.string(), &windows, pieces, cut);
        }

        #[test]
        fn found_h5_many_pages_move_through_the_slots_as_they_are_used(
            seed in any::<u64>(),
            window in 1u64..20_000,
            until_next in any::<bool>(),
        ) {
            let mut random = tidemark_model::traces::SplitMix64::new(seed);
            let mut time = 0;
            let (pages, times): (Vec<u32>, Vec<u64>) = (0..6000).map(|_| {
                let page = match random.below(3) {
                    0 => random.below(600),
                    _ => random.below(20),
                };
                time += random.below(9) * random.below(9);
                (page as u32, time)
            }).unzip();
            let touch = if until_next { Touch::UntilNext } else { Touch::Momentary };
            let string = ReferenceString::new(&pages, 600).at(&times).lasting(touch);
            let line = &working_set_over_time(string, &[window], 50)[0];
            prop_assert_eq!(line, &watch_working_set(string, window, Timeline::new(&string, 50)));
        }
    }
}
