//! Pages outside of the account: pinned ones that the core has disowned, as memory was full of
//! them.
//!
//! They stand where the program has them, and the kernel holds them: to let them be is all that can
//! be done. Memory in use is over the budget by as much, which is said once. They are tried again,
//! some at a time, after pauses that grow while none can be moved.
//!
//! # Invariants
//! 1. A page in here is in managed memory, stands there, and is one that the core knows nothing of.
//!    What the program unmaps, empties or moves is taken out.

use tidemark_core::driver::Driver;
use tidemark_core::id::VirtPage;
use tidemark_core::time::Time;

use super::Engine;
use crate::parts::trouble::{pid, say};
use crate::parts::units::size;
use crate::parts::units::{address_of, page_of};
use crate::ranges::Ranges;
use crate::shared::Counter;
use crate::sys::PAGE;

/// Pages that are tried at a time, at first, and at most.
const PAGES_LEAST: usize = 64;
const PAGES_MOST: usize = 4096;
/// The pause before the next are tried, at first, and at most.
const PAUSE_NS_LEAST: u64 = 20_000_000;
const PAUSE_NS_MOST: u64 = 1_000_000_000;
/// The time after the last disowned page at which it is said how many there are.
const SAID_AFTER_NS: u64 = 1_000_000_000;
/// The time after the first disowned page at which it is said at the latest.
const SAID_BEFORE_NS: u64 = 5_000_000_000;

/// The pages outside of the account.
pub(super) struct Outside {
    pages: Ranges,
    /// The place where the next try begins.
    next: usize,
    due: Time,
    pause_ns: u64,
    pages_at_once: usize,
    /// The number of pages that have come in here.
    added: u64,
    word: Word,
    has_told_of_kept: bool,
}

/// The state of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Unneeded,
    Due { due: Time, latest: Time },
    Said,
}

impl Outside {
    pub(super) fn new() -> Outside {
        Outside {
            pages: Ranges::new(),
            next: 0,
            due: Time(0),
            pause_ns: PAUSE_NS_LEAST,
            pages_at_once: PAGES_LEAST,
            added: 0,
            word: Word::Unneeded,
            has_told_of_kept: false,
        }
    }

    /// Forgets what was disowned in a range.
    pub(super) fn remove(&mut self, start: usize, end: usize) {
        self.pages.remove(start, end);
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        self.pages.contains(address)
    }

    /// The number of pages.
    pub(super) fn len(&self) -> u64 {
        (self.pages.bytes() / PAGE) as u64
    }

    /// Has all tried soon: this is another process, in which they may not be held.
    pub(super) fn hasten(&mut self, now: Time) {
        (self.due, self.pause_ns) = (now, PAUSE_NS_LEAST);
    }

    /// The time at which there is something to do.
    pub(super) fn due(&self) -> Time {
        let next = match self.pages.is_empty() {
            true => Time(u64::MAX),
            false => self.due,
        };
        match self.word {
            Word::Due { due, .. } => next.min(due),
            Word::Unneeded | Word::Said => next,
        }
    }

    fn add(&mut self, address: usize, now: Time) {
        if self.pages.is_empty() {
            self.due = now.after_ns(self.pause_ns);
        }
        let latest = match self.word {
            Word::Unneeded => Some(now.after_ns(SAID_BEFORE_NS)),
            Word::Due { latest, .. } => Some(latest),
            Word::Said => None,
        };
        if let Some(latest) = latest {
            let due = now.after_ns(SAID_AFTER_NS).min(latest);
            self.word = Word::Due { due, latest };
        }
        self.pages.insert(address, address + PAGE);
        self.added += 1;
    }

    /// Takes the next pages out that are to be tried: a run that begins behind the last one.
    fn take_next(&mut self) -> Option<(usize, usize)> {
        let behind = self.pages.collect_overlaps(self.next, usize::MAX);
        let range = behind.first().copied().or_else(|| self.pages.iter().next());
        let (start, end) = range?;
        let start = if end > self.next {
            start.max(self.next)
        } else {
            start
        };
        let end = end.min(start + self.pages_at_once * PAGE);
        self.pages.remove(start, end);
        self.next = end;
        Some((start, end))
    }

    /// Sets the pace by whether all of the last try have come back.
    fn set_pace(&mut self, has_come_back: bool, now: Time) {
        (self.pages_at_once, self.pause_ns) = match has_come_back {
            true => ((self.pages_at_once * 2).min(PAGES_MOST), PAUSE_NS_LEAST),
            false => (PAGES_LEAST, (self.pause_ns * 2).min(PAUSE_NS_MOST)),
        };
        self.due = now.after_ns(self.pause_ns);
    }
}

impl Engine {
    /// Notes a page that the core has disowned.
    pub(super) fn note_disowned(&mut self, at: VirtPage) {
        self.outside.add(address_of(at), self.now);
    }

    /// Has the core try some of the pages outside of the account, if it is time; says how many
    /// there are, if that is due.
    pub(super) fn look_outside(&mut self) {
        if matches!(self.outside.word, Word::Due { due, .. } if due <= self.now) {
            self.tell_of_pins();
        }
        self.tell_of_kept();
        if self.outside.pages.is_empty() || self.outside.due > self.now {
            return;
        }
        // What stands there may be something that has been moved there since.
        if self.machine.is_changing() {
            self.outside.due = self.now.after_ns(PAUSE_NS_LEAST);
            return;
        }
        let added = self.outside.added;
        if let Some((start, end)) = self.outside.take_next() {
            let pages = ((end - start) / PAGE) as u32;
            let (now, at) = (self.now, page_of(start));
            let machine = &mut self.machine;
            let is_all = self.vm.handle_disowned(now, machine, self.space, at, pages);
            if !is_all {
                self.put_back(start, end);
            }
            self.carry_out();
        }
        let has_come_back = self.outside.added == added;
        self.outside.set_pace(has_come_back, self.now);
    }

    /// Keeps those pages of a range in here for which there was no frame.
    fn put_back(&mut self, start: usize, end: usize) {
        for address in (start..end).step_by(PAGE) {
            let at = page_of(address);
            let is_known = self.vm.frame_at(self.space, at).is_some();
            if !is_known && self.managed.contains(address) {
                self.outside.add(address, self.now);
            }
        }
    }

    /// Counts the pages that can't be moved.
    pub(super) fn count_pinned(&mut self) {
        let outside = self.outside.len();
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
        if !matches!(self.outside.word, Word::Due { .. }) {
            return;
        }
        self.count_pinned();
        // After a fork, pages wait to be taken out of their sharing: they are back by now.
        if self.telemetry.get(Counter::OverBudgetPages) == 0 {
            self.outside.word = Word::Unneeded;
            return;
        }
        self.outside.word = Word::Said;
        let (pages, over) = (
            self.telemetry.get(Counter::PinnedPagesPeak),
            self.telemetry.get(Counter::OverBudgetPagesPeak),
        );
        let whose = match u64::from(self.task.budget()) < self.line.shared().frames_total() {
            true => "its share of `--memory`",
            false => "`--memory`",
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
}

impl Engine {
    /// Says once that pages stay in memory that nothing needs, how many, and why.
    pub(super) fn tell_of_kept(&mut self) {
        let kept = self.machine.tally().kept;
        if kept == 0 || std::mem::replace(&mut self.outside.has_told_of_kept, true) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_turn_and_those_that_come_back_hasten_the_others() {
        let mut outside = Outside::new();
        for page in 16..16 + 2 * PAGES_LEAST {
            outside.add(page * PAGE, Time(0));
        }
        let first = outside.take_next().unwrap();
        assert_eq!(first, (16 * PAGE, (16 + PAGES_LEAST) * PAGE));
        outside.set_pace(false, Time(0));
        // They stay, and the others are next.
        for page in 16..16 + PAGES_LEAST {
            outside.add(page * PAGE, Time(0));
        }
        let second = outside.take_next().unwrap();
        assert_eq!(second.0, first.1);
        assert_eq!(outside.due(), Time(2 * PAUSE_NS_LEAST));
        outside.set_pace(true, Time(0));
        assert_eq!(outside.due(), Time(PAUSE_NS_LEAST));
        assert_eq!(outside.take_next(), Some(first));
        assert_eq!(outside.len(), 0);
        assert_eq!(outside.take_next(), None);
    }
}
